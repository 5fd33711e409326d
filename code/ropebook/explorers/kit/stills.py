"""Still figures: SVG drawings made by the explorers themselves when the book is built.

The package contains each explorer's opening picture, for notebooks on machines that cannot draw it. On a page of the
book, each figure has a still of its own state.
"""

from __future__ import annotations

import re
from html import escape
from importlib import resources


def opening(script: str, prefix: str) -> str | None:
    """Return the opening still of the explorer that has this script, or None if there is no such file. Ids in the SVG
    begin with ``prefix``."""
    folder = resources.files("ropebook.explorers") / "stills"
    path = folder / script.replace(".js", ".svg")
    if not path.is_file():
        return None
    return with_ids(path.read_text(encoding="utf-8"), prefix)


def with_ids(still: str, prefix: str) -> str:
    """Replace the prefix of the ids in a still, so that a page can contain several stills.

    >>> with_ids('<clipPath id="still-1"/><path clip-path="url(#still-1)"/>', "a")
    '<clipPath id="a-1"/><path clip-path="url(#a-1)"/>'
    """
    return re.sub(r'(id="|url\(#)still-', rf"\g<1>{prefix}-", still)


def in_words(alt: str) -> str:
    """Return the HTML to show if there is no still.

    >>> in_words("Two lines & a dot.")
    '<p>Two lines &amp; a dot.</p>'
    """
    return f"<p>{escape(alt)}</p>"
