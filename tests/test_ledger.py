"""Test that the ledger reports equations that have no check, and checks that have no equation.

test_proofs.py tests that each check holds and that its wrong twin is refused.
"""

from __future__ import annotations

import math

import pytest

from ropebook import proofs
from ropebook.proofs import Claim, Proof
from tests.scripts import extension
from tests.together import together


@pytest.fixture(scope="module")
def ledger():
    return extension("ledger")


def equation(label="eq-a", kinds=("statement",), latex="a = b"):
    return {"label": label, "kinds": list(kinds), "latex": latex, "line": 7}


def check(label="eq-a", kind="statement", function=lambda wrong=False: [Claim("x", 1.0 if wrong else 0.0, 0.5)]):
    return Proof(label, kind, function, (), "a twin", "ropebook/proofs/page.py:1")


def test_a_balanced_ledger_has_no_problems(ledger):
    assert ledger.problems({"book/page": [equation()]}, {"eq-a": check()}) == []


@pytest.mark.parametrize(
    ("blocks", "checks", "sentence"),
    [
        ([equation(label=None)], [], "displayed equation without a label: a = b"),
        ([equation(kinds=())], [check()], "equation eq-a must have one kind"),
        ([equation(kinds=("identity", "statement"))], [check()], "equation eq-a must have one kind"),
        ([equation()], [], "nothing checks equation eq-a"),
        ([], [check()], "the check ropebook/proofs/page.py:1 claims equation eq-a, which no page shows"),
        ([equation(kinds=("identity",))], [check()], "equation eq-a is a identity on the page"),
        ([equation(label="a")], [check("a")], "must begin with 'eq-': a"),
        *(
            ([equation(latex=rf"a = b {arrow} b = a")], [check()], "its check must say which way")
            for arrow in (r"\iff", r"\;\Rightarrow\;", r"\\ \Longrightarrow \quad")
        ),
    ],
)
def test_what_has_no_other_half_is_named(ledger, blocks, checks, sentence):
    found = ledger.problems({"book/page": blocks}, {one.label: one for one in checks})
    assert len(found) == 1
    assert sentence in found[0][2]


@pytest.mark.parametrize("way", ["⇒", "⇐", "⇔"])
def test_a_check_may_say_which_way_of_an_arrow_it_went(ledger, way):
    def one_way(wrong=False):
        return []

    one_way.__doc__ = f"{way}: what is checked."
    blocks = {"book/page": [equation(latex=r"a = b \iff b = a")]}
    assert ledger.problems(blocks, {"eq-a": check(function=one_way)}) == []


def test_a_claim_that_is_not_a_number_never_holds():
    assert not Claim("x", math.nan, 1.0).holds
    assert not Claim("x", 2.0, 1.0).holds
    assert Claim("x", 1.0, 1.0).holds


def test_a_twin_that_is_accepted_is_not_refused():
    assert not proofs.refused(check(function=lambda wrong=False: [Claim("x", 0.0, 0.5)]))
    mixed = [Claim("spoilt", 1.0, 0.5), Claim("not spoilt", 0.0, 0.5)]
    assert not proofs.refused(check(function=lambda wrong=False: mixed))


def test_a_check_that_claims_nothing_is_an_error():
    with pytest.raises(ValueError, match="nothing to check"):
        proofs.holds(check(function=lambda wrong=False: []))


@together(
    ("arguments", "message"),
    [
        ({"label": "a", "twin": "t", "implements": "math.sqrt"}, "label must look like"),
        ({"label": "eq-new", "twin": " ", "implements": "math.sqrt"}, "twin must say"),
        ({"label": "eq-new", "twin": "t", "implements": "math.no_such"}, "implements must name"),
        ({"label": "eq-new", "twin": "t", "implements": "nomodule.f"}, "implements must name"),
        ({"label": "eq-new", "twin": "t", "implements": "math.pi"}, "implements must name"),
    ],
)
def test_a_definition_that_cannot_be_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        proofs.definition(**arguments)


def test_one_label_has_one_check():
    taken = next(iter(proofs.registry()))
    with pytest.raises(ValueError, match="is taken by"):
        proofs.statement(taken, twin="t")(lambda wrong=False: [])
