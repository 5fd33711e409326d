"""Check which pages the search finds when readers ask in their own words: python -m tests.site.queries FILE.

The file contains a list of {"query", "pages"}: what somebody typed, and pages that answer it. At least one of these
pages must be among the first three results. The results come from the built page's own script, which searches the built
index in Node.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.explorers import js
from tools.paths import HTML

FIRST = 3
ASK = """
const { indexed, question, ranked } = globalThis.finding;
const data = globalThis.sections;
const index = indexed(data);
const page = (section) => data.pages[section[0]][0].replace(/^book.|.html$/g, "");
const told = (section) => [page(section), section.slice(2).join(" ")];
return input.map((query) => ranked(question(query), data, index).list.map(({ place }) => told(data.sections[place])));
"""


def answers(site: Path, queries: list[str]) -> list[list[list[str]]]:
    """Return the results of the built search for each query, best first. Each result has a page and a text."""
    scripts = [(site / name).read_text(encoding="utf-8") for name in ("sections.js", "_static/search.js")]
    return js.evaluate("".join(scripts), ASK, queries)


def missed(site: Path, asked: list[dict]) -> dict[str, list[str]]:
    """Return the queries that fail because none of their pages is among the first three results. Each is returned with
    the pages that were found instead."""
    found = answers(site, [one["query"] for one in asked])
    first = [[page for page, _ in places[:FIRST]] for places in found]
    return {one["query"]: pages for one, pages in zip(asked, first, strict=True) if not set(one["pages"]) & set(pages)}


if __name__ == "__main__":
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    lost = missed(HTML, asked)
    for query, pages in lost.items():
        print(f"missed: {query!r} leads to {', '.join(pages) or 'nothing'}")
    print(f"{len(asked) - len(lost)} of {len(asked)} have a right page among the first {FIRST} places")
