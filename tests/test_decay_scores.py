"""Tests of scores as a function of distance, compared with 40-digit arithmetic, plain loops and closed forms."""

import math

import numpy as np
import pytest
import torch

from ropebook import decay as D
from ropebook import sinusoidal
from ropebook.derivation import score
from tests.helpers import LargestTensor, random
from tests.sinusoidal_helpers import exact_kernel

LAYOUTS = ["interleaved", "half"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_score_curve_is_the_score_of_each_key(layout, float64_device):
    q, k = random(2, 3, 8)
    found = D.score_curve(4, 10, q.to(float64_device), k.to(float64_device), 100, layout)
    assert found.device.type == float64_device.type
    expected = [[score(a, b, 4, n, 100, layout).item() for n in range(10)] for a, b in zip(q, k, strict=True)]
    assert torch.allclose(found.cpu(), torch.tensor(expected).double(), atol=1e-12)


def test_the_figures_are_the_notes_six():
    # The position of the query, the length, and d, in the order in which the note draws the figures.
    assert [tuple(figure) for figure in D.FIGURES] == [
        (0, 512, 256), (256, 512, 256), (0, 65536, 256), (0, 65536, 16), (0, 65536, 8), (0, 512, 8),
    ]  # fmt: skip


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
    # S0.11 says "about 10000". At 2000π = 6283.19, the pairs with θ = 1, 1/10, 1/100 and 1/1000 are all back at their
    # initial angles.
    assert sinusoidal.exact_period(8) == pytest.approx(2000 * math.pi)
    assert D.first_return(0.99, 10_000, 8) == 6283
    assert D.first_return(0.95, 10_000, 16) is None
    late = D.first_return(0.95, 10**6, 16)
    assert late > 6283
    assert exact_kernel(late, 16, 10000) >= 0.95 * 8
    assert all(exact_kernel(late - step, 16, 10000) < 0.95 * 8 for step in (1, 2))


def test_a_return_to_exactly_the_share_counts():
    # With d = 2 and base 1, K(Δ) = cos Δ. The curve falls below cos 6 immediately and returns to cos 6 at Δ = 6.
    assert D.first_return(D.distance_kernel(6, 2, 1).item(), 50, 2, 1) == 6
    # A share of 1 is allowed, but K(0) itself doesn't count as a return. Below 400, the curve comes closest to K(0) at
    # Δ = 355.
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
    # For a given q, the score is normally distributed with variance |q|². Over all q, its kurtosis is 3(1 + 2/d), so
    # the relative error of the estimated standard deviation is about 0.5%.
    assert ((found.std / math.sqrt(32) - 1).abs() < 0.03).all()


def test_random_scores_are_those_of_the_same_draws_in_any_batches(monkeypatch):
    distances = [0, 3, 50]
    whole = D.random_scores(distances, 8, samples=7, seed=5)
    generator = torch.Generator().manual_seed(5)
    q, k = torch.randn(2, 7, 8, generator=generator, dtype=torch.float64)
    plain = np.array([[score(a, b, n, 0).item() for n in distances] for a, b in zip(q, k, strict=True)])
    assert whole.mean.numpy() == pytest.approx(plain.mean(0), abs=1e-12)
    assert whole.std.numpy() == pytest.approx(plain.std(0, ddof=1), abs=1e-12)
    monkeypatch.setattr(D.curves, "CHUNK", 6)
    cut = D.random_scores(distances, 8, samples=7, seed=5)
    assert cut.mean.shape == (3,)
    assert not torch.equal(D.random_scores(distances, 8, samples=7, seed=6).mean, cut.mean)


def test_random_scores_of_no_distance_and_of_two_samples():
    for part in D.random_scores([], 8):
        assert part.shape == (0,)
    q, k = torch.randn(2, 2, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    scores = [(a @ b).item() for a, b in zip(q, k, strict=True)]
    found = D.random_scores(0, 8, samples=2)  # the default seed is 0
    assert found.mean.item() == pytest.approx(sum(scores) / 2, abs=1e-12)
    assert found.std.item() == pytest.approx(abs(scores[0] - scores[1]) / math.sqrt(2), rel=1e-9)


def test_random_scores_takes_a_thousand_samples_by_default():
    found = [D.random_scores([0, 7], 8, **options) for options in ({}, {"samples": 1000}, {"samples": 999})]
    assert torch.equal(found[0].mean, found[1].mean)
    assert not torch.equal(found[0].mean, found[2].mean)


def test_random_scores_of_more_distances_than_fit_into_memory_go_sample_by_sample(monkeypatch):
    monkeypatch.setattr(D.curves, "CHUNK", 2)
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
        # here the keys equal the queries, whether they are rotated or not
        assert D.diagonal_weight(q, q, base).value > 10


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
    # A single key gets all the weight, and at least two trials are needed to determine an error.
    found = D.diagonal_weight(torch.ones(2, 1, 4), torch.ones(2, 1, 4))
    assert found == (1, 0)


def test_scores_of_random_vectors_take_bounded_memory():
    with LargestTensor() as seen:
        D.random_scores(torch.arange(1000), 16, samples=500)
    assert seen.numel <= D.CHUNK
