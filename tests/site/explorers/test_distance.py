"""Browser tests specific to the Distance explorer."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.distance import Distance
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    BLUE,
    ORANGE,
    column,
    dials,
    enter,
    rows_of,
    stage_width,
)


def upright(found: dict) -> tuple[float, float]:
    """Return the limits of the score axis. They are multiples of its step, and everything shown lies between them,
    including 0."""
    low, high = min(0, *found["low"]), max(0, *found["high"])
    power_ = 10 ** math.floor(math.log10((high - low) / 5))
    step = max(1, next(f for f in (1, 2, 5, 10) if f * power_ * 5 >= high - low) * power_)
    return math.floor(low / step) * step, max(1, math.ceil(high / step)) * step


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize("length, query, vectors", [(512, 256, "ones"), (65536, 0, "ones"), (300, 100, "random")])
def test_the_curve_is_where_it_belongs(opened, width, length, query, vectors):
    figure = Distance(length=length, query=query, vectors=vectors, dim=64)
    page = opened([figure], viewport={"width": width, "height": 900})
    expected = expected_of(figure)
    right = stage_width(page) - 8
    floor = (500 if right > 520 else 400) - 42
    bottom, top = upright(expected)

    def x(key: float) -> float:
        return 46 + key / (length - 1) * (right - 46)

    def y(score: float) -> float:
        return floor - (score - bottom) / (top - bottom) * (floor - 74)

    ring = page.locator(".rb-stage svg circle")
    assert float(ring.get_attribute("cx")) == pytest.approx(x(expected["leastAt"]), abs=0.01)
    assert float(ring.get_attribute("cy")) == pytest.approx(y(expected["least"]), abs=0.01)
    triangle = page.locator(".rb-first")
    if expected["negativeAt"] < 0:
        expect(triangle).to_have_count(0)
    else:
        tip = [float(n) for n in re.match(r"M([-\d.]+),([-\d.]+)", triangle.get_attribute("d")).groups()]
        assert tip == pytest.approx([x(expected["negativeAt"]), y(0) + 2], abs=0.01)
    query_line = page.locator(".rb-stage svg path[style*='dasharray']").get_attribute("d")
    assert float(re.match(r"M([-\d.]+),", query_line)[1]) == pytest.approx(x(query), abs=0.01)
    per, low, high = expected["per"], np.array(expected["low"]), np.array(expected["high"])
    for share in (0.13, 0.41, 0.66, 0.9):
        at = round(46 + share * (right - 46))
        keys = (np.array([at - 2, at + 3]) - 46) / (right - 46) * (length - 1) / per
        near = slice(max(0, math.floor(keys[0])), math.ceil(keys[1]) + 1)
        colours = column(page, at, 68, floor + 6)
        ends = {"pos": (y(max(0, high[near].max())), y(0)), "neg": (y(0), y(min(0, low[near].min())))}
        for rows, (upper, lower) in ((rows_of(colours, BLUE), ends["pos"]), (rows_of(colours, ORANGE), ends["neg"])):
            if len(rows):
                assert rows.min() + 68 >= upper - 2.5
                assert rows.max() + 68 <= lower + 2.5
        assert len(rows_of(colours, BLUE)) + len(rows_of(colours, ORANGE)) > 0
    said = page.locator(".rb-summary").inner_text()
    first = abs(query - expected["negativeAt"])
    assert ("never negative" in said) == (expected["negativeAt"] < 0)
    where = f"{first:,} tokens away" if first else "at the query itself"
    assert expected["negativeAt"] < 0 or f"first goes negative {where}." in said
    assert f", {abs(query - expected['leastAt']):,} tokens away." in said
    assert (f"{expected['maxima']} local maxima" in said) == (length <= 4096)
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert ("first below 0" in found) == (expected["negativeAt"] >= 0)
    swings = [float(text.split("± ")[1]) for text in found if "far away: ± " in text]
    assert swings == pytest.approx([expected["swing"]] if expected["negativeAt"] >= 0 else [], rel=0.005)
    at = [float(node) for node in page.locator(".rb-stage svg text", has_text="lowest").evaluate(
        "(t) => { const { x, y, width, height } = t.getBBox(); return [x, y, x + width, y + height]; }")]  # fmt: skip
    centre = [x(expected["leastAt"]), y(expected["least"])]
    aside = max(at[0] - centre[0], centre[0] - at[2], 0)
    assert math.hypot(aside, max(at[1] - centre[1], centre[1] - at[3], 0)) < 24, "the name is beside its ring"


@pytest.mark.parametrize(
    "figure, apart",
    [
        (Distance(base=1, dim=6), False),
        (Distance(dim=2), False),
        (Distance(dim=4), True),
        (Distance(dim=4, vectors="slow"), False),
        (Distance(dim=6, vectors="slow"), True),
    ],
)
def test_waves_of_one_speed_are_never_out_of_step(opened, figure, apart):
    page = opened([figure])
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert any("far away: " in text for text in found) == apart


def test_the_list_sets_the_six_figures(opened):
    page = opened([Distance(base=77, vectors="same", query=10)])
    menu = page.get_by_role("combobox", name="Six published figures")
    prompt, *names = menu.locator("option").all_inner_texts()
    assert len(names) == 6
    expect(menu).to_have_value(prompt)
    for name in names:
        menu.select_option(name)
        dim, length, query = (int(one.replace(",", "")) for one in re.findall(r"\d+(?:,\d{3})*", name))
        now = dials(page)
        assert (now["dim"], now["length"], now["base"], now["vectors"]) == (dim, length, 1e4, "ones")
        expect(menu).to_have_value(name)
        assert now["query"] == query
    expect(page.locator(".rb-summary")).to_contain_text("first goes negative 91 tokens away")
    enter(page, "Base b", 500)
    expect(menu).to_have_value(prompt)


def test_the_query_follows_hand_and_keys(opened):
    page = opened([Distance(length=1001, query=100, dim=16)])
    pad = page.get_by_role("slider", name="Query position in the picture")
    box = pad.bounding_box()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 50)
    page.mouse.down()
    assert dials(page)["query"] == 250
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 60)
    assert dials(page)["query"] == 750
    page.mouse.up()
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 60)
    assert dials(page)["query"] == 750
    for key, query in [
        ("ArrowLeft", 749), ("ArrowUp", 750), ("PageDown", 375), ("Home", 0), ("ArrowLeft", 0), ("End", 1000),
        ("ArrowRight", 1000), ("PageUp", 1000), ("ArrowDown", 999), ("a", 999)]:  # fmt: skip
        pad.press(key)
        assert dials(page)["query"] == query
    expect(pad).to_have_attribute("aria-valuetext", "m = 999")
    enter(page, "Length L", 500)
    assert dials(page)["query"] == 499
    expect(pad).to_have_attribute("aria-valuemax", "499")


def test_choices_of_vectors(opened):
    page = opened([Distance()])
    for name, option in [("q ≠ k", "random"), ("slow pairs", "slow"), ("q = k", "same")]:
        page.get_by_role("radio", name=name, exact=True).check()
        assert dials(page)["vectors"] == option
    page.get_by_role("radio", name="q = k", exact=True).press("ArrowRight")
    assert dials(page)["vectors"] == "random"
    assert "The query and the key are random (draw 1)." in page.locator(".rb-stage svg text").all_text_contents()
