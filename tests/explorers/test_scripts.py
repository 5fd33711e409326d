"""Test that each check of the explorers' scripts can fail, by planting a mistake that it must find."""

from __future__ import annotations

import pytest

from tools import scripts

NAME = "code/ropebook/explorers/probe.js"


@pytest.mark.parametrize(
    "text, complaint",
    [
        ('export const made = [{ trait: "dim", kind: "number", label: "Dimension d" }];\n', "Dials are declared in"),
        ("export const two = () => unknownName + 1;\n", "no-undef"),
        ('import { tidy } from "./kit/text.js";\n', "no-unused-vars"),
        ('import { tidy } from "./kit/text.js";\n\nexport const text = tidy(1);\n', ""),
    ],
)
def test_what_the_linter_finds(text, complaint):
    found = scripts.lint(NAME, text)
    assert complaint in found
    assert bool(found) == bool(complaint)
