"""Redirect old addresses to the current places of their content. The table of addresses is `book/_moved.yml`:

    decay.html#the-base: decay_base.html#the-base
    decay.html#sweep: decay_base.html#sweep           # an explorer, with whatever dials the address gives
    distance.html: decay.html                         # a page that no longer exists

Each page contains the lines of this table that concern it, and its script redirects readers accordingly. Without a
script, readers at least reach the page. A page that no longer exists is replaced with one that redirects. This module
also writes 404.html, which most hosts show for unknown addresses, and an index page that leads from the site's own
address to the first page. All of these pages specify an icon, because otherwise the browser would request one from the
host.
"""

from __future__ import annotations

import json
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

# A host may show this page at any address, so its links must start from the book's root.
NOT_FOUND = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>No such page — {book}</title>
<link rel="icon" href="data:,">
<style>
  :root {{ color-scheme: light dark; font: 1.1rem/1.6 system-ui, sans-serif; }}
  body {{ max-width: 36rem; margin: 15vh auto; padding: 0 1.25rem; }}
</style>
<main>
<h1>There is no such page</h1>
<p>The address holds a slip, or what it led to was never here.
<a href="{start}">Start of the book</a> or <a href="search.html">search it</a>.</p>
</main>
<script>
  const root = location.pathname.replace(/(book|notebooks|_static|_downloads)\\/.*|[^/]*$/, "");
  for (const link of document.links) link.href = root + link.getAttribute("href");
</script>
</html>
"""


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


def write_gone(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    for name, text in {"404.html": NOT_FOUND, "index.html": FRONT}.items():
        page = text.format(book=escape(app.config.html_title), start=f"{app.config.root_doc}.html")
        (Path(app.outdir) / name).write_text(page, encoding="utf-8")
    table = read()
    for old, new in table.items():
        if "#" not in old:
            left = json.dumps(list(of_page(old.removesuffix(".html"), table).items())).replace("<", "\\u003c")
            page = GONE.format(target=escape(new), table=left)
            (Path(app.outdir) / "book" / old).write_text(page, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("html-page-context", add_table, priority=950)
    app.connect("build-finished", write_gone)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
