"""Test that attention agrees with explicit loops and with torch's own function, and doesn't depend on the order of the
keys."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from ropebook import attention as A
from tests.attention_helpers import DTYPES, HALVES, INF, assert_close, by_hand, draw, lengths, needs, with_gradients
from tests.helpers import seeds
from tests.together import together

# --- the function ---


@together("causal", [False, True])
@together("scale", [None, 0.3])
def test_equals_the_definition_by_hand(causal, scale):
    q, k, v = draw(3, 4, seed=1), draw(3, 4, seed=2), draw(3, 5, seed=3)
    expected = by_hand(q.tolist(), k.tolist(), v.tolist(), lambda t, s: s <= t or not causal, scale)
    assert_close(A.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale), expected)


def test_three_words_with_exact_weights():
    # the scores are 0, ln 2 and ln 5, so the weights are 1/8, 2/8 and 5/8
    k = torch.tensor([[0.0], [math.log(2)], [math.log(5)]], dtype=torch.float64)
    q = torch.ones(1, 1, dtype=torch.float64)
    v = torch.tensor([[8.0, 0.0], [16.0, 80.0], [0.0, 8.0]], dtype=torch.float64)
    out, weights = A.scaled_dot_product_attention(q, k, v, return_weights=True)
    assert_close(weights, torch.tensor([[1 / 8, 2 / 8, 5 / 8]], dtype=torch.float64))
    assert_close(out, torch.tensor([[5.0, 25.0]], dtype=torch.float64))
    assert_close(A.attention_weights(q, k), weights, 0)


CASES = {
    "plain": {},
    "boolean mask": {"mask": "boolean"},
    "float mask": {"mask": "float"},
    "causal": {"is_causal": True},
    "scale": {"scale": 0.7},
}


@together("dtype", [*DTYPES, torch.float16], ids=str)
@together("kv_heads", [6, 3, 2, 1])
@together("case", CASES)
def test_equals_torchs_function_forward_and_backward(device, dtype, kv_heads, case):
    needs(device, dtype)
    kept = {"dtype": dtype, "device": device}
    q, k, v = draw(2, 6, 5, 8, seed=1, **kept), draw(2, kv_heads, 5, 8, seed=2, **kept), draw(2, kv_heads, 5, 7, **kept)
    options = dict(CASES[case])
    mask = options.pop("mask", None)
    if mask == "boolean":
        mask = draw(2, 1, 5, 5, seed=4, device=device, dtype=torch.float32) < 0.5
        mask[..., 0] = True  # a separate test covers fully masked rows
    elif mask == "float":
        mask = draw(6, 5, 5, seed=4, **kept)
        mask[0, 1, 2] = -INF

    def theirs(q, k, v):
        if kv_heads < 6 and device.type != "cpu":  # not every kernel supports grouped heads
            k, v = (x[:, torch.arange(6) // (6 // kv_heads)] for x in (k, v))
        return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=k.shape[1] < 6, **options)

    def ours(q, k, v):
        return A.scaled_dot_product_attention(q, k, v, mask, **options)

    for got, expected in zip(with_gradients(ours, q, k, v), with_gradients(theirs, q, k, v), strict=True):
        assert_close(got, expected)


def test_heads_are_shared_without_a_batch_too():
    q, k, v = draw(4, 5, 8), draw(2, 6, 8, seed=1), draw(2, 6, 8, seed=2)
    batched = A.scaled_dot_product_attention(q[None], k[None], v[None])[0]
    assert torch.equal(A.scaled_dot_product_attention(q, k, v), batched)
    assert torch.equal(A.attention_weights(q, k), A.attention_weights(q[None], k[None])[0])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_half_types_lose_only_the_last_rounding(device, dtype):
    # The scores are in the hundreds. Rounding one of them to bfloat16 would shift it by one and change its weight by a
    # factor of e.
    q, k, v = (draw(4, 16, 64, seed=s, dtype=dtype, device=device) * (8 if s else 1) for s in (1, 2, 0))
    out = A.scaled_dot_product_attention(q, k, v)
    exact = A.scaled_dot_product_attention(*(x.cpu().double() for x in (q, k, v)))
    assert (q @ k.mT / 8).abs().max() > 100
    assert out.dtype == dtype
    assert (out.cpu().double() - exact).abs().max() <= torch.finfo(dtype).eps * exact.abs().max()


@together("dtype", [*DTYPES, torch.float16], ids=str)
def test_weights_are_at_least_float32(device, dtype):
    needs(device, dtype)
    x = draw(2, 4, 8, dtype=dtype, device=device)
    out, weights = A.scaled_dot_product_attention(x, x, x, return_weights=True)
    assert out.dtype == dtype
    assert weights.dtype == A.attention_weights(x, x).dtype == (dtype if dtype == torch.float64 else torch.float32)


def test_float16_scores_do_not_overflow():
    x = torch.full((2, 64), 60.0, dtype=torch.float16)  # q·k = 230400 is larger than 65504, the largest float16 number
    assert_close(A.scaled_dot_product_attention(x, x, x), x, 0)


@given(seeds, lengths, lengths, st.integers(1, 5), st.integers(1, 5))
def test_weights_are_probabilities_and_outputs_are_means(seed, q_len, k_len, dim, value_dim):
    q, k = draw(2, q_len, dim, seed=seed), draw(2, k_len, dim, seed=seed + 1)
    v = draw(2, k_len, value_dim, seed=seed + 2)
    out, weights = A.scaled_dot_product_attention(q, k, v, return_weights=True)
    assert weights.shape == (2, q_len, k_len)
    assert (weights >= 0).all()
    assert_close(weights.sum(-1), torch.ones(2, q_len, dtype=torch.float64))
    assert_close(weights @ v, out)
    slack = 1e-12
    assert (out <= v.amax(-2, keepdim=True) + slack).all()
    assert (out >= v.amin(-2, keepdim=True) - slack).all()


@given(seeds, st.integers(1, 4), st.integers(1, 4))
def test_grouped_heads_read_their_groups_keys(seed, kv_heads, group):
    heads = kv_heads * group
    q = draw(2, heads, 3, 4, seed=seed)
    k, v = (draw(2, kv_heads, 5, 4, seed=seed + s) for s in (1, 2))
    out = A.scaled_dot_product_attention(q, k, v)
    for head in range(heads):
        alone = A.scaled_dot_product_attention(q[:, head], k[:, head // group], v[:, head // group])
        assert_close(out[:, head], alone)


# --- order ---


def permutations(seq_len):
    return st.permutations(range(seq_len))


@given(seeds, st.integers(2, 8).flatmap(permutations))
def test_shuffled_words_give_the_same_outputs_shuffled(device, seed, order):
    layer = A.MultiHeadAttention(8, 2, 1, device=device)
    x = draw(1, len(order), 8, seed=seed, dtype=torch.float32, device=device)
    assert_close(layer(x[:, order]), layer(x)[:, order])


@given(seeds, st.integers(2, 8).flatmap(permutations))
def test_an_output_depends_on_the_set_of_keys_and_values(seed, order):
    q, k, v = draw(3, 4, seed=seed), draw(len(order), 4, seed=seed + 1), draw(len(order), 4, seed=seed + 2)
    assert_close(A.scaled_dot_product_attention(q, k[order], v[order]), A.scaled_dot_product_attention(q, k, v))


@given(seeds, st.integers(3, 8).flatmap(permutations))
def test_a_causal_mask_breaks_the_symmetry(seed, order):
    def causal(x):
        return A.scaled_dot_product_attention(x, x, x, is_causal=True)

    x = draw(len(order), 4, seed=seed)
    moved = causal(x[order]) - causal(x)[order]
    for t, word in enumerate(order):
        same_words_before = set(order[:t]) == set(range(word))
        assert (moved[t].abs().max() < 1e-13) == same_words_before


@given(seeds, st.integers(1, 7))
def test_what_a_causal_output_depends_on(seed, t):
    def causal_output(x):
        return A.scaled_dot_product_attention(x, x, x, is_causal=True)[t]

    x = draw(9, 4, seed=seed)
    out = causal_output(x)
    earlier, later, swapped = x.clone(), x.clone(), x.clone()
    earlier[:t] = x[:t].flip(0)
    later[t + 1 :] += 1
    swapped[[0, t + 1]] = x[[t + 1, 0]]
    assert (causal_output(earlier) - out).abs().max() < 1e-13  # the order of earlier words has no effect …
    assert (causal_output(later) - out).abs().max() < 1e-13  # … and neither do later words …
    assert (causal_output(swapped) - out).abs().max() > 1e-9  # … but swapping an earlier word with a later one does
