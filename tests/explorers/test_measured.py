"""Tests specific to the Measured explorer."""

from __future__ import annotations

import itertools
import json
import math
import re

import numpy as np
import pytest

from ropebook import extrapolation, results
from ropebook.explorers import measured
from ropebook.lab import extensions, scores, tables
from ropebook.lab.model import SCHEMES
from tests.explorers import js
from tests.explorers.made_up import BANDS, DISTANCES, LENGTH, TEXT, Measured, numbers, synthetic
from tests.explorers.oracles import computed, expected_of, oracle

PLAIN = "rope-10000-3200"
SEEDS = (0, 1, 2)
EDGES = scores.edges(TEXT)
FIRST = EDGES.index(16)
AT_1024 = EDGES.index(1024) - 1


def raw(id_: str, seed: int) -> dict:
    """Return the stored numbers of a cell for one seed."""
    scheme, _, extension = id_.partition("/")
    run = f"{scheme.removesuffix('-3200')}-{seed}" + ("-3200" if scheme.endswith("-3200") else "")
    return numbers()[run + (f"/{extension}" if extension else "")]


def curves_of(id_: str, text: str = "python") -> np.ndarray:
    """Return the curves as (seeds, windows). The figure shows the windows from `FIRST` onwards."""
    return np.array([raw(id_, seed)["numbers"]["curves"][text] for seed in SEEDS])


def bits_of(id_: str, table: str = "numbers", text: str = "python") -> np.ndarray:
    """Return the bits, averaged over files, as (seeds, bands)."""
    return np.array([raw(id_, seed)[table][text] for seed in SEEDS], dtype=float).mean(1)


def shares_of(id_: str, task: str, length: int = TEXT) -> np.ndarray:
    """Return the shares of correct answers as (seeds, distances)."""
    told = [raw(id_, seed)["numbers"][task][str(length)] for seed in SEEDS]
    return np.array([[row[d].count("1") / len(row[d]) for d in sorted(row, key=int)] for row in told])


def test_the_methods_are_called_as_in_their_chapter():
    every = {one.name: one for one in extensions.extensions(synthetic()["chosen"])}
    assert set(measured.METHODS) == {"none", *every} - {"yarn_unscaled"}
    for name, title in list(measured.METHODS.items())[1:]:
        assert title.startswith(extrapolation.METHODS[every[name].method].title)
    assert len(set(measured.METHODS.values())) == len(measured.METHODS)
    assert ("chosen β" in measured.METHODS["yarn_chosen"], "published β" in measured.METHODS["yarn"]) == (True, True)
    assert set(measured.SCHEMES) == set(SCHEMES)
    assert len({look for _, look in measured.SCHEMES.values()}) == 9


@pytest.mark.parametrize(
    "dials, id_, factor, tuned, idle",
    [
        ({}, "yarn_chosen/4", 4, False, []),
        ({"tuned": True, "factor": "8"}, "yarn_chosen/8/tuned", 8, True, []),
        ({"method": "ntk", "tuned": True, "text": "language"}, "ntk/4", 4, False, ["tuned"]),
        ({"method": "rerope"}, "rerope", 0, False, ["factor"]),
        ({"method": "dynamic_ntk_2", "tuned": True}, "dynamic_ntk_2", 0, False, ["factor", "tuned"]),
        ({"method": "none", "tuned": True, "factor": "2"}, "none/2/tuned", 2, True, []),
    ],
)
def test_the_cell_that_the_dials_ask_for(dials, id_, factor, tuned, idle):
    id_ = f"{PLAIN}/{id_}"
    found, text = computed(Measured, **dials), dials.get("text", "python")
    assert found["lines"] == [id_, PLAIN]
    assert found["against"] == PLAIN
    assert (found["lineFactor"], found["lineTuned"], found["idle"]) == (factor, tuned, idle)
    assert found["follows"] == id_.split("/")[1].startswith("dynamic_ntk")
    assert found["bytes"] == [863, 1024]
    assert found["band"] == 2
    for k, one in enumerate([id_, PLAIN]):
        curves = curves_of(one, text)
        np.testing.assert_allclose(found["seeds"][k], curves[:, FIRST:], atol=1.1e-3)
        np.testing.assert_allclose(found["means"][k], curves.mean(0)[FIRST:], atol=1.1e-3)
        np.testing.assert_allclose(found["hereSeeds"][k], curves[:, AT_1024], atol=1.1e-3)
        assert found["here"][k] == pytest.approx(curves[:, AT_1024].mean(), abs=1.1e-3)
    assert found["hereApart"] == [found["here"][0] - found["here"][1]]
    assert found["apart"][0] == synthetic_rows(id_, text)


def synthetic_rows(id_: str, text: str) -> list[list[float]]:
    rows = synthetic()["opened"]["differences"]["plain"][id_][text]
    return [[round(x, 3) for x in row] for row in rows]


def test_without_a_method_there_is_one_line():
    found = computed(Measured, method="none")
    assert (found["lines"], found["idle"], found["apart"]) == ([PLAIN], ["factor"], [])


@pytest.mark.parametrize("text", ["python", "language"])
@pytest.mark.parametrize(
    "dials, id_", [({}, PLAIN), ({"method": "linear", "tuned": True, "factor": "8"}, f"{PLAIN}/linear/8/tuned")]
)
def test_the_last_bytes_are_those_of_the_model_as_trained_or_of_the_tuned_one(dials, id_, text):
    found = computed(Measured, text=text, **dials)
    within = EDGES.index(LENGTH) - FIRST
    assert found["last"][:within] == [None] * within
    expected = np.mean([raw(id_, seed)["last"]["curves"][text] for seed in SEEDS], 0)
    np.testing.assert_allclose(found["last"][within:], expected[FIRST + within :], atol=1.1e-3)
    apart = bits_of(id_, "last", text).mean(0) - bits_of(PLAIN, text=text).mean(0)
    assert found["lastApart"][0] is None
    assert found["lastApart"][1:] == pytest.approx(apart[1:], abs=1.1e-3)


def test_differences_are_those_of_the_files_and_seeds():
    for method, factor in (("linear", "8"), ("ntk", "2"), ("dynamic_ntk", "2")):
        found = computed(Measured, method=method, factor=factor)["apart"][0]
        follows = method == "dynamic_ntk"  # beyond L, dynamic NTK is measured on texts that end where the band ends
        id_ = f"{PLAIN}/{method}" + ("" if follows else f"/{factor}")
        beyond = bits_of(id_, "ended" if follows else "numbers")
        apart = np.where(np.arange(4) > 0, beyond, bits_of(id_)).mean(0) - bits_of(PLAIN).mean(0)
        assert [mean for mean, *_ in found] == pytest.approx(apart, abs=1.1e-3)
        assert all(low < mean < high for mean, low, high in found)


def test_the_windows_are_those_of_the_curves():
    found = computed(Measured)
    assert Measured().measured["edges"] == EDGES[FIRST:]
    assert {stop for _, stop in BANDS} <= set(EDGES)
    assert len(found["at"]) == len(found["means"][0]) == len(EDGES) - 1 - FIRST
    for (start, stop), at in zip(itertools.pairwise(EDGES[FIRST:]), found["at"], strict=True):
        assert start < at <= stop


def test_the_position_is_read_in_the_window_that_holds_it():
    for position in (17, 20, 21, 256, 257, 1024, 1025, 2048):
        found = computed(Measured, position=position)
        first, last = found["bytes"]
        assert first <= position <= last
        assert last in EDGES
        curve = curves_of(PLAIN).mean(0)
        assert found["here"][1] == pytest.approx(curve[EDGES.index(last) - 1], abs=1.1e-3)
        start, stop = BANDS[found["band"]]
        assert start < position <= stop
        assert abs(math.log(DISTANCES[found["distance"]] / position)) == pytest.approx(
            min(abs(math.log(d / position)) for d in DISTANCES)
        )


def test_the_schemes_are_compared_with_rope_seed_by_seed():
    found = computed(Measured, run="schemes", position=300)
    assert found["lines"] == list(measured.SCHEMES)
    assert found["against"] == "rope-10000"
    assert found["idle"] == ["method", "factor", "tuned"]
    assert found["last"] is found["lastApart"] is None
    here = dict(zip(found["lines"], found["here"], strict=True))
    assert [key for key, value in here.items() if value is None] == ["learned"]
    assert here["t5"] == pytest.approx(curves_of("t5")[:, EDGES.index(304) - 1].mean(), abs=1.1e-3)
    others = dict(zip(found["lines"][1:], found["apart"], strict=True))
    for id_ in ("alibi", "alternate"):
        np.testing.assert_allclose(others[id_], (bits_of(id_) - bits_of("rope-10000")).T, atol=1.1e-3)
    assert others["learned"][0] is not None
    assert others["learned"][1:] == [None] * 3
    learned = found["means"][found["lines"].index("learned")]
    assert [value is not None for value in learned] == [stop <= LENGTH for stop in EDGES[FIRST + 1 :]]


@pytest.mark.parametrize("task", ["retrieval", "order"])
def test_records(task):
    found = computed(Measured, show=task, position=700)
    assert DISTANCES[found["distance"]] == 768
    assert found["idle"] == ["text"]
    for k, id_ in enumerate([f"{PLAIN}/yarn_chosen/4", PLAIN]):
        far, near = shares_of(id_, task), shares_of(id_, task, LENGTH)
        np.testing.assert_allclose(found["farSeeds"][k], far, atol=6e-4)
        np.testing.assert_allclose(found["far"][k], far.mean(0), atol=6e-4)
        np.testing.assert_allclose([row[:4] for row in found["nearSeeds"][k]], near, atol=6e-4)
        assert found["near"][k][4:] == [None] * 3
    assert not np.allclose(shares_of(PLAIN, "retrieval"), shares_of(PLAIN, "order"), atol=0.01)
    assert Measured().measured["chance"] == {"retrieval": 1 / 8, "order": 1 / 2}
    schemes = computed(Measured, show=task, run="schemes")
    assert schemes["far"][schemes["lines"].index("learned")] == [None] * 7


def test_the_means_of_bands_are_those_of_the_tables():
    """The figure and the tables compute the band means in different ways, and the results must agree."""
    alibi_bits, rope_bits = (tables.bits(synthetic()["opened"], id_, "python")[2] for id_ in ("alibi", "rope-10000"))
    found = computed(Measured, run="schemes")
    [alibi] = [rows for id_, rows in zip(found["lines"][1:], found["apart"], strict=True) if id_ == "alibi"]
    assert np.mean(alibi[2]) == pytest.approx(alibi_bits - rope_bits, abs=2e-3)


def test_a_page_carries_less_than_60_kilobytes():
    assert len(json.dumps(Measured().measured)) < 60_000


def test_every_entry_but_the_middles_is_a_measured_number():
    dials = Measured().dials()
    assert oracle(Measured).terms(dials) == {"at": oracle(Measured).compute(dials)["at"]}


@pytest.mark.parametrize("value", [-0.001, 46.656])
def test_what_cannot_be_packed_is_refused(value):
    assert measured.unpacked(measured.packed([[46.655, 0.0]], 2), 2) == [[46.655, 0.0]]
    with pytest.raises(ValueError, match="number must be from 0 to 46655"):
        measured.packed([[value]], 1)


def test_every_number_that_a_page_carries_can_be_chosen():
    carried = Measured().measured
    chosen = set()
    for method, factor, tuned in itertools.product(measured.METHODS, ("2", "4", "8"), (False, True)):
        chosen |= set(computed(Measured, method=method, factor=factor, tuned=tuned)["lines"])
    assert set(carried["cells"]) == chosen | set(measured.SCHEMES)
    assert set(carried["last"]) == {PLAIN} | {id_ for id_ in chosen if id_.endswith("tuned")}


def test_the_results_are_read_from_their_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "_BESIDE_THE_CODE", tmp_path)
    monkeypatch.setattr(results, "_INSIDE_THE_PACKAGE", tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="no result named 'measured'"):
        measured.Measured()
    (tmp_path / "measured.json").write_text(json.dumps(synthetic()), encoding="utf-8")
    assert measured.Measured(method="ntk").dials() == Measured(method="ntk").dials()
    (tmp_path / "measured.json").write_text(json.dumps({**synthetic(), "opened": None}), encoding="utf-8")
    with pytest.raises(ValueError, match="held-out part, which has not been tried yet"):
        measured.Measured()


def test_other_results_of_the_same_form_can_be_given():
    assert measured.Measured(synthetic()).dials() == Measured().dials()
    with pytest.raises(ValueError, match="texts of 2048 bytes, got 512"):
        measured.Measured({**synthetic(), "text": 512})
    opened = synthetic()["opened"]
    for gone in ("t5", PLAIN):
        cells = {id_: cell for id_, cell in opened["cells"].items() if id_ != gone}
        with pytest.raises(ValueError, match=f"must hold the cell {gone}"):
            measured.Measured({**synthetic(), "opened": {**opened, "cells": cells}})
    cells = {id_: cell for id_, cell in opened["cells"].items() if not id_.endswith("rerope")}
    with pytest.raises(ValueError, match=f"must hold the cell {PLAIN}/rerope"):
        measured.Measured({**synthetic(), "opened": {**opened, "cells": cells}})


def test_a_method_that_was_not_tried_is_shown_as_trained():
    figure = Measured(method="rerope")
    del figure.measured["cells"][f"{PLAIN}/rerope"]
    found = expected_of(figure)
    assert (found["lines"], found["idle"]) == ([PLAIN], ["method", "factor"])
    [words] = js.describe(Measured, [figure.dials()])
    assert words.endswith("ReRoPE was not tried, so this is the model as trained.")


# ---- Descriptions in words ----


def in_words(*settings: dict) -> list[str]:
    return js.describe(Measured, [Measured(**dials).dials() for dials in settings])


def two(value: float) -> str:
    return f"{value:.2f}"


def signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def test_loss_in_words():
    yarn, within, plain_one, schemes, dynamic, tuned = in_words(
        {},
        {"method": "linear", "position": 100},
        {"method": "none", "position": 1500},
        {"run": "schemes", "position": 1500},
        {"method": "dynamic_ntk", "position": 1500},
        {"method": "ntk", "tuned": True},
    )
    found = computed(Measured)
    by, low, high = found["apart"][0][2]
    assert yarn == (
        f"At byte 1,024, 4 times the trained length, YaRN (chosen β, s = 4) needs {two(-found['hereApart'][0])} fewer "
        f"bits than the model as trained. Over bytes 513 to 1,024, the difference is {signed(by)}. Its 95% interval, "
        f"{signed(low)} to {signed(high)}, does not contain 0."
    )
    assert within.startswith("At byte 100, within the trained length, position interpolation (s = 4) needs ")
    assert "more bits than the model as trained. Over bytes 1 to 256, the difference is +" in within
    assert plain_one.startswith("At byte 1,500, 5.9 times the trained length, the model as trained needs ")
    assert re.search(r"the fewest and the most bits are those of ALiBi \(\d\.\d\d\) and .+ \(\d\.\d\d\), on", schemes)
    assert schemes.endswith("on average over three seeds. These schemes have no value here: learned.")
    assert "interval" not in schemes
    assert "Over bytes 1,025 to 2,048 of texts that end there, the difference is" in dynamic
    assert dynamic.endswith(
        "The method adapts to the length of the text. The curve shows texts of 2,048 bytes read at once; beyond L, the "
        "differences are for texts that end where their band ends."
    )
    assert tuned.endswith("No model was fine-tuned with NTK-aware, so this is the model without fine-tuning.")


def test_an_interval_with_0_in_it_in_words():
    figure = Measured()
    figure.measured["cells"][f"{PLAIN}/yarn_chosen/4"]["apart"]["python"][2] = [-0.01, -0.03, 0.01]
    [words] = js.describe(Measured, [figure.dials()])
    assert words.endswith("the difference is −0.010. Its 95% interval, −0.030 to +0.010, contains 0.")


def test_records_in_words():
    far, order, learned = in_words(
        {"show": "retrieval", "position": 768},
        {"show": "order", "position": 768},
        {"show": "retrieval", "position": 60, "run": "schemes"},
    )
    shares, orders = (
        [f"{round(100 * one[5])}%" for one in computed(Measured, show=task, position=768)["far"]]
        for task in ("retrieval", "order")
    )
    assert far == (
        "Of the records planted 768 bytes before the question, the models find these shares: "
        f"YaRN (chosen β, s = 4): {shares[0]}; as trained: {shares[1]}. Guessing finds 13%."
    )
    assert order == (
        "Of two records, 768 and 384 bytes back, the question asks for the first or the last. These shares of the "
        f"answers are right: YaRN (chosen β, s = 4): {orders[0]}; as trained: {orders[1]}. "
        "Picking one at random is right 50% of the time."
    )
    assert "% in texts of 256; no positions: " in learned


def test_an_idle_dial_says_so():
    body = "return input.map(([trait, values]) => idleNote(trait, values));"
    methods = {"run": PLAIN, "tuned": False}
    cases = [
        ["factor", {**methods, "method": "log_n"}],
        ["factor", {**methods, "method": "none"}],
        ["tuned", {**methods, "method": "rerope", "tuned": True}],
        ["tuned", {**methods, "method": "rerope"}],
        ["method", {"run": "schemes"}],
        ["text", {"run": "schemes"}],
    ]
    assert js.inside(Measured, body, cases) == [
        "No effect here: log-n scaling has no factor.",
        "No effect here: the model as trained has no factor.",
        "No model was fine-tuned with ReRoPE, so this is the model without fine-tuning.",
        "",
        "No effect here: all schemes are shown as they were trained.",
        "No effect here: records are planted in Python code.",
    ]


def test_the_note_says_that_the_numbers_are_stored_and_where_they_come_from():
    values = Measured().dials()
    assert js.inside(Measured, "return noteOf(input);", values) == (
        "Drag across the picture to read other values. These are stored measurements (A CPU, 2026-01-31)."
    )
