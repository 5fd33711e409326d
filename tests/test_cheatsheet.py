"""The cheat sheet says what the chapters say: its code is theirs, its table that of the registry."""

from __future__ import annotations

import re

import pytest
import torch

from ropebook import efficient
from ropebook import extrapolation as X
from tests.helpers import random
from tests.links import LINK, lost, prose, text, typed_numbers

PAGE = "cheatsheet.md"


def function(page: str, name: str) -> str:
    """The source of a function that a page's cell defines."""
    [source] = re.findall(rf"^def {name}\(.*?(?=\n```|\n\n\n)", text(page), re.MULTILINE | re.DOTALL)
    return source


def test_every_link_lands_and_every_number_is_glued():
    assert lost(PAGE) == []


def test_the_code_is_that_of_the_chapter():
    assert function(PAGE, "rope") == function("efficient.md", "rope")


@pytest.mark.parametrize("n_heads", [1, 2, 6])
def test_the_line_that_converts_weights_does_what_the_package_does(n_heads):
    names: dict = {}
    exec(function(PAGE, "to_half"), names)
    weight = random(n_heads * 8, 5)
    theirs = efficient.convert_weight(weight, n_heads, 8, to="half")
    assert torch.equal(names["to_half"](weight, n_heads), theirs)


def rows(section: str) -> list[list[str]]:
    part = prose(PAGE).split(f"## {section}\n")[1].split("\n## ")[0]
    table = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in table]


def test_the_table_of_methods_says_what_the_registry_says():
    facts = {row["method"]: row for row in X.methods_table()}
    for method, _, leaves, safe, trained in rows("Longer texts"):
        row = facts[re.sub(r" \{eq\}.*", "", method)]
        changes = {"yes": "no", "no": "yes"}[row["changes within L"]]
        assert (leaves, safe, trained) == (changes, row["cache-safe"], row["trains"]), method


def test_each_symptom_leads_to_the_section_that_shows_it():
    found = rows("Mistakes by symptom")
    assert len(found) >= 10
    for symptom, cause, fix in found:
        assert LINK.search(symptom), symptom
        assert cause
        assert fix


def test_what_was_measured_stands_in_no_text_of_its_own():
    [rounded] = [part for part in prose(PAGE).split("\n## ") if part.startswith("What may be rounded")]
    assert set(typed_numbers(rounded)) <= {"0", "10,000", "128k", "128"}
