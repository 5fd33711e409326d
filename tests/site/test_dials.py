"""Tests of a figure's dials. Each dial takes up one line and has a slider, an error message appears below its own
field, and a fold hides the remaining dials."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from ropebook.explorers.fourier import Fourier
from ropebook.explorers.lock import Lock
from ropebook.explorers.saturation import Saturation
from ropebook.explorers.timelapse import Timelapse
from ropebook.explorers.turn import Turn
from tests.site.figures import dials, enter, rest, stage_width
from tools import assets

# Returns the positions of all dials, the picture and the readouts. The picture and, on a phone, the words stay in the
# window while the page scrolls, so all positions are measured with the page scrolled to the top.
TOPS = """() => {
  const from = scrollY;
  scrollTo(0, 0);
  const found = [...document.querySelectorAll('.rb-dial, .rb-stage, .rb-stats')].map((e) => {
    const { top, bottom } = e.getBoundingClientRect();
    return [top, bottom].map((edge) => Math.round(10 * edge));
  });
  scrollTo(0, from);
  return found;
}"""
# Returns whether the middle and the lower edge of a part are inside the window, with nothing in front of them.
SEEN = """(part) => {
  part.style.pointerEvents = 'auto'; // what cannot be clicked is not found
  const { left, width, top, bottom } = part.getBoundingClientRect();
  return [(top + bottom) / 2, bottom - 3].every((y) => part.contains(document.elementFromPoint(left + width / 2, y)));
}"""


def test_dials_stand_beside_the_picture_on_a_desk_and_under_it_on_a_phone(opened):
    parts = ("stage", "words-all", "dials:not(.rb-asked)")
    boxes = f"{[f'.rb-{part}' for part in parts]}.map((one) => document.querySelector(one).getBoundingClientRect())"
    page = opened([Lock()], viewport={"width": 1100, "height": 800})
    picture, said, side = page.evaluate(boxes)
    assert picture["width"] >= 620
    assert side["left"] > picture["right"]
    assert said["top"] >= picture["bottom"]
    assert said["right"] < side["left"]
    page = opened([Lock()], viewport={"width": 390, "height": 844})
    picture, said, side = page.evaluate(boxes)
    assert picture["bottom"] <= side["top"]
    assert picture["bottom"] <= said["top"]
    # While the last dials scroll past, the picture stays at the top of the window, and the words stay visible below it.
    page.get_by_role("slider", name="Random draw, slider").scroll_into_view_if_needed()
    page.evaluate("scrollBy(0, 200)")
    picture, said, _ = page.evaluate(boxes)
    assert 48 <= picture["top"] <= 64
    assert picture["bottom"] <= said["top"]
    assert said["bottom"] <= 844
    assert picture["height"] <= 0.52 * 844


def test_a_link_opens_the_fold_of_the_dials_that_it_sets(opened):
    for fragment, is_open in [("", False), ("#lock.base=500", False), ("#lock.pair=1", True)]:
        page = opened([Lock()], fragment=fragment, folded=True)
        assert page.locator(".rb-more").evaluate("more => more.open") is is_open, fragment
    page.locator(".rb-more summary").click()
    page.evaluate("location.hash = '#lock.m=7'")
    expect(page.get_by_role("slider", name="Query position m, slider")).to_be_visible()


def test_a_dial_is_a_line_and_its_slider(opened):
    page = opened([Turn()])
    for dial in page.locator(".rb-dial").all():
        label, field, reset, slider = (
            dial.locator(part).bounding_box() for part in ("label", ".rb-number", ".rb-reset", "input[type=range]")
        )
        for one in (label, reset):
            assert abs(one["y"] + one["height"] / 2 - field["y"] - field["height"] / 2) < 3
        assert field["y"] + field["height"] <= slider["y"] + 1
        assert slider["y"] + slider["height"] - field["y"] < 60


@pytest.mark.parametrize("width", [390, 1280])
def test_limits_are_seen_with_the_focus_and_move_nothing(opened, width):
    page = opened([Turn()], viewport={"width": width, "height": 844})
    before = page.evaluate(TOPS)
    limits = page.locator(".rb-limits")
    for which in range(limits.count()):
        expect(limits.nth(which)).to_be_hidden()
    page.get_by_role("textbox", name="Base b").focus()
    expect(limits.nth(1)).to_be_visible()
    expect(limits.nth(1)).to_have_text("1 to 10,000,000. Pair i rotates by θᵢ = b^(−2i/d) radians per position.")
    assert page.evaluate(TOPS) == before
    if width == 390:
        said = page.locator(".rb-words-all").bounding_box()
        assert said["y"] + said["height"] == pytest.approx(844, abs=1)
    for shown in (page.get_by_role("textbox", name="Base b"), limits.nth(1)):
        assert shown.evaluate(SEEN)
    box = page.get_by_role("slider", name="Dimension d, slider").bounding_box()
    # readers who drag a slider need to see what is below it
    page.mouse.click(box["x"] + 30, box["y"] + box["height"] / 2)
    expect(page.locator(".rb-limits:visible")).to_have_count(0)


def test_a_refusal_stands_under_its_own_field(opened):
    page = opened([Saturation()])
    field = page.get_by_role("textbox", name="Dimension d")
    enter(page, "Dimension d", 700)
    why = page.locator(".rb-dial", has=field).locator(".rb-why")
    expect(why).to_have_text("700 is more than 512 (wider heads show nothing new). Still 64.")
    expect(why).to_be_visible()
    assert why.bounding_box()["y"] - field.bounding_box()["y"] < 70
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_value("64")
    assert why.get_attribute("id") in field.get_attribute("aria-describedby").split()
    # When another dial moves, the message stays where it is, so nothing on the page jumps. The message disappears
    # when its own dial moves.
    page.get_by_role("slider", name="Number of keys, slider").press("ArrowRight")
    expect(why).to_be_visible()
    page.get_by_role("slider", name="Dimension d, slider").press("ArrowRight")
    expect(why).to_be_hidden()
    expect(field).to_have_attribute("aria-invalid", "false")
    expect(field).not_to_have_attribute("aria-describedby", why.get_attribute("id"))


def test_escape_takes_back_what_was_typed(opened):
    page = opened([Saturation()])
    field = page.get_by_role("textbox", name="Dimension d")
    field.fill("100")
    field.press("Escape")
    expect(field).to_have_value("64")
    field.press("Tab")
    assert dials(page)["dim"] == 64
    enter(page, "Dimension d", 700)
    field.press("Escape")
    expect(page.locator(".rb-dial", has=field).locator(".rb-why")).to_be_hidden()


def test_what_is_half_typed_survives_a_drawing(opened):
    page = opened([Turn()])
    field = page.get_by_role("textbox", name="Base b")
    field.fill("500")
    before = stage_width(page)
    page.set_viewport_size({"width": 700, "height": 800})
    page.wait_for_function("before => document.querySelector('.rb-stage').clientWidth < before", arg=before)
    rest(page)
    expect(field).to_have_value("500")
    field.press("Enter")
    assert dials(page)["base"] == 500
    field.fill("7")
    field.press("ArrowUp")  # an arrow key changes the dial's current value, not the partly typed one
    assert dials(page)["base"] > 500
    expect(field).not_to_have_value("7")


def test_numbers_are_taken_as_readers_write_them(opened):
    page = opened([Turn(), Timelapse()])
    for typed, value in [("10^4", 10_000), ("5·10⁵", 500_000), ("1e3", 1000), ("10,000", 10_000), ("16/π²", 1.6211)]:
        page.get_by_role("textbox", name="Base b").first.fill(typed)
        page.get_by_role("textbox", name="Base b").first.press("Enter")
        assert dials(page)["base"] == pytest.approx(value, rel=1e-4)
    enter(page, "Room", "4k")
    assert dials(page, 1)["room"] == 4096
    page.get_by_role("textbox", name="Base b").first.fill("500k")
    page.get_by_role("textbox", name="Base b").first.press("Enter")
    expect(page.locator(".rb-why:visible")).to_contain_text("“500k” is unclear: is k a thousand or 1,024?")


def test_what_had_to_give_way_comes_back(opened):
    page = opened([Timelapse()])
    home = Timelapse().dials()
    enter(page, "Room", 100)
    assert (dials(page)["room"], dials(page)["length"]) == (100, 100)
    enter(page, "Length T", 101)
    expect(page.locator(".rb-why:visible")).to_have_text("101 is more than 100 (Room is 100). Still 100.")
    page.get_by_role("button", name="Reset Room").click()
    assert dials(page) == home
    enter(page, "Room", 100)
    enter(page, "Length T", 90)  # this time the reader sets the length to 90 explicitly
    page.get_by_role("button", name="Reset Room").click()
    assert dials(page)["length"] == 90
    end = page.get_by_role("slider", name="Length T, slider")
    end.press("End")
    assert dials(page)["length"] == home["room"]


def test_a_dial_that_follows_its_limit_stays_at_it(opened):
    page = opened([Fourier()])
    for dim, summed in [(64, 32), (8, 4), (32, 16)]:
        enter(page, "Dimension d", dim)
        assert dials(page)["summed"] == summed
    enter(page, "Pairs summed", 15)
    enter(page, "Dimension d", 64)
    assert dials(page)["summed"] == 15


def test_axe_finds_nothing_while_a_hand_drags_and_after_a_refusal(opened):
    page = opened([Turn()])
    page.add_script_tag(content=assets.axe())

    def found() -> list:
        return [one["id"] for one in page.evaluate("axe.run(document)")["violations"]]

    box = page.get_by_role("slider", name="Position m, slider").bounding_box()
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + box["height"] / 2, steps=4)
    assert found() == []
    page.mouse.up()
    enter(page, "Pair i", 300)
    expect(page.locator(".rb-why:visible")).to_have_count(1)
    expect(page.locator(".rb-limits:visible")).to_have_count(0)
    assert found() == []
    page.get_by_role("textbox", name="Base b").focus()
    expect(page.locator(".rb-limits:visible")).to_have_count(1)
    assert found() == []


NOTEBOOK = """
.jp-OutputArea-output dl, .jp-OutputArea-output dt, .jp-OutputArea-output dd { display: block; }
.jp-OutputArea-output dl { width: 100%; overflow: hidden; padding: 0; margin: 0; }
.jp-OutputArea-output dt { font-weight: bold; float: left; width: 20%; padding: 0; margin: 0; }
.jp-OutputArea-output dd { float: left; width: 80%; padding: 0; margin: 0; }
"""


def test_the_numbers_keep_their_place_in_a_notebook(opened):
    """JupyterLab has CSS rules of its own for description lists."""
    page = opened([Saturation()])
    boxes = """() => [...document.querySelectorAll('.rb-stats :is(dt, dd)')].map((e) => {
      const { left, top, width, height } = e.getBoundingClientRect();
      return [left, top + scrollY, width, height].map(Math.round);
    })"""
    before = page.evaluate(boxes)
    page.add_style_tag(content=NOTEBOOK)
    page.evaluate("document.querySelector('main').classList.add('jp-OutputArea-output')")
    assert page.evaluate(boxes) == before
    for (left, top, width, _), (x, y, _, _) in zip(before[::2], before[1::2], strict=True):
        assert x >= left + width - 1 or y > top + 10
