"""Test that records are hidden where the questions say they are, and that answers are counted correctly."""

from __future__ import annotations

import re

import pytest
import torch

from ropebook import real
from ropebook.real.records import NAMES, Block, document, read
from ropebook.rotary_attention import LlamaModel

pytestmark = pytest.mark.usefixtures("without_gradients")
BLOCKS = (Block(400, 6, 4, early=150), Block(900, 10, 8, early=300))


def encode(text):
    return list(text.encode())


@pytest.fixture(params=[0, 1])
def made(request):
    return document([0] * 1000, encode, BLOCKS, seed=request.param)


def test_every_question_has_its_records_before_it(made):
    text = bytes(made.tokens.tolist())
    found = {}
    for match in re.finditer(rb"The code of the (\w+) is (\d{4})\.", text):
        found.setdefault(match[1], []).append((match.start(2), match[2]))
    assert len(found) == len(made.questions) == 28
    asked = {question.at: question for question in made.questions}
    for *records, (at, code) in found.values():
        question = asked.pop(at)
        nearest = records[-1]
        assert bytes(question.digits) == code == nearest[1]
        assert question.distance == at - nearest[0]
        assert len(records) == 1 + (question.rival is not None)
        if question.rival is not None:
            assert question.rival == records[0][1][0] != code[0]
    assert not asked
    assert [sum(one.block == block for one in made.questions) for block in (0, 1)] == [10, 18]
    assert sum(one.rival is not None for one in made.questions) == 12


def test_filler_is_all_that_is_not_a_record_or_a_question(made):
    text = bytes(made.tokens.tolist())
    rest = re.sub(rb"\n\nThe code of the \w+ is \d{4}\.\n\n", b"", text)
    assert rest == bytes(900)
    assert made.filler.tolist() == [byte == 0 for byte in text]


def test_half_of_the_records_lie_early(made):
    for number, block in enumerate(BLOCKS):
        before = [int(made.filler[: one.at - one.distance].sum()) for one in made.questions if one.block == number]
        assert sum(place < block.early for place in before) == len(before) // 2


def test_the_seed_decides(made):
    assert not torch.equal(document([0] * 1000, encode, BLOCKS, seed=2).tokens, made.tokens)
    again = [document([0] * 1000, encode, BLOCKS, seed=2).tokens for _ in range(2)]
    assert torch.equal(*again)


class Told(torch.nn.Module):
    """A head that returns row m of ``told`` as the scores at position m."""

    def __init__(self, told):
        super().__init__()
        self.told = told

    def forward(self, states):
        return self.told[states[..., 0].long()]


def test_answers_are_counted_by_hand(made, monkeypatch):
    """The scores make the model sure of every token, with two exceptions. For one name with two records, it prefers the
    first digit of the rival record. For one name with a single record, it prefers a wrong last digit."""
    length = len(made.tokens)
    monkeypatch.setattr(
        "ropebook.real.records.last_states", lambda model, tokens: torch.arange(length)[None, :, None].float()
    )
    told = torch.zeros(length, 256)
    told[torch.arange(length - 1), made.tokens[1:]] = 20.0
    double = next(i for i, one in enumerate(made.questions) if one.rival is not None)
    single = next(i for i, one in enumerate(made.questions) if one.rival is None)
    one = made.questions[double]
    told[one.at - 1, one.rival] = 23.0
    other = made.questions[single]
    told[other.at + 2, 1] = 30.0
    model = torch.nn.Module()
    model.lm_head = Told(told)
    found = read(model, made)
    wrong = [i for i, answer in enumerate(found.answers) if not answer.recalled]
    assert wrong == sorted((double, single))
    assert found.answers[double].prefers == pytest.approx(-3.0)
    assert found.answers[single].prefers is None
    assert found.answers[single].nats == pytest.approx(10.0, abs=1e-3)
    assert found.answers[double].nats == pytest.approx(3.0 + 0.0486, abs=1e-3)  # log(1 + e^-3)
    right = [answer for i, answer in enumerate(found.answers) if i not in wrong]
    assert max(answer.nats for answer in right) < 1e-5
    assert len(found.losses) == length - 1


def test_losses_are_those_of_the_whole_text(made):
    torch.manual_seed(0)
    model = LlamaModel(256, 16, 24, 2, 4, 2, layout="half").requires_grad_(False)
    torch.testing.assert_close(read(model, made).losses, real.losses(model, made.tokens))


def test_names_are_different():
    assert len(set(NAMES)) == len(NAMES) >= 72


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (([0] * 100, encode, [Block(101, 1, 0, early=50)], 0), "filler must be an integer >= 101, got 100"),
        (([0] * 100, encode, [Block(90, 80, 9, early=50)], 0), "questions must be"),
        (([0] * 100, encode, [Block(90, 1, 0, early=9), Block(80, 1, 0, early=9)], 0), "blocks must come in order"),
        (([0] * 100, encode, [Block(90, 1, 0, early=90)], 0), "early must be"),
    ],
)
def test_what_does_not_fit_is_refused(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        document(*call)
