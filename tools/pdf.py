"""Print the core pages and the references as one PDF, with still figures: python -m tools.pdf [https://…/book].

The built pages are joined into one document, so links between them work in the PDF as well. Chromium prints the
document and makes an outline from its headings. Links to pages that are not in the PDF need the site's address; without
it, they become plain text.
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path, PurePosixPath

import yaml
from playwright.sync_api import Error, sync_playwright

from tools import book, browser
from tools.first_cell import book_title
from tools.paths import BUILD, ROOT, write_whole
from tools.publish import AddressError, checked

FOLDER = BUILD / "pdf"
NAME = "rope-turn-by-turn.pdf"
REFERENCES = "references"
ARTICLE = re.compile(r'<article class="bd-article">(.*)</article>', re.DOTALL)
# Remove scripts and their data, and the hidden texts that the seals open.
UNPRINTED = re.compile(r'<script\b.*?</script>|<div class="seal-text".*?</div>(?=</div>)', re.DOTALL)
POINTS = re.compile(r'(\s(?:id|for|headers|popovertarget|aria-(?:labelledby|describedby|controls))=")([^"]+)"')
LINK = re.compile(r'(\s(?:xlink:)?href=")([^"]*)"')
URL = re.compile(r"url\((&quot;|['\"]?)#")
HEADING = re.compile(
    r'<section\b[^>]*\bid="([^"]+)"[^>]*>\s*(?:<span[^>]*></span>\s*)*<h([12])\b[^>]*>(.*?)</h\2>', re.DOTALL
)
STYLE = """
@page { size: A4; margin: 18mm 18mm 20mm; }
html { font-size: 15px; }
body { max-width: none; background: white; }
/* Readers of the whole document need no links from page to page. */
.chapter-line, .headerlink, .seal, .way:not(.way-whole) { display: none !important; }
.printed { break-before: page; }
.printed h1, .printed h1:has(+ .chapter-line) { margin: 0 0 1.1rem; font-size: 24pt; }
.printed h2 { margin-top: 2.2rem; }
.printed .eqno { font-family: inherit; font-size: inherit; }
.cover { height: 235mm; display: flex; flex-direction: column; justify-content: center; align-items: center; }
.cover img { height: 4.5rem; margin-bottom: 1.5rem; }
.cover h1 { font-size: 2.8rem; margin: 0 0 0.6rem; }
.printed-contents { break-before: page; font-size: 9pt; line-height: 1.35; }
.printed-contents ul { list-style: none; padding-left: 1rem; margin: 0.1rem 0 0; }
.printed-contents > ul { columns: 2; column-gap: 2.2rem; padding: 0; }
.printed-contents > ul > li { break-inside: avoid; margin-bottom: 0.9rem; }
.printed-contents > ul > li > a { font-weight: 600; }
.printed-contents a { display: flex; justify-content: space-between; gap: 1rem; text-decoration: none; color: inherit; }
.bd-article div.math { overflow: visible !important; }
.bd-article a { color: inherit; }
.bd-article a:not([href]) { text-decoration: none; }
"""
# Shrink equations and tables that are wider than the paper.
FIT = """() => {
  for (const one of document.querySelectorAll(".katex-display, table")) {
    const room = one.parentElement.getBoundingClientRect().width - (one.matches("table") ? 0 : 48);
    const inner = one.matches("table") ? one : one.querySelector(".katex-html");
    if (!inner) continue;
    let width = 0;
    if (one.matches("table")) width = one.scrollWidth;
    else for (const base of inner.querySelectorAll(".base")) {
      width = Math.max(width, base.getBoundingClientRect().right - one.getBoundingClientRect().left);
    }
    if (width > room) one.style.fontSize = `${Math.max(0.5, room / width) * 100}%`;
  }
}"""


def core() -> list[str]:
    """Return the names of the first page and of the chapters, without depth pages."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = [page["file"] for part in toc["parts"] if part.get("numbered") for page in part["chapters"]]
    return [PurePosixPath(name).name for name in [toc["root"], *chapters]]


def part(name: str, text: str, names: Sequence[str], address: str = "") -> str:
    """Return a page's article as a part of the document. Ids that are unique within the page are made unique within the
    document.

    Raises:
        ValueError: the page has no article.
    """
    found = ARTICLE.search(text)
    if not found:
        raise ValueError(f"{name}.html has no article")

    def follow(link: re.Match) -> str:
        target, mark, fragment = link[2].partition("#")
        page = target.removesuffix(".html")
        if not target:
            return f'{link[1]}#{name}--{fragment}"'
        if page in names:
            return f'{link[1]}#{page}{"--" + fragment if mark else ""}"'
        if re.match(r"[a-z]+:", target):
            return link[0]
        return f'{link[1]}{address}/{posixpath.normpath(f"book/{target}")}{mark}{fragment}"' if address else ""

    article = UNPRINTED.sub("", found[1])
    article = LINK.sub(follow, article)
    article = POINTS.sub(lambda one: f'{one[1]}{" ".join(f"{name}--{id_}" for id_ in one[2].split())}"', article)
    article = URL.sub(lambda one: f"url({one[1]}#{name}--", article)
    article = article.replace('src="../', 'src="../html/').replace(' loading="lazy"', "")
    return f'<article class="bd-article printed" id="{name}">{article}</article>'


def contents(parts: Sequence[str], pages: Sequence[int] = ()) -> str:
    """Return a table of contents: links to the chapters and their sections, with page numbers if they are known."""
    rows, numbers = [], iter(pages)

    def link(id_: str, words: str) -> str:
        return f'<a href="#{id_}"><span>{_words(words)}</span><span>{next(numbers, "000")}</span></a>'

    for text in parts:
        (first, _, title), *sections = HEADING.findall(text)
        row = link(first, title)
        inner = "".join(f"<li>{link(id_, words)}</li>" for id_, level, words in sections if level == "2")
        rows.append(f"<li>{row}<ul>{inner}</ul></li>")
    return f'<nav class="printed-contents"><h1>Contents</h1><ul>{"".join(rows)}</ul></nav>'


def _words(heading: str) -> str:
    return re.sub(r'<a class="headerlink".*?</a>', "", heading, flags=re.DOTALL)


def headings(data: bytes) -> list[int]:
    """Return the page numbers of the first two levels in the outline of a PDF written by Chromium."""
    entries = dict(re.findall(rb"\n(\d+) 0 obj\n<<(/Title .*?)>>\nendobj", data, re.DOTALL))
    pages = {number: k for k, number in enumerate(re.findall(rb"\n(\d+) 0 obj\n<</Type /Page\n", data), start=1)}
    found: list[int] = []

    def walk(text: bytes, level: int) -> None:
        first = re.search(rb"/First (\d+) 0 R", text)
        number = first[1] if first and level < 2 else b""
        while number:
            entry = entries[number]
            found.append(pages[re.search(rb"/Dest \[(\d+) 0 R", entry)[1]])
            walk(entry, level + 1)
            following = re.search(rb"/Next (\d+) 0 R", entry)
            number = following[1] if following else b""

    walk(re.search(rb"<</Type /Outlines\n.*?>>", data, re.DOTALL)[0], 0)
    return found


def document(html: Path, names: Sequence[str], address: str = "", pages: Sequence[int] = ()) -> str:
    """Return the pages as one HTML document, to be written to a file in a folder beside `html`. ``pages`` are the page
    numbers for the table of contents."""
    parts = [part(name, (html / "book" / f"{name}.html").read_text(encoding="utf-8"), names, address) for name in names]
    title = escape(book_title())
    where = f"<p>{escape(address)}</p>" if address else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en" data-theme="light" data-mode="light"><head><meta charset="utf-8">'
        f'<title>{title}</title><link rel="stylesheet" href="../html/_static/book.css"><style>{STYLE}</style></head>'
        f'<body><main class="bd-main"><div class="cover"><img src="../html/_static/logo.svg" alt=""><h1>{title}</h1>'
        "<p>The core pages; figures as they open.</p>"
        f"{where}</div>{contents(parts, pages)}{''.join(parts)}</main></body></html>"
    )


def printed(page: Path, target: Path) -> Path:
    """Print an HTML file to a PDF with an outline and numbered pages, and return `target`.

    Raises:
        RuntimeError: there is no browser, or it failed.
    """
    path = browser.ensure()
    if path is None:
        raise RuntimeError(browser.HELP)
    footer = (
        '<div style="width:100%;font:12px serif;text-align:center;color:#555"><span class="pageNumber"></span></div>'
    )
    try:
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=path, args=browser.ARGUMENTS)
            tab = chromium.new_page(viewport={"width": 658, "height": 1000})  # the width of A4 without the margins
            tab.set_default_timeout(300_000)
            tab.emulate_media(media="print", color_scheme="light", reduced_motion="reduce")
            tab.goto(page.as_uri(), wait_until="load")
            tab.evaluate("document.fonts.ready.then(() => true)")
            tab.evaluate(FIT)
            tab.pdf(
                path=target,
                prefer_css_page_size=True,
                print_background=True,
                outline=True,
                tagged=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=footer,
            )
            chromium.close()
    except Error as error:
        raise RuntimeError(f"the browser could not print {page.name}: {error}") from error
    return target


def write(html: Path, folder: Path, names: Sequence[str], address: str = "") -> Path:
    """Print these pages of the site in `html` into `folder`, which must be beside it. Returns the path of the PDF.

    The document is printed twice. Only the first print shows which pages the sections are on, so only the second can
    list page numbers. The first two outline entries, for the cover and the contents, are skipped.
    """
    page, target = folder / "pages.html", folder / NAME
    write_whole(page, document(html, names, address))
    pages = headings(printed(page, target).read_bytes())[2:]
    write_whole(page, document(html, names, address, pages))
    return printed(page, target)


def main(address: str = "") -> int:
    try:
        address = checked(address)
        target = write(book.html(), FOLDER, [*core(), REFERENCES], address)
    except (AddressError, book.BuildError, RuntimeError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    book.say(f"Printed: {target.relative_to(ROOT)} ({target.stat().st_size / 1e6:.1f} MB)")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
