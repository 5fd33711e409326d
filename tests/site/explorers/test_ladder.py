"""Browser tests specific to the Ladder explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.ladder import METHODS as LAID
from ropebook.explorers.ladder import Ladder
from ropebook.extrapolation import METHODS
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    CSS_BLUE,
    CSS_INK,
    CSS_MUTED,
    CSS_ORANGE,
    data,
    dials,
    enter,
    hash_of,
    lines,
    of,
    show_panel,
    stage_width,
    texts,
)

COLOURS = {"ink": CSS_INK, "muted": CSS_MUTED}
ON = dict.fromkeys(LAID, True)


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize("setting", [{}, {"dim": 16, "factor": 8.0}, {"base": 500.0, "trained_length": 16}])
def test_rungs_and_methods_stand_where_they_belong(opened, width, setting):
    figure = Ladder(**setting, **ON)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage = stage_width(page)
    waves, turned, pairs = np.array(expected["wavelengths"]), expected["turned"], len(expected["wavelengths"])
    top, lower = 50, (358 if width == 390 else 558)
    floor = lower if width == 390 else lower - 158
    lower_top = top + 4 if width == 390 else floor + 44
    longest = 1.5 * max(expected["target"], waves[-1] * figure.factor)
    x = 46 + (np.arange(pairs) + 0.5) / pairs * (stage - 56)

    def y(wave: np.ndarray | float) -> np.ndarray | float:
        return floor - np.log(np.array(wave) / 5) / math.log(longest / 5) * (floor - top)

    size = max(3, min(8, (x[-1] - x[0]) / pairs * 0.7))
    for colour, some in ((CSS_BLUE, slice(0, turned)), (CSS_ORANGE, slice(turned, None))):
        if waves[some].size:
            [found] = [points for c, w, _, points in lines(page) if c == colour and abs(w - size) < 0.01]
            np.testing.assert_allclose(found, np.stack([x[some], y(waves[some])], -1), atol=0.06)

    def laid(heights) -> None:
        for name, stretch in zip(LAID, expected["stretch"], strict=True):
            colour, thick, dashes = LAID[name]["look"]
            drawn = [line for line in of(page, COLOURS[colour], thick, dashes or "none") if len(line) == pairs]
            wanted = np.stack([x, heights(np.array(stretch))], -1)
            assert any(np.abs(line - wanted).max() < 0.06 for line in drawn), name

    def named(heights) -> None:
        """Check that each method is named exactly once, beside its curve, and that no name hides another."""
        boxes = page.locator(".rb-stage svg text[paint-order]").evaluate_all(
            "all => all.map((t) => { const b = t.getBBox(); return [t.textContent, b.x, b.y, b.width, b.height]; })"
        )
        assert sorted(name for name, *_ in boxes) == sorted(METHODS[name].title for name in LAID)
        titles = [METHODS[name].title for name in LAID]
        for name, left, upper, wide, high in boxes:
            curve = heights(np.array(expected["stretch"][titles.index(name)]))
            across = np.linspace(x[0], x[-1], 2000)
            along = np.interp(across, x, curve)
            aside = np.maximum(0, np.maximum(left - across, across - left - wide))
            away = np.maximum(0, np.maximum(upper - along, along - upper - high))
            assert np.hypot(aside, away).min() < 14, f"{name} is not beside its curve"
            for other, x2, y2, wide2, high2 in boxes:
                apart = left > x2 + wide2 or x2 > left + wide or upper > y2 + high2 - 3 or y2 > upper + high - 3
                assert apart or other == name

    laid(lambda stretch: y(waves * stretch))
    if width == 390:
        named(lambda stretch: y(waves * stretch))
    assert {f"L = {figure.trained_length:,}", f"L′ = {expected['target']:,}"} <= set(texts(page))
    show_panel(page, "Stretch")
    laid(lambda stretch: lower - np.log(stretch) / math.log(figure.factor) * (lower - lower_top))
    named(lambda stretch: lower - np.log(stretch) / math.log(figure.factor) * (lower - lower_top))
    shaded = page.locator(".rb-stage svg rect:not([rx])").evaluate_all("all => all.map((r) => +r.getAttribute('x'))")
    assert shaded == pytest.approx([46 + turned / pairs * (stage - 56)] * (1 if width == 390 else 2), abs=0.01)


def test_methods_are_switched_on_and_off(opened):
    page = opened([Ladder()])
    said = page.locator(".rb-summary")
    expect(said).to_contain_text("16.4 radians beyond those in training if no method is used.")
    assert "Stretch λ′/λ" not in texts(page)  # no method is on, so nothing is stretched
    for name in ("NTK-aware", "Llama 3.1"):
        page.get_by_role("switch", name=name).check()
    expect(said).to_contain_text("2.48 radians with NTK-aware")
    assert data(page)["shown"] == ["ntk", "llama3"]
    assert {"NTK-aware", "Llama 3.1", "Stretch λ′/λ"} <= set(texts(page))
    assert hash_of(page) == "#ladder.ntk=on&ladder.llama3=on"
    page.get_by_role("switch", name="NTK-aware").uncheck()
    expect(said).not_to_contain_text("NTK-aware")
    assert not of(page, CSS_MUTED, 2)


def test_the_lengths_are_dragged_and_the_axis_waits(opened):
    page = opened([Ladder()])
    known = page.get_by_role("slider", name="Trained length L", exact=True)
    wanted = page.get_by_role("slider", name="Target length L′, by the factor")
    floor, top = 558, 50
    longest = 1.5 * 4 * max(data(page)["wavelengths"])
    octave = math.log(2) / math.log(longest / 5) * (floor - top)
    for handle, trait, goal in ((known, "trained_length", 8192), (wanted, "factor", 16)):
        box = handle.bounding_box()
        x, y = box["x"] + 30, box["y"] + 10
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + 99, y - octave * math.log2(goal / dials(page)[trait]), steps=6)
        assert dials(page)[trait] == pytest.approx(goal, rel=0.01)  # although a longer text needs a longer axis
        page.mouse.up()
        assert dials(page)[trait] == pytest.approx(goal, rel=0.01)
        page.mouse.move(0, 0)
    wanted.press("Home")
    assert dials(page)["factor"] == 1


def test_a_model_is_chosen_by_its_name(opened):
    page = opened([Ladder()])
    menu = page.get_by_role("combobox", name="A published model’s settings")
    expect(menu).to_have_value("Llama 2")
    menu.select_option("GPT-NeoX")
    assert {name: dials(page)[name] for name in ("base", "dim", "trained_length")} == {
        "base": 10000,
        "dim": 24,
        "trained_length": 2048,
    }
    expect(page.locator(".rb-summary")).to_contain_text("4 of 12 pairs have not completed a turn within L = 2,048")
    enter(page, "Base b", 500)
    enter(page, "Trained length L", 100000)
    expect(page.locator(".rb-stage")).to_contain_text("All 12 pairs complete a turn within L")
    expect(page.locator(".rb-stage svg rect:not([rx])")).to_have_count(0)
    expect(menu).to_have_value("A model’s settings …")


def test_a_method_stretches_the_wavelengths_gradually(opened):
    page = opened([Ladder(ntk=True)], reduced_motion="no-preference")
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    page.get_by_role("switch", name="Position interpolation").check()
    pairs, heights = len(data(page)["wavelengths"]), []
    for _ in range(4):
        page.clock.run_for(150)
        heights.append(next(line[0][1] for line in of(page, CSS_INK, 2) if len(line) == pairs))
    assert heights[0] > heights[1] > heights[2] == heights[3]
    still = next(line for line in of(page, CSS_MUTED, 2) if len(line) == pairs)[:, 1]
    page.get_by_role("switch", name="Position interpolation").uncheck()
    page.clock.run_for(20)
    np.testing.assert_allclose(next(line for line in of(page, CSS_MUTED, 2) if len(line) == pairs)[:, 1], still)


def test_with_a_factor_of_one_no_method_is_named(opened):
    page = opened([Ladder(factor=1, **ON)])
    expect(page.locator(".rb-stage")).to_contain_text("With s = 1, no method changes a pair.")
    assert not {method["title"] for method in LAID.values()} & set(texts(page))
