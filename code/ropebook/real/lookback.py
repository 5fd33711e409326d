"""Measure where the queries in a long text look, and how high their scores are. Only a sample of the queries is used,
because a table of all scores would not fit in memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention import repeat_heads
from ropebook.real.layers import in_each_layer
from ropebook.rotary_attention import LlamaModel, RotaryAttention
from ropebook.shapes import Float, Int


class LookBack(NamedTuple):
    """Means over the sampled queries for every head, float64. Each bin of distances
    lies between two neighbouring edges."""

    # ``first``: share of the weight on the first token of the text. ``weights``:
    # share of the weight on the other tokens, by distance.
    first: Float[Tensor, "layers heads"]
    weights: Float[Tensor, "layers heads bins"]
    # Mean score of the tokens in each bin, before the softmax and without the first token. It is NaN for an empty bin.
    scores: Float[Tensor, "layers heads bins"]
    edges: list[int]


@torch.no_grad()
def look_back(
    model: LlamaModel,
    tokens: Int[Tensor, " seq"],
    queries: Int[Tensor, " sampled"],
    edges: Sequence[int],
) -> LookBack:
    """Measure the scores and weights of some queries in one text. ``tokens`` has
    shape (T,). ``queries`` (n,) contains the positions of the queries, each at
    least 1.

    ``edges`` are the distances at which one bin ends and the next begins. Distances
    outside all bins are ignored. Only the scores of one layer, (heads, n, T), are
    in memory at a time.

    Raises:
        ValueError: a query lies outside the text, or the edges do not increase.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=3, n_heads=2, layout="half")
    >>> found = look_back(model, torch.randint(10, (16,)), torch.tensor([9, 15]), [0, 1, 4, 16])
    >>> (found.first + found.weights.sum(-1)).allclose(torch.ones(3, 2).double(), atol=1e-6)
    True
    """
    edges = list(edges)
    if edges[0] < 0 or any(a >= b for a, b in itertools.pairwise(edges)):
        raise ValueError(f"edges must rise from 0 or more, got {edges}")
    checks.entries("queries", queries, 1, len(tokens) - 1)
    distance = queries[:, None] - torch.arange(len(tokens))
    place = torch.bucketize(distance, torch.tensor(edges), right=True) - 1
    place[:, 0] = -1
    counted = (place >= 0) & (place < len(edges) - 1)
    number = torch.bincount(place[counted], minlength=len(edges) - 1)

    def of_layer(attention: RotaryAttention, x: Tensor) -> list[Tensor]:
        q, k, _ = attention.project(x)
        k = repeat_heads(k, attention.n_heads)[0]
        scores = (q[0, :, queries] @ k.mT / math.sqrt(attention.head_dim)).double()
        weights = scores.masked_fill(distance < 0, -math.inf).softmax(-1)
        sums = [
            values.new_zeros(len(values), len(edges) - 1).index_add_(
                1, place[counted], values[:, counted]
            )
            for values in (weights, scores)
        ]
        return [weights[:, :, 0].mean(1), sums[0] / len(queries), sums[1] / number]

    layers = in_each_layer(model, tokens[None], of_layer)
    return LookBack(
        *(torch.stack(kind) for kind in zip(*layers, strict=True)), edges
    )
