"""Tests specific to the Advice explorer."""

from __future__ import annotations

import json
import math

import pytest

from ropebook import extrapolation as X
from ropebook.explorers.advice import CASES, NAMES, Advice
from tests.explorers import js
from tests.explorers.oracles import computed


def test_the_rows_are_those_of_the_table():
    found = X.choices(512, 1024)
    assert list(CASES.values()) == [choice.when for choice in found]
    assert [(NAMES[may], type(choice.method)) for may, choice in zip(CASES, found, strict=True)] == [
        ("YaRN", X.YaRN),
        ("Self-Extend", X.SelfExtend),
        ("Dynamic NTK", X.DynamicNTK),
        ("Larger base", X.BaseChange),
        ("YaRN", X.YaRN),
    ]


def test_llama_2_four_times_as_long():
    """Check the page's numbers, and numbers worked out by hand from the papers' formulas."""
    found = computed(Advice)
    assert (found["young"], found["scale"], found["window"], found["group"]) == (18, 4, 2048, 8)
    assert found["reach"] == 8 * (4096 - 2048 + 2048 // 8)
    assert found["grown"] == pytest.approx(1e4 * 4 ** (128 / 126))
    assert found["least"] == pytest.approx((16383 / 4095) ** (63 / 46))
    assert found["left"] == pytest.approx(2.479, abs=1e-3)


def test_the_advice_in_words():
    cases = [Advice(may=may).dials() for may in CASES]
    assert js.describe(Advice, cases) == [
        "Use YaRN. Its frequencies stay the same while the text grows, so cached keys stay correct.",
        "Use Self-Extend. It keeps near distances exact and shortens far ones, so no angle is new up to its reach.",
        "Use dynamic NTK, and cache unrotated keys. Texts up to L stay as they are; at L′, angles still go 2.48 "
        "radians beyond those in training.",
        "Set the base to 68,828 (6.88 times the trained one): no smaller whole number keeps every pair within its "
        "trained angles.",
        "Use YaRN, then train the model further on texts of length L′.",
    ]


def test_the_rows_say_the_settings():
    cases = [Advice(), Advice(base=1), Advice(target_length=300)]
    body = "return input.map((values) => rowsOf(compute(values), values).map((row) => row.text));"
    opening, known, shorter = js.inside(Advice, body, [case.dials() for case in cases])
    assert opening == [
        "beyond L, angles are new",
        "s = 4, f = 1.139",
        "W = 2,048, G = 8: reaches 18,432",
        "base 40,890 at L′, grows with the text",
        "68,828 (6.88 times as large)",
        "s = 4, then trained on L′ tokens",
    ]
    assert known[0] == "no angle is new at any length"
    assert shorter == ["L′ is within L", *["not needed"] * 5]


def test_what_is_pasted_is_the_method_that_is_advised():
    for options in ({}, {"trained_length": 8192, "target_length": 20_000, "base": 5e5}):
        cases = [Advice(may=may, **options) for may in CASES]
        body = "return input.map((values) => pasted(compute(values), values).text);"
        texts = js.inside(Advice, body, [case.dials() for case in cases])
        one = cases[0]
        advised = X.choices(one.trained_length, one.target_length, dim=one.dim, base=one.base)
        for text, choice in zip(texts, advised, strict=True):
            if text.startswith('"rope_parameters": '):
                found = json.loads("{" + text + "}")["rope_parameters"]
                expected = X.to_transformers(choice.method, dim=one.dim, base=one.base)
                expected["rope_theta"] = math.ceil(expected["rope_theta"])
                defaults = {"beta_slow": 1.0, "beta_fast": 32.0, "truncate": True}
                assert {**defaults, **found} == pytest.approx({**defaults, **expected})
            else:
                call = text.removeprefix("from ropebook.extrapolation import install, make\n\n")
                known = {"install": lambda _, method: method, "make": X.make, "model": None}
                assert eval(call, known) == choice.method


def test_nothing_is_pasted_where_nothing_is_needed():
    body = "return input.map((values) => pasted(compute(values), values));"
    assert js.inside(Advice, body, [Advice(target_length=300).dials(), Advice(base=1).dials()]) == [None, None]


def test_the_corners_in_words():
    cases = [
        Advice(target_length=4096),
        Advice(target_length=300),
        Advice(base=1),
        Advice(dim=4),
        Advice(dim=512, base=1e7, trained_length=16, target_length=2**20, may="base"),
    ]
    same, shorter, known, both, huge = js.describe(Advice, [case.dials() for case in cases])
    assert same == "Nothing is needed: L′ = 4,096 is no longer than L = 4,096."
    assert shorter == "Nothing is needed: L′ = 300 is no longer than L = 4,096."
    assert known.startswith("All 64 pairs complete a turn within L = 4,096: no angle is new at L′")
    assert both.startswith("Both pairs complete a turn within L = 4,096: no angle is new at L′")
    assert huge.endswith("It is above those of the models in the list, which are at most 1,000,000.")
    assert huge.startswith("Set the base to 3.8 × 10⁹⁵ (")


def test_an_angle_that_would_be_rounded_to_zero_is_said_to_be_small():
    found = js.inside(Advice, "return input.map(radians);", [0, 0.0004, 0.25])
    assert found[:2] == ["0", "less than 0.001"]
    assert float(found[2]) == 0.25
