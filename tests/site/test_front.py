"""Tests of the first screen, above the prose. It shows a sentence with an arrow for each word, and the arrows rotate as
the sentence slides along the text."""

from __future__ import annotations

import itertools
import re

import pytest
from playwright.sync_api import Page, expect

SIZES = [(1366, 657), (390, 844)]
ANGLES = """() => [...document.querySelectorAll('.front-token path, .front-pair .front-arrow')]
  .map((path) => -Number(/rotate\\((-?[\\d.]+)deg\\)/.exec(path.style.transform)[1]))"""
IN_SIGHT = """() => [...document.querySelectorAll('.front-stage, .front > p, .front a')]
  .map((e) => e.getBoundingClientRect()).map(({ top, bottom }) => [top, bottom])"""


@pytest.fixture
def front(visit):
    """The front page with its animation switched off."""

    def opened(width: int = 1366, height: int = 657, **how) -> Page:
        return visit("book/intro.html", width=width, height=height, **{"motion": "reduce", **how}).page

    return opened


def positions(page: Page) -> list[int]:
    return [int(text) for text in page.locator(".front-token small").all_inner_texts()]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_it_is_all_on_the_first_screen_before_any_prose(front, width, height):
    page = front(width, height)
    assert all(0 <= top < bottom <= height for top, bottom in page.evaluate(IN_SIGHT))
    assert page.locator("article p").first.evaluate("e => e.closest('.front') !== null")
    expect(page.locator(".front a")).to_have_count(3)
    boxes = [word.bounding_box() for word in page.locator(".front-token > span").all()]
    assert all(left["x"] + left["width"] <= right["x"] for left, right in itertools.pairwise(boxes))


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_dragged_every_arrow_turns_and_the_angle_stays(front, width, height):
    page = front(width, height)
    before, at = page.evaluate(ANGLES), positions(page)
    line = page.locator(".front-line").bounding_box()
    x, y = line["x"] + line["width"] / 4, line["y"] + line["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 3.2 * line["width"] / 8, y, steps=4)
    # each of the 3.2 positions is 30°
    assert page.evaluate(ANGLES) == pytest.approx([angle + 96 for angle in before], abs=1.5)
    page.mouse.up()
    assert positions(page) == [place + 3 for place in at]
    assert page.evaluate(ANGLES) == pytest.approx([angle + 90 for angle in before])
    expect(page.locator(".front-angle")).to_have_text("120°")
    expect(page.locator(".front-token[aria-pressed=true] > span")).to_have_text(["cat", "it"])


def test_other_words_can_be_chosen_and_keys_move_it(front):
    page = front()
    # "down" is equally near to "cat" and to "it", and replaces the latter
    page.get_by_role("button", name=re.compile("^down")).click()
    expect(page.locator(".front-angle")).to_have_text("60°")
    expect(page.locator(".front-token.front-query > span")).to_have_text("down")
    rule = page.get_by_role("slider", name="Position of the sentence")
    rule.focus()
    for key, place in (
        ("ArrowRight", 1),
        ("PageUp", 11),
        ("ArrowLeft", 10),
        ("Home", 0),
        ("ArrowLeft", 0),
        ("End", 999),
    ):
        rule.press(key)
        assert positions(page)[0] == place
        expect(page.locator(".front-angle")).to_have_text("60°")


def test_it_moves_once_by_itself_where_motion_is_wanted(front):
    page = front(motion="no-preference")
    page.wait_for_function("() => document.querySelector('.front-token small').textContent === '4'")
    page.wait_for_timeout(1500)
    assert positions(page)[0] == 4
    still = front()
    still.wait_for_timeout(1500)
    assert positions(still)[0] == 0


def test_without_a_script_it_stands_as_it_opens(front):
    page = front(javascript=False)
    angles = page.locator(".front-token path").evaluate_all("all => all.map((e) => e.style.transform)")
    assert len(angles) == 8
    assert angles[2] == "rotate(-60deg) scale(1)"
    expect(page.locator(".front-angle")).to_have_text("120°")
