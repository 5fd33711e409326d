"""Tests of the steps that pages ask their readers to try. Every step can be set up, isn't already done at that point,
and can be done. The answer marked as right must be right."""

from __future__ import annotations

import re

import pytest
import torch
from docutils import nodes
from docutils.core import publish_doctree
from docutils.parsers.rst import directives

from ropebook.explorers.alive import TRAINED, text_of
from ropebook.explorers.measured import Measured
from ropebook.lab import reading
from tests.explorers import js
from tests.explorers.registry import ALL
from tests.scripts import extension
from tests.step_truths import HELPERS, TRUTHS
from tests.together import together
from tools.markdown import Writer
from tools.paths import pages

steps = extension("steps")

BLOCK = re.compile(r"^```\{try\} (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# the numbers in the registry's figure are made up
KINDS = {entry.name: entry.kind for entry in ALL} | {"measured": Measured}

STEPS = [
    (path.stem, explorer, k, step)
    for path in pages()
    for explorer, body in BLOCK.findall(path.read_text(encoding="utf-8"))
    for k, step in enumerate(steps.steps_of(body.split("\n")), start=1)
]

# Computes the settings at which a step begins, and those that "just show me" leads to. `at` computes what the figure
# shows at such settings.
SET = """
  const { start, show, goal } = input;
  const opening = Object.fromEntries(figure.dials.map(({ trait }) => [trait, input.opening[trait]]));
  const settled = (values) => (figure.settle ? figure.settle(values) : values);
  const read = (text) => readDials(figure.dials, opening, settingsOf(text));
  const valuesAt = (text) => ({ ...input.opening, ...settled(read(text).values) });
  const home = read(start);
  const shown = read(together(start, show));
  const met = (text) => isMet(goal, figure.dials, valuesAt(text), figure.compute(valuesAt(text)));
  const at = (text) => figure.compute(valuesAt(together(start, text)));
"""
LOOK = """
  const lost = [[home, start], [shown, together(start, show)]].flatMap(([{ values }, text]) => {
    return figure.dials.filter(({ trait }) => !same(valuesAt(text)[trait], values[trait])).map(({ trait }) => trait);
  });
  return { refusals: [...home.refusals, ...shown.refusals], lost, done: met(start), shown: met(together(start, show)) };
"""
WAITS = "&fresh=1"  # the small model must have read the text first, which it does outside the page


def told(explorer: str, step: steps.Step) -> dict:
    return {**step._asdict(), "goal": step.goal.removesuffix(WAITS), "opening": KINDS[explorer]().dials()}


def test_the_book_has_steps():
    figures = {explorer for _, explorer, _, _ in STEPS}
    assert figures == set(KINDS), "every figure asks something"


@pytest.mark.parametrize("page, explorer, number, step", STEPS, ids=lambda one: str(one) if str(one).isalnum() else "")
def test_a_step_can_be_set_up_and_done(page, explorer, number, step):
    found = js.inside(KINDS[explorer], SET + LOOK, told(explorer, step))
    assert found == {"refusals": [], "lost": [], "done": False, "shown": True}


@pytest.mark.parametrize("page, explorer, number, step", STEPS, ids=lambda one: str(one) if str(one).isalnum() else "")
def test_the_right_answer_is_right(page, explorer, number, step):
    if explorer == "alive":
        return  # a separate test covers this explorer
    condition = TRUTHS[page, explorer, number]
    body = f"{SET} {HELPERS} const [a, b] = [at(''), at(show)]; return Boolean({condition});"
    assert js.inside(KINDS[explorer], body, told(explorer, step)), condition


def test_no_truth_is_left_over():
    asked = {(page, explorer, number) for page, explorer, number, _ in STEPS if explorer != "alive"}
    assert asked == set(TRUTHS)


def test_what_the_small_model_reads_is_as_its_steps_say():
    def bits(length, base=10_000.0, method="none"):
        read = reading.read(text_of("classes", "", length), reading.reader(method=method, base=base, factor=4.0)).bits
        return torch.as_tensor(read)

    plain = bits(768)
    within = plain[:TRAINED].mean()
    assert plain[TRAINED : TRAINED + 100].mean() < 1.3 * within  # it still reads well soon after the trained length
    assert plain[TRAINED + 130 : TRAINED + 160].mean() > 2.5 * within
    assert plain[TRAINED + 160 :].mean() > 3 * within
    # the bump right after the trained length comes from the text
    bump = slice(TRAINED, TRAINED + 20)
    assert bits(768, method="yarn")[bump].mean() > plain[bump].mean() > 1.5 * within
    stretched = bits(768, method="linear")
    assert stretched[:TRAINED].mean() > 3 * within
    # nothing changes at the trained length
    assert stretched[TRAINED:].mean().item() == pytest.approx(stretched[:TRAINED].mean().item(), rel=0.1)
    for base in (50_000.0, 100_000.0, 320_000.0):
        raised = bits(1024, base)
        assert raised[TRAINED:].mean() < 0.5 * bits(1024)[TRAINED:].mean()
        assert raised[:TRAINED].mean() > 1.1 * within


def test_a_page_asks_before_it_tells():
    """Each block must contain a question, so that readers predict something before they see it."""
    for path in pages():
        for _, body in BLOCK.findall(path.read_text(encoding="utf-8")):
            assert "?" in body


# ---- The directive ----


ONE = ["Do this.", "And that?", "answers: Yes | *No", "start: a=1", "show: b=on", "goal: a>=2", "why: So.", "Or so."]


def without(field: str) -> list[str]:
    return [line for line in ONE if not line.startswith(field)]


def changed(field: str, text: str) -> list[str]:
    return [text if line.startswith(field) else line for line in ONE]


def test_steps_are_read():
    first, second = steps.steps_of([*ONE, "", "Then?", *without("start")[2:-1], ""])
    assert first == steps.Step("Do this.\nAnd that?", 0, ("Yes", "No"), 1, "a=1", "b=on", "a>=2", "", "So.\nOr so.", 6)
    assert (second.sentence, second.line, second.start, second.why, second.why_line) == ("Then?", 9, "", "So.", 13)


def test_the_right_answer_is_the_one_with_an_asterisk_too_many():
    for text, answers, right in [
        ("*A | B", ("A", "B"), 0),
        ("*m* stays | *It *moves* | Both", ("*m* stays", "It *moves*", "Both"), 1),
        ("None | **m* stays", ("None", "*m* stays"), 1),
    ]:
        assert steps.answers_of(text) == (answers, right)


@together(
    "lines, complaint",
    [
        ([""], "a figure has 1 to 3 steps, got 0"),
        ([*ONE, ""] * 4, "a figure has 1 to 3 steps, got 4"),
        (without("answers"), "a step needs answers:, missing from 'Do this."),
        (without("why")[:-1], "a step needs why:"),
        (without("show"), "a step needs show:"),
        (without("goal"), "a step needs goal:"),
        (changed("why", "why:")[:-1], "a step needs why:"),
        (ONE[2:], "a step begins with its question, got 'answers: Yes | *No'"),
        ([*ONE, "why: Again."], "a step has one why:, got two in 'Do this.'"),
        (changed("answers", "answers: *Yes"), "a step has 2 to 4 answers, got '*Yes'"),
        (changed("answers", "answers: *A | B | C | D | E"), "a step has 2 to 4 answers"),
        (changed("answers", "answers: *A | "), "a step has 2 to 4 answers"),
        (changed("answers", "answers: Yes | No"), "one answer is right and has an asterisk before it, got 0 in"),
        (changed("answers", "answers: *Yes | *No"), "one answer is right and has an asterisk before it, got 2 in"),
        ([*ONE, "hides: all"], "hides: must be words or curves, got 'all'"),
    ],
)
def test_what_is_no_step_is_refused(lines, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        steps.steps_of(lines)


def page_of(*lines: str) -> nodes.document:
    """Return the document that docutils builds from a `{try}` block. The block is written as a docutils directive,
    whose lines look the same as in Markdown."""
    directives.register_directive("try", steps.Try)
    source = ".. try:: lock\n\n" + "".join(f"   {line}\n" for line in lines)
    return publish_doctree(source, settings_overrides={"report_level": 5, "halt_level": 5})


def test_question_answers_and_reason_are_text():
    lines = ["Does *m* move?", "answers: *m* does | *No | Both", "show: b=on", "goal: a>=2", "why: It is *fixed*."]
    (item,) = page_of(*lines).findall(steps.Item)
    question, answers, why = item.children
    assert question.astext() == "Does m move?"
    assert [one.astext() for one in answers] == ["m does", "No", "Both"]
    assert why.astext() == "No. It is fixed."
    assert len(list(item.findall(nodes.emphasis))) == 3
    told = {name: item[name] for name in ("explorer", "right", "start", "show", "goal", "hides")}
    assert told == {"explorer": "lock", "right": "1", "start": "", "show": "b=on", "goal": "a>=2", "hides": ""}
    (message,) = page_of(*lines[:1], *lines[2:]).findall(nodes.system_message)
    assert "a step needs answers:" in message.astext()


def test_goals_compare_dials_and_numbers():
    dials = [
        {"trait": "n", "kind": "number", "min": 0, "max": 9, "whole": True},
        {"trait": "on", "kind": "switch"},
        {"trait": "kind", "kind": "choice", "options": ["a", "b"]},
    ]
    goals = ["n>=3", "n>3", "n<=3", "n<3", "n=3", "n!=3", "on=on", "on!=on", "kind=a&sum<0.5", "kind=b", "sum=0.25"]
    body = """
      const [dials, goals] = input;
      return goals.map((goal) => isMet(goal, dials, { n: 3, on: true, kind: "a" }, { sum: 0.25 }));
    """
    told = [True, False, True, False, True, False, True, False, True, False, True]
    assert js.kit(body, [dials, goals]) == told
    for goal, complaint in [
        ("n", "a goal must look like name>=number"),
        ("n=>3", "a goal must look like"),
        ("m>=3", "no dial and no number “m”"),
        ("kind>3", "is not a number"),
        ("n>=many", "is not a number"),
    ]:
        with pytest.raises(RuntimeError, match=complaint):
            js.kit(body, [dials, [goal]])


def test_a_question_is_a_list_with_its_answer_in_a_notebook():
    listed = nodes.enumerated_list()
    for sentence in ("Turn it?", "Turn it back?"):
        answers = nodes.bullet_list("", *(nodes.list_item("", nodes.paragraph("", one)) for one in ("Yes", "No")))
        why = nodes.container("", nodes.paragraph("", "", nodes.strong("", "No."), nodes.Text(" It is fixed.")))
        told = {name: "" for name in ("start", "show", "hides")}
        listed += steps.Item(
            "", nodes.paragraph("", sentence), answers, why, explorer="turn", goal="position>3", right="1", **told
        )
    title = nodes.paragraph("", "", nodes.strong("", "Try this"))
    block = nodes.container("", title, listed, classes=["try"])
    writer = Writer(None, "book/turn", lambda index, shown: [], lambda page: False, {})
    found = writer.block(block)
    assert found.startswith("**Try this**\n\n1. Turn it?\n")
    assert "   - Yes\n   - No\n" in found
    assert found.count("**No.** It is fixed.") == 2
