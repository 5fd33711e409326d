"""Tests of every page of the built site in a browser: over HTTP and from disk, light and dark, wide and narrow.

A chapter takes seconds to open, so all tests that only look at a page share one visit. axe is slow on pages with
thousands of elements. It checks only one page of each kind completely, in both themes. On every other page, it checks
one element of each kind: half of these pages are dark and wide, and the rest are light and narrow.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page

from tests.site.figures import settle
from tests.site.pages import CHAPTERS, EXPLORED, GENERATED, PAGES
from tools import assets

LIMIT_BYTES = 1_200_000
LIMIT_REQUESTS = 30
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LAID_OUT = "section { content-visibility: visible !important; }"
KINDS = ["book/intro.html", CHAPTERS[0], "book/notation.html", "search.html"]


def each(paths: list[str]) -> pytest.MarkDecorator:
    """Decorate a test that runs for every page in ``paths`` and shares one visit with other tests."""
    return pytest.mark.parametrize("shared", paths, indirect=True, scope="module")


def every(paths: list[str]) -> pytest.MarkDecorator:
    """Decorate a test that runs for every page in ``paths`` and makes its own visits."""
    return pytest.mark.parametrize("path", paths)


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")


def put_on(page: Page, theme: str) -> None:
    """Switch the preferred colour scheme of the reader's system to dark or light."""
    page.emulate_media(color_scheme=theme)
    page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)


@each(PAGES + GENERATED)
def test_nothing_is_missing_and_nothing_leaves_the_site(shared):
    assert shared.problems == []
    assert shared.page.title()


@every([path for path in PAGES + GENERATED if path not in CHAPTERS])
def test_nothing_is_missing_from_disk(visit, path):
    """The chapters are left out, because test_built_explorers.py opens them from disk."""
    assert visit(path, over="file").problems == []


@each(PAGES)
def test_mathematics_is_rendered(shared):
    page = shared.page
    assert page.locator(".katex-error").count() == 0
    assert page.locator("span.math, div.math").count() == page.locator(":is(span.math, div.math):has(.katex)").count()
    # Readers must not see markup from the sources.
    text = page.evaluate(
        """() => { const copy = document.querySelector('#main-content').cloneNode(true);
                   copy.querySelectorAll('pre, code, script, style, .katex, .katex-mathml').forEach(e => e.remove());
                   return copy.textContent; }"""
    )
    leftovers = re.findall(r"\$\$|\\\(|\\\[|\\[a-z]+\{|\{(?:eq|cite|term|ref|doc|math)[:a-z]*\}|:::", text)
    assert leftovers == []


@each(PAGES)
def test_a_page_is_light(shared):
    requests = shared.requests
    assert sum(requests.values()) <= LIMIT_BYTES, sorted(requests.items(), key=lambda item: -item[1])[:5]
    assert len(requests) <= LIMIT_REQUESTS, sorted(requests)


@each(PAGES + GENERATED)
def test_no_script_holds_a_page_up(shared):
    assert shared.page.locator("script[src]:not([defer])").count() == 0
    assert shared.page.locator("meta[name=viewport]").count() == 1


def test_each_page_describes_itself_and_no_two_alike(site):
    found = [re.findall(r'<meta name="description" content="([^"]*)"', (site / path).read_text()) for path in PAGES]
    texts = [text for (text,) in found]
    # each escaped quotation mark counts as six characters
    assert all(40 <= len(text) <= 260 for text in texts), sorted(texts, key=len)
    assert len(set(texts)) == len(PAGES)


@pytest.mark.parametrize("path", ["none.html", "book/none.html", "book/deep/er/none.html"])
def test_what_never_was_is_answered_with_the_way_back(chromium, server, path):
    page = chromium.new_page()
    assert page.goto(f"{server}/{path}").status == 404
    links = page.locator("main a").evaluate_all("all => all.map((one) => one.href)")
    assert links == [f"{server}/book/intro.html", f"{server}/search.html"]
    page.close()


@each([*PAGES, "search.html"])
def test_a_phone_needs_no_sideways_scroll(shared):
    page = shared.page
    page.set_viewport_size(PHONE)
    unfold(page)
    page.add_style_tag(content=LAID_OUT)  # otherwise, a section that isn't laid out could hide content that is too wide
    # Figures are redrawn for the narrow page. On a busy machine this may take more than a second.
    for _ in range(50):
        wide = page.evaluate(
            """() => { window.scrollTo({ left: 10000, behavior: 'instant' });
                       return [document.documentElement.scrollWidth, window.scrollX]; }"""
        )
        if wide == [390, 0]:
            break
        page.wait_for_timeout(200)
    page.set_viewport_size(WIDE)
    assert wide == [390, 0]


# ---- Search, theme, keyboard ----


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


# ---- Chapters ----


@each(CHAPTERS)
def test_a_chapter_says_how_long_it_takes_and_offers_its_notebook(shared):
    page = shared.page
    assert re.search(r"\d+ min to read", page.locator(".chapter-line").inner_text())
    with page.expect_download() as download:
        page.locator(".chapter-line a[download]").click()
    assert f"/book/{download.value.suggested_filename}".replace(".ipynb", ".html") in page.url


@each(CHAPTERS)
def test_on_this_page_can_be_reached_to_its_end_and_holds_exercises_once(shared):
    page = shared.page
    inside = page.evaluate(
        """() => { const list = document.querySelector('.bd-sidebar-secondary');
                   if (!list) return true; // a page without sections has no such list
                   const box = list.getBoundingClientRect();
                   return box.bottom <= innerHeight + 1 && (list.scrollHeight <= list.clientHeight + 1
                       || getComputedStyle(list).overflowY === 'auto'); }"""
    )
    assert inside
    links = page.locator(".page-toc a").all_inner_texts()
    assert len([text for text in links if text.startswith("Exercise")]) <= 1


@each(CHAPTERS)
def test_every_button_has_a_name(shared):
    nameless = """() => [...document.querySelectorAll('main button, .bd-links summary')].filter(
        one => !(one.getAttribute('aria-label') || one.title || one.textContent.trim())).map(one => one.outerHTML)"""
    assert shared.page.evaluate(nameless) == []


@each(CHAPTERS)
def test_figures_are_one_picture_that_follows_the_theme(shared):
    page = shared.page
    look = """() => [...document.querySelectorAll('.cell_output figure svg')].map(svg =>
        ({label: svg.getAttribute('aria-label'), background: getComputedStyle(svg).backgroundColor,
          colours: [...new Set([...svg.querySelectorAll('path, text, line, rect, use')].flatMap(
              e => [getComputedStyle(e).fill, getComputedStyle(e).stroke]))].sort().join()}))"""
    light = page.evaluate(look)
    put_on(page, "dark")
    dark = page.evaluate(look)
    put_on(page, "light")
    assert [figure["label"] for figure in light] == [figure["label"] for figure in dark]
    assert len(light) == page.locator(".cell_output figure").count()
    for one, other in zip(light, dark, strict=True):
        assert len(one["label"]) >= 20
        assert one["colours"] != other["colours"]
        assert other["background"] in ("rgba(0, 0, 0, 0)", "transparent")


@every(EXPLORED)
def test_without_javascript_every_explorer_is_a_still_figure(visit, path):
    page = visit(path, javascript=False).page
    figures = page.locator(".explorer").count()
    assert figures == page.locator(".explorer .explorer-still svg[role=img]:visible").count() > 0


@each(CHAPTERS)
def test_print_shows_the_still_figures_and_everything_folded_stays_readable(shared):
    page = shared.page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".explorer").count() == page.locator(".explorer .explorer-still svg:visible").count()
    ink = page.evaluate("getComputedStyle(document.querySelector('#main-content p')).color")
    page.emulate_media(media="screen", color_scheme="light")
    red, green, blue = (int(value) for value in re.findall(r"\d+", ink)[:3])
    assert max(red, green, blue) < 120, "print is dark on white, whatever the theme"


@each(CHAPTERS)
def test_paper_gets_no_list_of_sections_and_no_folded_bars(shared):
    page = shared.page
    page.emulate_media(media="print")
    shown = [".bd-sidebar-secondary", "#jb-print-toc", "article details:not([open])", ".seal-text", ".copybtn"]
    left = [name for name in shown if page.locator(f"{name}:visible").count()]
    page.emulate_media(media="screen")
    assert left == []


# ---- Accessibility ----

# Among the spans of code and formulas and the strokes of pictures, keeps only the first element in each kind of
# position. A position's kind is the path of elements and classes that leads to it.
ONE_OF_EACH = """() => {
  const kind = (e) => `${e.localName}.${e.getAttribute('class') ?? ''}`;
  const place = (e) => (e === document.body ? '' : `${place(e.parentElement)} ${kind(e)}`);
  const seen = new Set();
  for (const e of document.querySelectorAll('pre span, .katex-html, .katex-mathml, figure svg *')) {
    if (!e.isConnected) continue;
    const at = place(e);
    if (seen.has(at)) e.remove();
    // Of a text of one character axe does not ask whether it is pale.
    else if (e.closest('svg') || e.textContent.length > 1) seen.add(at);
  }
}"""


LOOKS = [("dark", WIDE), ("light", PHONE)]
AXE = """async () => {
  const { passes, violations } = await axe.run(document, { resultTypes: ['violations'] });
  const problems = violations.flatMap(({ id, nodes }) => nodes.map((one) => [
    id, one.html.slice(0, 160), one.failureSummary]));
  return { passes: passes.length, problems };
}"""


def complaints(page: Page, looks: list[tuple[str, dict]]) -> list[tuple[str, ...]]:
    """Open all folds and return axe's complaints: the theme, the rule, the element, and how to fix it."""
    unfold(page)
    page.add_style_tag(content=LAID_OUT)
    page.add_script_tag(content=assets.axe())
    problems = []
    for theme, size in looks:
        page.set_viewport_size(size)
        put_on(page, theme)
        # A scrollable box becomes reachable by keyboard only when it is laid out, and axe checks all boxes at the same
        # time.
        settle(page)
        # Boxes fade in as they open, and text that has only half faded in has too little contrast.
        page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished))")
        found = page.evaluate(AXE)
        assert found["passes"]
        problems += [(theme, *problem) for problem in found["problems"]]
    return problems


@every(KINDS)
def test_axe_finds_nothing_on_a_whole_page_of_each_kind(visit, path):
    assert complaints(visit(path).page, LOOKS) == []


OTHERS = [path for path in [*PAGES, "search.html", "genindex.html"] if path not in KINDS]


@each(OTHERS)
def test_axe_finds_nothing_in_one_of_each_kind_of_element(shared, request):
    """This must be the last test on a page, because it takes the page apart."""
    shared.page.evaluate(ONE_OF_EACH)
    turn = OTHERS.index(request.node.callspec.params["shared"])
    assert complaints(shared.page, [LOOKS[turn % 2]]) == []
