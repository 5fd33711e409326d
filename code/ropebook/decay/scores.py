"""The score as a function of distance: for q = k, for chosen vectors and for random vectors.

For q = k = (1, …, 1) the score is 2K(Δ), twice `ropebook.sinusoidal.distance_kernel`. For any q and k it is computed
by `ropebook.complex_plane.score_at`. Angles are float64. For tensors on mps, which has no float64, they are computed
on the CPU.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.attention import attention_weights
from ropebook.complex_plane import amplitudes, rotate, score_at
from ropebook.decay import curves
from ropebook.decay.curves import whole_length
from ropebook.rope import Positions


class Figure(NamedTuple):
    """The settings of a figure that shows the score of a query with keys at 0 … length − 1, for q = k = (1, …, 1)."""

    query_position: int
    length: int
    dim: int


# The figures of a widely read study note on RoPE, in the note's order, with base 10000. The fourth figure is labelled d
# = 8 there, but was drawn with d = 16.
FIGURES = (
    Figure(0, 512, 256),
    Figure(256, 512, 256),
    Figure(0, 65536, 256),
    Figure(0, 65536, 16),
    Figure(0, 65536, 8),
    Figure(0, 512, 8),
)


def score_curve(
    query_position: int,
    length: int,
    q: Tensor,
    k: Tensor,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Tensor:
    """Return the scores of one query with keys at 0 … length − 1: ⟨R_m q, R_n k⟩, shape (…, length), float64.

    ``q``, ``k``: (…, dim), floating point. Every key is the same vector k. The scores are on q's device.

    >>> ones = torch.ones(4)
    >>> score_curve(1, 3, ones, ones)  # symmetric about the query: q = k
    tensor([3.0805, 4.0000, 3.0805], dtype=torch.float64)
    """
    largest = rope.LARGEST_POSITION
    query_position = checks.integer("query_position", query_position, 0, largest)
    keys = torch.arange(
        whole_length("length", length), device=checks.floating("q", q).device
    )
    return score_at(query_position - keys, *amplitudes(q, k, layout), base)


class Spread(NamedTuple):
    """Mean and standard deviation of random scores at each distance."""

    mean: Tensor
    std: Tensor


def random_scores(
    distances: Positions,
    dim: int,
    base: float = 10000.0,
    samples: int = 1000,
    seed: int = 0,
) -> Spread:
    """Return the mean and standard deviation of the score over random q and k at each distance.

    Both have shape distances.shape and are float64.

    All entries of q and k are independent normal numbers with mean 0 and variance 1. The score then has mean 0 and
    variance d at *every* distance, because rotating such a k does not change its distribution. Therefore, these scores
    do not decay, and a heatmap of them shows no diagonal. All distances use the same q and k.

    >>> spread = random_scores([0, 10, 10000], dim=64, samples=4000)
    >>> ((spread.std / 64**0.5 - 1).abs() < 0.05).all().item()
    True
    """
    dim = checks.even("dim", dim)
    samples = checks.integer("samples", samples, minimum=2)
    generator = torch.Generator().manual_seed(checks.integer("seed", seed))
    distances = rope.as_positions("distances", distances)
    where = rope.float64_device(distances.device)
    total, squares = 0, 0
    batch = max(1, curves.CHUNK // max(1, distances.numel()))
    for start in range(0, samples, batch):
        shape = (2, min(batch, samples - start), dim)
        q, k = torch.randn(shape, generator=generator, dtype=torch.float64)
        scores = score_at(distances, *amplitudes(q.to(where), k.to(where)), base)
        total, squares = total + scores.sum(0), squares + scores.square().sum(0)
    mean = total / samples
    variance = (squares - samples * mean.square()) / (samples - 1)
    return Spread(mean, variance.clamp(min=0).sqrt())


class Estimate(NamedTuple):
    """A mean over independent trials, and the standard error of that mean."""

    value: float
    error: float


def diagonal_weight(q: Tensor, k: Tensor, base: float | None = 10000.0) -> Estimate:
    """Return the mean weight that a position gives to itself, as a multiple of 1/seq.

    That is the weight in a uniform distribution, so a value of 1 means that the diagonal does not stand out.

    ``q``, ``k``: (trials, seq, dim), floating point, at least 2 trials. They are rotated by their positions 0 … seq −
    1, or not at all if ``base`` is None. The weights are the softmax of the scores divided by √dim, without a mask,
    and the result is the mean weight on the diagonal times seq.

    >>> q, k = torch.randn(2, 100, 32, 64, generator=torch.Generator().manual_seed(0))
    >>> value, error = diagonal_weight(q, k)
    >>> abs(value - 1) < 3 * error
    True
    """
    for name, x in (("q", q), ("k", k)):
        if checks.floating(name, x).ndim != 3 or x.shape[0] < 2 or not x.shape[1]:
            raise ValueError(
                f"{name} must have shape (trials >= 2, seq >= 1, dim), got {tuple(x.shape)}"
            )
    if q.shape != k.shape:
        raise ValueError(
            f"q and k must have one shape, got {tuple(q.shape)} and {tuple(k.shape)}"
        )
    seq_len = q.shape[1]
    if base is not None:
        positions = torch.arange(seq_len, device=q.device)
        q, k = (rotate(x, positions, base) for x in (q, k))
    weights = attention_weights(q, k).diagonal(dim1=-2, dim2=-1)
    shares = weights.double().mean(-1) * seq_len
    return Estimate(
        shares.mean().item(), shares.std().item() / math.sqrt(len(shares))
    )
