"""Tests of the seals on equations. The build must report equations without a check and cells left in the flow, and the
numbers must come from the run of the check."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from ropebook.proofs import OUTCOMES
from tests.scripts import extension


@pytest.fixture(scope="module")
def seals():
    return extension("seals")


def outcome(label="eq-a"):
    return {
        "label": label,
        "kind": "identity",
        "seal": "proved by sympy",
        "says": "`f` is < 1",
        "held": ["left − right is 0"],
        "twin": "a slip",
        "refused": ["left − right is not 0"],
    }


def cell(*labels, tags=("seal",), source=None):
    names = ", ".join(f'"{label}"' for label in labels)
    data = {"text/plain": "in words", OUTCOMES: [outcome(label) for label in labels]}
    outputs = [new_output("display_data", data)] if labels else []
    return new_code_cell(source or f"verify({names})", metadata={"tags": list(tags)}, outputs=outputs)


def taken(seals, *cells):
    env = SimpleNamespace(docname="book/page")
    notebook = new_notebook(cells=[new_markdown_cell("# A page"), *cells])
    seals.take(env, notebook)
    return seals.seals(env)["book/page"], notebook


def test_outcomes_are_taken_from_the_run_and_leave_the_page(seals):
    page, notebook = taken(seals, cell("eq-a", "eq-b"), cell("eq-c"))
    assert list(page["outcomes"]) == ["eq-a", "eq-b", "eq-c"]
    assert page["outcomes"]["eq-b"] == outcome("eq-b")
    assert page["wrong"] == []
    assert [one.outputs for one in notebook.cells[1:]] == [[], []]


def test_a_cell_without_the_tag_stays_and_is_named(seals):
    page, notebook = taken(seals, cell("eq-a", tags=()))
    assert [sentence for _, sentence in page["wrong"]] == ["a cell that calls verify must have the tag `seal`"]
    assert notebook.cells[1].outputs[0].data == {"text/plain": "in words"}


@pytest.mark.parametrize("source", ['x = 1\nverify("eq-a")', 'verify("eq-a")\nverify("eq-a")', "print(1)"])
def test_a_tagged_cell_holds_one_call(seals, source):
    page, _ = taken(seals, cell("eq-a", source=source))
    ((_, sentence),) = page["wrong"]
    assert "must hold one call of verify and nothing else" in sentence


def test_a_call_may_take_several_lines(seals):
    assert taken(seals, cell("eq-a", source='verify(\n    "eq-a",\n)\n'))[0]["wrong"] == []


def block(label):
    return {"label": label, "kinds": ["identity"], "latex": "a", "line": 7}


def test_what_has_no_other_half_is_named(seals):
    page, _ = taken(seals, cell("eq-a"), cell("eq-b"))
    assert seals.problems([block("eq-a"), block("eq-b")], page) == []
    found = seals.problems([block("eq-a"), block("eq-c"), block(None)], page)
    assert found == [
        (7, 'equation eq-c has no seal: a cell tagged `seal` with verify("eq-c")'),
        (None, "eq-b is verified on a page that does not show it"),
    ]
