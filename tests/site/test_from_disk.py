"""Test that pages opened from disk use the book's own fonts, and that nothing on the page moves while these fonts
load."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from tests.site.conftest import SETTLED
from tests.site.figures import settle
from tests.site.test_slow_line import WATCH
from tools.paths import HTML

# The elements to check, and the font family that each of them must use.
PLACES = {
    ".bd-article section > p:not(.chapter-line)": "Literata",
    ".bd-article h1": "Literata",
    ".bd-article em:not(.letter)": "Literata",
    ".bd-article div.highlight pre": "JetBrains Mono",
}


def families(page: Page, selector: str) -> dict[str, int]:
    """Return the fonts that the browser actually used for an element, and the number of letters drawn in each font."""
    tools = page.context.new_cdp_session(page)
    tools.send("DOM.enable")
    tools.send("CSS.enable")
    root = tools.send("DOM.getDocument")["root"]["nodeId"]
    node = tools.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
    fonts = tools.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    tools.detach()
    return {font["familyName"]: font["glyphCount"] for font in fonts if font["isCustomFont"]}


def opened(context, name: str, width: int) -> Page:
    page = context(viewport={"width": width, "height": 900}).new_page()
    page.add_init_script(WATCH)
    page.goto(f"{HTML.as_uri()}/book/{name}.html", wait_until="load")
    page.wait_for_function("document.fonts.status === 'loaded'")
    page.wait_for_function(SETTLED)
    settle(page)
    return page


@pytest.mark.parametrize("selector", PLACES)
def test_letters_are_the_books_own(context, site, selector):
    page = opened(context, "efficient", 1280)
    assert page.evaluate("document.fonts.check('16px \"Literata on disk\"')")
    drawn = families(page, selector)
    page.close()
    assert max(drawn, key=drawn.get).startswith(PLACES[selector]), drawn


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["intro", "derivation_only", "cheatsheet"])
def test_nothing_moves_while_they_come(context, site, name, width):
    page = opened(context, name, width)
    moved = page.evaluate("moved()")
    page.close()
    assert moved < 0.02


def test_over_a_line_pages_do_not_carry_them(visit):
    visited = visit("book/efficient.html")
    assert not [address for address in visited.requests if address.endswith("faces.css")]
    assert not visited.page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--book-faces')")
