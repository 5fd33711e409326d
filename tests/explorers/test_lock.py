"""Tests specific to the Lock explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ropebook.explorers.lock import Lock
from tests.explorers import draws, js
from tests.explorers.helpers import exact, theta
from tests.explorers.oracles import oracle


def as_complex(flat: np.ndarray | list) -> np.ndarray:
    """Convert x, y, x, y, … to x + iy. Multiplying by e^{iα} is then an independent way to rotate."""
    return np.array(flat)[..., 0::2] + 1j * np.array(flat)[..., 1::2]


def by_complex_numbers(dials: dict, shift: int) -> tuple[complex, complex, complex, complex]:
    """Return the query and the key as complex numbers, one per pair: first with both rotated, then with the encoding
    added to both instead."""
    dim, base = dials["dim"], dials["base"]
    q, k = (as_complex(draws.normals(f"lock {name} {dials['draw']}", dim)) for name in ("query", "key"))
    at = [(dials[name] + shift) * theta(dim, base) for name in "mn"]
    code = [np.sin(angle) + 1j * np.cos(angle) for angle in at]
    return q * np.exp(1j * at[0]), k * np.exp(1j * at[1]), q + code[0], k + code[1]


@pytest.mark.parametrize("m, n, shift, base, dim, pair", [(9, 4, 7, 1e4, 8, 2), (0, 300, 255, 50.0, 34, 16)])
def test_scores_and_arrows_of_the_lock(m, n, shift, base, dim, pair):
    dials = Lock(m=m, n=n, shift=shift, base=base, dim=dim, pair=pair, draw=3).dials()
    found, terms = oracle(Lock).compute(dials), oracle(Lock).terms(dials)
    assert set(terms) == set(found)
    for t in (0, 1, shift):
        turned_q, turned_k, summed_q, summed_k = by_complex_numbers(dials, t)
        assert found["ropeCurve"][t] == pytest.approx((turned_q * turned_k.conj()).real.sum(), abs=1e-11)
        assert found["addedCurve"][t] == pytest.approx((summed_q * summed_k.conj()).real.sum(), abs=1e-11)
    np.testing.assert_allclose(as_complex(found["turned"]), [turned_q[pair], turned_k[pair]], atol=1e-12)
    np.testing.assert_allclose(as_complex(found["summed"]), [summed_q[pair], summed_k[pair]], atol=1e-12)
    turn_q = np.exp(1j * (m + shift) * theta(dim, base))
    assert complex(*found["bare"][:2]) == pytest.approx(turned_q[pair] / turn_q[pair], rel=1e-11)
    assert [len(found["ropeCurve"]), len(found["addedCurve"])] == [256, 256]
    home = [found["ropeCurve"][0], found["addedCurve"][0], found["ropeCurve"][shift], found["addedCurve"][shift]]
    assert [found[name] for name in ("ropeHome", "addedHome", "rope", "added")] == home
    assert terms["rope"] == pytest.approx((np.abs(turned_q) * np.abs(turned_k)).sum())
    assert terms["added"] >= (np.abs(summed_q) * np.abs(summed_k)).sum() - 1e-9


def test_the_shift_moves_the_added_score_only_and_m_moves_both():
    """For every draw, in Python and in JavaScript, RoPE's score is constant up to rounding and the other score
    varies."""
    cases = [{**Lock().dials(), "draw": draw, "dim": 64} for draw in range(16)]
    for dials, from_js in zip(cases, js.compute(Lock._esm, cases), strict=True):
        further = oracle(Lock).compute({**dials, "m": dials["m"] + 1})
        for found in (oracle(Lock).compute(dials), from_js):
            assert np.ptp(found["ropeCurve"]) < 1e-14 * oracle(Lock).terms(dials)["rope"] * 4
            assert np.ptp(found["addedCurve"]) > 5
            assert abs(further["rope"] - found["rope"]) > 1e-3
            assert abs(further["added"] - found["added"]) > 1e-3
    apart = [oracle(Lock).compute({**cases[0], "m": m, "n": n, "shift": shift})["rope"] for m, n, shift in
             [(5, 2, 0), (1005, 1002, 0), (5, 2, 200), (105, 102, 99)]]  # fmt: skip
    assert np.ptp(apart) < 1e-11
    swapped = oracle(Lock).compute({**cases[0], "m": 2, "n": 5, "shift": 0})["rope"]
    assert abs(swapped - apart[0]) > 0.1  # the opposite direction has a different score


def test_the_lock_in_words():
    dials = {**Lock().dials(), "m": 3, "n": 9, "shift": 100}
    found = oracle(Lock).compute(dials)
    least, most = (exact(bound(found["addedCurve"]), 2) for bound in (min, max))
    assert js.describe(Lock, [dials]) == [
        "The query is at 103 and the key at 109, so their distance is −6. RoPE’s score is the same at every shift, "
        f"while the sinusoidal score ranges from {least} to {most}."
    ]


def test_angles_between_arrows():
    pairs = [[[1, 0], [1, 0]], [[0, 2], [3, 0]], [[3, 0], [0, 2]], [[-1, -1e-9], [1, 0]], [[-1, 1e-9], [1, 0]]]
    found = js.inside(Lock, "return input.map(([q, k]) => angleBetween(q, k));", pairs)
    assert found == pytest.approx([0, math.pi / 2, -math.pi / 2, -math.pi, math.pi], abs=1e-8)


@pytest.mark.parametrize(
    "values, levels",
    [([3, 12], [0, 5, 10, 15]), ([-2.71, 9.37], [-5, 0, 5, 10]), ([-30, -2], [-30, -20, -10, 0]), ([0], [0, 1])],
)
def test_levels_of_the_scores(values, levels):
    assert js.inside(Lock, "return levelsOf(input);", values) == levels
