"""Collect the addresses of a built site: its pages, and the places on them that links can name and readers may have
bookmarked."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

# These names are numbers, or are regenerated in every build, so nobody can have bookmarked them.
PASSING = re.compile(r"id\d+|codecell.*|pst-.*|sbt-.*|searchbox|seal-.*|meaning-.*|[\da-f]{8}-[\da-f-]{27}|.*tooltip.*")
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


class Names(HTMLParser):
    """Parser that collects the fragments on a page: the ids of its sections, targets, equations and terms, and the
    names of its explorers."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.explorers: set[str] = set()
        self.inside = False  # whether the parser is currently inside the page's article
        self.titled = False
        self.kept: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        name = values.get("id")
        self.inside |= tag == "article"
        if explorer := values.get("data-explorer"):
            self.explorers.add(explorer)
        if not name:
            return
        self.ids.add(name)
        # the first section needs no fragment, because the page's own address is enough
        title = tag == "section" and self.inside and not self.titled
        self.titled |= title
        lasting = tag in {"section", "span", "dt", "figure"} | HEADINGS or name.startswith("equation-")
        if self.inside and lasting and not title and not PASSING.fullmatch(name):
            self.kept.add(name)

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag != "article"


def names_of(page: Path) -> Names:
    names = Names()
    names.feed(page.read_text(encoding="utf-8"))
    return names


def addresses(site: Path) -> list[str]:
    """Return the addresses of all pages in the folder `book` and of all permanent fragments, such as "decay.html" and
    "decay.html#by-hand"."""
    found = []
    for page in sorted((site / "book").glob("*.html")):
        names = names_of(page)
        found += [page.name, *(f"{page.name}#{name}" for name in sorted(names.kept | names.explorers))]
    return found


def leads_nowhere(address: str, site: Path, moved: dict[str, str], pages: dict[str, Names]) -> str | None:
    """Explain why an address can't be resolved on a site. Returns None if the address can be resolved."""
    name, _, fragment = address.partition("#")
    if address in moved:
        return leads_nowhere(moved[address], site, {}, pages)
    path = site / "book" / name
    if not path.exists():
        return f"{address}: there is no page {name}"
    if name not in pages:
        pages[name] = names_of(path)
    names = pages[name]
    if fragment and fragment not in names.ids | names.explorers:
        return f"{address}: the page has no {fragment}"
    return None


if __name__ == "__main__":
    import sys

    print("\n".join(addresses(Path(sys.argv[1]))))
