"""Tests of exercises whose answers are checked on the page."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

PAGE = "book/attention.html"


def test_an_answer_is_marked_and_its_mistake_is_named(visit):
    visited = visit(PAGE)
    form = visited.page.locator("form.answer")
    fields, said = form.locator("input"), form.locator("output")
    expect(said).to_be_hidden()
    for place, text in enumerate(("4/7", "1/7", "2/7")):
        fields.nth(place).fill(text)
    form.get_by_role("button", name="Check").click()
    expect(said).to_have_text("Not yet: these are the weights with the scale: leave out the division by √d.")
    fields.nth(0).fill("16/21")
    expect(said).to_be_hidden()
    fields.nth(1).fill("0.048")
    fields.nth(2).fill("19%")
    fields.nth(2).press("Enter")
    expect(said).to_contain_text("Right: dog gets more weight.")
    fields.nth(1).fill("1/14")
    fields.nth(1).press("Enter")
    expect(said).to_contain_text("the first that differs is “weight of bites”: 1/14 isn't right")
    assert visited.problems == []


def test_a_line_of_code_is_chosen(visit):
    visited = visit("book/attention_exercises.html", width=390, touch=True)
    form = visited.page.locator("form.answer")
    form.get_by_role("button", name="Check").tap()
    expect(form.locator("output")).to_have_text("Not yet: choose one of the answers.")
    form.get_by_label("scores").tap()
    form.get_by_role("button", name="Check").tap()
    expect(form.locator("output")).to_contain_text("Not yet: the largest score depends on the future")
    form.get_by_label("v", exact=True).tap()
    form.get_by_role("button", name="Check").tap()
    expect(form.locator("output")).to_contain_text("Right: the standard deviation over all tokens")
    assert visited.problems == []


@pytest.mark.parametrize("javascript", [True, False])
def test_there_is_no_form_on_paper_or_without_a_script(visit, javascript):
    page = visit(PAGE, javascript=javascript).page
    if javascript:
        expect(page.locator("form.answer")).to_be_visible()
        page.emulate_media(media="print")
    expect(page.locator("form.answer")).to_be_hidden()
