"""Test that the printed cheat sheet fits on the two sides of an A4 sheet, and that nothing is cut off."""

from __future__ import annotations

import re

import pytest

PAGE = "book/cheatsheet.html"
# A4 minus the margins of the sheet; in CSS pixels
WIDTH = round((210 - 18) / 25.4 * 96)
CUT = """() => [...document.querySelectorAll('#cheat-sheet :is(table, pre, p, h2)')].filter(
  one => one.getClientRects().length && one.scrollWidth > one.clientWidth + 1
      || one.getBoundingClientRect().right > innerWidth + 1).map(one => one.textContent.trim().slice(0, 60))"""


def test_it_prints_on_two_pages(visit):
    page = visit(PAGE).page
    printed = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", printed)) == 2
    for box in re.findall(rb"/MediaBox\s*\[([^\]]*)\]", printed):
        assert tuple(map(float, box.split()[2:])) == pytest.approx((595, 842), abs=2)


def test_nothing_is_cut_off(visit):
    page = visit(PAGE, width=WIDTH).page
    page.emulate_media(media="print")
    assert page.evaluate(CUT) == []
