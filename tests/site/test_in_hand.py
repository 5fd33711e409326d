"""Tests of moving things inside the pictures with the pointer and with the keyboard."""

from __future__ import annotations

import cmath
import math

import pytest
from playwright.sync_api import Page, expect

from ropebook.explorers.bank import Bank
from ropebook.explorers.clocks import Clocks
from ropebook.explorers.distance import Distance
from ropebook.explorers.fourier import Fourier
from ropebook.explorers.heatmap import Heatmap
from ropebook.explorers.lock import Lock
from ropebook.explorers.pairing import Pairing
from ropebook.explorers.precision import Precision
from ropebook.explorers.rivals import Rivals
from ropebook.explorers.saturation import Saturation
from ropebook.explorers.shuffle import Shuffle
from ropebook.explorers.sweep import Sweep
from ropebook.explorers.timelapse import Timelapse
from ropebook.explorers.turn import Turn
from tests.explorers import js
from tests.site.figures import dials, show_panel, words

SCREEN = {"viewport": {"width": 1280, "height": 1000}}


def drag(page: Page, start: complex, *goals: complex) -> None:
    """Press the pointer at ``start`` and drag it along straight lines. All coordinates are in window pixels."""
    page.mouse.move(start.real, start.imag)
    page.mouse.down()
    for goal in goals:
        page.mouse.move(goal.real, goal.imag, steps=4)
    page.mouse.up()


def middle(page: Page, name: str) -> complex:
    box = page.get_by_role("slider", name=name, exact=True).bounding_box()
    return complex(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_the_shorter_way_round_within_the_limits():
    cases = [
        ([10, 0.1, 0.31, 100], 13),
        ([10, 0.1, -0.31, 100], 7),
        ([10, 0.1, 2 * math.pi + 0.31, 100], 13),  # a complete turn makes no difference to the direction
        ([10, 0.1, math.pi + 0.2, 100], 0),  # the position moves backwards, but not below 0
        ([10, 1e-6, 0.1, 100], 100),
        ([10, 1.0, 0.4, 100], 10),
    ]
    assert js.kit("return input.map((one) => turnedOn(...one));", [one for one, _ in cases]) == [n for _, n in cases]


def test_the_arrow_is_led_round(opened):
    page = opened([Turn(position=2, pair=1)], **SCREEN)
    handle = middle(page, "The arrow of the pair")
    stage = page.locator(".rb-stage svg").bounding_box()
    circle = page.locator(".rb-stage circle[r]").first
    centre = complex(*(float(circle.get_attribute(name)) for name in ("cx", "cy"))) + complex(stage["x"], stage["y"])
    arm = handle - centre
    theta = 10**-0.5
    half = [centre + arm * cmath.exp(-1j * k * math.pi / 8) for k in range(1, 9)]  # half a turn, counter-clockwise
    drag(page, handle, *half)
    assert dials(page)["position"] == 2 + round(math.pi / theta)
    drag(page, half[-1], *[centre - arm * cmath.exp(-1j * k * math.pi / 8) for k in range(1, 9)])
    # the second half-turn is added to the first
    assert dials(page)["position"] == 2 + round(2 * math.pi / theta)
    slider = page.get_by_role("slider", name="The arrow of the pair")
    slider.press("Home")
    slider.press("ArrowRight")
    assert dials(page)["position"] == 1
    expect(slider).to_have_attribute("aria-valuenow", "1")


def test_a_clock_hand_is_led_round(opened):
    # the hands move by 1, 1/10, 1/100 and 1/1000 radian per position
    page = opened([Clocks(position=100, dim=8)], **SCREEN)
    box = page.get_by_role("slider", name="The clock hands").bounding_box()
    centre = complex(box["x"] + 120 * 1.5, box["y"] + 48)
    angle = 100 * 0.1
    tip = centre + 30 * cmath.exp(1j * (angle - math.pi / 2))
    drag(page, tip, *[centre + 30 * cmath.exp(1j * (angle + k / 4 - math.pi / 2)) for k in range(1, 9)])
    assert dials(page)["position"] == pytest.approx(120, abs=1)


def test_the_strip_of_the_bank_is_dragged(opened):
    page = opened([Bank()], **SCREEN)
    width = page.locator(".rb-stage").evaluate("e => e.clientWidth")
    decade = (width - 24) / math.log10(1.25e6 / 4)
    for name, trait, before in (("Position m", "position", 1000), ("Context L", "length", 4096)):
        start = middle(page, name)
        drag(page, start, start + decade)
        assert dials(page)[trait] == pytest.approx(10 * before, rel=0.02)
        held = dials(page)[trait]
        page.get_by_role("slider", name=name, exact=True).press("ArrowLeft")
        # the context moves by a hundredth of its slider, because one token would change nothing that can be seen
        after = {"position": held - 1, "length": held / (1_000_000 / 2) ** 0.01}[trait]
        assert dials(page)[trait] == pytest.approx(after, abs=1)
        drag(page, middle(page, name), start - 3000)
        assert dials(page)[trait] == {"position": 0, "length": 2}[trait]
        drag(page, middle(page, name), start + 3000)
        assert dials(page)[trait] == 1_000_000


@pytest.mark.parametrize(
    "figure, name, trait, share, value, keys",
    [
        (Lock(), "Shift of query and key", "shift", 0.25, 64, {"ArrowRight": 65, "End": 255, "Home": 0}),
        (Heatmap(), "Reference position", "reference", 0.75, 480, {"ArrowLeft": 479, "End": 639}),
        (Saturation(), "Head dimension", "dim", 0.25, 5, {"ArrowRight": 6, "End": 512}),
        (Pairing(), "Position of the key", "n", 0.25, 16, {"ArrowRight": 17, "End": 64}),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "dials") else "",
)
def test_a_line_follows_the_pointer(opened, figure, name, trait, share, value, keys):
    page = opened([figure], **SCREEN)
    box = page.get_by_role("slider", name=name, exact=True).bounding_box()
    stage = page.locator(".rb-stage").bounding_box()
    start = middle(page, name)
    margins = {"shift": (8, 8), "dim": (8, 6), "n": (8, 8)}.get(trait)
    if margins:  # the reader can drag anywhere on the plot
        low, high = box["x"] + margins[0], box["x"] + box["width"] - margins[1]
    else:
        low, high = stage["x"] + 46, stage["x"] + stage["width"] - 2
    drag(page, start, complex(low + share * (high - low), start.imag))
    assert dials(page)[trait] == pytest.approx(value, abs=1)
    for key, wanted in keys.items():
        page.get_by_role("slider", name=name, exact=True).press(key)
        assert dials(page)[trait] == pytest.approx(wanted, abs=1)


def test_words_stand_upright_on_a_phone_and_are_dragged_up_and_down(opened):
    page = opened([Shuffle(order=[0, 1, 2, 3, 4])], viewport={"width": 390, "height": 844})
    boxes = [one.bounding_box() for one in page.locator(".rb-word").all()]
    assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
    centres = [complex(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes]
    drag(page, centres[1], centres[3] + 5j)
    assert words(page) == ["the", "bit", "the", "dog", "man"]
    page.keyboard.press("ArrowUp")
    assert words(page) == ["the", "bit", "dog", "the", "man"]
    page.get_by_role("button", name="Move the picked word down").click()
    assert words(page) == ["the", "bit", "the", "dog", "man"]
    show_panel(page, "Weights")
    rows = page.locator(".rb-cell").first.bounding_box()["y"]
    assert abs(rows - boxes[0]["y"]) < 6  # each word labels its own row


def test_the_pair_under_the_pointer_stands_out(opened):
    page = opened([Pairing(permute_k=True)], **SCREEN)
    faint = "[...document.querySelectorAll('.rb-piece')].map((e) => e.classList.contains('rb-faint'))"
    assert not any(page.evaluate(faint))
    page.locator(".rb-piece").nth(2).hover()
    assert page.evaluate(faint) == [channel >> 1 != 1 for channel in [*range(8), *range(8)]]
    page.mouse.move(5, 5)
    assert not any(page.evaluate(faint))


@pytest.mark.parametrize("figure, trait, most", [(Turn(), "position", 4096), (Clocks(), "position", 4096),
                                                 (Bank(), "position", 10**6), (Lock(), "shift", 255)],
                         ids=lambda value: type(value).__name__ if hasattr(value, "dials") else "")  # fmt: skip
def test_time_passes_to_its_end_and_begins_anew(opened, figure, trait, most):
    page = opened([figure], reduced_motion="no-preference")
    before = dials(page)[trait]
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(
        "([trait, before]) => document.querySelector('.explorer-live').ropebook.values()[trait] > before",
        arg=[trait, before],
    )
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_role("slider", name=" m, slider" if trait == "position" else "Shift t, slider").press("End")
    assert dials(page)[trait] == most
    page.get_by_role("button", name="Play", exact=True).click()
    assert dials(page)[trait] < 100


@pytest.mark.parametrize(
    "figure, trait, most",
    [(Fourier(distance=190), "distance", 200), (Timelapse(length=240), "length", 256)]
    + [(Precision(first=9_500_000), "first", 10**7), (Distance(length=512, query=470), "query", 511)]
    + [(Sweep(base=5e6), "base", 10**7), (Rivals(offset=240), "offset", 256)],
    ids=["Fourier", "Timelapse", "Precision", "Distance", "Sweep", "Rivals"],
)
def test_what_plays_stops_at_its_end_and_begins_anew(opened, figure, trait, most):
    page = opened([figure], reduced_motion="no-preference")
    value = f"document.querySelector('.explorer-live').ropebook.values().{trait}"
    button = page.get_by_role("button", name="Play", exact=True)
    button.click()
    page.wait_for_function(f"{value} === {most}")
    expect(button).to_be_visible()
    button.click()
    page.wait_for_function(f"{value} > 2")
    page.get_by_role("button", name="Pause", exact=True).click()
    assert dials(page)[trait] < most / 2
