"""Tests of the partial sums and the bound, compared with NumPy loops, 40-digit arithmetic and random walks."""

import itertools
import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import decay as D
from ropebook.derivation import score
from tests.decay_helpers import bases, dims, plain_sums
from tests.helpers import random, seeds
from tests.together import together

LAYOUTS = ["interleaved", "half"]


@given(st.integers(-(10**5), 10**5), dims, bases)
def test_partial_sums_are_those_of_a_plain_loop(distance, dim, base):
    expected = plain_sums(distance, dim, base)
    assert np.abs(D.partial_sums(distance, dim, base).numpy() - expected).max() < 1e-8
    mean = np.abs(expected).mean()
    assert D.mean_partial_sum(distance, dim, base).item() == pytest.approx(mean, abs=1e-8)


def test_partial_sums_on_the_device(device):
    distances = torch.arange(50, device=device).reshape(5, 10)
    sums, mean = D.partial_sums(distances, 16), D.mean_partial_sum(distances, 16)
    assert sums.shape == (5, 10, 8)
    assert mean.shape == (5, 10)
    assert sums.dtype == torch.complex128
    assert mean.dtype == torch.float64
    assert torch.allclose(mean, sums.abs().mean(-1), atol=1e-12)


@together("dim", [2, 8, 128])
def test_at_distance_nought_the_walk_is_straight(dim):
    assert D.mean_partial_sum(0, dim).item() == (dim // 2 + 1) / 2


@given(st.integers(-(10**6), 10**6), st.integers(1, 64).map(lambda pairs: 2 * pairs), bases)
def test_the_mean_never_falls_below_its_floor(distance, dim, base):
    floor = D.partial_sum_floor(dim)
    assert floor >= 0.5
    assert D.mean_partial_sum(distance, dim, base).item() >= floor - 1e-12


@together("dim", [2, 4, 6, 8, 128])
def test_the_floor_counts_what_no_walk_can_avoid(dim):
    # |S_1| = 1. At best, the walk then returns to the origin at its second step, and again at every second step after
    # that.
    assert D.partial_sum_floor(dim) == float(Fraction(math.ceil(dim / 4), dim // 2))


def test_with_two_pairs_the_floor_is_reached():
    # S_2 vanishes if the two directions are opposite.
    least = D.summarize(partial(D.mean_partial_sum, dim=4), 10_000).least
    assert D.partial_sum_floor(4) <= least < D.partial_sum_floor(4) + 1e-3


def test_at_base_one_all_steps_have_one_direction_and_the_bound_stays():
    mean = D.mean_partial_sum(torch.arange(1000), 64, 1)
    assert torch.allclose(mean, torch.tensor(16.5).double(), atol=1e-10)


def test_the_mean_falls_on_average_to_the_level_of_a_random_walk_and_not_monotonically():
    curve = partial(D.mean_partial_sum, dim=128)
    trend = D.windows(curve, [0, 10, 100, 1000, 10_000])
    assert (trend.mean.diff() < 0).all()
    summary = D.summarize(curve, 4096)
    assert summary.rises > 1000
    assert summary.first_negative is None
    # Where even the slowest of 64 pairs has completed many turns, the directions behave like random ones.
    far = D.windows(curve, [10**7, 10**7 + 20_000]).mean.item()
    assert far == pytest.approx(D.random_walk_level(128), rel=0.03)


def test_the_level_of_a_random_walk_against_walks():
    directions = 2 * math.pi * 50 * random(20_000, 32)
    steps = torch.polar(torch.ones_like(directions), directions)
    walked = steps.cumsum(-1).abs().mean().item()
    assert walked == pytest.approx(D.random_walk_level(64), rel=0.02)


@pytest.mark.parametrize("layout", LAYOUTS)
@given(seeds, dims, bases)
def test_bounds_hold_and_come_in_order(layout, seed, dim, base):
    q, k = random(2, 3, dim, seed=seed)
    distances = torch.tensor([0, 1, 7, 1000, 54321])
    found = D.bounds(q, k, distances, base, layout)
    assert all(part.shape == (3, 5) for part in found)
    slack = 1 + 1e-12
    assert (found.score.abs() <= found.steps * slack + 1e-12).all()
    assert (found.steps <= found.abel * slack).all()
    assert (found.score.abs() <= found.triangle * slack + 1e-12).all()
    # At Δ = 0, |h_i| ≤ (d/2 − i) max|h_{i+1} − h_i|, so RoFormer's bound is never the better one there.
    assert (found.abel[:, 0] >= found.triangle[:, 0] / slack).all()


@given(seeds, st.integers(-5000, 5000))
def test_bounds_against_a_plain_loop(seed, distance):
    q, k = random(2, 8, seed=seed)
    qs, ks = (x.reshape(4, 2).numpy() @ [1, 1j] for x in (q, k))
    h = [*(qs * ks.conj()), 0]
    lengths = np.abs(plain_sums(distance, 8, 10000.0))
    steps = np.abs(np.diff(h))
    found = D.bounds(q, k, distance)
    exact = score(q, k, distance, 0).item()
    assert found.score.item() == pytest.approx(exact, abs=1e-10)
    assert found.steps.item() == pytest.approx((steps * lengths).sum(), abs=1e-10)
    assert found.abel.item() == pytest.approx(steps.max() * lengths.sum(), abs=1e-10)
    assert found.triangle.item() == pytest.approx(np.abs(h).sum(), abs=1e-10)


def test_for_q_and_k_of_ones_the_bound_is_the_mean_of_the_partial_sums():
    ones, distances = torch.ones(64), torch.arange(100)
    found = D.bounds(ones, ones, distances)
    assert torch.allclose(found.abel, 64 * D.mean_partial_sum(distances, 64), atol=1e-10)
    assert (found.triangle == 64).all()
    assert torch.allclose(found.score, 2 * D.distance_kernel(distances, 64), atol=1e-10)


@together(("dim", "first"), [(8, 10), (16, 308), (32, 1875), (64, 21_596)])
def test_for_ones_and_few_pairs_the_bound_is_at_times_the_better_one(dim, first):
    # The mean of |S_j| in 40-digit arithmetic, computed at this Δ and at the previous one.
    def mean(distance):
        theta = [mpmath.power(10000, -mpmath.mpf(2 * i) / dim) for i in range(dim // 2)]
        sums = itertools.accumulate(mpmath.expj(distance * frequency) for frequency in theta)
        return sum(abs(partial_sum) for partial_sum in sums) / (dim // 2)

    assert mean(first) < 1 < mean(first - 1)
    assert D.first_below(partial(D.mean_partial_sum, dim=dim), 1, 10**5) == first
    ones = torch.ones(dim)
    found = D.bounds(ones, ones, torch.arange(first + 1))
    assert (found.abel < found.triangle).nonzero().flatten().tolist() == [first]


def test_for_ones_and_128_entries_the_bound_stays_the_weaker_one():
    assert D.first_below(partial(D.mean_partial_sum, dim=128), 1, 10**5) is None


def test_for_random_vectors_the_bound_is_weaker_than_the_triangle_inequality():
    q, k = random(2, 200, 128)
    found = D.bounds(q, k, torch.tensor([1, 10, 100, 1000, 10_000, 100_000]))
    assert (found.abel > found.triangle).all()
    assert (found.abel / found.score.abs()).median() > 20


def test_for_a_smooth_choice_the_bound_is_the_better_one():
    # h decreases to 0 in equal steps, so Σ|h| = max|step| · d/2 (d/2 + 1)/2. The second factor is Σ|S| at Δ = 0.
    q = torch.zeros(64)
    q[0::2] = torch.arange(32, 0, -1)
    k = torch.ones(64)
    found = D.bounds(q, k, torch.tensor([0, 1000]))
    assert found.abel[0] == pytest.approx(found.triangle[0])
    assert found.abel[1] < found.triangle[1] / 3
