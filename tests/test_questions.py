"""Test that the answer to each question contains a number from a cell, and links to a section or an equation that
exists."""

from __future__ import annotations

import re

import torch

from ropebook import rope
from tests.links import LINK, ROLE, lost, prose, typed_numbers
from tests.together import together

PAGE = "questions.md"
GROUPS = ("Learning", "Implementing", "Converting", "Extending", "Debugging: symptom, cause, fix")
# These numbers are assumptions of examples, not results.
PREMISES = {
    "0",
    "1",
    "2",
    "4",
    "8",
    "13",
    "32",
    "64",
    "65",
    "90",
    "128",
    "1,000",
    "1,024",
    "2,047",
    "4,096",
    "10,000",
    "500,000",
    "8k",
    "32k",
    "128k",
    "0/0",
}


def questions() -> dict[str, dict[str, str]]:
    groups = re.split(r"^## (.+)\n", prose(PAGE), flags=re.M)[1:]
    found = {}
    for title, body in zip(groups[::2], groups[1::2], strict=True):
        parts = re.split(r"^### (.+)\n", body, flags=re.M)
        found[title] = dict(zip(parts[1::2], parts[2::2], strict=True))
    return found


QUESTIONS = [(question, answer) for group in questions().values() for question, answer in group.items()]


def test_there_are_forty_and_more_by_what_one_is_doing():
    assert tuple(questions()) == GROUPS
    assert len(QUESTIONS) >= 40
    assert all(len(group) >= 5 for group in questions().values())


def test_every_link_lands_and_every_number_is_glued():
    assert lost(PAGE) == []


@together(("question", "answer"), QUESTIONS, ids=[question for question, _ in QUESTIONS])
def test_an_answer_is_short_has_its_number_and_says_where_it_is_shown(question, answer):
    text, where = answer.split("Explained under [](", 1)
    assert len(re.findall(r"[.:?](?:\s|$)", re.sub(r"\*(?:Cause|Fix):\*", "", text))) <= 5, "one to three sentences"
    assert {role for role, _ in ROLE.findall(text)} & {"glue:text", "eq"}, "no number"
    assert set(typed_numbers(text)) <= PREMISES
    assert not where.startswith("http")
    threads = LINK.findall("[](" + where)[1:]
    assert all(target.startswith("https://") for target in threads)


def test_most_were_asked_somewhere():
    asked = [question for question, answer in QUESTIONS if "](https://" in answer]
    assert len(asked) >= 40


@together(("question", "answer"), [one for one in questions()[GROUPS[-1]].items()])
def test_a_symptom_has_its_cause_and_its_fix(question, answer):
    assert answer.index("*Cause:*") < answer.index("*Fix:*")


def test_the_exponent_over_half_of_d_is_the_right_one():
    """i/(d/2) equals 2i/d. Without this check, readers of the linked thread might think that the correct code is the
    wrong one."""
    answer = questions()["Learning"]["Is *d* the width of the model or of a head?"]
    [code] = re.findall(r"`(arange\([^`]*)`", answer)
    exponent = eval(code, {"arange": torch.arange, "d": 128})
    assert torch.allclose(10_000.0 ** -exponent.double(), rope.inv_freq(128))
    assert f"`{code}` in the exponent is right as well" in re.sub(r"\s+", " ", answer)
