"""What only the explorer Measured promises."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from ropebook import extrapolation, results
from ropebook.explorers import measured
from ropebook.lab import evaluation
from tests.explorers import js
from tests.explorers.made_up import BANDS, DISTANCES, FILES, LENGTH, TEXT, Measured, synthetic
from tests.explorers.oracles import computed, expected_of, oracle


def test_the_methods_are_called_as_in_their_chapter():
    for name, title in measured.METHODS.items():
        if name in extrapolation.METHODS:
            assert title == extrapolation.METHODS[name].title
    grid = {measured.cell_key(vars(cell)).split("/")[1] for cell in evaluation.grid(measured.RUNS, measured.RUNS)}
    assert grid == set(measured.METHODS)


def cell_of(id_: str) -> dict:
    [cell] = [cell for cell in synthetic()[0]["cells"] if cell["id"] == id_]
    return cell


@pytest.mark.parametrize(
    "dials, id_, factor, tuned, idle",
    [
        ({}, "rope-10000-0/yarn/4", 4, False, []),
        ({"tuned": True, "factor": "16"}, "rope-10000-0/yarn/16/tuned", 16, True, []),
        ({"method": "ntk", "tuned": True}, "rope-10000-0/ntk/4", 4, False, ["tuned"]),
        ({"method": "rerope", "run": "rope-10000-1"}, "rope-10000-1/rerope", 0, False, ["factor"]),
        (
            {"method": "dynamic_ntk_cached", "tuned": True},
            "rope-10000-0/dynamic_ntk/cached",
            0,
            False,
            ["factor", "tuned"],
        ),
        ({"method": "dynamic_ntk_anew"}, "rope-10000-0/dynamic_ntk/uncached", 0, False, ["factor"]),
        ({"method": "dynamic_ntk"}, "rope-10000-0/dynamic_ntk", 0, False, ["factor"]),
        ({"method": "none", "tuned": True, "factor": "2"}, "rope-10000-0/none/2/tuned", 2, True, []),
    ],
)
def test_the_cell_that_the_dials_ask_for(dials, id_, factor, tuned, idle):  # fmt: skip
    found, cell, curve = computed(Measured, **dials), cell_of(id_), synthetic()[1][id_].astype(float)
    run = cell["run"]
    assert len(found["lines"]) == 2
    assert (found["factor"], found["tuned"], found["idle"]) == (factor, tuned, idle)
    assert found["against"] == found["lines"][1] == f"{run}/none"
    assert found["bytes"] == [862, 1024]
    assert found["band"] == 2
    plain_curve = synthetic()[1][f"{run}/none"].astype(float)
    assert found["here"] == pytest.approx([np.nanmean(curve[861:1024]), plain_curve[861:1024].mean()], abs=5.1e-4)
    assert found["hereApart"] == [found["here"][0] - found["here"][1]]
    assert found["spread"] == pytest.approx([one and round(one, 3) for one in cell["error"]])
    assert found["window"] == [2.41, 2.3, 2.25, 2.2, 2.21]
    apart = np.array(found["window"]) - cell_of(f"{run}/none")["bits"]
    assert found["windowApart"] == pytest.approx(apart, abs=5.1e-4)


def test_bins_are_log_spaced_and_end_where_bands_do():
    edges = measured.bin_edges(TEXT)
    assert set(range(9)) | {stop for _, stop in BANDS} <= set(edges)
    assert len(edges) == 45
    assert max(b / a for a, b in itertools.pairwise(edges[9:])) < 1.25
    found, curve = computed(Measured), synthetic()[1]["rope-10000-0/yarn/4"].astype(float)
    for (start, stop), at, bits in zip(itertools.pairwise(edges), found["at"], found["curves"][0], strict=True):
        assert start < at <= stop
        assert bits == pytest.approx(np.mean(curve[start:stop]), abs=5.1e-4)


def test_the_position_is_read_in_the_bin_that_holds_it():
    edges = measured.bin_edges(TEXT)
    for position in (1, 2, 8, 9, 10, 11, 256, 257, 4096):
        found = computed(Measured, position=position)
        first, last = found["bytes"]
        assert first <= position <= last
        assert last in edges
        start, stop = BANDS[found["band"]]
        assert start < position <= stop
        assert abs(math.log(DISTANCES[found["distance"]] / position)) == pytest.approx(
            min(abs(math.log(d / position)) for d in DISTANCES)
        )


def test_differences_are_paired_over_files_and_decided_by_both_seeds():
    for method in ("yarn/4", "linear/16/tuned", "ntk/2"):
        by_seed = []
        for run in measured.RUNS:
            ones = np.array(cell_of(f"{run}/{method}")["files"]) - np.array(cell_of(f"{run}/none")["files"])
            by_seed.append((ones.mean(0), ones.std(0, ddof=1) / math.sqrt(FILES)))
        name, factor, *tuned = method.split("/")
        found = computed(Measured, method=name, factor=factor, tuned=bool(tuned))
        assert found["apart"][0] == pytest.approx(by_seed[0][0], abs=5.1e-4)
        assert found["apartError"][0] == pytest.approx(by_seed[0][1], abs=5.1e-4)
        (d0, e0), (d1, e1) = by_seed
        expected = [
            (abs(a) > 2 * b) and (abs(c) > 2 * d) and a * c > 0 for a, b, c, d in zip(d0, e0, d1, e1, strict=True)
        ]
        assert found["decided"] == [expected]
        assert any(expected)


PLAIN = "rope-10000-0/none"


def test_without_a_cache_the_same_bytes_are_compared():
    found, cell, plain_cell = (
        computed(Measured, method="dynamic_ntk_anew"),
        cell_of("rope-10000-0/dynamic_ntk/uncached"),
        cell_of(PLAIN),
    )
    assert cell["bits"][1:] == [None] * 4
    expected = np.array(cell["sampled"]["files"], dtype=float) - np.array(plain_cell["sampled"]["files"], dtype=float)
    assert found["apart"][0][1:] == pytest.approx(expected.mean(0)[1:], abs=5.1e-4)
    first = np.array(cell["files"], dtype=float)[:, 0] - np.array(plain_cell["files"])[:, 0]
    assert found["apart"][0][0] == pytest.approx(first.mean(), abs=5.1e-4)
    assert found["far"][0] == [None] * 8


@pytest.mark.parametrize(
    "pair, expected", [((0.3, 0.3), True), ((0.3, -0.3), False), ((0.3, 0.15), False), ((0.15, 0.3), False)]
)
def test_both_seeds_must_say_the_same(pair, expected):  # fmt: skip
    apart = {f"a-{seed}/x": (np.array([d]), np.array([0.1])) for seed, d in enumerate(pair)}
    assert measured.decided("a-0/x", apart, 1) == measured.decided("a-1/x", apart, 1) == [expected]
    del apart["a-1/x"]
    assert measured.decided("a-0/x", apart, 1) == [False]


def test_the_schemes_are_compared_with_rope():
    found = computed(Measured, run="schemes", position=300)
    assert found["lines"] == [f"{scheme}-0/none" for scheme in measured.SCHEMES]
    assert found["against"] == PLAIN
    assert found["idle"] == ["method", "factor", "tuned"]
    here = dict(zip(found["lines"], found["here"], strict=True))
    assert here["learned-0/none"] is None
    assert None not in [value for key, value in here.items() if key != "learned-0/none"]
    others = dict(zip(found["lines"][1:], found["apart"], strict=True))
    ones = np.array(cell_of("alibi-0/none")["files"]) - np.array(cell_of(PLAIN)["files"])
    assert others["alibi-0/none"] == pytest.approx(ones.mean(0), abs=5.1e-4)
    assert others["learned-0/none"][1:] == [None] * 4
    sure = dict(zip(found["lines"][1:], found["decided"], strict=True))
    assert any(sure["alibi-0/none"])
    assert not any(any(one) for key, one in sure.items() if key != "alibi-0/none")  # one seed alone decides nothing
    edges = measured.bin_edges(TEXT)
    learned = found["curves"][found["lines"].index("learned-0/none")]
    assert [value is not None for value in learned] == [stop <= LENGTH for stop in edges[1:]]


def test_retrieval():
    found, cell = computed(Measured, show="retrieval", position=700), cell_of("rope-10000-0/yarn/4")
    assert DISTANCES[found["distance"]] == 768
    shares = cell["retrieval"]["4096"]
    assert found["far"][0] == pytest.approx(shares, abs=5.1e-4)
    assert found["farError"][0] == pytest.approx([math.sqrt(p * (1 - p) / 64) for p in shares], abs=5e-3)
    assert found["near"][0] == [1.0, 0.984, 0.953, 0.906] + [None] * 4
    assert Measured().measured["chance"] == 1 / 8


def test_a_method_that_was_not_measured_is_shown_as_the_plain_model():
    whole, curves = synthetic()
    some = {**whole, "cells": [cell for cell in whole["cells"] if cell["method"] in ("none", "yarn")]}
    figure = measured.Measured(some, curves, method="rerope")
    found = expected_of(figure)
    assert (found["lines"], found["idle"]) == ([PLAIN], ["method", "factor"])
    [words] = js.describe(Measured, [figure.dials()])
    assert words.endswith("ReRoPE was not measured: shown as trained.")


def test_a_page_carries_less_than_60_kilobytes():
    assert len(json.dumps(Measured().measured)) < 60_000


def test_every_entry_but_the_middles_is_a_measured_number():
    dials = Measured().dials()
    assert oracle(Measured).terms(dials) == {"at": oracle(Measured).compute(dials)["at"]}


def test_the_results_are_read_from_their_folder(tmp_path, monkeypatch):
    from safetensors.numpy import save_file

    monkeypatch.setattr(results, "_BESIDE_THE_CODE", tmp_path)
    monkeypatch.setattr(results, "_INSIDE_THE_PACKAGE", tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="no result named 'evaluation'"):
        measured.Measured()
    (tmp_path / "evaluation.json").write_text(json.dumps(synthetic()[0]), encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"no evaluation\.safetensors beside it"):
        measured.Measured()
    save_file(synthetic()[1], tmp_path / "evaluation.safetensors")
    assert measured.Measured(method="ntk").dials() == Measured(method="ntk").dials()


def test_results_that_do_not_fit_are_refused():
    whole, curves = synthetic()
    with pytest.raises(TypeError, match="results and curves go together"):
        measured.Measured(results=whole)
    with pytest.raises(ValueError, match="texts of 4096 bytes, got 512"):
        measured.Measured({**whole, "text": 512}, curves)
    with pytest.raises(ValueError, match="must hold cell rope-10000-0/none"):
        measured.Measured({**whole, "cells": []}, curves)
    with pytest.raises(ValueError, match="must hold windowed rope-10000-0"):
        measured.Measured({**whole, "windowed": {}}, curves)
    with pytest.raises(ValueError, match="must hold curve "):
        measured.Measured(whole, {})


def in_words(*settings: dict) -> list[str]:
    return js.describe(Measured, [Measured(**dials).dials() for dials in settings])


def two(value: float) -> str:
    return f"{value:.2f}"


def test_loss_in_words():
    yarn, within, plain_one, schemes, anew, tuned = in_words(
        {},
        {"method": "linear", "position": 100},
        {"method": "none", "position": 3000},
        {"run": "schemes", "position": 3000},
        {"method": "dynamic_ntk_anew", "position": 3000},
        {"method": "ntk", "tuned": True},
    )
    found = computed(Measured)
    by, error = found["apart"][0][2], 2 * found["apartError"][0][2]
    assert yarn == (
        f"At byte 1024, 4 times the trained length, YaRN, s = 4 needs {two(found['here'][0])} bits, "
        f"{two(-found['hereApart'][0])} fewer than the model as trained; with the last 256 bytes only it needs 2.25. "
        f"Over bytes 513 to 1024 the difference is −{-by:.3f} ± {error:.3f} (two standard errors over files): more "
        "than that, with the same sign, in both seeds."
    )
    assert within.startswith("At byte 100, within the trained length, position interpolation, s = 4 needs ")
    assert "more than the model as trained. Over bytes 1 to 256 the difference is +" in within
    here = computed(Measured, method="none", position=3000)["here"][0]
    assert plain_one == (
        f"At byte 3000, 12 times the trained length, the model as trained needs {two(here)} bits; with the last 256 "
        "bytes only it needs 2.21."
    )
    assert "the fewest bits are those of ALiBi, " in schemes
    assert schemes.endswith("Not there: learned.")
    assert "dynamic NTK, keys anew needs" in anew
    assert tuned.endswith("There is no model fine-tuned with NTK-aware: shown without.")


def test_what_is_not_measured_or_not_decided_in_words():
    figure = Measured(method="yarn")
    cell = figure.measured["cells"]["rope-10000-0/yarn/4"]
    cell["decided"], cell["apart"] = [False] * 5, [-0.01] * 5
    [undecided] = js.describe(Measured, [figure.dials()])
    assert "the difference is −0.010 ± " in undecided
    assert undecided.endswith("(two standard errors over files): undecided here.")
    cell["apart"], cell["apartError"] = [-0.001] * 5, [0.002] * 5
    [null] = js.describe(Measured, [figure.dials()])
    assert null.endswith("(two standard errors over files): no difference, in this seed.")
    cell["apart"] = [None] * 5
    [unpaired] = js.describe(Measured, [figure.dials()])
    assert unpaired.endswith("with the last 256 bytes only it needs 2.25.")
    cell["bits"] = [None] * 44
    [unknown] = js.describe(Measured, [figure.dials()])
    assert unknown == "At byte 1024, 4 times the trained length, YaRN, s = 4 was not measured."


def test_retrieval_in_words():
    far, near, gone = in_words(
        {"show": "retrieval", "position": 768},
        {"show": "retrieval", "position": 60, "method": "dynamic_ntk_anew"},
        {"show": "retrieval", "position": 768, "method": "dynamic_ntk_anew"},
    )
    shares = [f"{round(100 * one[5])} %" for one in computed(Measured, show="retrieval", position=768)["far"]]
    assert far == (
        "Of the values planted 768 bytes before they are asked for, these shares are given back: "
        f"YaRN, s = 4: {shares[0]}; as trained: {shares[1]}. Guessing finds 13 %."
    )
    assert "dynamic NTK, keys anew: 98 % in texts of 256; as trained: " in near
    assert "dynamic NTK, keys anew: not asked; as trained: " in gone


def test_an_idle_dial_says_so():
    body = "return input.map(([trait, values]) => idleNote(trait, values));"
    cases = [
        ["factor", {"run": "rope-10000-0", "method": "log_n"}],
        ["factor", {"run": "rope-10000-0", "method": "none"}],
        ["tuned", {"run": "rope-10000-0", "method": "rerope", "tuned": True}],
        ["method", {"run": "schemes"}],
        ["method", {"run": "rope-10000-0", "method": "self_extend"}],
    ]
    assert js.inside(Measured, body, cases) == [
        "No effect here: log-n scaling has no factor.",
        "No effect here: the model as trained has no factor.",
        "There is no model fine-tuned with ReRoPE: shown without.",
        "No effect here: all schemes are shown as they were trained.",
        "Self-Extend was not measured: shown as trained.",
    ]
