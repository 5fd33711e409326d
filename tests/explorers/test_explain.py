"""Tests specific to the Explain explorer. The page's script must agree with Python and accept any text."""

from __future__ import annotations

import json
import re
from random import Random

import pytest

from ropebook.explain import RULES, explain, language
from ropebook.explorers.explain import EXAMPLES, Explain
from tests import explain_cases as cases
from tests.explorers import js

TEXTS = [json.dumps(config) for config, _ in cases.CASES.values()]


def theirs(texts, length=None):
    """Return the script's results for these texts, all computed in one Node process."""
    body = """
      return input.texts.map((text) => {
        const { tables, ...rest } = explained(text, RULES, input.length);
        return { ...rest, tables: tables.map(({ facts, ...table }) => table) };
      });
    """
    return js.inside(Explain, body, {"texts": texts, "length": length})


def assert_same(text, found, length=None):
    report = explain(text, length)
    assert found["error"] == report.error, text
    assert found["words"] == report.words, text
    assert found["findings"] == report.findings, text
    assert found["snippets"] == report.snippets, text
    assert [one["name"] for one in found["tables"]] == [one.name for one in report.tables], text
    for one, table in zip(found["tables"], report.tables, strict=True):
        assert one["words"] == table.words, text
        assert one["turned"] == table.turned, text
        assert [one["onCos"] or 0] == pytest.approx([table.on_cos or 0], rel=1e-9), text
        for name in ("plain", "short", "long", "beyond"):
            assert one[name] == pytest.approx(getattr(table, name), rel=1e-9, abs=1e-9), text


@pytest.mark.parametrize("length", [None, 3000, 262144])
def test_both_languages_say_the_same_of_every_case(length):
    for text, found in zip(TEXTS, theirs(TEXTS, length), strict=True):
        assert_same(text, found, length)


def test_both_languages_say_the_same_of_mutated_files():
    random = Random(7)
    texts = [cases.mutated(random) for _ in range(600)]
    for text, found in zip(texts, theirs(texts), strict=True):
        assert_same(text, found)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "\ufeff{}",
        "null",
        "{" + '"a":{' * 60,
        '{"a": "[[[[[[' + "[" * 99 + '"}',
        '{"rope_theta": NaN}',
        '{"rope_theta": 1e999, "model_type": "llama"}',
        '{"__proto__": {"model_type": "llama"}, "constructor": 1, "toString": 2, "model_type": "constructor"}',
        '{"rope_scaling": {"__proto__": 1, "rope_type": "toString", "constructor": {}}}',
        '{"hidden_size": 64, "num_attention_heads": 4, "rope_scaling": {"rope_type": "toString", "factor": 2}}',
        '{"model_type": "llama", "\\ud800": 1, "é犬🐕": 2, "\\u202e": 3, "10": 1, "9": 2}',
        '{"model_type": "<img src=x onerror=alert(1)>", "hidden_size": "<script>"}',
        '{"max_position_embeddings": 123456789012345678901234567890}',
        '{"model_type": "llama", "model_type": "qwen2"}',
    ],
)
def test_odd_texts_end_alike(text):
    (found,) = theirs([text])
    assert_same(text, found)


def test_numbers_are_written_alike():
    random = Random(3)
    numbers = [random.choice([-1, 1]) * 10 ** random.uniform(-12, 22) for _ in range(500)]
    numbers += [0, -0.0, 1, 0.5, 12.125, 999.95, 9999999.5, 1e15, 1e-4, 9.9996e-5, 131072, 0.1 + 0.2, 1234.5, 1000.5]
    found = js.inside(Explain, "return input.map((one) => [numberText(one, 4, true), numberText(one, 6)]);", numbers)
    assert found == [[language.number(one, 4, commas=True), language.number(one, 6)] for one in numbers]


def test_how_much_of_a_text_is_shown_is_the_same():
    found = js.inside(Explain, "return [LONGEST_SHOWN, MOST_ITEMS, UNKNOWN];")
    assert found == [language.LONGEST, language.MOST_ITEMS, language.UNKNOWN]


def test_the_script_never_writes_markup():
    """The script puts text from a file into text nodes, and never turns any of it into elements."""
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(", Explain._esm)


def test_examples_are_read():
    for name, text in EXAMPLES.items():
        report = explain(text)
        assert not report.error
        assert (report.names("wrong") != []) == (name == "mistake")


def test_the_mistakes_of_the_example_are_found():
    found = explain(EXAMPLES["mistake"]).names()
    assert sorted(found) == ["factor-without-original", "unknown-rope-key", "unusual-base"]


def test_what_the_figure_says():
    found = js.describe(
        Explain,
        [
            Explain().dials(),
            Explain(length=4096).dials(),
            Explain(config="<b>").dials(),
            Explain(example="mistake", length=2**24).dials(),
            Explain(config=json.dumps({**cases.LLAMA, "max_position_embeddings": 8})).dials(),
            Explain(config=json.dumps(cases.scaled(cases.LLAMA, rope_type="linear", factor=2.0))).dials(),
            Explain(config=json.dumps(cases.GEMMA3), second=True).dials(),
        ],
    )
    assert found == [
        "Before scaling, 35 of 64 pairs complete a turn within L. In a text of 131,072 tokens, 29 pairs meet new "
        "angles, by up to 6.26 radians.",
        "Before scaling, 35 of 64 pairs complete a turn within L. In a text of 4,096 tokens, no pair meets a new "
        "angle.",
        "The text cannot be read: the text is not JSON, which begins with {.",
        "Before scaling, 54 of 64 pairs complete a turn within L. In a text of 16,777,216 tokens, 10 pairs meet new "
        "angles, by up to 1,475 radians. 3 remarks below.",
        "1 of 64 pairs completes a turn within L. In a text of 8 tokens, no pair meets a new angle.",
        "Without the lengths, it is unknown which pairs meet new angles.",
        "Layers of type sliding_attention: 71 of 128 pairs complete a turn within L. In a text of 1,024 tokens, no "
        "pair meets a new angle.",
    ]


def test_a_rule_is_data_of_both():
    assert js.inside(Explain, "return RULES;") == json.loads(json.dumps(RULES))
