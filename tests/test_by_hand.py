"""Tests of the exercises to solve by hand. The table of answers must be correct. Python and the page's script must give
the same verdict on every answer."""

from __future__ import annotations

import math
import re

import pytest
import torch

from ropebook import attention, complex_plane, decay, derivation, efficient, rope, sinusoidal
from ropebook import extrapolation as X
from ropebook.exercises import EXERCISES, Chosen, Numbers, check
from ropebook.exercises.answers import Field, read
from ropebook.exercises.by_hand import BY_HAND
from tests.explorers import js
from tests.scripts import extension
from tests.together import together
from tools.paths import BOOK

SCRIPT = (BOOK / "_static" / "answers.js").read_text(encoding="utf-8")
NUMBERS = {name: one for name, one in EXERCISES.items() if isinstance(one, Numbers)}
CHOSEN = {name: one for name, one in EXERCISES.items() if isinstance(one, Chosen)}
READ = [
    "12", " 1,024 ", "1 024", "1\u202f024.5", "1_000", ".5", "0.5", "-3", "−3", "+3", "1e6", "1E-3", "1e−3",
    "57%", "57 %", "4/7", "4 / 7", "2·3×4*5", "π", "2π", "2 pi", "8Pi/3", "−π/2", "1/0", "1e999", "", " ", "a",
    "1,02", "0,57", "1 3/4", "--1", "1/", "1e", "1..2", "٣", "²", "Infinity", "NaN", "0x10", "cos 3", "3" * 400,
]  # fmt: skip


@pytest.fixture
def answers(monkeypatch):
    monkeypatch.syspath_prepend(str(BOOK / "_ext"))
    return extension("answers")


# --- The rules --------------------------------------------------------------------------------------------------------


def written(values):
    """Format numbers as a reader would type them."""
    return ", ".join(repr(float(value)) for value in values)


def with_mistake(exercise, values):
    return [written(one or field.values) for field, one in zip(exercise.fields, values, strict=True)]


@together("name", NUMBERS)
def test_right_numbers_are_right_and_each_mistake_has_its_name(name):
    exercise = NUMBERS[name]
    right = [written(field.values) for field in exercise.fields]
    assert check(name, right).right
    for mistake, (values, said) in exercise.mistakes.items():
        found = check(name, with_mistake(exercise, values))
        assert (found.mistake, found.said) == (mistake, said)


@together("name", NUMBERS)
def test_one_number_that_is_off_is_quoted(name):
    exercise = NUMBERS[name]
    for place, field in enumerate(exercise.fields):
        off = [list(one.values) for one in exercise.fields]
        off[place][-1] = 12345.5
        found = check(name, [written(one) for one in off])
        assert found.mistake == "other"
        assert "12345.5" in found.said
        assert len(exercise.fields) == len(field.values) == 1 or field.label in found.said


def test_of_two_that_are_wrong_the_first_is_quoted():
    exercise = Numbers([Field("a", (1,)), Field("b", (2, 3))], {}, "fine")
    assert "“a”: 7 isn't" in exercise.check(["7", "8, 9"]).said
    assert "number 1 of “b”: 8 isn't" in exercise.check(["1", "8, 9"]).said
    assert "number 2 of “b”: 9 isn't" in exercise.check([1, (2, 9)]).said


def test_what_cannot_be_compared_is_named():
    exercise = Numbers([Field("a", (1,)), Field("b", (2, 3))], {}, "fine")
    kinds = {"": "missing", "x": "unreadable"}
    assert {text: exercise.check([text, "2 3"]).mistake for text in kinds} == kinds
    assert exercise.check(["1", "2"]).mistake == "count"
    assert exercise.check(["1", "2 y"]).said.startswith("“y” can't be read")
    assert exercise.check("1").mistake == "count"
    assert exercise.check(...).mistake == exercise.check(None).mistake == "nothing"
    assert exercise.check([1.0, "(2; 3)"]).right


def test_how_far_off_an_answer_may_be():
    exercise = Numbers([Field("a", (200,), 0.01)], {}, "fine")
    assert [exercise.check(x).right for x in (198, 202, 197.9, 202.1)] == [True, True, False, False]
    whole = Numbers([Field("a", (46,), 0.0)], {}, "fine")
    assert [whole.check(x).right for x in (46, 46.01, 45)] == [True, False, False]
    zero = Numbers([Field("a", (0,), 0.01)], {}, "fine")
    assert [zero.check(x).right for x in (0, 0.01, 0.02)] == [True, True, False]


# --- Python and JavaScript --------------------------------------------------------------------------------------------


def test_both_read_the_same_numbers():
    theirs = js.evaluate(SCRIPT, "return input.map(globalThis.answers.read);", READ)
    for text, found in zip(READ, theirs, strict=True):
        ours = read(text)
        if ours is not None and math.isinf(ours):  # JSON can't represent infinity
            ours = None
        assert found == (None if ours is None else pytest.approx(ours, rel=1e-15)), text


def tried(exercise):
    """Yield answers of every type: correct, a known mistake, slightly off, empty, unreadable, and with too many
    numbers."""
    right = [written(field.values) for field in exercise.fields]
    yield right
    yield from (with_mistake(exercise, values) for values, _ in exercise.mistakes.values())
    for place in range(len(right)):
        for text in (
            "",
            "  ",
            "x",
            "1 2 3 4 5",
            "12345.5",
            "1/0",
            "0",
            "−1",
            "(1; 2, 3 4)",
            "1,2,x,4",
            "4,096",
            "4 096",
        ):
            yield [*right[:place], text, *right[place + 1 :]]
    for times, more in ((1.0049, 0), (0.9951, 0), (1.0051, 0), (1.05, 0), (1, 0.004), (1, 0.009), (1, 0.011)):
        yield [written(times * value + more for value in field.values) for field in exercise.fields]


MADE_UP = {
    "zero": Numbers([Field("a", (0,), 0.01)], {}, "fine."),
    "exact": Numbers([Field("a", (46,), 0.0), Field("b", (0, -2))], {"sign": ([None, (0, 2)], "a minus.")}, "fine."),
}


@together("name", [*NUMBERS, *MADE_UP])
def test_both_say_the_same_of_numbers(name):
    exercise = {**NUMBERS, **MADE_UP}[name]
    cases = list(tried(exercise))
    body = "return input.cases.map((one) => globalThis.answers.mark(one, input.rules));"
    theirs = js.evaluate(SCRIPT, body, {"cases": cases, "rules": exercise.rules()})
    ours = [exercise.check(one) for one in cases]
    assert theirs == [{"right": one.right, "said": one.said} for one in ours]
    assert {True, False} == {one.right for one in ours}


@pytest.mark.parametrize("name", CHOSEN)
def test_both_say_the_same_of_choices(name, answers):
    exercise = CHOSEN[name]
    body = "return input.cases.map((one) => globalThis.answers.mark([one], input.rules));"
    cases = list(exercise.options)
    theirs = js.evaluate(SCRIPT, body, {"cases": [*cases, "", "constructor"], "rules": answers.rules(exercise)})
    ours = [check(name, one) for one in cases]
    assert theirs[:-2] == [{"right": one.right, "said": one.said} for one in ours]
    assert theirs[-2:] == 2 * [{"right": False, "said": answers.CHOOSE}]


# --- The table is right -----------------------------------------------------------------------------------------------


def right(name):
    values = [value for field in BY_HAND[name].fields for value in field.values]
    return values if len(values) > 1 else values[0]


def test_the_weights_are_those_of_the_page():
    q = torch.tensor([[1, 1, 0, 0]]).double()
    k = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]]).double() * math.log(4)
    _, weights = attention.scaled_dot_product_attention(q, k, k, scale=1.0, return_weights=True)
    assert right("attention: without the scale") == pytest.approx(weights[0].tolist())
    cost = attention.attention_cost(seq_len=right("attention: where the square wins"), head_dim=128, n_heads=32)
    assert cost.projection_flops == cost.attention_flops


def test_the_products_and_the_base_are_those_of_the_encoding():
    one, other = sinusoidal.encoding([1000003, 1000000], 4, dtype=torch.float64)
    assert right("sinusoidal: three apart") == pytest.approx((one @ other).item(), abs=1e-9)
    slowest = rope.wavelengths(64, right("sinusoidal: an hour hand"))[-1]
    assert slowest.item() == pytest.approx(4096)


def test_the_scores_are_largest_where_the_table_says():
    q, k = torch.tensor([1.0, 0]).double(), torch.tensor([math.cos(1), math.sin(1)]).double()
    distances = torch.arange(-100, 101)
    scores = torch.stack([derivation.score(q, k, int(m) + 200, 200) for m in distances])
    best, *second = distances[scores.argsort(descending=True)].tolist()[:3]
    assert right("derivation: where it looks") == [
        best,
        pytest.approx(scores.max().item()),
        *sorted(second, reverse=True),
    ]
    a, b = complex_plane.amplitudes(q, torch.tensor([0.0, 1]).double())
    assert right("complex plane: a pure sine") == int(complex_plane.score_at(range(11), a, b).argmax())
    for fast, slow in zip((2 * math.pi + 0.01, 2 * math.pi - 1), right("derivation: faster than fast"), strict=True):
        assert math.remainder(fast, 2 * math.pi) == pytest.approx(slow)


def test_the_halves_are_rotated_as_the_module_does():
    q = torch.tensor([1.0, 2, 3, 4]).double()
    turn, result, order = (one.values for one in BY_HAND["efficient: halves by hand"].fields)
    assert turn == tuple(efficient.rotate_half(q).tolist())
    assert result == pytest.approx(derivation.rotate(q, 2, layout="half").tolist())
    assert order == tuple(q[efficient.half_to_interleaved(4)].tolist())


def test_the_two_pairs_are_those_of_base_16():
    *theta, first = right("decay: two pairs")
    assert theta == rope.inv_freq(4, 16).tolist()
    assert first == decay.reach(16, dim=4, limit=100)


def test_the_extensions_are_those_of_the_methods():
    llama, L = rope.inv_freq(128), 4096
    pair, factor = right("extrapolation: how large")
    assert pair == int(X.turned(llama, L).sum()) == right("extrapolation: which base")[0]
    for s, new in ((factor, False), (0.99 * factor, True)):
        assert (X.overshoot(llama, L, 4 * L, X.NTKAware(s)(llama)[0]).max() > 1e-9) == new
    assert right("extrapolation: by parts") == pytest.approx(
        X.stretch(X.NTKByParts(2.0, 2048), rope.inv_freq(8)).tolist()
    )
    longest = int(right("extrapolation: which base")[1])
    changed, _ = X.BaseChange(1e7)(llama)
    assert X.overshoot(llama, L, longest, changed).max() == 0 < X.overshoot(llama, L, longest + 1, changed).max()


# --- The pages --------------------------------------------------------------------------------------------------------

PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(BOOK.glob("*.md"))}
FORM = re.compile(r"```\{answer\} (.+)\n```")


def test_every_choice_and_every_exercise_by_hand_has_its_form():
    found = [name for text in PAGES.values() for name in FORM.findall(text)]
    assert sorted(found) == sorted([*NUMBERS, *CHOSEN])


def test_a_form_is_hidden_without_a_script_and_escapes_what_it_shows(answers):
    form = answers.form("efficient: halves by hand")
    assert form.startswith('<form class="answer noprint" data-exercise="efficient: halves by hand" hidden>')
    assert form.count("<input") == 3
    assert "<code>q1, q2</code>" in answers.form("derivation: bug")
    assert "<code>" not in answers.form("attention: empty rows")
    assert form.count("<script") == form.count("</script>") == 1


@together("page", PAGES)
def test_a_solution_that_is_closed_hides_its_code_as_well(page):
    """A closed box labelled "Solution" must also hide the code below it, because the code would give the solution
    away."""
    after = re.findall(r"\{admonition\} Solution.*?\n:::+\n\n```\{code-cell\} python\n(.*?)```", PAGES[page], re.DOTALL)
    assert [cell for cell in after if not re.search(r"\b(hide-cell|remove-cell)\b", cell)] == []
