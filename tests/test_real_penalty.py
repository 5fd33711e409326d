"""Tests of adding a distance-dependent term to the scores, compared with tables of scores. We also test which terms
preserve the mean score."""

from __future__ import annotations

import math
import re

import pytest
import torch

from ropebook.attention import merge_heads, repeat_heads
from ropebook.real.bias import at, distance_bias
from ropebook.real.penalty import PIECE, held, with_penalty
from ropebook.rotary_attention import LlamaModel
from tests.helpers import random, seeded
from tests.rotary_attention_helpers import error
from tests.together import together

pytestmark = pytest.mark.usefixtures("without_gradients")
LAYERS, HEADS, KV_HEADS, DIM = 2, 4, 2, 32


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = LlamaModel(50, DIM, 24, LAYERS, HEADS, KV_HEADS, layout="half", dtype=torch.float64).requires_grad_(False)
    for layer in made.layers:
        layer.attention.q_proj.weight *= 6
        layer.attention.v_proj.weight *= 3
    return made


def text(batch, length):
    return torch.randint(50, (batch, length), generator=seeded(3))


def by_hand(model, tokens, added):
    x, length = model.embedding(tokens), tokens.shape[1]
    places = torch.arange(length)
    distance = places[:, None] - places
    for layer, rows in zip(model.layers, added, strict=True):
        attention = layer.attention
        q, k, v = attention.project(layer.attention_norm(x))
        scores = q @ repeat_heads(k, HEADS).mT / math.sqrt(DIM // HEADS)
        extra = rows[:, distance.clamp(min=0)]
        extra[:, :, 0] = 0
        weights = (scores + extra).masked_fill(distance < 0, -math.inf).softmax(-1)
        x = x + attention.out_proj(merge_heads(weights @ repeat_heads(v, HEADS)))
        x = x + layer.mlp(layer.mlp_norm(x))
    return model.lm_head(model.norm(x))


@together("length", [1, 2, 30, PIECE, PIECE + 1, 2 * PIECE + 44])
def test_against_tables_of_scores(model, length):
    tokens = text(2 if length < 100 else 1, length)
    added = random(LAYERS, HEADS, length + 5)
    expected = by_hand(model, tokens, added)
    assert error(with_penalty(model, added)(tokens), expected) < 1e-6  # the model stores the penalty in float32
    assert (error(expected, model(tokens)) > 1e-2) == (length > 1)


def test_what_is_held_stays_as_it_was_at_the_trained_length(model):
    found = distance_bias(model, text(1, 20)).others
    theta = model.layers[0].attention.rotary.inv_freq
    for pairs in (slice(None), [1, 3]):
        added = held(found, theta, 50, 20, pairs)
        scores = at(found, theta, torch.arange(50.0), pairs)
        assert added.shape == (LAYERS, HEADS, 50)
        assert (added[..., :21] == 0).all()
        torch.testing.assert_close((scores + added)[..., 20:], scores[..., 20:21].expand(-1, -1, 30))


@together(
    ("call", "sentence"),
    [
        (lambda m: with_penalty(m, torch.zeros(2, 3, 4)), "added must be (layers, heads, distances), 2 and 4"),
        (lambda m: with_penalty(m, torch.zeros(2, 4, 4))(text(1, 5)), "tokens must be at most 4, as many as the"),
        (lambda m: with_penalty(m, torch.zeros(2, 4, 4))(text(1, 3), torch.arange(3)), "positions must be None where"),
        (lambda m: held(torch.zeros(1).cdouble(), torch.ones(1), 0, 1), "length must be an integer >= 1, got 0"),
        (lambda m: held(torch.zeros(1).cdouble(), torch.ones(1), 1, -1), "trained must be an integer >= 0, got -1"),
    ],
)  # fmt: skip
def test_what_cannot_be_added_is_refused(model, call, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        call(model)
