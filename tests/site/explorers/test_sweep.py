"""Browser tests specific to the Sweep explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ropebook.explorers.sweep import Sweep
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    BLUE,
    INK,
    column,
    data,
    dials,
    enter,
    hash_of,
    rows_of,
    show_panel,
    stage_width,
)


@pytest.mark.parametrize("width", [390, 760])
def test_the_panels_of_the_sweep(opened, width):
    figure = Sweep(base=1e4)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage = stage_width(page)
    expected = expected_of(figure)
    floor = 240 if stage >= 520 else 358
    panels = [(46, 56, stage - 54, floor - 56, expected["values"], expected["belowHalf"])]
    check_panels(page, panels)
    show_panel(page, "Ten bases")
    buttons = page.locator(".rb-stage .rb-button")
    expect(buttons).to_have_count(10)
    names = page.locator(".rb-stage svg text").all_text_contents()
    assert [name for name in names if name.startswith("b = ")] == [
        "b = 1", "b = 2", "b = 10", "b = 100", "b = 500", "b = 10³", "b = 10⁴", "b = 10⁵", "b = 10⁶", "b = 10⁷",
    ]  # fmt: skip
    assert f"½ at {expected['halves'][6]}" in names
    canvas = page.locator(".rb-stage canvas").bounding_box()
    boxes = [button.bounding_box() for button in buttons.all()]
    assert len({round(box["y"]) for box in boxes}) == (2 if stage >= 620 else 5)
    panels = []
    for box, curve, half in zip(boxes, expected["curves"], expected["halves"], strict=True):
        left, top = box["x"] - canvas["x"], box["y"] - canvas["y"]
        panels.append((left + 8, top + 22, box["width"] - 16, box["height"] - 27, curve, half))
    check_panels(page, panels)


def check_panels(page: Page, panels: list[tuple]) -> None:
    """Check the mark and the curve in each panel. A panel is given as (left, top, width, height, values, distances at
    which the curves fall below ½)."""
    for k, (left, top, tall_width, height, curve, half) in enumerate(panels):
        place = left + math.log(half) / math.log(4095) * tall_width
        colours = [column(page, place + shift, top + height * 0.4, top + height) for shift in (-1, 0)]
        assert max(len(rows_of(one, INK, 60)) for one in colours) > 0.2 * height, k
        at = 1 if k < 2 and len(panels) > 1 else 2  # here the curve is drawn as a line
        x = left + math.log(at) / math.log(4095) * tall_width
        y = top + (1 - curve[at]) / 2 * height
        near = np.concatenate([column(page, x + shift, y - 3, y + 4) for shift in (-1, 0, 1)])
        assert len(rows_of(near, BLUE, 60)), k


def test_the_fall_of_a_base_is_dragged(opened):
    page = opened([Sweep()])
    handle = page.get_by_role("slider", name="The base, by where its score falls below half")
    expect(handle).to_have_attribute("aria-valuenow", "10000")
    box, stage = handle.bounding_box(), page.locator(".rb-stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    decade = (stage["width"] - 54) / math.log10(4095)
    page.mouse.move(x, y)
    page.mouse.down()
    for share, base, half in ((math.log10(197 / 46), 1e6, 197), (-3, 1, 2), (3, 1e7, 449)):
        page.mouse.move(x + share * decade, y + 30, steps=5)
        assert dials(page)["base"] == pytest.approx(base, rel=0.05)
        assert data(page)["belowHalf"] == pytest.approx(half, rel=0.05)
    page.mouse.up()
    handle.press("ArrowLeft")
    assert 1e6 < dials(page)["base"] < 1e7


def test_a_panel_chooses_its_base(opened):
    page = opened([Sweep(base=50)])
    expect(page.locator(".rb-stage [aria-pressed=true]")).to_have_count(0)
    page.get_by_role("button", name="Choose base 500", exact=True).click()
    assert dials(page)["base"] == 500
    expect(page.locator(".rb-stage [aria-pressed=true]")).to_have_count(1)
    page.get_by_role("button", name="Choose base 10,000,000").focus()
    page.keyboard.press("Enter")
    assert dials(page)["base"] == 1e7
    assert hash_of(page) == "#sweep.base=10000000"
    expect(page.locator(".rb-summary")).to_contain_text("below half of its peak at Δ = 449 and is never negative.")
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert "The chosen base: b = 10⁷" in found
    assert "first below ½" in found
    assert "first below 0" not in found
    assert data(page)["halves"] == expected_of(Sweep())["halves"]


def test_the_ring_waits_at_the_edge_if_the_curve_stays_above_half(opened):
    page = opened([Sweep(base=1e7, length=16)])
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert "not yet below ½" in found
    assert "first below ½" not in found
    enter(page, "Base b", 10)
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert "first below ½" in found
    assert "not yet below ½" not in found
