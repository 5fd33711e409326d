"""Browser tests specific to the Penalty explorer."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from ropebook.explorers.penalty import BLOCK, FACTORS, REACH, STEP, TRAINED, Penalty
from ropebook.real import published
from tests.explorers.oracles import expected_of
from tests.site.figures import CSS_BLUE, CSS_MUTED, CSS_ORANGE, dials, enter, of, stage_width

LEFT, TOP = 46, 78
SHARE = 0.58  # of the picture, for the left panel
BLOCKS = 12


@pytest.mark.parametrize("width", [390, 760])
def test_both_curves_and_the_trained_length_are_drawn(opened, width):
    figure = Penalty()
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    whole = stage_width(page)
    right = (whole if width == 390 else SHARE * whole) - 14
    x = LEFT + np.arange(0, REACH + 1, STEP) / REACH * (right - LEFT)
    plain = max(of(page, CSS_MUTED, 1.75), key=len)
    changed = max(of(page, CSS_BLUE, 2.25), key=len)
    for line in (plain, changed):
        np.testing.assert_allclose(line[:, 0], x, atol=0.6)  # panels begin at a whole pixel
    # both curves use the same scale, so heights are a linear function of the scores
    on_one_scale([plain, changed], [expected["plain"], expected["changed"]], slope=-1)
    for line in of(page, CSS_ORANGE, 1.5)[:1]:
        assert line[0][0] == pytest.approx(LEFT + TRAINED / REACH * (right - LEFT), abs=0.6)
    assert len(of(page, CSS_ORANGE, 1.5)) == (1 if width == 390 else 2)


def on_one_scale(lines, values, slope):
    heights, expected = (np.concatenate(one) for one in ([line[:, 1] for line in lines], values))
    found, start = np.polyfit(expected, heights, 1)
    assert np.sign(found) == slope
    np.testing.assert_allclose(found * expected + start, heights, atol=0.1)


@pytest.mark.parametrize("width", [390, 760])
def test_losses_are_drawn_by_position_if_they_were_measured(opened, width):
    figure = Penalty()
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    if width == 390:
        assert not [line for line in of(page, CSS_MUTED, 1.75) if len(line) == BLOCKS]
        page.get_by_role("button", name="Loss", exact=True).click()
        page.wait_for_function("document.querySelector('.rb-stage').textContent.includes('loss by position')")
        assert not page.get_by_role("slider", name="Distance in the picture").is_visible()
    whole = stage_width(page)
    left, right = (LEFT if width == 390 else SHARE * whole + LEFT - 14), whole - 14
    [plain] = [line for line in of(page, CSS_MUTED, 1.75) if len(line) == BLOCKS]
    [changed] = [line for line in of(page, CSS_BLUE, 2.25) if len(line) == BLOCKS]
    x = left + (np.arange(BLOCKS) + 0.5) / BLOCKS * (right - left)
    for line in (plain, changed):
        np.testing.assert_allclose(line[:, 0], x, atol=0.6)
    on_one_scale([plain, changed], [expected["plainLosses"], expected["losses"]], slope=-1)
    trained = of(page, CSS_ORANGE, 1.5)[-1]
    assert trained[0][0] == pytest.approx(left + TRAINED / (BLOCK * BLOCKS) * (right - left), abs=0.6)
    assert "not measured" not in page.locator(".rb-stage").inner_text()
    enter(page, "Slowed by", 1)
    assert "not slowed" in page.locator(".rb-stage").inner_text()


@pytest.mark.parametrize("width", [390, 760, 1100])
def test_losses_that_were_not_measured_are_not_drawn_but_explained(opened, width):
    page = opened([Penalty(first=3, last=26)], viewport={"width": width, "height": 900})
    if width == 390:
        page.get_by_role("button", name="Loss", exact=True).click()
    page.get_by_text("The loss with these pairs").wait_for()
    assert [len(line) for line in of(page, CSS_MUTED, 1.75)][-1] == BLOCKS
    assert not [line for line in of(page, CSS_BLUE, 2.25) if len(line) == BLOCKS]
    lines = page.evaluate(
        """() => {
          const all = [...document.querySelectorAll('.rb-stage text')];
          const from = all.findIndex((one) => one.textContent.startsWith('The loss with'));
          return all.slice(from).map((one) => [one.textContent, one.getBoundingClientRect().toJSON()]);
        }"""
    )
    told = " ".join(text for text, _ in lines)
    start = "The loss with these pairs slowed was not measured."
    bands = "pairs 12–21, 17–21, 22–26, 23–24, 27–31 and for each of 0–31 alone"
    assert told == f"{start} With a factor of 2, it was measured for {bands}."
    stage = page.locator(".rb-stage").bounding_box()
    for _, box in lines:
        assert box["right"] <= stage["x"] + stage["width"]
    # The curve of the original passes below the sentence.
    [plain] = [line for line in of(page, CSS_MUTED, 1.75) if len(line) == BLOCKS]
    assert max(box["bottom"] for _, box in lines) - stage["y"] < plain[:, 1].min()


@pytest.mark.parametrize("width", [390, 1280])
def test_a_drag_stops_at_the_factors_with_measured_losses(opened, width):
    page = opened([Penalty()], viewport={"width": width, "height": 900})
    slider = page.get_by_role("slider", name="Slowed by, slider")
    assert slider.evaluate("(node) => getComputedStyle(node).backgroundImage").count("gradient") == len(FACTORS)
    slider.scroll_into_view_if_needed()
    box, thumb = slider.bounding_box(), 20
    for factor in FACTORS:
        x = box["x"] + thumb / 2 + math.log(factor) / math.log(8) * (box["width"] - thumb)
        for off, there in ((-3, True), (3, True), (-12, False), (12, False)):
            page.mouse.move(box["x"] + box["width"] - thumb, box["y"] + 12)
            page.mouse.down()
            page.mouse.move(x + off, box["y"] + 12)
            page.mouse.up()
            assert (dials(page)["factor"] == factor) == there, (factor, off)
    enter(page, "Slowed by", 2.01)
    assert dials(page)["factor"] == 2.01


def test_a_number_in_a_readout_is_not_torn_from_its_word(opened):
    page = opened([Penalty()], viewport={"width": 390, "height": 900})
    kept = page.locator(".rb-stats small span")
    assert [text.split(" ")[0] for text in kept.all_inner_texts()] == ["originally"] * 3
    assert kept.evaluate_all("all => all.map((one) => one.getClientRects().length)") == [1] * 3
    assert re.fullmatch(r"[\d.]+ nats, originally [\d.]+", page.locator(".rb-stats dd").nth(1).inner_text())


def test_the_figure_says_how_the_weights_were_stored(opened):
    page = opened([Penalty()], viewport={"width": 760, "height": 900})
    assert published.STORED in page.locator(".rb").inner_text()


def test_dragging_across_reads_the_figure_elsewhere(opened):
    page = opened([Penalty()], viewport={"width": 760, "height": 900})
    box = page.get_by_role("slider", name="Distance in the picture").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    assert dials(page)["distance"] == pytest.approx(REACH / 4, abs=STEP)
    assert f"Mean score at {dials(page)['distance']:,}" in page.locator(".rb-stats").inner_text()
