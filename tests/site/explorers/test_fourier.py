"""Browser tests specific to the Fourier explorer."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ropebook.explorers.fourier import Fourier
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    BLUE,
    CSS_BLUE,
    CSS_INK,
    CSS_ORANGE,
    ORANGE,
    WHITE,
    dials,
    enter,
    number,
    of,
    pixels,
    show_panel,
    stage_width,
    texts,
)


def fourier_places(width: int, span: int) -> tuple:
    """Return a function that maps a distance to its x coordinate, and the x coordinate where the bars begin."""
    wide = width >= 620
    left, right = (62, round(width * 0.66)) if wide else (52, round(width * 0.64))
    return (lambda delta: left + delta / span * (right - left)), right + (34 if wide else 18)


def shown_dots(page: Page) -> list[tuple[float, float, str]]:
    """Return the points at which the curves cross the line at the chosen distance: x, y and colour of each dot."""
    found = "all => all.map((c) => [+c.getAttribute('cx'), +c.getAttribute('cy'), getComputedStyle(c).fill])"
    return page.locator(".rb-dot").evaluate_all(found)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_sum_shows_what_python_computes(opened, width):
    figure = Fourier(dim=12, peak=30, distance=44, span=90, draw=2, base=100)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 1000})
    score, highest = page.locator(".rb-stats dd").inner_text().split(" at the peak ")
    assert number(score) == pytest.approx(expected["score"], rel=0.01)
    assert number(highest) == pytest.approx(expected["highest"], rel=0.01)
    adding = sum(one >= 0 for one in expected["products"])
    expect(page.locator(".rb-summary")).to_contain_text(f"At Δ = 44, {adding} of 6 pairs")
    expect(page.locator(".rb-summary")).to_contain_text("every wave has a crest at Δ = 30.")
    # each bar begins where the previous one ended
    x, left = fourier_places(stage_width(page), 90)
    right = stage_width(page) - (52 if width == 1280 else 6)
    sums = np.cumsum([0, *expected["products"]])
    whole = sum(expected["size"])
    low = min(0, *expected["total"], *sums)
    low = -max(1, math.ceil(-4 * low / whole - 1e-9)) / 4 * whole
    paths = [path.get_attribute("d") for path in page.locator(".rb-bars").all()]
    bars = {}
    for colour, path in zip(("blue", "orange"), paths, strict=True):
        for start, middle, end in re.findall(r"M([\d.]+),([\d.]+)H([\d.]+)", path):
            bars[float(middle)] = (colour, float(start), float(end))
    shown = [bars[place] for place in sorted(bars)]
    place = [left + (value - low) / (whole - low) * (right - left) for value in sums]
    assert [colour for colour, _, _ in shown] == ["orange" if one < 0 else "blue" for one in expected["products"]]
    assert [start for _, start, _ in shown] == pytest.approx(place[:-1], abs=0.02)
    assert [end for _, _, end in shown] == pytest.approx(place[1:], abs=0.02)
    if width == 1280:
        signed = [float(text.replace("−", "-")) for text in texts(page) if re.fullmatch(r"[+−]\d+\.\d\d", text)]
        assert signed == pytest.approx(expected["products"], abs=0.0051)
    # the waves are blue above their midline and orange below it, with a dot where they cross the marker
    floor = 392 if width == 1280 else 358
    dots = shown_dots(page)
    pitch, tallest = (floor - 74) / 6, max(expected["size"])
    for k in range(6):
        product = expected["products"][k]
        middle = 74 + (k + 0.5) * pitch
        assert dots[k][:2] == pytest.approx((x(44), middle - product / tallest * (pitch / 2 - 2)), abs=0.02)
        assert dots[k][2] == (CSS_ORANGE if product < 0 else CSS_BLUE)
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
    dot = shown_dots(page)[-1]
    height = bottom - (expected["score"] - low) / (whole - low) * (bottom - top)
    assert dot[:2] == pytest.approx((x(44), height), abs=0.02)
    assert dot[2] == (CSS_ORANGE if expected["score"] < 0 else CSS_BLUE)
    for at, width_, dashes in ((30, 1.25, "2 4"), (44, 1.5, "none")):
        line = of(page, CSS_INK, width_, dashes)[-1]
        assert line[0, 0] == pytest.approx(x(at))


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
        assert pad.get_attribute("aria-valuetext").startswith(f"Δ = {distance:,}, score ")


def test_the_pointer_drags_the_distance_and_the_peak(opened):
    page = opened([Fourier(span=100, peak=10, distance=5)])
    box = page.get_by_role("slider", name="Distance in the picture").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 50)
    assert dials(page)["distance"] == 5  # no mouse button is pressed, so nothing changes
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
    expect(page.locator(".rb-summary")).to_have_text(
        "The key is the query rotated by 100 tokens, so every wave has a crest at Δ = 100."
    )
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
    expect(page.get_by_role("status")).to_contain_text("0 is less than 1 (a sum needs at least one pair). Still 16.")
    enter(page, "Pairs summed", 1)
    assert "Their sum, the score of the fastest of 16 pairs" in texts(page)
    enter(page, "Pairs summed", 4)
    assert "Their sum, the score of the first 4 of 16 pairs" in texts(page)
    expect(page.locator(".rb-stats dd")).to_have_text("8.00 at the peak 8.00")  # each pair adds 2
    numbers = (
        page.locator(".rb-stage")
        .get_by_text(re.compile(r"^[+−]\d+\.\d\d$"))
        .evaluate_all("all => all.map((t) => t.style.fill)")
    )
    assert ["grid" in fill for fill in numbers] == [False] * 4 + [True] * 12
    enter(page, "Dimension d", 4)
    assert "Their sum, the score of both pairs" in texts(page)
