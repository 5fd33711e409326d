"""Tests of how closely the code comes to repeating itself, compared with a search and with the theorems."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import sinusoidal as S
from tests.helpers import largest
from tests.sinusoidal_helpers import bases, dims, exact_frequency, exact_kernel
from tests.together import together


@given(st.integers(1, 200), dims, bases)
def test_closest_values_against_a_search(max_distance, dim, base):
    found = S.closest_values(max_distance, dim, base)
    kernel = S.distance_kernel(range(max_distance + 1), dim, base)
    gaps = (kernel[:, None] - kernel[None, :]).abs()
    smallest = min(gaps[a, b].item() for a in range(max_distance + 1) for b in range(a))
    assert found.gap == smallest
    assert 0 <= found.first < found.second <= max_distance
    assert gaps[found.first, found.second] == smallest


@given(st.integers(1, 3000), dims, bases)
def test_the_error_of_closest_values_is_a_bound_and_not_a_wild_one(max_distance, dim, base):
    found = S.closest_values(max_distance, dim, base)
    exact = exact_kernel(found.first, dim, base) - exact_kernel(found.second, dim, base)
    assert abs(abs(exact) - found.gap) <= found.error
    frequencies = sum(float(exact_frequency(i, dim, base)) for i in range(dim // 2))
    assert found.error == pytest.approx(2**-50 * (max_distance * frequencies + dim**2 / 4), rel=1e-12, abs=0)


def test_kernel_values_never_coincide_in_theory_but_do_in_practice():
    kernel = S.distance_kernel(range(4096), 128)
    assert S.closest_values(4095, 128).gap > S.closest_values(4095, 128).error
    assert len(S.collisions(kernel.bfloat16())) > 2000
    assert S.closest_values(10**5, 128).gap < 128 / 10**5


@given(st.integers(1, 1000), dims, bases)
def test_closest_return_against_a_search(max_distance, dim, base):
    found = S.closest_return(max_distance, dim, base)
    encodings = S.encoding(range(max_distance + 1), dim, base, torch.float64)
    gaps = (encodings[1:] - encodings[0]).norm(dim=-1)
    assert found.gap == pytest.approx(gaps.min().item(), abs=1e-9)
    assert gaps[found.distance - 1].item() == pytest.approx(found.gap, abs=1e-9)
    assert found.gap > 0


def test_the_nearest_returns_of_one_hand_are_the_fractions_of_2_pi():
    # 6/1, 19/3, 25/4, 44/7, 333/53 and 710/113, each of which is closer to 2π than all the previous ones
    for limit, distance in [
        (18, 6),
        (19, 19),
        (25, 25),
        (43, 25),
        (44, 44),
        (332, 44),
        (333, 333),
        (709, 333),
        (710, 710),
    ]:
        assert S.closest_return(limit, 2).distance == distance


@together(
    ("dim", "base", "turns"),
    [
        (2, 10000, 1),
        (2, 1.1, 1),
        (4, 10000, 100),
        (8, 10000, 1000),
        (6, 27, 9),
        (64, 1, 1),
        (4, 2.25, 3),
        (6, 3.375, 9),
    ],
)
def test_exact_period(dim, base, turns):
    period = S.exact_period(dim, base)
    assert period == pytest.approx(2 * math.pi * turns, rel=1e-15)
    somewhere = torch.tensor([0.0, 0.3, 17.0], dtype=torch.float64)
    assert largest(S.encoding(somewhere + period, dim, base) - S.encoding(somewhere, dim, base)) < 1e-6
    for fewer in range(1, turns):  # there is no smaller period
        assert S.chord(2 * math.pi * fewer, dim, base) > 1e-3


@together(("dim", "base"), [(128, 10000), (6, 10000), (4, 2), (4, 4.5), (8, 9999), (6, 28)])
def test_no_exact_period(dim, base):
    assert S.exact_period(dim, base) is None


@given(st.integers(1, 12), st.integers(1, 9))
def test_exact_period_of_every_power(pairs, root):
    assert S.exact_period(2 * pairs, root**pairs) == pytest.approx(2 * math.pi * root ** (pairs - 1), rel=1e-15)
