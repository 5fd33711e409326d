"""Measure what each head of a model does with positions and with content: how far
back it looks, and which pairs its queries and keys use.

Everything is measured on short texts, within the trained length, given as tokens
(batch, T). We use only the queries in the second half of each text, so that every
query has at least T/2 keys. The first token is treated separately, because many
heads attend to it whatever it is (Xiao et al. 2023, *Efficient Streaming Language
Models with Attention Sinks*, arXiv 2309.17453).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention import attention_weights
from ropebook.complex_plane import to_complex
from ropebook.lab.inside import bin_edges
from ropebook.real.layers import in_each_layer
from ropebook.rotary_attention import LlamaModel, RotaryAttention
from ropebook.shapes import Float, Int


class HeadMap(NamedTuple):
    """Means over queries and texts for every head, float64. Unless stated
    otherwise, the shape is (layers, heads)."""

    # Share of the attention weight on the first token of the text, on the query's
    # own token, and on the token before it.
    first: Float[Tensor, "layers heads"]
    own: Float[Tensor, "layers heads"]
    previous: Float[Tensor, "layers heads"]
    # Entropy of the weights in nats. If all weights are equal, it is the logarithm
    # of the number of keys.
    entropy: Float[Tensor, "layers heads"]
    # Share of the weight by distance, leaving out the first token: (layers, heads,
    # bins). Each bin lies between two neighbouring values in ``edges``.
    by_distance: Float[Tensor, "layers heads bins"]
    edges: list[int]
    # Mean lengths of the pairs of queries and of keys: (layers, heads, d/2) and
    # (layers, kv_heads, d/2).
    q: Float[Tensor, "layers heads pairs"]
    k: Float[Tensor, "layers kv_heads pairs"]

    def share(self) -> Float[Tensor, "layers heads pairs"]:
        """Return each pair's share of the sum of |q_i||k_i| over all pairs."""
        return pair_shares(self.q, self.k)


def pair_shares(
    q: Float[Tensor, "layers heads pairs"],
    k: Float[Tensor, "layers kv_heads pairs"],
) -> Float[Tensor, "layers heads pairs"]:
    """Compute each pair's share of the sum of |q_i||k_i| over the pairs of its
    head, given the lengths of the query and key pairs.

    >>> pair_shares(torch.tensor([[[3.0, 1.0], [1.0, 1.0]]]), torch.tensor([[[1.0, 1.0]]]))
    tensor([[[0.7500, 0.2500],
             [0.5000, 0.5000]]])
    """
    product = q * k.repeat_interleave(q.shape[1] // k.shape[1], 1)
    return product / product.sum(-1, keepdim=True)


@torch.no_grad()
def head_map(model: LlamaModel, tokens: Int[Tensor, "batch seq"]) -> HeadMap:
    """Map all heads. ``tokens`` (batch, T) contains texts that all have the same
    length T ≥ 4.

    Only the weights of one layer for one text, (heads, T, T), are in memory at a
    time.

    Raises:
        ValueError: the texts are too short, or they contain tokens that the model
            rejects.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=3, n_heads=2, layout="half")
    >>> found = head_map(model, torch.randint(10, (1, 16)))
    >>> found.entropy.shape, found.share().sum(-1).allclose(torch.ones(3, 2).double())
    (torch.Size([3, 2]), True)
    """
    texts, length = tokens.shape
    checks.integer("T", length, minimum=4)
    edges = bin_edges(length)
    totals: list[Tensor] | None = None
    for text in tokens.split(1):
        layers = in_each_layer(
            model, text, lambda attention, x: _of_layer(attention, x, edges)
        )
        found = [torch.stack(kind) for kind in zip(*layers, strict=True)]
        totals = (
            found
            if totals is None
            else [a + b for a, b in zip(totals, found, strict=True)]
        )
    first, own, previous, entropy, by_distance, q, k = (
        total / texts for total in totals
    )
    return HeadMap(first, own, previous, entropy, by_distance, edges, q, k)


def _of_layer(
    attention: RotaryAttention, x: Tensor, edges: list[int]
) -> list[Tensor]:
    """Compute the fields of `HeadMap`, except for ``edges``, for one layer and one
    text (1, T, dim)."""
    q, k, _ = attention.project(x)
    lengths = [
        to_complex(vectors, attention.rotary.layout).abs().double().mean((0, 2))
        for vectors in (q, k)
    ]
    length = x.shape[1]
    start = length // 2
    weights = attention_weights(q, k, is_causal=True)[0, :, start:].double()
    rows = torch.arange(start, length)
    own = weights[:, torch.arange(len(rows)), rows].mean(1)
    previous = weights[:, torch.arange(len(rows)), rows - 1].mean(1)
    first = weights[:, :, 0].mean(1)
    entropy = torch.special.entr(weights).sum(-1).mean(1)
    distance = rows[:, None] - torch.arange(length)
    # The first token belongs to no bin, and neither do masked keys, whose distance
    # is negative.
    place = torch.bucketize(distance, torch.tensor(edges), right=True) - 1
    place[:, 0] = -1
    counted = place >= 0
    bins = weights.new_zeros(len(weights), len(edges) - 1)
    bins.index_add_(1, place[counted], weights[:, counted])
    return [first, own, previous, entropy, bins / len(rows), *lengths]
