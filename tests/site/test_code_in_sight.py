"""Test what a code fold looks like. Which code each page shows is checked in test_pages.py."""

from __future__ import annotations


def test_a_fold_is_a_quiet_line_under_what_it_made(visit):
    page = visit("book/attention_masks.html").page
    fold = page.locator("details:has(summary:has-text('Code for this table'))").first
    table = page.locator(".cell:has(summary:has-text('Code for this table')) table").first
    assert table.bounding_box()["y"] < fold.bounding_box()["y"]
    assert fold.bounding_box()["height"] < 40
    fold.locator("summary").click()
    assert "table(" in fold.locator("pre").inner_text()
