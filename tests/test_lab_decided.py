"""Tests of what pages say about the second rule's results, compared with the cells from which these results were
computed."""

import json
import shutil

import numpy as np
import pytest

from ropebook import results
from ropebook.lab import asking, decided, rule_two

FOLDER = results.find("order").parent / "asking" / "decide"


@pytest.fixture(scope="module")
def found():
    return results.load("order_decided")


def test_the_stored_outcomes_are_those_of_the_stored_cells(found):
    again = json.loads(json.dumps(decided.gathered(FOLDER)))
    assert {key: value for key, value in found.items() if key != "provenance"} == again


def test_every_cell_and_seed_is_there():
    told = decided.told(FOLDER)
    assert {cell for cell, by_seed in told.items() if set(by_seed) == set(rule_two.SEEDS)} == set(rule_two.cells())
    for cell, sides in rule_two.cells().items():
        for one in told[cell].values():
            assert {side.layout for side in sides} == set(one)
            for side in sides:
                if isinstance(side, rule_two.Answers):
                    layout = rule_two.LAYOUTS[side.layout]
                    assert len(one[side.layout]) == layout.contexts
                    assert {len(row) for row in one[side.layout]} == {layout.asked * len(layout.kinds)}


def test_it_says_where_the_cells_were_measured(found):
    cells = [json.loads(path.read_text(encoding="utf-8"))["provenance"] for path in FOLDER.glob("*-[0-4].json")]
    assert sorted({one["device"] for one in cells}) == found["provenance"]["device"].split(" and ")
    assert found["provenance"]["date"] == max(one["date"] for one in cells)
    assert found["provenance"]["command"] == "python benchmarks/asking.py decide"


def test_distances_are_those_of_the_contexts():
    """The distances depend only on the seed, and not on the text between the records."""
    stored = json.loads((FOLDER / "contexts.json").read_text(encoding="utf-8"))
    dots = {"a.py": np.full(3000, ord("."), np.uint8)}
    for name, layout in rule_two.LAYOUTS.items():
        assert asking.contexts(layout, dots, rule_two.STREAM).far.tolist() == stored[name]


def test_scores_by_distance_make_up_the_score(found):
    far = np.array(json.loads((FOLDER / "contexts.json").read_text(encoding="utf-8"))["order"])
    told = decided.told(FOLDER)["rope-100"][0]["order"]
    points = np.array([[{"1": 1, "o": -1, "0": 0}[letter] for letter in row] for row in told])
    near = (far >= 256) & (far < 512)
    by_context = [points[at][near[at]].mean() for at in range(len(points)) if near[at].any()]
    assert found["by_distance"]["rope-100"][0][0] == pytest.approx(np.mean(by_context), abs=1e-5)
    assert found["levels"]["rope-100"]["order"][0] == pytest.approx(points.mean(), abs=1e-5)


def test_another_rule_or_other_weights_are_refused(tmp_path):
    for name in ("none-0.json", "none-1.json", "contexts.json"):
        shutil.copy(FOLDER / name, tmp_path / name)
    assert set(decided.told(tmp_path)["none"]) == {0, 1}
    path = tmp_path / "none-1.json"
    one = json.loads(path.read_text(encoding="utf-8"))
    for key, other in (("rule", "another"), ("weights", "others"), ("corpus", {})):
        told = one | {key: other} | ({"model": "none-0"} if key == "weights" else {})
        path.write_text(json.dumps(told), encoding="utf-8")
        with pytest.raises(ValueError, match=f"{key} in none-1.json must be"):
            decided.told(tmp_path)


def test_tables_show_signs_stars_and_what_was_not_asked(found):
    columns = decided.methods(found, "loss")
    row = {head: column[columns["method"].index("Self-Extend")] for head, column in columns.items()}
    assert row["within L"] == "+0.00"
    assert row["beyond L"].startswith("−")
    assert row["beyond L"].endswith("*")
    assert list(decided.methods(found, "answers")) == ["method", *decided.COLUMNS["answers"]]
    with pytest.raises(ValueError, match="kind must be one of"):
        decided.methods(found, "records")
    rows = decided.verdicts(
        found, ["kept sinusoidal", "RoPE extrapolates better language", "RoPE extrapolates better python"]
    )
    assert rows["claim"][0].startswith("sinusoidal: as many")
    assert rows["claim"][2] == decided.verdict(found, "RoPE extrapolates better python")["text"]
    assert rows["outcome"] == ["holds", "not asked", "holds"]
    assert rows["mean"][1] == "–"
    [near] = decided.verdicts(found, ["coin rope-500000"])["with only seeds 3 and 4"]
    assert near == "−0.120 (−0.197 to −0.043): fails"
    with pytest.raises(ValueError, match="id must be one of"):
        decided.verdict(found, "nothing")
