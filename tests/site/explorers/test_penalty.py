"""Browser tests specific to the Penalty explorer."""

from __future__ import annotations

import numpy as np
import pytest

from ropebook.explorers.penalty import REACH, STEP, TRAINED, Penalty
from tests.explorers.oracles import expected_of
from tests.site.figures import CSS_BLUE, CSS_MUTED, CSS_ORANGE, dials, of, stage_width

LEFT, TOP = 46, 78


@pytest.mark.parametrize("width", [390, 760])
def test_both_curves_and_the_trained_length_are_drawn(opened, width):
    figure = Penalty()
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    right = stage_width(page) - 14
    x = LEFT + np.arange(0, REACH + 1, STEP) / REACH * (right - LEFT)
    plain = max(of(page, CSS_MUTED, 1.75), key=len)
    changed = max(of(page, CSS_BLUE, 2.25), key=len)
    for line in (plain, changed):
        np.testing.assert_allclose(line[:, 0], x, atol=0.06)
    # both curves use the same scale, so heights are a linear function of the scores
    scores = np.array(expected["plain"] + expected["changed"])
    heights = np.concatenate([plain[:, 1], changed[:, 1]])
    slope, start = np.polyfit(scores, heights, 1)
    assert slope < 0
    np.testing.assert_allclose(slope * scores + start, heights, atol=0.1)
    [line] = of(page, CSS_ORANGE, 1.5)
    assert line[0][0] == pytest.approx(LEFT + TRAINED / REACH * (right - LEFT), abs=0.06)


def test_dragging_across_reads_the_figure_elsewhere(opened):
    page = opened([Penalty()], viewport={"width": 760, "height": 900})
    box = page.get_by_role("slider", name="Distance in the picture").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 4, box["y"] + box["height"] / 2)
    assert dials(page)["distance"] == pytest.approx(REACH / 4, abs=STEP)
    assert f"Mean score at {dials(page)['distance']}" in page.locator(".rb-stats").inner_text()
