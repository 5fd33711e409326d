"""Attention with RoPE against transformers' Llama (layer, model and greedy generation), and against itself: cached,
chunked, packed and padded rows give what each text gives alone; a shift of all positions changes nothing.

Tolerances are absolute or relative to the largest magnitude, as each test says. transformers computes its norms and
angles in float32 whatever the model's dtype is; `in_float64` replaces both, so that float64 can be compared in full.
"""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

from ropebook import attention as A
from ropebook import rotary_attention as R

DIM, HEADS = 24, 4
LAYOUTS = ["interleaved", "half"]
CLOSE = {torch.float64: 2e-14, torch.float32: 1e-5}

seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True)
def _inference():
    with torch.no_grad():
        yield


def draw(*shape, seed=0, dtype=torch.float64, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device, dtype)


def error(ours, theirs):
    """The largest difference, relative to the largest magnitude of ``theirs``."""
    assert ours.shape == theirs.shape
    assert not ours.isnan().any()
    return ((ours.double() - theirs.double()).abs().max() / theirs.double().abs().max()).item()


def spread(module, seed=0, size=1.0):
    """Random weights of a size that makes attention choose, in biases and norms too."""
    for i, (name, p) in enumerate(module.named_parameters()):
        noise = draw(*p.shape, seed=seed + i, dtype=p.dtype, device=p.device)
        p.data.copy_(1 + 0.3 * noise if "norm" in name else size * noise / math.sqrt(p.shape[-1]))
    return module


def make(kv_heads=2, *, seed=0, dtype=torch.float64, dim=DIM, heads=HEADS, kind=R.RotaryAttention, **options):
    return spread(kind(dim, heads, kv_heads, dtype=dtype, **options), seed, size=2.0)


def by_hand(layer, x, positions, base=10000.0):
    """Every head and pair of tokens on its own, complex numbers for the rotation: interleaved, causal."""
    batch, seq_len, _ = x.shape
    d, group = layer.head_dim, layer.n_heads // layer.n_kv_heads
    theta = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)

    def turned(vector, position):
        z = torch.complex(vector[0::2], vector[1::2]) * torch.exp(1j * position * theta)
        return torch.stack((z.real, z.imag), -1).flatten()

    out = torch.zeros(batch, seq_len, layer.n_heads * d, dtype=x.dtype)
    for b in range(batch):
        q, k, v = (projection(x[b]) for projection in (layer.q_proj, layer.k_proj, layer.v_proj))
        for h in range(layer.n_heads):
            own, shared = slice(h * d, (h + 1) * d), slice(h // group * d, (h // group + 1) * d)
            for t in range(seq_len):
                query = turned(q[t, own], positions[b][t])
                scores = torch.stack([query @ turned(k[s, shared], positions[b][s]) for s in range(t + 1)])
                out[b, t, own] = (scores / math.sqrt(d)).softmax(0) @ v[: t + 1, shared]
    return layer.out_proj(out)


# --- the layer ---


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_the_definition_by_hand(kv_heads, bias):
    layer, x = make(kv_heads, bias=bias), draw(2, 5, DIM)
    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 3, 100, 2, 50]])
    expected = by_hand(layer, x, positions.tolist())
    assert error(layer(x, positions), expected) < 1e-13
    assert error(layer(x), by_hand(layer, x, [range(5)] * 2)) < 1e-13
    assert error(layer(x), expected) > 1e-3


def llama(kv_heads=2, dtype=torch.float64, head_dim=None, base=10000.0, **options):
    """transformers' config of a tiny Llama without special tokens, so that its generation never ends early."""
    sizes = {"hidden_size": DIM, "intermediate_size": 40, "num_hidden_layers": 2, "vocab_size": 61}
    tokens = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": base}}
    return LlamaConfig(
        **{**sizes, **tokens, **rope, **options},
        num_attention_heads=HEADS,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        attn_implementation="eager" if dtype == torch.float32 else "sdpa",  # eager's softmax is float32 always
    )


class Float64Tables(nn.Module):
    """transformers' tables, half-split, with float64 angles."""

    def __init__(self, config):
        super().__init__()
        d, base = config.head_dim, config.rope_parameters["rope_theta"]
        self.inv_freq = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)

    def forward(self, x, position_ids):
        angles = (position_ids[..., None] * self.inv_freq).repeat(1, 1, 2)
        return angles.cos(), angles.sin()


@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("kv_heads, head_dim", [(4, None), (2, None), (1, 8), (2, 16)])
@pytest.mark.parametrize("masked", [False, True])
def test_equals_transformers_attention(dtype, kv_heads, head_dim, masked):
    config = llama(kv_heads, dtype, head_dim, attention_bias=True)
    theirs = spread(LlamaAttention(config, layer_idx=0), size=2.0).to(dtype)
    ours = R.RotaryAttention(DIM, HEADS, kv_heads, head_dim=head_dim, bias=True, layout="half", dtype=dtype)
    ours.load_state_dict({name.replace("o_proj", "out_proj"): p for name, p in theirs.state_dict().items()})
    x = draw(3, 7, DIM, dtype=dtype)
    positions = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [900, 4, 77, 3, 12, 1000, 2], [0, 1, 2, 0, 1, 0, 1]])
    allowed = A.causal_mask(7)[None, None]
    mask = (draw(3, 1, 7, 7, seed=5) > -0.5) | torch.eye(7, dtype=torch.bool) if masked else None
    allowed = allowed & mask if masked else allowed.expand(3, 1, 7, 7)
    tables = Float64Tables(config) if dtype == torch.float64 else LlamaRotaryEmbedding(config)
    expected, weights = theirs(x, tables(x, positions), torch.where(allowed, 0.0, -math.inf).to(dtype))
    assert error(ours(x, positions, mask), expected) < CLOSE[dtype]
    out, ours_weights = ours(x, positions, mask, return_weights=True)
    assert error(out, expected) < CLOSE[dtype]
    assert ours_weights.shape == (3, HEADS, 7, 7)
    if dtype == torch.float32:  # sdpa has none
        assert error(ours_weights, weights) < CLOSE[dtype]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("is_causal", [True, False])
def test_weights_do_not_change_the_output(layout, is_causal):
    layer, x = make(layout=layout), draw(2, 6, DIM)
    out, weights = layer(x, is_causal=is_causal, return_weights=True)
    assert error(layer(x, is_causal=is_causal), out) < 1e-14
    assert (weights.triu(1) == 0).all() == is_causal
    assert error(weights.sum(-1), torch.ones(2, HEADS, 6)) < 1e-14


def test_only_rotary_dim_numbers_turn():
    x = draw(1, 4, 32)
    layer = make(dim=32, rotary_dim=4)
    q, k, v = layer.project(x)
    plain = [A.split_heads(p(x), n) for p, n in [(layer.q_proj, 4), (layer.k_proj, 2), (layer.v_proj, 2)]]
    for turned, still in zip((q, k), plain, strict=False):
        assert torch.equal(turned[..., 4:], still[..., 4:])
        assert torch.equal(turned[..., 0, :], still[..., 0, :])
        assert error(turned[..., 1:, :4], still[..., 1:, :4]) > 0.1
    assert torch.equal(v, plain[2])


def test_options_reach_the_rotation():
    x, positions = draw(1, 6, DIM), torch.arange(6)
    halved = make(scaling=lambda theta, length: (theta / 2, 1.0))
    assert error(halved(x, positions * 2), make()(x, positions)) < 1e-13
    assert error(make(base=100.0)(x), by_hand(make(), x, [range(6)], base=100.0)) < 1e-13


@given(seeds, st.integers(-(10**5), 10**5), st.sampled_from(LAYOUTS))
def test_a_shift_of_all_positions_changes_nothing(seed, shift, layout):
    layer, x = make(layout=layout, seed=seed % 100), draw(2, 6, DIM, seed=seed)
    assert R.shift_change(layer, x, shift) < 1e-9  # angles of 1e5 radians are off by 1e-11
    assert error(layer(x, torch.arange(6) + shift), layer(x)) < 1e-9


def test_rotated_values_know_where_they_stand():
    x = draw(2, 6, DIM)
    wrong, right = make(kind=R.RotatedValueAttention), make()
    assert R.shift_change(right, x, 50) < 1e-12
    assert R.shift_change(wrong, x, 50) > 0.1
    assert R.shift_change(wrong, x, 0) == 0
    # each head's output is turned by the shift, as a query at that position is
    heads = [A.scaled_dot_product_attention(*wrong.project(x, torch.arange(6) + t), is_causal=True) for t in (0, 50)]
    turned, _ = wrong.rotary(heads[0], heads[0], torch.full((6,), 50))
    assert error(turned, heads[1]) < 1e-12


def test_shift_change_is_relative():
    layer, x = make(kind=R.RotatedValueAttention), draw(1, 5, DIM)
    here, there = (layer(x, torch.arange(5) + t) for t in (0, 3))
    assert math.isclose(R.shift_change(layer, x, 3), error(there, here), rel_tol=1e-12)


@pytest.mark.parametrize("layers, heads, kv_heads, head_dim, rotary_dim", [(3, 4, 2, 6, None), (1, 2, 1, 8, 4)])
def test_rotations_per_token_are_those_made(monkeypatch, layers, heads, kv_heads, head_dim, rotary_dim):
    turned, forward = [], R.RotaryEmbedding.forward

    def counted(self, q, k, *arguments, **options):
        ones = torch.ones_like(q), torch.ones_like(k)
        turned.extend((r != 1).sum().item() // 2 for r in forward(self, *ones, *arguments, **options))
        return forward(self, q, k, *arguments, **options)

    monkeypatch.setattr(R.RotaryEmbedding, "forward", counted)
    model = R.LlamaModel(9, 12, 20, layers, heads, kv_heads, head_dim=head_dim, rotary_dim=rotary_dim)
    model(torch.tensor([[3]]), torch.tensor([5]))
    assert sum(turned) == R.rotations_per_token(layers, heads, kv_heads, rotary_dim or head_dim)


def test_the_layers_of_a_model_share_their_tables():
    model = R.LlamaModel(9, 12, 20, 3, 2, base=77.0)
    assert len({id(layer.attention.rotary) for layer in model.layers}) == 1
    assert model.layers[2].attention.rotary.base == 77.0
    assert model.double()(torch.tensor([[1, 2]])).dtype == torch.float64


def test_shapes_and_defaults():
    layer = R.RotaryAttention(32, 4)
    assert (layer.dim, layer.n_kv_heads, layer.head_dim) == (32, 4, 8)
    assert layer.q_proj.bias is layer.out_proj.bias is None
    assert layer.fused  # unless weights are asked for
    assert not layer.state_dict().keys() - {f"{name}_proj.weight" for name in ("q", "k", "v", "out")}
    wide = R.RotaryAttention(32, 4, 2, head_dim=16, bias=True, dtype=torch.bfloat16)
    assert [tuple(p.weight.shape) for p in (wide.q_proj, wide.k_proj, wide.v_proj, wide.out_proj)] == [
        (64, 32),
        (32, 32),
        (32, 32),
        (32, 64),
    ]
    assert wide.out_proj.bias.shape == (32,)
    assert wide(draw(2, 3, 32, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert R.RotaryAttention(32, 4, head_dim=8).dim == 32


@torch.enable_grad()
def test_gradients_flow_to_every_projection():
    layer, x = make(), draw(2, 5, DIM).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, torch.tensor([3, 1, 4, 1, 5])), x)
    layer(x).sum().backward()
    assert all(p.grad.abs().max() > 0 for p in layer.parameters())


def test_every_device(device):
    dtype = torch.float32
    layer = make(dtype=dtype, layout="half")
    x, positions = draw(2, 5, DIM, dtype=dtype), torch.tensor([[0, 1, 2, 3, 4], [9, 8, 7, 6, 5]])
    there, cache = make(dtype=dtype, layout="half", device=device), R.KVCache(5)
    expected = layer(x, positions)
    assert error(there(x.to(device), positions.to(device)).cpu(), expected) < 2e-5
    parts = [there(x[:, at].to(device), positions[:, at].to(device), cache=cache) for at in (slice(3), slice(3, 5))]
    assert error(torch.cat(parts, 1).cpu(), expected) < 2e-5


# --- the cache ---


def in_chunks(layer, x, chunks, positions=None, **options):
    cache, outs, start = R.KVCache(x.shape[1]), [], 0
    for n in chunks:
        at = slice(start, start + n)
        where = None if positions is None else positions[..., at]
        outs.append(layer(x[:, at], where, cache=cache, **options))
        start += n
    assert cache.length == start == x.shape[1]
    return torch.cat(outs, 1)


CHUNKS = [[9], [1] * 9, [6, 1, 1, 1], [4, 5], [1, 3, 2, 3]]


@pytest.mark.parametrize("chunks", CHUNKS, ids=str)
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("dtype", CLOSE, ids=str)
def test_chunks_with_a_cache_give_what_all_at_once_gives(chunks, kv_heads, dtype):
    x = draw(2, 9, DIM, dtype=dtype)
    for layout in LAYOUTS:
        layer = make(kv_heads, dtype=dtype, layout=layout)
        assert error(in_chunks(layer, x, chunks), layer(x)) < CLOSE[dtype]
    positions = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12, 13], [0, 3, 1, 7, 2, 2, 90, 4, 8]])
    assert error(in_chunks(layer, x, chunks, positions), layer(x, positions)) < CLOSE[dtype]


def test_weights_and_masks_reach_over_the_cache():
    layer, x = make(), draw(2, 6, DIM)
    mask = A.padding_mask([4, 6], 6)
    out, weights = layer(x, mask=mask, return_weights=True)
    for new in (1, 3):
        for allowed in (mask, torch.where(mask, 0.0, -math.inf)):
            cache = R.KVCache(6)
            layer(x[:, :-new], mask=allowed[..., :-new], cache=cache)
            late, late_weights = layer(x[:, -new:], mask=allowed, cache=cache, return_weights=True)
            assert error(late, out[:, -new:]) < 1e-13
            assert error(late_weights, weights[:, :, -new:]) < 1e-13
        cache = R.KVCache(6)
        layer(x[:, :-new], cache=cache)
        ahead = layer(x[:, -new:], cache=cache, is_causal=False)  # the new ones see one another, too
        assert (error(ahead, layer(x)[:, -new:]) < 1e-13) == (new == 1)
        assert error(ahead, layer(x, is_causal=False)[:, -new:]) < 1e-13


def test_the_cache_keeps_rotated_keys_and_plain_values():
    layer, x, cache = make(), draw(2, 5, DIM), R.KVCache(8)
    positions = torch.tensor([4, 9, 2, 0, 1])
    layer(x[:, :3], positions[:3], cache=cache)
    layer(x[:, 3:], positions[3:], cache=cache)
    _, k, v = layer.project(x, positions)
    assert cache.keys.shape == cache.values.shape == (2, 2, 8, 6)
    assert error(cache.keys[:, :, :5], k) < 1e-14
    assert error(cache.values[:, :, :5], v) < 1e-14
    cost = A.attention_cost(8, 6, HEADS, 2, bytes_per_element=8)
    assert cache.keys.nbytes + cache.values.nbytes == 2 * cost.kv_cache_bytes  # two rows


def test_a_cache_takes_no_memory_after_the_first_keys():
    cache = R.KVCache(4)
    k = draw(1, 2, 2, 6)
    first, _ = cache.append(k, k)
    second, values = cache.append(k + 1, k + 2)
    assert first.data_ptr() == second.data_ptr() == cache.keys.data_ptr()
    assert torch.equal(second, torch.cat((k, k + 1), 2))
    assert torch.equal(values, torch.cat((k, k + 2), 2))


def test_a_refused_call_leaves_the_cache_as_it_was():
    layer, x, cache = make(), draw(1, 6, DIM), R.KVCache(6)
    layer(x[:, :4], cache=cache)
    bad = [
        {"mask": torch.ones(1, 1, 2, 4, dtype=torch.bool)},  # does not reach the new keys
        {"positions": torch.arange(3)},
        {"x": x},
        {"x": x[:, 4:].float()},
    ]
    for options in bad:
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            layer(**{"x": x[:, 4:], **options}, cache=cache)
    assert cache.length == 4
    assert error(layer(x[:, 4:], cache=cache), layer(x)[:, 4:]) < 1e-13


def test_decoding_is_one_graph_that_recompiles_at_most_twice():
    compiled = []

    def count(graph, inputs):
        compiled.append(graph)
        return graph.forward

    torch.compiler.reset()
    layer, x, cache = make(), draw(1, 65, DIM), R.KVCache(65)
    step = torch.compile(layer, fullgraph=True, backend=count)
    out = torch.cat([layer(x[:, :1], cache=cache), *(step(x[:, t : t + 1], cache=cache) for t in range(1, 65))], 1)
    assert 1 <= len(compiled) <= 3
    assert error(out, layer(x)) < 2e-14
    torch.compiler.reset()


# --- packed and padded rows ---


@given(seeds, st.lists(st.integers(1, 5), min_size=1, max_size=4), st.sampled_from(LAYOUTS))
def test_texts_packed_in_one_row_are_as_if_alone(seed, lengths, layout):
    layer, x = make(layout=layout), draw(1, sum(lengths), DIM, seed=seed)
    segments = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    positions, mask = R.packed_positions(segments), R.packed_mask(segments)
    out = layer(x, positions, mask)
    assert error(out, torch.cat([layer(text) for text in x.split(lengths, 1)], 1)) < 1e-12
    # positions that run on instead of restarting do as well: each text is shifted as a whole …
    assert error(layer(x, mask=mask), out) < 1e-12
    # … the mask does not
    if len(lengths) > 1:
        assert error(layer(x, positions), out) > 1e-6


def test_positions_and_mask_of_packed_rows():
    segments = torch.tensor([[3, 3, 3, 1, 1, 3], [0, 1, 2, 2, 2, 2]])
    assert R.packed_positions(segments).tolist() == [[0, 1, 2, 0, 1, 0], [0, 0, 0, 1, 2, 3]]
    mask = R.packed_mask(segments)
    assert mask.shape == (2, 1, 6, 6)
    texts = [[0, 0, 0, 1, 1, 2], [0, 1, 2, 2, 2, 2]]  # the 3 that comes back is another text
    assert mask[:, 0].tolist() == [[[a == b for b in row] for a in row] for row in texts]
    assert torch.equal(R.packed_mask(segments, 2), mask[:, :, -2:])
    assert torch.equal(R.packed_mask(segments[0]), mask[0])
    assert torch.equal(R.packed_positions(segments[0].int()), R.packed_positions(segments)[0])
    assert R.packed_positions(torch.tensor([9])).tolist() == [0]


@pytest.mark.parametrize("chunks", [[7], [5, 2], [5, 1, 1]], ids=str)
@pytest.mark.parametrize("dtype", CLOSE, ids=str)
def test_padding_on_the_left_changes_nothing(chunks, dtype):
    layer, x, lengths = make(dtype=dtype), draw(3, 7, DIM, dtype=dtype), [7, 4, 3]
    segments = R.left_padded(lengths, 7)
    positions, mask = R.packed_positions(segments), R.packed_mask(segments)
    cache, start, outs = R.KVCache(7), 0, []
    for n in chunks:
        at = slice(start, start + n)
        start += n
        outs.append(layer(x[:, at], positions[:, at], mask[:, :, at, :start], cache=cache))
    out = torch.cat(outs, 1)
    for row, length in enumerate(lengths):
        assert error(out[row, 7 - length :], layer(x[row : row + 1, 7 - length :])[0]) < CLOSE[dtype]
    assert not out.isnan().any()


def test_segments_of_left_padded_rows():
    assert R.left_padded([0, 2, 3], 3).tolist() == [[0, 0, 0], [0, 1, 1], [1, 1, 1]]
    assert torch.equal(R.left_padded(torch.tensor([2]), 3), R.left_padded([2], 3))


# --- a whole Llama ---

CONFIGS = {
    "plain": {"kv_heads": 4},
    "grouped": {"kv_heads": 2, "base": 500000.0},
    "one key head, wide heads": {"kv_heads": 1, "head_dim": 16},
    "tied": {"kv_heads": 2, "tie_word_embeddings": True},
    "biases": {"kv_heads": 2, "attention_bias": True, "mlp_bias": True, "rms_norm_eps": 0.1},
}


def theirs_of(case, dtype=torch.float32, seed=0):
    model = LlamaForCausalLM(llama(dtype=dtype, **CONFIGS[case])).eval().to(dtype)
    spread(model, seed, size=1.5)
    if dtype == torch.float64:
        in_float64(model)
    return model


def in_float64(model):
    """transformers computes norms and angles in float32 even here: exact ones in their place."""
    config = model.config
    model.model.rotary_emb = Float64Tables(config)
    for parent in [model.model, *model.model.layers]:
        for name, child in list(parent.named_children()):
            if "norm" in name:
                norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps, dtype=torch.float64)
                norm.weight = child.weight
                setattr(parent, name, norm)


def tokens_of(*shape, seed=0):
    return torch.randint(61, shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CONFIGS)
@pytest.mark.parametrize("dtype", CLOSE, ids=str)
def test_the_same_logits_as_transformers(case, layout, dtype):
    theirs = theirs_of(case, dtype)
    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, layout)
    assert ours.embedding.weight.dtype == dtype
    tokens = tokens_of(2, 11)
    expected = theirs(tokens).logits
    assert error(ours(tokens), expected) < CLOSE[dtype]
    positions = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]])
    moved = theirs(tokens, position_ids=positions).logits
    assert error(moved, expected) > 1e-2
    assert error(ours(tokens, positions.expand(2, 11)), moved) < CLOSE[dtype]


def test_the_layouts_of_the_weights_are_not_the_same():
    theirs = theirs_of("biases", torch.float64)
    half, interleaved = (
        R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, name) for name in LAYOUTS[::-1]
    )
    tokens = tokens_of(2, 11)
    assert error(interleaved(tokens), half(tokens)) < 1e-12
    for name, p in half.state_dict().items():
        reordered = re.search(r"[qk]_proj", name) is not None
        assert torch.equal(interleaved.state_dict()[name], p) != reordered
    interleaved.load_state_dict(half.state_dict())
    assert error(interleaved(tokens), half(tokens)) > 1e-2
    few = [
        R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, name, rotary_dim=4)(tokens)
        for name in LAYOUTS
    ]
    assert error(*few) < 1e-12
    assert error(few[0], half(tokens)) > 1e-2


def test_the_weights_are_copies():
    theirs = theirs_of("tied")
    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config)
    tokens = tokens_of(1, 5)
    before = ours(tokens)
    for p in theirs.parameters():
        p.zero_()
    assert torch.equal(ours(tokens), before)
    assert ours.lm_head.weight is ours.embedding.weight
    untied = R.LlamaModel(7, 8, 12, 1, 2)
    assert untied.lm_head.weight is not untied.embedding.weight


def test_tied_weights_need_be_stored_once():
    theirs = theirs_of("tied")
    state = theirs.state_dict()
    del state["lm_head.weight"]
    ours = R.LlamaModel.from_transformers(state, theirs.config)
    assert error(ours(tokens_of(1, 5)), theirs(tokens_of(1, 5)).logits) < 2e-5
    state = theirs_of("plain").state_dict()
    del state["lm_head.weight"]
    with pytest.raises(RuntimeError, match="lm_head"):
        R.LlamaModel.from_transformers(state, theirs_of("plain").config)


def test_scaled_frequencies_come_from_the_hook():
    rope = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
    theirs = spread(LlamaForCausalLM(llama(dtype=torch.float32, rope_parameters=rope)).eval(), size=1.5)
    expected = theirs(tokens_of(2, 9)).logits

    def linear(theta, length):
        return theta / 4, 1.0

    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, scaling=linear)
    assert error(ours(tokens_of(2, 9)), expected) < 2e-5
    theirs.config.rope_parameters = DEFAULT | {"partial_rotary_factor": 1.0}
    unscaled = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config)
    assert error(unscaled(tokens_of(2, 9)), expected) > 1e-2


def test_beside_a_cache_a_scaling_has_no_length_to_follow_and_positions_stay_as_given():
    told = []

    def scaling(theta, length):
        told.append(length)
        return theta / 2, 1.0

    layer, x = make(scaling=scaling), draw(2, 3, DIM)
    plain = layer(x)
    assert told == [3]
    assert error(layer(x, cache=R.KVCache(3)), plain) < CLOSE[torch.float64]
    assert told == [3, None]
    apart = torch.tensor([0, 5, 6])
    spaced = layer(x, apart)
    assert error(spaced, plain) > 1e-2
    assert error(layer(x, apart, cache=R.KVCache(3)), spaced) < CLOSE[torch.float64]


def test_frequencies_that_follow_the_length_are_refused_beside_a_cache():
    def scaling(theta, length):
        return theta, 1.0

    scaling.follows_length = True
    layer, x, cache = make(scaling=scaling), draw(2, 3, DIM), R.KVCache(3)
    assert layer(x).shape == x.shape
    with pytest.raises(ValueError, match="cache must be None where the frequencies follow the length"):
        layer(x, cache=cache)
    assert cache.length == 0


def test_a_model_has_no_biases_unless_asked_for_and_knows_its_first_token():
    model = R.LlamaModel(61, DIM, 40, 1, HEADS)
    assert not [name for name in model.state_dict() if "bias" in name]
    named = [name for name, _ in R.LlamaModel(61, DIM, 40, 1, HEADS, mlp_bias=True).named_parameters()]
    assert [name.split(".")[-2] for name in named if "bias" in name] == ["gate_proj", "up_proj", "down_proj"]
    asked = R.LlamaModel(61, DIM, 40, 1, HEADS, attention_bias=True).state_dict()
    assert sum("bias" in name for name in asked) == 4
    assert model(torch.tensor([[0, 60]])).isfinite().all()


@pytest.mark.parametrize("dtype", CLOSE, ids=str)
@pytest.mark.parametrize("chunks", [[9], [1] * 9, [5, 1, 3]], ids=str)
def test_a_model_with_caches_gives_what_all_at_once_gives(chunks, dtype):
    model = spread(R.LlamaModel(61, DIM, 40, 3, HEADS, 2, dtype=dtype), size=1.5)
    tokens, caches, start, outs = tokens_of(2, 9), model.new_caches(9), 0, []
    for n in chunks:
        outs.append(model(tokens[:, start : start + n], caches=caches))
        start += n
    assert [cache.length for cache in caches] == [9] * 3
    assert error(torch.cat(outs, 1), model(tokens)) < CLOSE[dtype]


def test_a_subclass_may_embed_words_with_their_places():
    seen = []

    class Placed(R.LlamaModel):
        def embed(self, tokens, positions, offset):
            seen.append((positions, offset))
            places = torch.arange(offset, offset + tokens.shape[1]) if positions is None else positions
            return super().embed(tokens, positions, offset) + places[..., None] / 7

    model = spread(Placed(61, DIM, 40, 2, HEADS, dtype=torch.float64), size=1.5)
    plain = R.LlamaModel(61, DIM, 40, 2, HEADS, dtype=torch.float64)
    plain.load_state_dict(model.state_dict())
    tokens, caches = tokens_of(2, 9), model.new_caches(9)
    whole = model(tokens)
    by_hand = model.embedding(tokens) + torch.arange(9)[:, None] / 7
    for layer in plain.layers:
        by_hand = layer(by_hand)
    assert error(whole, plain.lm_head(plain.norm(by_hand))) < 1e-14
    assert error(plain(tokens), whole) > 1e-2
    parts = [model(piece, caches=caches) for piece in tokens.split([5, 1, 3], 1)]
    assert error(torch.cat(parts, 1), whole) < CLOSE[torch.float64]
    assert seen == [(None, 0), (None, 0), (None, 5), (None, 6)]
    positions = torch.arange(9) + 4
    model(tokens, positions)
    assert seen[-1][0] is positions
    found = model.generate(tokens, 4, [9, 2])
    assert [offset for _, offset in seen[-4:]] == [0, 9, 10, 11]
    assert torch.equal(found[1, 7:], model.generate(tokens[1:, 7:], 4)[0])


def test_caches_of_a_model_belong_to_one_layer_each():
    model, tokens = R.LlamaModel(61, DIM, 40, 3, HEADS), tokens_of(1, 5)
    one, other = model.new_caches(9)[:2]
    for caches, again in (([one] * 3, (0, 1)), ([one, other, other], (1, 2)), ([one, other, one], (0, 2))):
        message = "caches must be different ones, as new_caches makes them, got caches[{}] as caches[{}] again"
        with pytest.raises(ValueError, match=re.escape(message.format(*again))):
            model(tokens, caches=caches)
    for caches, found in (([None] * 3, "0] must be a KVCache, got NoneType"), ([one, other, 5], "2] must .* got int")):
        with pytest.raises(TypeError, match=re.escape("caches[") + found):
            model(tokens, caches=caches)
    assert one.length == other.length == 0
    used = model.new_caches(9)
    model(tokens, caches=used)
    with pytest.raises(ValueError, match=re.escape("caches must hold equally many tokens, got [5, 5, 0]")):
        model(tokens, caches=[*used[:2], one])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", ["plain", "grouped", "tied"])
def test_generates_the_tokens_that_transformers_generates(case, layout):
    theirs = theirs_of(case, torch.float64, seed=3)
    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, layout)
    prompts = tokens_of(3, 6)
    expected = theirs.generate(prompts, max_new_tokens=12, do_sample=False)
    found = ours.generate(prompts, 12)
    assert found.shape == (3, 18)
    assert len(found[:, 6:].unique()) > 5  # not one word over and over
    assert torch.equal(found, expected)
    step = prompts
    for _ in range(12):  # without a cache
        step = torch.cat((step, ours(step)[:, -1:].argmax(-1)), 1)
    assert torch.equal(found, step)


def test_generates_from_prompts_of_unequal_length():
    theirs = theirs_of("grouped", torch.float64, seed=3)
    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config)
    prompts, lengths = tokens_of(3, 6), [6, 2, 4]
    found = ours.generate(prompts, 8, lengths)
    seen = R.left_padded(lengths, 6)
    assert torch.equal(found, theirs.generate(prompts, attention_mask=seen, max_new_tokens=8, do_sample=False))
    for row, length in enumerate(lengths):
        alone = ours.generate(prompts[row : row + 1, 6 - length :], 8)
        assert torch.equal(found[row, 6 - length :], alone[0])
    assert not torch.equal(found, ours.generate(prompts, 8))


# --- bad input ---

X = torch.zeros(2, 5, 8)
LAYER = R.RotaryAttention(8, 2)
MODEL = R.LlamaModel(7, 8, 12, 2, 2)
TOKENS = torch.zeros(2, 3, dtype=torch.long)
K = torch.zeros(2, 1, 3, 4)


DEFAULT = {"rope_type": "default", "rope_theta": 10000.0}


def filled(max_len=4):
    cache = R.KVCache(max_len)
    cache.append(K, K)
    return cache


def with_grad():
    return K.clone().requires_grad_()


def config_with(**changes):
    config = llama()
    for name, value in changes.items():
        setattr(config, name, value)
    return config


BAD = [
    # call, error, message
    (lambda: R.RotaryAttention(8, 3), ValueError, "dim must be a multiple of n_heads = 3, got 8"),
    (lambda: R.RotaryAttention(8.0, 2), TypeError, "dim must be an integer >= 1, got 8.0"),
    (lambda: R.RotaryAttention(8, 0), ValueError, "n_heads must be an integer >= 1, got 0"),
    (lambda: R.RotaryAttention(8, 4, 3), ValueError, "n_kv_heads must divide n_heads = 4, got 3"),
    (lambda: R.RotaryAttention(6, 2), ValueError, "head_dim must be an even integer >= 2, got 3"),
    (lambda: R.RotaryAttention(6, 2, head_dim=5), ValueError, "head_dim must be an even integer >= 2, got 5"),
    (lambda: R.RotaryAttention(8, 2, layout="halves"), ValueError, "layout must be one of"),
    (lambda: R.RotaryAttention(8, 2, base=-1.0), ValueError, "base must be"),
    (lambda: R.RotaryAttention(8, 2, theta=1.0), TypeError, "theta"),
    (lambda: LAYER([1.0]), TypeError, "x must be a floating-point tensor, got list"),
    (lambda: LAYER(X[0]), ValueError, "x must be (batch, seq, 8), got (5, 8)"),
    (lambda: LAYER(X[..., :6]), ValueError, "x must be (batch, seq, 8), got (2, 5, 6)"),
    (lambda: LAYER(X, torch.arange(4)), ValueError, "positions"),
    (lambda: LAYER(X, torch.zeros(3, 5).long()), ValueError, "positions"),
    (lambda: LAYER(X, A.causal_mask(5)), TypeError, "positions"),
    (
        lambda: LAYER(X, mask=A.causal_mask(4)),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 2, 5, 5), got (4, 4)",
    ),
    (lambda: R.KVCache(0), ValueError, "max_len must be an integer >= 1, got 0"),
    (lambda: filled().append(K, K), ValueError, "the cache must have room for 3 more tokens, got 3 of max_len = 4"),
    (lambda: R.KVCache(2).append(K, K), ValueError, "the cache must have room for 3 more tokens, got 0 of max_len = 2"),
    (
        lambda: filled(9).append(K[:1], K[:1]),
        ValueError,
        "k must fit the cache, ((2, 1, 3, 4), torch.float32, 'cpu'), got ((1, 1, 3, 4), torch.float32, 'cpu')",
    ),
    (lambda: filled(9).append(K[..., :2], K[..., :2]), ValueError, "got ((2, 1, 3, 2), torch.float32, 'cpu')"),
    (lambda: filled(9).append(K.double(), K.double()), ValueError, "got ((2, 1, 3, 4), torch.float64, 'cpu')"),
    (lambda: filled(9).append(K.to("meta"), K.to("meta")), ValueError, "got ((2, 1, 3, 4), torch.float32, 'meta')"),
    (
        lambda: R.KVCache(9).append(K, K[:, :, :2]),
        ValueError,
        "v must fit k, ((2, 1, 3, 4), torch.float32, 'cpu'), got ((2, 1, 2, 4), torch.float32, 'cpu')",
    ),
    (lambda: R.KVCache(9).append(K[0], K[0]), ValueError, "k must be (batch, heads, seq, head_dim), got (1, 3, 4)"),
    (lambda: R.KVCache(9).append(K.int(), K), TypeError, "k must be a floating-point tensor, got dtype torch.int32"),
    (lambda: R.KVCache(9).append(with_grad(), K), ValueError, "k and v must not require gradients"),
    (lambda: R.KVCache(9).append(K, with_grad()), ValueError, "k and v must not require gradients"),
    (lambda: R.packed_positions([0, 1]), TypeError, "segment_ids must be a tensor of integers, got list"),
    (lambda: R.packed_positions(X), TypeError, "segment_ids must be a tensor of integers, got torch.float32"),
    (lambda: R.packed_mask(X > 0), TypeError, "segment_ids must be a tensor of integers, got torch.bool"),
    (lambda: R.packed_mask(TOKENS[:, :0]), ValueError, "segment_ids must be (…, seq) with seq >= 1, got (2, 0)"),
    (lambda: R.packed_mask(TOKENS[0, 0]), ValueError, "segment_ids must be (…, seq) with seq >= 1, got ()"),
    (lambda: R.packed_mask(TOKENS, 4), ValueError, "q_len must be an integer >= 1 and <= 3, got 4"),
    (lambda: R.left_padded([4], 3), ValueError, "lengths[0] must be an integer >= 0 and <= 3, got 4"),
    (lambda: R.SwiGLU(8, 0), ValueError, "hidden_dim must be an integer >= 1, got 0"),
    (lambda: R.SwiGLU(0, 8), ValueError, "dim must be an integer >= 1, got 0"),
    (lambda: R.LlamaModel(0, 8, 12, 2, 2), ValueError, "vocab_size must be an integer >= 1, got 0"),
    (lambda: R.LlamaModel(7, 8, 12, 0, 2), ValueError, "n_layers must be an integer >= 1, got 0"),
    (lambda: R.LlamaModel(7, 8, 12, 2, 2, norm_eps=-1), ValueError, "norm_eps must be a finite number >= 0, got -1"),
    (lambda: MODEL([[1]]), TypeError, "tokens must be a tensor of int64 or int32, got list"),
    (lambda: MODEL(X[0]), TypeError, "tokens must be a tensor of int64 or int32, got torch.float32"),
    (lambda: MODEL(TOKENS[0]), ValueError, "tokens must be (batch, seq), neither of them 0, got (3,)"),
    (lambda: MODEL(TOKENS[:, :0]), ValueError, "tokens must be (batch, seq), neither of them 0, got (2, 0)"),
    (lambda: MODEL(TOKENS + 7), ValueError, "tokens must lie between 0 and 6, got 7"),
    (lambda: MODEL(TOKENS - 1), ValueError, "tokens must lie between 0 and 6, got -1"),
    (lambda: MODEL(TOKENS, caches=[filled()]), ValueError, "caches must be one for each of 2 layers, got 1"),
    (lambda: MODEL.generate(TOKENS, 0), ValueError, "new_tokens must be an integer >= 1, got 0"),
    (
        lambda: MODEL.generate(TOKENS, 1, [3, 0]),
        ValueError,
        "lengths[1] must be an integer >= 1 and <= 3, got 0",
    ),
    (
        lambda: MODEL.generate(TOKENS, 1, torch.tensor([0, 0])),
        ValueError,
        "lengths[0] must be an integer >= 1 and <= 3, got 0",
    ),
    (lambda: LAYER(X, torch.tensor([0, 1, 2**31 + 1, 3, 4])), ValueError, "positions must lie between -2147483648 and"),
    (lambda: MODEL(TOKENS, torch.tensor([0, math.nan, 2])), ValueError, "2147483648, got nan"),
    (lambda: R.shift_change(LAYER, X, 2**31), ValueError, "positions must lie between"),
    (lambda: MODEL.generate(TOKENS, 1, [3]), ValueError, "lengths must be one for each of 2 rows, got 1"),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(model_type="mistral")),
        ValueError,
        "config.model_type must be one of 'llama', got 'mistral'",
    ),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(hidden_act="gelu")),
        ValueError,
        "config.hidden_act must be one of 'silu', got 'gelu'",
    ),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(rope_parameters={"rope_type": "yarn"})),
        ValueError,
        "config.rope_parameters['rope_type'] must be one of 'default', got 'yarn'",
    ),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(rope_parameters={"rope_type": "yarn"}), scaling=None),
        ValueError,
        "config.rope_parameters['rope_type'] must be one of 'default', got 'yarn'",
    ),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(rope_parameters=DEFAULT | {"mrope_section": [1, 1, 1]})),
        ValueError,
        "partial_rotary_factor'), got ['mrope_section']",
    ),
    (
        lambda: R.LlamaModel.from_transformers(
            {}, config_with(rope_parameters=DEFAULT | {"partial_rotary_factor": 0.5})
        ),
        ValueError,
        "config.rope_parameters['partial_rotary_factor'] must be 1 where no rotary_dim is given, got 0.5",
    ),
    (lambda: R.rotations_per_token(0, 1, 1, 2), ValueError, "n_layers must be an integer >= 1, got 0"),
    (lambda: R.rotations_per_token(1, 1, 0, 2), ValueError, "n_kv_heads must be an integer >= 1, got 0"),
    (lambda: R.rotations_per_token(1, 1.5, 1, 2), TypeError, "n_heads must be an integer >= 1, got 1.5"),
    (lambda: R.rotations_per_token(1, 1, 1, 3), ValueError, "rotary_dim must be an even integer >= 2, got 3"),
    (lambda: R.shift_change(LAYER, X, 1.5), TypeError, "shift must be an integer, got 1.5"),
]


@pytest.mark.parametrize("call, kind, message", BAD, ids=range(len(BAD)))
def test_bad_input_is_refused(call, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        call()
