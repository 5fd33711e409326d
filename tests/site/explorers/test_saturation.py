"""Browser tests specific to the Saturation explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.saturation import Saturation
from tests.explorers.oracles import expected_of
from tests.site.figures import ORANGE, WHITE, pixels, stage_width


def test_saturation_shows_what_python_computes(opened):
    figure = Saturation(dim=24, n_keys=3, draw=4, scaled=False)
    expected = expected_of(figure)
    page = opened([figure])
    bars = page.locator(".rb-weight").evaluate_all(
        "all => all.map((r) => ['x', 'width', 'y', 'height'].map((name) => +r.getAttribute(name)))"
    )
    left, widths = bars[0][0], [width for _, width, *_ in bars]
    assert [width / (stage_width(page) - 10 - left) for width in widths] == pytest.approx(expected["weights"], abs=1e-4)
    # each bar is in the row of its key in the map; if there is enough room, the map has a column for each d
    columns = left - 36 - 38
    for (_, _, y, height), shares in zip(bars, np.transpose(expected["everyDim"]), strict=True):
        for d in (1, 2, 4):
            [found] = pixels(page, [(38 + (math.log(d + 0.5) / math.log(512)) * columns, y + height / 2)])
            np.testing.assert_allclose(found, WHITE + (ORANGE - WHITE) * shares[d - 1], atol=4)
    largest, gradient = page.locator(".rb-stats dd").all_inner_texts()
    assert float(largest) == pytest.approx(max(expected["weights"]), rel=0.01)
    assert float(gradient.split()[0]) == pytest.approx(expected["gradient"], rel=0.01)
    cursor = page.locator(".rb-stage svg > g:last-child > circle")
    top, floor = 46 + 202 + 66, 480 - 42
    height = (floor - float(cursor.get_attribute("cy"))) / (floor - top)
    assert 1e-4 * (0.5 / 1e-4) ** height == pytest.approx(expected["gradient"], rel=1e-5)


def test_while_the_page_asks_the_figure_shows_a_single_d(opened):
    page = opened([Saturation(dim=4, n_keys=16, draw=1, scaled=False)])
    covers = page.locator(".rb-covers")
    expect(covers).to_have_count(2)
    for one in covers.all():
        expect(one).to_be_hidden()
        left, width = (float(one.get_attribute(name)) for name in ("x", "width"))
        bars = float(page.locator(".rb-weight").first.get_attribute("x"))
        assert left <= 38  # here d = 1, and at the right end d = 512
        assert bars - 36 <= left + width < bars
    page.locator(".rb").evaluate("root => root.classList.add('rb-hides-curves')")
    for one in covers.all():
        expect(one).to_be_visible()
