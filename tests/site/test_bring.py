"""Tests of the buttons that set a figure's dials and bring the figure to where the reader is, and of the buttons that
return it to its place."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

PAGE = "book/extrapolation.html"
AT = "element => element.getBoundingClientRect().top"


@pytest.mark.parametrize("width, touch", [(1280, False), (390, True)])
def test_a_figure_comes_and_goes_back(visit, width, touch):
    visited = visit(PAGE, width=width, touch=touch)
    page = visited.page
    figure = page.locator(".explorer")
    section = page.locator(
        "section", has=page.get_by_role("heading", name="NTK-aware: can the first pair be kept?")
    ).last
    button = section.locator("button.bring")
    expect(section.locator(".explorer")).to_have_count(0)
    button.click()
    expect(section.locator(".explorer.explorer-alive")).to_have_count(1)
    expect(figure).to_have_count(1)
    assert figure.evaluate("place => place.ropebook.el.ropebook.values().ntk") is True
    expect(section.locator(".rb-stage")).to_be_in_viewport()
    home = page.locator(".bring-home")
    expect(home).to_contain_text("now at “NTK-aware: can the first pair be kept?”. Bring it back here")
    back = home.locator("button")
    back.scroll_into_view_if_needed()
    above = page.get_by_text("the length of the longer text")
    before = above.evaluate(AT)
    back.click()
    expect(home).to_be_hidden()
    expect(section.locator(".explorer")).to_have_count(0)
    assert above.evaluate(AT) == pytest.approx(before, abs=2)
    assert visited.problems == []


def test_the_button_stays_under_the_hand_while_the_figure_leaves_from_above(visit):
    # the window is high enough for the whole figure, so nothing else has to scroll
    page = visit(PAGE, height=2400).page
    button = page.locator("button.bring", has_text="Show it in the figure").nth(1)
    button.evaluate("element => scrollTo(0, scrollY + element.getBoundingClientRect().top - 600)")
    before = button.evaluate(AT)
    button.click()
    expect(page.locator(".bring-home")).to_be_attached()
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert button.evaluate(AT) == pytest.approx(before, abs=2)


def test_without_a_script_and_on_paper_there_is_no_button(visit):
    page = visit(PAGE, javascript=False).page
    assert page.locator("button.bring").count() >= 4
    assert page.locator("button.bring:visible").count() == 0
    page = visit(PAGE).page
    page.emulate_media(media="print")
    assert page.locator("button.bring:visible").count() == 0
