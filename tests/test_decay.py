"""The decay module against forty digits, NumPy loops, closed forms at base 1 and d = 2, and published numbers."""

import inspect
import itertools
import math
from fractions import Fraction
from functools import partial
from pathlib import Path

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from ropebook import decay as D
from ropebook import sinusoidal
from ropebook.derivation import score
from tests.helpers import random

mpmath.mp.dps = 40

dims = st.integers(1, 16).map(lambda pairs: 2 * pairs)
bases = st.one_of(st.sampled_from([1, 10000.0]), st.floats(0, 7).map(lambda power: 10**power))
seeds = st.integers(0, 2**32 - 1)
LAYOUTS = ["interleaved", "half"]


def kernel(dim, base=10000.0):
    return partial(D.distance_kernel, dim=dim, base=base)


def exact_kernel(distance, dim, base):
    theta = [mpmath.power(base, -mpmath.mpf(2 * i) / dim) for i in range(dim // 2)]
    return sum(mpmath.cos(frequency * distance) for frequency in theta)


def plain_sums(distance, dim, base):
    """S_1 … S_{d/2}, one complex number after the other."""
    steps = (np.exp(1j * distance * base ** (-2 * i / dim)) for i in range(dim // 2))
    return list(itertools.accumulate(steps))


def plain_summary(values):
    """Everything that `summarize` finds, in plain Python."""
    inner = range(1, len(values) - 1)
    return D.Summary(
        mean=sum(values) / len(values),
        least=min(values),
        least_at=values.index(min(values)),
        first_negative=next((i for i, value in enumerate(values) if value < 0), None),
        local_maxima=sum(values[i - 1] < values[i] >= values[i + 1] for i in inner),
        rises=sum(after > before for before, after in itertools.pairwise(values)),
    )


def looked_up(values):
    """A curve that reads its values from a list."""
    table = torch.tensor(values, dtype=torch.float64)
    return lambda distances: table[distances.cpu()].to(distances.device)


# --- RoFormer's bound ---


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


@pytest.mark.parametrize("dim", [2, 8, 128])
def test_at_distance_nought_the_walk_is_straight(dim):
    assert D.mean_partial_sum(0, dim).item() == (dim // 2 + 1) / 2


@given(st.integers(-(10**6), 10**6), st.integers(1, 64).map(lambda pairs: 2 * pairs), bases)
def test_the_mean_never_falls_below_its_floor(distance, dim, base):
    floor = D.partial_sum_floor(dim)
    assert floor >= 0.5
    assert D.mean_partial_sum(distance, dim, base).item() >= floor - 1e-12


@pytest.mark.parametrize("dim", [2, 4, 6, 8, 128])
def test_the_floor_counts_what_no_walk_can_avoid(dim):
    # |S_1| = 1; at best the walk then returns to the start by its second step, and every other time.
    assert D.partial_sum_floor(dim) == float(Fraction(math.ceil(dim / 4), dim // 2))


def test_with_two_pairs_the_floor_is_reached():
    # S_2 vanishes where the two directions are opposite.
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
    # Where even the slowest of 64 pairs has turned many times, each direction is as good as random.
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
    # At Δ = 0, |h_i| ≤ (d/2 − i) max|h_{i+1} − h_i|: there RoFormer's is never the better one.
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


@pytest.mark.parametrize(("dim", "first"), [(8, 10), (16, 308), (32, 1875), (64, 21_596)])
def test_for_ones_and_few_pairs_the_bound_is_at_times_the_better_one(dim, first):
    # The mean of |S_j| at that Δ and at the one before, with forty digits.
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
    # h falls in equal steps to 0, so that Σ|h| = max|step| · d/2 (d/2 + 1)/2: what Σ|S| is at Δ = 0.
    q = torch.zeros(64)
    q[0::2] = torch.arange(32, 0, -1)
    k = torch.ones(64)
    found = D.bounds(q, k, torch.tensor([0, 1000]))
    assert found.abel[0] == pytest.approx(found.triangle[0])
    assert found.abel[1] < found.triangle[1] / 3


# --- Along a curve ---


@pytest.fixture(params=[16, 64, 2**16])
def chunk(request, monkeypatch):
    """With CHUNK 16 the pieces hold 1, 2, 4, 8, 16, 16, … distances."""
    monkeypatch.setattr(D, "CHUNK", request.param)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(("dim", "base"), [(2, 1), (8, 10000.0), (32, 100.0), (128, 5e5)])
@pytest.mark.parametrize("length", [1, 2, 3, 100, 500])
def test_summary_against_plain_python_however_it_is_cut(dim, base, length):
    values = D.distance_kernel(torch.arange(length), dim, base).tolist()
    expected = plain_summary(values)
    found = D.summarize(kernel(dim, base), length)
    assert found._replace(mean=0) == expected._replace(mean=0)
    assert found.mean == pytest.approx(expected.mean, abs=1e-9)


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("values", [[1, 1, 1], [0, 1, 1, 0], [0, 1, 0, 1, 0, -1, -1, 3], [3, 2, 1], list(range(50))])
def test_summary_of_steps_and_plateaus(values):
    assert D.summarize(looked_up(values), len(values)) == plain_summary(values)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=80))
def test_summary_of_any_values(values):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(D, "CHUNK", 16)
        found = D.summarize(looked_up(values), len(values))
        edges = sorted({0, len(values) // 3, len(values)})
        windows = D.windows(looked_up(values), edges)
        below = D.first_below(looked_up(values), -1, len(values))
    expected = plain_summary(values)
    assert found._replace(mean=0) == expected._replace(mean=0)
    assert found.mean == pytest.approx(expected.mean)
    pieces = [values[start:stop] for start, stop in itertools.pairwise(edges)]
    assert windows.mean.tolist() == pytest.approx([sum(piece) / len(piece) for piece in pieces])
    assert windows.least.tolist() == [min(piece) for piece in pieces]
    assert windows.greatest.tolist() == [max(piece) for piece in pieces]
    assert below == next((i for i, value in enumerate(values) if value < -1), None)


def test_walks_on_the_device(device):
    assert D.summarize(kernel(8), 500, device) == pytest.approx(D.summarize(kernel(8), 500))
    assert D.first_below(kernel(8), 0, 500, device) == D.first_below(kernel(8), 0, 500)
    assert torch.allclose(D.windows(kernel(8), [0, 9], device).mean, D.windows(kernel(8), [0, 9]).mean)
    assert D.reach(500, 8, 500, device) == D.reach(500, 8, 500)
    assert D.first_return(0.99, 10_000, 8, device=device) == 6283
    assert D.sweep(100, [10], [8], device)[0].below_half == D.sweep(100, [10], [8])[0].below_half


def test_a_curve_is_asked_no_further_than_it_must():
    asked = []

    def curve(distances):
        asked.append(len(distances))
        return D.distance_kernel(distances, 128)

    assert D.first_below(curve, 0, 10**9) == 1707
    assert sum(asked) < D.CHUNK // 8


def test_pieces_double_up_to_the_size_that_the_chapter_states(monkeypatch):
    assert D.CHUNK == 65_536
    monkeypatch.setattr(D, "CHUNK", 240)
    asked = []

    def curve(distances):
        asked.append(distances.tolist())
        return torch.ones(len(distances))

    assert D.first_below(curve, 0, 800) is None
    assert [len(piece) for piece in asked] == [15, 30, 60, 120, 240, 240, 95]
    assert list(itertools.chain.from_iterable(asked)) == list(range(800))


class LargestTensor(TorchDispatchMode):
    numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.numel = max(self.numel, out.numel())
        return out


def test_memory_does_not_grow_with_the_length():
    for walk in (
        lambda: D.summarize(kernel(4), 300_000),
        lambda: D.windows(kernel(4), [0, 5, 300_000]),
        lambda: D.first_below(kernel(4), -2, 300_000),
        lambda: D.reach(1e12, 4, 300_000),
        lambda: D.summarize(partial(D.mean_partial_sum, dim=4), 300_000),
    ):
        with LargestTensor() as seen:
            walk()
        assert seen.numel <= D.CHUNK + 2  # a summary carries two values on


def test_scores_of_random_vectors_take_bounded_memory():
    with LargestTensor() as seen:
        D.random_scores(torch.arange(1000), 16, samples=500)
    assert seen.numel <= D.CHUNK


# --- The score ---


@pytest.mark.parametrize("layout", LAYOUTS)
def test_score_curve_is_the_score_of_each_key(layout, float64_device):
    q, k = random(2, 3, 8)
    found = D.score_curve(4, 10, q.to(float64_device), k.to(float64_device), 100, layout)
    assert found.device.type == float64_device.type
    expected = [[score(a, b, 4, n, 100, layout).item() for n in range(10)] for a, b in zip(q, k, strict=True)]
    assert torch.allclose(found.cpu(), torch.tensor(expected).double(), atol=1e-12)


def test_the_figures_are_the_twelve_settings():
    assert len(set(D.FIGURES)) == 12
    assert {figure.dim for figure in D.FIGURES} == {256, 16, 8}
    assert {figure.length for figure in D.FIGURES} == {512, 65536}
    assert {figure.query_position for figure in D.FIGURES} == {0, 256}


def test_curves_are_symmetric_for_q_equal_to_k_and_else_not():
    ones = torch.ones(256)
    figure = D.score_curve(256, 513, ones, ones)
    assert torch.allclose(figure, figure.flip(0), atol=1e-10)
    assert figure.argmax() == 256
    q, k = random(2, 256)
    other = D.score_curve(256, 513, q, k)
    assert (other - other.flip(0)).abs().max() > 30


def test_the_score_of_ones_against_forty_digits():
    ones = torch.ones(16)
    values = D.score_curve(0, 65536, ones, ones)
    for distance in (0, 1, 511, 65535):
        assert values[distance].item() == pytest.approx(float(2 * exact_kernel(distance, 16, 10000)), abs=1e-9)


def test_for_dimension_eight_the_period_is_2000_pi():
    # S0.11 says about 10000. θ = 1, 1/10, 1/100, 1/1000 return together after 2000π = 6283.19.
    assert sinusoidal.exact_period(8) == pytest.approx(2000 * math.pi)
    assert D.first_return(0.99, 10_000, 8) == 6283
    assert D.first_return(0.95, 10_000, 16) is None
    late = D.first_return(0.95, 10**6, 16)
    assert late > 6283
    assert exact_kernel(late, 16, 10000) >= 0.95 * 8
    assert all(exact_kernel(late - step, 16, 10000) < 0.95 * 8 for step in (1, 2))


def test_a_return_to_exactly_the_share_counts():
    # d = 2, base 1: K(Δ) = cos Δ, which leaves cos 6 at once and is back there at 6.
    assert D.first_return(D.distance_kernel(6, 2, 1).item(), 50, 2, 1) == 6
    # A share of 1 is allowed and K(0) itself no return: the nearest miss below 400 is cos 355.
    assert D.first_return(1.0, 400, 2, 1) is None


def test_a_curve_that_never_leaves_does_not_return():
    assert D.first_return(0.1, 3, 64) is None
    assert D.first_return(0.9, 50, 2, 1) == 6  # cos 6 = 0.96


def test_random_scores_neither_decay_nor_prefer_a_distance():
    distances = torch.tensor([[0, 1, 10], [100, 10_000, 1_000_000]])
    n = 20_000
    found = D.random_scores(distances, 32, samples=n)
    assert found.mean.shape == found.std.shape == (2, 3)
    assert (found.mean.abs() < 5 * math.sqrt(32 / n)).all()
    # Given q the score is normal with variance |q|²; hence its kurtosis 3(1 + 2/d), and std is off by 0.5 % or so.
    assert ((found.std / math.sqrt(32) - 1).abs() < 0.03).all()


def test_random_scores_are_those_of_the_same_draws_in_any_batches(monkeypatch):
    distances = [0, 3, 50]
    whole = D.random_scores(distances, 8, samples=7, seed=5)
    generator = torch.Generator().manual_seed(5)
    q, k = torch.randn(2, 7, 8, generator=generator, dtype=torch.float64)
    plain = np.array([[score(a, b, n, 0).item() for n in distances] for a, b in zip(q, k, strict=True)])
    assert whole.mean.numpy() == pytest.approx(plain.mean(0), abs=1e-12)
    assert whole.std.numpy() == pytest.approx(plain.std(0, ddof=1), abs=1e-12)
    monkeypatch.setattr(D, "CHUNK", 6)
    cut = D.random_scores(distances, 8, samples=7, seed=5)
    assert cut.mean.shape == (3,)
    assert not torch.equal(D.random_scores(distances, 8, samples=7, seed=6).mean, cut.mean)


def test_random_scores_of_no_distance_and_of_two_samples():
    for part in D.random_scores([], 8):
        assert part.shape == (0,)
    q, k = torch.randn(2, 2, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores = [(a @ b).item() for a, b in zip(q, k, strict=True)]
    found = D.random_scores(0, 8, samples=2)  # seed 0 by default
    assert found.mean.item() == pytest.approx(sum(scores) / 2, abs=1e-12)
    assert found.std.item() == pytest.approx(abs(scores[0] - scores[1]) / math.sqrt(2), rel=1e-9)


def test_random_scores_takes_a_thousand_samples_by_default():
    found = [D.random_scores([0, 7], 8, **options) for options in ({}, {"samples": 1000}, {"samples": 999})]
    assert torch.equal(found[0].mean, found[1].mean)
    assert not torch.equal(found[0].mean, found[2].mean)


def test_random_scores_of_more_distances_than_fit_into_memory_go_sample_by_sample(monkeypatch):
    monkeypatch.setattr(D, "CHUNK", 2)
    generator = torch.Generator().manual_seed(5)
    draws = [torch.randn(2, 1, 8, generator=generator, dtype=torch.float64)[:, 0] for _ in range(7)]
    plain = np.array([[score(q, k, n, 0).item() for n in (0, 3, 50)] for q, k in draws])
    found = D.random_scores([0, 3, 50], 8, samples=7, seed=5)
    assert found.mean.numpy() == pytest.approx(plain.mean(0), abs=1e-12)
    assert found.std.numpy() == pytest.approx(plain.std(0, ddof=1), abs=1e-12)


def test_random_scores_on_the_device(device):
    distances = torch.arange(4, device=device)
    found = D.random_scores(distances, 8, samples=10)
    assert torch.allclose(found.std.cpu(), D.random_scores(range(4), 8, samples=10).std)


def test_random_queries_and_keys_show_no_diagonal_and_equal_ones_do():
    q, k = random(2, 200, 32, 64)
    for base in (None, 10000.0, 10.0):
        value, error = D.diagonal_weight(q, k, base)
        assert error < 0.02
        assert abs(value - 1) < 4 * error
        assert D.diagonal_weight(q, q, base).value > 10  # a token that is asked for itself: rotation or none


def test_diagonal_weight_against_a_plain_loop():
    q, k = random(2, 3, 5, 4)
    shares = []
    for trial in range(3):
        weights = []
        for m in range(5):
            row = [math.exp(score(q[trial, m], k[trial, n], m, n).item() / 2) for n in range(5)]
            weights.append(row[m] / sum(row))
        shares.append(5 * sum(weights) / 5)
    found = D.diagonal_weight(q, k)
    assert found.value == pytest.approx(np.mean(shares), rel=1e-12)
    assert found.error == pytest.approx(np.std(shares, ddof=1) / math.sqrt(3), rel=1e-12)


def test_diagonal_weight_of_the_least_that_can_be_given():
    # One key has all the weight; two trials are enough for an error.
    found = D.diagonal_weight(torch.ones(2, 1, 4), torch.ones(2, 1, 4))
    assert found == (1, 0)


# --- The sweep ---


def test_the_sweep_has_the_bases_and_dimensions_of_the_claim():
    # S2.3 speaks of 1, 10, 100, 500 and more; S0.9 draws d = 8, 16 and 256.
    assert D.BASES == (1, 2, 10, 100, 500, 1000, 10**4, 10**5, 10**6, 10**7)
    assert D.DIMS == (8, 16, 32, 64, 128, 256)
    rows = D.sweep(4)
    assert [(row.dim, row.base) for row in rows] == [(dim, base) for dim in D.DIMS for base in D.BASES]
    assert D.sweep(3, [1], [2])[0].below_half == 2  # cos 1 = 0.54 and cos 2 = −0.42
    assert D.sweep(2, [1], [2])[0].below_half is None


def test_the_sweep_has_a_row_for_each_base_and_dimension():
    rows = D.sweep(64, [1, 10.0], iter([8, 16]))
    assert [(row.dim, row.base) for row in rows] == [(8, 1.0), (8, 10.0), (16, 1.0), (16, 10.0)]
    for row in rows:
        values = (D.distance_kernel(torch.arange(64), row.dim, row.base) / (row.dim / 2)).tolist()
        assert row.summary._replace(mean=0) == plain_summary(values)._replace(mean=0)
        assert row.below_half == next(i for i, value in enumerate(values) if value < 0.5)


def test_at_base_one_there_is_no_decay_but_one_cosine():
    for row in D.sweep(10_000, [1], D.DIMS):
        assert row.below_half == 2
        assert row.summary.first_negative == 2
        assert row.summary.least == pytest.approx(math.cos(355), abs=1e-12)
        assert row.summary.least_at % 355 == 0
        assert row.summary.local_maxima == 1591  # as many as there are whole turns in 10000 radians
    assert 10_000 // (2 * math.pi) == 1591


def test_what_the_sweep_says_of_the_base():
    """S2.3, as numbers: from 500 on, the larger the base the slower the fall; 10 and 100 are soon negative."""
    by_base = {row.base: row for row in D.sweep(4096, dims=[128])}
    halves = [by_base[base].below_half for base in D.BASES if base >= 500]
    assert halves == sorted(halves)
    means = [by_base[base].summary.mean for base in D.BASES if base >= 1000]
    assert means == sorted(means)
    assert by_base[10.0].summary.first_negative < by_base[100.0].summary.first_negative < 60
    assert by_base[1e6].summary.first_negative is None


# --- Models ---


def test_turned_pairs_counts_those_with_a_wavelength_below_the_text():
    for context, dim, base in ((2048, 24, 1e4), (4096, 128, 1e4), (8192, 128, 5e5), (32768, 256, 1e6), (2, 8, 10)):
        expected = sum(2 * math.pi * base ** (2 * i / dim) <= context - 1 for i in range(dim // 2))
        assert D.turned_pairs(context, dim, base) == expected


def test_a_text_of_one_token_turns_nothing():
    assert D.turned_pairs(1, 8) == 0


def test_at_base_one_all_pairs_turn_or_none():
    assert D.turned_pairs(7, 64, 1) == 0  # 6 radians
    assert D.turned_pairs(8, 64, 1) == 32


def test_models_are_those_of_transformers_where_it_knows_them():
    from transformers import Gemma3TextConfig, GemmaConfig, GPTNeoXConfig, LlamaConfig, MistralConfig

    models = {model.name: model for model in D.MODELS}
    neox, llama, gemma = GPTNeoXConfig(), LlamaConfig(), GemmaConfig()
    head = neox.hidden_size // neox.num_attention_heads
    turning = int(head * neox.rope_parameters["partial_rotary_factor"])
    assert models["GPT-NeoX-20B"][1:5] == (turning, head, neox.rope_parameters["rope_theta"], 2048)
    assert neox.max_position_embeddings == 2048
    assert models["LLaMA 7B"][1:4] == (llama.head_dim, llama.head_dim, llama.rope_parameters["rope_theta"])
    assert models["LLaMA 7B"].context == llama.max_position_embeddings
    mistral = MistralConfig()
    assert models["Mistral 7B"].dim == mistral.head_dim
    assert models["Mistral 7B"].context == mistral.sliding_window == 4096  # its texts are longer, its attention is not
    assert models["Gemma 7B"][1:3] == (gemma.head_dim, gemma.head_dim)
    assert models["Gemma 7B"].context == gemma.max_position_embeddings
    gemma3 = Gemma3TextConfig()
    assert models["Gemma 3 4B (global layers)"].dim == gemma3.head_dim
    assert models["Gemma 3 4B (global layers)"].base == gemma3.rope_parameters["full_attention"]["rope_theta"]


def test_models_are_those_of_their_papers():
    # Entries that turn, entries of a head, base, tokens of a training text (Mistral: of the window).
    assert [model[1:5] for model in D.MODELS] == [
        (24, 96, 10_000, 2048), (128, 128, 10_000, 2048), (128, 128, 10_000, 4096), (128, 128, 10_000, 4096),
        (256, 256, 10_000, 8192), (128, 128, 500_000, 8192), (128, 128, 10**6, 32_768), (256, 256, 10**6, 32_768),
    ]  # fmt: skip


def test_models_have_what_the_table_needs():
    references = (Path(__file__).parents[1] / "book" / "references.bib").read_text(encoding="utf-8")
    assert all(f"{{{model.source}," in references for model in D.MODELS)
    assert len({model.name for model in D.MODELS}) == len(D.MODELS)
    for model in D.MODELS:
        assert 0 < D.turned_pairs(model.context, model.dim, model.base) < model.dim // 2
        assert model.dim <= model.head_dim
    # Llama 3 reads twice the length of Llama 2, and yet fewer of its pairs come round.
    llama2, llama3 = (next(m for m in D.MODELS if m.name == name) for name in ("Llama 2 7B", "Llama 3 8B"))
    assert D.turned_pairs(4096, llama2.dim, llama2.base) == 46
    mistral = next(m for m in D.MODELS if m.name == "Mistral 7B")
    assert D.turned_pairs(mistral.context, mistral.dim, mistral.base) == 46  # no query sees further than 4096 tokens
    assert D.turned_pairs(8192, llama3.dim, llama3.base) == 35


# --- The base that a context needs ---


@pytest.mark.parametrize(("dim", "base"), [(128, 4300.0), (128, 27000.0), (128, 10000.0), (64, 500.0), (2, 1.0)])
def test_reach_against_forty_digits(dim, base):
    reach = D.reach(base, dim, 5000)
    assert exact_kernel(reach, dim, base) < -1e-6
    near = D.distance_kernel(range(reach), dim, base)
    assert near.min() >= 1e-6  # so clear of 0 that float64 decides it; the lowest checked in forty digits:
    assert exact_kernel(int(near.argmin()), dim, base) > 0


def test_reach_stops_at_the_limit():
    assert D.reach(1e6, 128, 1000) == 1000
    assert D.reach(4300, 128, 1077) == 1077
    assert D.reach(4300, 128, 10**9) == 1077


def test_the_grid_of_the_paper():
    grid = D.significant_grid(2, 1e3, 1e5)
    assert grid[:3] == [1000, 1100, 1200]
    assert grid[89:92] == [9900, 10000, 11000]
    assert len(grid) == 181
    assert grid == [float(f"{mantissa}e{power}") for power in (2, 3) for mantissa in range(10, 100)] + [1e5]
    assert all(published in D.significant_grid(2, 1e3, 1e9) for published in D.PUBLISHED_BASES.values())


@given(st.integers(1, 4), st.floats(0, 6), st.floats(0, 1))
def test_a_grid_holds_exactly_the_numbers_of_so_many_digits(digits, power, width):
    low = 10**power
    high = low * 10**width
    grid = D.significant_grid(digits, low, high)
    assert grid == sorted(set(grid))
    assert all(low <= number <= high for number in grid)
    assert all(float(f"{number:.{digits - 1}e}") == number for number in grid)
    step = 10 ** (math.floor(math.log10(low)) - digits + 1)
    assert len(grid) >= math.floor((high - low) / step / 10)


def test_a_grid_has_at_most_six_digits():
    assert D.significant_grid(6, 1, 1.00002) == [1, 1.00001, 1.00002]
    with pytest.raises(ValueError, match="digits must be an integer >= 1 and <= 6, got 7"):
        D.significant_grid(7, 1, 2)
    assert D.significant_grid(1, 5, 5) == [5]  # both ends belong to it
    assert D.significant_grid(1, 1, 10**9)[-1] == 10**9


def test_labels_are_counted_in_1024_unless_told():
    assert (D.tokens("4k"), D.tokens("128k", 1000), D.tokens("1M"), D.tokens("2M", 1000)) == (
        4096, 128_000, 2**20, 2_000_000)  # fmt: skip


def test_a_grid_below_ten_has_fractions():
    assert D.significant_grid(2, 1, 1.35) == [1.0, 1.1, 1.2, 1.3]
    assert D.significant_grid(1, 900, 1000) == [900, 1000]


@pytest.mark.parametrize(
    ("label", "thousand", "ours", "negative"),
    [("1k", 1024, 4.3e3, None), ("2k", 1024, 1.6e4, None), ("4k", 1024, 2.9e4, 4079), ("4k", 1000, 2.7e4, None),
     ("8k", 1024, 8.4e4, None), ("16k", 1024, 3.5e5, 12223), ("32k", 1024, 6.3e5, 27685)],
)  # fmt: skip
def test_the_search_on_the_grid_of_the_paper(label, thousand, ours, negative):
    published = D.PUBLISHED_BASES[label]
    length = D.tokens(label, thousand)
    grid = D.significant_grid(2, ours / 1.5, 1e6)  # the whole grid from 1000 on is in the benchmark
    found = D.compare(length, published, grid)
    assert found == (length, published, ours, ours == published, negative)
    if negative is not None:
        assert exact_kernel(negative, 128, published) < -1e-3


@pytest.mark.parametrize(
    ("label", "base"),
    [
        ("2k", 1.16e4),
        ("4k", 26_953),
        ("8k", 8.38e4),
        ("16k", 2.317e5),
        ("32k", 6.3e5),
        ("64k", 2.1e6),
        ("128k", 4.87e6),
    ],
)
def test_the_smaller_bases_of_a_finer_search(label, base):
    # Su (2024) gives 1.2e4, 2.7e4, 8.4e4, 2.3e5, 6.3e5, 2.1e6 and 4.9e6 for these, all to two digits.
    length = D.tokens(label)
    assert D.reach(base, 128, length) == length


def test_the_admissible_bases_are_no_interval():
    grid = D.significant_grid(3, 4000, 7000)
    found = D.runs(grid, [D.reach(base, 128, 1024) for base in grid], 1024)
    assert [(run.first, run.last) for run in found] == [(4300, 4330), (5610, 5640), (6020, 7000)]
    assert D.smallest_base(1024, grid) == 4300
    assert D.smallest_base(1024, grid[:30]) is None


@given(st.lists(st.integers(1, 10), max_size=30))
def test_runs_are_those_of_a_plain_search(reaches):
    grid = [float(j + 1) for j in range(len(reaches))]
    found = D.runs(grid, reaches, 5)
    admissible = {base for base, reached in zip(grid, reaches, strict=True) if reached >= 5}
    inside = [base for base in grid if any(run.first <= base <= run.last for run in found)]
    assert set(inside) == admissible
    assert sum(run.count for run in found) == len(admissible)
    assert all(after.first - before.last > 1 for before, after in itertools.pairwise(found))


# --- Bad input ---

ONES = torch.ones(8)
BATCH = torch.ones(2, 3, 4)
COS = lambda distances: distances.double().cos()  # noqa: E731  (a curve for the calls below)
BAD = [
    ("partial_sums(0, 7)", ValueError, r"dim must be .* got 7"),
    ("mean_partial_sum(0, 8, 0.5)", ValueError, r"base must be .* got 0.5"),
    ("mean_partial_sum(math.nan, 8)", ValueError, r"distances must lie .* got nan"),
    ("partial_sum_floor(0)", ValueError, r"dim must be .* got 0"),
    ("random_walk_level(8.0)", TypeError, r"dim must be .* got 8.0"),
    ("bounds(ONES, ONES[:6], 0)", ValueError, "q and k must agree"),
    ("bounds(ONES, ONES, [2**31 + 1])", ValueError, "distances must lie"),
    ("bounds(ONES, ONES, 0, math.nan)", ValueError, r"base must be .* got nan"),
    ('bounds(ONES, ONES, 0, layout="split")', ValueError, "layout must be one of .* got 'split'"),
    ("summarize(COS, 0)", ValueError, "length must be .* got 0"),
    (
        "summarize(lambda distances: COS(distances)[:1], 2)",
        ValueError,
        r"curve must give one value .* \(2,\), got \(1,",
    ),
    ("summarize(lambda distances: COS(distances) / 0 * 0, 2)", ValueError, "curve must give numbers, got NaN"),
    ("summarize(lambda distances: distances, 2)", TypeError, "what curve gives must be a floating-point tensor"),
    ("windows(COS, [3])", ValueError, r"edges must be two or more, and increase, got \[3\]"),
    ("windows(COS, [0, 5, 5])", ValueError, "edges must be two or more, and increase"),
    ("windows(COS, [-1, 5])", ValueError, "edges must be .* got -1"),
    ("windows(COS, [0, 5.0])", TypeError, "edges must be .* got 5.0"),
    ("first_below(COS, math.nan, 5)", ValueError, "level must be .* got nan"),
    ("first_below(COS, 0, 2**31 + 1)", ValueError, "length must be .* got 2147483649"),
    ("first_return(0, 5, 8)", ValueError, "share must be .* got 0"),
    ("first_return(1.5, 5, 8)", ValueError, "share must be .* got 1.5"),
    ("first_return(0.5, 5, 9)", ValueError, "dim must be .* got 9"),
    ("score_curve(-1, 5, ONES, ONES)", ValueError, "query_position must be .* got -1"),
    ("score_curve(0, 0, ONES, ONES)", ValueError, "length must be .* got 0"),
    ("score_curve(0, 5, [1.0], ONES)", TypeError, "q must be a floating-point tensor, got list"),
    ("random_scores(0, 7)", ValueError, "dim must be .* got 7"),
    ("random_scores(0, 8, samples=1)", ValueError, "samples must be .* got 1"),
    ("random_scores(0, 8, seed=0.5)", TypeError, "seed must be .* got 0.5"),
    ("random_scores('far', 8)", TypeError, "distances must be .* got 'far'"),
    ("diagonal_weight(ONES, ONES)", ValueError, r"q must have shape \(trials >= 2, .* got \(8,\)"),
    ("diagonal_weight(BATCH[:1], BATCH)", ValueError, r"q must have .* got \(1, 3, 4\)"),
    ("diagonal_weight(BATCH, BATCH[:, :0])", ValueError, r"k must have .* got \(2, 0, 4\)"),
    ("diagonal_weight(BATCH, BATCH[:, :2])", ValueError, "q and k must have one shape"),
    ("diagonal_weight(BATCH, BATCH, 0.0)", ValueError, "base must be .* got 0.0"),
    ("sweep(10, bases=[0.5])", ValueError, "base must be .* got 0.5"),
    ("sweep(10, dims=[3])", ValueError, "dim must be .* got 3"),
    ("sweep(0)", ValueError, "length must be .* got 0"),
    ("turned_pairs(0, 8)", ValueError, "context must be .* got 0"),
    ("turned_pairs(10, 8, math.inf)", ValueError, "base must be .* got inf"),
    ("tokens('4K')", ValueError, "label must be a whole number with k or M, .* got '4K'"),
    ("tokens('4k', 1001)", ValueError, "thousand must be one of 1000, 1024, got 1001"),
    ("reach(math.nan, 128, 10)", ValueError, "base must be .* got nan"),
    ("reach(1e4, 127, 10)", ValueError, "dim must be .* got 127"),
    ("reach(1e4, 128, 0)", ValueError, "limit must be .* got 0"),
    ("significant_grid(0, 1, 2)", ValueError, "digits must be .* got 0"),
    ("significant_grid(2, 0.5, 2)", ValueError, "low must be .* got 0.5"),
    ("significant_grid(2, 10, 9)", ValueError, "high must be .* got 9"),
    ("smallest_base(0, [1.0])", ValueError, "length must be .* got 0"),
    ("smallest_base(10, [2.0, 1.0])", ValueError, "bases must rise"),
    ("smallest_base(10, [0.5])", ValueError, "bases must be .* got 0.5"),
    ("runs([1.0, 1.0], [1, 1], 5)", ValueError, "bases must rise"),
    ("runs([1.0, 2.0], [1], 5)", ValueError, "bases and reaches must be equally many, got 2 and 1"),
    ("compare(0, 1e4, [1e4])", ValueError, "length must be .* got 0"),
    ("compare(10, 0.5, [1e4])", ValueError, "base must be .* got 0.5"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        eval(call, {**vars(D), "ONES": ONES, "BATCH": BATCH, "COS": COS})


def test_every_public_function_has_bad_input_and_a_description():
    public = {
        name: value
        for name, value in vars(D).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == D.__name__
    }
    functions = {name for name, value in public.items() if inspect.isfunction(value)}
    assert functions == {call.partition("(")[0] for call, *_ in BAD}
    assert all(inspect.getdoc(value) for value in public.values())


def test_by_default_the_base_is_that_of_the_paper():
    for value in vars(D).values():
        if inspect.isfunction(value) and value.__module__ == D.__name__:
            base = inspect.signature(value).parameters.get("base")
            assert base is None or base.default in (10000, inspect.Parameter.empty)
