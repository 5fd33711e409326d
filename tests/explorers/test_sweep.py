"""Tests specific to the Sweep explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ropebook import decay
from ropebook.explorers.sweep import Sweep
from tests.explorers import js
from tests.explorers.helpers import theta
from tests.explorers.oracles import oracle


def test_the_recorded_sweep():
    """Check the half-distance and the first negative distance of ten bases at dim 128. The expected values come from
    scans of the curves."""
    halves = [2, 2, 3, 5, 12, 16, 46, 102, 197, 449]
    negative = [2, 3, 5, 59, 171, 361, 1707, -1, -1, -1]
    means = [0, 0, 0, 0, 0, -0.006, 0.136, 0.307, 0.419, 0.503]
    found = [
        oracle(Sweep).compute({**Sweep().dials(), "base": base, "dim": 128, "length": 4096}) for base in decay.BASES
    ]
    assert [one["belowHalf"] for one in found] == halves
    assert [one["firstNegative"] for one in found] == negative
    assert [one["mean"] for one in found] == pytest.approx(means, abs=5e-3)
    assert all(one["halves"] == halves for one in found)


def cosines(distances: object, dim: int, base: float) -> np.ndarray:
    """Compute the mean of cos Δθ_i at each distance directly from the formula."""
    return np.cos(np.multiply.outer(np.array(distances), theta(dim, base))).mean(-1)


@pytest.mark.parametrize("base, dim, length", [(37.5, 6, 700), (1.0, 2, 16), (1e4, 64, 130)])
def test_the_curves_of_the_sweep(base, dim, length):
    found = oracle(Sweep).compute({**Sweep().dials(), "base": base, "dim": dim, "length": length})
    values = cosines(range(length), dim, base)
    np.testing.assert_allclose(found["values"], values, atol=1e-12)
    assert found["least"] == pytest.approx(values.min(), abs=1e-12)
    assert found["leastAt"] == values.argmin()
    assert found["mean"] == pytest.approx(values.mean(), abs=1e-12)
    assert found["maxima"] == sum(values[k - 1] < values[k] >= values[k + 1] for k in range(1, length - 1))
    for other, curve, half in zip(decay.BASES, found["curves"], found["halves"], strict=True):
        expected = cosines(found["distances"], dim, other)
        np.testing.assert_allclose(curve, expected, atol=1e-12)
        below = np.flatnonzero(cosines(range(length), dim, other) < 0.5)
        assert half == (below[0] if len(below) else -1)
    assert found["distances"] == oracle(Sweep).sampled_distances(length).tolist()


@pytest.mark.parametrize("pairs", [1, 2, 7])
def test_sums_of_several_waves_at_even_steps(pairs):
    """The explorers' curves consist of such sums, with any number of pairs, any step and any number of waves."""
    a, b = np.random.default_rng(pairs).normal(size=(2, 3, pairs))
    waves = [{"a": one.tolist(), "b": other.tolist()} for one, other in zip(a, b, strict=True)]
    for start, step, count in [(0, 1, 1), (500, -1, 130), (-70.5, 0.25, 64), (10**6, -1954, 512)]:
        body = "return fourierSums(invFreq(input.dim, 500), input.waves, ...input.at);"
        found = js.inside(Sweep, body, {"dim": 2 * pairs, "waves": waves, "at": [start, step, count]})
        angles = np.multiply.outer(start + step * np.arange(count), theta(2 * pairs, 500))
        expected = a @ np.cos(angles).T + b @ np.sin(angles).T
        np.testing.assert_allclose(found, expected, atol=1e-12 + 1e-15 * pairs * (abs(start) + abs(count * step)))


def test_where_the_pixels_of_a_panel_begin():
    for sampled, length in [(False, 4096), (True, 4096), (True, 130), (False, 16)]:
        found = js.inside(Sweep, "return pixelsOf(...input);", [sampled, 140.5, length])
        distances = oracle(Sweep).sampled_distances(length).numpy() if sampled else np.arange(length)
        places = np.log(distances[1:]) / math.log(length - 1) * 140.5
        first = np.flatnonzero(np.diff(np.floor(places + 1e-12), prepend=-1))
        assert found["edges"] == [*(first + 1).tolist(), len(distances)]
        np.testing.assert_allclose(found["at"], places[first], atol=1e-9)


def test_distances_are_all_there_at_first_and_then_sixty_four_to_an_octave():
    found = oracle(Sweep).sampled_distances(4096).tolist()
    assert found[:128] == [*range(128)]
    for low in (128, 256, 512, 1024, 2048):
        octave = [at for at in found if low <= at < 2 * low]
        assert octave == [*range(low, 2 * low, low // 64)]
    assert max(found) < 4096
    assert oracle(Sweep).sampled_distances(50).tolist() == [*range(50)]


def test_the_sweep_in_words():
    at = {"dim": 128, "length": 4096}
    cases = [{**at, "base": 1e4}, {**at, "base": 1e7}, {**at, "base": 1}, {"base": 1e7, "dim": 2, "length": 16}]
    usual, large, one, pair = (text.replace("\u00a0", " ") for text in js.describe(Sweep, cases))
    assert usual == (
        "At distances up to 4,095, the score first falls below half of its peak at Δ = 46 and below 0 at Δ = 1,707. "
        "On average it is 0.136 of its peak."
    )
    assert "first falls below half of its peak at Δ = 449 and is never negative." in large
    assert one.endswith(
        "On average it is about 0. "
        "All pairs rotate at the same speed, so the score is a single cosine, which never dies down."
    )
    assert pair.endswith("There is only one pair, so the score is a single cosine at any base.")
    bare = {"belowHalf": -1, "firstNegative": -1, "mean": -1e-5}
    words = js.inside(Sweep, "return describe(input, { base: 9, dim: 4, length: 20 });", bare)
    assert words.endswith("the score stays above half of its peak and is never negative. On average it is about 0.")
    names = js.inside(Sweep, "return input.map(baseName);", [1, 100, 500, 1000, 1e7, 1234.5])
    assert names == ["b = 1", "b = 100", "b = 500", "b = 10³", "b = 10⁷", "b = 1,234.5"]
    assert names == ["b = 1", "b = 100", "b = 500", "b = 10³", "b = 10⁷", "b = 1,234.5"]
