"""Tables and grids of the pages, against the made-up numbers that they come from."""

import numpy as np
import pytest

from ropebook.lab import claims, measured, rule, tables
from tests.lab_worlds import ABLE, change, world

SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def numbers():
    made = world(share=0.5)
    made = change(made, tuple(f"rope-10000-{seed}-3200/yarn/4" for seed in SEEDS), within=2.3, beyond=2.0)
    made = change(made, tuple(f"alibi-{seed}" for seed in SEEDS), beyond=2.0, share=0.9)
    for seed in SEEDS:
        learned = made[f"learned-{seed}"]["numbers"]
        for text in rule.TEXTS:
            learned[text] = [[row[0], None, None, None] for row in learned[text]]
        for task in ("retrieval", "order"):
            learned[task]["2048"] = None
    return made


@pytest.fixture(scope="module")
def opened(numbers):
    return {
        "cells": measured.cells(numbers),
        "differences": measured.differences(numbers),
        "verdicts": measured.verdicts(numbers, claims.CLAIMS.values(), ABLE),
    }


def test_schemes_in_a_table(opened, numbers):
    columns = tables.schemes(opened, "python")
    at = columns["scheme"].index("ALiBi")
    raw = [np.mean([row[1] for row in numbers[f"alibi-{seed}"]["numbers"]["python"]]) for seed in SEEDS]
    assert columns["256…512 (bits)"][at] == pytest.approx(np.mean(raw), abs=1e-4)
    letters = [numbers[f"alibi-{seed}"]["numbers"]["order"]["2048"] for seed in SEEDS]
    shares = [one[str(d)].count("1") / 96 for one in letters for d in (384, 768, 1536)]
    assert columns["order far"][at] == pytest.approx(np.mean(shares), abs=1e-4)
    assert columns["order within"][at] != columns["order far"][at]
    learned = columns["scheme"].index("learned")
    assert columns["0…256 (bits)"][learned] > 1
    assert [columns[head][learned] for head in ("256…512 (bits)", "retrieval far")] == [None, None]
    with pytest.raises(ValueError, match="text must be one of"):
        tables.schemes(opened, "prose")


def test_methods_in_a_grid(opened):
    rows = tables.methods()
    assert len(rows) == 7 * 3 + 3
    assert set(rows) < set(opened["differences"]["plain"])
    grid = tables.grid(opened, "plain", "language", rows)
    at = grid.rows.index("YaRN (published β), 4")
    assert grid.values[at] == pytest.approx([0.3, -3, -3, -3], abs=0.1)
    assert grid.sure[at].all()
    assert grid.columns == ["0…256", "256…512", "512…1024", "1024…2048"]
    assert abs(np.delete(grid.values, at, 0)).max() < 0.1
    tuned = tables.grid(opened, "last", "python", tables.methods(tuned=True))
    assert tuned.rows[:2] == ["no method, 2", "no method, 4"]
    assert tuned.values[:, 1:] == pytest.approx(3, abs=0.1)
    learned = tables.grid(opened, "last", "python", {"learned": "learned"})
    assert np.isnan(learned.values[0]).tolist() == [False, True, True, True]
    assert not learned.sure[0, 1:].any()
    with pytest.raises(ValueError, match="against must be one of"):
        tables.grid(opened, "first", "python", rows)


def test_verdicts_with_their_counts(opened):
    assert set(tables.SHORT) == {*rule.OUTCOMES, rule.NOT_ASKED}
    ids = ("S2.9a yarn", "S2.9a linear")
    columns = tables.verdicts(opened, ids)
    assert columns["claim"] == [claims.CLAIMS[id].text for id in ids]
    assert columns["verdict"] == ["mixed", "no difference"]  # of six, two are of s = 4
    assert columns["comparisons"] == ["2 hold, 4 no difference", "6 no difference"]


def test_then_and_now(opened):
    first = [
        {"id": "S2.9a yarn", "claim": "YaRN beats the plain model", "verdict": "holds here"},
        {"id": "S2.8a", "claim": "is no longer asked", "verdict": "holds here"},
    ]
    assert tables.then_and_now(first, opened) == {
        "claim": ["YaRN beats the plain model"],
        "first": ["holds"],
        "now": ["mixed"],
    }
