"""Every page of the built site, opened in a browser: over http and from disk, light and dark, wide and narrow."""

from __future__ import annotations

import re

import pytest

from tests.site.pages import CHAPTERS, GENERATED, PAGES
from tools import assets

LIMIT_BYTES = 1_500_000
LIMIT_REQUESTS = 30


@pytest.mark.parametrize("over", ["http", "file"])
@pytest.mark.parametrize("path", PAGES + GENERATED)
def test_nothing_is_missing_and_nothing_leaves_the_site(visit, path, over):
    visited = visit(path, over=over)
    assert visited.problems == []
    assert visited.page.title()


@pytest.mark.parametrize("path", PAGES)
def test_mathematics_is_rendered(visit, path):
    page = visit(path).page
    assert page.locator(".katex-error").count() == 0
    assert page.locator("span.math, div.math").count() == page.locator(":is(span.math, div.math):has(.katex)").count()
    # What a reader sees must hold no markup of the sources.
    text = page.evaluate(
        """() => { const copy = document.querySelector('#main-content').cloneNode(true);
                   copy.querySelectorAll('pre, code, script, style, .katex, .katex-mathml').forEach(e => e.remove());
                   return copy.textContent; }"""
    )
    leftovers = re.findall(r"\$\$|\\\(|\\\[|\\[a-z]+\{|\{(?:eq|cite|term|ref|doc|math)[:a-z]*\}|:::", text)
    assert leftovers == []


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_light(visit, path):
    requests = visit(path).requests
    assert sum(requests.values()) <= LIMIT_BYTES, sorted(requests.items(), key=lambda item: -item[1])[:5]
    assert len(requests) <= LIMIT_REQUESTS, sorted(requests)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES + ["search.html", "genindex.html"])
def test_axe_finds_nothing(visit, path, theme):
    page = visit(path, theme=theme).page
    assert page.locator("html").get_attribute("data-theme") == theme
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    page.add_script_tag(content=assets.axe())
    # Boxes fade in as they open, and half-faded text is pale.
    page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished))")
    found = page.evaluate("axe.run(document)")
    problems = [
        (violation["id"], node["html"][:160], node["failureSummary"])
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
    assert found["passes"]
    assert problems == []


@pytest.mark.parametrize("path", PAGES + ["search.html"])
def test_a_phone_needs_no_sideways_scroll(visit, path):
    page = visit(path, width=390).page
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    wide = page.evaluate(
        """() => { window.scrollTo(10000, 0);
                   return [document.documentElement.scrollWidth, window.scrollX]; }"""
    )
    assert wide == [390, 0]


@pytest.mark.parametrize("over", ["http", "file"])
def test_search_finds_a_word(visit, over):
    visited = visit("search.html?q=softmax", over=over)
    visited.page.wait_for_selector("#search-results li a")
    links = visited.page.locator("#search-results li a")
    assert any("attention" in (link.get_attribute("href") or "") for link in links.all())
    assert visited.problems == []


def test_search_by_keyboard_from_a_chapter(visit):
    visited = visit("book/attention.html")
    page = visited.page
    assert page.locator("input[type=search]:visible").count() <= 1
    page.keyboard.press("Control+k")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmax*")
    page.wait_for_selector("#search-results li a")
    assert visited.problems == []


def test_the_theme_can_be_switched_and_is_kept(visit):
    page = visit("book/attention.html", theme="light").page
    button = page.locator("button.theme-switch-button:visible").first
    background = "getComputedStyle(document.body).backgroundColor"
    seen = {page.evaluate(background)}
    for _ in range(2):
        button.click()
        seen.add(page.evaluate(background))
    assert len(seen) == 2
    kept = page.locator("html").get_attribute("data-mode")
    page.reload()
    assert page.locator("html").get_attribute("data-mode") == kept


@pytest.mark.parametrize("path", CHAPTERS)
def test_a_chapter_says_how_long_it_takes_and_offers_its_notebook(visit, path):
    page = visit(path).page
    assert re.search(r"\d+ min to read", page.locator(".chapter-line").inner_text())
    with page.expect_download() as download:
        page.locator(".chapter-line a").click()
    assert download.value.suggested_filename == path.removeprefix("book/").replace(".html", ".ipynb")


@pytest.mark.parametrize("path", CHAPTERS)
def test_figures_are_one_picture_that_follows_the_theme(visit, path):
    look = """() => [...document.querySelectorAll('.cell_output figure svg')].map(svg =>
        ({label: svg.getAttribute('aria-label'), background: getComputedStyle(svg).backgroundColor,
          colours: [...new Set([...svg.querySelectorAll('path, text, line, rect, use')].flatMap(
              e => [getComputedStyle(e).fill, getComputedStyle(e).stroke]))].sort().join()}))"""
    light, dark = visit(path, theme="light").page.evaluate(look), visit(path, theme="dark").page.evaluate(look)
    assert [figure["label"] for figure in light] == [figure["label"] for figure in dark]
    assert light
    for one, other in zip(light, dark, strict=True):
        assert len(one["label"]) >= 20
        assert one["colours"] != other["colours"]
        assert other["background"] in ("rgba(0, 0, 0, 0)", "transparent")


@pytest.mark.parametrize("path", CHAPTERS)
def test_without_javascript_every_explorer_is_a_still_figure(visit, path):
    page = visit(path, javascript=False).page
    assert page.locator(".explorer").count() == page.locator(".explorer .explorer-still svg[role=img]:visible").count()


@pytest.mark.parametrize("path", CHAPTERS)
def test_print_shows_the_still_figures_and_everything_folded_stays_readable(visit, path):
    page = visit(path, theme="dark").page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".explorer").count() == page.locator(".explorer .explorer-still svg:visible").count()
    ink = page.evaluate("getComputedStyle(document.querySelector('#main-content p')).color")
    red, green, blue = (int(value) for value in re.findall(r"\d+", ink)[:3])
    assert max(red, green, blue) < 120, "print is dark on white, whatever the theme"


def test_the_keyboard_reaches_the_content(visit):
    page = visit("book/attention.html").page
    page.keyboard.press("Tab")
    assert "Skip to main content" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("Enter")
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.closest('.explorer, main, nav, details')?.tagName || ''"))
        outline = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
                       return s.outlineStyle !== 'none' || s.boxShadow !== 'none' || e.tagName === 'BODY'; }"""
        )
        assert outline, page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
    assert reached
