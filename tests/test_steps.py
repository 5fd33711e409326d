"""Tests of what pages ask their readers to try: every step can be set up, isn't yet done when it begins, and can be
done."""

from __future__ import annotations

import importlib.util
import re

import pytest
from docutils import nodes

from tests.explorers import js
from tests.explorers.registry import ALL
from tools.markdown import Writer
from tools.paths import ROOT, pages

_spec = importlib.util.spec_from_file_location("steps", ROOT / "book" / "_ext" / "steps.py")
steps = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(steps)

BLOCK = re.compile(r"^```\{try\} (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KINDS = {entry.name: entry.kind for entry in ALL}

STEPS = [
    (path.stem, explorer, k, step)
    for path in pages()
    for explorer, body in BLOCK.findall(path.read_text(encoding="utf-8"))
    for k, step in enumerate(steps.steps_of(body.split("\n")), start=1)
]

# Where a step begins, and whether it can be done with one or two dials. The search tries a slider's stops and ends, and
# all options.
LOOK = """
  const { start, goal } = input;
  const opening = Object.fromEntries(figure.dials.map(({ trait }) => [trait, input.opening[trait]]));
  const at = (values) => isMet(goal, figure.dials, values, figure.compute({ ...input.opening, ...values }));
  const found = readDials(figure.dials, opening, settingsOf(start));
  const home = figure.settle ? figure.settle(found.values) : found.values;
  const lost = figure.dials.filter(({ trait }) => !same(home[trait], found.values[trait])).map(({ trait }) => trait);
  const answer = { refusals: found.refusals, lost, done: at(home), possible: false };
  const named = settingsOf(goal.replace(/[<>!]/g, "=")).map(([trait]) => trait);
  const stops = (dial) => {
    if (dial.kind === "switch") return [true, false];
    if (dial.kind === "choice") return dial.options;
    if (dial.kind === "text") return Array.isArray(home[dial.trait]) ? [[...home[dial.trait]].reverse()] : [];
    return Array.from({ length: 61 }, (_, k) => fromSlider(dial, (k * 1000) / 60));
  };
  const turns = (values, dials) => dials.flatMap((dial) => stops(dial).map((stop) => {
    const turned = { ...values, [dial.trait]: stop };
    return figure.settle ? figure.settle(turned) : turned;
  }));
  const one = turns(home, figure.dials);
  const few = figure.dials.filter(({ trait }) => named.includes(trait));
  const tried = function* () { yield* one; for (const values of turns(home, few)) yield* turns(values, few); };
  for (const values of tried()) if (at(values)) { answer.possible = true; break; }
  return answer;
"""


def test_the_book_has_steps():
    figures = {explorer for _, explorer, _, _ in STEPS}
    assert len(figures) >= 13
    assert figures <= set(KINDS)


@pytest.mark.parametrize("page, explorer, number, step", STEPS, ids=lambda one: str(one) if str(one).isalnum() else "")
def test_a_step_can_be_set_up_and_done(page, explorer, number, step):
    told = {"start": step.start, "goal": step.goal, "opening": KINDS[explorer]().dials()}
    found = js.inside(KINDS[explorer], LOOK, told)
    assert found == {"refusals": [], "lost": [], "done": False, "possible": True}


def test_a_page_asks_before_it_tells():
    """Each block has a question, so that the reader predicts first."""
    for path in pages():
        for _, body in BLOCK.findall(path.read_text(encoding="utf-8")):
            assert "?" in body


# ---- The directive ----


def test_steps_are_read():
    found = steps.steps_of(["Do this.", "And that?", "start: a=1&b=on", "goal: a>=2", "", "Then?", "goal: b=off", ""])
    assert found == [
        steps.Step("Do this.\nAnd that?", 0, "a=1&b=on", "a>=2"),
        steps.Step("Then?", 5, "", "b=off"),
    ]


@pytest.mark.parametrize(
    "lines, complaint",
    [
        ([""], "a figure has 1 to 3 steps, got 0"),
        (["Do.", "goal: a=1", ""] * 4, "a figure has 1 to 3 steps, got 4"),
        (["Do."], "a step is a sentence, start: and goal:, in this order; got 'Do.'"),
        (["start: a=1", "goal: a=2"], "a step is a sentence"),
        (["goal: a=2", "Do."], "a step is a sentence"),
    ],
)
def test_what_is_no_step_is_refused(lines, complaint):
    with pytest.raises(ValueError, match=re.escape(complaint)):
        steps.steps_of(lines)


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


def test_in_a_notebook_the_sentences_stand_as_a_list():
    listed = nodes.enumerated_list()
    for sentence in ("Turn it.", "Turn it back."):
        listed += steps.Item("", nodes.paragraph("", sentence), explorer="turn", start="", goal="position>3")
    title = nodes.paragraph("", "", nodes.strong("", "Try this"))
    block = nodes.container("", title, listed, classes=["try"])
    writer = Writer(None, "book/turn", lambda index, shown: [], lambda page: False, {})
    assert writer.block(block) == "**Try this**\n\n1. Turn it.\n2. Turn it back."
