"""Tests of biases that depend on the distance, compared with transformers and with results worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention, T5Config

from ropebook import relatives as R
from tests.helpers import largest
from tests.together import together

PLACES = torch.arange(9)


@together("n_heads", [1, 2, 3, 5, 8, 12, 16, 71])
def test_alibi_is_that_of_bloom_for_any_number_of_heads(n_heads):
    """Bloom's bias is the slope times the key's position. The query's position would only shift a whole row of scores,
    and softmax ignores such a shift."""
    by_key = build_alibi_tensor(torch.ones(1, 9), n_heads, torch.float32)[:, 0]
    expected = by_key[:, None, :] - by_key[:, :, None]
    seen = torch.ones(9, 9).tril().bool()
    for signed in (False, True):
        found = R.ALiBi(n_heads, signed=signed).bias(PLACES, PLACES)
        assert largest((found - expected).masked_fill(~seen, 0)) < 1e-6
    assert largest(found - expected) < 1e-6


def test_alibi_of_twelve_heads_by_hand():
    eight = [2.0**-h for h in range(1, 9)]
    assert R.alibi_slopes(12).tolist() == pytest.approx([*eight, *(2 ** -(h + 0.5) for h in range(4))])


def test_alibi_without_a_sign_is_the_same_on_both_sides_and_with_one_is_not():
    both, signed = (R.ALiBi(2, signed=signed).bias(PLACES, PLACES) for signed in (False, True))
    assert torch.equal(both, both.mT)
    assert torch.equal(signed, -signed.mT)
    assert signed[0, 0, 8] == 8 * 2**-4


@together("bidirectional", [False, True])
@together(("buckets", "farthest"), [(32, 128), (32, 20), (16, 1000), (8, 17)])
def test_the_ranges_are_those_of_transformers(buckets, farthest, bidirectional):
    apart = torch.arange(-3000, 3000)
    theirs = T5Attention._relative_position_bucket(
        -apart, bidirectional=bidirectional, num_buckets=buckets, max_distance=farthest
    )
    ours = R.t5_bucket(apart, buckets, farthest, bidirectional=bidirectional)
    off = apart[ours != theirs].abs().unique().tolist()
    # at a boundary between two ranges, a logarithm in float32 may belong to either range
    side = buckets // 4 if bidirectional else buckets // 2
    steps = [math.log(x / side) / math.log(farthest / side) * side for x in off]
    assert all(abs(step - round(step)) < 1e-5 for step in steps), off
    assert ours.dtype == torch.int64


@pytest.mark.parametrize("bidirectional", [False, True])
def test_t5_is_the_bias_of_transformers(bidirectional):
    config = T5Config(num_heads=3, d_model=12, d_kv=4, is_decoder=not bidirectional)
    theirs = T5Attention(config, has_relative_attention_bias=True)
    torch.nn.init.normal_(theirs.relative_attention_bias.weight)
    ours = R.T5Buckets(3, bidirectional=bidirectional)
    with torch.no_grad():
        ours.weight.copy_(theirs.relative_attention_bias.weight.T)
    expected = theirs.compute_bias(40, 40)[0]
    assert torch.equal(ours.bias(torch.arange(40), torch.arange(40)), expected)


def test_t5_knows_left_from_right_only_with_ranges_for_both():
    for bidirectional in (False, True):
        scheme = R.T5Buckets(1, bidirectional=bidirectional)
        torch.nn.init.normal_(scheme.weight)
        left, right = scheme.bias([5], [2, 8])[0, 0]
        assert left != right
    assert R.t5_bucket(torch.tensor([-1, -500])).tolist() == [0, 0]


def test_an_imitation_is_the_bias_near_by_and_level_far_off():
    bias = R.ALiBi(2)
    copy = R.imitated(bias).bias([0], torch.arange(-300, 301)).detach()[:, 0]
    true = bias.bias([0], torch.arange(-300, 301))[:, 0]
    near = slice(300 - 7, 300 + 8)
    assert torch.equal(copy[:, near], true[:, near].float())
    assert torch.equal(copy, copy.flip(-1))
    assert copy[0, 0] == copy[0, 300 - 200] == copy[0, 300 - 128]
    assert copy[0, 0] == true[0, 300 - 91]  # the last range begins beyond 8·16^(k/8) with k = 7
    # within a range, the error is at most half of the range
    inside = (copy - true)[:, 300 - 90 : 300 + 91].abs().max(-1).values
    assert (inside <= 0.5 * bias.slopes * (91 - 64)).all()


def test_the_imitation_of_a_t5_is_that_t5():
    """In this T5 scheme, the two sides differ, and the last range consists of a single distance."""
    for buckets, farthest in ((32, 128), (16, 5), (8, 20)):
        scheme = R.T5Buckets(2, buckets, farthest, bidirectional=True)
        torch.nn.init.normal_(scheme.weight)
        copy, apart = R.imitated(scheme, buckets, farthest), torch.arange(-300, 301)
        assert torch.equal(copy.bias([0], apart), scheme.bias([0], apart))


def test_sandwich_by_hand():
    found = R.Sandwich(4, dim=6, base=100.0).bias([50], [50, 43, 0])[:, 0]
    for head in range(1, 5):
        for at, apart in enumerate((0, 7, 50)):
            total = sum(math.cos(apart * 100 ** (-2 * i / 6)) for i in range(3))
            assert found[head - 1, at].item() == pytest.approx((total - 3) / (8 * head / 4), abs=1e-12)


@pytest.mark.parametrize("kind", ["log", "power"])
def test_kerple_by_hand(kind):
    scheme = R.Kerple(2, kind)
    with torch.no_grad():
        scheme.p.copy_(torch.tensor([1.5, 0.25]))
        scheme.a.copy_(torch.tensor([0.5, 2.0]))
    found = scheme.bias([4], [4, 5, 0]).detach()[:, 0]
    for head, (p, a) in enumerate(((1.5, 0.5), (0.25, 2.0))):
        for at, apart in enumerate((0, 1, 4)):
            expected = -p * math.log(1 + a * apart) if kind == "log" else -a * apart**p
            assert found[head, at].item() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("kind", ["log", "power"])
def test_kerple_stays_in_range_and_has_gradients(kind):
    scheme = R.Kerple(1, kind)
    scheme.bias(PLACES, PLACES).sum().backward()
    assert all(torch.isfinite(weight.grad).all() and weight.grad.any() for weight in scheme.parameters())
    with torch.no_grad():
        scheme.p.fill_(9.0)
        scheme.a.fill_(-3.0)
    bias = scheme.bias([3], [0]).item()
    assert bias == pytest.approx(-9 * math.log(1.03) if kind == "log" else -0.01 * 9, abs=1e-6)


def test_fire_by_hand():
    scheme = R.Fire(2, length=10.0, c=0.5)
    share = scheme.share([4, 20], [0, 3, 4]).detach()
    expected = [[math.log(0.5 * abs(m - n) + 1) / math.log(0.5 * max(m, 10) + 1) for n in (0, 3, 4)] for m in (4, 20)]
    np.testing.assert_allclose(share, expected, atol=1e-7)
    first, last = scheme.network[0], scheme.network[2]
    hidden = (first.weight[:, 0] * share[1, 0].float() + first.bias).clamp(min=0)
    found = scheme.bias([4, 20], [0, 3, 4])
    assert largest(found[:, 1, 0] - (last.weight @ hidden + last.bias)) < 1e-6


def test_fire_sees_numbers_up_to_one_in_a_text_of_any_length():
    share = R.Fire(1, length=64.0).share(torch.arange(5000), [0]).detach()
    assert share.max() <= 1
    assert torch.equal(share[64:], torch.ones_like(share[64:]))
