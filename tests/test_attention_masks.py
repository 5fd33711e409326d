"""Tests of masks: causal masks, padding, fully masked rows, and masks with large negative numbers instead of −∞."""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right

from ropebook import attention as A
from tests.attention_helpers import DTYPES, HALVES, INF, assert_close, distance, draw, lengths, needs, with_gradients
from tests.helpers import seeds
from tests.together import together


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


@together("kind", ["boolean", "float", "both"])
@together("dtype", [*DTYPES, torch.float16], ids=str)
def test_a_row_masked_whole_gives_zeros_and_no_gradient(device, dtype, kind):
    needs(device, dtype)
    x = draw(1, 1, 3, 4, dtype=dtype, device=device)
    allowed = torch.ones(3, 3, dtype=torch.bool, device=device).tril(-1)  # the first query may not attend to any key
    mask = allowed if kind == "boolean" else torch.zeros(3, 3, dtype=dtype, device=device).masked_fill(~allowed, -INF)
    is_causal = kind == "both"

    def ours(q, k, v):
        return A.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)

    out, dq, dk, dv = with_gradients(ours, x, x, x)
    torchs = with_gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=allowed), x, x, x)
    assert (out[..., 0, :] == 0).all()
    assert (dq[..., 0, :] == 0).all()
    assert (dk[..., 2, :] == 0).all()  # no query attends to the last key
    assert (dv[..., 2, :] == 0).all()
    assert A.attention_weights(x, x, mask, is_causal=is_causal)[0, 0, 0].tolist() == [0, 0, 0]
    for got, expected in zip((out, dq, dk, dv), torchs, strict=True):
        assert_close(got, expected)  # torch returns zeros as well


FILLS = {"-inf": -INF, "-1e9": -1e9, "-e^9": -math.exp(9)}


@together("form", ["replace", "add"])
@together(
    "dtype, fill",
    [
        (dtype, fill)
        for dtype in (torch.float32, *HALVES)
        for fill in FILLS
        if (dtype, fill) != (torch.float16, "-1e9")  # float16 can't represent −1e9; the next test covers that case
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
    # in this range, float16 represents only every fourth integer
    assert A.masked_scores(scores, mask, -math.exp(9))[1].item() == -8104


@together("dtype", [torch.float32, *HALVES], ids=str)
def test_what_a_row_masked_whole_becomes(device, dtype):
    scores = torch.tensor([[0.0, 1.0, 2.0]], dtype=dtype, device=device)
    nothing = torch.zeros(1, 3, dtype=torch.bool, device=device)
    uniform = torch.full_like(scores, 1 / 3)

    def weights(fill, form):
        return A.masked_scores(scores, nothing, fill, form=form).softmax(-1)

    assert weights(-INF, "replace").isnan().all()
    assert weights(-INF, "add").isnan().all()
    # replacing every score by the same fill value makes all keys equal, whether or not they are masked
    assert torch.equal(weights(-math.exp(9), "replace"), uniform)
    if dtype == torch.float32:
        # adding −e⁹ to every score in the row preserves the differences between them, so the mask has no effect at all
        assert distance(weights(-math.exp(9), "add"), scores.softmax(-1)) < 1e4
    else:
        assert not torch.equal(weights(-math.exp(9), "add"), scores.softmax(-1))
    if dtype != torch.float16:
        assert torch.equal(weights(-1e9, "replace"), uniform)
        assert torch.equal(weights(-1e9, "add"), uniform)


def test_minus_e_to_the_9_is_not_far_enough_below_every_score():
    scores, mask = torch.tensor([-9000.0, 0.0]), torch.tensor([True, False])
    assert math.isclose(-math.exp(9), -8103.0839, abs_tol=1e-4)
    # the masked key gets all the weight
    assert A.masked_scores(scores, mask, -math.exp(9)).softmax(-1).tolist() == [0, 1]
    assert A.masked_scores(scores, mask, -1e9).softmax(-1).tolist() == [1, 0]
    assert A.masked_scores(scores, mask, -INF).softmax(-1).tolist() == [1, 0]


@together("dtype", [torch.float32, *HALVES], ids=str)
@together("form", ["replace", "add"])
def test_a_hidden_row_is_that_of_masked_scores(dtype, form):
    scores = torch.tensor([1.0, 2.0, 3.0], dtype=dtype)
    for fill in (-INF, -8103.0, -60000.0):
        by_hand = scores + fill if form == "add" else torch.full_like(scores, fill)
        row = A.hidden_row(fill, dtype, form=form)
        assert torch.equal(row.isnan(), by_hand.softmax(-1).isnan())
        assert torch.equal(row.nan_to_num(), by_hand.softmax(-1).nan_to_num())


def test_no_hidden_row_where_the_type_has_no_such_number():
    assert A.hidden_row(-1e9, torch.float16) is None
    assert A.hidden_row(-65504.0, torch.float16) is not None
    assert A.hidden_row(-1e9, torch.bfloat16) is not None


@together("dtype", [torch.float64, torch.float32, *HALVES], ids=str)
@together("x", [1.0, 3.0, -8103.0, 60000.0, 0.01])
def test_spacing_is_the_step_to_the_next_number(dtype, x):
    here = torch.tensor(abs(x), dtype=dtype)
    there = torch.nextafter(here, torch.tensor(math.inf, dtype=dtype))
    assert A.spacing(here.item(), dtype) == there.double().item() - here.double().item()
