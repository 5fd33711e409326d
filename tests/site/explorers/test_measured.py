"""Browser tests specific to the Measured explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ropebook.explorers.measured import START
from tests.explorers.made_up import DISTANCES, LENGTH, TEXT, Measured
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    CSS_BLUE,
    CSS_INK,
    CSS_MUTED,
    data,
    dials,
    enter,
    of,
    settle,
    show_panel,
    stage_width,
    texts,
)

LEFT = 46


def setting(page: Page) -> dict:
    found = dials(page)
    del found["measured"]
    return found


def number(element, name: str) -> float:
    return float(element.get_attribute(name))


def plot(page: Page) -> tuple[float, float, float, float]:
    """Return the left, right, top and bottom of the plot's axes."""
    box = page.get_by_role("slider", name="in the picture").evaluate(
        "e => [e.offsetLeft, e.offsetLeft + e.offsetWidth, e.offsetTop, e.offsetTop + e.offsetHeight]"
    )
    assert box[:2] == [LEFT, stage_width(page) - 14]
    return tuple(box)


def x_of(page: Page, positions: np.ndarray | list | float) -> np.ndarray:
    left, right, *_ = plot(page)
    return left + np.log2(np.array(positions) / START) / math.log2(TEXT / START) * (right - left)


def means_at(page: Page, colour: str, thick: float, dashes: str = "none") -> np.ndarray:
    """Return the longest line with this colour, thickness and dash pattern."""
    return max(of(page, colour, thick, dashes), key=len)


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize(
    "choice",
    [{}, {"method": "ntk", "factor": "8", "position": 100, "text": "language"}, {"method": "dynamic_ntk"}],
)
def test_lines_stand_where_they_belong(opened, width, choice):
    figure = Measured(**choice)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    _, _, top, floor = plot(page)
    values = [v for v in np.ravel(expected["seeds"]).tolist() + expected["last"] if v is not None]
    low, high = math.floor(min(values)), math.ceil(max(values))

    def y(bits: list | float) -> np.ndarray:
        return floor - (np.array(bits) - low) / (high - low) * (floor - top)

    places = x_of(page, expected["at"])
    for colour, thick, mean, seeds in zip(
        (CSS_BLUE, CSS_MUTED), (2.25, 1.75), expected["means"], expected["seeds"], strict=True
    ):
        line = means_at(page, colour, thick)
        np.testing.assert_allclose(line, np.stack([places, y(mean)], -1), atol=0.06)
        faint = [one for one in of(page, colour, 1) if len(one) == len(places)]
        found = sorted(one[:, 1].tolist() for one in faint)
        np.testing.assert_allclose(found, sorted(y(seed).tolist() for seed in seeds), atol=0.06)
    last = np.array(expected["last"], dtype=float)
    beyond = ~np.isnan(last)
    np.testing.assert_allclose(
        means_at(page, CSS_MUTED, 2, "5 4"), np.stack([places[beyond], y(last[beyond])], -1), atol=0.06
    )
    circles = page.locator(".rb-stage svg circle[r='4.5']").all()
    assert sorted(number(one, "cy") for one in circles) == pytest.approx(sorted(y(expected["here"])), abs=1e-6)
    assert [number(one, "cx") for one in circles] == pytest.approx([places[expected["window"]]] * 2)
    lengths = {"L": LENGTH} | ({f"{s} L": s * LENGTH} if (s := expected["lineFactor"]) else {})
    for name, place in lengths.items():
        assert (f"{name} = {place:,}" if width > 700 else name) in texts(page)
    assert "last 256 bytes" in texts(page)


def middles(page: Page, width: int) -> list[float]:
    """Return the centres of the bands' columns. On a wide stage, these columns are below the curves and share their
    axis."""
    if width > 700:
        ends = x_of(page, [START, 256, 512, 1024, 2048])
        return list((ends[1:] + ends[:-1]) / 2)
    left, right = LEFT, stage_width(page) - 14
    return [left + (b + 0.5) * (right - left) / 4 for b in range(4)]


@pytest.mark.parametrize("width", [390, 760])
def test_differences_with_their_intervals(opened, width):
    figure = Measured(method="linear", factor="8")
    rows = figure.measured["cells"]["rope-10000-3200/linear/8"]["apart"]["python"]
    rows[0] = [0.05, -0.2, 0.3]  # this interval contains 0
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    show_panel(page, "Difference")
    rings = page.locator(".rb-stage svg circle[r='4']").all()
    assert [number(ring, "cx") for ring in rings] == pytest.approx(middles(page, width), abs=0.06)
    [apart] = expected["apart"]
    heights = [number(ring, "cy") for ring in rings]
    slope = np.polyfit([mean for mean, *_ in apart], heights, 1)
    assert slope[0] < 0  # more bits are plotted higher up
    assert np.polyval(slope, [mean for mean, *_ in apart]) == pytest.approx(heights, abs=0.1)
    fills = [ring.evaluate("e => getComputedStyle(e).fill") == CSS_BLUE for ring in rings]
    assert fills == [False, True, True, True]
    if width > 700:
        mean, low, high = apart[expected["band"]]
        text = f"the difference is {mean:+.3f}. Its 95% interval, {low:+.3f} to {high:+.3f}, does not"
        expect(page.locator(".rb-summary")).to_contain_text(text.replace("-", "−"))
    else:
        assert {f"{mean:+.3f}".replace("-", "−") for mean, *_ in apart} <= set(texts(page))
    spans = [line[:, 1] for line in of(page, CSS_BLUE, 1.5) if len(line) == 2 and line[0, 0] == line[1, 0]][-4:]
    np.testing.assert_allclose(spans, [np.polyval(slope, one[1:]) for one in apart], atol=0.15)
    # the model that sees only its last L bytes: drawn beyond L, dashed
    strokes = page.locator(".rb-stage svg path").evaluate_all(
        "all => all.filter((p) => getComputedStyle(p).strokeDasharray === '5px, 4px').map((p) => p.getAttribute('d'))"
    )
    [below] = [d for d in strokes if d.count("h") == 3]
    levels = [float(part.split(",")[1].split("h")[0]) for part in below.split("M")[1:]]
    assert levels == pytest.approx(np.polyval(slope, expected["lastApart"][1:]), abs=0.1)


def test_all_schemes(opened):
    figure = Measured(run="schemes", position=1500)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": 760, "height": 900})
    for colour, thick, dashes in [
        (CSS_BLUE, 2.5, "none"),
        (CSS_BLUE, 2, "0 4"),
        (CSS_BLUE, 1.25, "none"),
        (CSS_BLUE, 1.75, "7 4"),
        (CSS_MUTED, 1.75, "none"),
        (CSS_MUTED, 1.75, "7 4"),
        (CSS_INK, 1.25, "none"),
        (CSS_INK, 1.75, "7 4"),
        (CSS_MUTED, 2, "0 4"),
    ]:
        learned = (colour, dashes) == (CSS_INK, "7 4")
        end = max(at for at in expected["at"] if at < LENGTH or not learned)
        assert means_at(page, colour, thick, dashes)[-1, 0] == pytest.approx(float(x_of(page, end)), abs=0.06)
    names = texts(page)
    for value in expected["here"]:
        assert any(name.endswith("–" if value is None else f"{value:.2f}") for name in names)
    assert "last 256 bytes" not in names
    expect(page.locator(".rb-stats")).to_contain_text("Fewest: ALiBi")
    expect(page.locator(".rb-summary")).to_contain_text("These schemes have no value here: learned.")
    # There is one dot per seed. The reading line has dots for eight schemes. Below it, seven schemes have dots in all
    # bands, and one scheme has dots only within L.
    dots = page.locator(".rb-stage svg circle[r='2']")
    assert dots.count() == 3 * 8 + 3 * (7 * 4 + 1)
    rings = page.locator(".rb-stage svg circle[r='4']").all()
    assert len(rings) == 7 * 4 + 1
    known = [np.mean(row) for rows in expected["apart"] for row in rows if row is not None]
    heights = [number(ring, "cy") for ring in rings]
    slope = np.polyfit(known, heights, 1)
    assert slope[0] < 0
    assert np.polyval(slope, known) == pytest.approx(heights, abs=0.1)
    seeds = [seed for rows in expected["apart"] for row in rows if row is not None for seed in row]
    below = [number(dot, "cy") for dot in dots.all()][-len(seeds) :]
    assert np.polyval(slope, seeds) == pytest.approx(below, abs=0.1)
    assert not any("interval" in name for name in names)


@pytest.mark.parametrize("task", ["retrieval", "order"])
@pytest.mark.parametrize("width", [390, 760])
def test_shares_stand_where_they_belong(opened, width, task):
    figure = Measured(show=task, position=700)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    _, _, top, floor = plot(page)

    def y(share: list) -> np.ndarray:
        return floor - np.array(share) * (floor - top)

    line = means_at(page, CSS_BLUE, 2.25)
    np.testing.assert_allclose(line, np.stack([x_of(page, DISTANCES), y(expected["far"][0])], -1), atol=0.06)
    assert page.locator(".rb-stage svg circle[r='4']").count() == 2 * (7 + 4)
    dots = page.locator(".rb-stage svg circle[r='2']").all()
    wanted = [
        share for k in (0, 1) for which in ("farSeeds", "nearSeeds") for share in np.ravel(expected[which][k]).tolist()
    ]
    found = sorted(number(dot, "cy") for dot in dots)
    assert found == pytest.approx(sorted(y([share for share in wanted if share is not None])), abs=0.06)
    guess = 1 / 8 if task == "retrieval" else 1 / 2
    dashed = page.locator(".rb-stage svg path").evaluate_all(
        "all => all.filter((p) => getComputedStyle(p).strokeDasharray === '5px, 4px').map((p) => p.getAttribute('d'))"
    )
    [level] = [float(d.split(",")[1].split("H")[0]) for d in dashed if f"M{LEFT}," in d]
    assert level == pytest.approx(float(y(guess)), abs=0.06)
    values = page.locator(".rb-stats dd").all_inner_texts()
    shown = [f"{round(100 * one[5])}%" for one in expected["far"]] + [f"{round(100 * guess + 0.01)}%"]
    assert all(text.strip().startswith(one) for text, one in zip(values, shown, strict=True))
    expect(page.locator(".rb-summary")).to_contain_text("768")


def limits(page: Page, trait: str) -> str:
    return page.locator(f".rb-limits[id$='-{trait}-limits']").text_content()


def test_a_dial_without_effect_says_so_and_stays(opened):
    page = opened([Measured()])
    note = "These are stored measurements (A CPU, 2026-01-31)."
    expect(page.locator(".rb-note")).to_contain_text(note)
    assert limits(page, "factor") == "For texts of up to s·L bytes, s times the trained length."
    page.get_by_role("switch", name="Fine-tuned").check()
    expect(page.locator(".rb-stats dt").first).to_have_text("YaRN (chosen β, s = 4, fine-tuned)")
    method = page.get_by_role("combobox", name="Method")
    method.select_option("ReRoPE")
    assert limits(page, "factor") == "No effect here: ReRoPE has no factor."
    assert limits(page, "tuned") == "No model was fine-tuned with ReRoPE, so this is the model without fine-tuning."
    expect(page.locator(".rb-stats dt").first).to_have_text("ReRoPE")
    assert setting(page) == {
        "show": "loss",
        "text": "python",
        "run": "rope-10000-3200",
        "method": "rerope",
        "factor": "4",
        "tuned": True,
        "position": 1024,
    }
    method.select_option("position interpolation")
    expect(page.locator(".rb-stats dt").first).to_have_text("Position interpolation (s = 4, fine-tuned)")
    page.get_by_role("radio", name="all schemes").check()
    for trait in ("method", "factor", "tuned"):
        assert limits(page, trait) == "No effect here: all schemes are shown as they were trained."
    page.get_by_role("radio", name="order by distance").check()
    assert limits(page, "text") == "No effect here: records are planted in Python code."


def test_pointer_and_keys_move_where_it_is_read(opened):
    page = opened([Measured()], viewport={"width": 760, "height": 1000})
    pad = page.get_by_role("slider", name="Position in the picture")
    box = pad.bounding_box()

    def at(position: float) -> float:
        return box["x"] + math.log2(position / START) / 7 * box["width"]

    y = box["y"] + 60
    page.mouse.move(at(64), y)
    page.mouse.down()
    assert dials(page)["position"] == pytest.approx(64, rel=0.02)
    page.mouse.move(at(700), y, steps=4)
    assert dials(page)["position"] == pytest.approx(700, rel=0.02)
    page.mouse.move(box["x"] + box["width"] + 60, y)
    assert dials(page)["position"] == TEXT
    page.mouse.up()
    page.mouse.move(at(19), y)
    assert dials(page)["position"] == TEXT
    page.mouse.click(at(19), y, button="right")
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
        ("End", 2048),
        ("ArrowRight", 2048),
        ("PageUp", 2048),
        ("Home", 20),
        ("ArrowDown", 20),
        ("PageDown", 17),
    ]:
        page.keyboard.press(key)
        assert dials(page)["position"] == position, key
    now = data(page)
    least, most = min(now["hereSeeds"][0]), max(now["hereSeeds"][0])
    told = f"byte 17: YaRN (chosen β, s = 4) {now['here'][0]:.2f} bits, seeds {least:.2f} to {most:.2f}"
    expect(pad).to_have_attribute("aria-valuetext", told)


def test_in_retrieval_the_keys_go_from_distance_to_distance(opened):
    page = opened([Measured(show="retrieval", position=1000)])
    pad = page.get_by_role("slider", name="Distance in the picture")
    expect(pad).to_have_attribute("aria-valuenow", "768")
    pad.focus()
    for key, position in [("ArrowRight", 1536), ("ArrowLeft", 768), ("End", 1536), ("ArrowUp", 1536), ("Home", 32)]:
        page.keyboard.press(key)
        assert dials(page)["position"] == position, key


def test_nine_schemes_leave_the_curves_room_in_a_low_window(opened):
    page = opened([Measured(run="schemes")])
    page.add_style_tag(content=".rb-height { height: 417px !important; }")
    settle(page)
    expect(page.locator(".rb-panels")).to_be_visible()
    _, _, top, bottom = plot(page)
    assert bottom - top > 200
