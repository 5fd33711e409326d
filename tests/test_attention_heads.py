"""Tests of the heads and of their cost, compared with torch's counts. The whole layer is compared with torch's own
layer."""

import dataclasses
import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from ropebook import attention as A
from tests.attention_helpers import DTYPES, LAYER_UNITS, assert_close, by_hand, draw, lengths, needs
from tests.helpers import seeds
from tests.together import pairwise, together

# --- cost ---


@together("seq_len, head_dim, heads, kv_heads", [(7, 4, 6, None), (7, 4, 6, 2), (16, 8, 3, 1), (1, 1, 1, 1)])
def test_cost_is_what_torch_counts(seq_len, head_dim, heads, kv_heads):
    layer = A.MultiHeadAttention(heads * head_dim, heads, kv_heads, bias=False)
    x = draw(1, seq_len, heads * head_dim, dtype=torch.float32)
    q, k, v = layer.project(x)
    cost = A.attention_cost(seq_len, head_dim, heads, kv_heads, bytes_per_element=4)

    def counted(function, *arguments, **options):
        with FlopCounterMode(display=False) as counter:
            function(*arguments, **options)
        return counter.get_total_flops()

    _, weights = A.scaled_dot_product_attention(q, k, v, return_weights=True)
    assert cost.projection_flops == counted(layer.project, x) + counted(layer.out_proj, x)
    assert cost.score_flops == counted(A.attention_weights, q, k)
    assert cost.value_flops == counted(A.scaled_dot_product_attention, q, k, v) - cost.score_flops
    assert cost.attention_flops == counted(A.scaled_dot_product_attention, q, k, v)
    assert cost.flops == counted(layer, x)
    assert cost.score_bytes == weights.nbytes
    assert cost.kv_cache_bytes == k.nbytes + v.nbytes


def test_cost_by_hand_and_its_defaults():
    cost = A.attention_cost(seq_len=3, head_dim=5, n_heads=4, n_kv_heads=2)
    assert dataclasses.asdict(cost) == {
        "projection_flops": 2 * 3 * 20 * (20 + 10 + 10 + 20),
        "score_flops": 2 * 4 * 3 * 3 * 5,
        "value_flops": 2 * 4 * 3 * 3 * 5,
        "score_bytes": 4 * 3 * 3 * 2,
        "kv_cache_bytes": 2 * 2 * 3 * 5 * 2,
    }
    assert A.attention_cost(3, 5, 4) == A.attention_cost(3, 5, 4, 4, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        cost.score_flops = 0


# --- heads ---


@given(seeds, lengths, st.integers(1, 4), st.integers(1, 4))
def test_heads_are_runs_of_features(seed, seq_len, heads, head_dim):
    x = draw(2, seq_len, heads * head_dim, seed=seed)
    split = A.split_heads(x, heads)
    assert split.shape == (2, heads, seq_len, head_dim)
    for h in range(heads):
        assert torch.equal(split[:, h], x[:, :, h * head_dim : (h + 1) * head_dim])
    assert torch.equal(A.merge_heads(split), x)
    assert torch.equal(A.split_heads(x[0], heads), split[0])
    assert torch.equal(A.merge_heads(split[0]), x[0])


def test_repeated_heads_stand_side_by_side():
    x = draw(2, 3, 4, 5)
    repeated = A.repeat_heads(x, 6)
    assert torch.equal(repeated, x[:, [0, 0, 1, 1, 2, 2]])
    assert torch.equal(A.repeat_heads(x, 3), x)


# --- the layer ---


def torch_layer(dim, heads, bias, device, dtype, **options):
    """Return torch's layer with random biases. If the biases were zero, a mistake in copying them would go
    unnoticed."""
    layer = nn.MultiheadAttention(dim, heads, bias=bias, batch_first=True, device=device, dtype=dtype, **options)
    with torch.no_grad():
        for i, parameter in enumerate(layer.parameters()):
            parameter.copy_(draw(*parameter.shape, seed=i, dtype=dtype, device=device) / math.sqrt(dim))
    return layer


def layer_gradients(layer, function, x):
    x = x.clone().requires_grad_()
    out = function(x)
    out.backward(draw(*out.shape, seed=99, dtype=out.dtype, device=out.device))
    return out.detach(), x.grad, {name: p.grad for name, p in layer.named_parameters()}


@together(
    "dtype, case, bias, fused",
    pairwise(DTYPES, ["plain", "causal", "padding", "both", "float"], [True, False], [True, False]),
)
def test_equals_torchs_layer_forward_and_backward(device, dtype, bias, fused, case):
    needs(device, dtype)
    theirs = torch_layer(12, 3, bias, device, dtype)
    ours = A.MultiHeadAttention.from_torch(theirs, fused=fused)
    assert ours.fused is fused
    x = draw(2, 5, 12, seed=7, dtype=dtype, device=device)
    causal, padding = A.causal_mask(5, device=device), A.padding_mask([5, 3], 5, device=device)
    options, torchs = {
        "plain": ({}, {}),
        "causal": ({"is_causal": True}, {"attn_mask": ~causal, "is_causal": True}),
        "padding": ({"mask": padding}, {"key_padding_mask": ~padding[:, 0, 0]}),
        "both": ({"mask": padding, "is_causal": True}, {"attn_mask": ~causal, "key_padding_mask": ~padding[:, 0, 0]}),
        "float": ({"mask": (bias_mask := draw(5, 5, dtype=dtype, device=device))}, {"attn_mask": bias_mask}),
    }[case]
    out, dx, ours_grads = layer_gradients(ours, lambda x: ours(x, **options), x)
    torchs["need_weights"] = False
    expected, dx_expected, grads = layer_gradients(theirs, lambda x: theirs(x, x, x, **torchs)[0], x)
    units = LAYER_UNITS[dtype]
    assert_close(out, expected, units)
    assert_close(dx, dx_expected, units)
    for kind in ("weight", "bias") if bias else ("weight",):
        joined = torch.cat([ours_grads[f"{name}_proj.{kind}"] for name in "qkv"])
        assert_close(joined, grads[f"in_proj_{kind}"], units)
        assert_close(ours_grads[f"out_proj.{kind}"], grads[f"out_proj.{kind}"], units)
    assert len(ours_grads) == (8 if bias else 4)


def test_weights_are_those_of_torchs_layer(device):
    theirs = torch_layer(12, 3, True, device, torch.float32)
    x = draw(2, 5, 12, dtype=torch.float32, device=device)
    out, weights = A.MultiHeadAttention.from_torch(theirs)(x, return_weights=True)
    expected, expected_weights = theirs(x, x, x, average_attn_weights=False)
    assert_close(out.detach(), expected.detach())
    assert_close(weights.detach(), expected_weights.detach())


def test_from_torch_copies():
    theirs = torch_layer(8, 2, True, "cpu", torch.float64)
    ours = A.MultiHeadAttention.from_torch(theirs)
    before = ours.q_proj.weight.detach().clone()
    assert ours.q_proj.weight.dtype == torch.float64
    with torch.no_grad():
        theirs.in_proj_weight.zero_()
        theirs.out_proj.bias.zero_()
    assert torch.equal(ours.q_proj.weight, before)
    assert ours.out_proj.bias.abs().min() > 0
    assert all(p.requires_grad for p in ours.parameters())
    assert not ours.fused


@together(
    "dtype, kv_heads, case",
    pairwise(DTYPES, [4, 2, 1], ["plain", "causal", "boolean", "float", "boolean and causal", "nothing"]),
)
def test_the_fused_layer_gives_the_same(device, dtype, kv_heads, case):
    needs(device, dtype)
    plain = A.MultiHeadAttention(16, 4, kv_heads, device=device, dtype=dtype)
    fused = A.MultiHeadAttention(16, 4, kv_heads, fused=True, device=device, dtype=dtype)
    fused.load_state_dict(plain.state_dict())
    x = draw(2, 6, 16, dtype=dtype, device=device)
    masks = {
        "boolean": A.padding_mask([6, 2], 6, device=device),
        "float": draw(4, 6, 6, dtype=dtype, device=device),
        "nothing": A.padding_mask([6, 0], 6, device=device),  # queries of the second sequence can't attend to any key
    }
    options = {"mask": masks.get(case.split()[0]), "is_causal": "causal" in case}
    units = LAYER_UNITS[dtype]
    out, dx, grads = layer_gradients(plain, lambda x: plain(x, **options), x)
    fused_out, fused_dx, fused_grads = layer_gradients(fused, lambda x: fused(x, **options), x)
    assert_close(fused_out, out, units)
    assert_close(fused_dx, dx, units)
    for name, grad in grads.items():
        # this gradient is zero up to rounding, because adding a constant to every key shifts all scores equally
        if name != "k_proj.bias":
            assert_close(fused_grads[name], grad, units)


def test_a_grouped_layer_by_hand():
    layer = A.MultiHeadAttention(12, 6, 2, dtype=torch.float64)
    assert (layer.dim, layer.n_heads, layer.n_kv_heads, layer.head_dim) == (12, 6, 2, 2)
    assert layer.k_proj.weight.shape == layer.v_proj.weight.shape == (4, 12)
    x = draw(1, 5, 12)
    q, k, v = (p(x)[0].tolist() for p in (layer.q_proj, layer.k_proj, layer.v_proj))
    heads = []
    for h in range(6):
        of_q, of_kv = slice(2 * h, 2 * h + 2), slice(2 * (h // 3), 2 * (h // 3) + 2)
        rows = ([row[of_q] for row in q], [row[of_kv] for row in k], [row[of_kv] for row in v])
        heads.append(by_hand(*rows, allowed=lambda t, s: s <= t))
    assert_close(layer(x, is_causal=True).detach(), layer.out_proj(torch.cat(heads, -1))[None].detach())


def test_the_layers_defaults():
    layer = A.MultiHeadAttention(8, 4)
    assert layer.n_kv_heads == 4
    assert layer.fused is False
    assert layer.q_proj.bias is not None
    assert A.MultiHeadAttention(8, 4, bias=False).out_proj.bias is None
    out, weights = layer(draw(3, 5, 8, dtype=torch.float32), return_weights=True)
    assert out.shape == (3, 5, 8)
    assert weights.shape == (3, 4, 5, 5)


# --- memory and time ---


def test_kept_bytes_counts_each_memory_once():
    x = torch.randn(10, 20, requires_grad=True)
    assert A.kept_bytes(lambda x: x * x, x) == 10 * 20 * 4
    assert A.kept_bytes(lambda x: x * x.T.contiguous().T, x) == 2 * 10 * 20 * 4
    assert A.kept_bytes(lambda x: x + 1, x) == 0


def test_our_attention_keeps_the_weights_and_torchs_does_not():
    tensors = draw(3, 1, 2, 256, 4, dtype=torch.float32).requires_grad_()
    scores = A.attention_cost(256, 4, 2, bytes_per_element=4).score_bytes
    assert A.kept_bytes(A.scaled_dot_product_attention, *tensors) > scores
    assert A.kept_bytes(F.scaled_dot_product_attention, *tensors) < scores


def test_milliseconds_is_the_shortest_of_three_runs(monkeypatch):
    clock = iter([10.0, 15.0, 20.0, 22.0, 30.0, 37.0])
    monkeypatch.setattr("ropebook.attention.cost.time", SimpleNamespace(perf_counter=clock.__next__))
    runs = []
    assert A.milliseconds(runs.append, torch.zeros(1)) == 2000
    assert len(runs) == 3
