"""The still figures: an explorer's own drawing as SVG, made when the book is built.

The package contains each explorer's opening picture, for notebooks on machines that cannot draw it. Pages show each
figure in its own state.
"""

from __future__ import annotations

import re
from html import escape
from importlib import resources


def opening(script: str, prefix: str) -> str | None:
    """The opening still of the explorer with this script, or None. Its ids begin with ``prefix``."""
    folder = resources.files("ropebook.explorers") / "stills"
    path = folder / script.replace(".js", ".svg")
    if not path.is_file():
        return None
    return with_ids(path.read_text(encoding="utf-8"), prefix)


def with_ids(still: str, prefix: str) -> str:
    """Gives the still ids that begin with ``prefix``, so that a page can have several stills.

    >>> with_ids('<clipPath id="still-1"/><path clip-path="url(#still-1)"/>', "a")
    '<clipPath id="a-1"/><path clip-path="url(#a-1)"/>'
    """
    return re.sub(r'(id="|url\(#)still-', rf"\g<1>{prefix}-", still)


def in_words(alt: str) -> str:
    """The text to show if there is no still.

    >>> in_words("Two lines & a dot.")
    '<p>Two lines &amp; a dot.</p>'
    """
    return f"<p>{escape(alt)}</p>"
