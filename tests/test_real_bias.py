"""Tests of the mean score as a function of distance, and of where queries look in long texts. Both are compared with
scores that are computed one at a time."""

from __future__ import annotations

import itertools
import math
import re

import pytest
import torch

from ropebook.attention import repeat_heads
from ropebook.real.bias import EARLY, at, distance_bias, drop, weights_by_distance
from ropebook.real.layers import in_each_layer
from ropebook.real.lookback import look_back
from ropebook.rotary_attention import LlamaModel
from tests.helpers import seeded
from tests.together import together

pytestmark = pytest.mark.usefixtures("without_gradients")
LAYERS, HEADS, KV_HEADS, PAIRS, VOCABULARY = 2, 4, 2, 4, 50


@pytest.fixture(scope="module", params=["half", "interleaved"])
def model(request):
    torch.manual_seed(0)
    made = LlamaModel(VOCABULARY, 32, 24, LAYERS, HEADS, KV_HEADS, layout=request.param).requires_grad_(False)
    for layer in made.layers:
        layer.attention.q_proj.weight *= 5
    return made


def text(*shape):
    return torch.randint(VOCABULARY, shape, generator=seeded(3))


def rotated(model, tokens, shift=0):
    """Return q and k of each layer as attention multiplies them, with the queries moved ``shift`` positions ahead. Both
    have shape (heads, T, d)."""

    def look(attention, x):
        places = torch.arange(x.shape[1])
        q = attention.project(x, places + shift)[0]
        k = attention.project(x, places)[1]
        return q.double(), repeat_heads(k, HEADS).double()

    return in_each_layer(model, tokens, look)


def test_the_bias_is_the_mean_score_over_all_queries_and_keys(model):
    """For each distance, the mean is over the queries and keys of all pairs of tokens, rotated as if the two tokens
    were that far apart."""
    tokens = text(2, 20)
    found = distance_bias(model, tokens)
    theta = model.layers[0].attention.rotary.inv_freq
    for shift in (0, 3, 700):
        means = {"others": [], "first": []}
        for q, k in rotated(model, tokens, shift):
            # undo the rotation to each token's own position, and put every query at ``shift`` and every key at 0
            places = torch.arange(20)
            rotary = model.layers[0].attention.rotary
            q, k = (rotary(x, None, -places) for x in (q, k))
            q = q[:, :, 10:].mean((0, 2))
            d = q.shape[-1]
            means["others"].append((q * k[:, :, EARLY:].mean((0, 2))).sum(-1) / math.sqrt(d))
            means["first"].append((q * k[:, :, 0].mean(0)).sum(-1) / math.sqrt(d))
        for name, rows in means.items():
            score = at(getattr(found, name), theta, torch.tensor([float(shift)]))[..., 0]
            torch.testing.assert_close(score, torch.stack(rows), rtol=1e-4, atol=1e-5)


def test_pairs_add_up(model):
    found = distance_bias(model, text(1, 16)).others
    theta = model.layers[0].attention.rotary.inv_freq
    distances = torch.arange(0.0, 5000.0, 500.0)
    whole = at(found, theta, distances)
    parts = [at(found, theta, distances, [i]) for i in range(PAIRS)]
    torch.testing.assert_close(sum(parts), whole)
    torch.testing.assert_close(at(found, theta, distances, slice(1, 3)), parts[1] + parts[2])
    assert whole.shape == (LAYERS, HEADS, 10)


def test_what_slowing_one_pair_takes_away_is_the_difference_of_two_curves(model):
    found = distance_bias(model, text(1, 16)).others
    theta = model.layers[0].attention.rotary.inv_freq
    fallen = drop(found, theta, 3.0, 50, 90)
    distances = torch.arange(50.0, 90.0)
    for pair in range(PAIRS):
        slower = theta.clone()
        slower[pair] /= 3
        change = at(found, theta, distances) - at(found, slower, distances)
        torch.testing.assert_close(fallen[..., pair], change.mean(-1))


def test_scores_that_depend_on_distance_alone_give_these_weights():
    torch.manual_seed(0)
    z = torch.randn(3, 2, 5, dtype=torch.complex128)
    theta = torch.rand(5, dtype=torch.float64)
    length, edges = 11, [0, 1, 2, 5, 11]
    rows = []
    for query in range(5, length):  # the second half, one query after another, without the first token
        distances = torch.arange(query - 1, -1, -1, dtype=torch.float64)
        weights = at(z, theta, distances).softmax(-1)
        bins = itertools.pairwise(edges)
        rows.append(torch.stack([weights[..., (distances >= a) & (distances < b)].sum(-1) for a, b in bins], -1))
    found = weights_by_distance(z, theta, length, edges)
    torch.testing.assert_close(found, torch.stack(rows).mean(0))
    torch.testing.assert_close(found.sum(-1), torch.ones(3, 2, dtype=torch.float64))


def test_a_look_back_is_what_the_weights_say_one_by_one(model):
    tokens, queries, edges = text(40), torch.tensor([30, 33, 39]), [0, 1, 5, 20, 50]
    found = look_back(model, tokens, queries, edges)
    for layer, (q, k) in enumerate(rotated(model, tokens[None])):
        for head in range(HEADS):
            first, weights, scores = [], [[] for _ in edges[1:]], [[] for _ in edges[1:]]
            for m in queries.tolist():
                row = k[0, head, : m + 1] @ q[0, head, m] / math.sqrt(q.shape[-1])
                weight = row.softmax(0)
                first.append(weight[0].item())
                for bin_, (a, b) in enumerate(itertools.pairwise(edges)):
                    inside = [n for n in range(1, m + 1) if a <= m - n < b]
                    weights[bin_].append(sum(weight[n].item() for n in inside))
                    scores[bin_] += [row[n].item() for n in inside]
            assert found.first[layer, head].item() == pytest.approx(sum(first) / 3, abs=1e-5)
            for bin_ in range(len(edges) - 1):
                assert found.weights[layer, head, bin_].item() == pytest.approx(sum(weights[bin_]) / 3, abs=1e-5)
                expected = sum(scores[bin_]) / len(scores[bin_])
                assert found.scores[layer, head, bin_].item() == pytest.approx(expected, abs=1e-4)


def test_a_bin_without_tokens_has_no_score(model):
    found = look_back(model, text(12), torch.tensor([11]), [0, 12, 20])
    assert found.scores[..., 1].isnan().all()
    assert (found.weights[..., 1] == 0).all()


@together(
    ("call", "sentence"),
    [
        (lambda m: distance_bias(m, text(1, 7)), "tokens must be (batch, 8 or more), got (1, 7)"),
        (lambda m: drop(torch.zeros(1).cdouble(), torch.ones(1), 2.0, 5, 5), "stop must be an integer >= 6, got 5"),
        (lambda m: look_back(m, text(9), torch.tensor([9]), [0, 4]), "queries must lie between 1 and 8, got 9"),
        (lambda m: look_back(m, text(9), torch.tensor([0]), [0, 4]), "queries must lie between 1 and 8, got 0"),
        (
            lambda m: look_back(m, text(9), torch.tensor([3]), [0, 4, 4]),
            "edges must rise from 0 or more, got [0, 4, 4]",
        ),
        (lambda m: look_back(m, text(9), torch.tensor([3]), [-1, 4]), "edges must rise from 0 or more, got [-1, 4]"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(model, call, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        call(model)


def test_hooks_are_taken_away_again(model):
    with pytest.raises(ZeroDivisionError):
        in_each_layer(model, text(1, 4), lambda attention, x: 1 / 0)
    assert all(not layer.attention._forward_pre_hooks for layer in model.layers)
    assert in_each_layer(model, text(1, 4), lambda attention, x: x.shape[1]) == [4, 4]
