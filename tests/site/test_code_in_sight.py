"""Test that all code in sight on the site teaches something, and that none of it is cut off at the edge of the page."""

from __future__ import annotations

import pytest

from tests.site.code_in_sight import blocks, is_plumbing
from tests.site.pages import PAGES

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
TABLES = """() => [...document.querySelectorAll('article .table-box')].filter(
    (one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText.slice(0, 60))"""
each = pytest.mark.parametrize("shared", PAGES, indirect=True, scope="module")


@each
def test_no_cell_in_sight_is_plumbing(shared):
    cells = [one for one in blocks(shared.page) if one["isCell"]]
    assert [one["text"] for one in cells if is_plumbing(one["text"], one["prints"])] == []


@each
def test_no_code_and_no_table_runs_off_a_wide_page(shared):
    assert [one["text"] for one in blocks(shared.page) if one["clipped"]] == []
    assert shared.page.evaluate(TABLES) == []


@each
def test_on_a_phone_code_goes_on_in_the_next_line_and_columns_scroll(shared):
    page = shared.page
    page.set_viewport_size(PHONE)
    found = [one["text"] for one in blocks(page) if one["clipped"] and not (one["isPrinted"] and one["says"])]
    page.set_viewport_size(WIDE)
    assert found == []


def test_a_fold_is_a_quiet_line_under_what_it_made(visit):
    page = visit("book/attention_masks.html").page
    fold = page.locator("details:has(summary:has-text('Code for this table'))").first
    table = page.locator(".cell:has(summary:has-text('Code for this table')) table").first
    assert table.bounding_box()["y"] < fold.bounding_box()["y"]
    assert fold.bounding_box()["height"] < 40
    fold.locator("summary").click()
    assert "table(" in fold.locator("pre").inner_text()
