"""The explorer of chapter *Measured* in a page without a kernel: lines, rings, dials without effect, pointer, work."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playwright.sync_api import Page, expect
from tests.test_explorers_lab import BANDS, DISTANCES, LENGTH, TEXT, Measured

from tests.explorers.oracles import expected_of
from tests.site.test_explorers import dials, folder, hash_of, opened, root  # noqa: F401 (fixtures)
from tests.site.test_explorers_extrapolation import BLUE, GREEN, INK, MUTED, VIOLET, of, stage_width, texts
from tests.site.test_explorers_sinusoidal import data, enter
from tests.site.work import slowest_event
from tools import assets

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
    assert box[:2] == [LEFT, stage_width(page) - 8]
    return tuple(box)


def x_of(page: Page, positions: np.ndarray | list | float, least: int = 1) -> np.ndarray:
    left, right, *_ = plot(page)
    return left + np.log2(np.array(positions) / least) / math.log2(TEXT / least) * (right - left)


@pytest.mark.parametrize("over", ["http", "file"])
def test_it_comes_alive(opened, over):  # noqa: F811
    page = opened([Measured()], over=over)
    expect(page.locator(".explorer-alive .rb")).to_have_count(1)
    assert page.get_by_role("img").get_attribute("aria-label") == Measured().alt
    figure = Measured()
    assert data(page) == expected_of(figure)


# ---- Loss ----


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize(
    "choice", [{}, {"method": "ntk", "factor": "16", "position": 100}, {"method": "dynamic_ntk_anew"}]
)
def test_lines_stand_where_they_belong(opened, width, choice):  # noqa: F811
    figure = Measured(**choice)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    _, _, top, floor = plot(page)
    values = [v for curve in expected["curves"] for v in curve if v is not None] + expected["window"]
    low, high = math.floor(min(values)), math.ceil(max(values))

    def y(bits: list | float) -> np.ndarray:
        return floor - (np.array(bits) - low) / (high - low) * (floor - top)

    for colour, thick, curve in zip((INK, MUTED), (2.25, 1.75), expected["curves"], strict=True):
        line = max(of(page, colour, thick), key=len)
        np.testing.assert_allclose(line, np.stack([x_of(page, expected["at"]), y(curve)], -1), atol=0.06)
    circles = page.locator(".rb-stage svg circle[r='4.5']").all()
    assert sorted(number(one, "cy") for one in circles) == pytest.approx(sorted(y(expected["here"])), abs=1e-6)
    assert [number(one, "cx") for one in circles] == pytest.approx([float(x_of(page, figure.position))] * 2)
    lengths = {"L": LENGTH} | ({f"{s} L": s * LENGTH} if (s := expected["factor"]) else {})
    for name, place in lengths.items():
        assert (f"{name} = {place}" if width > 700 else name) in texts(page)
    assert "last 256 bytes only" in texts(page)


def test_the_window_is_drawn_beyond_the_trained_length(opened):  # noqa: F811
    page = opened([Measured()], viewport={"width": 760, "height": 900})
    steps = page.locator(".rb-stage svg path").evaluate_all(
        "all => all.filter((p) => getComputedStyle(p).strokeDasharray === '5px, 4px').map((p) => p.getAttribute('d'))"
    )
    [curve] = [d for d in steps if d.count("H") == 4]
    starts = [float(part.split(",")[0]) for part in curve.split("M")[1:]]
    assert starts == pytest.approx(list(x_of(page, [256, 512, 1024, 2048])), abs=0.06)
    [below] = [d for d in steps if d.count("h") == 4]
    assert below.count("M") == 4


@pytest.mark.parametrize("width", [390, 760])
def test_differences_and_what_is_decided(opened, width):  # noqa: F811
    figure = Measured(method="linear", factor="8")
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    left, right, *_ = plot(page)
    rings = page.locator(".rb-stage svg circle[r='4']").all()
    assert len(rings) == 5
    column = (right - left) / 5
    assert [number(ring, "cx") for ring in rings] == pytest.approx(
        [left + (b + 0.5) * column for b in range(5)], abs=0.06
    )
    [apart], [errors], [sure] = expected["apart"], expected["apartError"], expected["decided"]
    heights = [number(ring, "cy") for ring in rings]
    slope = np.polyfit(apart, heights, 1)
    assert slope[0] < 0  # more bits are higher up
    assert np.polyval(slope, apart) == pytest.approx(heights, abs=0.1)
    fills = [ring.evaluate("e => getComputedStyle(e).fill") for ring in rings]
    assert [fill == INK for fill in fills] == sure
    for one, error in zip(apart, errors, strict=True):
        text = f"{one:+.3f}" + (f" ± {2 * error:.3f}" if width > 700 else "")
        assert text.replace("-", "−") in texts(page)
    spans = [abs(line[0, 1] - line[1, 1]) for line in of(page, INK, 1.5) if len(line) == 2]
    assert spans[-5:] == pytest.approx([4 * error * abs(slope[0]) for error in errors], abs=0.25)


def test_all_schemes(opened):  # noqa: F811
    figure = Measured(run="schemes", position=3000)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": 760, "height": 900})
    for colour, thick, dashes in [
        (INK, 2.25, "none"),
        (BLUE, 2, "0 4"),
        (BLUE, 1.75, "none"),
        (GREEN, 1.75, "none"),
        (VIOLET, 1.75, "none"),
        (GREEN, 2.25, "7 4"),
        (MUTED, 1.75, "7 4"),
    ]:
        line = max(of(page, colour, thick, dashes), key=len)
        known = max(stop for stop in (LENGTH, TEXT) if len(line) in (44, 28) and (stop == TEXT) == (len(line) == 44))
        assert line[-1, 0] <= x_of(page, known) + 0.1
        assert (known == LENGTH) == ((colour, thick) == (GREEN, 2.25))
    names = texts(page)
    for value in expected["here"]:
        assert any(name.endswith("–" if value is None else f"{value:.2f}") for name in names)
    expect(page.locator(".rb-stats")).to_contain_text("Fewest: ALiBi")
    expect(page.locator(".rb-summary")).to_contain_text("Not there: learned.")


# ---- Retrieval ----


@pytest.mark.parametrize("width", [390, 760])
def test_shares_stand_where_they_belong(opened, width):  # noqa: F811
    figure = Measured(show="retrieval", position=700)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    _, _, top, floor = plot(page)
    line = max(of(page, INK, 2.25), key=len)
    heights = floor - np.array(expected["far"][0]) * (floor - top)
    np.testing.assert_allclose(line, np.stack([x_of(page, DISTANCES, 16), heights], -1), atol=0.06)
    circles = page.locator(".rb-stage svg circle")
    assert circles.count() == 2 * (8 + 4)
    stats = page.locator(".rb-stats dd").all_inner_texts()
    assert [text.strip() for text in stats] == [*(f"{round(100 * one[5])} %" for one in expected["far"]), "13 %"]
    assert texts(page).count("100 %") == 1
    expect(page.locator(".rb-summary")).to_contain_text("768 bytes before they are asked for")


# ---- Dials ----


def limits(page: Page, label: str) -> str:
    return page.locator(".rb-dial", has_text=label).locator(".rb-limits").inner_text()


def test_a_dial_without_effect_says_so_and_stays(opened):  # noqa: F811
    page = opened([Measured()])
    assert limits(page, "Factor s") == "For texts of up to s·L bytes, s times the trained length."
    page.get_by_role("switch", name="Fine-tuned").check()
    expect(page.locator(".rb-stats dt").first).to_have_text("YaRN, s = 4, fine-tuned")
    page.get_by_role("radio", name="ReRoPE").check()
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
    page.get_by_role("radio", name="position interpolation").check()
    expect(page.locator(".rb-stats dt").first).to_have_text("Position interpolation, s = 4, fine-tuned")
    page.get_by_role("radio", name="all schemes").check()
    for label in ("Method", "Factor s", "Fine-tuned"):
        assert limits(page, label) == "No effect here: all schemes are shown as they were trained."


def test_pointer_and_keys_move_where_it_is_read(opened):  # noqa: F811
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


def test_in_retrieval_the_keys_go_from_distance_to_distance(opened):  # noqa: F811
    page = opened([Measured(show="retrieval", position=1000)])
    pad = page.get_by_role("slider", name="Distance in the picture")
    expect(pad).to_have_attribute("aria-valuenow", "768")
    pad.focus()
    for key, position in [("ArrowRight", 1536), ("ArrowLeft", 768), ("End", 3072), ("ArrowUp", 3072), ("Home", 24)]:
        page.keyboard.press(key)
        assert dials(page)["position"] == position, key


@pytest.mark.parametrize(
    "typed, reason",
    [
        ("0", "0 is less than 1 (bytes are counted from 1)"),
        ("4097", "4097 is more than 4096 (the texts end there)"),
        ("1.5", "1.5 is not a whole number"),
        ("NaN", "“NaN” is not a number"),
    ],
)
def test_a_bad_number_is_refused_with_its_reason(opened, typed, reason):  # noqa: F811
    page = opened([Measured()])
    enter(page, "Position or distance", typed)
    expect(page.get_by_role("status")).to_contain_text(f"Position or distance: {reason}")
    expect(page.get_by_role("status")).to_contain_text("Still 1024.")
    assert dials(page) == Measured().dials()


# ---- All ----


@pytest.mark.parametrize("width", [340, 390, 700, 1280])
def test_nothing_scrolls_sideways_is_cut_off_or_overlaps(opened, width):  # noqa: F811
    page = opened([Measured(**some) for some in EXTREMES], viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    edges = page.locator(".rb-stage").evaluate_all(
        """all => all.flatMap((stage) => [...stage.querySelectorAll('text')].filter((t) => t.textContent).map((t) => {
          const [a, b] = [t.getBoundingClientRect(), stage.getBoundingClientRect()];
          return [b.left - a.left, a.right - b.right, t.textContent];
        }))"""
    )
    assert [found for found in edges if max(found[:2]) > 8] == []
    overlaps = page.locator(".rb-stage").evaluate_all(
        """all => all.flatMap((stage, which) => {
          const texts = [...stage.querySelectorAll('text')].filter((t) => t.textContent);
          const boxes = texts.map((t) => t.getBoundingClientRect());
          const found = [];
          boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
            const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
            const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
            if (across > 1 && down > 4) found.push([which, texts[i].textContent, texts[i + 1 + j].textContent]);
          }));
          return found;
        })"""
    )
    assert overlaps == []
    heights = page.locator(".rb-stage").evaluate_all("all => all.map((stage) => stage.clientHeight)")
    assert len(set(heights[:4])) == 1  # turning a dial moves nothing below
    assert heights[5] == heights[0]


def test_the_picture_follows_the_theme(opened):  # noqa: F811
    page = opened([Measured()])
    colours = """[...document.querySelectorAll('.rb-stage svg :is(path, circle, text)')].map((e) => {
      const { stroke, fill } = getComputedStyle(e);
      return `${stroke} ${fill}`;
    })"""
    light = page.evaluate(colours)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"(light) => {colours}.join() !== light.join()", arg=light)
    dark = page.evaluate(colours)
    pairs = {(a, b) for a, b in zip(light, dark, strict=True) if INK in a}
    assert pairs
    assert all(a != b for a, b in pairs)


def test_a_setting_can_be_shared(opened):  # noqa: F811
    page = opened([Measured()])
    page.get_by_role("radio", name="Self-Extend").check()
    page.get_by_role("radio", name="16").check()
    page.get_by_role("switch", name="Fine-tuned").check()
    enter(page, "Position or distance", 2000)
    hash_ = hash_of(page)
    assert set(hash_[1:].split("&")) == {
        "measured.method=self_extend",
        "measured.factor=16",
        "measured.tuned=on",
        "measured.position=2000",
    }
    again = opened([Measured()], fragment=hash_)
    assert dials(again) == dials(page)


@pytest.mark.parametrize("some", [EXTREMES[0], EXTREMES[3], EXTREMES[4], EXTREMES[6]])
def test_axe_finds_nothing(opened, some):  # noqa: F811
    page = opened([Measured(**some)])
    page.add_script_tag(content=assets.axe())
    found = page.evaluate("axe.run(document)")
    assert [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in found["violations"]] == []


def test_work_per_event_is_small(opened):  # noqa: F811
    """8 ms is the aim, 50 ms the alarm."""
    assert len(BANDS) == 5
    page = opened([Measured(), Measured(run="schemes"), Measured(show="retrieval", run="schemes")])
    for which in range(3):
        assert slowest_event(page, which, 50) < 50
