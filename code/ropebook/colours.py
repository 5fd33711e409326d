"""The book's colours, which the pages, matplotlib, the figures' scripts and stills, and the tests all share.

A colour has the same meaning everywhere:

==========  ==================================================================
blue, 1     RoPE, or the subject of the figure
orange, 2   anything new to the model, wrong or broken; negative numbers
green, 3    the query
violet, 4   the key
crimson, 5  an error message; a byte that the model finds hard
teal, 6     an extra method, where names on the curves aren't enough
muted       other methods, named on their curves; less important words
==========  ==================================================================

Within a theme, no two entries of ``PALETTE`` have the same colour, so we can tell from a drawing which entries it uses.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PALETTE: dict[str, tuple[str, str]] = {
    "ink": ("#1f2328", "#e6edf3"),
    "muted": ("#59636e", "#a3adb8"),
    "grid": ("#d1d9e0", "#343b45"),
    "paper": ("#ffffff", "#12161c"),
    "1": ("#0b62c4", "#6cb0ff"),
    "2": ("#b3470a", "#f0a05a"),
    "3": ("#14733c", "#63c98a"),
    "4": ("#8a2fa3", "#d79bf0"),
    "5": ("#a8123e", "#ff8ba3"),
    "6": ("#0f6b78", "#5cc9d6"),
}
"""The figures' colours by name. Each is a pair: the colour in light themes and the colour in dark themes."""

HUES = {
    "blue": "1",
    "orange": "2",
    "green": "3",
    "violet": "4",
    "crimson": "5",
    "teal": "6",
}
"""The English names of the colours that are not grey."""

ORANGE_IS = ("new", "wrong", "broken", "costly", "below zero")
"""The meanings that orange can have."""

_ALWAYS = {"green": "the query", "violet": "the key"}

PAGE: dict[str, tuple[str, str]] = {
    "book-line": ("#d1d9e0", "#343b45"),
    "book-soft": ("#f5f7f9", "#1b2028"),
    "book-muted": ("#4a545f", "#a3adb8"),
    "pst-color-primary": ("#0b57ad", "#7ab8ff"),
    "pst-color-link": ("#0b57ad", "#7ab8ff"),
    "pst-color-link-hover": ("#083f7e", "#a8d1ff"),
    "pst-color-background": ("#ffffff", "#12161c"),
    "pst-color-on-background": ("#ffffff", "#171c23"),
    "pst-color-surface": ("#f5f7f9", "#1b2028"),
    "pst-color-text-base": ("#1f2328", "#e6edf3"),
    "pst-color-text-muted": ("#4a545f", "#a3adb8"),
    "pst-color-border": ("#c4ccd4", "#3a424d"),
}
"""Maps CSS variables to the page's colours. It contains the book's own variables, and those of the theme, which are set
to the book's colours."""

LIGHT, DARK = 0, 1


def meaning(**of: str) -> Mapping[str, str]:
    """Check the meanings of a drawing's colours, and return them. Each keyword argument is the name of a colour in
    `HUES`. The meaning of orange must begin with one of `ORANGE_IS`. Green must mean the query, and violet must mean
    the key. Otherwise ``ValueError`` is raised.

    >>> meaning(blue="the score", orange="wrong: its error")["orange"]
    'wrong: its error'
    """
    for name, text in of.items():
        if name not in HUES:
            raise ValueError(
                f"a colour must be one of {', '.join(HUES)}; got {name}"
            )
        if name == "orange" and text.partition(": ")[0] not in ORANGE_IS:
            raise ValueError(
                f"orange must begin with one of {', '.join(ORANGE_IS)}, and a colon; got {text!r}"
            )
        if text != _ALWAYS.get(name, text):
            raise ValueError(f"{name} must be {_ALWAYS[name]}, got {text!r}")
    return MappingProxyType(of)


def variables(theme: int) -> str:
    """Return every colour as a CSS variable, for `LIGHT` or `DARK`.

    >>> variables(DARK)[:40]
    '--fig-ink: #e6edf3; --fig-muted: #a3adb8'
    """
    named = {f"fig-{name}": pair for name, pair in PALETTE.items()} | PAGE
    return "; ".join(f"--{name}: {pair[theme]}" for name, pair in named.items())


def style_sheet() -> str:
    """Return a style sheet that sets the variables for light pages, for dark pages and for print, which is always
    light.

    >>> style_sheet().count("--fig-1")
    3
    """
    light, dark = variables(LIGHT), variables(DARK)
    themes = 'html[data-theme="light"], html[data-theme="dark"]'
    return (
        f':root, html[data-theme="light"] {{ {light} }}\n'
        f'html[data-theme="dark"] {{ {dark} }}\n'
        f"@media print {{ :root, {themes} {{ {light} }} }}\n"
    )
