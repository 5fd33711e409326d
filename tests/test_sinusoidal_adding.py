"""Tests of how adding positions affects a score, and of what the order of the frequencies means for the weights."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import sinusoidal as S
from tests.helpers import largest, random, seeded, seeds
from tests.sinusoidal_helpers import HALVES, exact_encoding, exact_kernel
from tests.together import together

# --- The effect of adding ---


@given(seeds, st.integers(1, 20))
def test_four_terms_are_the_products_and_sum_to_the_score(seed, dim):
    x, y, p, q = random(4, 5, dim, seed=seed)
    terms = S.four_terms(x, y, p, q)
    for ours, (a, b) in zip(terms, [(x, y), (x, q), (p, y), (p, q)], strict=True):
        assert torch.allclose(ours, torch.einsum("ni,ni->n", a, b), rtol=1e-13, atol=1e-13)
    assert torch.allclose(terms.total, torch.einsum("ni,ni->n", x + p, y + q), rtol=1e-12, atol=1e-12)


def test_four_terms_broadcast_and_keep_their_type(device):
    x, y = torch.ones(2, 1, 4, device=device), torch.ones(4, device=device)
    p, q = torch.ones(3, 4, device=device), torch.ones(1, 1, 4, device=device)
    for dtype, expected in [(torch.float32, torch.float32), *((half, torch.float32) for half in HALVES)]:
        for term in S.four_terms(*(v.to(dtype) for v in (x, y, p, q))):
            assert term.shape == (2, 3)
            assert term.dtype == expected
            assert term.device.type == device.type
    assert S.four_terms(*torch.ones(4, 2, dtype=torch.float64)).total.dtype == torch.float64


def test_four_terms_of_half_types_are_multiplied_in_float32():
    x = torch.full((1,), 255.0, dtype=torch.bfloat16)  # bfloat16 can't represent the product 255² = 65025
    assert S.four_terms(x, x, x, x).content == 65025


@given(seeds, st.integers(-50, 50), st.integers(-50, 50))
def test_sliding_changes_the_cross_terms_only(seed, m, n):
    x, y = random(2, 3, 16, seed=seed)
    shifts = torch.tensor([0, 1, 40, 1000])
    terms = S.slide(x, y, m, n, shifts, base=100.0)
    assert all(term.shape == (3, 4) for term in terms)
    assert all(term.dtype == torch.float64 for term in terms)
    for column, shift in enumerate(shifts.tolist()):
        p, q = (exact_encoding(start + shift, 16, 100.0) for start in (m, n))
        for ours, expected in zip(terms, S.four_terms(x, y, p, q), strict=True):
            assert torch.allclose(ours[:, column], expected, atol=1e-9)
    assert largest(terms.position - S.distance_kernel(m - n, 16, 100.0)) < 1e-9
    assert terms.content_position.std(dim=-1).min() > 1e-3
    assert terms.position_content.std(dim=-1).min() > 1e-3


def test_slide_takes_half_types_devices_and_the_papers_base(device):
    x, y = random(2, 8, dtype=torch.float32).to(device)
    for dtype in (torch.float32, torch.bfloat16):
        terms = S.slide(x.to(dtype), y.to(dtype), 2, 0, [0, 5])
        assert terms.total.dtype == torch.float64
        assert torch.allclose(terms.position.cpu(), S.distance_kernel(2, 8).expand(2))
    exact = S.slide(x, y, 2, 0, [7])
    assert exact.content.cpu().item() == pytest.approx((x.cpu().double() @ y.cpu().double()).item(), rel=1e-15)


@together("std", [0.02, 1.0])
@together(("m", "n"), [(9, 4), (1009, 1004), (3, 3)])
def test_term_sizes_are_those_of_the_theory(std, m, n):
    dim = 32
    sizes = S.term_sizes(m, n, dim, std=std, samples=20_000, generator=seeded())
    assert sizes.content == pytest.approx(std**2 * math.sqrt(dim), rel=0.03)
    assert sizes.content_position == pytest.approx(std * math.sqrt(dim / 2), rel=0.03)
    assert sizes.position_content == pytest.approx(std * math.sqrt(dim / 2), rel=0.03)
    assert sizes.position == pytest.approx(abs(float(exact_kernel(m - n, dim, 10000))), rel=1e-9)


def test_term_sizes_come_from_the_generator_and_depend_on_the_base():
    first = S.term_sizes(9, 4, 32, samples=50, generator=seeded(1))
    assert first == S.term_sizes(9, 4, 32, samples=50, generator=seeded(1))
    assert first != S.term_sizes(9, 4, 32, samples=50, generator=seeded(2))
    other = S.term_sizes(9, 4, 32, base=2.0, samples=50, generator=seeded(1))
    assert other.content == first.content
    assert other.position == pytest.approx(abs(float(exact_kernel(5, 32, 2))))
    torch.manual_seed(3)
    default = S.term_sizes(9, 4, 32)
    torch.manual_seed(3)
    assert default == S.term_sizes(9, 4, 32, std=1, samples=4096)
    words = random(2, 7, 4, seed=5) * 0.5
    small = S.term_sizes(9, 4, 4, std=0.5, samples=7, generator=seeded(5))
    assert small.content == pytest.approx((words[0] * words[1]).sum(-1).square().mean().sqrt().item())
    one = S.term_sizes(9, 4, 4, samples=1, generator=seeded(5))
    words_of_one = random(2, 1, 4, seed=5)
    assert one.content == pytest.approx(abs((words_of_one[0] @ words_of_one[1].mT).item()))
    crossed = words[0] @ S.encoding(4, 4, dtype=torch.float64)
    assert small.content_position == pytest.approx(crossed.square().mean().sqrt().item())
    crossed = words[1] @ S.encoding(9, 4, dtype=torch.float64)
    assert small.position_content == pytest.approx(crossed.square().mean().sqrt().item())


# --- Order of the frequencies ---


def test_orders_by_hand():
    assert S.concatenated_order(8).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert S.pair_order([1, 0]).tolist() == [2, 3, 0, 1]
    assert S.pair_order(torch.tensor([0, 2, 1])).tolist() == [0, 1, 4, 5, 2, 3]


@given(seeds, st.permutations(range(6)))
def test_weights_absorb_the_order_of_the_frequencies(seed, pairs):
    order = S.pair_order(pairs)
    words, queries, keys = random(7, 12, seed=seed), random(5, 12, seed=seed + 1), random(5, 12, seed=seed + 2)
    z = words + S.encoding(range(7), 12, dtype=torch.float64)
    scores = (z @ queries.T) @ (z @ keys.T).T
    moved = words[:, order] + S.encoding(range(7), 12, dtype=torch.float64)[:, order]
    absorbed = (moved @ S.absorb_order(queries, order).T) @ (moved @ S.absorb_order(keys, order).T).T
    assert torch.allclose(absorbed, scores, rtol=1e-12, atol=1e-10)
    if order.tolist() != list(range(12)):  # the weights must be reordered in the same way
        assert largest((moved @ queries.T) @ (moved @ keys.T).T - scores) > 1e-6


def test_frequencies_in_another_order_are_pairs_in_that_order():
    order = [2, 0, 1]
    angles = 5 * S.inv_freq(6)[order]
    expected = torch.stack((angles.sin(), angles.cos()), -1).flatten()
    assert torch.equal(S.encoding(5, 6, dtype=torch.float64)[S.pair_order(order)], expected)


def test_absorb_order_keeps_type_and_device(device):
    weight = random(3, 4, dtype=torch.float32).to(device)
    ours = S.absorb_order(weight, [3, 0, 2, 1])
    assert ours.device.type == device.type
    assert torch.equal(ours.cpu(), weight.cpu()[:, [3, 0, 2, 1]])
