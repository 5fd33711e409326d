"""Measure how distance alone affects a head's scores: the mean score of each pair
as a function of distance.

If we write pairs as complex numbers, a pair of q and k adds
Re(q conj(k) e^(iθΔ)) / √d to the score at distance Δ. If queries and keys have
preferred directions, as they do in trained heads, the mean of this contribution
over tokens is a cosine of the distance, whatever the tokens are. The product of the
mean query and the mean key gives the cosine's amplitude and phase. Short texts are
enough to measure these two, and the cosine then predicts what the head will do at
distances beyond the length of those texts.

The first token is treated separately, because its keys are unlike all other keys
(Xiao et al. 2023, arXiv 2309.17453).
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention import MultiHeadAttention, repeat_heads
from ropebook.complex_plane import to_complex
from ropebook.real.layers import in_each_layer
from ropebook.rotary_attention import LlamaModel, RotaryAttention
from ropebook.shapes import Complex, Float, Int

EARLY = 4
"""The number of tokens at the start of each text that are not treated as ordinary keys. The first token is treated
separately."""


class DistanceBias(NamedTuple):
    """Complex amplitudes z, in complex128. At distance Δ, each pair adds Re(z e^(iθΔ)) to the mean score; see `at`."""

    # ``others``: amplitudes for the keys of ordinary tokens. ``first``: amplitudes
    # for the key of the first token.
    others: Complex[Tensor, "layers heads pairs"]
    first: Complex[Tensor, "layers heads pairs"]


def distance_bias(
    model: LlamaModel, tokens: Int[Tensor, "batch seq"]
) -> DistanceBias:
    """Measure the amplitudes of all heads. ``tokens`` (batch, T) contains texts
    that all have the same length T ≥ 8.

    Queries come from the second half of each text. Queries and keys are averaged
    separately over all texts, which leaves only what all tokens have in common.

    Raises:
        ValueError: the texts are too short, or they contain tokens that the model
            rejects.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=3, n_heads=2, layout="half")
    >>> distance_bias(model, torch.randint(10, (1, 16))).others.shape
    torch.Size([3, 2, 2])
    """
    if tokens.shape[1] < 2 * EARLY:
        raise ValueError(
            f"tokens must be (batch, {2 * EARLY} or more), got {tuple(tokens.shape)}"
        )
    layers = in_each_layer(model, tokens, _of_layer)
    return DistanceBias(*(torch.stack(kind) for kind in zip(*layers, strict=True)))


def at(
    amplitudes: Complex[Tensor, "*heads pairs"],
    inv_freq: Float[Tensor, " pairs"],
    distances: Float[Tensor, " distances"],
    pairs: slice | list[int] = slice(None),
) -> Float[Tensor, "*heads distances"]:
    """Compute the mean score at each distance, float64, summed over some of the
    pairs (all of them by default): Σ Re(z_i e^(iθ_iΔ)).

    >>> at(torch.tensor([-2.0 + 0j]).to(torch.complex128), torch.tensor([1.0]), torch.tensor([0.0, math.pi])).round()
    tensor([-2.,  2.], dtype=torch.float64)
    """
    angles = inv_freq[pairs].double()[:, None] * distances.double()
    turned = amplitudes[..., pairs, None] * torch.polar(
        torch.ones_like(angles), angles
    )
    return turned.real.sum(-2)


def weights_by_distance(
    amplitudes: Complex[Tensor, "*heads pairs"],
    inv_freq: Float[Tensor, " pairs"],
    length: int,
    edges: list[int],
) -> Float[Tensor, "*heads bins"]:
    """Compute the attention weights of heads whose scores depend on distance alone, as in `at`: float64, summed up in
    bins between neighbouring ``edges``, as in `ropebook.real.heads.HeadMap`.

    The weights are averaged over the queries in the second half of a text of ``length`` tokens. The first token gets no
    weight, so the bins of a head sum to 1.

    >>> flat = torch.zeros(1, dtype=torch.complex128)  # attends equally to all keys except the first
    >>> weights_by_distance(flat, torch.tensor([1.0]), 4, [0, 1, 4])  # half for 2 keys, and a third for 3
    tensor([0.4167, 0.5833], dtype=torch.float64)
    """
    scores = at(amplitudes, inv_freq, torch.arange(length, dtype=torch.float64))
    sizes = (scores - scores.amax(-1, keepdim=True)).exp()
    # The query at position m attends to keys at distances 0 … m − 1. Its weights are their sizes, divided by the sum.
    divided = 1 / sizes.cumsum(-1)[..., :-1]
    divided[..., : length // 2 - 1] = 0
    later = divided.flip(-1).cumsum(-1).flip(-1)  # of all queries beyond a distance
    mean = sizes[..., :-1] * later / (length - length // 2)
    return torch.stack([mean[..., a:b].sum(-1) for a, b in pairwise(edges)], -1)


def drop(
    amplitudes: Complex[Tensor, "*heads pairs"],
    inv_freq: Float[Tensor, " pairs"],
    factor: float,
    start: int,
    stop: int,
) -> Float[Tensor, "*heads pairs"]:
    """Compute how far the mean score falls if a single pair is slowed down by ``factor``: float64, one number for each
    pair. The scores are averaged over the distances from ``start`` up to but not including ``stop``. If the score
    rises, the number is negative.

    >>> z, theta = torch.tensor([-2.0 + 0j]).to(torch.complex128), torch.tensor([torch.pi])
    >>> drop(z, theta, factor=2.0, start=1, stop=2).round()  # at distance 1 the mean score is 2, and slowed down 0
    tensor([2.], dtype=torch.float64)
    """
    checks.number("factor", factor, above=0)
    checks.integer("start", start, minimum=0)
    distances = torch.arange(start, checks.integer("stop", stop, minimum=start + 1))

    def mean(theta: Tensor) -> Tensor:
        angles = theta.double()[:, None] * distances
        turns = torch.polar(torch.ones_like(angles), angles).mean(1)
        return (amplitudes * turns).real

    return mean(inv_freq) - mean(inv_freq / factor)


def _of_layer(attention: RotaryAttention, x: Tensor) -> tuple[Tensor, Tensor]:
    layout = attention.rotary.layout
    q, k, _ = MultiHeadAttention.project(attention, x)  # unrotated
    k = repeat_heads(k, attention.n_heads)
    q, k = (to_complex(vectors.double(), layout) for vectors in (q, k))
    query = q[:, :, x.shape[1] // 2 :].mean((0, 2))
    scale = 1 / math.sqrt(attention.head_dim)
    return (
        query * k[:, :, EARLY:].mean((0, 2)).conj() * scale,
        query * k[:, :, 0].mean(0).conj() * scale,
    )
