"""Tests of the tables and grids on the pages, compared with the synthetic numbers from which they are made."""

import numpy as np
import pytest

from ropebook.lab import claims, measured, rule, tables
from tests.lab_worlds import ABLE, change, ending, world
from tests.together import together

SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def numbers():
    made = world(share=0.5)
    made = change(made, tuple(f"rope-10000-{seed}-3200/yarn/4" for seed in SEEDS), within=2.3, beyond=2.0)
    made = change(made, tuple(f"alibi-{seed}" for seed in SEEDS), beyond=2.0, share=0.9)
    return ending(made)


@pytest.fixture(scope="module")
def opened(numbers):
    return {
        "cells": measured.cells(numbers),
        "differences": measured.differences(numbers),
        "verdicts": measured.verdicts(numbers, claims.CLAIMS.values(), ABLE),
    }


def test_bits_and_answers_of_one_cell(opened, numbers):
    raw = [numbers[f"alibi-{seed}"]["numbers"] for seed in SEEDS]
    by_band = np.mean([np.mean(one["language"], 0) for one in raw], 0)
    assert tables.bits(opened, "alibi", "language") == pytest.approx(by_band, abs=1e-4)
    assert tables.bits(opened, "learned", "python")[1:] == [None] * 3
    shares = [[one["order"]["256"][str(d)].count("1") / 96 for d in (32, 64, 128, 192)] for one in raw]
    assert tables.answers(opened, "alibi", "order", 256) == pytest.approx(np.array(shares), abs=1e-4)


def test_order_is_asked_of_what_is_found(opened, numbers):
    letters = [numbers[f"none-{seed}"]["numbers"]["order"]["2048"] for seed in SEEDS]
    expected = [[s.count("1") / (s.count("1") + s.count("o")) for s in one.values()] for one in letters]
    assert tables.ordered(opened, "none", 2048) == pytest.approx(np.array(expected), abs=1e-3)
    assert not (tables.ordered(opened, "none", 2048) == 1).all()
    others = [[s.count("o") / 96 for s in one.values()] for one in letters]
    assert tables.answers(opened, "none", "other", 2048) == pytest.approx(np.array(others), abs=1e-4)
    with pytest.raises(ValueError, match="task must be one of"):
        tables.answers(opened, "none", "both", 2048)


def test_methods_in_a_grid(opened):
    rows = tables.methods()
    assert len(rows) == 7 * 3 + 3
    assert set(rows) < set(opened["differences"]["plain"])
    grid = tables.grid(opened, "plain", "language", rows)
    at = grid.rows.index("YaRN (published β), 4")
    assert grid.values[at] == pytest.approx([0.3, -3, -3, -3], abs=0.1)
    assert grid.sure[at].all()
    assert abs(np.delete(grid.values, at, 0)).max() < 0.1
    tuned = tables.grid(opened, "last", "python", tables.methods(tuned=True))
    assert tuned.rows[:2] == ["no method, 2", "no method, 4"]
    assert tuned.values[:, 1:] == pytest.approx(3, abs=0.1)
    learned = tables.grid(opened, "last", "python", {"learned": "learned"})
    assert np.isnan(learned.values[0]).tolist() == [False, True, True, True]
    assert not learned.sure[0, 1:].any()
    with pytest.raises(ValueError, match="against must be one of"):
        tables.grid(opened, "first", "python", rows)


def test_what_speaks_for_a_method(opened, numbers):
    lines = {claims.LONGER: "as it is", f"{claims.LONGER}/yarn/4": "YaRN"}
    follows = f"{claims.LONGER}/dynamic_ntk"
    columns = tables.advice(opened, {follows: "dynamic"})
    ended, plain = (
        np.mean([[row[0] for row in numbers[f"rope-10000-{seed}-3200{name}"][key]["python"]] for seed in SEEDS])
        for name, key in (("/dynamic_ntk", "ended"), ("", "numbers"))
    )
    assert columns["within L"][1] == pytest.approx(ended - plain, abs=2e-4)
    columns = tables.advice(opened, lines)
    assert columns["method"] == ["only the last L bytes", "as it is", "YaRN"]
    assert columns["within L"] == [0.0, 0.0, pytest.approx(0.3, abs=0.1)]
    for head in ("4 L to 8 L", "4 L to 8 L, other text"):
        assert columns[head] == [0.0, pytest.approx(3.0, abs=0.1), pytest.approx(0.0, abs=0.1)]
    letters = [numbers[f"rope-10000-{seed}-3200/yarn/4"]["numbers"]["retrieval"]["2048"] for seed in SEEDS]
    shares = [one[str(d)].count("1") / 96 for one in letters for d in (384, 768, 1536)]
    assert columns["records beyond L"][::2] == [None, pytest.approx(np.mean(shares), abs=1e-4)]


def test_verdicts_with_their_counts(opened):
    assert set(tables.SHORT) == {*rule.OUTCOMES, rule.NOT_ASKED}
    ids = ("S2.9a yarn", "S2.9a linear", "S3.6a", "S4.7")
    columns = tables.verdicts(opened, ids)
    assert columns["claim"] == [claims.CLAIMS[id].text for id in ids]
    assert columns["verdict"][:2] == ["mixed", "no difference"]  # two of the six comparisons have s = 4
    assert columns["Python"][:2] == ["1 hold, 2 no difference", "3 no difference"]
    assert columns["generated language"] == [
        "1 hold, 2 no difference",
        "3 no difference",
        None,
        columns["generated language"][3],
    ]
    assert columns["Python"][2] == "1 fail"
    assert columns["records"][:3] == [None] * 3
    assert sum(int(part.split()[0]) for part in columns["records"][3].split(", ")) == 5
    assert list(tables.verdicts(opened, ids[:2])) == ["claim", "verdict", "Python", "generated language"]


def test_each_comparison_has_its_sign(opened):
    assert set(tables.SIGNS) == {*rule.OUTCOMES, rule.NOT_ASKED, *(word.removesuffix(" here") for word in rule.WORDS)}
    columns = tables.verdicts(opened, ["S2.9a yarn"])
    assert columns["verdict"][0].signs == (("±", "mixed"),)
    found = [each[-1] for row in opened["verdicts"] if row["id"] == "S2.9a yarn" for each in row["found"]]
    for column, outcomes in {"Python": found[::2], "generated language": found[1::2]}.items():
        assert [word for _, word in columns[column][0].signs] == outcomes
        assert [sign for sign, _ in columns[column][0].signs] == [tables.SIGNS[each] for each in outcomes]


def test_then_and_now(opened):
    first = [
        {"id": "S2.9a yarn", "claim": "YaRN beats the plain model", "verdict": "holds here"},
        {"id": "S2.9a linear", "claim": "says the same", "verdict": "no difference here"},
    ]
    assert tables.then_and_now(first, opened) == {
        "claim then": ["YaRN beats the plain model"],
        "then": ["holds"],
        "now": ["mixed"],
        "now, on Python": ["1 hold, 2 no difference"],
        "change": ["less sure"],
    }
    with pytest.raises(KeyError):
        tables.then_and_now([{"id": "S2.8a", "claim": "is no longer asked", "verdict": "holds here"}], opened)


@together(
    "then, now, change",
    [
        ("holds", "mostly fails", "reversed"),
        ("does not hold", "holds", "reversed"),
        ("holds", "mostly holds", "by degrees"),
        ("mixed", "undecided", "by degrees"),
        ("no difference", "mostly fails", "surer"),
    ],
)
def test_how_a_verdict_changed(then, now, change):
    assert tables._change(then, now) == change


def test_what_the_small_models_do_beyond_has_a_row_for_each_that_is_there():
    cell = {
        "bits": {"python": [[2.0, 2.5, 3.0], [2.2, 2.5, 4.0]]},
        "retrieval": {"64": [[0.9, 0.9, 0.9, 0.8, 0.5, 0.1], [0.9, 0.9, 0.9, 0.6, 0.5, 0.3]]},
    }
    ends = {"bits": {"python": [[2.0, None, None]] * 2}, "retrieval": {"64": [None, None]}}
    measured = {
        "bands": [[0, 8], [8, 32], [32, 64]],
        "text": 64,
        "distances": [1, 2, 4, 6, 12, 48],
        "opened": {"cells": {"alibi": cell, "learned": ends, "none": cell}, "able": ["alibi", "learned"]},
    }
    assert tables.schemes(measured) == {
        "scheme": ["learned absolute", "none, causal mask", "ALiBi"],
        "bits, 0 to 8": [2.0, pytest.approx(2.1), pytest.approx(2.1)],
        "bits, 32 to 64": [None, 3.5, 3.5],
        "found 6 back": [None, None, pytest.approx(0.7)],
        "found 48 back": [None, None, pytest.approx(0.2)],
        "spread, 0 to 8": [0.0, pytest.approx(0.2), pytest.approx(0.2)],
        "spread, 32 to 64": [None, 1.0, 1.0],
    }
