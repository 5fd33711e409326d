"""Browser tests specific to the Patches explorer."""

from __future__ import annotations

import pytest

from ropebook.explorers.patches import SIDE, Patches
from tests.explorers.oracles import expected_of
from tests.site.figures import dials


def test_a_patch_is_as_opaque_as_its_score_is_large(opened):
    figure = Patches(form="line")
    scores = expected_of(figure)["scores"]
    assert min(scores) < 0 < max(scores)
    page = opened([figure])
    cells = page.locator(".rb-stage svg rect[style*=opacity]").evaluate_all(
        "all => all.map((r) => [r.style.fill, Number(r.style.fillOpacity)])"
    )
    assert [fill for fill, _ in cells] == [f"var(--rb-{2 if score < 0 else 1})" for score in scores]
    assert [opacity for _, opacity in cells] == pytest.approx([0.9 * abs(score) for score in scores], abs=0.0051)


def test_a_patch_is_chosen_by_pointer_and_keys(opened):
    page = opened([Patches()])
    pad = page.get_by_role("application", name="The patch, row 7, column 7: arrow keys move it")
    box = pad.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 12.5 / SIDE, box["y"] + box["height"] * 2.5 / SIDE)
    assert (dials(page)["row"], dials(page)["column"]) == (2, 12)
    for key in ("ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    assert (dials(page)["row"], dials(page)["column"]) == (0, 13)
    for key, place in (("End", (0, 15)), ("PageDown", (15, 15)), ("Home", (15, 0)), ("PageUp", (0, 0)), ("a", (0, 0))):
        page.keyboard.press(key)
        assert (dials(page)["row"], dials(page)["column"]) == place
