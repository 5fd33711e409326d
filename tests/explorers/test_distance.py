"""Tests specific to the Distance explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ropebook import decay
from ropebook.explorers.distance import Distance
from tests.explorers import draws, js
from tests.explorers.helpers import theta
from tests.explorers.oracles import oracle


def scores_by_turning(dials: dict, keys: np.ndarray) -> np.ndarray:
    """Compute Re Σ q e^{imθ} conj(k e^{inθ}): query and key are complex numbers, each rotated by its own position."""
    dim, draw = dials["dim"], dials["draw"]
    entries = {
        "ones": np.ones((2, dim)),
        "same": [draws.normals(f"distance query {draw}", dim)] * 2,
        "random": [draws.normals(f"distance {name} {draw}", dim) for name in ("query", "key")],
        "slow": np.arange(dim) >= dim // 4 * 2 + np.zeros((2, 1)),
    }[dials["vectors"]]
    q, k = (np.array(one)[0::2] + 1j * np.array(one)[1::2] for one in entries)
    turns = theta(dim, dials["base"])
    turned = k * np.exp(1j * np.multiply.outer(keys, turns))
    return (q * np.exp(1j * dials["query"] * turns) * turned.conj()).real.sum(-1)


@pytest.mark.parametrize("vectors", Distance.vectors.values)
@pytest.mark.parametrize("dim, query, length", [(64, 100, 300), (6, 0, 41), (2, 3, 4)])
def test_every_score_of_a_short_text(vectors, dim, query, length):
    dials = {**Distance().dials(), "dim": dim, "query": query, "length": length, "vectors": vectors, "draw": 4}
    found = oracle(Distance).compute(dials)
    scores = scores_by_turning(dials, np.arange(length))
    np.testing.assert_allclose(found["low"], scores, atol=1e-10)
    assert found["low"] == found["high"]
    assert (found["per"], found["reach"]) == (1, length)
    assert found["home"] == pytest.approx(scores[query], abs=1e-10)
    assert found["least"] == pytest.approx(scores.min(), abs=1e-10)
    assert scores[found["leastAt"]] == pytest.approx(scores.min(), abs=1e-8)
    away = np.abs(np.arange(length) - query)
    negative = away[scores < -1e-12]
    assert (found["negativeAt"] >= 0) == bool(len(negative))
    if len(negative):
        assert away[found["negativeAt"]] == negative.min()
    maxima = [scores[n - 1] < scores[n] >= scores[n + 1] for n in range(1, length - 1)]
    assert found["maxima"] == sum(maxima)


@pytest.mark.parametrize(
    "dim, length, least, least_at, negative",
    [
        (256, 512, 49.7, 509, -1),
        (16, 512, -4.09, 286, 91),
        (8, 512, -3.88, 286, 91),
        (256, 65536, -50.8, 17815, 2653),
    ],
)
def test_the_figures_of_the_study_note(dim, length, least, least_at, negative):
    """The expected values come from a scan of the whole curve. In the mirrored figure, the query is at position 256."""
    dials = {**Distance().dials(), "dim": dim, "query": 0, "length": length}
    found = oracle(Distance).compute(dials)
    assert found["least"] == pytest.approx(least, abs=0.05)
    assert found["negativeAt"] == negative
    assert found["leastAt"] == least_at
    assert found["home"] == dim
    mirrored = oracle(Distance).compute({**dials, "query": 256})
    assert mirrored["negativeAt"] == {-1: -1, 91: 256 - 91, 2653: 256 + 2653}[negative]


def test_the_maxima_are_those_of_the_curve():
    dials = {**Distance().dials(), "dim": 8, "query": 0, "length": 4096}
    found = oracle(Distance).compute(dials)["maxima"]
    assert found == decay.summarize(lambda at: decay.distance_kernel(at, 8), 4096).local_maxima


@pytest.mark.parametrize("length", [4097, 65536, 1_000_000])
@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_which_keys_of_a_long_text_are_looked_at(length, share):
    query = round(share * (length - 1))
    keys, per, reach = (np.asarray(one) for one in oracle(Distance).sampled_keys(query, length))
    assert len(keys) <= 3072 + 4096
    assert keys.min() == 0
    assert keys.max() < length
    columns = math.ceil(length / per)
    assert columns <= 512
    assert set(keys // per) == set(range(columns))
    looked_at = set(keys.tolist())
    near = {key for key in range(max(0, query - reach + 1), min(length, query + reach))}
    assert near <= looked_at
    edge = {query - int(reach), query + int(reach)} & set(range(length))
    assert edge
    assert not edge <= set(keys[:3072].tolist())
    gaps = np.diff(np.sort(keys[3072:][keys[3072:] < per]))
    # the samples are unevenly spaced, so a wave whose period matches the sampling doesn't look flat
    assert len(set(gaps.tolist())) > 1


def test_the_band_of_samples_is_within_the_band_of_all_scores():
    dials = {**Distance().dials(), "dim": 32, "query": 9000, "length": 20_000, "vectors": "random"}
    found = oracle(Distance).compute(dials)
    per = found["per"]
    assert (per, len(found["low"]), found["maxima"]) == (40, 500, -1)
    scores = scores_by_turning(dials, np.arange(20_000)).reshape(500, 40)
    low, high = np.array(found["low"]), np.array(found["high"])
    assert (low >= scores.min(1) - 1e-9).all()
    assert (high <= scores.max(1) + 1e-9).all()
    whole = slice(9000 // per - 30, 9000 // per + 30)  # near the query, every key is sampled
    np.testing.assert_allclose(low[whole], scores.min(1)[whole], atol=1e-9)
    np.testing.assert_allclose(high[whole], scores.max(1)[whole], atol=1e-9)
    assert ((high - low) / np.ptp(scores, axis=1)).mean() > 0.6
    assert found["least"] == min(found["low"])


def test_a_single_fast_wave_fills_the_band_to_both_edges():
    """Every column contains crests and troughs, which a line through evenly spaced samples would miss."""
    found = oracle(Distance).compute({**Distance().dials(), "dim": 2, "query": 0, "length": 1_000_000})
    assert np.mean(np.multiply(found["low"], found["high"]) < 0) > 0.995
    assert np.mean(found["high"]) > 1.7
    assert np.mean(found["low"]) < -1.7


def test_equal_vectors_are_alike_on_both_sides_and_random_ones_are_not():
    for vectors, alike in (("ones", True), ("same", True), ("slow", True), ("random", False)):
        found = oracle(Distance).compute({**Distance().dials(), "query": 200, "length": 401, "vectors": vectors})["low"]
        difference = np.abs(np.array(found) - found[::-1]).max()
        assert difference < 1e-9 if alike else difference > 10, vectors


def test_of_equals_the_nearest_and_of_two_as_near_the_earlier():
    alike = {**Distance().dials(), "dim": 16, "query": 256, "length": 513}
    both = [oracle(Distance).compute(alike), *js.compute(Distance._esm, [alike])]
    for found in both:
        assert found["leastAt"] < 256
        assert found["negativeAt"] == 256 - 91
    assert oracle(Distance).nearest(torch.tensor([]), 3) == -1


@pytest.mark.parametrize("vectors, swing", [("ones", 8.0), ("slow", 32**0.5)])
def test_the_swing_is_the_root_mean_square_far_away(vectors, swing):
    dials = {**Distance().dials(), "dim": 64, "base": 100.0, "query": 0, "length": 2, "vectors": vectors}
    assert oracle(Distance).compute(dials)["swing"] == pytest.approx(swing)
    far = scores_by_turning(dials, np.arange(50_000, 250_000, 7))
    assert np.sqrt(np.mean(far**2)) == pytest.approx(swing, rel=0.05)


def test_the_score_in_words():
    dials = Distance().dials()
    cases = [
        {**dials, "query": 0},
        {**dials, "query": 0, "length": 65536},
        {**dials, "vectors": "random", "dim": 64, "query": 400, "length": 1000},
        {**dials, "dim": 256, "query": 0, "length": 8000, "base": 1e7},
        {**dials, "dim": 2, "query": 0, "length": 4},
        dials,
    ]
    short, long_, unlike, smooth, tiny, alike = js.describe(Distance, cases)
    assert short.startswith(
        "At the query’s own position the score is 256. It is never negative. Its lowest value is 49.7, 509 "
    )
    assert short.endswith("local maxima.")  # with the query at position 0, there is only one side
    assert (
        "It first goes negative 2,653 tokens away. Its lowest value among the samples is −50.8, 17,815 tokens away."
        in long_
    )
    assert "local maxi" not in long_
    assert "It first goes negative at the query itself" in unlike
    assert unlike.endswith("The two sides of the query differ, because q is not k.")
    assert "Among the samples it is never negative" in smooth
    assert "There are no local maxima." in tiny
    assert alike.endswith("local maxima. Equal distances on both sides give equal scores, because q\u00a0=\u00a0k.")


def test_the_buttons_have_the_figures_of_the_module():
    found = [(one["query"], one["length"], one["dim"]) for one in js.inside(Distance, "return FIGURES;")]
    assert found == list(decay.FIGURES)
