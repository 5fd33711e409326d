"""Prepare the site for publication on a host: python -m tools.publish [https://…/book].

This writes a copy of the built site to `_build/site`, adding a Content-Security-Policy and a zip of the whole book to
read from disk. If the site's address is known, the pages contain their addresses for search engines and for previews of
shared links, and a sitemap is added. Notebooks that were downloaded on their own can then fetch the package from the
site.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import re
import shutil
import sys
from collections.abc import Iterable
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import nbformat

from tools import book, preview, takeaway
from tools.first_cell import book_title, first_cells
from tools.paths import BUILD, ROOT, write_whole

SITE = BUILD / "site"
ZIP = "rope-turn-by-turn.zip"
PREVIEW = "_static/preview.png"
CHARSET = re.compile(r'<meta charset="utf-8" ?/?>')
NOT_LISTED = {"404.html", "search.html", "genindex.html", "index.html"}
# Files that are not for readers: the record of the sources from which the site was built, and files of Sphinx.
LEFT_OUT = shutil.ignore_patterns(".ropebook-built-from", ".buildinfo*", ".doctrees")


class AddressError(ValueError):
    """Raised if an address cannot be the address of a site."""


def checked(address: str) -> str:
    """Check an address, and return it without a trailing slash. An empty string is returned unchanged.

    >>> checked("https://example.org/book/")
    'https://example.org/book'
    """
    parts = urlsplit(address)
    if address and (parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment):
        raise AddressError(f"SITE must be an address such as https://example.org/book, got {address!r}")
    return address.rstrip("/")


class Page(HTMLParser):
    """Parser that collects facts about a page from its HTML."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inline: list[str] = []  # scripts inside the page itself
        self.sheets: list[str] = []  # style sheets inside the page itself
        self.explores = self.styled = self.leads_on = False
        self.title = self.description = ""
        self._inside: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.styled |= "style" in values
        if tag == "script":
            kind = values.get("type") or "text/javascript"
            # Scripts of other types are data, to which the policy does not apply.
            self._inside = tag if "src" not in values and kind == "text/javascript" else None
            self.explores |= "explorer-host" in (values.get("src") or "")
            if self._inside:
                self.inline.append("")
        elif tag == "style":
            self._inside = tag
            self.sheets.append("")
        elif tag == "title" and not self.title:
            self._inside = tag
        elif tag == "meta" and values.get("name") == "description":
            self.description = values.get("content") or ""
        elif tag == "meta" and values.get("http-equiv") == "refresh":
            self.leads_on = True

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.inline[-1] += data
        elif self._inside == "style":
            self.sheets[-1] += data
        elif self._inside == "title":
            self.title += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = None

    def hashes(self) -> list[str]:
        """Return the hashes of the inline scripts."""
        return hashed(self.inline)

    def styles(self) -> list[str]:
        """Return what the policy must allow for the page's own styles. Style attributes can't be allowed one by one,
        only all of them. Style sheets can be allowed by their hashes, but beside a hash, browsers ignore
        `'unsafe-inline'`."""
        return ["'unsafe-inline'"] if self.styled else hashed(self.sheets)


def hashed(texts: Iterable[str]) -> list[str]:
    """Return the hashes of these scripts or style sheets, in the notation of a Content-Security-Policy."""
    digests = {hashlib.sha256(text.encode()).digest() for text in texts}
    return sorted(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def policy(hashes: list[str], explores: bool, styles: list[str], anywhere: bool = False) -> str:
    """Return a Content-Security-Policy. Scripts and styles must come from the site. Inline scripts are allowed only if
    their hash is given, and scripts can't evaluate text as code. Figures with dials are modules that the page creates
    from its own text. These modules, and the worker threads that they start, need `blob:`. ``styles`` says which inline
    styles are allowed; formulas, drawings and tables need all of them."""
    blob = ["blob:"] if explores else []
    rules = {
        "default-src": ["'none'"],
        "script-src": ["'self'", *blob, *hashes],
        "style-src": ["'self'", *styles],
        "img-src": ["'self'", "data:", *blob],
        "font-src": ["'self'"],
        **({"worker-src": blob} if blob else {}),
        "base-uri": ["'self'" if anywhere else "'none'"],
        "form-action": ["'self'"],
    }
    return "; ".join(" ".join([name, *values]) for name, values in rules.items())


def head(page: Page, name: str, address: str) -> str:
    """Return the tags to add to a page's head: its policy and, if the site's address is known, the page's own address
    and the tags for a preview."""
    content = escape(policy(page.hashes(), page.explores, page.styles(), name == "404.html"), quote=False)
    tags = [f'<meta http-equiv="Content-Security-Policy" content="{content}">']
    if address and name != "404.html" and not page.leads_on:
        own = f"{address}/{name}"
        tags.append(f'<link rel="canonical" href="{escape(own)}">')
        told = {
            "og:type": "article",
            "og:site_name": book_title(),
            "og:title": page.title.partition(" — ")[0],
            "og:description": page.description,
            "og:url": own,
            "og:image": f"{address}/{PREVIEW}",
            "og:image:alt": preview.ALT,
        }
        tags += [f'<meta property="{key}" content="{escape(text)}">' for key, text in told.items() if text]
        tags.append('<meta name="twitter:card" content="summary_large_image">')
    return "".join(f"\n    {tag}" for tag in tags)


def publish(html: Path, out: Path, address: str = "") -> Path:
    """Write the site in `html` to `out`, in the form that a host serves, and return `out`.

    Raises:
        AddressError: `address` is not the address of a site.
        ValueError: a page doesn't declare UTF-8 in its head, so there is no place to insert its policy.
    """
    address = checked(address)
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(html, out, ignore=LEFT_OUT)
    _zip(html, out / ZIP)
    hashes: set[str] = set()
    listed: list[str] = []
    for path in sorted(out.rglob("*.html")):
        name = path.relative_to(out).as_posix()
        if name.startswith("_static/"):  # the theme leaves some of its templates in this folder
            path.unlink()
            continue
        text = path.read_text(encoding="utf-8")
        page, place = Page(text), CHARSET.search(text)
        if place is None:
            raise ValueError(f"{name} does not begin with its character set")
        write_whole(path, text[: place.end()] + head(page, name, address) + text[place.end() :])
        hashes |= set(page.hashes())
        if name not in NOT_LISTED and not page.leads_on:
            listed.append(name)
    # The page for unknown addresses needs a base. All other pages forbid one in their own policies.
    whole = policy(sorted(hashes), explores=True, styles=["'unsafe-inline'"], anywhere=True)
    security = f"{whole}; frame-ancestors 'self'"
    write_whole(
        out / "_headers",
        f"/*\n  Content-Security-Policy: {security}\n  X-Content-Type-Options: nosniff\n"
        "  Referrer-Policy: strict-origin-when-cross-origin\n",
    )
    write_whole(out / ".nojekyll", "")  # otherwise GitHub ignores folders whose names begin with an underscore
    if address:
        shutil.copyfile(preview.PICTURE, out / PREVIEW)
        write_whole(out / "sitemap.xml", sitemap(listed, address))
        _tell_notebooks(out / "notebooks", f"{address}/notebooks")
    return out


def sitemap(names: list[str], address: str) -> str:
    """Return the sitemap for search engines.

    >>> print(sitemap(["book/intro.html"], "https://example.org"))
    <?xml version="1.0" encoding="UTF-8"?>
    <urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
    <url><loc>https://example.org/book/intro.html</loc></url>
    </urlset>
    <BLANKLINE>
    """
    lines = [f"<url><loc>{escape(f'{address}/{name}')}</loc></url>" for name in names]
    opened = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return "\n".join([opened, *lines, "</urlset>", ""])


def _zip(html: Path, target: Path) -> None:
    """Zip the whole site as built. The pages have no policies, because a browser may treat a page on disk and its style
    sheet as coming from different origins."""
    files = [path for path in html.rglob("*") if path.is_file() and not path.name.startswith(".")]
    folder = target.stem
    takeaway.zipped({f"{folder}/{path.relative_to(html).as_posix()}": path.read_bytes() for path in files}, target)


def _tell_notebooks(folder: Path, address: str) -> None:
    """Put the address of the wheel into the first cells of each notebook."""
    for path in sorted(folder.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        cells = first_cells(notebook.metadata.title, address)
        for cell, old in zip(cells, notebook.cells, strict=False):
            cell.id = old.id
        notebook.cells[: len(cells)] = cells
        write_whole(path, nbformat.writes(notebook) + "\n")
    takeaway.pack(folder)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.publish", description=__doc__)
    parser.add_argument("address", nargs="?", default="", help="where the site will be, if that is known")
    arguments = parser.parse_args()
    try:
        checked(arguments.address)
        out = publish(book.html(), SITE, arguments.address)
    except (AddressError, book.BuildError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file()) / 1e6
    book.say(f"The site for a host: {out.relative_to(ROOT)}/ ({size:.0f} MB), and in it the whole book as {ZIP}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
