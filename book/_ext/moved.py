"""Redirect old addresses to the current places of their content. The table of addresses is `book/_moved.yml`:

    decay.html#the-base: decay_base.html#the-base
    decay.html#sweep: decay_base.html#sweep           # an explorer, with whatever dials the address gives
    derivation.html#wheel: derivation.html#lock       # an explorer with a new name, likewise
    distance.html: decay.html                         # a page that no longer exists

Each page contains the lines of this table that concern it, and its script redirects readers accordingly. Without a
script, readers at least reach the page. A page that no longer exists is replaced with one that redirects. This module
also writes 404.html, which most hosts show for unknown addresses, and an index page that leads from the site's own
address to the first page. Pages that redirect specify an icon, because otherwise the browser would request one from the
host.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from html import escape
from pathlib import Path, PurePosixPath

import yaml
from sphinx.application import Sphinx

MOVED = Path(__file__).resolve().parent.parent / "_moved.yml"
GONE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="robots" content="noindex">
<title>This page has moved</title>
<link rel="icon" href="data:,">
<link rel="canonical" href="{target}">
<script>
  const moved = new Map({table});
  location.replace(moved.get(location.hash.slice(1)) ?? "{target}" + location.hash);
</script>
<noscript><meta http-equiv="refresh" content="0; url={target}"></noscript>
<p>This page has moved: <a href="{target}">go on to where its text is now</a>.</p>
</html>
"""

FRONT = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{book}</title>
<link rel="icon" href="data:,">
<link rel="canonical" href="{start}">
<meta http-equiv="refresh" content="0; url={start}">
<p><a href="{start}">{book}</a></p>
</html>
"""

# The page for unknown addresses, in the frame of all other pages
NOT_FOUND = """<h1>There is no such page</h1>
<p>The address has a typo, or the page was never here. You can search the book, or choose a chapter:</p>
<form class="bd-search d-flex align-items-center" action="search.html" role="search">
<i class="fa-solid fa-magnifying-glass" aria-hidden="true"></i>
<input class="form-control" type="search" name="q" aria-label="Search this book" placeholder="Search this book...">
</form>
<ul>
{chapters}
</ul>
"""
# A host may show that page at any address, so its links must start from the book's root. Links to a place in the page
# itself must not.
BASE = """<script>{
  const href = location.pathname.replace(/(book|notebooks|_static|_downloads)\\/.*|[^/]*$/, "");
  document.head.append(Object.assign(document.createElement("base"), { href }));
  addEventListener("DOMContentLoaded", () => {
    for (const link of document.querySelectorAll('a[href^="#"]')) {
      link.href = location.href.replace(/#.*/, "") + link.getAttribute("href");
    }
  });
}</script>"""


def read(path: Path = MOVED) -> dict[str, str]:
    """Return the table of old and new addresses, both relative to the folder of pages.

    Raises ValueError for anything that isn't an address.
    """
    table = (yaml.safe_load(path.read_text(encoding="utf-8")) or {}) if path.exists() else {}
    for old, new in table.items():
        for address in (old, new):
            if not isinstance(address, str) or not address.partition("#")[0].endswith(".html"):
                raise ValueError(f"{path.name}: an address is page.html or page.html#name, got {address!r}")
    return table


def of_page(name: str, table: dict[str, str]) -> dict[str, str]:
    """Return the fragments that have moved away from the page, each with its new address."""
    return {old.partition("#")[2]: new for old, new in table.items() if old.startswith(f"{name}.html#")}


def add_table(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    left = of_page(PurePosixPath(pagename).name, read())
    if left:
        # Other pages, including all pages outside the book's folder, get no table.
        text = json.dumps(left, sort_keys=True).replace("<", "\\u003c")
        context["body"] = f'{context["body"]}<script type="application/json" id="moved">{text}</script>'


def not_found(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """Return the page for unknown addresses. It has a search field, and a list of the chapters."""
    env = app.env
    chapters = []
    for docname in (app.config.root_doc, *env.toctree_includes.get(app.config.root_doc, ())):
        number = "".join(f"{one}. " for one in env.toc_secnumbers.get(docname, {}).get("", ()))
        title = escape(env.titles[docname].astext())
        chapters.append(f'<li><a href="{app.builder.get_relative_uri("404", docname)}">{number}{title}</a></li>')
    body = NOT_FOUND.format(chapters="\n".join(chapters))
    robots = '<meta name="robots" content="noindex">'
    yield "404", {"title": "There is no such page", "body": body, "metatags": robots}, "page.html"


def write_gone(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    front = FRONT.format(book=escape(app.config.html_title), start=f"{app.config.root_doc}.html")
    (Path(app.outdir) / "index.html").write_text(front, encoding="utf-8")
    unknown = Path(app.outdir) / "404.html"
    # This script must come before everything that the page loads.
    unknown.write_text(unknown.read_text(encoding="utf-8").replace("<head>", f"<head>{BASE}", 1), encoding="utf-8")
    table = read()
    for old, new in table.items():
        if "#" not in old:
            left = json.dumps(list(of_page(old.removesuffix(".html"), table).items())).replace("<", "\\u003c")
            page = GONE.format(target=escape(new), table=left)
            (Path(app.outdir) / "book" / old).write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_table, priority=950)
    app.connect("html-collect-pages", not_found)
    app.connect("build-finished", write_gone)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
