"""Browser tests specific to the Turn explorer."""

from __future__ import annotations

import cmath
import math
import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ropebook.explorers.turn import Turn
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    CSS_BLUE,
    CSS_INK,
    CSS_MUTED,
    data,
    dials,
    enter,
    hash_of,
    marks,
    number,
    of,
    paths,
    show_panel,
)


def arrows(page: Page, colour: str) -> list[tuple[complex, complex]]:
    """Return the tail and tip of every arrow of this colour, even if several arrows form a single path."""
    found = [
        re.findall(r"M([-\d.]+),([-\d.]+)L([-\d.]+),([-\d.]+)M", d) for stroke, *_, d in paths(page) if stroke == colour
    ]
    return [(complex(*map(float, one[:2])), complex(*map(float, one[2:]))) for path in found for one in path]


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize("position, base, dim, pair", [(5, 1e4, 16, 1), (23, 100.0, 4, 0), (1, 1.62114, 4, 1)])
def test_the_arrow_turns_by_the_angle(opened, width, position, base, dim, pair):
    figure = Turn(position=position, base=base, dim=dim, pair=pair)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    size = min(320, stage)
    centre = complex(size / 2 if stage >= 520 else stage / 2, 48 + size / 2)
    radius, angle = size / 2 - 26, position * base ** (-2 * pair / dim)
    start = complex(2 * pair + 1, 2 * pair + 2)
    [arrow] = of(page, CSS_BLUE, 3)
    tail, tip = (complex(*point) for point in arrow[:2])
    assert abs(tail - centre) < 0.01
    turned = start / abs(start) * cmath.exp(1j * angle)
    assert abs(tip - centre - radius * turned.conjugate()) < 0.01  # on a page, y increases downwards
    before = complex(*of(page, CSS_MUTED, 2)[0][1])
    assert abs(before - centre - radius * (start / abs(start)).conjugate()) < 0.01
    # the arc runs from the first direction to the second, with a whole circle added after each complete turn
    arc = next(d for stroke, thick, _, d in paths(page) if (stroke, thick) == (CSS_BLUE, 1.5))
    end = complex(*map(float, arc.split(" ")[-1].split(",")))
    assert abs(end - centre - 0.36 * radius * turned.conjugate()) < 0.01
    assert arc.count("a") == (2 if angle >= 2 * math.pi else 0)
    assert int(arc.split("A")[1].split(" ")[3]) == 0  # counter-clockwise
    assert int(arc.split("A")[1].split(" ")[2]) == (angle % (2 * math.pi) > math.pi)
    # check the matrix, and the pair after the rotation
    show_panel(page, "Coordinates")
    found = page.locator(".rb-stage svg text").all_text_contents()
    c, s, product = math.cos(angle), math.sin(angle), start * cmath.exp(1j * angle)
    for value in (c, -s, s, product.real, product.imag):
        assert f"{value:.3f}".replace("-", "−") in found
    for title in (f"Pair {pair}: entries {2 * pair} and {2 * pair + 1}", f"From position 0 to position {position:,}"):
        assert title in found
    [value] = [text for text in found if " rad = " in text]
    assert number(value.split(" = ")[1].removesuffix(" rad")) == pytest.approx(angle, rel=0.01)
    [length] = page.locator(".rb-stats dd").all_inner_texts()
    assert number(length.split()[0]) == pytest.approx(abs(start), abs=1e-6)


def test_positions_passed_are_marked_on_the_circle(opened):
    page = opened([Turn(position=20, pair=1)], viewport={"width": 760, "height": 900})
    angle = 10**-0.5
    spots = page.locator(".rb-stage svg circle[r='4']").evaluate_all(
        "all => all.map((c) => [+c.getAttribute('cx'), +c.getAttribute('cy'), +getComputedStyle(c).opacity])"
    )
    direction = (3 + 4j) / 5
    expected = [complex(160, 208) + 134 * (direction * cmath.exp(1j * m * angle)).conjugate() for m in range(5, 21)]
    np.testing.assert_allclose([complex(x, y) for x, y, _ in spots], expected, atol=0.01)
    # the most recent one is the most opaque
    assert [opacity for *_, opacity in spots] == sorted(opacity for *_, opacity in spots)
    where = marks(page, "> g:first-child")
    for m in (20, 18, 12, 5):
        outside = complex(160, 212) + 149 * (direction * cmath.exp(1j * m * angle)).conjugate()
        assert abs(complex(*where[str(m)]) - outside) < 0.01
    page.get_by_role("textbox", name="Pair i").fill("7")  # this pair is slow, so the names would overlap
    page.get_by_role("textbox", name="Pair i").press("Enter")
    assert not {"19", "18", "12", "5"} & set(marks(page, "> g:first-child"))


def test_the_coordinates_are_drawn_as_waves(opened):
    figure = Turn(position=40, dim=4, base=100, pair=0)
    page = opened([figure], viewport={"width": 760, "height": 900})
    stage = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    left, right, low, high = 348 + 46, stage - 8, 152 + 50 + 116, 152 + 50
    for colour, shift in ((CSS_BLUE, 0), (CSS_INK, -math.pi / 2)):
        [curve] = of(page, colour, 2)
        assert len(curve) == 48 * 8 + 1
        at = 16 + (curve[:, 0] - left) / (right - left) * 48
        drawn = ((low + high) / 2 - curve[:, 1]) / (low - high) * 2
        assert np.abs(drawn - np.cos(at + math.atan2(2, 1) + shift)).max() < 0.02
    dots = page.locator(".rb-stage svg circle[r='4.5']")
    for dot, value in zip(dots.all(), data(page)["turned"][:2], strict=True):
        assert float(dot.get_attribute("cx")) == pytest.approx((left + right) / 2, abs=0.01)
        assert float(dot.get_attribute("cy")) == pytest.approx(
            (low + high - value / 5**0.5 * (low - high)) / 2, abs=0.01
        )


@pytest.mark.parametrize("dim, cell", [(16, 96), (128, 48)])
def test_a_click_on_a_dial_chooses_its_pair(opened, dim, cell):
    page = opened([Turn(position=30, dim=dim, pair=0)], viewport={"width": 760, "height": 900})
    box = page.locator(".rb-stage svg rect").bounding_box()
    stage = page.locator(".rb-stage svg").bounding_box()
    expected, seen = data(page)["angles"], set()
    for share_x, share_y in [(0.9, 0.2), (0.3, 0.3), (0.55, 0.25)]:
        page.mouse.click(box["x"] + share_x * box["width"], box["y"] + share_y * box["height"])
        pair = dials(page)["pair"]
        seen.add(pair)
        ring = page.locator(".rb-stage svg g > circle[r]:not([r='4']):not([r='4.5'])").last
        x, y = (float(ring.get_attribute(name)) for name in ("cx", "cy"))
        asked = (box["x"] + share_x * box["width"] - stage["x"], box["y"] + share_y * box["height"] - stage["y"])
        assert math.hypot(x - asked[0], y - asked[1]) < cell
        # the hand of the chosen dial points in the direction of the pair
        start = complex(2 * pair + 1, 2 * pair + 2)
        direction = (start / abs(start) * cmath.exp(1j * expected[pair])).conjugate()
        [pointed] = [tip - tail for tail, tip in arrows(page, CSS_BLUE) if abs(tail - complex(x, y)) < 0.02]
        assert abs(pointed / abs(pointed) - direction) < 0.02
    assert len(seen) == 3
    assert hash_of(page) == f"#turn.pair={pair}"


@pytest.mark.parametrize("dim, labels", [(16, True), (32, True), (34, False), (512, False)])
def test_small_dials_say_how_far_they_have_come(opened, dim, labels):
    figure = Turn(position=20, dim=dim)
    page = opened([figure])
    angles = np.array(expected_of(figure)["angles"])
    found = page.locator(".rb-stage svg text").all_text_contents()
    young = int((angles < 2 * math.pi).sum())
    note = "Full blue ring: at least one turn"
    assert (f"In radians. {note}" if labels else note) in found
    expect(page.locator(".rb-summary")).to_contain_text(f"{young} of {dim // 2} pairs")
    if labels:
        texts = found[-dim // 2 :]
        assert [float(text.replace("< ", "")) for text in texts] == pytest.approx(np.maximum(angles, 0.01), abs=0.0051)
    enter(page, "Dimension d", 2)
    enter(page, "Position m", 7)
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert "The only pair at position 7" in found
    assert "In radians. Every pair has made a full turn" in found
    enter(page, "Dimension d", 4)
    assert "Both pairs at position 7" in page.locator(".rb-stage svg text").all_text_contents()


def test_steps_and_the_eighth_of_a_turn(opened):
    page = opened([Turn(position=3)])
    for name, position in [
        ("1 position forward", 4),
        ("16 positions forward", 20),
        ("1 position back", 19),
        ("16 positions back", 3),
        ("16 positions back", 0),
    ]:
        page.get_by_role("button", name=name, exact=True).click()
        assert dials(page)["position"] == position
    expect(page.get_by_role("button", name="1 position back", exact=True)).to_have_attribute("aria-disabled", "true")
    page.get_by_role("button", name="π/4 per position").click()
    assert dials(page) == {"position": 1, "base": 1.62114, "dim": 4, "pair": 1}
    expect(page.locator(".rb-stage")).to_contain_text("= 0.785 rad = 45.0°")
    page.get_by_role("slider", name="Position m, slider").press("ArrowRight")
    expect(page.locator(".rb-stage")).to_contain_text("2θ₁ = 1.57 rad = 90.0°")


def test_the_arrow_glides_to_the_next_position(opened):
    page = opened([Turn(position=5, pair=0)], reduced_motion="no-preference")
    # Record the direction of the large arrow at every frame, from the click until it rests.
    record = """(button) => new Promise((done) => {
      const arrow = [...document.querySelectorAll('.rb-stage svg path')].find((p) =>
        getComputedStyle(p).strokeWidth === '3px');
      const seen = [];
      const look = () => {
        seen.push(arrow.getAttribute('d'));
        if (new Set(seen.slice(-20)).size === 1 && seen.length > 20) done([...new Set(seen)]);
        else requestAnimationFrame(look);
      };
      button.click();
      look();
    })"""
    buttons = (page.get_by_role("button", name=f"{by} forward", exact=True) for by in ("1 position", "16 positions"))
    near, far = (button.evaluate(record) for button in buttons)
    assert len(near) > 3
    assert len(far) == 1  # too far to follow with the eye
