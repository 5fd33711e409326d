"""Browser tests specific to the Heads explorer."""

from __future__ import annotations

import re

import pytest

from ropebook.explorers.heads import HEADS, LAYERS, Heads
from tests.explorers.oracles import expected_of
from tests.site.figures import dials

NAME = re.compile(r"^Layer \d+, head \d+\. Arrow keys")
# The corners of the map's cells, and how blue each is.
CELLS = """() => [...document.querySelectorAll('.rb-stage path')].flatMap((path) => {
  const blue = path.style.fillOpacity;
  return blue === '' ? [] : [...path.getAttribute('d').matchAll(/M([\\d.]+),([\\d.]+)h/g)].map((one) => {
    return [Number(one[1]), Number(one[2]), Number(blue)];
  });
})"""


@pytest.mark.parametrize("width", [390, 1000])
@pytest.mark.parametrize("measure", ["previous", "entropy"])
def test_every_head_has_a_cell_as_blue_as_its_number(opened, width, measure):
    figure = Heads(measure=measure)
    page = opened([figure], viewport={"width": width, "height": 900})
    cells = page.evaluate(CELLS)
    assert len(cells) == LAYERS * HEADS
    # sorted by columns, which are layers, and then by rows
    opacity = [blue for *_, blue in sorted(cells)]
    expected = expected_of(figure)["levels"]
    assert max(abs(blue / 0.94 - level) for blue, level in zip(opacity, expected, strict=True)) < 0.022


@pytest.mark.parametrize("width", [390, 1000])
def test_a_head_is_chosen_by_pointer_and_keys(opened, width):
    page = opened([Heads()], viewport={"width": width, "height": 900})
    pad = page.get_by_role("application", name=NAME)
    box = pad.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 16.5 / LAYERS, box["y"] + box["height"] * 0.5 / HEADS)
    assert (dials(page)["layer"], dials(page)["head"]) == (17, 1)
    assert page.locator(".rb-stats").inner_text().count("78%") == 1
    for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    assert (dials(page)["layer"], dials(page)["head"]) == (18, 3)
    assert page.get_by_role("application", name="Layer 18, head 3.").count() == 1


def test_a_finger_chooses_by_tapping(opened):
    page = opened([Heads()], viewport={"width": 390, "height": 900}, has_touch=True)
    box = page.get_by_role("application", name=NAME).bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 29.5 / LAYERS, box["y"] + box["height"] * 8.5 / HEADS)
    assert (dials(page)["layer"], dials(page)["head"]) == (30, 9)


def test_a_low_window_shows_the_map_or_the_head(opened):
    page = opened([Heads()], room=".rb .rb-height.rb-height { height: 220px }")
    stage = page.locator(".rb-stage")
    assert "All 270 heads" in stage.inner_text()
    assert "Its attention" not in stage.inner_text()
    page.get_by_role("button", name="One head").click()
    assert "All 270 heads" not in stage.inner_text()
    assert "Its attention" in stage.inner_text()
    assert page.get_by_role("application").count() == 0
