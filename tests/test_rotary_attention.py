"""Tests of attention with RoPE, compared with transformers' Llama and with explicit loops. Shifting all positions must
not change anything."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

from ropebook import attention as A
from ropebook import rotary_attention as R
from tests.helpers import seeds
from tests.rotary_attention_helpers import (
    CLOSE,
    DIM,
    HEADS,
    LAYOUTS,
    Float64Tables,
    by_hand,
    draw,
    error,
    llama,
    make,
    spread,
)
from tests.together import together

pytestmark = pytest.mark.usefixtures("without_gradients")


@together("kv_heads", [4, 2, 1])
@together("bias", [False, True])
def test_equals_the_definition_by_hand(kv_heads, bias):
    layer, x = make(kv_heads, bias=bias), draw(2, 5, DIM)
    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 3, 100, 2, 50]])
    expected = by_hand(layer, x, positions.tolist())
    assert error(layer(x, positions), expected) < 1e-13
    assert error(layer(x), by_hand(layer, x, [range(5)] * 2)) < 1e-13
    assert error(layer(x), expected) > 1e-3


@together("dtype", CLOSE, ids=str)
@together("kv_heads, head_dim", [(4, None), (2, None), (1, 8), (2, 16)])
@together("masked", [False, True])
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
    if dtype == torch.float32:  # sdpa attention doesn't return its weights
        assert error(ours_weights, weights) < CLOSE[dtype]


@together("layout", LAYOUTS)
@together("is_causal", [True, False])
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
    assert R.shift_change(layer, x, shift) < 1e-9  # angles of 1e5 radians have an error of 1e-11
    assert error(layer(x, torch.arange(6) + shift), layer(x)) < 1e-9


def test_rotated_values_know_where_they_stand():
    x = draw(2, 6, DIM)
    wrong, right = make(kind=R.RotatedValueAttention), make()
    assert R.shift_change(right, x, 50) < 1e-12
    assert R.shift_change(wrong, x, 50) > 0.1
    assert R.shift_change(wrong, x, 0) == 0
    # a shift rotates each head's output in the same way as it rotates a query
    heads = [A.scaled_dot_product_attention(*wrong.project(x, torch.arange(6) + t), is_causal=True) for t in (0, 50)]
    turned, _ = wrong.rotary(heads[0], heads[0], torch.full((6,), 50))
    assert error(turned, heads[1]) < 1e-12


def test_shift_change_is_relative():
    layer, x = make(kind=R.RotatedValueAttention), draw(1, 5, DIM)
    here, there = (layer(x, torch.arange(5) + t) for t in (0, 3))
    assert math.isclose(R.shift_change(layer, x, 3), error(there, here), rel_tol=1e-12)


def test_the_layers_of_a_model_share_their_tables():
    model = R.LlamaModel(9, 12, 20, 3, 2, base=77.0, layout="interleaved")
    assert len({id(layer.attention.rotary) for layer in model.layers}) == 1
    assert model.layers[2].attention.rotary.base == 77.0
    assert model.double()(torch.tensor([[1, 2]])).dtype == torch.float64


def test_shapes_and_defaults():
    layer = R.RotaryAttention(32, 4, layout="interleaved")
    assert (layer.dim, layer.n_kv_heads, layer.head_dim) == (32, 4, 8)
    assert layer.q_proj.bias is layer.out_proj.bias is None
    assert layer.fused  # attention is fused as long as no weights are requested
    assert not layer.state_dict().keys() - {f"{name}_proj.weight" for name in ("q", "k", "v", "out")}
    wide = R.RotaryAttention(32, 4, 2, head_dim=16, bias=True, dtype=torch.bfloat16, layout="interleaved")
    assert [tuple(p.weight.shape) for p in (wide.q_proj, wide.k_proj, wide.v_proj, wide.out_proj)] == [
        (64, 32),
        (32, 32),
        (32, 32),
        (32, 64),
    ]
    assert wide.out_proj.bias.shape == (32,)
    assert wide(draw(2, 3, 32, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert R.RotaryAttention(32, 4, head_dim=8, layout="interleaved").dim == 32


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
