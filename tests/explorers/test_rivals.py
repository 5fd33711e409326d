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
        {"first": "none", "second": "alibi", "offset": 30},
    ]
    cases = [{**Rivals().dials(), **case} for case in cases]
    usual, signed, none, one, bare = (text.replace("\u00a0", " ") for text in js.describe(Rivals, cases))
    assert usual == (  # exp(−6.25) = 0.00193 and exp(−3.53) = 0.0293
        "A key 100 tokens before the query gets 0.00193 times the weight of an equal key at the query with ALiBi "
        "(head 4 of 8), and 0.0293 times with RoPE."
    )
    assert signed.startswith("A key 2 tokens after the query gets 0.368 times the weight of an equal key at the query")
    assert signed.endswith("with ALiBi (head 1 of 8), and 2.72 times with ALiBi, with sign (head 1 of 8).")
    assert none == "The key is at the query. Each curve is drawn relative to its value there, so it is at 0."
    assert one == (
        "A key 1 token before the query gets 0.500 times the weight of an equal key at the query with KERPLE, log."
    )
    assert bare.startswith("A key 30 tokens after the query gets 1.00 times")
    assert "at the query without a scheme, and 0.153 times with ALiBi (head 4 of 8)." in bare


def test_a_scheme_chosen_twice_has_one_colour():
    cases = [("rope", "rope"), ("t5", "t5"), ("rope", "xpos"), ("t5", "xl"), ("t5", "rope"), ("xpos", "none")]
    found = js.inside(Rivals, "return input.map(([first, second]) => coloursOf({ first, second }));", cases)
    twice = [["1", "1"], ["muted", "muted"]]
    assert found == [*twice, ["1", "ink"], ["muted", "ink"], ["muted", "1"], ["1", "muted"]]


def test_readouts_tell_both_sides():
    cases = [{}, {"second": "xpos", "offset": 200}, {"second": "signed", "offset": -2}, {"second": "alibi"}]
    body = "return input.map((d) => stats(compute(d), d).map(([name, ...rest]) => [name, rest.join(' ')]));"
    usual, fades, signed, one = js.inside(Rivals, body, [{**Rivals().dials(), **case} for case in cases])
    assert usual == [["ALiBi", "−6.25 on both sides"], ["RoPE", "−3.53 on both sides"]]
    assert fades[1] == ["xPos", "−4.88 −5.34 on the other side"]
    assert signed[1] == ["ALiBi, with sign", "−0.125 +0.125 on the other side"]
    assert one == [["ALiBi", "−6.25 on both sides"]]
