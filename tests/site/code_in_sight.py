"""Report how much code readers of the site see, and how much of that code is cut off: python -m
tests.site.code_in_sight [SITE].

Code is in sight unless a closed fold hides it. A cell is plumbing if it only imports, only calls one function, or only
checks. A block is clipped if it is wider than its box. Output printed in columns is allowed to be wider, because it
scrolls and says so.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.site.pages import PAGES
from tools import browser
from tools.paths import HTML

WIDTHS = (1280, 390)
LOOK = """() => {
  const isOpen = (e) => !e || ((e.localName !== 'details' || e.open) && isOpen(e.parentElement));
  const inSight = (e) => isOpen(e) && e.checkVisibility();
  return [...document.querySelectorAll('article pre')].filter(inSight).map((pre) => {
    const box = pre.closest('.highlight') ?? pre;
    const look = getComputedStyle(box);
    return {
      text: pre.textContent.replace(/\\n+$/, ''),
      isCell: Boolean(pre.closest('.cell_input')),
      // A call whose value is displayed is something to see.
      prints: Boolean(pre.closest('.cell')?.querySelector('.cell_output > :is(.stream, .text_plain)')),
      isPrinted: Boolean(pre.closest('.cell_output > .stream, .cell_output > .text_plain')),
      clipped: [pre, box].some((one) => one.scrollWidth > one.clientWidth + 1),
      says: look.overflowX === 'auto' && look.backgroundImage.includes('gradient'),
    };
  });
}"""


def blocks(page: Page) -> list[dict]:
    """Return the blocks of code and of printed output that are in sight on an open page."""
    page.add_style_tag(content="section { content-visibility: visible !important; }")
    return page.evaluate(LOOK)


def is_plumbing(source: str, prints: bool = False) -> bool:
    """Return whether a cell does nothing but import, make a single call that prints nothing, or run checks.

    >>> [is_plumbing(one) for one in ("import math", "table({})", "assert 1", "x = 1")]
    [True, True, True, False]
    >>> [is_plumbing(one, prints=True) for one in ("print(1)", "f(1)", "assert 1\\ncheck('a', 1)")]
    [False, False, True]
    """
    body = ast.parse(source).body
    calls = [one.value.func for one in body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call)]
    if all(isinstance(one, ast.Import | ast.ImportFrom) for one in body):
        return True
    checks = [getattr(one, "id", "") for one in calls].count("check")
    if checks + sum(isinstance(one, ast.Assert) for one in body) == len(body):
        return True
    return len(body) == len(calls) == 1 and not prints


def lines(site: Path) -> Iterator[str]:
    """Return the lines of the report."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.find(), args=browser.ARGUMENTS)
        for width in WIDTHS:
            page = chromium.new_page(viewport={"width": width, "height": 900})
            found = []
            for path in PAGES:
                page.goto((site / path).as_uri())
                found += blocks(page)
            clipped = [one for one in found if one["clipped"]]
            yield f"{width} px: {len(found)} blocks in sight, {len(clipped)} clipped, of which "
            yield f"    {sum(one['says'] for one in clipped)} scroll with a hint"
        chromium.close()
    code = [one["text"] for one in found if not one["isPrinted"]]
    cells = [one for one in found if one["isCell"]]
    yield f"{sum(text.count(chr(10)) + 1 for text in code):,} lines of code in sight, "
    yield f"    {sum(one['text'].count(chr(10)) + 1 for one in cells):,} of them in {len(cells)} cells"
    yield f"{sum(is_plumbing(one['text'], one['prints']) for one in cells)} cells of plumbing in sight"


if __name__ == "__main__":
    for line in lines(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else HTML):
        print(line)
