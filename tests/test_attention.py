"""Attention against loops by hand, torch's own function and module, and the theorems of the chapter.

Tolerances are in units of the dtype's machine epsilon times the largest magnitude of what is compared with: 64 for
float64 and float32 (the order of summation), 4 for bfloat16 and float16 (the last rounding). A whole layer rounds
after every projection, too: see ``LAYER_UNITS``.
"""

import dataclasses
import itertools
import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right
from torch.utils.flop_counter import FlopCounterMode

from ropebook import attention as A
from tests.helpers import public

UNITS = {torch.float64: 64, torch.float32: 64, torch.bfloat16: 4, torch.float16: 4}
LAYER_UNITS = {torch.float64: 64, torch.float32: 64, torch.bfloat16: 8}
DTYPES = [torch.float64, torch.float32, torch.bfloat16]
HALVES = [torch.bfloat16, torch.float16]
INF = math.inf

lengths = st.integers(1, 9)
seeds = st.integers(0, 2**32 - 1)


def distance(ours, theirs):
    """The largest difference, in units of epsilon times the largest magnitude of ``theirs``."""
    assert ours.shape == theirs.shape
    assert not ours.isnan().any()
    assert not theirs.isnan().any()
    scale = max(theirs.abs().max().item(), 1e-30) * torch.finfo(theirs.dtype).eps
    return (ours.double() - theirs.double()).abs().max().item() / scale


def assert_close(ours, theirs, units=None):
    assert ours.dtype == theirs.dtype
    assert distance(ours, theirs) <= (UNITS[theirs.dtype] if units is None else units)


def draw(*shape, seed=0, dtype=torch.float64, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device, dtype)


def needs(device, dtype):
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("mps has no float64")


def with_gradients(function, *tensors):
    """The function's value, and the gradients of ⟨value, a fixed tensor⟩."""
    leaves = [x.detach().clone().requires_grad_() for x in tensors]
    out = function(*leaves)
    out.backward(draw(*out.shape, seed=99, dtype=out.dtype, device=out.device))
    return [out.detach(), *(x.grad for x in leaves)]


def by_hand(q, k, v, allowed=lambda t, s: True, scale=None):
    """One head, with lists and loops: the definition."""
    scale = 1 / math.sqrt(len(q[0])) if scale is None else scale
    rows = []
    for t, query in enumerate(q):
        keys = [s for s in range(len(k)) if allowed(t, s)]
        powers = {s: math.exp(scale * sum(a * b for a, b in zip(query, k[s], strict=True))) for s in keys}
        rows.append([sum(powers[s] / sum(powers.values()) * v[s][j] for s in keys) for j in range(len(v[0]))])
    return torch.tensor(rows, dtype=torch.float64)


# --- the function ---


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_equals_the_definition_by_hand(causal, scale):
    q, k, v = draw(3, 4, seed=1), draw(3, 4, seed=2), draw(3, 5, seed=3)
    expected = by_hand(q.tolist(), k.tolist(), v.tolist(), lambda t, s: s <= t or not causal, scale)
    assert_close(A.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=scale), expected)


def test_three_words_with_exact_weights():
    # scores 0, ln 2 and ln 5: weights 1/8, 2/8 and 5/8
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


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16], ids=str)
@pytest.mark.parametrize("kv_heads", [6, 3, 2, 1])
@pytest.mark.parametrize("case", CASES)
def test_equals_torchs_function_forward_and_backward(device, dtype, kv_heads, case):
    needs(device, dtype)
    kept = {"dtype": dtype, "device": device}
    q, k, v = draw(2, 6, 5, 8, seed=1, **kept), draw(2, kv_heads, 5, 8, seed=2, **kept), draw(2, kv_heads, 5, 7, **kept)
    options = dict(CASES[case])
    mask = options.pop("mask", None)
    if mask == "boolean":
        mask = draw(2, 1, 5, 5, seed=4, device=device, dtype=torch.float32) < 0.5
        mask[..., 0] = True  # rows that are masked whole are another test's subject
    elif mask == "float":
        mask = draw(6, 5, 5, seed=4, **kept)
        mask[0, 1, 2] = -INF

    def theirs(q, k, v):
        if kv_heads < 6 and device.type != "cpu":  # not every kernel knows groups
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
    # scores in the hundreds: a score rounded to bfloat16 would be off by one, a weight by a factor of e
    q, k, v = (draw(4, 16, 64, seed=s, dtype=dtype, device=device) * (8 if s else 1) for s in (1, 2, 0))
    out = A.scaled_dot_product_attention(q, k, v)
    exact = A.scaled_dot_product_attention(*(x.cpu().double() for x in (q, k, v)))
    assert (q @ k.mT / 8).abs().max() > 100
    assert out.dtype == dtype
    assert (out.cpu().double() - exact).abs().max() <= torch.finfo(dtype).eps * exact.abs().max()


@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16], ids=str)
def test_weights_are_at_least_float32(device, dtype):
    needs(device, dtype)
    x = draw(2, 4, 8, dtype=dtype, device=device)
    out, weights = A.scaled_dot_product_attention(x, x, x, return_weights=True)
    assert out.dtype == dtype
    assert weights.dtype == A.attention_weights(x, x).dtype == (dtype if dtype == torch.float64 else torch.float32)


def test_float16_scores_do_not_overflow():
    x = torch.full((2, 64), 60.0, dtype=torch.float16)  # q·k = 230400, beyond 65504
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


# --- masks ---


def test_causal_mask_of_queries_and_as_many_keys():
    assert A.causal_mask(3).tolist() == [[True, False, False], [True, True, False], [True, True, True]]


@given(lengths, lengths)
def test_causal_mask_lets_see_what_came_before(q_len, cached):
    mask = A.causal_mask(q_len, q_len + cached)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[s <= t + cached for s in range(q_len + cached)] for t in range(q_len)]


@given(seeds, st.integers(2, 9), st.data())
def test_queries_after_cached_keys_are_the_last_rows_of_the_whole(seed, seq_len, data):
    new = data.draw(st.integers(1, seq_len))
    q, k, v = (draw(2, seq_len, 4, seed=seed + s) for s in range(3))
    whole = A.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert_close(A.scaled_dot_product_attention(q[:, -new:], k, v, is_causal=True), whole[:, -new:])


def test_causal_with_more_keys_is_torchs_lower_right_mask_and_not_its_is_causal(device):
    q, k = (draw(1, 2, n, 8, seed=n, dtype=torch.float32, device=device) for n in (3, 5))
    ours = A.scaled_dot_product_attention(q, k, k, is_causal=True)
    assert A.causal_mask(3, 5, device=device).device.type == device.type
    assert_close(ours, F.scaled_dot_product_attention(q, k, k, attn_mask=causal_lower_right(3, 5)))
    assert distance(ours, F.scaled_dot_product_attention(q, k, k, is_causal=True)) > 1e4


@pytest.mark.parametrize("kind", ["boolean", "float"])
def test_a_mask_and_the_causal_mask_apply_together(kind):
    x = draw(2, 2, 4, 8)
    allowed = A.padding_mask([4, 2], 4)
    both = allowed & A.causal_mask(4)
    mask = allowed if kind == "boolean" else torch.where(allowed, 0.5, -INF)
    ours = A.scaled_dot_product_attention(x, x, x, mask, is_causal=True)
    assert_close(ours, A.scaled_dot_product_attention(x, x, x, both))
    assert ((A.attention_weights(x, x, mask, is_causal=True) > 0) == both).all()


def test_a_float_mask_is_added_after_scaling():
    q, k, bias = draw(3, 16, seed=1), draw(4, 16, seed=2), draw(3, 4, seed=3)
    powers = ((q @ k.T) / 4 + bias).exp()
    assert_close(A.attention_weights(q, k, bias), powers / powers.sum(-1, keepdim=True))
    assert_close(A.attention_weights(q, k, bias, scale=0.0), bias.softmax(-1))
    assert_close(A.attention_weights(q, k, bias.float(), scale=0.0), bias.float().double().softmax(-1))


def test_padding_mask():
    mask = A.padding_mask([0, 2, 3], 3)
    assert mask.shape == (3, 1, 1, 3)
    assert mask.dtype == torch.bool
    assert mask[:, 0, 0].tolist() == [[False, False, False], [True, True, False], [True, True, True]]
    assert torch.equal(A.padding_mask(torch.tensor([0, 2, 3]), 3), mask)
    assert torch.equal(A.padding_mask((0, 2, 3), 3), mask)


@given(seeds, lengths, st.integers(0, 4))
def test_padding_changes_nothing(device, seed, length, padding):
    kept = {"dtype": torch.float32, "device": device}
    q, k, v = (draw(1, 2, length + padding, 4, seed=seed + s, **kept) for s in range(3))
    mask = A.padding_mask([length], length + padding, device=device)
    out = A.scaled_dot_product_attention(q, k, v, mask)
    assert mask.device == q.device
    assert_close(out, A.scaled_dot_product_attention(q, k[..., :length, :], v[..., :length, :]))
    k[..., length:, :] = 1e6
    v[..., length:, :] = -1e6
    assert_close(A.scaled_dot_product_attention(q, k, v, mask), out, 0)


@pytest.mark.parametrize("kind", ["boolean", "float", "both"])
@pytest.mark.parametrize("dtype", [*DTYPES, torch.float16], ids=str)
def test_a_row_masked_whole_gives_zeros_and_no_gradient(device, dtype, kind):
    needs(device, dtype)
    x = draw(1, 1, 3, 4, dtype=dtype, device=device)
    allowed = torch.ones(3, 3, dtype=torch.bool, device=device).tril(-1)  # the first query sees nothing
    mask = allowed if kind == "boolean" else torch.zeros(3, 3, dtype=dtype, device=device).masked_fill(~allowed, -INF)
    is_causal = kind == "both"

    def ours(q, k, v):
        return A.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)

    out, dq, dk, dv = with_gradients(ours, x, x, x)
    torchs = with_gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=allowed), x, x, x)
    assert (out[..., 0, :] == 0).all()
    assert (dq[..., 0, :] == 0).all()
    assert (dk[..., 2, :] == 0).all()  # the last key is seen by no one
    assert (dv[..., 2, :] == 0).all()
    assert A.attention_weights(x, x, mask, is_causal=is_causal)[0, 0, 0].tolist() == [0, 0, 0]
    for got, expected in zip((out, dq, dk, dv), torchs, strict=True):
        assert_close(got, expected)  # torch gives zeros, too


FILLS = {"-inf": -INF, "-1e9": -1e9, "-e^9": -math.exp(9)}


@pytest.mark.parametrize("form", ["replace", "add"])
@pytest.mark.parametrize(
    "dtype, fill",
    [
        (dtype, fill)
        for dtype in (torch.float32, *HALVES)
        for fill in FILLS
        if (dtype, fill) != (torch.float16, "-1e9")  # float16 has no −1e9: see below
    ],
    ids=str,
)
def test_every_fill_masks_a_key_beside_others(device, dtype, fill, form):
    scores = draw(5, 5, dtype=dtype, device=device)
    mask = A.causal_mask(5, device=device)
    filled = A.masked_scores(scores, mask, FILLS[fill], form=form)
    assert filled.dtype == dtype
    assert torch.equal(filled[mask], scores[mask])
    weights = filled.softmax(-1)
    assert (weights[~mask] == 0).all()
    assert_close(weights, scores.masked_fill(~mask, -INF).softmax(-1), 0)


def test_minus_1e9_overflows_float16():
    scores, mask = torch.zeros(2, dtype=torch.float16), torch.tensor([True, False])
    assert torch.tensor(-1e9).half().item() == -INF
    for fill in (-1e9, -65505.0, 65505.0):
        message = f"fill must be a finite number >= -65504.0 and <= 65504.0, got {fill}"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            A.masked_scores(scores, mask, fill)
    assert A.masked_scores(scores, mask, -65504.0).tolist() == [0, -65504]
    assert A.masked_scores(scores, mask, -math.exp(9))[1].item() == -8104  # float16 counts in steps of 4 up there


@pytest.mark.parametrize("dtype", [torch.float32, *HALVES], ids=str)
def test_what_a_row_masked_whole_becomes(device, dtype):
    scores = torch.tensor([[0.0, 1.0, 2.0]], dtype=dtype, device=device)
    nothing = torch.zeros(1, 3, dtype=torch.bool, device=device)
    uniform = torch.full_like(scores, 1 / 3)

    def weights(fill, form):
        return A.masked_scores(scores, nothing, fill, form=form).softmax(-1)

    assert weights(-INF, "replace").isnan().all()
    assert weights(-INF, "add").isnan().all()
    # a number written over every score: all keys alike, the masked ones
    assert torch.equal(weights(-math.exp(9), "replace"), uniform)
    if dtype == torch.float32:
        # added, −e⁹ is too small to drown the scores: as if there were no mask at all
        assert distance(weights(-math.exp(9), "add"), scores.softmax(-1)) < 1e4
    else:
        assert not torch.equal(weights(-math.exp(9), "add"), scores.softmax(-1))
    if dtype != torch.float16:
        assert torch.equal(weights(-1e9, "replace"), uniform)
        assert torch.equal(weights(-1e9, "add"), uniform)


def test_minus_e_to_the_9_is_not_far_enough_below_every_score():
    scores, mask = torch.tensor([-9000.0, 0.0]), torch.tensor([True, False])
    assert math.isclose(-math.exp(9), -8103.0839, abs_tol=1e-4)
    assert A.masked_scores(scores, mask, -math.exp(9)).softmax(-1).tolist() == [0, 1]  # the masked key takes it all
    assert A.masked_scores(scores, mask, -1e9).softmax(-1).tolist() == [1, 0]
    assert A.masked_scores(scores, mask, -INF).softmax(-1).tolist() == [1, 0]


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
    assert (causal_output(earlier) - out).abs().max() < 1e-13  # the order of those before does not matter …
    assert (causal_output(later) - out).abs().max() < 1e-13  # … nor what comes after …
    assert (causal_output(swapped) - out).abs().max() > 1e-9  # … but which words they are does


# --- why √d ---


@pytest.mark.parametrize("dim", [1, 2, 64, 512])
def test_the_variance_of_a_score_is_the_dimension(dim):
    samples = 20_000
    measured = A.score_variance(dim, samples, torch.Generator().manual_seed(0))
    deviation = dim * math.sqrt((2 + 6 / dim) / samples)
    assert abs(measured - dim) < 4 * deviation
    assert abs(measured - dim) > deviation / 100


def test_the_variance_is_that_of_the_products_drawn():
    q, k = torch.randn(2, 50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).tolist()
    products = [sum(a * b for a, b in zip(x, y, strict=True)) for x, y in zip(q, k, strict=True)]
    mean = sum(products) / 50
    expected = sum((s - mean) ** 2 for s in products) / 49
    measured = A.score_variance(3, 50, torch.Generator().manual_seed(5))
    assert isinstance(measured, float)
    assert math.isclose(measured, expected, rel_tol=1e-12)
    torch.manual_seed(5)
    assert math.isclose(A.score_variance(3, 50), expected, rel_tol=1e-12)  # the global generator, of the same seed
    default, stated = (A.score_variance(3, *n, generator=torch.Generator().manual_seed(5)) for n in ([], [10_000]))
    assert default == stated


def test_the_spread_of_the_measured_variance_is_as_stated():
    dim, samples = 3, 400
    generator = torch.Generator().manual_seed(1)
    measured = torch.tensor([A.score_variance(dim, samples, generator) for _ in range(400)])
    assert math.isclose(measured.std().item(), dim * math.sqrt((2 + 6 / dim) / samples), rel_tol=0.1)


def test_the_scale_keeps_the_scores_at_variance_one():
    dim, keys = 512, 16
    q, k = draw(200, dim, seed=1), draw(keys, dim, seed=2)
    with_scale, without = A.attention_weights(q, k), A.attention_weights(q, k, scale=1.0)
    assert 0.8 < with_scale.log().var(-1).mean() < 1.2  # log-softmax shifts each row, no more
    assert 0.8 < without.clamp(min=1e-300).log().var(-1).mean() / dim < 1.2


@pytest.mark.parametrize("dim", [1, 2, 8])
def test_score_rows_have_the_moments_of_dot_products(dim):
    # of d products x·y: E s² = d, E s⁴ = 3d(d + 2); two keys of one query: E s²t² = d(d + 2)
    s, t = A.score_rows(dim, 2, 400_000, torch.Generator().manual_seed(0)).T
    expected = ((s * s, dim), (t**4, 3 * dim * (dim + 2)), ((s * t) ** 2, dim * (dim + 2)), (s, 0), (s * t, 0))
    for moment, value in expected:
        assert abs(moment.mean() - value) < 5 * moment.std() / len(s) ** 0.5


def test_score_rows_come_from_the_generator():
    first, again, other = (A.score_rows(4, 3, 5, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert A.score_rows(4, 3).shape == (1000, 3)


# Medians over 2000 rows of Gaussian scores, of another program: keys, dimension, without the scale, with it.
MEDIANS = [(16, 64, 0.11, 0.30), (64, 64, 0.195, 0.179), (256, 64, 0.27, 0.097), (1024, 64, 0.28, 0.050)]
MEDIANS += [(1024, 128, 0.18, 0.050), (4096, 512, 0.031, 0.026)]


@pytest.mark.parametrize(("keys", "dim", "without", "with_scale"), MEDIANS)
def test_without_the_scale_a_row_of_many_keys_keeps_its_gradient(keys, dim, without, with_scale):
    scores = A.score_rows(dim, keys, 2000, torch.Generator().manual_seed(1))
    spread = math.sqrt(dim / (2 * math.log(keys)))  # of the gap, and so of the gradient's logarithm
    noise = 3 * math.sqrt(2 / 2000) * spread  # three standard errors of a difference of two such medians
    for scale, expected, allowed in ((1, without, noise), (dim**-0.5, with_scale, 0.03)):
        median = A.softmax_gradient_norm((scores * scale).softmax(-1)).median().item()
        assert median == pytest.approx(expected, rel=allowed)


@given(seeds, st.integers(1, 6))
def test_softmax_jacobian_is_autograds(seed, n):
    z = draw(2, 3, n, seed=seed) * 3
    ours = A.softmax_jacobian(z.softmax(-1))
    assert ours.shape == (2, 3, n, n)
    for i, j in itertools.product(range(2), range(3)):
        theirs = torch.autograd.functional.jacobian(lambda z: z.softmax(-1), z[i, j])
        assert (ours[i, j] - theirs).abs().max() < 1e-14
    assert_close(A.softmax_gradient_norm(z.softmax(-1)), ours.square().sum((-2, -1)).sqrt())


def test_softmax_jacobian_in_fractions():
    p = torch.tensor([1 / 8, 2 / 8, 5 / 8], dtype=torch.float64)
    expected = torch.tensor([[7.0, -2, -5], [-2, 12, -10], [-5, -10, 15]], dtype=torch.float64) / 64
    assert_close(A.softmax_jacobian(p), expected)
    assert_close(A.softmax_gradient_norm(p), expected.square().sum().sqrt())
    assert A.softmax_jacobian(p.float()).dtype == torch.float32


@pytest.mark.parametrize("epsilon", [1e-3, 1e-9, 1e-15, 1e-30])
def test_softmax_jacobian_keeps_its_digits_near_one_hot(epsilon):
    p = torch.tensor([1 - epsilon, epsilon], dtype=torch.float64)
    size = (1 - epsilon) * epsilon
    expected = size * torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    assert_close(A.softmax_jacobian(p), expected, 2)
    assert_close(A.softmax_gradient_norm(p), torch.tensor(2 * size, dtype=torch.float64), 4)


def test_softmax_gradient_norm_of_a_long_row_needs_no_matrix():
    p = (3 * draw(2, 200_000)).softmax(-1)
    second, third = p.square().sum(-1), p.pow(3).sum(-1)
    assert_close(A.softmax_gradient_norm(p), (second - 2 * third + second.square()).sqrt(), 100)


def test_one_hot_lets_no_gradient_through():
    assert A.softmax_gradient_norm(torch.tensor([0.0, 1.0, 0.0])) == 0


@given(seeds, st.integers(1, 8), st.floats(0.1, 30))
def test_softmax_gradient_norm_is_bounded(seed, n, sharpness):
    p = (draw(n, seed=seed) * sharpness).softmax(-1)
    s = p.square().sum()
    norm = A.softmax_gradient_norm(p)
    assert norm <= torch.sqrt(s * (1 - s).clamp(min=0)) + 1e-7
    assert norm <= 0.5


# --- cost ---


@pytest.mark.parametrize(
    "seq_len, head_dim, heads, kv_heads", [(7, 4, 6, None), (7, 4, 6, 2), (16, 8, 3, 1), (1, 1, 1, 1)]
)
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
    """torch's layer with no bias left at zero, where an error in copying it would not show."""
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


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("case", ["plain", "causal", "padding", "both", "float"])
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


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("case", ["plain", "causal", "boolean", "float", "boolean and causal", "nothing"])
def test_the_fused_layer_gives_the_same(device, dtype, kv_heads, case):
    needs(device, dtype)
    plain = A.MultiHeadAttention(16, 4, kv_heads, device=device, dtype=dtype)
    fused = A.MultiHeadAttention(16, 4, kv_heads, fused=True, device=device, dtype=dtype)
    fused.load_state_dict(plain.state_dict())
    x = draw(2, 6, 16, dtype=dtype, device=device)
    masks = {
        "boolean": A.padding_mask([6, 2], 6, device=device),
        "float": draw(4, 6, 6, dtype=dtype, device=device),
        "nothing": A.padding_mask([6, 0], 6, device=device),  # no key for any query of the second sequence
    }
    options = {"mask": masks.get(case.split()[0]), "is_causal": "causal" in case}
    units = LAYER_UNITS[dtype]
    out, dx, grads = layer_gradients(plain, lambda x: plain(x, **options), x)
    fused_out, fused_dx, fused_grads = layer_gradients(fused, lambda x: fused(x, **options), x)
    assert_close(fused_out, out, units)
    assert_close(fused_dx, dx, units)
    for name, grad in grads.items():
        if name != "k_proj.bias":  # zero but for rounding: a constant added to every key shifts all scores alike
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


# --- bad input ---

X = torch.zeros(2, 4, 5, 8)
LAYER = A.MultiHeadAttention(8, 2)
MHA = nn.MultiheadAttention
BAD = [
    # call, error, message
    (lambda: A.attention_weights([1.0], X), TypeError, "q must be a floating-point tensor, got list"),
    (lambda: A.attention_weights(X.int(), X), TypeError, "q must be a floating-point tensor, got dtype torch.int32"),
    (lambda: A.attention_weights(X, None), TypeError, "k must be a floating-point tensor, got NoneType"),
    (lambda: A.attention_weights(X, X.double()), TypeError, "k must have q's dtype, torch.float32, got torch.float64"),
    (lambda: A.attention_weights(X, X.to("meta")), ValueError, "k must be on q's device, cpu, got meta"),
    (
        lambda: A.attention_weights(X[0, 0, 0], X),
        ValueError,
        "q must be (…, heads, seq, head_dim) or (seq, head_dim), got (8,)",
    ),
    (
        lambda: A.attention_weights(X[..., :0], X[..., :0]),
        ValueError,
        "q must be (…, heads, seq, head_dim) or (seq, head_dim), got (2, 4, 5, 0)",
    ),
    (
        lambda: A.attention_weights(X, X[0]),
        ValueError,
        "k must have q's shape but for heads and length, q's being (2, 4, 5, 8), got (4, 5, 8)",
    ),
    (
        lambda: A.attention_weights(X, X[..., :7]),
        ValueError,
        "k must have q's shape but for heads and length, q's being (2, 4, 5, 8), got (2, 4, 5, 7)",
    ),
    (
        lambda: A.attention_weights(X, X[:1]),
        ValueError,
        "k must have q's shape but for heads and length, q's being (2, 4, 5, 8), got (1, 4, 5, 8)",
    ),
    (
        lambda: A.attention_weights(X, X[:, :3]),
        ValueError,
        "k must have a number of heads that divides q's, 4, got 3",
    ),
    (
        lambda: A.attention_weights(X, X[:, :0]),
        ValueError,
        "k must have a number of heads that divides q's, 4, got 0",
    ),
    (lambda: A.attention_weights(X, X, scale=math.nan), ValueError, "scale must be a finite number, got nan"),
    (
        lambda: A.attention_weights(X, X, X.int()),
        TypeError,
        "mask must be a tensor, boolean (True = may attend) or floating point (added), got dtype torch.int32",
    ),
    (
        lambda: A.attention_weights(X, X, [[True]]),
        TypeError,
        "mask must be a tensor, boolean (True = may attend) or floating point (added), got list",
    ),
    (
        lambda: A.attention_weights(X, X, X.bool()),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 4, 5, 5), got (2, 4, 5, 8)",
    ),
    (
        lambda: A.attention_weights(X, X, X.new_ones(1, 2, 4, 5, 5)),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 4, 5, 5), got (1, 2, 4, 5, 5)",
    ),
    (
        lambda: A.attention_weights(X, X, X.bool().to("meta")),
        ValueError,
        "mask must be on the scores' device, cpu, got meta",
    ),
    (
        lambda: A.attention_weights(X, X[..., :3, :], is_causal=True),
        ValueError,
        "k_len must be an integer >= 5, got 3",
    ),
    (
        lambda: A.scaled_dot_product_attention(X, X, "v"),
        TypeError,
        "v must be a floating-point tensor, got str",
    ),
    (
        lambda: A.scaled_dot_product_attention(X, X, X.half()),
        TypeError,
        "v must have q's dtype, torch.float32, got torch.float16",
    ),
    (
        lambda: A.scaled_dot_product_attention(X, X, X[..., :4, :]),
        ValueError,
        "v must have k's shape but for the last axis, (2, 4, 5, 8), got (2, 4, 4, 8)",
    ),
    (lambda: A.scaled_dot_product_attention(X, X.half(), X), TypeError, "k must have q's dtype"),
    (lambda: A.causal_mask(0), ValueError, "q_len must be an integer >= 1, got 0"),
    (lambda: A.causal_mask(2.0), TypeError, "q_len must be an integer >= 1, got 2.0"),
    (lambda: A.causal_mask(3, 2), ValueError, "k_len must be an integer >= 3, got 2"),
    (lambda: A.padding_mask([1], 0), ValueError, "max_len must be an integer >= 1, got 0"),
    (lambda: A.padding_mask([1, 4], 3), ValueError, "lengths[1] must be an integer >= 0 and <= 3, got 4"),
    (lambda: A.padding_mask([-1], 3), ValueError, "lengths[0] must be an integer >= 0 and <= 3, got -1"),
    (lambda: A.padding_mask([1.5], 3), TypeError, "lengths[0] must be an integer >= 0 and <= 3, got 1.5"),
    (lambda: A.padding_mask(2, 3), TypeError, "lengths must be a sequence of integers, got 2"),
    (lambda: A.padding_mask("12", 3), TypeError, "lengths must be a sequence of integers, got '12'"),
    (lambda: A.padding_mask(torch.tensor(2), 3), TypeError, "lengths must be a sequence of integers, got tensor(2)"),
    (lambda: A.masked_scores(1.0, X, -1.0), TypeError, "scores must be a floating-point tensor, got float"),
    (
        lambda: A.whole_mask(torch.ones(3, 3), True, (2, 4, 5, 5), X.device),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 4, 5, 5), got (3, 3)",
    ),
    (lambda: A.masked_scores(X, X, -1.0), TypeError, "mask must be a boolean tensor, got dtype torch.float32"),
    (
        lambda: A.masked_scores(X, X[..., :3].bool(), -1.0),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 4, 5, 8), got (2, 4, 5, 3)",
    ),
    (lambda: A.masked_scores(X, X.bool(), math.inf), ValueError, "fill must be a finite number >= "),
    (lambda: A.masked_scores(X, X.bool(), "low"), TypeError, "fill must be a finite number >= "),
    (
        lambda: A.masked_scores(X, X.bool(), 0.0, form="write"),
        ValueError,
        "form must be one of 'replace', 'add', got 'write'",
    ),
    (lambda: A.score_variance(0), ValueError, "dim must be an integer >= 1, got 0"),
    (lambda: A.score_variance(2, 1), ValueError, "samples must be an integer >= 2, got 1"),
    (
        lambda: A.score_variance(2, 9, 7),
        TypeError,
        "generator must be a torch.Generator on the CPU or None, got 7",
    ),
    (lambda: A.score_rows(0, 1), ValueError, "dim must be an integer >= 1, got 0"),
    (lambda: A.score_rows(1, 0), ValueError, "n_keys must be an integer >= 1, got 0"),
    (lambda: A.score_rows(1, 1, 0), ValueError, "rows must be an integer >= 1, got 0"),
    (
        lambda: A.score_rows(1, 1, 1, 7),
        TypeError,
        "generator must be a torch.Generator on the CPU or None, got 7",
    ),
    (lambda: A.softmax_jacobian(None), TypeError, "p must be a floating-point tensor, got NoneType"),
    (lambda: A.softmax_jacobian(X.half()), TypeError, "p must be float32 or float64, got torch.float16"),
    (lambda: A.softmax_jacobian(X), ValueError, "p must be probabilities, >= 0 and summing to 1 along the last axis"),
    (
        lambda: A.softmax_gradient_norm(torch.tensor([1.5, -0.5])),
        ValueError,
        "p must be probabilities, >= 0 and summing to 1 along the last axis, got tensor([ 1.5000, -0.5000])",
    ),
    (lambda: A.softmax_jacobian(torch.tensor(1.0)), ValueError, "p must be (…, n) with n >= 1, got ()"),
    (lambda: A.softmax_jacobian(torch.zeros(2, 0)), ValueError, "p must be (…, n) with n >= 1, got (2, 0)"),
    (lambda: A.attention_cost(0, 1, 1), ValueError, "seq_len must be an integer >= 1, got 0"),
    (lambda: A.attention_cost(1, 0, 1), ValueError, "head_dim must be an integer >= 1, got 0"),
    (lambda: A.attention_cost(1, 1, 0), ValueError, "n_heads must be an integer >= 1, got 0"),
    (lambda: A.attention_cost(1, 1, 1, 0), ValueError, "n_kv_heads must be an integer >= 1, got 0"),
    (lambda: A.attention_cost(1, 1, 4, 3), ValueError, "n_kv_heads must divide n_heads = 4, got 3"),
    (lambda: A.attention_cost(1, 1, 1, 1, 0), ValueError, "bytes_per_element must be an integer >= 1, got 0"),
    (lambda: A.split_heads(None, 1), TypeError, "x must be a floating-point tensor, got NoneType"),
    (lambda: A.split_heads(X, 0), ValueError, "n_heads must be an integer >= 1, got 0"),
    (
        lambda: A.split_heads(X, 3),
        ValueError,
        "x must be (…, seq, n_heads · head_dim) with n_heads = 3, got (2, 4, 5, 8)",
    ),
    (
        lambda: A.split_heads(X[0, 0, 0], 2),
        ValueError,
        "x must be (…, seq, n_heads · head_dim) with n_heads = 2, got (8,)",
    ),
    (lambda: A.merge_heads(None), TypeError, "x must be a floating-point tensor, got NoneType"),
    (lambda: A.merge_heads(X[0, 0]), ValueError, "x must be (…, n_heads, seq, head_dim), got (5, 8)"),
    (lambda: A.repeat_heads(None, 1), TypeError, "x must be a floating-point tensor, got NoneType"),
    (lambda: A.repeat_heads(X, 0), ValueError, "n_heads must be an integer >= 1, got 0"),
    (lambda: A.repeat_heads(X, 6), ValueError, "n_heads must be a multiple of x's number of heads, 4, got 6"),
    (lambda: A.repeat_heads(X[:, :0], 6), ValueError, "n_heads must be a multiple of x's number of heads, 0, got 6"),
    (lambda: A.repeat_heads(X[0, 0], 6), ValueError, "x must be (…, heads, seq, head_dim), got (5, 8)"),
    (lambda: A.MultiHeadAttention(0, 1), ValueError, "dim must be an integer >= 1, got 0"),
    (lambda: A.MultiHeadAttention(8, 3), ValueError, "dim must be a multiple of n_heads = 3, got 8"),
    (lambda: A.MultiHeadAttention(8, 3, head_dim=0), ValueError, "head_dim must be an integer >= 1, got 0"),
    (lambda: A.MultiHeadAttention(8, 4, 3), ValueError, "n_kv_heads must divide n_heads = 4, got 3"),
    (lambda: LAYER(None), TypeError, "x must be a floating-point tensor, got NoneType"),
    (lambda: LAYER(X), ValueError, "x must be (batch, seq, 8), got (2, 4, 5, 8)"),
    (lambda: LAYER(X[0, :, :, :7]), ValueError, "x must be (batch, seq, 8), got (4, 5, 7)"),
    (
        lambda: A.MultiHeadAttention(8, 2, fused=True)(X[0], return_weights=True),
        ValueError,
        "return_weights must be False with fused=True, which never has the weights, got True",
    ),
    (
        lambda: A.MultiHeadAttention(8, 2, fused=True)(X[0], X.bool()),
        ValueError,
        "mask must broadcast to the scores' shape, (4, 2, 5, 5), got (2, 4, 5, 8)",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(LAYER),
        TypeError,
        "other must be a torch.nn.MultiheadAttention, got MultiHeadAttention",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(MHA(8, 2, kdim=6, vdim=7)),
        ValueError,
        "other must have kdim, vdim and embed_dim equal, got 6, 7 and 8",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(MHA(8, 2, dropout=0.5)),
        ValueError,
        "other must have dropout=0, add_bias_kv=False and add_zero_attn=False, got 0.5, False and False",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(MHA(8, 2, add_bias_kv=True)),
        ValueError,
        "other must have dropout=0, add_bias_kv=False and add_zero_attn=False, got 0.0, True and False",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(MHA(8, 2, add_zero_attn=True)),
        ValueError,
        "other must have dropout=0, add_bias_kv=False and add_zero_attn=False, got 0.0, False and True",
    ),
]


@pytest.mark.parametrize("call, error, message", BAD, ids=[message[:60] for _, _, message in BAD])
def test_bad_input(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        call()


def test_a_generator_on_another_device_is_refused(device):
    if device.type == "cpu":
        pytest.skip("needs a device beside the CPU")
    message = "generator must be a torch.Generator on the CPU or None, got"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        A.score_variance(2, 9, torch.Generator(device))


def test_every_public_function_has_bad_input_above():
    tested = {name for call, _, _ in BAD for name in call.__code__.co_names}
    assert public(A) - tested == {"AttentionCost"}  # a record, made by attention_cost
