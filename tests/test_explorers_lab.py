"""The explorer of chapter *Measured*: JavaScript against Python, Python against the results, stills."""

from __future__ import annotations

import itertools
import json
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import traitlets

from ropebook import extrapolation, results
from ropebook.explorers import measured, still
from ropebook.lab import evaluation
from tests.explorers import js
from tests.explorers.made_up import BANDS, DISTANCES, FILES, LENGTH, TEXT, Measured, synthetic

SVG = "{http://www.w3.org/2000/svg}"
DESCRIBE = "return input.map((values) => describe(compute(values), values));"
PLAIN = "rope-10000-0/none"


# ---- Results of the evaluation's form, made up ----


# ---- JavaScript and Python agree ----


def test_the_methods_are_called_as_in_their_chapter():
    for name, title in measured.METHODS.items():
        if name in extrapolation.METHODS:
            assert title == extrapolation.METHODS[name].title
    grid = {measured.cell_key(vars(cell)).split("/")[1] for cell in evaluation.grid(measured.RUNS, measured.RUNS)}
    assert grid == set(measured.METHODS)


# ---- What the figure says, by the results themselves ----


def cell_of(id_: str) -> dict:
    [cell] = [cell for cell in synthetic()[0]["cells"] if cell["id"] == id_]
    return cell


def shown(**dials) -> dict:
    return Measured.compute(Measured(**dials).dials())


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
    found, cell, curve = shown(**dials), cell_of(id_), synthetic()[1][id_].astype(float)
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
    found, curve = shown(), synthetic()[1]["rope-10000-0/yarn/4"].astype(float)
    for (start, stop), at, bits in zip(itertools.pairwise(edges), found["at"], found["curves"][0], strict=True):
        assert start < at <= stop
        assert bits == pytest.approx(np.mean(curve[start:stop]), abs=5.1e-4)


def test_the_position_is_read_in_the_bin_that_holds_it():
    edges = measured.bin_edges(TEXT)
    for position in (1, 2, 8, 9, 10, 11, 256, 257, 4096):
        found = shown(position=position)
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
        found = shown(method=name, factor=factor, tuned=bool(tuned))
        assert found["apart"][0] == pytest.approx(by_seed[0][0], abs=5.1e-4)
        assert found["apartError"][0] == pytest.approx(by_seed[0][1], abs=5.1e-4)
        (d0, e0), (d1, e1) = by_seed
        expected = [
            (abs(a) > 2 * b) and (abs(c) > 2 * d) and a * c > 0 for a, b, c, d in zip(d0, e0, d1, e1, strict=True)
        ]
        assert found["decided"] == [expected]
        assert any(expected)


def test_without_a_cache_the_same_bytes_are_compared():
    found, cell, plain_cell = (
        shown(method="dynamic_ntk_anew"),
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
    found = shown(run="schemes", position=300)
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
    found, cell = shown(show="retrieval", position=700), cell_of("rope-10000-0/yarn/4")
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
    found = figure.compute(figure.dials())
    assert (found["lines"], found["idle"]) == ([PLAIN], ["method", "factor"])
    [words] = js.evaluate(Measured._esm, DESCRIBE, [figure.dials()])
    assert words.endswith("ReRoPE was not measured: shown as trained.")


def test_a_page_carries_less_than_60_kilobytes():
    assert len(json.dumps(Measured().measured)) < 60_000


def test_every_entry_but_the_middles_is_a_measured_number():
    dials = Measured().dials()
    assert Measured.terms(dials) == {"at": Measured.compute(dials)["at"]}


# ---- Where the numbers come from ----


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


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("show", "both", "show must be"),
        ("run", "alibi-0", "run must be"),
        ("method", "llama3", "method must be"),
        ("factor", 4, "factor must be"),
        ("factor", "3", "factor must be"),
        ("tuned", 1, "tuned must be True or False"),
        ("position", 0, "position must be .*>= 1"),
        ("position", 4097, "position must be .*<= 4096"),
        ("position", 1.5, "position must be"),
    ],
)
def test_bad_values_are_refused_and_change_nothing(name, value, message):
    with pytest.raises(traitlets.TraitError, match=message):
        Measured(**{name: value})
    figure = Measured()
    before = figure.dials()
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(figure, name, value)
    assert figure.dials() == before


# ---- Words in JavaScript ----


def in_words(*settings: dict) -> list[str]:
    return js.evaluate(Measured._esm, DESCRIBE, [Measured(**dials).dials() for dials in settings])


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
    found = shown()
    by, error = found["apart"][0][2], 2 * found["apartError"][0][2]
    assert yarn == (
        f"At byte 1024, 4 times the trained length, YaRN, s = 4 needs {two(found['here'][0])} bits, "
        f"{two(-found['hereApart'][0])} fewer than the model as trained; with the last 256 bytes only it needs 2.25. "
        f"Over bytes 513 to 1024 the difference is −{-by:.3f} ± {error:.3f} (two standard errors over files): more "
        "than that, with the same sign, in both seeds."
    )
    assert within.startswith("At byte 100, within the trained length, position interpolation, s = 4 needs ")
    assert "more than the model as trained. Over bytes 1 to 256 the difference is +" in within
    here = shown(method="none", position=3000)["here"][0]
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
    [undecided] = js.evaluate(Measured._esm, DESCRIBE, [figure.dials()])
    assert "the difference is −0.010 ± " in undecided
    assert undecided.endswith("(two standard errors over files): undecided here.")
    cell["apart"] = [None] * 5
    [unpaired] = js.evaluate(Measured._esm, DESCRIBE, [figure.dials()])
    assert unpaired.endswith("with the last 256 bytes only it needs 2.25.")
    cell["bits"] = [None] * 44
    [unknown] = js.evaluate(Measured._esm, DESCRIBE, [figure.dials()])
    assert unknown == "At byte 1024, 4 times the trained length, YaRN, s = 4 was not measured."


def test_retrieval_in_words():
    far, near, gone = in_words(
        {"show": "retrieval", "position": 768},
        {"show": "retrieval", "position": 60, "method": "dynamic_ntk_anew"},
        {"show": "retrieval", "position": 768, "method": "dynamic_ntk_anew"},
    )
    shares = [f"{round(100 * one[5])} %" for one in shown(show="retrieval", position=768)["far"]]
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
    assert js.evaluate(Measured._esm, body, cases) == [
        "No effect here: log-n scaling has no factor.",
        "No effect here: the model as trained has no factor.",
        "There is no model fine-tuned with ReRoPE: shown without.",
        "No effect here: all schemes are shown as they were trained.",
        "Self-Extend was not measured: shown as trained.",
    ]


# ---- Stills ----


def drawing(figure) -> ElementTree.Element:
    return ElementTree.fromstring(figure.still())


def texts(root: ElementTree.Element) -> list[str]:
    return [mark.text for mark in root.iter(f"{SVG}text")]


def strokes(root: ElementTree.Element, colour: str, width: float, dashes: str = "") -> list[np.ndarray]:
    """The points of the lines of this look, path by path."""
    wanted = re.compile(rf"stroke:var\(--fig-{colour}, [^;]*;stroke-width:{width:g}(;|$)")
    return [
        np.array([[float(n) for n in point.split(",")] for point in re.findall(r"-?[\d.]+,-?[\d.]+", path.get("d"))])
        for path in root.iter(f"{SVG}path")
        if wanted.search(path.get("style"))
        and (f"stroke-dasharray:{dashes}" in path.get("style") if dashes else "dasharray" not in path.get("style"))
    ]


STILLS = [
    {},
    {"method": "none"},
    {"method": "linear", "factor": "16", "tuned": True},
    {"method": "dynamic_ntk_anew"},
    {"run": "schemes"},
    {"show": "retrieval"},
    {"show": "retrieval", "method": "dynamic_ntk_anew", "run": "rope-10000-1"},
    {"show": "retrieval", "run": "schemes"},
]


@pytest.mark.parametrize("dials", STILLS)
def test_stills_are_one_picture_with_everything_inside(dials):
    figure = Measured(**dials)
    text = figure.still()
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") == figure.alt
    assert len(text) < 60_000
    assert "\n" not in text
    assert "nan" not in text
    assert "None" not in text
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = []
    for mark in root.iter(f"{SVG}text"):
        length = 0.5 * 13 * len(mark.text)
        left = float(mark.get("x")) - {"start": 0, "middle": length / 2, "end": length}[mark.get("text-anchor")]
        boxes.append((left, left + length, float(mark.get("y")), mark.text))
        assert left >= 0, mark.text
        assert left + length <= width + 8, mark.text
        assert 0 < float(mark.get("y")) <= height
    for (a, b, y, one), (c, d, z, other) in itertools.combinations(boxes, 2):
        assert min(b, d) <= max(a, c) or abs(y - z) >= 12, (one, other)
    for path in root.iter(f"{SVG}path"):
        absolute = re.findall(r"[ML]([-\d.]+),([-\d.]+)", path.get("d"))
        assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in absolute)


def x_of(position: np.ndarray | float, least: int = 1) -> np.ndarray | float:
    return 56 + np.log2(np.array(position) / least) / math.log2(TEXT / least) * 666


def test_the_still_of_the_loss():
    figure = Measured()
    root, data = drawing(figure), shown()
    values = [v for curve in data["curves"] for v in curve] + data["window"]
    low, high = math.floor(min(values)), math.ceil(max(values))

    def y(bits: np.ndarray | list) -> np.ndarray:
        return 362 - (np.array(bits) - low) / (high - low) * 250

    for (colour, width), curve in zip((("ink", 2.25), ("muted", 1.75)), data["curves"], strict=True):
        line = max(strokes(root, colour, width), key=len)
        np.testing.assert_allclose(line, np.stack([x_of(data["at"]), y(curve)], -1), atol=0.06)
    [shade] = [p for p in root.iter(f"{SVG}path") if "fill-opacity:0.15" in p.get("style")]
    points = np.array([[float(n) for n in p.split(",")] for p in re.findall(r"[\d.]+,[\d.]+", shade.get("d"))])
    bands = np.searchsorted([stop for _, stop in BANDS], data["at"])
    spread = np.array(data["spread"])[bands]
    upper, lower = y(np.array(data["curves"][0]) + spread), y(np.array(data["curves"][0]) - spread)
    np.testing.assert_allclose(points[:, 1], [*upper, *lower[::-1]], atol=0.06)
    windows = strokes(root, "2", 2, "5 4")[1:]  # after the legend's
    assert [line[0, 1] for line in windows[:4]] == pytest.approx(list(y(data["window"][1:])), abs=0.06)
    assert [line[0, 0] for line in windows[:4]] == pytest.approx(list(x_of([256, 512, 1024, 2048])), abs=0.06)
    [upright] = [line for line in strokes(root, "muted", 1.5) if line[0, 0] == line[1, 0]]
    assert upright[0, 0] == pytest.approx(x_of(256), abs=0.06)
    [dashed] = strokes(root, "muted", 1.5, "6 4")
    assert dashed[0, 0] == pytest.approx(x_of(1024), abs=0.06)
    assert {"L = 256", "4 L = 1024", "YaRN, s = 4", "as trained", "last 256 bytes only"} <= set(texts(root))


def test_the_still_of_the_differences():
    root, data = drawing(Measured()), shown()
    rings = list(root.iter(f"{SVG}circle"))
    assert len(rings) == 5
    [ones], [errors], [sure] = data["apart"], data["apartError"], data["decided"]
    scale = {float(t.replace("−", "-")): None for t in texts(root) if re.fullmatch(r"[+−]?[\d.]+", t)}
    heights = [float(ring.get("cy")) for ring in rings]
    slope = np.polyfit(ones, heights, 1)
    assert np.polyval(slope, ones) == pytest.approx(heights, abs=0.2)
    assert scale
    for ring, one, error, filled in zip(rings, ones, errors, sure, strict=True):
        assert ("fill:var(--fig-ink" in ring.get("style")) == filled
        number = f"{one:+.3f} ± {2 * error:.3f}".replace("-", "−")
        [mark] = [mark for mark in root.iter(f"{SVG}text") if mark.text == number]
        assert ("font-weight:600" in mark.get("style")) == filled
    whiskers = [line for line in strokes(root, "ink", 1.5) if line[0, 0] == line[1, 0]]
    spans = [abs(line[0, 1] - line[1, 1]) for line in whiskers]
    assert spans == pytest.approx([4 * error * abs(slope[0]) for error in errors], abs=0.25)
    schemes = drawing(Measured(run="schemes"))
    assert len(list(schemes.iter(f"{SVG}circle"))) == 6 + 4 * 5  # the learned scheme ends at L


def test_the_still_of_retrieval():
    root, data = drawing(Measured(show="retrieval")), shown(show="retrieval")
    line = max(strokes(root, "ink", 2.25), key=len)
    np.testing.assert_allclose(
        line, np.stack([x_of(DISTANCES, 16), 362 - 250 * np.array(data["far"][0])], -1), atol=0.06
    )
    rings = [ring for ring in root.iter(f"{SVG}circle") if "fill:var(--fig-zero" in ring.get("style")]
    assert len(rings) == 8
    assert "guessing" in texts(root)
    [guess] = [line for line in strokes(root, "2", 2, "5 4") if line[1, 0] - line[0, 0] > 100]
    assert guess[0, 1] == pytest.approx(362 - 250 / 8, abs=0.06)


def test_ticks_of_the_differences():
    assert [measured.nice_step(size, 4) for size in (0, 0.004, 0.2, 0.5, 3, 30)] == [
        0.001,
        0.001,
        0.05,
        0.2,
        1,
        10,
    ]
    sizes = [0, 0.004, 0.2, 0.5, 3, 30]
    found = js.evaluate(Measured._esm, "return input.map((size) => stepOf(size, 4));", sizes)
    assert found == [measured.nice_step(size, 4) for size in sizes]
    assert still.colour(measured.WINDOW[0]) != still.colour(measured.PLAIN[0])
