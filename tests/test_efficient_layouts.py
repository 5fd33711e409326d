"""Tests of converting from one layout to the other and back."""

import copy

import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import efficient as E
from tests.helpers import largest, random, seeds
from tests.rotations import LAYOUTS, tables
from tests.together import together


@given(st.integers(1, 16), st.data())
def test_orders_are_inverse_and_move_whole_pairs(pairs, data):
    dim = 2 * pairs
    rotary_dim = data.draw(st.sampled_from([None, *range(2, dim + 1, 2)]))
    to_half, to_interleaved = E.interleaved_to_half(dim, rotary_dim), E.half_to_interleaved(dim, rotary_dim)
    assert torch.equal(to_half[to_interleaved], torch.arange(dim))
    turned = rotary_dim or dim
    x = torch.arange(dim)
    for one, other in zip(
        E.split_pairs(x[:turned], "interleaved"), E.split_pairs(x[to_half][:turned], "half"), strict=True
    ):
        assert torch.equal(one, other)
    assert torch.equal(to_half[turned:], x[turned:])


@given(seeds, st.integers(0, 10**5))
def test_the_order_carries_one_rotation_into_the_other(seed, position):
    x = random(1, 8, seed=seed)
    order = E.interleaved_to_half(8)
    cos, sin = tables([position], 8)
    carried = E.rotate_halves(x[..., order], cos, sin)
    assert largest(carried - E.rotate_interleaved(x, cos, sin)[..., order]) < 1e-14


@together("to", LAYOUTS)
@together("rotary_dim", [None, 8, 4])
@together("bias", [False, True])
def test_converted_projections_keep_the_scores(to, rotary_dim, bias):
    """The heads are grouped (4 query heads, 2 key heads), and both projections have to be converted."""
    other = {"half": "interleaved", "interleaved": "half"}[to]
    x, head_dim = random(1, 6, 32), 8
    q_proj, k_proj = torch.nn.Linear(32, 32, bias).double(), torch.nn.Linear(32, 16, bias).double()

    def scores(layout, *layers):
        q, k = (layer(x).unflatten(-1, (-1, head_dim)).transpose(1, 2) for layer in layers)
        q, k = E.RotaryEmbedding(head_dim, layout=layout, rotary_dim=rotary_dim)(q, k, offset=3)
        return q @ k.repeat_interleave(2, 1).mT

    def convert(layer, heads, to):
        layer = copy.deepcopy(layer)
        for tensor in layer.parameters():
            tensor.data = E.convert_weight(tensor.data, heads, head_dim, to, rotary_dim)
        return layer

    new_q, new_k = convert(q_proj, 4, to), convert(k_proj, 2, to)
    right = scores(other, q_proj, k_proj)
    assert largest(scores(to, new_q, new_k) - right) < 1e-13
    for layers in ((new_q, k_proj), (q_proj, new_k), (q_proj, k_proj)):
        assert largest(scores(to, *layers) - right) > 0.01
    for layer, heads, new in ((q_proj, 4, new_q), (k_proj, 2, new_k)):
        assert torch.equal(convert(new, heads, other).weight, layer.weight)
    # if all heads were treated as a single head, rows would move from one head to another
    with torch.no_grad():
        wrong = E.convert_weight(q_proj.weight, 1, 32, to, rotary_dim)
    assert not torch.equal(wrong, new_q.weight)


def test_converted_scores_by_the_rotations_of_transformers():
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as interleaved
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as halves

    x, dim = random(5, 16), 8
    w_q, w_k = random(2 * dim, 16, seed=1), random(2 * dim, 16, seed=2)
    cos, sin = tables(range(5), dim)
    wide = torch.cat((cos, cos), -1)[None], torch.cat((sin, sin), -1)[None]

    def heads(weight):
        return (x @ weight.T).unflatten(-1, (2, dim))[None]  # the shape is (1, T, heads, d)

    q, k = (interleaved(heads(w), sin[None], cos[None]).transpose(1, 2) for w in (w_q, w_k))
    new = (heads(E.convert_weight(w, 2, dim, "half")).transpose(1, 2) for w in (w_q, w_k))
    q2, k2 = halves(*new, *wide)
    assert largest(q @ k.mT - q2 @ k2.mT) < 1e-12
    q2, k2 = halves(heads(E.convert_weight(w_q, 2, dim, "half")).transpose(1, 2), heads(w_k).transpose(1, 2), *wide)
    assert largest(q @ k.mT - q2 @ k2.mT) > 1
