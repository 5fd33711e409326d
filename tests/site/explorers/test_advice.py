"""Browser tests specific to the Advice explorer."""

from __future__ import annotations

import math

import pytest
from playwright.sync_api import expect

from ropebook.explorers.advice import CASES, NAMES, Advice
from tests.explorers.oracles import expected_of
from tests.site.figures import data, dials, stage_width, texts

BARS = ".rb-stage svg rect[height='8']"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("setting", [{}, {"target_length": 100_000, "dim": 24}, {"base": 1.0}, {"target_length": 512}])
def test_bars_end_where_the_methods_reach(opened, width, setting):
    figure = Advice(**setting)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage = stage_width(page)
    length, target = figure.trained_length, figure.target_length
    start = 226 if stage >= 600 else 8
    low, high = min(length, target) / 4, max(length, target) * 4
    reach = {"no method": length, "cached": target, "tables": expected["reach"], "short": length, "base": target}
    if expected["young"] == 0:
        reach["base"] = length
    reach = [*reach.values(), target] if expected["needed"] else [length]
    bars = page.locator(BARS).evaluate_all("all => all.map((r) => ['x', 'width'].map((n) => +r.getAttribute(n)))")
    wanted = [math.log(one / low) / math.log(high / low) * (stage - 12 - start) for one in reach]
    assert [x for x, _ in bars] == [start] * len(wanted)
    assert [wide for _, wide in bars] == pytest.approx(wanted, abs=0.02)
    assert texts(page).count("not needed") == (0 if expected["needed"] else 5)


def test_a_row_is_chosen_by_a_click_and_by_its_dial(opened):
    page = opened([Advice()])
    said = set()
    for may, case in CASES.items():
        button = page.get_by_role("button", name=f"{NAMES[may]}, {case}", exact=True)
        button.click()
        assert dials(page)["may"] == may
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(page.locator(".rb-stage button[aria-pressed=true]")).to_have_count(1)
        said.add(page.locator(".rb-summary").inner_text())
    assert len(said) == len(CASES)


def test_the_lengths_are_dragged_and_the_axis_waits(opened):
    page = opened([Advice()], viewport={"width": 1280, "height": 1000})
    octave = (stage_width(page) - 12 - 226) / 6  # the axis goes from 1024 to 65,536
    for trait, name, goal in (
        ("target_length", "Target length L′ in the picture", 32768),
        ("trained_length", "Trained length L in the picture", 2048),
    ):
        box = page.get_by_role("slider", name=name, exact=True).bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + 10
        way = math.log2(goal / dials(page)[trait]) * octave
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + way, y, steps=6)
        assert dials(page)[trait] == pytest.approx(goal, rel=0.01)
        page.mouse.up()
        assert dials(page)[trait] == pytest.approx(goal, rel=0.01)
        octave = (stage_width(page) - 12 - 226) / 7
    page.get_by_role("slider", name="Target length L′ in the picture").press("Home")
    assert dials(page)["target_length"] == 16
    assert not data(page)["needed"]
    expect(page.locator(".rb-summary")).to_contain_text("Nothing is needed")


def test_a_model_is_chosen_by_its_name(opened):
    page = opened([Advice()])
    menu = page.get_by_role("combobox", name="A published model’s settings")
    expect(menu).to_have_value("Llama 2 7B")
    menu.select_option("Llama 3 8B")
    assert {name: dials(page)[name] for name in ("base", "dim", "trained_length")} == {
        "base": 500_000,
        "dim": 128,
        "trained_length": 8192,
    }
    expect(page.locator(".rb-stats")).to_have_text("Pairs without a full turn within L 29 of 64")
    expect(page.locator(".rb-stage")).to_contain_text("L = 8,192")
