"""Tests of the second rule on synthetic letters and losses that lead to known outcomes."""

from dataclasses import replace

import numpy as np
import pytest

from ropebook.lab import rule_two as R
from ropebook.lab.rule_two import LAYOUTS, Answers, Bits, Claim, Comparison
from tests.together import together

SEEDS = (0, 1, 2)


def made(right, other=0.0, contexts=16, questions=16, seed=0):
    """Draw letters for each layout and seed. "1" has probability ``right``, and "o" has probability ``other``."""
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


@together(
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
    with pytest.raises(ValueError, match="told must have the cell 'none' of seed 1, which is missing"):
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


def bits(mean, apart=0.0, texts=30, seed=0):
    """Draw losses for both kinds of text and all bands. Each text has its own level, and ``apart`` is added to every
    loss."""
    levels = np.random.default_rng(7).normal(mean, 0.3, texts)
    draws = np.random.default_rng(seed)
    keys = [f"{text} {band}" for text in ("python", "language") for band in R.BANDS]
    return {at: {key: (levels + apart + draws.normal(0, 0.01, texts)).tolist() for key in keys} for at in SEEDS}


def test_losses_are_compared_text_by_text():
    a, b = Bits("x", "python", "beyond", "yarn/8"), Bits("x", "python", "beyond")
    told = {"x": bits(2.0), "x/yarn/8": bits(2.0, -0.1, seed=1)}
    assert verdict(Comparison(a, b, "lower"), **told) == "holds"
    assert verdict(Comparison(a, b, "higher"), **told) == "fails"
    same = {"x": bits(2.0), "x/yarn/8": bits(2.0, seed=1)}
    assert verdict(Comparison(a, b, "same"), **same) == "holds"


def test_the_language_is_asked_only_of_models_that_learned_it():
    a, b = Bits("x", "language", "beyond"), Bits("y", "language", "beyond")
    comparison = Comparison(a, b, "lower")
    none = {"none": bits(4.0)}
    assert verdict(comparison, x=bits(3.0), y=bits(3.5), **none) == "holds"
    assert verdict(comparison, x=bits(3.0), y=bits(4.0), **none) == "not asked"
    assert verdict(comparison, x=bits(3.0), y=bits(3.5)) == "not asked"
    python = Comparison(replace(a, task="python"), replace(b, task="python"), "lower")
    assert verdict(python, x=bits(3.0), y=bits(4.0), **none) == "holds"
    some = bits(3.0)
    some[2] = bits(4.0)[2]  # a single seed that learned nothing closes the gate
    assert R.gate({"x": some, "y": bits(3.0), **none}, SEEDS) == {"y"}


def test_every_claim_can_be_judged_and_has_a_name_of_its_own():
    asked = R.claims()
    assert len({claim.id for claim in asked}) == len(asked)
    told = {}
    for at, (cell, sides) in enumerate(sorted(R.cells().items())):
        losses = bits(4.0 if cell == "none" else 3.0, seed=at)
        letters = made(0.5, 0.3, seed=at)
        told[cell] = {seed: letters[seed] | losses[seed] for seed in SEEDS}
        assert {side.cell for side in sides} == {cell}
    assert not any("not asked" in found.word for found in R.judge(asked, told, SEEDS))
    without = {cell: found for cell, found in told.items() if cell != "t5"}
    assert [v.claim.id for v in R.judge(asked, without, SEEDS) if "not asked" in v.word] == ["kept t5"]


def test_the_texts_are_new():
    files = {f"{name}.py": np.random.default_rng(at).integers(32, 127, 4000, np.uint8) for at, name in enumerate("abc")}
    found = R.texts(R.closed(files, ["b.py"]), per_folder=6)
    assert found["python"].shape == (2, R.BANDS["beyond"][1] + 1)
    assert found["language"].shape == (R.GENERATED, R.BANDS["beyond"][1] + 1)


def test_it_is_final():
    """After the rule's date, none of the files on which an outcome depends may change. This test contains the digest of
    these files."""
    assert R.DATE == "2026-11-26"
    assert R.digest() == "1bf04f2707cd6acd277d1ff768e6207e08e6d29c56e0cc75d52dfc5192c122a0"
