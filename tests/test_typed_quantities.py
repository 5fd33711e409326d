"""Tests that every measured quantity in the prose comes from a cell, so that the text can't disagree with a new
measurement.

The test looks for times, memory sizes, percentages and phrases such as "twice as fast". A quantity may be typed if it
follows from arithmetic on the page, or if an assert on the page checks it. The few such cases are listed.
"""

from __future__ import annotations

import re

from tests.together import together
from tools.paths import pages

COUNT = r"(?:half|two|three|four|five|six|seven|eight|nine|ten|twenty|hundred|thousand|some|few|several)"
UNIT = r"(?:ms|µs|ns|s|milliseconds?|seconds?|minutes?|hours?|[KMGT]i?B|%|per cent)"
LARGER = r"(?:fast|slow|long|large|small|high|much|many)"
QUANTITY = re.compile(
    rf"(?<![\w.])\d[\d,.]*\s?{UNIT}(?!\w)"
    rf"|\b{COUNT} (?:milliseconds?|seconds?|minutes?|hours?|per cent)\b"
    rf"|\b(?:twice|thrice|half|\d[\d,.]* times|{COUNT} times) as {LARGER}\b"
    r"|\bhalf as long again\b"
)
GIVEN = {
    # thresholds that the text sets, and the level of an interval
    "decay_claims": ("90 %",),
    "questions": ("90 %",),
    "extrapolation": ("1 %",),
    "lab_methods": ("95 %",),
    # arithmetic, or a ranking that one of the page's cells asserts
    "attention": ("four times as many",),
    "efficient_speed": ("3 times as many", "half as long", "half as much", "half as many"),
    "lab_records": ("half as many",),
    "lab_rule": ("twice as many", "hundred times as many"),
    # published elsewhere, with the source next to it
    "beyond_departures": ("1.96 %", "3.98 %"),
    "extend": ("75 %", "63 %"),
    # given facts: how often an example's sensor is read, the interval between a clip's frames, the reading time of a
    # page
    "beyond_positions": ("ten seconds",),
    "beyond_mrope": ("0.75 seconds",),
    "intro": ("ten minutes",),
    # the length of a text, a threshold, the small models' training time, the size of a file
    "real": ("50 %", "ten minutes", "half as much", "40 %", "93 MB"),
}


def prose(text: str) -> str:
    """Return the text without its front matter, cells, formulas, code, roles, link addresses, questions and
    quotations."""
    for form in (
        r"\A---.*?\n---\n",
        r"^(`{3,}|:{3,})\{(?:code-cell|math|try|figure|glossary|eval-rst|bibliography).*?^\1\s*$",
        r"^```.*?^```\s*$",
        r"\$\$.*?\$\$",
        r"\$[^$]*\$",
        r"\{[\w:]+\}`[^`]*`",
        r"`[^`]*`",
        r"\]\([^)]*\)",
        r"“[^”]*”",
    ):
        text = re.sub(form, " … ", text, flags=re.DOTALL | re.MULTILINE)
    return text


def typed(name: str, text: str) -> list[str]:
    found = [match[0] for match in QUANTITY.finditer(prose(text))]
    return [one for one in found if one not in GIVEN.get(name, ())]


@together(
    "sentence",
    [
        *("It takes 4.97 ms.", "Some 40 MiB are new.", "It is 85 % of that.", "It takes half as long again."),
        *("It is twice as fast.", "It needs ten seconds.", "Eighty times as long, or 3.5 times as long."),
    ],
)
def test_a_typed_quantity_is_seen(sentence):
    assert typed("page", sentence)


@together(
    "sentence",
    [
        "It takes {glue:text}`time:.2f` ms and {glue:text}`share:.0f` %.",
        "```{code-cell} python\nprint('takes 4 ms')\n```\n",
        "Pair 3 turns by $90$ degrees in 16 bits, see `limit = '5 s'`.",
    ],
)
def test_what_a_cell_says_and_what_is_no_measurement_may_stand(sentence):
    assert typed("page", sentence) == []


def test_no_page_types_a_measured_quantity():
    assert {path.stem: found for path in pages() if (found := typed(path.stem, path.read_text(encoding="utf-8")))} == {}
