"""Tests of the map of heads. It is compared with sums over all pairs of tokens, and with the known behaviour of heads
that are built to do only one thing."""

from __future__ import annotations

import math

import pytest
import torch

from ropebook.attention import repeat_heads
from ropebook.real.heads import head_map
from ropebook.rotary_attention import LlamaModel
from tests.helpers import seeded

pytestmark = pytest.mark.usefixtures("without_gradients")
LAYERS, HEADS, KV_HEADS, PAIRS = 2, 4, 2, 4


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    made = LlamaModel(50, 32, 24, LAYERS, HEADS, KV_HEADS, layout="half").requires_grad_(False)
    for layer in made.layers:
        layer.attention.q_proj.weight *= 5  # this makes the attention of the heads sharp
    return made


def text(batch, length):
    return torch.randint(50, (batch, length), generator=seeded(3))


def by_hand(model, tokens):
    """Compute one layer at a time and, within each layer, one query at a time."""
    x, found = model.embedding(tokens), []
    for layer in model.layers:
        given = layer.attention_norm(x)
        q, k, _ = layer.attention.project(given)
        heads = []
        for head in range(HEADS):
            rows = []
            for text in range(len(tokens)):
                keys = repeat_heads(k, HEADS)[text, head]
                for t in range(tokens.shape[1] // 2, tokens.shape[1]):
                    scores = keys[: t + 1] @ q[text, head, t] / math.sqrt(q.shape[-1])
                    rows.append(scores.double().softmax(0))
            heads.append(rows)
        unrotated = layer.attention.q_proj(given).unflatten(-1, (HEADS, -1))
        halves = unrotated.unflatten(-1, (2, PAIRS))
        found.append((heads, halves.square().sum(-2).sqrt().mean((0, 1))))
        x = layer(x)
    return found


def test_the_map_is_what_the_weights_say_one_by_one(model):
    tokens = text(2, 20)
    found = head_map(model, tokens)
    for layer, (heads, lengths) in enumerate(by_hand(model, tokens)):
        torch.testing.assert_close(found.q[layer], lengths.double(), rtol=1e-5, atol=1e-6)
        for head, rows in enumerate(heads):
            means = {
                "first": [row[0] for row in rows],
                "own": [row[-1] for row in rows],
                "previous": [row[-2] for row in rows],
                "entropy": [-(row * row.log()).sum() for row in rows],
            }
            for name, values in means.items():
                expected = sum(values).item() / len(values)
                assert getattr(found, name)[layer, head].item() == pytest.approx(expected, abs=1e-5), name
            for place, (a, b) in enumerate(zip(found.edges, found.edges[1:], strict=False)):
                # drop the first entry (the first token) and reverse the rest, so that the index is the distance Δ
                shares = [row[1:].flip(0)[a:b].sum().item() for row in rows]
                expected = sum(shares) / len(shares)
                assert found.by_distance[layer, head, place].item() == pytest.approx(expected, abs=1e-5)


def test_shares_add_up(model):
    found = head_map(model, text(3, 17))
    total = found.by_distance.sum(-1) + found.first
    torch.testing.assert_close(total, torch.ones(LAYERS, HEADS).double(), rtol=0, atol=1e-6)
    assert found.edges[-1] == 17
    assert found.share().shape == (LAYERS, HEADS, PAIRS)
    for head, shared in enumerate((0, 0, 1, 1)):
        product = found.q[1, head] * found.k[1, shared]
        torch.testing.assert_close(found.share()[1, head], product / product.sum())


def test_several_texts_are_a_mean_of_each(model):
    tokens = text(2, 16)
    both, one, two = head_map(model, tokens), head_map(model, tokens[:1]), head_map(model, tokens[1:])
    for name in ("first", "entropy", "by_distance", "q", "k"):
        mean = (getattr(one, name) + getattr(two, name)) / 2
        torch.testing.assert_close(getattr(both, name), mean, rtol=0, atol=1e-9)


def test_a_head_without_preferences_spreads_its_weight_evenly(model):
    import copy

    flat = copy.deepcopy(model)
    for layer in flat.layers:
        layer.attention.q_proj.weight.zero_()
    found = head_map(flat, text(1, 40))
    # the number of keys to which each of the queries 20 to 39 can attend
    seen = torch.arange(21.0, 41.0, dtype=torch.float64)
    assert found.entropy[0, 0].item() == pytest.approx(seen.log().mean().item(), rel=1e-5)
    assert found.first[1, 2].item() == pytest.approx((1 / seen).mean().item(), rel=1e-5)
    assert found.previous[1, 2].item() == pytest.approx((1 / seen).mean().item(), rel=1e-5)


def test_texts_must_have_a_second_half(model):
    with pytest.raises(ValueError, match="T must be an integer >= 4, got 3"):
        head_map(model, text(1, 3))
