"""Browser tests specific to the Ramp explorer."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.ramp import Ramp
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    CSS_BLUE,
    CSS_INK,
    CSS_MUTED,
    dials,
    of,
    show_panel,
    stage_width,
    texts,
)


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize("setting", [{}, {"dim": 8, "beta": 8.0}, {"factor": 1.0}])
def test_both_ramps_and_their_quotient_are_drawn(opened, width, setting):
    figure = Ramp(**setting)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage, pairs = stage_width(page), figure.dim // 2
    x = 46 + (np.arange(pairs) + 0.5) / pairs * (stage - 56)
    floor = 358 if width == 390 else 376
    high = floor - 86
    for colour, name in ((CSS_BLUE, "paper"), (CSS_MUTED, "code")):
        line = of(page, colour, 2)[0]
        np.testing.assert_allclose(line, np.stack([x, floor - np.array(expected[name]) * high], -1), atol=0.06)
    show_panel(page, "Code over paper")
    ratio, top, bottom = np.array(expected["ratio"]), *((54, 358) if width == 390 else (458, 558))
    scale = [float(text) for text in texts(page) if re.fullmatch(r"[\d.]+", text)]
    greatest = next(t for t in (4, 6, 8, 12, 16) if t >= ratio.max())
    assert greatest in scale
    least = min(0.9, *(1 / next(t for t in (1.25, 1.5, 2, 3, 4, 6) if t >= 1 / r) for r in ratio if r < 0.9), 0.9)
    heights = bottom - np.log(ratio / least) / math.log(greatest / least) * (bottom - top)
    [line] = of(page, CSS_INK, 2)
    np.testing.assert_allclose(line, np.stack([x, heights], -1), atol=0.06)
    dots = page.locator(".rb-stage svg circle").evaluate_all("all => all.map((one) => +one.getAttribute('cy'))")
    differ = expected["largest"] >= 1.005
    assert dots == (pytest.approx([heights[expected["pair"]]], abs=0.06) if differ else [])


def test_play_raises_the_factor_and_the_quotient_grows(opened):
    page = opened([Ramp()], viewport={"width": 760, "height": 900}, reduced_motion="no-preference")
    page.clock.install()
    page.get_by_role("button", name="Play", exact=True).click()
    heights = []
    for _ in range(3):
        page.clock.run_for(2000)
        heights.append((dials(page)["factor"], of(page, CSS_INK, 2)[0][:, 1].min()))
    assert heights == sorted(heights, key=lambda one: (one[0], -one[1]))
    assert heights[0][1] - heights[-1][1] > 20
    page.clock.run_for(3000)
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    assert dials(page)["factor"] == 16


def test_the_ends_of_the_ramp_can_be_dragged(opened):
    page = opened([Ramp()], viewport={"width": 760, "height": 1000})
    step = (stage_width(page) - 56) / 64

    def turns(index: float) -> float:
        return 4096 / (2 * math.pi) * 1e4 ** (-2 * index / 128)

    def pair(turns: float) -> float:
        return 64 * math.log(4096 / (2 * math.pi * turns)) / math.log(1e4)

    def pull(name: str, by: float) -> None:
        box = page.get_by_role("slider", name=name, exact=True).bounding_box()
        x, y = box["x"] + box["width"] / 2 + 9, box["y"] + 20
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + by * step, y + 50, steps=4)
        page.mouse.up()

    beta, alpha = (dial["label"] for dial in (Ramp.beta.declared(), Ramp.alpha.declared()))
    pull(beta, 3)
    assert dials(page)["beta"] == pytest.approx(turns(pair(32) + 3), rel=0.02)
    pull(beta, 50)  # β stops at its limit, and α doesn't move
    assert (dials(page)["beta"], dials(page)["alpha"]) == (2.5, 1)
    expect(page.locator(".rb-stage")).to_contain_text("β: 2.5 turns")
    pull(alpha, 4)
    assert dials(page)["alpha"] == pytest.approx(turns(pair(1) + 4), rel=0.02)
    page.get_by_role("slider", name=alpha, exact=True).press("End")
    assert dials(page)["alpha"] == 2


def test_where_nothing_differs_no_dot_marks_a_gap(opened):
    page = opened([Ramp(factor=1), Ramp()])
    stages = page.locator(".rb-stage")
    for which, dots, words in ((0, 0, "They agree at every pair."), (1, 1, "The dot marks the largest gap.")):
        expect(stages.nth(which)).to_contain_text(words)
        expect(stages.nth(which).locator("svg circle")).to_have_count(dots)
