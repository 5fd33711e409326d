"""Browser tests specific to the Timelapse explorer."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.timelapse import Timelapse
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    BLUE,
    CSS_ORANGE,
    GREY,
    ORANGE,
    data,
    dials,
    enter,
    of,
    pixels,
    show_panel,
    texts,
)


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize("setting", [{}, {"room": 600, "length": 500, "trained_length": 100}])
def test_tokens_have_the_colour_of_their_base(opened, width, setting):
    figure = Timelapse(**setting)
    page = opened([figure], viewport={"width": width, "height": 900})
    assert np.array(data(page)["errors"]) == pytest.approx(np.array(expected_of(figure)["errors"]), abs=1e-9)
    centres = page.evaluate(
        """() => { const e = document.querySelector('canvas'); const r = e.getBoundingClientRect();
          return [r.width, r.height]; }"""
    )
    stage, deep = centres[0], 320 if width == 390 else 190
    cell = min(96, stage)
    while math.ceil(figure.room / (stage // cell)) * cell > deep:
        cell -= 1
    columns = math.ceil(figure.room / math.ceil(figure.room / (stage // cell)))
    pitch = min(1.25 * cell, stage / columns)
    asked = [0, figure.trained_length - 1, figure.trained_length, figure.length - 2, figure.room - 1]
    places = [((n % columns + 0.5) * pitch, 50 + (n // columns + 0.5) * cell) for n in asked]
    found = pixels(page, places)
    highest = math.log(figure.room / figure.trained_length)

    def paint(colour: np.ndarray, share: float) -> list[int]:
        return [round(255 + (channel - 255) * share) for channel in colour]

    deepest = 0.3 + 0.7 * math.log((figure.length - 1) / figure.trained_length) / highest
    palest = 0.3 + 0.7 * math.log(1 + 1 / figure.trained_length) / highest
    expected = [
        paint(BLUE, 0.7),
        paint(BLUE, 0.7),
        paint(ORANGE, palest),
        paint(ORANGE, deepest),
        paint(GREY, 0.4),
    ]
    np.testing.assert_allclose(found, expected, atol=3)
    show_panel(page, "Their errors")
    floor, top = (358, 54) if width == 390 else (518, 50 + deep + 42 + 54)
    [curve] = of(page, CSS_ORANGE, 2)
    expected = np.array(data(page)["errors"])
    np.testing.assert_allclose((floor - curve[:, 1]) / (floor - top) * 1.7, expected, atol=0.002)
    keys = np.array(data(page)["keys"])
    np.testing.assert_allclose(curve[:, 0], 40 + keys / (figure.room - 1) * (stage - 54), atol=0.06)
    show_panel(page, "The keys")
    assert f"Cached keys of a text of {figure.length} tokens" in texts(page)


def test_pointer_and_keys_move_the_end_of_the_text(opened):
    page = opened([Timelapse()], viewport={"width": 760, "height": 1000})
    pad = page.get_by_role("slider", name=re.compile("^Length of the text"))
    box = pad.bounding_box()
    columns, cell = 29, 21  # the picture is 670 pixels wide and 190 high
    pitch = box["width"] / columns
    page.mouse.move(box["x"] + 3.5 * pitch, box["y"] + 2.5 * cell)
    page.mouse.down()
    assert dials(page)["length"] == 2 * columns + 4
    page.mouse.move(box["x"] + 20.5 * pitch, box["y"] + 3.5 * cell, steps=4)
    assert dials(page)["length"] == 3 * columns + 21
    page.mouse.up()
    page.mouse.move(box["x"], box["y"])
    page.mouse.click(box["x"] + 5, box["y"] + 5, button="right")
    assert dials(page)["length"] == 3 * columns + 21
    pad.focus()
    for key, length in [
        ("ArrowRight", 109),
        ("ArrowUp", 110),
        ("ArrowLeft", 109),
        ("PageUp", 218),
        ("PageDown", 109),
        ("End", 256),
        ("ArrowRight", 256),
        ("Home", 1),
        ("ArrowDown", 1),
        ("a", 1),
    ]:
        page.keyboard.press(key)
        assert dials(page)["length"] == length
    expect(pad).to_have_attribute("aria-valuetext", "1 token, error 0.00")
    page.get_by_role("button", name="16 tokens forward").click()
    assert dials(page)["length"] == 17
    expect(page.locator(".rb-stats dd").last).to_have_text("1 for 17 tokens")


def test_a_room_that_shrinks_takes_the_length_along(opened):
    page = opened([Timelapse()])
    enter(page, "Room", 100)
    assert dials(page)["length"] == 100
    enter(page, "Trained length L", 2048)
    assert "L" not in texts(page)
    expect(page.locator(".rb-summary")).to_contain_text("All 100 tokens")
