"""Tests of typography on the finished pages: the size of code, and one style for all tables."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("width", [1280, 390])
def test_code_is_read_at_14_px(visit, width):
    page = visit("book/efficient.html", width=width).page
    sizes = page.evaluate("[...document.querySelectorAll('article pre')].map(one => getComputedStyle(one).fontSize)")
    assert sizes
    assert set(sizes) == {"14px"}
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


LOOKS = """(kind) => ["thead", "thead tr", "thead th", "tbody tr", "tbody td"].map((part) => {
  const style = getComputedStyle(document.querySelector(`article table.${kind} ${part}`));
  return [part, ...["fontSize", "backgroundColor", "color", "borderTopWidth", "borderBottomWidth", "borderLeftWidth",
    "boxShadow", "paddingTop", "fontWeight"].map((name) => style[name])];
})"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_tables_look_alike(visit, theme):
    page = visit("book/efficient.html", theme=theme).page
    assert page.evaluate(LOOKS, "table") == page.evaluate(LOOKS, "book-table")
