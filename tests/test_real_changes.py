"""Tests of a Llama in which some pairs are slowed down, and of a Llama with methods for longer texts. Both are compared
with transformers' Llama with the same frequencies."""

from __future__ import annotations

import pytest
import torch

from ropebook import real
from ropebook.extrapolation import make
from ropebook.real.changes import Change, slow, slowed
from ropebook.rotary_attention import LlamaModel
from tests import tiny_gguf
from tests.rotary_attention_helpers import error
from tests.together import together

pytestmark = pytest.mark.usefixtures("without_gradients")
TOKENS = torch.randint(300, (1, 60), generator=torch.Generator().manual_seed(0))


@pytest.fixture
def theirs():
    return tiny_gguf.llama()


@pytest.fixture
def ours(theirs):
    return LlamaModel.from_transformers(theirs.state_dict(), theirs.config).requires_grad_(False)


@pytest.mark.parametrize("change", [slow(2), slow(1, 3), slow(0, 7, 3.0), Change("as-is")], ids=lambda c: c.name)
def test_slowed_pairs_are_those_of_transformers_with_these_frequencies(theirs, ours, change):
    before = ours(TOKENS)
    rotary = theirs.model.rotary_emb
    for pair in change.pairs:
        rotary.inv_freq[pair] /= change.factor
    changed = change.of(ours)
    assert error(changed(TOKENS), theirs(TOKENS).logits) < 1e-5
    assert (error(changed(TOKENS), before) > 1e-3) == bool(change.pairs)
    assert torch.equal(ours(TOKENS), before), "the model that was changed stays as it is"
    assert changed.layers[0].mlp.up_proj.weight is ours.layers[0].mlp.up_proj.weight


def test_a_method_of_the_registry_is_in_every_layer(theirs, ours):
    options = {"factor": 2.0, "trained_length": 32}
    changed = Change("yarn", method="yarn", options=options).of(ours)
    rotary = theirs.model.rotary_emb
    rotary.inv_freq, rotary.attention_scaling = make("yarn", **options)(rotary.inv_freq)
    assert error(changed(TOKENS), theirs(TOKENS).logits) < 1e-5
    assert error(changed(TOKENS), ours(TOKENS)) > 1e-3


def test_a_change_says_what_it_is():
    assert slow(22, 26).name == "slow-22-26"
    assert slow(4, 4, 1.5).name == "slow-4-by-1_5"
    assert slow(3, 5, 4.0).describe() == {"pairs": [3, 4, 5], "factor": 4.0, "method": "none", "options": {}}
    theta = torch.ones(4)
    assert slowed(theta, (0, 3), 4.0).tolist() == [0.25, 1, 1, 0.25]
    assert theta.tolist() == [1, 1, 1, 1]


@together(
    ("call", "sentence"),
    [
        (lambda: slow(3, 2), "last must be an integer >= 3, got 2"),
        (lambda: slow(-1), "first must be an integer >= 0, got -1"),
        (lambda: slow(1, factor=0.0), "factor must be a finite number > 0, got 0.0"),
        (lambda: slowed(torch.ones(4), (4,), 2.0), "pairs must be an integer >= 0 and <= 3, got 4"),
        (lambda: Change("x", (1,), 2.0, "yarn"), r"pairs must be none where a method is given, got \(1,\) with 'yarn'"),
    ],
)
def test_what_is_no_change_is_refused(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_positions_may_have_a_gap(theirs, ours):
    positions = torch.cat((torch.arange(20), torch.arange(500, 540)))
    expected = theirs(TOKENS, position_ids=positions[None]).logits
    states = real.last_states(ours, TOKENS, positions)
    assert error(ours.lm_head(states), expected) < 1e-5
    assert error(ours(TOKENS), expected) > 1e-2
