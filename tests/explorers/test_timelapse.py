"""Tests specific to the Timelapse explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ropebook import extrapolation
from ropebook.explorers.timelapse import Timelapse
from ropebook.sinusoidal import inv_freq
from tests.explorers import js
from tests.explorers.oracles import expected_of, oracle


def test_bases_grow_beyond_the_trained_length():
    figure = Timelapse(length=100, trained_length=64, factor=3.0, dim=16)
    found, terms = expected_of(figure), oracle(type(figure)).terms(figure.dials())
    expected = [1e4 * max(1, 3 * n / 64 - 2) ** (16 / 14) for n in range(1, 101)]
    np.testing.assert_allclose(found["bases"], expected, rtol=1e-12)
    assert found["bases"][:64] == [1e4] * 64
    assert found["scale"] == pytest.approx(3 * 100 / 64 - 2, rel=1e-14)
    assert found["keys"] == list(range(100))
    assert set(terms) == set(found)
    assert terms["errors"] == [1.0] * 100


def test_the_error_of_a_score_is_what_random_queries_and_keys_find():
    """The expected error is the error of cached keys, measured over 20000 draws, in units of the measured standard
    deviation."""
    figure = Timelapse(length=40, trained_length=16, factor=2.0, dim=8)
    found = expected_of(figure)
    draws = torch.Generator().manual_seed(0)
    q = torch.randn(20000, 8, generator=draws, dtype=torch.float64)
    k = torch.randn(20000, 40, 8, generator=draws, dtype=torch.float64)
    measured = extrapolation.cache_error(extrapolation.DynamicNTK(16, 2.0), q, k, inv_freq(8))
    off = (measured.cached - measured.exact).square().mean(0).sqrt() / measured.exact.square().mean(0).sqrt()
    np.testing.assert_allclose(found["errors"], off, atol=0.02)
    assert found["errors"][0] == found["errors"][-1] == 0
    assert max(found["errors"]) > 0.2
    assert found["error"] == pytest.approx(math.sqrt(sum(e * e for e in found["errors"]) / 40), rel=1e-12)


def test_up_to_the_trained_length_no_score_is_off():
    found = oracle(Timelapse).compute(Timelapse(length=64).dials())
    assert max(found["errors"]) == found["error"] == 0
    assert oracle(Timelapse).compute(Timelapse(length=65).dials())["error"] > 0


def test_of_a_long_text_256_keys_are_looked_at():
    figure = Timelapse(room=4096, length=4096, trained_length=1024, dim=4)
    found = expected_of(figure)
    assert len(found["bases"]) == 4096
    assert [len(found["keys"]), found["keys"][0], found["keys"][-1]] == [256, 0, 4095]
    steps = np.diff(found["keys"])
    assert set(steps.tolist()) == {16, 17}
    short = oracle(type(figure)).compute({**figure.dials(), "length": 1})
    assert (short["keys"], short["errors"]) == ([0], [0.0])


def test_the_cache_in_words():
    cases = [Timelapse(length=n).dials() for n in (1, 64, 65, 2, 160)]
    alone, trained, first, both, later = js.describe(Timelapse, cases)
    assert alone == "The only token is rotated with the trained base, 10,000, so every score is right."
    every = "All 64 tokens, including the query, are rotated with the trained base, 10,000, so every score is right."
    assert trained == every
    assert "the 64 keys before it keep the trained base, so" in first
    assert (
        both == "Both tokens, including the query, are rotated with the trained base, 10,000, so every score is right."
    )
    assert later == (
        "The query, token 160, is rotated with base 25,750, but the 159 keys before it keep 96 older bases, so its "
        "scores are wrong."
    )
    error = oracle(Timelapse).compute(cases[-1])["error"]
    stats = js.inside(Timelapse, "return input.map((values) => stats(compute(values), values));", [cases[-1]])[0]
    assert stats[0] == ["Error of the scores", f"{error:.2f}", "times their spread, for random q and k"]


def test_a_small_error_does_not_look_like_0():
    cases = [Timelapse(dim=4, base=1e7, factor=16.0, length=n).dials() for n in (64, 256)]
    none, small = js.inside(Timelapse, "return input.map((values) => stats(compute(values), values)[0][1]);", cases)
    assert none == "0.00"
    assert float(small) == pytest.approx(oracle(Timelapse).compute(cases[1])["error"], rel=0.01)
    assert 0 < float(small) < 0.005
