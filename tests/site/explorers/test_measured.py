"""What only the explorer Measured promises on a page."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.explorers.made_up import DISTANCES, LENGTH, TEXT, Measured
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    CSS_BLUE,
    CSS_GREEN,
    CSS_INK,
    CSS_MUTED,
    CSS_VIOLET,
    data,
    dials,
    enter,
    of,
    show_panel,
    stage_width,
    texts,
)

LEFT = 46
EXTREMES = [
    {},
    {"method": "linear", "factor": "16", "tuned": True, "position": 4096},
    {"method": "none", "position": 1},
    {"method": "dynamic_ntk_anew", "run": "rope-10000-1"},
    {"run": "schemes", "position": 3000},
    {"show": "retrieval", "method": "linear", "factor": "2"},
    {"show": "retrieval", "run": "schemes", "position": 1},
]


def setting(page: Page) -> dict:
    found = dials(page)
    del found["measured"]
    return found


def number(element, name: str) -> float:
    return float(element.get_attribute(name))


def plot(page: Page) -> tuple[float, float, float, float]:
    """Left, right, top and bottom of the picture's axes."""
    box = page.get_by_role("slider", name="in the picture").evaluate(
        "e => [e.offsetLeft, e.offsetLeft + e.offsetWidth, e.offsetTop, e.offsetTop + e.offsetHeight]"
    )
    assert box[:2] == [LEFT, stage_width(page) - 14]
    return tuple(box)


def x_of(page: Page, positions: np.ndarray | list | float, least: int = 1) -> np.ndarray:
    left, right, *_ = plot(page)
    return left + np.log2(np.array(positions) / least) / math.log2(TEXT / least) * (right - left)


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize(
    "choice", [{}, {"method": "ntk", "factor": "16", "position": 100}, {"method": "dynamic_ntk_anew"}]
)
def test_lines_stand_where_they_belong(opened, width, choice):
    figure = Measured(**choice)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    _, _, top, floor = plot(page)
    values = [v for curve in expected["curves"] for v in curve if v is not None] + expected["window"]
    low, high = math.floor(min(values)), math.ceil(max(values))

    def y(bits: list | float) -> np.ndarray:
        return floor - (np.array(bits) - low) / (high - low) * (floor - top)

    for colour, thick, curve in zip((CSS_INK, CSS_MUTED), (2.25, 1.75), expected["curves"], strict=True):
        line = max(of(page, colour, thick), key=len)
        np.testing.assert_allclose(line, np.stack([x_of(page, expected["at"]), y(curve)], -1), atol=0.06)
    circles = page.locator(".rb-stage svg circle[r='4.5']").all()
    assert sorted(number(one, "cy") for one in circles) == pytest.approx(sorted(y(expected["here"])), abs=1e-6)
    assert [number(one, "cx") for one in circles] == pytest.approx([float(x_of(page, figure.position))] * 2)
    lengths = {"L": LENGTH} | ({f"{s} L": s * LENGTH} if (s := expected["factor"]) else {})
    for name, place in lengths.items():
        assert (f"{name} = {place}" if width > 700 else name) in texts(page)
    assert "last 256 bytes only" in texts(page)


def test_the_window_is_drawn_beyond_the_trained_length(opened):
    page = opened([Measured()], viewport={"width": 760, "height": 900})
    steps = page.locator(".rb-stage svg path").evaluate_all(
        "all => all.filter((p) => getComputedStyle(p).strokeDasharray === '5px, 4px').map((p) => p.getAttribute('d'))"
    )
    [curve] = [d for d in steps if d.count("H") == 4]
    starts = [float(part.split(",")[0]) for part in curve.split("M")[1:]]
    assert starts == pytest.approx(list(x_of(page, [256, 512, 1024, 2048])), abs=0.06)
    [below] = [d for d in steps if d.count("h") == 4]
    octave = x_of(page, 512) - x_of(page, 256)
    found = np.array([[float(n) for n in part.split(",")[0].split("M")[-1:]] for part in below.split("M")[1:]])[:, 0]
    np.testing.assert_allclose(found, x_of(page, [256, 512, 1024, 2048]) + 0.1 * octave, atol=0.1)


@pytest.mark.parametrize("width", [390, 760])
def test_differences_and_what_is_decided(opened, width):
    figure = Measured(method="linear", factor="8")
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    show_panel(page, "Difference")
    left, right = LEFT, stage_width(page) - 14
    rings = page.locator(".rb-stage svg circle[r='4']").all()
    assert len(rings) == 5
    middles = [left + (b + 0.5) * (right - left) / 5 for b in range(5)]
    if width > 700:  # under the curves, on their axis
        ends = x_of(page, [1, 256, 512, 1024, 2048, 4096])
        middles = list((ends[1:] + ends[:-1]) / 2)
    assert [number(ring, "cx") for ring in rings] == pytest.approx(middles, abs=0.06)
    [apart], [errors], [sure] = expected["apart"], expected["apartError"], expected["decided"]
    heights = [number(ring, "cy") for ring in rings]
    slope = np.polyfit(apart, heights, 1)
    assert slope[0] < 0  # more bits are higher up
    assert np.polyval(slope, apart) == pytest.approx(heights, abs=0.1)
    fills = [ring.evaluate("e => getComputedStyle(e).fill") for ring in rings]
    assert [fill == CSS_INK for fill in fills] == sure
    if width > 700:
        band = expected["band"]
        text = f"Difference to the model as trained: {apart[band]:+.3f} ± {2 * errors[band]:.3f}"
        assert text.replace("-", "−") in texts(page)
    else:
        assert {f"{one:+.3f}".replace("-", "−") for one in apart} <= set(texts(page))
    spans = [abs(line[0, 1] - line[1, 1]) for line in of(page, CSS_INK, 1.5) if len(line) == 2]
    assert spans[-5:] == pytest.approx([4 * error * abs(slope[0]) for error in errors], abs=0.25)


def test_all_schemes(opened):
    figure = Measured(run="schemes", position=3000)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": 760, "height": 900})
    for colour, thick, dashes in [
        (CSS_INK, 2.25, "none"),
        (CSS_BLUE, 2, "0 4"),
        (CSS_BLUE, 1.75, "none"),
        (CSS_GREEN, 1.75, "none"),
        (CSS_VIOLET, 1.75, "none"),
        (CSS_GREEN, 2.25, "7 4"),
        (CSS_MUTED, 1.75, "7 4"),
    ]:
        line = max(of(page, colour, thick, dashes), key=len)
        known = max(stop for stop in (LENGTH, TEXT) if len(line) in (44, 28) and (stop == TEXT) == (len(line) == 44))
        assert line[-1, 0] <= x_of(page, known) + 0.1
        assert (known == LENGTH) == ((colour, thick) == (CSS_GREEN, 2.25))
    names = texts(page)
    for value in expected["here"]:
        assert any(name.endswith("–" if value is None else f"{value:.2f}") for name in names)
    expect(page.locator(".rb-stats")).to_contain_text("Fewest: ALiBi")
    expect(page.locator(".rb-summary")).to_contain_text("Not there: learned.")


@pytest.mark.parametrize("width", [390, 760])
def test_shares_stand_where_they_belong(opened, width):
    figure = Measured(show="retrieval", position=700)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    _, _, top, floor = plot(page)
    line = max(of(page, CSS_INK, 2.25), key=len)
    heights = floor - np.array(expected["far"][0]) * (floor - top)
    np.testing.assert_allclose(line, np.stack([x_of(page, DISTANCES, 16), heights], -1), atol=0.06)
    circles = page.locator(".rb-stage svg circle")
    assert circles.count() == 2 * (8 + 4)
    stats = page.locator(".rb-stats dd").all_inner_texts()
    assert [text.strip() for text in stats] == [*(f"{round(100 * one[5])} %" for one in expected["far"]), "13 %"]
    assert texts(page).count("100 %") == 1
    expect(page.locator(".rb-summary")).to_contain_text("768 bytes before they are asked for")


def limits(page: Page, label: str) -> str:
    return page.locator(".rb-dial", has_text=label).locator(".rb-limits").text_content()


def test_a_dial_without_effect_says_so_and_stays(opened):
    page = opened([Measured()])
    assert limits(page, "Factor s") == "For texts of up to s·L bytes, s times the trained length."
    page.get_by_role("switch", name="Fine-tuned").check()
    expect(page.locator(".rb-stats dt").first).to_have_text("YaRN, s = 4, fine-tuned")
    method = page.get_by_role("combobox", name="Method")
    method.select_option("ReRoPE")
    assert limits(page, "Factor s") == "No effect here: ReRoPE has no factor."
    assert limits(page, "Fine-tuned") == "There is no model fine-tuned with ReRoPE: shown without."
    expect(page.locator(".rb-stats dt").first).to_have_text("ReRoPE")
    assert setting(page) == {
        "show": "loss",
        "run": "rope-10000-0",
        "method": "rerope",
        "factor": "4",
        "tuned": True,
        "position": 1024,
    }
    method.select_option("position interpolation")
    expect(page.locator(".rb-stats dt").first).to_have_text("Position interpolation, s = 4, fine-tuned")
    page.get_by_role("radio", name="all schemes").check()
    for label in ("Method", "Factor s", "Fine-tuned"):
        assert limits(page, label) == "No effect here: all schemes are shown as they were trained."


def test_pointer_and_keys_move_where_it_is_read(opened):
    page = opened([Measured()], viewport={"width": 760, "height": 1000})
    pad = page.get_by_role("slider", name="Position in the picture")
    box = pad.bounding_box()

    def at(position: float) -> float:
        return box["x"] + math.log2(position) / 12 * box["width"]

    y = box["y"] + 60
    page.mouse.move(at(64), y)
    page.mouse.down()
    assert dials(page)["position"] == pytest.approx(64, rel=0.02)
    page.mouse.move(at(700), y, steps=4)
    assert dials(page)["position"] == pytest.approx(700, rel=0.02)
    page.mouse.move(box["x"] + box["width"] + 60, y)
    assert dials(page)["position"] == TEXT
    page.mouse.up()
    page.mouse.move(at(9), y)
    assert dials(page)["position"] == TEXT
    page.mouse.click(at(9), y, button="right")
    assert dials(page)["position"] == TEXT
    enter(page, "Position or distance", 256)
    pad.focus()
    for key, position in [
        ("ArrowRight", 304),
        ("ArrowUp", 362),
        ("ArrowLeft", 304),
        ("PageUp", 608),
        ("PageDown", 304),
        ("a", 304),
        ("End", 4096),
        ("ArrowRight", 4096),
        ("PageUp", 4096),
        ("Home", 1),
        ("ArrowDown", 1),
        ("PageDown", 1),
    ]:
        page.keyboard.press(key)
        assert dials(page)["position"] == position, key
    expect(pad).to_have_attribute("aria-valuetext", f"byte 1: YaRN, s = 4 {data(page)['here'][0]:.2f} bits, byte 1")


def test_in_retrieval_the_keys_go_from_distance_to_distance(opened):
    page = opened([Measured(show="retrieval", position=1000)])
    pad = page.get_by_role("slider", name="Distance in the picture")
    expect(pad).to_have_attribute("aria-valuenow", "768")
    pad.focus()
    for key, position in [("ArrowRight", 1536), ("ArrowLeft", 768), ("End", 3072), ("ArrowUp", 3072), ("Home", 24)]:
        page.keyboard.press(key)
        assert dials(page)["position"] == position, key
