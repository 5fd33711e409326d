"""Test that each of the book's colours is defined in one place, is distinguishable from the others, and is easy to
read."""

from __future__ import annotations

import itertools
import re

import pytest

from ropebook import colours
from tests.together import together
from tools.paths import ROOT

SOURCES = [
    path
    for folder, forms in {
        "code": ("*.py", "*.js"),
        "book": ("*.css", "*.js", "*.md"),
        "tools": ("*.py", "*.mjs"),
        "tests": ("*.py",),
    }.items()
    for form in forms
    for path in sorted((ROOT / folder).rglob(form))
]
# Default colours of browsers and matplotlib, and colours made up by tests.
FOREIGN = {"#000000", "#ffffff", "#ff0000", "#123456"}


def luminance(colour: str) -> float:
    """Return the relative luminance as defined in WCAG 2."""
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [colours.LIGHT, colours.DARK], ids=["light", "dark"])
def test_what_carries_meaning_is_read_easily_and_told_apart(theme):
    shown = {name: pair[theme] for name, pair in colours.PALETTE.items()}
    assert len(set(shown.values())) == len(shown)
    for name, colour in shown.items():
        if name not in ("grid", "paper"):
            assert contrast(colour, shown["paper"]) >= 4.5, name
    for one, other in itertools.combinations("1234", 2):
        # colours must differ in lightness for readers, or in a channel for tests that look at pixels
        channels = [[int(shown[name][k : k + 2], 16) for k in (1, 3, 5)] for name in (one, other)]
        assert max(abs(a - b) for a, b in zip(*channels, strict=True)) >= 60, (one, other)


def test_a_colour_is_written_in_one_place():
    ours = {colour for pair in (*colours.PALETTE.values(), *colours.PAGE.values()) for colour in pair} - FOREIGN
    assert len(ours) > 20
    for path in SOURCES:
        if path.name == "colours.py" and path.parent.name == "ropebook":
            continue
        found = {one.lower() for one in re.findall(r"#[0-9a-fA-F]{6}\b", path.read_text(encoding="utf-8"))}
        assert not found & ours, f"{path.relative_to(ROOT)}: {found & ours}"


def test_the_style_sheet_has_every_colour_for_light_dark_and_print():
    light, dark, paper = colours.style_sheet().strip().split("\n")
    for name, (in_light, in_dark) in colours.PALETTE.items():
        assert f"--fig-{name}: {in_light}" in light
        assert f"--fig-{name}: {in_dark}" in dark
        assert f"--fig-{name}: {in_light}" in paper
    assert paper.startswith("@media print")


@together(
    ("of", "says"),
    [
        ({"orange": "a rival"}, "orange must begin with one of new, wrong, broken, costly, below zero, and a colon"),
        ({"green": "ALiBi"}, "green must be the query, got 'ALiBi'"),
        ({"violet": "the query"}, "violet must be the key, got 'the query'"),
        ({"red": "the error"}, "a colour must be one of blue, orange, green, violet, crimson, teal; got red"),
    ],
)
def test_a_colour_means_the_same_everywhere(of, says):
    with pytest.raises(ValueError, match=says):
        colours.meaning(blue="the score", **of)
