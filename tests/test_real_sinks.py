"""Tests of treating the first token separately, compared with scores that are computed one at a time."""

from __future__ import annotations

import math

import pytest
import torch

from ropebook.attention import merge_heads, repeat_heads
from ropebook.efficient import RotaryEmbedding
from ropebook.real import losses
from ropebook.real.sinks import with_sink_apart
from ropebook.rotary_attention import LlamaModel
from tests.helpers import LargestTensor, seeded
from tests.rotary_attention_helpers import error
from tests.together import together

pytestmark = pytest.mark.usefixtures("without_gradients")
HEADS, KV_HEADS, DIM = 4, 2, 32


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = LlamaModel(50, DIM, 24, 2, HEADS, KV_HEADS, layout="half", dtype=torch.float64).requires_grad_(False)
    for layer in made.layers:
        layer.attention.q_proj.weight *= 6
        layer.attention.v_proj.weight *= 3
    return made


def text(batch, length):
    return torch.randint(50, (batch, length), generator=seeded(3))


def halved():
    return RotaryEmbedding(DIM // HEADS, layout="half", scaling=lambda theta, _: (theta / 2, 1.5))


def by_hand(model, tokens, nearest=None, sink=None, others=None):
    """Compute a table of scores, and replace its first column, which belongs to the first token."""
    x = model.embedding(tokens)
    length = tokens.shape[1]
    for layer in model.layers:
        attention, given = layer.attention, layer.attention_norm(x)
        q, k, v = (
            proj(given).unflatten(-1, (heads, -1)).transpose(1, 2)
            for proj, heads in (
                (attention.q_proj, HEADS), (attention.k_proj, KV_HEADS), (attention.v_proj, KV_HEADS)
            )
        )  # fmt: skip
        k, v = repeat_heads(k, HEADS), repeat_heads(v, HEADS)
        scores = []
        for rotary, far in ((others, None), (sink, nearest)):
            rotary = rotary or attention.rotary
            places = torch.arange(length).clamp(max=length if far is None else far)
            turned = rotary(q, k, places) if far is None else (rotary(q, None, places), rotary(k))
            scores.append(turned[0] @ turned[1].mT / math.sqrt(DIM // HEADS))
        table = scores[0].clone()
        table[..., 0] = scores[1][..., 0]
        seen = torch.ones(length, length).tril().bool()
        weights = table.masked_fill(~seen, -math.inf).softmax(-1)
        x = x + attention.out_proj(merge_heads(weights @ v))
        x = x + layer.mlp(layer.mlp_norm(x))
    return model.lm_head(model.norm(x))


CASES = {
    "as it is": {},
    "never far": {"nearest": 5},
    "the first with other frequencies": {"sink": halved()},
    "the others with other frequencies": {"others": halved()},
    "both": {"nearest": 7, "sink": halved()},
}


@together("case", CASES.values(), ids=CASES)
def test_against_tables_of_scores(model, case):
    tokens = text(2, 30)
    expected = by_hand(model, tokens, **case)
    assert error(with_sink_apart(model, **case)(tokens), expected) < 1e-12
    assert (error(expected, model(tokens)) > 1e-2) == bool(case)


def test_within_the_distance_nothing_changes(model):
    tokens = text(1, 30)
    near, whole = with_sink_apart(model, nearest=10)(tokens), model(tokens)
    assert error(near[:, :11], whole[:, :11]) < 1e-12
    assert error(near[:, 11:], whole[:, 11:]) > 1e-3


def test_a_long_text_needs_no_table_of_scores(model):
    tokens = text(1, 513)[0]
    apart = with_sink_apart(model.float(), nearest=100)
    with LargestTensor() as seen:
        losses(apart, tokens, piece=64)
    model.double()
    assert seen.numel < 513 * 130


@together("name", ["positions", "mask", "cache"])
def test_what_it_cannot_do_is_refused(model, name):
    apart = with_sink_apart(model)
    with pytest.raises(ValueError, match=f"{name} must be None where the first token is seen apart"):
        apart.layers[0].attention(torch.zeros(1, 2, DIM).double(), **{name: torch.zeros(2)})
    with pytest.raises(ValueError, match="nearest must be an integer >= 1, got 0"):
        with_sink_apart(model, nearest=0)
