"""Tests of typography on the finished pages: signs, the size of code, and one style for all tables."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup

AS_TYPED = "pre, code, script, svg, nav, dt.sig, .math, .katex, .explorer"
HYPHEN = re.compile(r"(?<![\w)\].…/−-])-\.?\d")


def test_numbers_below_zero_have_a_minus_sign(site):
    found = {}
    for path in sorted((site / "book").glob("*.html")):
        text = path.read_text(encoding="utf-8")
        if not HYPHEN.search(re.sub(r"<[^>]*>", " ", text)):
            continue
        article = BeautifulSoup(text, "html.parser").article
        for typed in article.select(AS_TYPED):
            typed.decompose()
        wrong = list(map(str, article.find_all(string=HYPHEN)))
        if wrong:
            found[path.name] = wrong
    assert not found


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
