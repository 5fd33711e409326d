"""Browser tests specific to the Heatmap explorer."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.heatmap import Heatmap
from tests.explorers.oracles import expected_of
from tests.site.figures import BLUE, ORANGE, WHITE, dials, enter, hash_of, pixels


def test_the_heatmap_shows_what_python_computes(opened):
    figure = Heatmap(base=50, dim=8, length=20, reference=7)
    expected = expected_of(figure)
    page = opened([figure])
    last, turned = page.locator(".rb-stats dd").all_inner_texts()
    assert float(last.split()[0]) == pytest.approx(expected["wavelengths"][-1], rel=0.01)
    assert turned.split() == [str(expected["turned"]), "of", "4"]
    # check the curve, point by point
    curve = page.locator(".rb-stage path[stroke-linejoin]").get_attribute("d")
    points = [[float(n) for n in point.split(",")] for point in re.split("[MLZ]", curve)[1:21]]
    width = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    assert [x for x, _ in points] == pytest.approx([46 + (m + 0.5) / 20 * (width - 48) for m in range(20)], abs=0.01)
    least = next(level for level in (0, -0.5, -1) if min(expected["kernel"]) >= level)
    found = [least + (500 - y) / 132 * (1 - least) for _, y in points]
    assert found == pytest.approx(expected["kernel"], abs=1e-3)
    # check the picture, cell by cell: each cell mixes two of the page's colours
    cells = np.reshape(expected["cells"], (8, 20))
    for row in range(8):
        for m in (0, 1, 7, 19):
            value = cells[row, m]
            wanted = WHITE + ((BLUE if value > 0 else ORANGE) - WHITE) * abs(value)
            places = [
                (46 + (m + across) / 20 * (width - 48), 50 + (row + down) * 32)
                for across, down in [(0.5, 0.5), (0.1, 0.1), (0.9, 0.9)]
            ]
            np.testing.assert_allclose(pixels(page, places), [wanted] * 3, atol=3)
    legend = pixels(page, [(width - 104 + x, 9) for x in (1, 40, 79)])
    np.testing.assert_allclose(legend, [ORANGE, WHITE, BLUE], atol=12)


@pytest.mark.parametrize("dim, length", [(100, 30), (256, 100), (512, 640)])
def test_equal_rows_have_equal_colours(opened, dim, length):
    """With base 1 all pairs rotate by the same angle. So all sines in a column have the same colour, however the rows
    are distributed over the pixels."""
    page = opened([Heatmap(base=1, dim=dim, length=length)])
    width = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    for m in (2, 11):  # near a crest and a trough, where neighbouring columns are similar
        x = 46 + (m + 0.5) / length * (width - 48)
        value = math.sin(m)
        wanted = WHITE + ((BLUE if value > 0 else ORANGE) - WHITE) * abs(value)
        found = pixels(page, [(x, y) for y in range(52, 176)])
        assert np.abs(found - found[0]).max() <= 1
        if length == 30:
            np.testing.assert_allclose(found[0], wanted, atol=3)


def test_arrow_keys_move_the_cursor_and_enter_sets_the_reference(opened):
    figure = Heatmap(base=1e4, dim=8, length=48, reference=30)
    kernel = expected_of(figure)["kernel"]
    page = opened([figure])
    pad, said = page.get_by_role("slider", name=re.compile("^Cursor")), page.locator(".rb-readout")
    pad.focus()
    assert (pad.get_attribute("aria-valuemin"), pad.get_attribute("aria-valuemax")) == ("0", "47")
    theta = [1, 0.1, 0.01, 0.001]
    steps = [
        (None, 12, 2),
        ("ArrowRight", 13, 2),
        ("ArrowLeft", 12, 2),
        ("ArrowDown", 12, 4),
        ("ArrowDown", 12, 6),
        ("ArrowDown", 12, 1),  # the cosines are below the sines
        ("ArrowUp", 12, 6),
        ("PageUp", 15, 6),
        ("PageDown", 12, 6),
        ("End", 47, 6),
        ("ArrowRight", 47, 6),
        ("Home", 0, 6),
        ("ArrowLeft", 0, 6),
        ("PageUp", 3, 6),
        ("x", 3, 6),
    ]
    for key, position, entry in steps:
        if key:
            page.keyboard.press(key)
        text = said.inner_text()
        assert text.startswith(f"Position {position}, entry {entry}: {'cos' if entry % 2 else 'sin'} {position}θ")
        value, similarity = (
            float(n.replace("−", "-")) for n in re.findall(r"(?:=|:)\s(−?[\d.]+?)\.?(?: |$)", text)[-2:]
        )
        wave = math.cos if entry % 2 else math.sin
        assert value == pytest.approx(wave(position * theta[entry // 2]), rel=0.01)
        assert similarity == pytest.approx(kernel[position], rel=0.01)
        assert pad.get_attribute("aria-valuenow") == str(position)
        assert pad.get_attribute("aria-valuetext") == text
        x, y = (float(page.locator(".rb-stage circle").nth(0).get_attribute(name)) for name in ("cx", "cy"))
        width = page.locator(".rb-stage").evaluate("e => e.clientWidth")
        row = entry // 2 + 4 * (entry % 2)
        assert (x, y) == pytest.approx((46 + (position + 0.5) / 48 * (width - 48), 50 + (row + 0.5) * 32), abs=0.01)
    page.keyboard.press("Enter")
    assert dials(page)["reference"] == 3
    expect(said).to_contain_text("Similarity to 3 (0 away): 1.00.")
    enter(page, "Dimension d", 2)  # the cursor must stay within the picture
    enter(page, "Length", 2)
    expect(said).to_contain_text("Position 1, entry 1: cos 1θ₀ = 0.540. Similarity to 1 (0 away): 1.00.")
    page.get_by_role("switch", name="Interleaved").check()
    expect(page.locator(".rb-stage")).to_contain_text("Rows: alternating sines and cosines.")
    pad.press("ArrowUp")
    expect(said).to_contain_text("Position 1, entry 0")


def test_pointer_moves_the_cursor_and_a_click_sets_the_reference(opened):
    page = opened([Heatmap(dim=8, length=48, reference=30)])
    box = page.get_by_role("slider", name=re.compile("^Cursor")).bounding_box()
    page.mouse.move(box["x"] + box["width"] * 10.5 / 48, box["y"] + 32 * 5.5)
    expect(page.locator(".rb-readout")).to_contain_text("Position 10, entry 3: cos 10θ₁ = 0.540")
    page.mouse.move(box["x"] + box["width"] * 20.5 / 48, box["y"] + box["height"] - 5)  # over the curve
    expect(page.locator(".rb-readout")).to_contain_text("Position 20, entry 3")
    assert dials(page)["reference"] == 30
    page.mouse.click(box["x"] + box["width"] * 20.5 / 48, box["y"] + 16)
    assert dials(page)["reference"] == 20
    expect(page.locator(".rb-readout")).to_contain_text("Position 20, entry 0")
    assert hash_of(page) == "#heatmap.reference=20"


def test_touch_reads_without_setting_the_reference(opened):
    page = opened([Heatmap(dim=8, length=48, reference=30)], viewport={"width": 390, "height": 844}, has_touch=True)
    pad = page.get_by_role("slider", name=re.compile("^Cursor"))
    pad.scroll_into_view_if_needed()
    box = pad.bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] * 5.5 / 48, box["y"] + 16)
    expect(page.locator(".rb-readout")).to_contain_text("Position 5, entry 0")
    assert dials(page)["reference"] == 30


def test_the_reference_follows_a_shorter_length(opened):
    page = opened([Heatmap()])
    enter(page, "Length", 100)
    assert dials(page)["reference"] == 99
    enter(page, "Reference position", 300)
    assert dials(page)["reference"] == 99
    expect(page.get_by_role("textbox", name="Reference position")).to_have_value("99")
    enter(page, "Dimension d", 7)
    expect(page.get_by_role("status")).to_contain_text("7 is not one of 2, 4, 6, … (entries come in pairs)")
