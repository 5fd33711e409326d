"""The explorers of the chapters on the complex plane and on efficient rotation in a page without a kernel."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Page, expect

from ropebook.explorers.fourier import Fourier
from ropebook.explorers.pairing import Pairing
from ropebook.explorers.precision import Precision
from tests.explorers.oracles import expected_of, oracle
from tests.site.figures import (
    BLUE,
    INK,
    ORANGE,
    WHITE,
    data,
    dials,
    enter,
    hash_of,
    pixels,
    show_panel,
    stage_width,
)

# Every text of a stage: words, left, right, top and bottom in pixels.
BOXES = """(stage) => [...stage.querySelectorAll('svg text')].filter((t) => t.textContent
  && getComputedStyle(t).visibility !== 'hidden').map((t) => {
  const [a, b] = [t.getBoundingClientRect(), stage.getBoundingClientRect()];
  return [t.textContent, a.left - b.left, a.right - b.left, a.top - b.top, a.bottom - b.top];
})"""


def texts(page: Page) -> list[str]:
    return page.locator(".rb-stage svg text").all_text_contents()


def number(text: str) -> float:
    return float(text.split()[0].replace("−", "-"))


# ---- The sum of waves ----


def fourier_places(width: int, span: int) -> tuple:
    """Where a distance stands, and the ends of the bars."""
    wide = width >= 620
    left, right = (62, round(width * 0.66)) if wide else (46, round(width * 0.64))
    return (lambda delta: left + delta / span * (right - left)), right + (34 if wide else 18)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_sum_shows_what_python_computes(opened, width):
    figure = Fourier(dim=12, peak=30, distance=44, span=90, draw=2, base=100)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 1000})
    score, highest, adding = page.locator(".rb-stats dd").all_inner_texts()
    assert number(score) == pytest.approx(expected["score"], rel=0.01)
    assert number(highest) == pytest.approx(expected["highest"], rel=0.01)
    assert adding.split() == [str(sum(one >= 0 for one in expected["products"])), "of", "6"]
    expect(page.locator(".rb-summary")).to_contain_text("at Δ = 30 every wave has its crest")
    # each bar begins where the one before ended
    x, left = fourier_places(stage_width(page), 90)
    right = stage_width(page) - (52 if width == 1280 else 6)
    sums = np.cumsum([0, *expected["products"]])
    whole = sum(expected["size"])
    low = min(0, *expected["total"], *sums)
    low = -max(1, math.ceil(-4 * low / whole - 1e-9)) / 4 * whole
    paths = [path.get_attribute("d") for path in page.locator(".rb-bars").all()]
    bars = {}
    for colour, path in zip(("pos", "neg"), paths, strict=True):
        for start, middle, end in re.findall(r"M([\d.]+),([\d.]+)H([\d.]+)", path):
            bars[float(middle)] = (colour, float(start), float(end))
    shown = [bars[place] for place in sorted(bars)]
    place = [left + (value - low) / (whole - low) * (right - left) for value in sums]
    assert [colour for colour, _, _ in shown] == ["neg" if one < 0 else "pos" for one in expected["products"]]
    assert [start for _, start, _ in shown] == pytest.approx(place[:-1], abs=0.02)
    assert [end for _, _, end in shown] == pytest.approx(place[1:], abs=0.02)
    if width == 1280:
        signed = [float(text.replace("−", "-")) for text in texts(page) if re.fullmatch(r"[+−]\d+\.\d\d", text)]
        assert signed == pytest.approx(expected["products"], abs=0.0051)
    # the waves: blue above their middle, orange below, and the dot where the marker crosses
    floor = 392 if width == 1280 else 358
    pitch, tallest = (floor - 74) / 6, max(expected["size"])
    for k in range(6):
        product = expected["products"][k]
        middle = 74 + (k + 0.5) * pitch
        [dot] = pixels(page, [(x(44) + 2, middle - product / tallest * (pitch / 2 - 2))])
        assert (dot[0] > dot[2]) == (product < 0)
        for delta in (5, 15, 60, 80):
            value = expected["size"][k] * math.cos((delta - 30) * 2 * math.pi / expected["wavelengths"][k])
            if abs(value) < 0.4 * tallest:
                continue
            [half] = pixels(page, [(x(delta), middle - value / tallest / 2 * (pitch / 2 - 2))])
            paint = ORANGE if value < 0 else BLUE
            np.testing.assert_allclose(half, WHITE + (paint - WHITE) * 0.25, atol=4)
    # the sum, its peak and its marker
    show_panel(page, "Their sum")
    top, bottom = (438, 558) if width == 1280 else (74, 358)
    [dot] = pixels(page, [(x(44) + 2, bottom - (expected["score"] - low) / (whole - low) * (bottom - top))])
    np.testing.assert_allclose(dot, ORANGE if expected["score"] < 0 else BLUE, atol=4)
    [line] = pixels(page, [(x(44), top + 3)])
    assert np.abs(line - INK).max() < 120
    peak = pixels(page, [(x(30), y) for y in range(75, 350)]).max(-1)
    assert (peak < 130).sum() > 40


def test_keys_move_the_distance(opened):
    page = opened([Fourier()])
    pad = page.get_by_role("slider", name="Distance in the picture")
    pad.focus()
    assert (pad.get_attribute("aria-valuemin"), pad.get_attribute("aria-valuemax")) == ("0", "200")
    for key, distance in [
        ("ArrowRight", 61), ("ArrowUp", 62), ("ArrowLeft", 61), ("ArrowDown", 60), ("PageUp", 120), ("PageDown", 60),
        ("End", 200), ("ArrowRight", 200), ("Home", 0), ("ArrowLeft", 0), ("PageUp", 1), ("x", 1),
    ]:  # fmt: skip
        page.keyboard.press(key)
        assert dials(page)["distance"] == distance
        assert pad.get_attribute("aria-valuenow") == str(distance)
        assert pad.get_attribute("aria-valuetext").startswith(f"Δ = {distance}, score ")


def test_the_pointer_drags_the_distance_and_the_peak(opened):
    page = opened([Fourier(span=100, peak=10, distance=5)])
    box = page.get_by_role("slider", name="Distance in the picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 50)
    assert dials(page)["distance"] == 5  # no button is held
    page.mouse.down()
    assert dials(page)["distance"] == 40
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 90)
    assert dials(page)["distance"] == 70
    page.mouse.move(box["x"] + box["width"] * 1.5, box["y"] + 90)
    assert dials(page)["distance"] == 100
    page.mouse.up()
    page.mouse.move(box["x"] + 9, box["y"] + 90)
    assert dials(page)["distance"] == 100
    page.mouse.click(box["x"] + 30, box["y"] + 90, button="right")
    assert (dials(page)["distance"], dials(page)["peak"]) == (100, 10)
    peak = page.get_by_role("slider", name="Peak in the picture")
    place = peak.bounding_box()
    page.mouse.move(place["x"] + place["width"] / 2, place["y"] + 12)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"], place["y"] + 40, steps=3)
    page.mouse.up()
    assert (dials(page)["distance"], dials(page)["peak"]) == (100, 100)
    expect(page.locator(".rb-summary")).to_contain_text("Here nothing is taken away: every pair")
    peak.press("ArrowLeft")
    assert dials(page)["peak"] == 99


def test_the_span_takes_peak_and_distance_along(opened):
    page = opened([Fourier()])
    enter(page, "Longest Δ shown", 50)
    assert (dials(page)["peak"], dials(page)["distance"]) == (50, 50)
    enter(page, "Peak at Δ", 60)
    assert dials(page)["peak"] == 50
    enter(page, "Dimension d", 7)
    expect(page.get_by_role("status")).to_have_text(
        "Dimension d: 7 is not one of 2, 4, 6, … (entries come in pairs). Still 32."
    )
    enter(page, "Pairs summed", 0)
    expect(page.get_by_role("status")).to_contain_text("0 is less than 1 (a sum needs one pair). Still 256.")
    enter(page, "Pairs summed", 4)
    assert "The score: the sum of the first 4 of 16" in texts(page)
    assert page.locator(".rb-stats dd").nth(2).inner_text().split() == ["4", "of", "4"]
    numbers = (
        page.locator(".rb-stage")
        .get_by_text(re.compile(r"^[+−]\d+\.\d\d$"))
        .evaluate_all("all => all.map((t) => t.style.fill)")
    )
    assert ["grid" in fill for fill in numbers] == [False] * 4 + [True] * 12


# ---- The pairs ----


def links(page: Page, which: str) -> list[tuple[str, float, float]]:
    """Stroke (a variable's name), first and last x of the arcs (rb-arc) or of the lines between (rb-meets)."""
    found = page.locator(f".{which}").evaluate_all("all => all.map((p) => [p.style.stroke, p.getAttribute('d')])")
    ends = []
    for stroke, d in found:
        points = re.findall(r"([\d.]+),[-\d.]+", d)
        ends.append((re.search(r"--rb-(\w+)", stroke)[1], float(points[0]), float(points[-1])))
    return ends


def cells(page: Page) -> list[list[str]]:
    """The numbers on the cells of q and of k from left to right."""
    found = page.locator(".rb-piece").evaluate_all(
        "all => all.map((g) => [g.textContent, new DOMMatrix(getComputedStyle(g).transform)])"
        ".map(([text, m]) => [text, m.e, m.f])"
    )
    rows = sorted({y for _, _, y in found})
    assert len(rows) == 2
    return [[text for text, _, y in sorted(found, key=lambda one: one[1]) if y == row] for row in rows]


@pytest.mark.parametrize("width", [1280, 390])
def test_arcs_and_lines_tell_what_belongs_together(opened, width):
    page = opened([Pairing()], viewport={"width": width, "height": 1000})
    verdicts = page.locator(".rb-verdict")
    halves, order = [*"02461357"], [*"01234567"]
    for clicked, q, k, half in [
        (None, True, False, True),
        ("Permute k", True, True, True),
        ("Rotate in halves", True, True, False),
        ("Permute q", False, True, False),
        ("Permute k", False, False, False),
        ("Rotate in halves", False, False, True),
    ]:
        if clicked:
            page.get_by_role("button", name=clicked, exact=True).click()
        assert dials(page) == {
            "permute_q": q, "permute_k": k, "pairing": "half" if half else "interleaved", "dim": 8, "m": 40, "n": 32,
        }  # fmt: skip
        assert cells(page) == [halves if q else order, halves if k else order]
        pressed = {b.inner_text(): b.get_attribute("aria-pressed") for b in page.locator(".rb-tools > button").all()}
        assert pressed == {name: str(on).lower() for name, on in
                           [("Permute q", q), ("Permute k", k), ("Rotate in halves", half)]}  # fmt: skip
        arcs = links(page, "rb-arc")
        good = [q == half, k == half]
        for row, whole in enumerate(good):
            strokes = [stroke for stroke, _, _ in arcs[4 * row : 4 * row + 4]]
            assert strokes == (["1", "2", "3", "4"] if whole else ["muted"] * 4)
        cell = links(page, "rb-meets")[1][1] - links(page, "rb-meets")[0][1]
        assert {round((b - a) / cell) for _, a, b in arcs} == {4 if half else 1}
        meets = [stroke != "muted" for stroke, _, _ in links(page, "rb-meets")]
        assert meets == [a == b for a, b in zip(*cells(page), strict=True)]
        assert [text[0] for text in verdicts.all_text_contents()] == ["✓" if one else "✗" for one in [*good, q == k]]
        expected = oracle(Pairing).compute(dials(page))
        shown = [number(text) for text in page.locator(".rb-stats dd").all_inner_texts()]
        assert shown[:2] == pytest.approx([expected["reference"], expected["score"]], rel=0.01)
        show_panel(page, "Score")
        curves = [page.locator(f".{name}").get_attribute("d") for name in ("rb-reference", "rb-now")]
        assert (curves[0] == curves[1]) == (q == k == half)
        points = np.array([[float(n) for n in point.split(",")] for point in re.split("[ML]", curves[1])[1:]])
        line = np.polyfit(expected["scores"], points[:, 1], 1)
        np.testing.assert_allclose(np.polyval(line, expected["scores"]), points[:, 1], atol=0.02)
        assert line[0] < 0
        assert np.ptp(np.diff(points[:, 0])) < 0.02
        show_panel(page, "Channels")


def test_dials_of_the_pairs(opened):
    page = opened([Pairing()])
    page.get_by_role("switch", name="Permute k").check()
    page.get_by_role("radio", name="interleaved").check()
    expect(page.locator(".rb-summary")).to_contain_text("q and k are both stored half-split, but the rotation takes")
    enter(page, "Dimension d", 2)
    expect(page.get_by_role("status")).to_contain_text("2 is less than 4 (one pair can be stored in one way only)")
    enter(page, "Dimension d", 30)
    assert page.locator(".rb-piece").count() == 60
    enter(page, "Position m of q", 7)
    enter(page, "Position n of k", 7)
    now = page.locator(".rb-stats dd").all_inner_texts()
    assert now[0] == now[1]  # at n = m the rotations cancel
    hash_ = hash_of(page)
    assert set(hash_[1:].split("&")) == {
        "pairing.permute_k=on", "pairing.pairing=interleaved", "pairing.dim=30", "pairing.m=7", "pairing.n=7",
    }  # fmt: skip
    again = opened([Pairing()], fragment=hash_)
    assert dials(again) == dials(page)


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_cells_glide_unless_the_reader_wants_no_motion(opened, motion):
    page = opened([Pairing(permute_q=False)], reduced_motion=motion)
    page.wait_for_timeout(100)
    first, second = (page.locator(".rb-piece").nth(n) for n in (0, 1))  # channel 1 goes to the middle
    before = second.evaluate("e => new DOMMatrix(getComputedStyle(e).transform).e")
    wide = before - first.evaluate("e => new DOMMatrix(getComputedStyle(e).transform).e")
    assert wide > 20
    page.get_by_role("button", name="Permute q", exact=True).click()
    at_once = second.evaluate("e => new DOMMatrix(getComputedStyle(e).transform).e")
    page.wait_for_timeout(700)
    after = second.evaluate("e => new DOMMatrix(getComputedStyle(e).transform).e")
    assert after - before == pytest.approx(3 * wide, abs=1)
    assert (at_once < after - 10) == (motion == "no-preference")


# ---- The tables ----


def precision_places(width: int) -> tuple[int, int, int, int, int]:
    """Left of both pictures, their width, and the ends of the scale of errors."""
    wide = width >= 620
    errors = math.floor(width * 0.18 + 0.5) if wide else 64
    between = 76 if wide else 10
    panel = (width - 70 - between - errors - 26) // 2
    return 70, 70 + panel + between, panel, width - errors, width - 12


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("settings", [{}, {"dtype": "float16", "rounded": "positions", "first": 4090, "base": 77}])
def test_the_tables_show_what_python_computes(opened, width, settings):
    figure = Precision(count=16, dim=8, **settings)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 1000})
    rows, error, spacing = page.locator(".rb-stats dd").all_inner_texts()
    assert rows.split() == [str(expected["different"]), "of", "16"]
    assert number(error) == pytest.approx(expected["error"], rel=0.01)
    assert spacing.split() == (["4", "at", "1015"] if not settings else ["4", "at", "4105"])
    left, right, panel, start, end = precision_places(stage_width(page))
    tall = 416 if width == 1280 else 296
    for at, name in ((left, "exact"), (right, "cells")):
        table = np.reshape(expected[name], (16, 8))
        for row in range(16):
            for column in range(8):
                value = table[row, column]
                wanted = WHITE + ((BLUE if value > 0 else ORANGE) - WHITE) * abs(value)
                places = [
                    (at + (column + dx) / 8 * panel, 62 + (row + dy) * tall / 16) for dx, dy in [(0.3, 0.2), (0.7, 0.8)]
                ]
                np.testing.assert_allclose(pixels(page, places), [wanted] * 2, atol=3)
    edge = page.locator(".rb-errors").get_attribute("d")
    reach = [float(n) for n in re.findall(r"H([\d.]+)V", edge)]
    wanted = [start + math.log(max(one, 1e-9) / 1e-9) / math.log(2e9) * (end - start) for one in expected["errors"]]
    assert reach == pytest.approx(wanted, abs=0.02)
    if width == 1280:  # the position that each run of equal rows stands for
        marks = page.locator(".rb-stage svg text").evaluate_all(
            "all => all.map((t) => [t.textContent, +t.getAttribute('x'), +t.getAttribute('y')])"
        )
        used = {y: text for text, x, y in marks if x == right - 8 and y > 60}
        starts = [row for row, fresh in enumerate(expected["fresh"]) if fresh]
        assert used == {62 + (row + 0.5) * tall / 16 + 4: f"{expected['used'][row]:.0f}" for row in starts}


def test_rows_keep_their_places_above_what_is_lost(opened):
    """Positions 65470 to 65488 become 65472, those to 65519 become 65504, and the others infinite."""
    figure = Precision(dtype="float16", rounded="positions", first=65_470, count=64, dim=8, base=77)
    page = opened([figure])
    table = np.reshape(expected_of(figure)["cells"], (64, 8))
    _, right, panel, _, _ = precision_places(stage_width(page))
    for row in (0, 17, 18, 19, 49):
        found = pixels(page, [(right + (column + 0.5) / 8 * panel, 62 + (row + 0.5) * 6.5) for column in range(8)])
        ends = np.where(table[row, :, None] > 0, BLUE, ORANGE)
        np.testing.assert_allclose(found, WHITE + (ends - WHITE) * np.abs(table[row, :, None]), atol=3)
    lost = page.locator(".rb-stage svg rect").last
    assert [float(lost.get_attribute(name)) for name in ("x", "y", "width", "height")] == [
        right,
        62 + 50 * 6.5,
        panel,
        14 * 6.5,
    ]


def test_the_table_is_pulled_like_a_text(opened):
    page = opened([Precision()])
    edge = page.get_by_role("slider", name="First position, at the table’s edge")
    box = edge.bounding_box()
    x, y = box["x"] + 20, box["y"] + 200
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 65, steps=4)  # ten rows up
    assert dials(page)["first"] == 1010
    page.mouse.move(x, y + 130, steps=4)
    assert dials(page)["first"] == 980
    page.mouse.up()
    edge.press("ArrowUp")
    assert dials(page)["first"] == 981


def test_columns_that_share_a_pixel_are_blended(opened):
    """At base 1 all pairs are alike: a row is one colour for all cosines, however many columns there are."""
    page = opened([Precision(base=1, dim=512, count=8, first=20, dtype="float64")])
    left, _, panel, _, _ = precision_places(stage_width(page))
    for row in range(8):
        found = pixels(page, [(left + x, 62 + (row + 0.5) * 52) for x in range(4, panel // 2 - 4)])
        value = math.cos(20 + row)
        wanted = WHITE + ((BLUE if value > 0 else ORANGE) - WHITE) * abs(value)
        np.testing.assert_allclose(found, np.tile(wanted, (len(found), 1)), atol=3)


def test_choosing_a_type_and_what_is_rounded(opened):
    page = opened([Precision()])
    page.get_by_role("radio", name="result").check()
    assert page.locator(".rb-stats dd").first.inner_text().split() == ["64", "of", "64"]
    page.get_by_role("radio", name="float16", exact=True).check()
    page.get_by_role("radio", name="positions").check()
    enter(page, "First position", 65_500)
    assert "not a number" in texts(page)
    expect(page.locator(".rb-summary")).to_contain_text("From position 65520 on, float16 has no number but infinity")
    assert page.locator(".rb-stats dd").first.inner_text().split() == ["1", "of", "64"]
    enter(page, "First position", 70_000)
    assert page.locator(".rb-stats dd").nth(1).inner_text().strip() == "–"
    enter(page, "First position", 10**8)
    expect(page.get_by_role("status")).to_contain_text(
        "First position: 100000000 is more than 10000000 (float32 would soon merge positions too). Still 70000."
    )
    hash_ = hash_of(page)
    assert hash_ == "#precision.dtype=float16&precision.rounded=positions&precision.first=70000"
    again = opened([Precision()], fragment=hash_)
    assert dials(again) == dials(page)
    bad = opened([Precision()], fragment="#precision.dtype=float8")
    assert dials(bad)["dtype"] == "bfloat16"
    expect(bad.get_by_role("status")).to_contain_text("float8")


def test_the_page_rounds_as_torch_does(opened):
    """The browser has the same numbers as Node, which the unit tests ask."""
    page = opened([Precision(first=300, count=40, dim=16)])
    found = data(page)
    positions = torch.arange(300, 340).to(torch.bfloat16)
    assert found["used"] == positions.double().tolist()
    assert found["cells"] == oracle(Precision).compute(dials(page))["cells"]


# ---- All ----
