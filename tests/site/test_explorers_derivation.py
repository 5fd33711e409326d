"""The explorers of chapter *The rotation* in a page without a kernel: arrows, steps, clicks, curves, work."""

from __future__ import annotations

import cmath
import math
import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ropebook.explorers.lock import Lock
from ropebook.explorers.turn import Turn
from tests.explorers.oracles import expected_of, oracle
from tests.site.figures import data, dials, enter, hash_of, show_panel

BLUE, ORANGE, GREEN, VIOLET = "rgb(11, 98, 196)", "rgb(179, 71, 10)", "rgb(20, 115, 60)", "rgb(138, 47, 163)"


def lines(page: Page) -> list[tuple[str, float, str]]:
    """Colour, width and path of every line of the picture."""
    return [
        tuple(found)
        for found in page.locator(".rb-stage svg path").evaluate_all(
            """all => all.filter((p) => p.getAttribute('d') && getComputedStyle(p).stroke !== 'none').map((p) => {
              const { stroke, strokeWidth, opacity } = getComputedStyle(p);
              return [stroke, parseFloat(strokeWidth), p.getAttribute('d'), opacity];
            })"""
        )
    ]


def of(page: Page, colour: str, width: float) -> list[np.ndarray]:
    """The points of the lines of this colour and width, path by path."""
    return [
        np.array([[float(n) for n in p.split(",")] for p in re.findall(r"-?[\d.]+,-?[\d.]+", d)])
        for stroke, thick, d, _ in lines(page)
        if (stroke, thick) == (colour, width)
    ]


def arrows(page: Page, colour: str) -> list[tuple[complex, complex]]:
    """Tail and tip of every arrow of this colour, also where many make one path."""
    found = [
        re.findall(r"M([-\d.]+),([-\d.]+)L([-\d.]+),([-\d.]+)M", d)
        for stroke, _, d, _ in lines(page)
        if stroke == colour
    ]
    return [(complex(*map(float, one[:2])), complex(*map(float, one[2:]))) for path in found for one in path]


def marks(page: Page, part: str = "") -> dict[str, tuple[float, float]]:
    """Where each text of the picture stands, or of one part of it."""
    return {
        text: (x, y)
        for text, x, y in page.locator(f".rb-stage svg {part} text").evaluate_all(
            "all => all.map((t) => [t.textContent, +t.getAttribute('x'), +t.getAttribute('y')])"
        )
    }


def number(text: str) -> float:
    return float(text.replace("−", "-"))


# ---- The turned vector ----


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
    [arrow] = of(page, BLUE, 3)
    tail, tip = (complex(*point) for point in arrow[:2])
    assert abs(tail - centre) < 0.01
    turned = start / abs(start) * cmath.exp(1j * angle)
    assert abs(tip - centre - radius * turned.conjugate()) < 0.01  # up is less on a page
    before = complex(*of(page, "rgb(89, 99, 110)", 2)[0][1])
    assert abs(before - centre - radius * (start / abs(start)).conjugate()) < 0.01
    # the arc, from the first direction to the second, and a whole circle once a turn is full
    arc = next(d for stroke, thick, d, _ in lines(page) if (stroke, thick) == (BLUE, 1.5))
    end = complex(*map(float, arc.split(" ")[-1].split(",")))
    assert abs(end - centre - 0.36 * radius * turned.conjugate()) < 0.01
    assert arc.count("a") == (2 if angle >= 2 * math.pi else 0)
    assert int(arc.split("A")[1].split(" ")[3]) == 0  # counter-clockwise
    assert int(arc.split("A")[1].split(" ")[2]) == (angle % (2 * math.pi) > math.pi)
    # the matrix and the pair after it
    show_panel(page, "Coordinates")
    found = page.locator(".rb-stage svg text").all_text_contents()
    c, s, product = math.cos(angle), math.sin(angle), start * cmath.exp(1j * angle)
    for value in (c, -s, s, product.real, product.imag):
        assert f"{value:.3f}".replace("-", "−") in found
    for title in (f"Pair {pair}: entries {2 * pair} and {2 * pair + 1}", f"From position 0 to position {position}"):
        assert title in found
    value, length = page.locator(".rb-stats dd").all_inner_texts()
    assert number(value.split()[0]) == pytest.approx(angle, rel=0.01)
    assert number(value.split()[3].rstrip("°")) == pytest.approx(math.degrees(angle), rel=0.01)
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
    assert [opacity for *_, opacity in spots] == sorted(opacity for *_, opacity in spots)  # the newest is the boldest
    where = marks(page, "> g:first-child")
    for m in (20, 18, 12, 5):
        outside = complex(160, 212) + 149 * (direction * cmath.exp(1j * m * angle)).conjugate()
        assert abs(complex(*where[str(m)]) - outside) < 0.01
    page.get_by_role("textbox", name="Pair i").fill("7")  # slow: the names would overlap
    page.get_by_role("textbox", name="Pair i").press("Enter")
    assert not {"19", "18", "12", "5"} & set(marks(page, "> g:first-child"))


def test_the_coordinates_are_drawn_as_waves(opened):
    figure = Turn(position=40, dim=4, base=100, pair=0)
    page = opened([figure], viewport={"width": 760, "height": 900})
    stage = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    left, right, low, high = 348 + 46, stage - 8, 152 + 50 + 116, 152 + 50
    for colour, shift in ((GREEN, 0), (VIOLET, -math.pi / 2)):
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
        # the chosen dial's hand points where the pair does
        start = complex(2 * pair + 1, 2 * pair + 2)
        direction = (start / abs(start) * cmath.exp(1j * expected[pair])).conjugate()
        hands = [hand for colour in (BLUE, ORANGE) for hand in arrows(page, colour)]
        [pointed] = [tip - tail for tail, tip in hands if abs(tail - complex(x, y)) < 0.02]
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
    note = f"Orange: no full turn yet ({young} of {dim // 2})"
    assert (f"Radians turned. {note}" if labels else note) in found
    if labels:
        texts = found[-dim // 2 :]
        assert [float(text.replace("< ", "")) for text in texts] == pytest.approx(np.maximum(angles, 0.01), abs=0.0051)
    enter(page, "Dimension d", 2)
    enter(page, "Position m", 7)
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert "The only pair at position 7" in found
    assert "Radians turned. Every pair has made a full turn" in found
    enter(page, "Dimension d", 4)
    assert "Both pairs at position 7" in page.locator(".rb-stage svg text").all_text_contents()


def test_steps_and_the_eighth_of_a_turn(opened):
    page = opened([Turn(position=3)])
    for name, position in [
        ("1 position on", 4),
        ("16 positions on", 20),
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


def test_a_pair_beyond_the_last_is_refused_and_gives_way(opened):
    page = opened([Turn(), Lock()])
    for which in range(2):
        field = page.get_by_role("textbox", name="Pair i").nth(which)
        field.fill("100")
        field.press("Enter")
        why = page.locator(".rb").nth(which).locator(".rb-why:visible")
        expect(why).to_contain_text("100 is more than 7 (Dimension d is 16).")
        field.fill("7")
        field.press("Enter")
        assert dials(page, which)["pair"] == 7
        dim = page.get_by_role("textbox", name="Dimension d").nth(which)
        dim.fill("4")
        dim.press("Enter")
        assert dials(page, which)["pair"] == 1
        dim.fill("9")
        dim.press("Enter")
        expect(page.get_by_role("status").nth(which)).to_contain_text(
            "9 is not one of 2, 4, 6, … (entries come in pairs). Still 4."
        )


# ---- The lock ----


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
    # what each plane must hold: circles around the origin; the origin and unit circles around the tips
    ends = [np.array([[-far, -far], [far, far]]), np.array([[0, 0], *(bare - 1), *(bare + 1)])]
    boxes = [(one.min(0), one.max(0)) for one in ends]
    unit = (size - 44) / max((high - low).max() for low, high in boxes)
    centres = [
        np.array([left + size / 2, 48 + size / 2]) - (low + high) / 2 * unit * [1, -1]
        for left, (low, high) in zip((0, right), boxes, strict=True)
    ]
    for colour, row in ((GREEN, 0), (VIOLET, 1)):
        for thick, names in ((3, ("turned", "summed")), (2, ("bare", "bare"))):
            for centre, name, arrow in zip(centres, names, of(page, colour, thick), strict=True):
                tip = np.reshape(expected[name], (2, 2))[row] * unit * [1, -1] + centre
                np.testing.assert_allclose(arrow[:2], [centre, tip], atol=0.006)
    found = page.locator(".rb-stage svg text").all_text_contents()
    for text in ("RoPE", "R₂₁q and R₁₄k", "Sinusoidal", "q + PE₂₁ and k + PE₁₄"):
        assert text in found
    for name, product in (("turned", "turnedProduct"), ("summed", "summedProduct")):
        q, k = (complex(*row) for row in np.reshape(expected[name], (2, 2)))
        assert f"angle {abs(cmath.phase(q / k)):.4f} rad" in found
        assert f"pair 3 gives {expected[product]:.4f}".replace("-", "−") in found
    arcs = [d for stroke, thick, d, _ in lines(page) if (stroke, thick) == ("rgb(31, 35, 40)", 1.5) and "A" in d]
    for arc, centre, name in zip(arcs, centres, ("turned", "summed"), strict=True):
        ends = [complex(*map(float, pair.split(","))) - complex(*centre) for pair in re.split("A.* ", arc[1:])]
        q, k = (complex(*row) for row in np.reshape(expected[name], (2, 2)))
        assert [cmath.phase(end.conjugate()) for end in ends] == pytest.approx(
            [cmath.phase(k), cmath.phase(q)], abs=0.01
        )
        assert int(arc.split("A")[1].split(" ")[3]) == (0 if cmath.phase(q / k) > 0 else 1)  # the shorter way round
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
        assert rope.split()[0] == f"{values['rope']:.6f}".replace("-", "−")
        assert added.split()[0] == f"{values['added']:.6f}".replace("-", "−")
        assert number(added.split(" by ")[1]) == pytest.approx(values["added"] - values["addedHome"], rel=0.01)
        shown[shift] = (rope.split()[0], added.split()[0])
    assert len({rope for rope, _ in shown.values()}) == 1
    assert len({added for _, added in shown.values()}) == 4
    expect(page.locator(".rb-stats dd").first).to_contain_text(re.compile(r"by −?\d\.\d × 10⁻¹[³⁴⁵⁶]"))
    before = page.locator(".rb-stats dd").first.inner_text()
    enter(page, "Query position m", 21)
    assert page.locator(".rb-stats dd").first.inner_text().split()[0] != before.split()[0]
    page.get_by_role("button", name="16 positions back", exact=True).click()
    assert dials(page)["shift"] == 239
    page.get_by_role("button", name="16 positions on", exact=True).click()
    expect(page.get_by_role("button", name="1 position on", exact=True)).to_have_attribute("aria-disabled", "true")


@pytest.mark.parametrize("width", [390, 760])
def test_both_scores_are_drawn_against_the_shift(opened, width):
    figure = Lock(shift=50)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    size = min(262, stage - stage // 2 - (6 if stage < 520 else 20))
    high, tall = (52, max(300, 94 + size) - 96) if stage < 520 else (48 + size + 46 + 52, 140)
    ticks = {text: y for text, (x, y) in marks(page).items() if x == -9}
    levels = sorted(number(text) for text in ticks)
    low, top = levels[0], levels[-1]
    assert [ticks[f"{level:.0f}".replace("-", "−")] for level in (low, top)] == pytest.approx(
        [high + tall + 4, high + 4]
    )
    for colour, thick, name in ((BLUE, 2.5, "ropeCurve"), (ORANGE, 2, "addedCurve")):
        [curve] = of(page, colour, thick)
        np.testing.assert_allclose(curve[:, 0], 46 + np.arange(256) / 255 * (stage - 54), atol=0.06)
        values = top - (curve[:, 1] - high) / tall * (top - low)
        np.testing.assert_allclose(values, expected[name], atol=0.01)
    [rope_line] = of(page, BLUE, 2.5)
    assert np.ptp(rope_line[:, 1]) == 0
    for dot, name in zip(page.locator(".rb-stage svg circle").all(), ("rope", "added"), strict=True):
        assert float(dot.get_attribute("cx")) == pytest.approx(46 + 50 / 255 * (stage - 54), abs=0.01)
        assert top - (float(dot.get_attribute("cy")) - high) / tall * (top - low) == pytest.approx(
            expected[name], abs=1e-6
        )
    assert "Score over all 8 pairs" in marks(page)
    enter(page, "Dimension d", 2)
    assert "Score of the only pair" in marks(page)


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


# ---- Both ----
