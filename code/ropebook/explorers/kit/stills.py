"""The still figures: an explorer's own drawing as SVG, made when the book is built.

The package carries how each explorer opens, for notebooks that run where nothing can draw; pages have each figure as it
stands there.
"""

from __future__ import annotations

import re
from html import escape
from importlib import resources


def opening(script: str, prefix: str) -> str | None:
    """The still of the explorer with this script as it opens, its ids beginning with ``prefix``; None if there is none."""
    folder = resources.files("ropebook.explorers") / "stills"
    path = folder / script.replace(".js", ".svg")
    if not path.is_file():
        return None
    return with_ids(path.read_text(encoding="utf-8"), prefix)


def with_ids(still: str, prefix: str) -> str:
    """The still with ids of its own, so that several can stand on a page.

    >>> with_ids('<clipPath id="still-1"/><path clip-path="url(#still-1)"/>', "a")
    '<clipPath id="a-1"/><path clip-path="url(#a-1)"/>'
    """
    return re.sub(r'(id="|url\(#)still-', rf"\g<1>{prefix}-", still)


def in_words(alt: str) -> str:
    """What stands where there is no still.

    >>> in_words("Two lines & a dot.")
    '<p>Two lines &amp; a dot.</p>'
    """
    return f"<p>{escape(alt)}</p>"
