"""Browser tests specific to the Clocks explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.clocks import Clocks
from tests.explorers.oracles import expected_of, oracle
from tests.site.figures import BLUE, CSS_BLUE, dials, pixels


def test_the_clocks_show_what_python_computes(opened):
    figure = Clocks(position=300, dim=8)
    page = opened([figure])
    for position in (300, 301, 317):
        expected = oracle(type(figure)).compute({**figure.dials(), "position": position})
        texts = page.locator(".explorer-live svg text").all_text_contents()
        for j, digit in enumerate(expected["digits"]):
            if j < 9:  # the window ends at 348, which has nine binary digits
                # the names and their heading come first
                assert texts[texts.index(str(2 ** (j + 1))) + 10] == str(digit)
        names = ["6.28", "62.8", "628", "6,283"]
        shown = [float(texts[texts.index(name) + 5].replace("−", "-")) for name in names]
        assert shown == pytest.approx(expected["encoding"][0::2], abs=0.006)
        assert [float(text) for text in texts[-4:]] == pytest.approx(expected["turns"], abs=0.006)
        assert "Turns so far. Open ring: less than one" in texts
        expect(page.locator(".rb-summary")).to_contain_text(f"{expected['young']} of 4 hands")
        assert f"Binary digits: {position:b}" in texts
        second, hour = page.locator(".rb-stats dd").all_inner_texts()
        assert second.split()[0] == "6.28"
        assert hour.split()[0] == "6,283"
        page.get_by_role(
            "button", name="1 position forward" if position == 300 else "16 positions forward", exact=True
        ).click()


def test_steps_by_button_and_key_stop_at_the_ends(opened):
    page = opened([Clocks(position=10)])
    button = {by: page.get_by_role("button", name=name, exact=True) for by, name in [
        (-16, "16 positions back"), (-1, "1 position back"), (1, "1 position forward"), (16, "16 positions forward"),
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
def test_hands_and_rings(opened, dim, columns, cell):
    """Each hand is blue, and so is its ring, as far as the hand has turned. The rest of the ring is grey."""
    figure = Clocks(position=100, dim=dim)
    page = opened([figure], viewport={"width": 740, "height": 900})
    expected = expected_of(figure)
    width = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    assert width == 650
    pitch = min(1.25 * cell, width / columns)
    gap = 16 if dim <= 32 else 0  # space for the numbers below the clocks
    top = 564 - 128  # where the hands begin
    for i, turn in enumerate(expected["turns"]):
        x, y = (i % columns + 0.5) * pitch, top + (i // columns + 0.5) * cell + i // columns * gap
        sin, cos = expected["encoding"][2 * i : 2 * i + 2]
        [hand] = pixels(page, [(x + 0.2 * cell * sin, y - 0.2 * cell * cos)])
        assert np.abs(hand - BLUE).max() < 130
        for angle in (0.5, 1.5, 3.0, 4.5, 6.0):
            if abs(angle - 2 * math.pi * turn) < 0.3:
                continue
            there = [(x + r * math.sin(angle), y - r * math.cos(angle)) for r in (0.42 * cell, 0.42 * cell - 1)]
            ring = min(pixels(page, there), key=lambda found: found.sum())
            passed = angle < 2 * math.pi * turn
            # where the hand hasn't been yet, the ring is grey
            assert (max(ring) - min(ring) > 60) == passed, (i, angle, ring)
    labels = page.locator(".explorer-live svg text").all_text_contents()
    if dim <= 32:
        assert [float(text.replace("< ", "")) for text in labels[-dim // 2 :]] == pytest.approx(
            np.maximum(expected["turns"], 0.01), abs=0.0051
        )
    else:
        assert labels[-1] == "Open ring: less than one turn so far"
        expect(page.locator(".rb-summary")).to_contain_text(f"{expected['young']} of {dim // 2} hands")


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
    for j in range(4, digits):  # waves of 32 positions or more
        for m in (start + 3, 80, 115):
            wave = -math.sin(2 * math.pi * (m + 0.5) / 2 ** (j + 1))
            x, y = place(0, j, digits, m, wave)
            near = pixels(page, [(x, y + dy) for dy in (-1, 0, 1)])
            assert (near[:, 2] - near[:, 0]).max() > 60  # the line is blue
            digit = m >> j & 1
            [beside] = pixels(page, [place(0, j, digits, m, -0.7 if digit else 0.7)])  # beside the wave
            assert beside.max() - beside.min() < 30
            assert (beside.min() < 240) == digit  # where the digit is 1 there is a grey block
    shown = data_["shown"]
    for k, i in enumerate(shown):
        x, y = place(panel + 40, k, len(shown), 100, data_["encoding"][2 * i])
        [dot] = pixels(page, [(x + 2, y)])
        assert dot[2] - dot[0] > 60
    marks = page.locator(".explorer-live svg text").evaluate_all(
        "all => all.map((t) => [t.textContent, +t.getAttribute('x'), +t.getAttribute('y'), getComputedStyle(t).fill])"
    )
    values = {round(y, 2): (text, fill) for text, x, y, fill in marks if abs(x - (2 * panel)) < 1}
    for k, i in enumerate(shown):
        text, fill = values[round(place(0, k, len(shown), 0, 0)[1] + 5, 2)]
        assert float(text.replace("−", "-")) == pytest.approx(data_["encoding"][2 * i], abs=0.006)
        assert fill == CSS_BLUE
    column = {round(y, 2): text for text, x, y, _ in marks if abs(x - (panel - 40)) < 1}
    for j, digit in enumerate(data_["digits"][:digits]):
        assert column[round(place(0, j, digits, 0, 0)[1] + 5, 2)] == str(digit)
    ticks = {text: x for text, x, y, _ in marks if y == 19}
    assert ticks["100"] == pytest.approx(place(panel + 40, 0, 1, 100, 0)[0], abs=0.01)
