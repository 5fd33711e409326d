"""Tests of the second rule, which is still a draft, on synthetic letters that lead to known outcomes."""

from dataclasses import replace

import numpy as np
import pytest

from ropebook.lab import rule_two as R
from ropebook.lab.asking import LAYOUTS
from ropebook.lab.rule_two import Answers, Claim, Comparison

SEEDS = (0, 1, 2)


def made(right, other=0.0, contexts=16, questions=16, seed=0):
    """Draw letters for each layout and seed. "1" has the probability ``right``, and "o" has the probability
    ``other``."""
    draws = np.random.default_rng(seed)
    chances = [right, other, max(0.0, 1 - right - other)]

    def rows():
        return ["".join(row) for row in draws.choice(list("1o0"), (contexts, questions), p=chances)]

    return {at: {name: rows() for name in LAYOUTS} for at in SEEDS}


def verdict(comparison, **cells):
    claim = Claim("one", "of a test", (comparison,))
    (found,) = R.judge([claim], cells, SEEDS)
    return found.found[0][1]


PLAIN = Answers("none", "order")


@pytest.mark.parametrize(
    ("chances", "expected", "outcome"),
    [
        ((0.5, 0.5), "same", "holds"),
        ((0.4, 0.4), "same", "holds"),
        ((0.9, 0.1), "same", "fails"),
        ((0.9, 0.1), "higher", "holds"),
        ((0.1, 0.9), "higher", "fails"),
        ((0.5, 0.5), "higher", "no difference"),
    ],
)
def test_order_is_right_less_wrong_against_nothing(chances, expected, outcome):
    assert verdict(Comparison(PLAIN, 0.0, expected), none=made(*chances)) == outcome


def test_a_method_is_compared_in_the_same_contexts():
    a, b = Answers("x", "retrieval", "yarn/8"), Answers("x", "retrieval")
    comparison = Comparison(a, b, "higher")
    assert comparison.is_paired
    plain = made(0.5)
    better = {
        at: {name: [row.replace("0", "1", 3) for row in rows] for name, rows in one.items()}
        for at, one in plain.items()
    }
    table = comparison.table({"x": plain, "x/yarn/8": better}, SEEDS)
    assert table.std() < 0.05
    assert verdict(comparison, **{"x": plain, "x/yarn/8": better}) == "holds"
    few = {at: {name: rows[:8] for name, rows in one.items()} for at, one in better.items()}
    assert np.allclose(comparison.table({"x": plain, "x/yarn/8": few}, SEEDS), table[:, :8])


def test_other_contexts_are_compared_by_their_mean():
    comparison = Comparison(Answers("x", "retrieval"), Answers("x", "retrieval within"), "same")
    assert not comparison.is_paired
    letters = {"x": made(0.8)}
    expected = letters["x"][1]["retrieval"][0].count("1") / 16
    expected -= "".join(letters["x"][1]["retrieval within"]).count("1") / 256
    assert comparison.table(letters, SEEDS)[1, 0] == pytest.approx(expected)


def test_what_is_missing_is_not_asked_and_named():
    comparison = Comparison(PLAIN, 0.0, "same")
    some = {0: made(0.5)[0]}
    assert verdict(comparison, none=some) == "not asked"
    with pytest.raises(ValueError, match="letters must have the cell 'none' of seed 1, which is missing"):
        comparison.table({"none": some}, SEEDS)


def test_what_makes_no_sense():
    with pytest.raises(ValueError, match="b must be of the task of a, 'order', got 'retrieval'"):
        Comparison(PLAIN, replace(PLAIN, layout="retrieval"), "same")
    with pytest.raises(ValueError, match="pair must be None with an extension, got 3"):
        Answers("x", "order", "yarn/8", pair=3)
    with pytest.raises(ValueError, match="held_out must have a file that was not opened"):
        R.closed({"a.py": None}, ["a.py"])


def test_noise_is_seldom_called():
    looks = [Claim(f"{at}", "noise", (Comparison(Answers(f"{at}", "order"), 0.0, "higher"),)) for at in range(60)]
    letters = {f"{at}": made(0.45, 0.45, seed=at) for at in range(60)}
    outcomes = [found.found[0][1] for found in R.judge(looks, letters, SEEDS)]
    assert sum(one in ("holds", "fails") for one in outcomes) <= 3


def test_every_claim_can_be_judged_and_has_a_name_of_its_own():
    asked = R.claims()
    assert len({claim.id for claim in asked}) == len(asked)
    cells = {
        side.cell for claim in asked for c in claim.comparisons for side in (c.a, c.b) if isinstance(side, Answers)
    }
    letters = {cell: made(0.5, 0.3, seed=at) for at, cell in enumerate(sorted(cells))}
    assert not any("not asked" in found.word for found in R.judge(asked, letters, SEEDS))


def test_it_is_a_draft():
    """When the rule's date is set, its digest is published with it. From then on, neither of them may change."""
    assert R.DATE is None
    assert len(R.digest()) == 64
