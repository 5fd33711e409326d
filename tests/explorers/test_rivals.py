"""Tests specific to the Rivals explorer."""

from __future__ import annotations

import math

import pytest

from ropebook import relatives
from ropebook.explorers.rivals import BY_HEAD, SCHEMES, SPAN, TURNING, Rivals
from tests.explorers import js
from tests.explorers.oracles import computed


def test_slopes_are_those_of_the_module():
    found = js.inside(Rivals, "return input.map(slopes);", [1, 2, 5, 8, 12, 16])
    expected = [relatives.alibi_slopes(heads).tolist() for heads in (1, 2, 5, 8, 12, 16)]
    assert [pytest.approx(row) for row in found] == expected


def test_schemes_whose_heads_differ_have_as_many_curves():
    for name in SCHEMES:
        found = computed(Rivals, first=name, heads=5)
        assert len(found["first"]) == (5 if name in BY_HEAD else 1), name
        assert {len(row) for row in found["first"]} == {2 * SPAN + 1}
        assert all(abs(row[SPAN]) < 1e-12 for row in found["first"])


def test_who_has_waves():
    for name in SCHEMES:
        curves = [computed(Rivals, first=name, base=base)["first"] for base in (100.0, 1e4)]
        assert (curves[0] != curves[1]) == (name in TURNING), name


def test_left_and_right_in_numbers():
    alike = {"alibi": True, "signed": False, "t5": True, "sandwich": True, "kerple": True, "xl": False, "rope": True}
    alike |= {"xpos": False, "none": True}
    for name in SCHEMES:
        found = computed(Rivals, first=name, offset=-100)
        assert math.isclose(found["here"][0], found["mirrored"][0], abs_tol=1e-9) == alike[name], name


def test_the_rivals_in_words():
    cases = [
        {},
        {"second": "signed", "head": 1, "offset": 2},
        {"first": "none", "second": "none", "offset": 0},
        {"first": "kerple", "second": "kerple", "offset": -1},
    ]
    cases = [{**Rivals().dials(), **case} for case in cases]
    usual, signed, none, one = (text.replace("\u00a0", " ") for text in js.describe(Rivals, cases))
    assert usual.startswith(
        "100 tokens before the query, ALiBi (head 4 of 8) adds −6.25 to the score, and the same on the other side; RoPE"
    )
    assert "ALiBi, with sign (head 1 of 8) adds +1.00 to the score, and −1.00 on the other side." in signed
    assert signed.startswith("2 tokens after the query, ALiBi (head 1 of 8) adds −1.00")
    assert none == "At the query, none adds 0 to the score, and the same on the other side."
    assert one == "1 token before the query, KERPLE, log adds −0.693 to the score, and the same on the other side."
