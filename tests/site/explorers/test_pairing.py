"""Browser tests specific to the Pairing explorer."""

from __future__ import annotations

import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ropebook.explorers.pairing import Pairing
from tests.explorers.oracles import oracle
from tests.site.figures import (
    dials,
    enter,
    hash_of,
    number,
    settle,
    show_panel,
)


def links(page: Page, which: str) -> list[tuple[str, float, float]]:
    """Return, for each arc (rb-arc) or connecting line (rb-meets), its stroke (the name of a variable) and its first
    and last x."""
    found = page.locator(f".{which}").evaluate_all("all => all.map((p) => [p.style.stroke, p.getAttribute('d')])")
    ends = []
    for stroke, d in found:
        points = re.findall(r"([\d.]+),[-\d.]+", d)
        ends.append((re.search(r"--rb-(\w+)", stroke)[1], float(points[0]), float(points[-1])))
    return ends


def cells(page: Page) -> list[list[str]]:
    """Return the numbers on the cells of q and of k, from left to right."""
    found = page.locator(".rb-piece").evaluate_all(
        "all => all.map((g) => [g.textContent, new DOMMatrix(getComputedStyle(g).transform)])"
        ".map(([text, m]) => [text, m.e, m.f])"
    )
    rows = sorted({y for _, _, y in found})
    assert len(rows) == 2
    return [[text for text, _, y in sorted(found, key=lambda one: one[1]) if y == row] for row in rows]


@pytest.mark.parametrize("width", [1280, 390])
def test_arcs_and_lines_tell_what_belongs_together(opened, width):
    page = opened([Pairing()], viewport={"width": width, "height": 1000})
    show_panel(page, "Channels")
    verdicts = page.locator(".rb-verdict")
    halves, order = [*"02461357"], [*"01234567"]
    for clicked, q, k, half in [
        (None, True, False, True),
        ("Permute k", True, True, True),
        ("interleaved", True, True, False),
        ("Permute q", False, True, False),
        ("Permute k", False, False, False),
        ("half-split", False, False, True),
    ]:
        if clicked:
            page.get_by_role("switch" if "Permute" in clicked else "radio", name=clicked, exact=True).click()
        assert dials(page) == {
            "permute_q": q, "permute_k": k, "pairing": "half" if half else "interleaved", "dim": 8, "m": 40, "n": 32,
        }  # fmt: skip
        assert cells(page) == [halves if q else order, halves if k else order]
        arcs = links(page, "rb-arc")
        good = [q == half, k == half]
        for row, whole in enumerate(good):
            strokes = [stroke for stroke, _, _ in arcs[4 * row : 4 * row + 4]]
            assert strokes == (["1" if whole else "2"] * 4)
        cell = links(page, "rb-meets")[1][1] - links(page, "rb-meets")[0][1]
        assert {round((b - a) / cell) for _, a, b in arcs} == {4 if half else 1}
        meets = [stroke == "1" for stroke, _, _ in links(page, "rb-meets")]
        assert meets == [a == b for a, b in zip(*cells(page), strict=True)]
        assert [text[0] for text in verdicts.all_text_contents()] == ["✓" if one else "✗" for one in [*good, q == k]]
        expected = oracle(Pairing).compute(dials(page))
        shown = [number(text) for text in page.locator(".rb-stats dd").all_inner_texts()]
        assert shown == pytest.approx([expected["reference"], expected["score"]], rel=0.01)
        show_panel(page, "Score")
        curves = [page.locator(f".{name}").get_attribute("d") for name in ("rb-reference", "rb-now")]
        assert (curves[0] == curves[1]) == (q == k == half)
        points = np.array([[float(n) for n in point.split(",")] for point in re.split("[ML]", curves[1])[1:]])
        line = np.polyfit(expected["scores"], points[:, 1], 1)
        np.testing.assert_allclose(np.polyval(line, expected["scores"]), points[:, 1], atol=0.02)
        assert line[0] < 0
        assert np.ptp(np.diff(points[:, 0])) < 0.02
        show_panel(page, "Channels")


def test_dials_of_the_pairs(opened):
    page = opened([Pairing()])
    page.get_by_role("switch", name="Permute k").check()
    page.get_by_role("radio", name="interleaved").check()
    expect(page.locator(".rb-summary")).to_contain_text("q and k are half-split, but the rotation is interleaved")
    enter(page, "Dimension d", 2)
    expect(page.get_by_role("status")).to_contain_text("2 is less than 4 (a single pair can be stored in only one way)")
    enter(page, "Dimension d", 30)
    assert page.locator(".rb-piece").count() == 60
    enter(page, "Position m of q", 7)
    enter(page, "Position n of k", 7)
    now = [text.strip() for text in page.locator(".rb-stats dd").all_inner_texts()]
    assert now[0] == now[1]  # at n = m the rotations cancel
    hash_ = hash_of(page)
    assert set(hash_[1:].split("&")) == {
        "pairing.permute_k=on", "pairing.pairing=interleaved", "pairing.dim=30", "pairing.m=7", "pairing.n=7",
    }  # fmt: skip
    again = opened([Pairing()], fragment=hash_)
    assert dials(again) == dials(page)


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_cells_glide_unless_the_reader_wants_no_motion(opened, motion):
    page = opened([Pairing(permute_q=False)], reduced_motion=motion)
    settle(page)
    first, second = (page.locator(".rb-piece").nth(n) for n in (0, 1))  # channel 1 moves to the middle
    before = second.evaluate("e => new DOMMatrix(getComputedStyle(e).transform).e")
    wide = before - first.evaluate("e => new DOMMatrix(getComputedStyle(e).transform).e")
    assert wide > 20
    switch = page.get_by_role("switch", name="Permute q", exact=True).element_handle()
    at_once = second.evaluate(
        "(e, switch_) => { switch_.click(); return new DOMMatrix(getComputedStyle(e).transform).e; }", switch
    )
    page.wait_for_function("document.getAnimations().length === 0")
    after = second.evaluate("e => new DOMMatrix(getComputedStyle(e).transform).e")
    assert after - before == pytest.approx(3 * wide, abs=1)
    assert (at_once < after - 10) == (motion == "no-preference")
