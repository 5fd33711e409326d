"""The explorers of chapter *Sinusoidal positions* in a page without a kernel: cursor, steps, pictures, work."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.clocks import Clocks
from ropebook.explorers.heatmap import Heatmap
from tests.explorers.oracles import expected_of, oracle
from tests.site.figures import BLUE, ORANGE, WHITE, dials, enter, hash_of, pixels

# ---- The heatmap ----


def test_the_heatmap_shows_what_python_computes(opened):
    figure = Heatmap(base=50, dim=8, length=20, reference=7)
    expected = expected_of(figure)
    page = opened([figure])
    first, last, turned = page.locator(".rb-stats dd").all_inner_texts()
    assert float(first.split()[0]) == pytest.approx(expected["wavelengths"][0], rel=0.01)
    assert float(last.split()[0]) == pytest.approx(expected["wavelengths"][-1], rel=0.01)
    assert turned.split() == [str(expected["turned"]), "of", "4,", "by", "position", "19"]
    # the curve, point by point
    curve = page.locator(".rb-stage path[stroke-linejoin]").get_attribute("d")
    points = [[float(n) for n in point.split(",")] for point in re.split("[MLZ]", curve)[1:21]]
    width = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    assert [x for x, _ in points] == pytest.approx([46 + (m + 0.5) / 20 * (width - 48) for m in range(20)], abs=0.01)
    least = next(level for level in (0, -0.5, -1) if min(expected["kernel"]) >= level)
    found = [least + (500 - y) / 132 * (1 - least) for _, y in points]
    assert found == pytest.approx(expected["kernel"], abs=1e-3)
    # the picture, cell by cell: the mixture of the colours that the page gives
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
    """Base 1 turns every pair alike, so that a column has one colour for all sines, however rows fall on pixels."""
    page = opened([Heatmap(base=1, dim=dim, length=length)])
    width = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    for m in (2, 11):  # near a crest and a trough, where neighbours are alike
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
        ("ArrowDown", 12, 1),  # below the sines are the cosines
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
            float(n.replace("−", "-")) for n in re.findall(r"(?:=|:) (−?[\d.]+?)\.?(?: |$)", text)[-2:]
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
    expect(said).to_contain_text("Similarity to 3, 0 away: 1.00.")
    enter(page, "Dimension d", 2)  # the cursor stays within the picture
    enter(page, "Length", 2)
    expect(said).to_contain_text("Position 1, entry 1: cos 1θ₀ = 0.540. Similarity to 1, 0 away: 1.00.")
    page.get_by_role("switch", name="Interleaved").check()
    expect(page.locator(".rb-stage")).to_contain_text("Rows: entries in turn.")
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


# ---- The clocks ----


def test_the_clocks_show_what_python_computes(opened):
    figure = Clocks(position=300, dim=8)
    page = opened([figure])
    for position in (300, 301, 317):
        expected = oracle(type(figure)).compute({**figure.dials(), "position": position})
        texts = page.locator(".explorer-live svg text").all_text_contents()
        for j, digit in enumerate(expected["digits"]):
            if j < 9:  # the window ends at 348, which has nine digits
                assert texts[texts.index(str(2 ** (j + 1))) + 10] == str(digit)  # after the names and their heading
        names = ["6.28", "62.8", "628", "6283"]
        shown = [float(texts[texts.index(name) + 5].replace("−", "-")) for name in names]
        assert shown == pytest.approx(expected["encoding"][0::2], abs=0.006)
        assert [float(text) for text in texts[-4:]] == pytest.approx(expected["turns"], abs=0.006)
        assert f"Turns so far. Orange: less than one ({expected['young']} of 4)" in texts
        binary, second, hour, young = page.locator(".rb-stats dd").all_inner_texts()
        assert binary.strip() == f"{position:b}"
        assert second.split()[0] == "6.28"
        assert hour.split()[0] == "6283"
        assert young.split() == [str(expected["young"]), "of", "4"]
        page.get_by_role("button", name="1 position on" if position == 300 else "16 positions on", exact=True).click()


def test_steps_by_button_and_key_stop_at_the_ends(opened):
    page = opened([Clocks(position=10)])
    button = {by: page.get_by_role("button", name=name, exact=True) for by, name in [
        (-16, "16 positions back"), (-1, "1 position back"), (1, "1 position on"), (16, "16 positions on"),
    ]}  # fmt: skip
    for by, position in [(1, 11), (16, 27), (-1, 26), (-16, 10), (-16, 0)]:
        expect(button[by]).to_have_attribute("aria-disabled", "false")
        button[by].click()
        assert dials(page)["position"] == position
    expect(button[-1]).to_have_attribute("aria-disabled", "true")
    button[-1].dispatch_event("click")
    assert dials(page)["position"] == 0
    slider = page.get_by_role("slider", name="Position m, slider")
    for key, position in [("ArrowRight", 1), ("ArrowUp", 2), ("ArrowLeft", 1), ("End", 4096)]:
        slider.press(key)
        assert dials(page)["position"] == position
    for by in (1, 16):
        expect(button[by]).to_have_attribute("aria-disabled", "true")
        button[by].dispatch_event("click")
    assert dials(page)["position"] == 4096
    button[-1].click()
    assert dials(page)["position"] == 4095


@pytest.mark.parametrize("dim, columns, cell", [(8, 4, 96), (32, 8, 48), (128, 16, 32)])
def test_hands_rings_and_their_colours(opened, dim, columns, cell):
    """On each hand, and on its ring before and behind it, a point has the colour that says how far it has come."""
    figure = Clocks(position=100, dim=dim)
    page = opened([figure], viewport={"width": 740, "height": 900})
    expected = expected_of(figure)
    width = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    assert width == 650
    pitch = min(1.25 * cell, width / columns)
    gap = 16 if dim <= 32 else 0  # for the numbers under the clocks
    top = 564 - 128  # where the hands begin
    for i, turn in enumerate(expected["turns"]):
        x, y = (i % columns + 0.5) * pitch, top + (i // columns + 0.5) * cell + i // columns * gap
        sin, cos = expected["encoding"][2 * i : 2 * i + 2]
        colour = ORANGE if turn < 1 else BLUE
        [hand] = pixels(page, [(x + 0.2 * cell * sin, y - 0.2 * cell * cos)])
        assert np.abs(hand - colour).max() < 130
        assert (hand[0] > hand[2]) == (turn < 1)
        for angle in (0.5, 1.5, 3.0, 4.5, 6.0):
            if abs(angle - 2 * math.pi * turn) < 0.3:
                continue
            there = [(x + r * math.sin(angle), y - r * math.cos(angle)) for r in (0.42 * cell, 0.42 * cell - 1)]
            ring = min(pixels(page, there), key=lambda found: found.sum())
            passed = angle < 2 * math.pi * turn
            assert (max(ring) - min(ring) > 60) == passed, (i, angle, ring)  # grey where it has not come yet
    labels = page.locator(".explorer-live svg text").all_text_contents()
    if dim <= 32:
        assert [float(text.replace("< ", "")) for text in labels[-dim // 2 :]] == pytest.approx(
            np.maximum(expected["turns"], 0.01), abs=0.0051
        )
    else:
        assert labels[-1] == f"Orange: less than one turn so far ({expected['young']} of {dim // 2})"


@pytest.mark.parametrize("dim, span", [(8, 64), (40, 200)])
def test_digits_and_waves_stand_where_they_belong(opened, dim, span):
    figure = Clocks(position=100, dim=dim, span=span, base=5000)
    page = opened([figure], viewport={"width": 760, "height": 900})
    data_ = expected_of(figure)
    panel = (page.locator(".rb-stage").evaluate("e => e.clientWidth") - 40) / 2
    start = data_["start"]

    def place(left: float, row: int, rows: int, position: float, value: float) -> tuple[float, float]:
        pitch = 262 / rows
        x = left + 64 + (position - start + 0.5) / span * (panel - 114)
        return x, 68 + (row + 0.5) * pitch - value * (min(30, pitch) / 2 - 2.5)

    digits = len(f"{start + span - 1:b}")
    for j in range(4, digits):  # a wave of 32 positions or more
        for m in (start + 3, 80, 115):
            wave = -math.sin(2 * math.pi * (m + 0.5) / 2 ** (j + 1))
            x, y = place(0, j, digits, m, wave)
            near = pixels(page, [(x, y + dy) for dy in (-1, 0, 1)])
            assert (near[:, 2] - near[:, 0]).max() > 60  # the blue line
            digit = m >> j & 1
            [beside] = pixels(page, [place(0, j, digits, m, -0.7 if digit else 0.7)])  # away from the wave
            assert beside.max() - beside.min() < 30
            assert (beside.min() < 240) == digit  # a grey block where the digit is 1
    shown = data_["shown"]
    for k, i in enumerate(shown):
        value, young = data_["encoding"][2 * i], data_["turns"][i] < 1
        x, y = place(panel + 40, k, len(shown), 100, value)
        [dot] = pixels(page, [(x + 2, y)])
        assert (dot[0] > dot[2]) == young
        assert dot.max() - dot.min() > 60
    marks = page.locator(".explorer-live svg text").evaluate_all(
        "all => all.map((t) => [t.textContent, +t.getAttribute('x'), +t.getAttribute('y'), getComputedStyle(t).fill])"
    )
    values = {round(y, 2): (text, fill) for text, x, y, fill in marks if abs(x - (2 * panel)) < 1}
    for k, i in enumerate(shown):
        text, fill = values[round(place(0, k, len(shown), 0, 0)[1] + 5, 2)]
        assert float(text.replace("−", "-")) == pytest.approx(data_["encoding"][2 * i], abs=0.006)
        assert fill == ("rgb(179, 71, 10)" if data_["turns"][i] < 1 else "rgb(11, 98, 196)")
    column = {round(y, 2): text for text, x, y, _ in marks if abs(x - (panel - 40)) < 1}
    for j, digit in enumerate(data_["digits"][:digits]):
        assert column[round(place(0, j, digits, 0, 0)[1] + 5, 2)] == str(digit)
    ticks = {text: x for text, x, y, _ in marks if y == 19}
    assert ticks["100"] == pytest.approx(place(panel + 40, 0, 1, 100, 0)[0], abs=0.01)


# ---- Both ----
