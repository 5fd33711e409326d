"""Measure what the heads of a trained model do: which frequencies they use, and how far
back they look.

Input is given as tokens of shape (batch, T). Pairs are numbered from the fastest, i = 0,
like their frequencies θ_i.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention import attention_weights, repeat_heads
from ropebook.complex_plane import to_complex
from ropebook.lab.frequencies import rotary_of
from ropebook.lab.model import LanguageModel, alibi_bias
from ropebook.shapes import Int

NEAR = (8, 32)
"""`heads` sums each head's weight over the last 8 bytes and over the last 32."""

# the number of rows per batch
_BATCH = 16


@torch.no_grad()
def queries_and_keys(
    model: LanguageModel, tokens: Int[Tensor, "batch seq"]
) -> list[tuple[Tensor, Tensor]]:
    """Return each layer's q and k as they enter the score, rotated if the model rotates.

    The shapes are (batch, heads, T, head_dim) and (batch, kv_heads, T, head_dim).

    Raises ``ValueError`` if the model uses a method that changes distances (ReRoPE,
    Self-Extend), because such a method computes more than one score from the same
    queries and keys.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=2, n_heads=2)
    >>> [q.shape for q, k in queries_and_keys(model, torch.zeros(1, 5, dtype=torch.int64))]
    [torch.Size([1, 2, 5, 8]), torch.Size([1, 2, 5, 8])]
    """
    layers = [layer.attention for layer in model.layers]
    if getattr(layers[0], "keep", "rotated") != "rotated":
        raise ValueError(
            "model must rotate queries and keys before they meet, "
            f"got the method {layers[0].method!r}"
        )
    inputs: list[Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
        for layer in layers
    ]
    try:
        model(tokens.to(model.embedding.weight.device))
    finally:
        for hook in hooks:
            hook.remove()
    return [layer.project(x)[:2] for layer, x in zip(layers, inputs, strict=True)]


class PairNorms(NamedTuple):
    """The mean lengths of the pairs of queries and of keys. Both are float64 (layers,
    heads, d/2)."""

    q: Tensor
    k: Tensor


def pair_norms(model: LanguageModel, tokens: Int[Tensor, "batch seq"]) -> PairNorms:
    """Compute the mean length √(x² + y²) of each pair (x, y) of q and of k in each layer
    and head, averaged over all bytes.

    Rotation does not change this length, so it shows how much the trained projections
    use each frequency, as in the plots of Barbero et al. (2025), *Round and Round We
    Go!*. Raises ``ValueError`` for a model that does not rotate.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=2, n_heads=2)
    >>> pair_norms(model, torch.zeros(1, 5, dtype=torch.int64)).q.shape
    torch.Size([2, 2, 4])
    """
    layout = rotary_of(model).layout
    sums = [0.0, 0.0]
    for rows in tokens.split(_BATCH):
        layers = queries_and_keys(model, rows)
        for at, heads in enumerate(zip(*layers, strict=True)):
            lengths = torch.stack([to_complex(x, layout).abs() for x in heads])
            sums[at] += lengths.sum((1, 3)).cpu().double()
    return PairNorms(*(total / tokens.numel() for total in sums))


class Attention(NamedTuple):
    """The result of `attention_by_distance`, in float64. The first three fields have
    shape (layers, heads, T); the last has shape (layers, heads)."""

    # Mean weight at each distance, averaged over the queries that have a key at that distance.
    weights: Tensor
    # Mean score before the softmax at each distance, over the same queries.
    scores: Tensor
    # Share of the total weight at each distance. For each head, the shares sum to 1.
    share: Tensor
    # Share of the total weight that falls on the first byte.
    first: Tensor


def attention_by_distance(
    model: LanguageModel, tokens: Int[Tensor, "batch seq"], start: int | None = None
) -> Attention:
    """Measure how much each head attends to the bytes at distances 0, 1, 2, …, using the
    queries from position ``start`` onwards in every row.

    By default ``start`` is T/2, which gives every query at least T/2 keys. Scores are
    ⟨q, k⟩/√d; with ALiBi they include the bias.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=2, n_heads=2)
    >>> attention = attention_by_distance(model, torch.zeros(1, 6, dtype=torch.int64))
    >>> attention.weights.shape, attention.share.sum(-1).allclose(torch.ones(2, 2).double())
    (torch.Size([2, 2, 6]), True)
    """
    length = tokens.shape[1]
    if start is None:
        start = length // 2
    checks.integer("start", start, minimum=0, maximum=length - 1)
    places = torch.arange(length)
    distance = places[start:, None] - places
    seen = distance >= 0
    mass, scores, first = 0.0, 0.0, 0.0
    for rows in tokens.split(_BATCH):
        layers = [
            _met(model, q, k, start) for q, k in queries_and_keys(model, rows)
        ]
        met = [torch.stack(kind) for kind in zip(*layers, strict=True)]
        first += met[0][..., 0].sum(-1)
        # The last axis has one entry for each visible (query, key) combination. We sum these entries by distance.
        by_distance = [
            x.new_zeros(*x.shape[:2], length).index_add(
                2, distance[seen], x[..., seen]
            )
            for x in met
        ]
        mass, scores = mass + by_distance[0], scores + by_distance[1]
    texts, queries = tokens.shape[0], length - start
    pairs = texts * torch.bincount(distance[seen], minlength=length)
    total = texts * queries
    return Attention(mass / pairs, scores / pairs, mass / total, first / total)


def _met(
    model: LanguageModel, q: Tensor, k: Tensor, start: int
) -> tuple[Tensor, Tensor]:
    """Sum a layer's weights and scores over the batch, for the queries from ``start`` onwards.

    Returns two float64 tensors (heads, T − start, T) on the CPU.
    """
    bias = None
    if model.scheme == "alibi":
        bias = alibi_bias(model.n_heads, q.shape[-2], device=q.device).to(q.dtype)
    weights = attention_weights(q, k, bias, is_causal=True)
    scores = q @ repeat_heads(k, q.shape[-3]).mT / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    weights, scores = (
        x[:, :, start:].sum(0).cpu().double() for x in (weights, scores)
    )
    return weights, scores


class Head(NamedTuple):
    """Measurements of how far back one head looks.

    - ``near_8``, ``near_32``: the share of the head's weight on the last 8 and the last
      32 bytes, including the query's own byte.
    - ``median``: the distance within which half of the weight lies.
    - ``peak``: the distance with the highest mean weight. It is 1 for a head that
      attends to the previous byte.
    - ``at_peak``: the mean weight at the distance ``peak``.
    - ``first``: the share of the weight on the first byte of the input.
    - ``slope``: the correlation between mean score and distance, for distances 1 to T/2.
      It is negative if the score falls.
    """

    layer: int
    head: int
    near_8: float
    near_32: float
    median: int
    peak: int
    at_peak: float
    first: float
    slope: float


def heads(attention: Attention) -> list[Head]:
    """Return the measurements of every head in every layer, one row per head.

    Raises ``ValueError`` if T < 4, which is too short to compute a correlation.
    """
    length = attention.share.shape[-1]
    checks.integer("T", length, minimum=4)
    middle = slice(1, length // 2 + 1)
    distances = torch.arange(length, dtype=torch.float64)[middle]
    rows = []
    layers, n_heads = attention.first.shape
    for layer, head in itertools.product(range(layers), range(n_heads)):
        within = attention.share[layer, head].cumsum(0)
        weights = attention.weights[layer, head]
        scores = attention.scores[layer, head, middle]
        rows.append(
            Head(
                layer,
                head,
                *(within[min(near, length) - 1].item() for near in NEAR),
                median=int((within < 0.5).sum()),
                peak=int(weights.argmax()),
                at_peak=weights.max().item(),
                first=attention.first[layer, head].item(),
                slope=torch.corrcoef(torch.stack((distances, scores)))[0, 1].item(),
            )
        )
    return rows
