"""Test that LongRoPE's search finds factors that are known beforehand."""

import math

import pytest
import torch

from ropebook import extrapolation as X
from ropebook.sinusoidal import inv_freq as plain
from tests.helpers import largest


def test_the_search_finds_factors_that_are_known():
    theta = plain(16)
    target = torch.tensor([1.0, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 4.5], dtype=torch.float64)
    calls = []

    def objective(factors):
        calls.append(factors)
        return (factors.log() - target.log()).square().sum().item()

    def search():
        generator = torch.Generator().manual_seed(0)
        return X.search_factors(objective, theta, 4.0, 512, generations=40, generator=generator)

    found = search()
    known = [X.stretch(m, theta) for m in (X.Interpolation(4.0), X.NTKAware(4.0), X.YaRN(4.0, 512))]
    assert found.value < min(objective(factors) for factors in known) / 20
    assert found.value == objective(found.factors) == found.history[-1]
    assert len(found.history) == 41
    assert found.history == sorted(found.history, reverse=True)
    assert found.history[0] <= min(objective(factors) for factors in known)
    for factors in calls:
        assert factors.dtype == torch.float64
        assert (factors >= 1).all()
        assert (factors <= 5).all()
        assert (factors.diff() >= 0).all()
    assert len(calls) < 32 * 41 + 10
    assert torch.equal(search().factors, found.factors)
    method = X.LongRoPE([1.0] * 8, found.factors, 512, 4.0)
    assert method(theta, 2048)[0].tolist() == pytest.approx((theta / found.factors).tolist())


def test_the_search_is_never_worse_than_what_it_starts_from():
    theta = plain(8)

    def objective(factors):  # this function is smallest, exactly 0, at the factors of NTK-aware scaling
        return largest(factors - X.stretch(X.NTKAware(4.0), theta))

    found = X.search_factors(objective, theta, 4.0, 512, generations=1, population=8)
    assert found.value == 0
    assert X.search_factors(lambda f: 1, theta, 1.0, 512, generations=1, population=8).factors.tolist() == [1] * 4


def test_what_the_search_tries_first():
    # With s = 1, all factors of the three known methods are 1. The other candidates are therefore mutations of a vector
    # of ones, and their factors are limited to 1 … 1.25.
    tried = []

    def objective(factors):
        tried.append(factors)
        return 0.0

    X.search_factors(objective, plain(128), 1.0, 512, generations=1, population=1000,
                     generator=torch.Generator().manual_seed(0))  # fmt: skip
    first = torch.stack(tried[:1000])
    assert (first[:3] == 1).all()
    assert len(tried) == 1000 + 750  # the best quarter of each generation survives
    assert first.max() == 1.25
    # Three in ten entries are changed. Half of these changes make the entry smaller than 1, so it is reset to 1.
    moved = (first[3:] > 1).double().mean().item()
    assert moved == pytest.approx(0.15, abs=0.01)
    # A candidate's largest change is between 1 per cent and a factor of e, evenly distributed on a logarithmic scale.
    most = first[3:].amax(1).log()
    assert (most > 0.0075).double().mean() > 0.9
    for low, high, share in ((0.01, 0.0316, 0.25), (0.0316, 0.1, 0.25)):
        inside = ((most > 0.95 * low) & (most <= 0.95 * high)).double().mean().item()
        assert inside == pytest.approx(share, abs=0.06)
    # The factors of each candidate are in ascending order.
    assert (first.diff() >= 0).all()


def test_the_search_works_with_the_least_population():
    found = X.search_factors(lambda f: f.sum().item(), plain(8), 2.0, 512, generations=1, population=8)
    assert len(found.history) == 2


def test_the_search_refuses():
    theta = plain(8)
    for options, error, message in [
        ({"generations": 0}, ValueError, "generations must be an integer >= 1"),
        ({"population": 7}, ValueError, "population must be an integer >= 8"),
        ({"generator": 0}, TypeError, "generator must be a torch.Generator or None, got 0"),
        ({"objective": lambda f: math.nan}, ValueError, "the objective's value must be a finite number"),
        ({"objective": lambda f: f}, TypeError, "the objective's value must be a finite number"),
        ({"factor": 0.5}, ValueError, "factor must be a finite number >= 1"),
    ]:
        arguments = {"objective": lambda f: 0.0, "inv_freq": theta, "factor": 4.0, "trained_length": 512} | options
        with pytest.raises(error, match=message):
            X.search_factors(**arguments)
