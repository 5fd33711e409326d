"""Tests of the comparison of models that were trained for longer texts."""

import json

import numpy as np
import pytest
from matplotlib import pyplot as plt

from ropebook import results
from ropebook.lab import trained as T
from ropebook.lab import trials, variants

PLAIN, GAPS = T.LONGER, f"{T.LONGER}-gaps"


@pytest.fixture(scope="module")
def found():
    return results.load("trained")


def test_the_stored_numbers_are_those_of_the_trainings(found):
    folder = results.find("rope-10000-0-3200-gaps").parent
    again = json.loads(json.dumps(T.gathered(folder)))
    assert {key: value for key, value in found.items() if key != "provenance"} == again


def test_a_band_is_the_mean_over_files(found):
    told = results.load("rope-10000-1-3200-gaps")["development"]["python"]
    assert T.bits(found, GAPS, "python")[1, -1] == pytest.approx(np.mean([row[-1] for row in told]), abs=1e-4)


def test_what_is_missing_is_left_out(tmp_path):
    name = "rope-10000-0-3200"
    (tmp_path / f"{name}.json").write_text(results.find(name).read_text(encoding="utf-8"), encoding="utf-8")
    lines = T.gathered(tmp_path)["lines"]
    assert {id: len(seeds) for id, seeds in lines.items() if seeds} == {PLAIN: 1}


def test_the_table_has_a_row_for_each_model(found):
    order = results.load("order")
    columns = T.table(found, order)
    assert {len(column) for column in columns.values()} == {len(T.LINES)}
    at = list(T.LINES).index(GAPS)
    assert columns["loss within L"][at] == T.bits(found, GAPS, "python")[:, 0].mean()
    each = [one["order"]["score"] for one in order["cells"][GAPS]["each"]]
    assert columns["order beyond L"][at] == pytest.approx(np.mean(each))


@pytest.mark.parametrize("lines", [T.FROM_THE_START, T.AFTERWARDS])
def test_each_line_of_the_figure_has_its_name(found, monkeypatch, lines):
    drawn = []
    monkeypatch.setattr(T, "display_figure", lambda fig, alt, caption: drawn.append((fig, caption)))
    T.by_position(found, lines, "alt", "A caption.")
    ((fig, caption),) = drawn
    (ax,) = fig.axes
    assert {text.get_text() for text in ax.texts} == {one.title for one in lines.values() if one.title}
    assert len(ax.lines) == len(lines) + 1
    assert caption.startswith("A caption. Measured on")
    plt.close(fig)


def test_the_figures_show_models_of_the_tables():
    assert set(T.FROM_THE_START) == set(T.LINES)
    assert set(T.AFTERWARDS) < set(T.FURTHER)


def test_models_trained_further_have_a_row_for_each_number_of_steps_and_base(found):
    order = results.load("order")
    columns = T.further(found, order)
    rows = list(zip(columns["more steps"], columns["base"], strict=True))
    assert sorted(rows) == sorted((steps, base) for steps in (0, *variants.RAISED_STEPS) for base in ("10⁴", "5·10⁵"))
    at = rows.index((60, "5·10⁵"))
    told = [results.load(f"rope-10000-{seed}-3200-raised_base_60-8")["development"]["python"] for seed in trials.SEEDS]
    assert columns["loss, 4 L to 8 L"][at] == pytest.approx(np.mean([row[-1] for one in told for row in one]), abs=1e-3)
    untrained = order["cells"][f"{PLAIN}/raised_base"]
    scores = [
        one["order short"]["score"] for seed, one in zip(untrained["seeds"], untrained["each"], strict=True) if seed < 3
    ]
    assert columns["order, short"][rows.index((0, "5·10⁵"))] == pytest.approx(np.mean(scores))


def test_the_rate_of_the_table_is_the_best_candidate():
    folder = results.find("rope-10000-0-3200-gaps").parent
    within = {}
    for one in variants.T5_CANDIDATES:
        told = json.loads((folder / f"{one.name}.json").read_text(encoding="utf-8"))
        within[one.bias_lr] = variants.within_bits(told["development"])
    assert variants.choose_rate(within) == variants.T5_RATE
