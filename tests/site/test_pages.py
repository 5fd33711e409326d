"""Tests of every page of the built site in a browser: over HTTP and from disk, light and dark, wide and narrow.

A chapter takes seconds to open, and to change its size or theme takes part of a second. One test therefore opens a page
once, goes through its looks, and lists everything that is wrong, by the name of the check. axe is slow on pages with
thousands of elements. It checks only one page of each kind completely, in both themes. On every other page, it checks
one element of each kind: half of these pages are dark and wide, and the rest are light and narrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import yaml
from playwright.sync_api import Page

from tests.site.code_in_sight import blocks, is_plumbing
from tests.site.figures import settle
from tests.site.pages import CHAPTERS, EXPLORED, FIRST, GENERATED, PAGES
from tools import assets
from tools.paths import BOOK

LIMIT_BYTES = 1_200_000
LIMIT_REQUESTS = 30
WIDE, PHONE, LAPTOP = ({"width": w, "height": h} for w, h in ((1280, 900), (390, 844), (1366, 657)))
LAID_OUT = "section { content-visibility: visible !important; }"
KINDS = ["book/intro.html", CHAPTERS[0], "book/notation.html", "search.html"]
OTHERS = [path for path in [*PAGES, "search.html", "genindex.html"] if path not in KINDS]
WAY = yaml.safe_load((BOOK / "_way.yml").read_text(encoding="utf-8"))["chapters"]
FIRST_PICTURES = [f"book/{one['page']}.html" for one in WAY]
MARKED_SECTIONS = [*FIRST, "book/decay_base.html"]

Checks = Iterator[tuple[str, object]]
"""What was checked, each with what is wrong; nothing is wrong if that is empty or false."""


def every(paths: list[str]) -> pytest.MarkDecorator:
    """Decorate a test that runs for every page in ``paths``."""
    return pytest.mark.parametrize("path", paths)


def unfold(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details').forEach(e => { e.open = true; })")


def put_on(page: Page, theme: str) -> None:
    """Switch the preferred colour scheme of the reader's system to dark or light."""
    page.emulate_media(color_scheme=theme)
    page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)


@every(PAGES + GENERATED)
def test_a_page(visit, path):
    assert {name: wrong for name, wrong in checks(visit(path), path) if wrong} == {}


def checks(visited, path: str) -> Checks:
    """Check everything about a page, in an order that changes its appearance as rarely as possible."""
    page = visited.page
    yield "something is missing, fails, or leaves the site", [*visited.problems]
    yield "it has no title", not page.title()
    yield "a script holds it up", page.locator("script[src]:not([defer])").count()
    yield "it says nothing about its width", page.locator("meta[name=viewport]").count() != 1
    if path in PAGES:
        yield from weight(visited.requests)
        yield from mathematics(page)
    if path in CHAPTERS:
        yield from chapter(page)
    if path in MARKED_SECTIONS:
        yield "On this page marks another section", page.evaluate(MARKED, STOPS)
    # These checks lay out the whole page, so they come after those that depend on the scroll position.
    if path in PAGES:
        yield from code(page)
        yield from type_(page)
    if path in FIRST_PICTURES:
        yield from first_picture(page)
    light = page.evaluate(FIGURES) if path in CHAPTERS else []
    if path in CHAPTERS:
        yield from paper(page)
    if path in EXPLORED:
        yield from explorers(page)
    whole = path in KINDS
    dark_last = path in OTHERS and OTHERS.index(path) % 2 == 0
    # axe comes last, because it takes the page apart.
    if not dark_last and path in CHAPTERS:
        yield from dark_figures(page, light)
        put_on(page, "light")
    if path in PAGES or path == "search.html":
        yield from phone(page, path)
    if whole or (path in OTHERS and not dark_last):
        yield from axe(page, "light", PHONE, whole)
    if whole or dark_last:
        page.set_viewport_size(WIDE)
        if path in CHAPTERS and dark_last:
            yield from dark_figures(page, light)
        yield from axe(page, "dark", WIDE, whole)
    later = [problem for problem in visited.problems if not problem.endswith(".ipynb")]
    yield "something failed later", later


# ---- As it opens ----


def weight(requests: dict[str, int]) -> Checks:
    heaviest = sorted(requests.items(), key=lambda item: -item[1])[:5]
    yield "it is heavy", sum(requests.values()) > LIMIT_BYTES and heaviest
    yield "it makes many requests", len(requests) > LIMIT_REQUESTS and sorted(requests)


def mathematics(page: Page) -> Checks:
    yield "a formula is wrong", page.locator(".katex-error").count()
    yield "a formula is not set", page.locator(":is(span.math, div.math):not(:has(.katex))").count()
    text = page.evaluate(
        """() => { const copy = document.querySelector('#main-content').cloneNode(true);
                   copy.querySelectorAll('pre, code, script, style, .katex, .katex-mathml').forEach(e => e.remove());
                   return copy.textContent; }"""
    )
    leftovers = re.findall(r"\$\$|\\\(|\\\[|\\[a-z]+\{|\{(?:eq|cite|term|ref|doc|math)[:a-z]*\}|:::", text)
    yield "readers see markup from the sources", leftovers
    yield "a formula is cut off, or meets its number", page.evaluate(CUT_FORMULAS)


CUT_SENTENCES = """() => [...document.querySelectorAll('table.prose')].filter(
    (one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText.slice(0, 60))"""


# Finds displayed formulas that have to be scrolled, and those that their number overprints.
CUT_FORMULAS = """() => [...document.querySelectorAll('div.math')].filter((box) => {
  if (!box.getClientRects().length) return false; // folded away
  const formula = box.querySelector('.katex-html');
  const number = box.querySelector('.eqno').getBoundingClientRect();
  return formula.scrollWidth > formula.clientWidth || [...formula.children].some((part) => {
    const { right, top, bottom } = part.getBoundingClientRect();
    return right > number.left && bottom > number.top && top < number.bottom;
  });
}).map((box) => [box.id, box.querySelector('.katex-html').scrollWidth])"""


# Scrolls to the given number of positions, follows each link in the list, and reports every time that the wrong section
# is highlighted. After scrolling, the page may still move a little, because something above has changed its height. The
# test therefore waits.
MARKED = """async stops => {
  document.documentElement.style.scrollBehavior = 'auto';
  const links = [...document.querySelectorAll('.page-toc a[href^="#"]')];
  const marked = () => links.filter(link => link.getAttribute('aria-current')).map(link => link.hash).join();
  const top = link => document.getElementById(decodeURIComponent(link.hash.slice(1))).getBoundingClientRect().top;
  const passed = () => links.filter(link => top(link) <= innerHeight * 0.3).at(-1)?.hash ?? '';
  const wrong = links.length ? [] : ['no links'];
  async function compare(what, wanted) {
    for (const end = performance.now() + 15_000; performance.now() < end;) {
      await new Promise(done => setTimeout(done, 50));
      if (marked() === wanted()) return;
    }
    wrong.push([what, wanted(), marked()]);
  }
  for (let k = 1; k <= stops; k += 1) {
    dispatchEvent(new Event('wheel'));
    scrollTo(0, k / (stops + 1) * (document.documentElement.scrollHeight - innerHeight));
    await compare(k, passed);
  }
  for (const link of links) {
    link.click();
    await compare('jump', () => link.hash);
  }
  return wrong;
}"""
STOPS = 12


def chapter(page: Page) -> Checks:
    said = page.locator(".chapter-line").inner_text()
    yield "it doesn't say how long it takes", not re.search(r"\d+ min to read", said) and [said]
    with page.expect_download() as download:
        page.locator(".chapter-line a[download]").click()
    name = download.value.suggested_filename
    yield "it offers another notebook", f"/book/{name}".replace(".ipynb", ".html") not in page.url and name
    inside = page.evaluate(
        """() => { const list = document.querySelector('.bd-sidebar-secondary');
                   if (!list) return true; // a page without sections has no such list
                   const box = list.getBoundingClientRect();
                   return box.bottom <= innerHeight + 1 && (list.scrollHeight <= list.clientHeight + 1
                       || getComputedStyle(list).overflowY === 'auto'); }"""
    )
    yield "On this page can't be reached to its end", not inside
    links = page.locator(".page-toc a").all_inner_texts()
    exercises = [text for text in links if text.startswith("Exercise")]
    yield "On this page holds the exercises twice", len(exercises) > 1 and exercises
    nameless = """() => [...document.querySelectorAll('main button, .bd-links summary')].filter(
        one => !(one.getAttribute('aria-label') || one.title || one.textContent.trim())).map(one => one.outerHTML)"""
    yield "a button has no name", page.evaluate(nameless)


def first_picture(page: Page) -> Checks:
    page.set_viewport_size(LAPTOP)
    top = page.evaluate(
        """() => {
        const [article, first] = [".bd-article", ".bd-article :is(figure, .explorer, .front, .opening)"]
          .map((one) => document.querySelector(one).getBoundingClientRect().top);
        return first - article;
    }"""
    )
    page.set_viewport_size(WIDE)
    yield "its first picture is more than a screen and a half down", top > 1.5 * LAPTOP["height"] and top


# ---- Code, tables and signs ----

TABLES = """() => [...document.querySelectorAll('article .table-box')].filter(
    (one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.innerText.slice(0, 60))"""


def code(page: Page) -> Checks:
    found = blocks(page)
    cells = [one for one in found if one["isCell"]]
    plumbing = [one["text"] for one in cells if is_plumbing(one["text"], one["prints"])]
    yield "a cell in sight is plumbing", plumbing
    yield "code runs off a wide page", [one["text"] for one in found if one["clipped"]]
    yield "a table runs off a wide page", page.evaluate(TABLES)


# Finds the texts outside code in which a pattern matches.
MATCHING = """([pattern, skipped]) => {
  const form = new RegExp(pattern, 'u');
  const walk = document.createTreeWalker(document.querySelector('article'), NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (form.test(node.data) && !node.parentElement.closest(skipped)) found.push(node.data);
  }
  return found;
}"""
SKIPPED = "pre, code, script, svg, nav, dt.sig, .math, .katex, .explorer"
# A number below zero that has a hyphen instead of a minus sign.
HYPHEN = r"(?<![\p{L}\p{N}_)\].…\/−-])-\.?\d"
# A number from 1,000 on without commas, as in `quantities.py`: not a year, a seed or an issue, and not in a quotation.
UNGROUPED = (
    r'(?<![\p{L}\p{N}_.,:#-])(?<!issue |request |seed )(?<!“[^”]*|"[^"]*)(?!(?:19\d\d|20(?!00)[0-2]\d)(?!\d))'
    r"[1-9]\d{3,}(?![A-Za-z0-9_]|[.,:-]\d)"
)


def type_(page: Page) -> Checks:
    yield "a number below zero has a hyphen", page.evaluate(MATCHING, [HYPHEN, SKIPPED])
    yield "a long number has no commas", page.evaluate(MATCHING, [UNGROUPED, f"{SKIPPED}, h1, h2, h3, .citation"])


# ---- Figures ----

FIGURES = """() => [...document.querySelectorAll('.cell_output figure svg:not(.fig-narrow)')].map(svg =>
    ({label: svg.getAttribute('aria-label'), background: getComputedStyle(svg).backgroundColor,
      colours: [...new Set([...svg.querySelectorAll('path, text, line, rect, use')].flatMap(
          e => [getComputedStyle(e).fill, getComputedStyle(e).stroke]))].sort().join()}))"""


def dark_figures(page: Page, light: list[dict]) -> Checks:
    put_on(page, "dark")
    dark = page.evaluate(FIGURES)
    labels = [figure["label"] for figure in light]
    yield "figures differ from the light page's", labels != [figure["label"] for figure in dark] and labels
    yield "a figure isn't one picture", len(light) != page.locator(".cell_output figure").count()
    yield "a figure has no alternative text", [label for label in labels if len(label or "") < 20]
    pairs = list(zip(light, dark, strict=False))
    same = [one["label"] for one, other in pairs if one["colours"] == other["colours"]]
    yield "a figure doesn't follow the theme", same
    clear = ("rgba(0, 0, 0, 0)", "transparent")
    yield "a figure has a background", [one["label"] for one in dark if one["background"] not in clear]


# Finds the dials whose opening differs from the start of the figure's first step.
OPENINGS = """() => [...document.querySelectorAll('.explorer')].flatMap((place) => {
  const step = document.querySelector(`.try-step[data-explorer="${place.dataset.explorer}"]`);
  const values = place.querySelector('.explorer-live').ropebook.values();
  const text = (value) => ({ true: 'on', false: 'off' })[value] ?? String(value).replaceAll(' ', '+');
  return (step?.dataset.start ?? '').split('&').filter(Boolean).filter((one) => {
    const [trait, wanted] = one.split('=');
    return text(values[trait]) !== wanted && !(wanted && Number(wanted) === Number(values[trait]));
  });
})"""


def explorers(page: Page) -> Checks:
    yield "an explorer doesn't start", page.locator(".explorer:not(.explorer-alive)").count()
    figures, still = page.locator(".explorer").count(), page.locator(".explorer .explorer-still svg[role=img]").count()
    yield "an explorer has no still figure", (figures != still or not figures) and (figures, still)
    yield "a figure doesn't open as its first question says", page.evaluate(OPENINGS)


@every(["book/intro.html", "book/efficient_precision.html"])
def test_without_javascript_every_explorer_is_a_still_figure(visit, path):
    page = visit(path, javascript=False).page
    figures = page.locator(".explorer").count()
    assert figures == page.locator(".explorer .explorer-still svg[role=img]:visible").count() > 0


# ---- Paper ----

NOT_ON_PAPER = [".bd-sidebar-secondary", "#jb-print-toc", "article details:not([open])", ".seal-text", ".copybtn"]


def paper(page: Page) -> Checks:
    page.emulate_media(media="print", color_scheme="dark")
    hidden = page.locator(".explorer").count() - page.locator(".explorer .explorer-still svg:visible").count()
    yield "a still isn't printed", hidden
    ink = page.evaluate("getComputedStyle(document.querySelector('#main-content p')).color")
    yield "it prints folds or lists", [name for name in NOT_ON_PAPER if page.locator(f"{name}:visible").count()]
    page.emulate_media(media="screen", color_scheme="light")
    channels = [int(value) for value in re.findall(r"\d+", ink)[:3]]
    yield "print isn't dark on white, whatever the theme", max(channels) >= 120 and ink


# ---- A phone ----

# Finds words in drawings that are smaller than 11 pixels, outside the drawing, on top of each other, or on a straight
# line that isn't one of the grid's.
LABELS = """() => {
  const found = { 'are small': [], 'are cut off': [], 'overlap': [], 'touch a line': [] };
  const steps = Array.from({ length: 301 }, (_, k) => k / 300);
  for (const drawing of document.querySelectorAll('.cell_output figure.fig > svg')) {
    if (!drawing.getClientRects().length) continue;
    const box = drawing.getBoundingClientRect();
    const scale = box.width / drawing.viewBox.baseVal.width;
    const words = [...drawing.querySelectorAll('text')].filter((one) => one.textContent.trim()).map((one) => {
      const { left, right, top, bottom } = one.getBoundingClientRect();
      return { word: one.textContent, size: parseFloat(getComputedStyle(one).fontSize), left, right, top, bottom };
    });
    const lines = [...drawing.querySelectorAll('path:not(defs *, [style*="--grid"])')].flatMap((path) =>
      [...path.getAttribute('d').matchAll(/M (\\S+) (\\S+) L (\\S+) (\\S+)(?= M|$)/g)].map((line) => {
        const [x, y, toX, toY] = line.slice(1).map((at, k) => scale * at + (k % 2 ? box.top : box.left));
        return steps.map((part) => [x + part * (toX - x), y + part * (toY - y)]);
      }));
    words.forEach((one, k) => {
      const isOn = ([x, y]) => x > one.left && x < one.right && y > one.top + 4 && y < one.bottom - 4;
      if (lines.some((line) => line.some(isOn))) found['touch a line'].push(one.word);
      if (scale * one.size < 10.99) found['are small'].push([one.word, scale * one.size]);
      const out = Math.max(box.left - one.left, one.right - box.right, box.top - one.top, one.bottom - box.bottom);
      if (out > 3) found['are cut off'].push([one.word, out]); // letters are lower than their font
      for (const other of words.slice(0, k)) {
        const across = Math.min(one.right, other.right) - Math.max(one.left, other.left);
        const down = Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top);
        if (across > 1 && down > 5) found['overlap'].push([one.word, other.word]); // lines of one text touch
      }
    });
  }
  return found;
}"""


def phone(page: Page, path: str) -> Checks:
    page.set_viewport_size(PHONE)
    if path in PAGES:
        cut = [one["text"] for one in blocks(page) if one["clipped"] and not (one["isPrinted"] and one["says"])]
        yield "code is cut off on a phone", cut
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
    if path in PAGES:
        yield "a formula is cut off on a phone", page.evaluate(CUT_FORMULAS)
        yield "a table of sentences is cut off on a phone", page.evaluate(CUT_SENTENCES)
        for kind, found in page.evaluate(LABELS).items():
            yield f"a figure's words {kind} on a phone", found
    yield "a phone needs a sideways scroll", wide != [390, 0] and wide
    if page.locator(".cell_output figure.fig").count():
        page.set_viewport_size(WIDE)
        yield "a figure's words touch a line on a wide page", page.evaluate(LABELS)["touch a line"]


# ---- Accessibility ----

# Thins out a page. If several elements are reached by the same path of elements and classes, only the first one is
# kept. This applies to the spans of code and formulas, to the strokes of pictures, and to the list of pages, which is
# the same on every page. From the text, paragraphs, list entries and table rows other than a table's first are removed
# if elements of the same kinds and styles came before, and if nothing in them has any other attribute, such as an
# address or a name.
ONE_OF_EACH = """() => {
  const kind = (e) => `${e.localName}.${e.getAttribute('class') ?? ''}`;
  const place = (e) => (e === document.body ? '' : `${place(e.parentElement)} ${kind(e)}`);
  const seen = new Set();
  // Of a text of one character axe does not ask whether it is pale.
  const counts = (e) => e.textContent.length > 1;
  const lines = 'pre span, .katex-html, .katex-mathml, figure svg *, .bd-sidebar-primary li';
  for (const e of document.querySelectorAll(lines)) {
    if (!e.isConnected) continue;
    const at = place(e);
    if (seen.has(at)) e.remove();
    else if (e.closest('svg') || counts(e)) seen.add(at);
  }
  const isPlain = (e) => [...e.attributes].every(({ name }) => name === 'class' || name === 'style');
  const [kept, known] = [new Set(), new Set()];
  for (const e of document.querySelectorAll('article :is(p, li, tbody tr + tr)')) {
    if (!e.isConnected || e.closest('.explorer, a, button, summary, label, th')) continue;
    const all = [e, ...e.querySelectorAll('*')];
    if (!all.every(isPlain) || [...kept].some((one) => one.contains(e))) continue;
    const places = all.map((one) => `${place(one)} ${one.getAttribute('style') ?? ''}`);
    if (places.every((at) => known.has(at))) e.remove();
    else {
      kept.add(e);
      all.forEach((one, i) => { if (counts(one)) known.add(places[i]); });
    }
  }
}"""
# axe doesn't need to preload anything, because no page has audio or video.
AXE = """async () => {
  const { passes, violations } = await axe.run(document, { resultTypes: ['violations'], preload: false });
  const problems = violations.flatMap(({ id, nodes }) => nodes.map((one) => [
    id, one.html.slice(0, 160), one.failureSummary]));
  return { passes: passes.length, problems };
}"""


def axe(page: Page, theme: str, size: dict[str, int], whole: bool) -> Checks:
    """Open all folds and return axe's complaints: the rule, the element, and how to fix it."""
    if not whole:
        page.evaluate(ONE_OF_EACH)
    unfold(page)
    page.add_style_tag(content=LAID_OUT)
    if page.evaluate("typeof axe") == "undefined":
        page.add_script_tag(content=assets.axe())
    page.set_viewport_size(size)
    put_on(page, theme)
    # A scrollable box becomes reachable by keyboard only when it is laid out, and axe checks all boxes at the same
    # time.
    settle(page)
    # Boxes fade in as they open, and text that has only half faded in has too little contrast.
    page.evaluate("Promise.all(document.getAnimations().map((one) => one.finished))")
    found = page.evaluate(AXE)
    yield f"axe has checked nothing in the {theme} theme", not found["passes"]
    yield f"axe complains about the {theme} theme", found["problems"]


# ---- All pages ----


@every([path for path in PAGES + GENERATED if path not in CHAPTERS])
def test_nothing_is_missing_from_disk(visit, path):
    """The chapters are left out, because test_built_explorers.py opens them from disk."""
    assert visit(path, over="file").problems == []


def test_each_page_describes_itself_and_no_two_alike(site):
    found = [re.findall(r'<meta name="description" content="([^"]*)"', (site / path).read_text()) for path in PAGES]
    texts = [text for (text,) in found]
    # each escaped quotation mark counts as six characters
    assert all(40 <= len(text) <= 260 for text in texts), sorted(texts, key=len)
    assert len(set(texts)) == len(PAGES)


@pytest.mark.parametrize("path", ["none.html", "book/none.html", "book/deep/er/none.html"])
def test_what_never_was_is_answered_with_the_way_back(chromium, server, path):
    page = chromium.new_page()
    loaded = set()
    page.on("response", lambda response: loaded.add(response.url) if response.ok else None)
    assert page.goto(f"{server}/{path}", wait_until="load").status == 404
    needed = page.locator("link[rel=stylesheet], script[src], img").evaluate_all("all => all.map(e => e.href ?? e.src)")
    assert len(needed) > 2
    assert set(needed) <= loaded
    assert page.locator(".bd-sidebar-primary .bd-links a").count() > len(WAY)
    links = page.locator("article a").evaluate_all("all => all.map((one) => one.href)")
    assert {f"{server}/{one}" for one in FIRST_PICTURES} <= set(links)
    assert [one for one in links if page.request.head(one).status != 200] == []
    assert page.locator("#pst-skip-link a").evaluate("one => one.href") == f"{server}/{path}#main-content"
    field = page.locator("article").get_by_role("searchbox", name="Search this book")
    field.fill("softmax")
    field.press("Enter")
    page.wait_for_url("**/search.html?q=softmax*", wait_until="commit")
    assert page.url.startswith(f"{server}/search.html")
    page.close()


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
