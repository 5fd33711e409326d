"""Parse the contents of a file into a dictionary."""

from __future__ import annotations

import json
import re

from ropebook.explain import facts

_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
"""Matches a bracket or a whole string. Strings are matched so that brackets inside them
are not counted."""


class Unreadable(ValueError):
    """Raised if the input is not a configuration. The message gives the reason."""


def parsed(text: str) -> dict[str, object]:
    """Return the dictionary in a JSON document.

    Raises `Unreadable` if the document doesn't contain one, or if it is longer or more deeply nested than any real
    configuration.

    >>> parsed('{"rope_theta": 5e5}')
    {'rope_theta': 500000.0}
    >>> parsed("<html>")
    Traceback (most recent call last):
        ...
    ropebook.explain.parsing.Unreadable: not-json: the text is not JSON, which begins with {
    """
    limits = facts.LIMITS
    if len(text) > limits["characters"]:
        raise Unreadable(
            f"too-long: the text has more than {limits['characters']:,} characters"
        )
    if not text.strip(" \t\r\n\ufeff"):
        raise Unreadable("empty: the text is empty")
    if not text.lstrip(" \t\r\n\ufeff").startswith("{"):
        raise Unreadable("not-json: the text is not JSON, which begins with {")
    if _depth(text) > limits["depth"]:
        raise Unreadable(
            f"too-deep: the brackets are nested more than {limits['depth']} deep"
        )
    try:
        found = json.loads(
            text.lstrip("\ufeff"), parse_constant=_refused, parse_int=_whole
        )
    except ValueError:
        raise Unreadable(
            "not-json: the text begins like JSON, but has a mistake in it"
        ) from None
    return found


def _whole(text: str) -> float:
    return float(text) if len(text) > 15 else int(text)


def _refused(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


def _depth(text: str) -> int:
    """Return how deeply brackets are nested, not counting those inside strings."""
    depth = deepest = 0
    for one in _BRACKETS.findall(text):
        if one in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif one in "]}":
            depth -= 1
    return deepest
