"""Tests of the buttons that bring a figure to the reader. Each button names a figure further up on the page, and dials
of that figure."""

from __future__ import annotations

import re

import pytest

from tests.explorers import js
from tests.explorers.registry import ALL
from tests.scripts import extension
from tests.together import together
from tools.paths import pages

bring = extension("bring")

KINDS = {entry.name: entry.kind for entry in ALL}
READ = """
  const opening = Object.fromEntries(figure.dials.map(({ trait }) => [trait, input.opening[trait]]));
  const { values, refusals } = readDials(figure.dials, opening, settingsOf(input.dials));
  return { refusals, changed: figure.dials.filter(({ trait }) => values[trait] !== opening[trait]).length };
"""

BUTTONS = [
    (path.stem, path.read_text(encoding="utf-8")[: found.start()], *bring.parts_of(found[1]))
    for path in pages()
    for found in re.finditer(r"\{bring\}`([^`]*)`", path.read_text(encoding="utf-8"))
]


def test_a_button_names_a_figure_above_it_and_dials_that_it_has():
    assert len(BUTTONS) >= 5
    for page, above, explorer, dials, words in BUTTONS:
        where = f"{page}: {words} ({dials})"
        assert re.search(rf"^{KINDS[explorer].__name__}\(", above, re.MULTILINE), where
        read = js.inside(KINDS[explorer], READ, {"opening": KINDS[explorer]().dials(), "dials": dials})
        assert read["refusals"] == [], where
        assert read["changed"] >= 1, where


@together("text", ["ladder", "ladder ntk=on", "ladder: See it", "ladder ntk=on: ", ": See it"])
def test_a_button_without_one_of_its_parts_is_refused(text):
    with pytest.raises(ValueError, match=r"bring needs an explorer, dials, a colon and words"):
        bring.parts_of(text)
