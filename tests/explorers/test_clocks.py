"""Tests specific to the Clocks explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ropebook.explorers.clocks import Clocks
from tests.explorers import js
from tests.explorers.helpers import theta
from tests.explorers.oracles import computed, oracle


def test_digits_and_hands_of_a_position():
    dials = Clocks(position=1234, base=8192.0, dim=26, span=20).dials()
    found, terms = oracle(Clocks).compute(dials), oracle(Clocks).terms(dials)
    assert found["digits"] == [int(digit) for digit in reversed(f"{1234:013b}")]
    angle = 1234 * theta(26, 8192.0)
    np.testing.assert_allclose(found["turns"], angle / (2 * math.pi), rtol=1e-14)
    np.testing.assert_allclose(found["encoding"], np.stack([np.sin(angle), np.cos(angle)], -1).ravel(), atol=1e-12)
    np.testing.assert_allclose(found["wavelengths"][1:], 2 * np.array(found["wavelengths"][:-1]), rtol=1e-12)
    assert found["wavelengths"][0] == 2 * math.pi
    assert found["young"] == sum(length > 1234 for length in found["wavelengths"]) == 5
    for name in ("start", "fine", "shown", "digits", "squares", "young"):
        assert terms[name] == 0
    for name in ("bitWaves", "waves", "turns", "encoding", "wavelengths"):
        np.testing.assert_array_equal(terms[name], np.abs(found[name]))


@pytest.mark.parametrize(
    "position, span, start, fine",
    [(100, 64, 68, 8), (100, 9, 96, 32), (3, 64, 0, 8), (2000, 300, 1850, 1), (0, 512, 0, 1), (9, 256, 0, 2)],
)
def test_the_window_around_a_position(position, span, start, fine):
    found = computed(Clocks, position=position, base=100.0, dim=4, span=span)
    assert (found["start"], found["fine"]) == (start, fine)
    whole = np.arange(start, start + span)
    assert found["squares"] == [[m >> j & 1 for m in whole.tolist()] for j in range(13)]
    at = np.array([start - 0.5 + (k + 0.5) / fine for k in range(span * fine)])
    np.testing.assert_allclose(found["waves"], np.sin(np.outer([1, 0.1], at)), atol=1e-12)
    inside = [-np.sin(2 * math.pi * (at + 0.5) / 2 ** (j + 1)) for j in range(13)]
    np.testing.assert_allclose(found["bitWaves"], inside, atol=1e-11)
    # the wave is positive where the binary digit is 1
    centres = np.array(found["bitWaves"])[:, fine // 2 :: fine]
    assert ((centres > 0) == (np.array(found["squares"]) == 1)).all()


@pytest.mark.parametrize(
    "dim, shown",
    [
        (2, [0]),
        (26, list(range(13))),
        (28, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13]),
        (512, [0, 21, 42, 63, 85, 106, 127, 148, 170, 191, 212, 233, 255]),
    ],
)
def test_which_pairs_are_drawn_as_waves(dim, shown):
    dials = Clocks(position=5, base=1e4, dim=dim, span=10).dials()
    found = oracle(Clocks).compute(dials)
    assert found["shown"] == shown
    assert len(found["waves"]) == len(shown)
    k = len(shown) - 1
    assert found["waves"][k][found["fine"] // 2] == pytest.approx(
        math.sin(theta(dim, 1e4)[shown[k]] * (0.5 / 32)), rel=1e-9
    )
    assert len(found["turns"]) == dim // 2


def test_the_clocks_in_words():
    dials = Clocks(position=100, base=1e4, dim=16, span=64).dials()
    cases = [dials, {**dials, "dim": 2}, {**dials, "position": 0}, {**dials, "dim": 4, "position": 100}]
    some, single, none, one = js.inside(
        Clocks, "return input.map((values) => describe(compute(values), values));", cases
    )
    assert some == "At position 100, the slowest 5 of 8 hands have not completed a turn yet."
    assert single == "At position 100, every hand has completed a turn."
    assert none == "At position 0, no hand has completed a turn."
    assert one.endswith("the slowest hand has not completed a turn yet.")
    assert js.inside(Clocks, "return [0, 0.004, 0.006, 1, 15.918].map(turnText);") == [
        "0.00",
        "< 0.01",
        "0.01",
        "1.00",
        "15.92",
    ]
