"""Tests of the build's check that measured quantities in the prose come from cells."""

from __future__ import annotations

import yaml

from tests.scripts import extension
from tests.together import together
from tools.paths import pages

quantities = extension("quantities")


@together(
    "sentence",
    [
        *("It takes 4.97 ms.", "Some 40 MiB are new.", "It is 85% of that.", "It takes half as long again."),
        *("It is twice as fast.", "It needs ten seconds.", "Eighty times as long, or 3.5 times as long."),
    ],
)
def test_a_typed_quantity_is_seen(sentence):
    assert quantities.problems(sentence, ())


@together(
    "sentence",
    [
        "It takes {glue:text}`time:.2f` ms and {glue:text}`share:.0f`%.",
        "```{code-cell} python\nprint('takes 4 ms')\n```\n",
        "Pair 3 turns by $90$ degrees in 16 bits, see `limit = '5 s'`.",
    ],
)
def test_what_a_cell_says_and_what_is_no_measurement_may_stand(sentence):
    assert quantities.problems(sentence, ()) == []


@together("text", ["{glue:text}`share:.0f` %", "{90} %", "85\u00a0% of it"])
def test_a_space_before_a_percent_sign_is_refused(text):
    assert any(problem.startswith("writes ") for problem in quantities.problems(text, ["85\u00a0%"]))
    assert not any(problem.startswith("writes ") for problem in quantities.problems("7% and `8 % 3 == 2`", ()))


@together(
    "text",
    [
        *("Texts of 4096 tokens.", "A base of 10000, or more.", "*L* = 8192", "It is 2000π.", "It is 1536/256."),
        *("A 2048-byte text", "Up to 2048.", "```{try}\nHow far is 1000?\n```\n", "| 1024 |"),
        '```{code-cell} python\n:tags: [remove-input]\ntable(x, caption="Texts of 4096 tokens")\n```\n',
        '```{code-cell} python\n---\ntags: [x]\n---\nalt = f"{n} of 4096 tokens"\n```\n',
    ],
)
def test_a_long_number_without_commas_is_refused(text):
    [number] = quantities.ungrouped(text)
    assert f"writes {number} without a comma: {int(number):,}" in quantities.problems(text, ())


@together(
    "text",
    [
        *("Texts of 4,096 tokens, in August 2026.", "On 2026-11-23", "From `1024` to $2048$", "Llama-2-7b-4096"),
        *("# Why 10000?", 'They ask, "is it 4096?"', "arXiv:2104.09864", "issue 27226", "[here](https://a.b/123456)"),
        "```{try}\nstart: base=10000&length=4096\n```\n",
        '```{code-cell} python\nrows[1024] = "2048"\n```\n',
    ],
)
def test_code_names_years_headings_and_quotations_need_no_commas(text):
    assert quantities.ungrouped(text) == []


def test_what_may_be_typed_is_listed_and_the_list_is_of_what_is_typed():
    text = "It takes 4 ms, or 5 ms."
    assert quantities.problems(text, ["4 ms", "5 ms"]) == []
    assert quantities.problems(text, ["4 ms"]) == ["types '5 ms': take it from a cell, or list it in _given.yml"]
    assert quantities.problems(text, ["4 ms", "5 ms", "6 ms"]) == ["doesn't type '6 ms', which _given.yml lists"]


def test_every_build_checks_every_page(monkeypatch, tmp_path):
    """If the list names only a missing page, the check must report that page and every page that needs an entry."""
    warnings = []
    monkeypatch.setattr(quantities.LOGGER, "warning", lambda text, **where: warnings.append((text, where)))
    quantities.check(None)
    assert warnings == []
    given = yaml.safe_load(quantities.GIVEN.read_text(encoding="utf-8"))
    assert given.keys() < {path.stem for path in pages()}
    monkeypatch.setattr(quantities, "GIVEN", tmp_path / "_given.yml")
    (tmp_path / "_given.yml").write_text("no_page: [5 ms]")
    quantities.check(None)
    assert {where["location"] for _, where in warnings[1:]} == {f"book/{name}" for name in given}
    assert warnings[0] == ("_given.yml names no_page, which is no page", {"type": "quantity"})
