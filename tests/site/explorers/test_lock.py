"""Browser tests specific to the Lock explorer."""

from __future__ import annotations

import cmath
import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.lock import Lock
from tests.explorers.oracles import expected_of, oracle
from tests.site.figures import (
    CSS_BLUE,
    CSS_GREEN,
    CSS_INK,
    CSS_MUTED,
    CSS_VIOLET,
    data,
    dials,
    enter,
    marks,
    number,
    of,
    paths,
    show_panel,
)


@pytest.mark.parametrize("width, draw, sign", [(390, 8, 1), (760, 8, 1), (760, 4, -1)])
def test_the_arrows_of_the_lock(opened, width, draw, sign):
    figure = Lock(m=12, n=5, shift=9, pair=3, draw=draw)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    show_panel(page, "One pair")
    stage = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    right = stage // 2 + (6 if stage < 520 else 20)
    size = min(262, stage - right)
    bare = np.reshape(expected["bare"], (2, 2))
    far = np.linalg.norm(bare, axis=1).max()
    # Each plane must have room for circles around the origin, for the origin itself, and for unit circles around the
    # tips.
    ends = [np.array([[-far, -far], [far, far]]), np.array([[0, 0], *(bare - 1), *(bare + 1)])]
    boxes = [(one.min(0), one.max(0)) for one in ends]
    unit = (size - 44) / max((high - low).max() for low, high in boxes)
    centres = [
        np.array([left + size / 2, 48 + size / 2]) - (low + high) / 2 * unit * [1, -1]
        for left, (low, high) in zip((0, right), boxes, strict=True)
    ]
    for colour, row in ((CSS_GREEN, 0), (CSS_VIOLET, 1)):
        for thick, names in ((3, ("turned", "summed")), (2, ("bare", "bare"))):
            for centre, name, arrow in zip(centres, names, of(page, colour, thick), strict=True):
                tip = np.reshape(expected[name], (2, 2))[row] * unit * [1, -1] + centre
                np.testing.assert_allclose(arrow[:2], [centre, tip], atol=0.006)
    found = page.locator(".rb-stage svg text").all_text_contents()
    for text in ("RoPE, pair 3", "R₂₁q and R₁₄k", "Sinusoidal, pair 3", "q + PE₂₁ and k + PE₁₄"):
        assert text in found
    arcs = [d for stroke, thick, _, d in paths(page) if (stroke, thick) == (CSS_INK, 1.5) and "A" in d]
    for arc, centre, name in zip(arcs, centres, ("turned", "summed"), strict=True):
        ends = [complex(*map(float, pair.split(","))) - complex(*centre) for pair in re.split("A.* ", arc[1:])]
        q, k = (complex(*row) for row in np.reshape(expected[name], (2, 2)))
        assert [cmath.phase(end.conjugate()) for end in ends] == pytest.approx(
            [cmath.phase(k), cmath.phase(q)], abs=0.01
        )
        # the arc takes the shorter direction
        assert int(arc.split("A")[1].split(" ")[3]) == (0 if cmath.phase(q / k) > 0 else 1)
        turned = cmath.phase(q / k) * sign if name == "turned" else 1
        assert turned > 0


def test_the_shift_leaves_ropes_score_alone(opened):
    figure = Lock(dim=64)
    page = opened([figure])
    shown = {}
    for shift in (0, 1, 100, 255):
        enter(page, "Shift t", shift)
        values = oracle(type(figure)).compute({**figure.dials(), "shift": shift})
        rope, added = page.locator(".rb-stats dd").all_inner_texts()
        assert rope.split()[0] == f"{values['rope']:.3f}".replace("-", "−")
        assert added.split()[0] == f"{values['added']:.3f}".replace("-", "−")
        rope_since, added_since = (one.split(maxsplit=1)[1] for one in (rope, added))
        if shift:
            assert number(added_since) == pytest.approx(values["added"] - values["addedHome"], rel=0.01)
            assert added_since[0] in "+−"
            assert added_since.endswith(" since t = 0")
            found = data(page)
            assert found["rope"] == pytest.approx(values["rope"], abs=1e-9)
            assert 0 < abs(found["rope"] - found["ropeHome"]) < 1e-12
            assert rope_since == "changed only by rounding"
        else:
            assert (rope_since, added_since) == ("unchanged", "unchanged")
        shown[shift] = (rope.split()[0], added.split()[0])
    assert len({rope for rope, _ in shown.values()}) == 1
    assert len({added for _, added in shown.values()}) == 4
    before = page.locator(".rb-stats dd").first.inner_text()
    enter(page, "Query position m", 21)
    assert page.locator(".rb-stats dd").first.inner_text().split()[0] != before.split()[0]
    page.get_by_role("button", name="16 positions back", exact=True).click()
    assert dials(page)["shift"] == 239
    page.get_by_role("button", name="16 positions forward", exact=True).click()
    expect(page.get_by_role("button", name="1 position forward", exact=True)).to_have_attribute("aria-disabled", "true")


@pytest.mark.parametrize("width", [390, 760])
def test_both_scores_are_drawn_against_the_shift(opened, width):
    figure = Lock(shift=50)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    # A narrow picture shows only the plot of the scores, which fills the available height, here 400 px.
    size = min(262, stage - stage // 2 - 20)
    high, tall = (52, 400 - 52 - 44) if stage < 520 else (48 + size + 8 + 52, 140)
    ticks = {text: y for text, (x, y) in marks(page).items() if x == -9}
    levels = sorted(number(text) for text in ticks)
    low, top = levels[0], levels[-1]
    assert [ticks[f"{level:.0f}".replace("-", "−")] for level in (low, top)] == pytest.approx(
        [high + tall + 4, high + 4]
    )
    for colour, thick, name in ((CSS_BLUE, 2.5, "ropeCurve"), (CSS_MUTED, 2, "addedCurve")):
        [curve] = of(page, colour, thick)
        np.testing.assert_allclose(curve[:, 0], 46 + np.arange(256) / 255 * (stage - 54), atol=0.06)
        values = top - (curve[:, 1] - high) / tall * (top - low)
        np.testing.assert_allclose(values, expected[name], atol=0.01)
    [rope_line] = of(page, CSS_BLUE, 2.5)
    assert np.ptp(rope_line[:, 1]) == 0
    for dot, name in zip(page.locator(".rb-stage svg circle").all(), ("rope", "added"), strict=True):
        assert float(dot.get_attribute("cx")) == pytest.approx(46 + 50 / 255 * (stage - 54), abs=0.01)
        assert top - (float(dot.get_attribute("cy")) - high) / tall * (top - low) == pytest.approx(
            expected[name], abs=1e-6
        )
    assert "Score over all 8 pairs" in marks(page)
    for dim, name in ((4, "Score over both pairs"), (2, "Score of the only pair")):
        enter(page, "Dimension d", dim)
        assert name in marks(page)


def test_names_at_the_tips_do_not_cover_each_other(opened):
    page = opened([Lock()], viewport={"width": 390, "height": 900})
    show_panel(page, "One pair")
    for m, n, pair, draw in [(0, 0, 0, 11), (0, 0, 3, 6), (3, 3, 7, 4), (0, 0, 2, 4)]:
        for name, value in [("Query position m", m), ("Key position n", n), ("Pair i", pair), ("Random draw", draw)]:
            enter(page, name, value)
        boxes = page.locator(".rb-stage svg text").evaluate_all(
            "all => all.filter((t) => ['q', 'k'].includes(t.textContent)).map((t) => [+t.getAttribute('x'), "
            "+t.getAttribute('y')])"
        )
        assert len(boxes) == 4
        for one, other in (boxes[:2], boxes[2:]):
            assert math.dist(one, other) >= 15.9
