"""Tests of losses by position. They must equal those computed from the full logits, while only a chunk of the logits is
in memory at any time."""

from __future__ import annotations

import pytest
import torch

from ropebook import real
from ropebook.rotary_attention import LlamaModel
from tests.helpers import LargestTensor, seeded
from tests.together import together

pytestmark = pytest.mark.usefixtures("without_gradients")
VOCABULARY = 500


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return LlamaModel(VOCABULARY, 16, 24, 2, 4, 2, tied=True, layout="half").requires_grad_(False)


def text(length):
    return torch.randint(VOCABULARY, (length,), generator=seeded())


@together("piece", [1, 7, 40, 512])
def test_losses_are_those_of_the_logits(model, piece):
    tokens = text(41)
    expected = -model(tokens[None, :-1])[0].log_softmax(-1)[torch.arange(40), tokens[1:]]
    torch.testing.assert_close(real.losses(model, tokens, piece), expected, rtol=1e-5, atol=1e-6)


def test_no_table_of_all_pairs_or_all_logits_is_made(model):
    tokens = text(513)
    with LargestTensor() as seen:
        real.losses(model, tokens, piece=16)
    assert seen.numel < 513 * 96  # a table of all pairs would have 513² numbers, and the logits have 513 · 500


def test_the_model_stays_as_it_is(model):
    head = model.lm_head
    states = real.last_states(model, text(9)[None])
    assert model.lm_head is head
    torch.testing.assert_close(head(states), model(text(9)[None]))
    assert real.losses(model, text(2)).shape == (1,)


@together(
    ("call", "kind", "sentence"),
    [
        (lambda m: real.losses(m, text(1)), ValueError, r"tokens must be \(seq,\), two or more, got \(1,\)"),
        (lambda m: real.losses(m, text(4), piece=0), ValueError, "piece must be an integer >= 1, got 0"),
        (lambda m: real.losses(m, text(4) + VOCABULARY), ValueError, "tokens must lie between 0 and 499"),
        (lambda m: real.by_stretch(torch.zeros(3), 4), ValueError, "stretch must be an integer >= 1 and <= 3, got 4"),
    ],
)
def test_what_cannot_be_read_is_refused(model, call, kind, sentence):
    with pytest.raises(kind, match=sentence):
        call(model)


def test_means_over_stretches():
    values = torch.arange(10.0)
    assert real.by_stretch(values, 3).tolist() == [1, 4, 7]
    assert real.by_stretch(values, 3).dtype == torch.float64
