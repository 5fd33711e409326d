"""Where the queries of a long text look, and how high their scores are. Only a
sample of the queries is measured, because the table of all scores would not fit in
memory."""

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
    runs from one edge to the next."""

    # ``first``: share of the weight on the text's first token. ``weights``: share
    # on the other tokens, by distance.
    first: Float[Tensor, "layers heads"]
    weights: Float[Tensor, "layers heads bins"]
    # Mean score before the softmax of the tokens in a bin, without the first token.
    # It is NaN for an empty bin.
    scores: Float[Tensor, "layers heads bins"]
    edges: list[int]


@torch.no_grad()
def look_back(
    model: LlamaModel,
    tokens: Int[Tensor, " seq"],
    queries: Int[Tensor, " sampled"],
    edges: Sequence[int],
) -> LookBack:
    """Scores and weights of some queries of one text: tokens (T,), and the queries'
    positions (n,), each ≥ 1.

    ``edges`` are the distances at which one bin ends and the next begins. Distances
    outside all bins are left out. Only the (heads, n, T) scores of one layer are in
    memory at a time.

    Raises:
        ValueError: a query is outside the text, or the edges do not rise.

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
