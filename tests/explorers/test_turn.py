"""Tests specific to the Turn explorer."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from ropebook.explorers.turn import Turn
from tests.explorers import js
from tests.explorers.helpers import theta
from tests.explorers.oracles import computed, oracle


def as_complex(flat: np.ndarray | list) -> np.ndarray:
    """Convert x, y, x, y, … to x + iy. Multiplying by e^{iα} is then an independent way to rotate."""
    return np.array(flat)[..., 0::2] + 1j * np.array(flat)[..., 1::2]


@pytest.mark.parametrize("position, base, dim, pair", [(2, 1e4, 4, 0), (37, 500.0, 10, 3), (3000, 1e4, 64, 1)])
def test_every_pair_turns_counter_clockwise_by_its_angle(position, base, dim, pair):
    dials = Turn(position=position, base=base, dim=dim, pair=pair).dials()
    found = oracle(Turn).compute(dials)
    z = as_complex(range(1, dim + 1))
    angles = position * theta(dim, base)
    assert found["start"] == [*range(1, dim + 1)]
    np.testing.assert_allclose(found["angles"], angles, rtol=1e-14)
    np.testing.assert_allclose(as_complex(found["turned"]), z * np.exp(1j * angles), rtol=1e-11)
    turn_ = cmath.exp(1j * angles[pair])
    np.testing.assert_allclose(found["matrix"], [turn_.real, -turn_.imag, turn_.imag, turn_.real], atol=1e-12)
    assert found["before"] == pytest.approx(abs(z[pair]), rel=1e-14)
    assert found["after"] == pytest.approx(abs(z[pair]), rel=1e-14)
    assert found["young"] == sum(angles < 2 * math.pi)
    first = max(0, position - 15)
    assert found["trailStart"] == first
    past = np.arange(first, position + 1) * theta(dim, base)[pair]
    np.testing.assert_allclose(as_complex(found["trail"]), z[pair] * np.exp(1j * past), rtol=1e-11)
    start = max(0, position - 24)
    assert found["first"] == start
    at = start + np.arange(48 * 8 + 1) / 8
    x, y = np.array(found["waves"])
    np.testing.assert_allclose(x + 1j * y, z[pair] * np.exp(1j * at * theta(dim, base)[pair]), rtol=1e-11)


EIGHTH = {"dim": 4, "base": 1.62114, "pair": 1}  # the base is 16/π², so pair 1 rotates by π/4 per position


def test_an_eighth_of_a_turn_per_position():
    """The pair rotates by π/4 per position, as in the usual introductory drawing."""
    for position in range(9):
        found = computed(Turn, position=position, **EIGHTH)
        assert found["angles"][1] == pytest.approx(position * math.pi / 4, rel=1e-6)
        corner = (3 + 4j) * cmath.exp(1j * position * math.pi / 4)
        assert found["turned"][2:] == pytest.approx([corner.real, corner.imag], abs=1e-4)


def test_the_example_by_hand():
    """With the angles 2 and 0.02, R₂(1, 2, 3, 4) is (cos 2 − 2 sin 2, sin 2 + 2 cos 2, 3 cos 0.02 − 4 sin 0.02, …)."""
    c, s, c2, s2 = math.cos(2), math.sin(2), math.cos(0.02), math.sin(0.02)
    by_hand = [c - 2 * s, s + 2 * c, 3 * c2 - 4 * s2, 3 * s2 + 4 * c2]
    found = computed(Turn, position=2, base=1e4, dim=4, pair=0)["turned"]
    assert found == pytest.approx(by_hand, rel=1e-14)


def test_terms_of_a_turned_vector():
    dials = Turn(position=5, base=100.0, dim=4, pair=1).dials()
    terms, data = oracle(Turn).terms(dials), oracle(Turn).compute(dials)
    assert set(terms) == set(data)
    assert [terms[name] for name in ("young", "trailStart", "first")] == [0, 0, 0]
    np.testing.assert_allclose(terms["turned"], [5**0.5, 5**0.5, 5, 5])
    assert [terms[name] for name in ("before", "after", "trail", "waves")] == [5, 5, 5, 5]
    assert terms["angles"] == data["angles"]


def test_the_turned_vector_in_words():
    cases = [
        Turn(position=1, **EIGHTH),
        Turn(position=7, base=1e4, dim=2, pair=0),
        Turn(position=63, base=1e4, dim=8, pair=0),
        Turn(position=0, base=1.0, dim=6, pair=2),
    ]
    eighth, alone, far, home = js.describe(Turn, [figure.dials() for figure in cases])
    assert eighth == (
        "At position 1, pair 1 has been rotated counter-clockwise by 45.0°. No pair has completed a turn yet."
    )
    assert "by 1 full turn and 41.1° more." in alone
    assert alone.endswith("Every pair has completed at least one turn.")
    assert f"10 full turns and {math.degrees(63) - 3600:.3f}° more" in far
    assert far.endswith("So far, 2 of 4 pairs have not completed a turn.")
    assert "by 0°." in home
    product = js.inside(Turn, "return [-2e-5, -0.002, 0.5].map((entry) => exact(entry));")
    assert product == ["0.000", "−0.002", "0.500"]  # not −0.000
    small = js.inside(Turn, "return [-2e-5, -0.0003, 0.0003, 0.0006].map(entryText);")
    assert small == ["0.000", "−0.0003", "0.0003", "0.001"]
    angles = [0, 2e-7, 0.005, 0.1, 1, 100]
    assert js.inside(Turn, "return input.map(degrees);", angles) == [
        "0°",
        "1.1 × 10⁻⁵°",
        "0.286°",
        "5.730°",
        "57.3°",
        "5729.6°",
    ]
    assert js.inside(Turn, "return input.map(shortAngle);", [0, 1e-5, 0.006, 1.234, 123.4, 2485]) == [
        "0",
        "< 0.01",
        "0.01",
        "1.23",
        "123",
        "2,485",
    ]
