"""Browser tests specific to the Precision explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from playwright.sync_api import expect

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
    number,
    pixels,
    stage_width,
    texts,
)


def precision_places(width: int) -> tuple[int, int, int, int]:
    """Return the left edges of the three pictures, and their width."""
    wide = width >= 620
    names, between = 70, 78 if wide else 10
    panel = (width - names - between - 26) // 3
    return names, names + panel + between, names + 2 * panel + between + 20, panel


def shade(error: float) -> np.ndarray:
    """Return the colour of an error: white up to 2⁻³⁰, orange 150 steps later, and black at 2. There are eight steps
    per octave.

    Within an octave, all steps are equally large, because a float32's leading bits divide it evenly, not
    logarithmically.
    """
    whole = math.floor(math.log2(max(error, 2**-30)))
    step = min(247, math.floor(8 * (whole + 30 + error / 2**whole - 1)) if error > 2**-30 else 0)
    if step < 150:
        return WHITE + (ORANGE - WHITE) * step / 150
    return ORANGE + (INK - ORANGE) * (step - 150) / 97


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("settings", [{}, {"dtype": "float16", "rounded": "positions", "first": 4090, "base": 77}])
def test_the_tables_show_what_python_computes(opened, width, settings):
    figure = Precision(count=16, dim=8, **settings)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 1000})
    rows, error = page.locator(".rb-stats dd").all_inner_texts()
    assert rows.split() == [str(expected["different"]), "of", "16"]
    assert number(error) == pytest.approx(expected["error"], rel=0.01)
    near = "float16 numbers are 4 apart, so neighbouring positions share rows."
    expect(page.locator(".rb-summary")).to_contain_text(f"Near 4,105, {near}" if settings else f"Near 1,015, b{near}")
    left, right, off, panel = precision_places(stage_width(page))
    tall = 406 if width == 1280 else 286
    tables = {name: np.reshape(expected[name], (16, 8)) for name in ("exact", "cells")}
    errors = np.abs(tables["cells"] - tables["exact"])
    for row in range(16):
        for column in range(8):
            for at, name in ((left, "exact"), (right, "cells"), (off, "")):
                if name:
                    value = tables[name][row, column]
                    wanted = WHITE + ((BLUE if value > 0 else ORANGE) - WHITE) * abs(value)
                else:
                    wanted = shade(errors[row, column])
                places = [
                    (at + (column + dx) / 8 * panel, 62 + (row + dy) * tall / 16) for dx, dy in [(0.3, 0.2), (0.7, 0.8)]
                ]
                np.testing.assert_allclose(pixels(page, places), [wanted] * 2, atol=4)
    if width == 1280:  # each run of equal rows is labelled with the position it represents
        marks = page.locator(".rb-stage svg text").evaluate_all(
            "all => all.map((t) => [t.textContent, +t.getAttribute('x'), +t.getAttribute('y')])"
        )
        used = {y: text for text, x, y in marks if x == right - 8 and y > 60}
        starts = [row for row, fresh in enumerate(expected["fresh"]) if fresh]
        assert used == {62 + (row + 0.5) * tall / 16 + 4: f"{expected['used'][row]:.0f}" for row in starts}


def test_rows_keep_their_places_above_what_is_lost(opened):
    """Positions 65470 to 65488 become 65472, positions up to 65519 become 65504, and all others become infinite."""
    figure = Precision(dtype="float16", rounded="positions", first=65_470, count=64, dim=8, base=77)
    page = opened([figure])
    table = np.reshape(expected_of(figure)["cells"], (64, 8))
    _, right, off, panel = precision_places(stage_width(page))
    for row in (0, 17, 18, 19, 49):
        found = pixels(page, [(right + (column + 0.5) / 8 * panel, 62 + (row + 0.5) * 406 / 64) for column in range(8)])
        ends = np.where(table[row, :, None] > 0, BLUE, ORANGE)
        np.testing.assert_allclose(found, WHITE + (ends - WHITE) * np.abs(table[row, :, None]), atol=3)
    for k, left in ((-2, off), (-1, right)):  # neither numbers nor errors are shown there
        lost = page.locator(".rb-stage svg rect").nth(k)
        assert [float(lost.get_attribute(name)) for name in ("x", "y", "width", "height")] == [
            left,
            62 + 50 * 406 / 64,
            panel,
            14 * 406 / 64,
        ]


def test_the_table_is_pulled_like_a_text(opened):
    page = opened([Precision()])
    edge = page.get_by_role("slider", name="First position, at the table’s edge")
    box = edge.bounding_box()
    x, y = box["x"] + 20, box["y"] + 200
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y - 64, steps=4)  # ten rows above
    assert dials(page)["first"] == 1010
    page.mouse.move(x, y + 127, steps=4)
    assert dials(page)["first"] == 980
    page.mouse.up()
    edge.press("ArrowUp")
    assert dials(page)["first"] == 981


def test_columns_that_share_a_pixel_are_blended(opened):
    """With base 1 all pairs rotate by the same angle. So all cosines in a row have the same colour, however many
    columns there are."""
    page = opened([Precision(base=1, dim=512, count=8, first=20, dtype="float64")])
    left, _, _, panel = precision_places(stage_width(page))
    for row in range(8):
        found = pixels(page, [(left + x, 62 + (row + 0.5) * 406 / 8) for x in range(4, panel // 2 - 4)])
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
    expect(page.locator(".rb-summary")).to_contain_text(
        "From position 65,520 on, float16 represents the positions as infinity"
    )
    assert page.locator(".rb-stats dd").first.inner_text().split() == ["1", "of", "64"]
    enter(page, "First position", 70_000)
    assert page.locator(".rb-stats dd").nth(1).inner_text().split()[0] == "–"
    enter(page, "First position", 10**8)
    expect(page.get_by_role("status")).to_contain_text(
        "First position: 100000000 is more than 10,000,000 (further on, even float32 merges positions). Still 70000."
    )
    hash_ = hash_of(page)
    assert hash_ == "#precision.dtype=float16&precision.rounded=positions&precision.first=70000"
    again = opened([Precision()], fragment=hash_)
    assert dials(again) == dials(page)
    bad = opened([Precision()], fragment="#precision.dtype=float8")
    assert dials(bad)["dtype"] == "bfloat16"
    expect(bad.get_by_role("status")).to_contain_text("float8")


def test_the_page_rounds_as_torch_does(opened):
    """The browser computes the same numbers as Node, which the unit tests use."""
    page = opened([Precision(first=300, count=40, dim=16)])
    found = data(page)
    positions = torch.arange(300, 340).to(torch.bfloat16)
    assert found["used"] == positions.double().tolist()
    assert found["cells"] == oracle(Precision).compute(dials(page))["cells"]
