"""RoFormer's bound on the score: partial sums of rotating unit vectors, their level, and how they bound a score.

Notation: q_i and k_i are pair i of the query and the key as complex numbers, and h_i = q_i conj(k_i). The score and the
partial sums are

    S(Δ) = Re Σ_i h_i e^{iΔθ_i},        S_j(Δ) = Σ_{i<j} e^{iΔθ_i},   j = 1 … d/2,

as in Su et al., "RoFormer" (2021), section 3.4.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.complex_plane import amplitudes, score_at
from ropebook.rope import Positions


def partial_sums(distances: Positions, dim: int, base: float = 10000.0) -> Tensor:
    """Return the partial sums S_1 … S_{d/2} at each distance: shape distances.shape + (dim/2,), complex128.

    They are the points of a walk in the plane in which step i has length 1 and direction Δθ_i. At Δ = 0 the walk is a
    straight line; at large Δ it curls up.

    >>> partial_sums(0, dim=8)
    tensor([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j], dtype=torch.complex128)
    """
    radians = rope.angles(distances, dim, base)
    return torch.polar(torch.ones_like(radians), radians).cumsum(-1)


def mean_partial_sum(
    distances: Positions, dim: int, base: float = 10000.0
) -> Tensor:
    """Return the mean of |S_1| … |S_{d/2}| at each distance, as in RoFormer's figure 2: shape distances.shape, float64.

    The mean is (d/2 + 1)/2 at Δ = 0, and is an even function of Δ. The sum is taken pair by pair, so it needs only as
    much memory as a few copies of the distances.

    >>> mean_partial_sum([0, 1000], dim=8)
    tensor([2.5000, 1.0929], dtype=torch.float64)
    """
    frequencies = rope.inv_freq(dim, base).tolist()
    total = sum(
        partial_sum.abs() for partial_sum in running_sums(distances, frequencies)
    )
    return total / len(frequencies)


def partial_sum_floor(dim: int) -> float:
    """Return a lower bound on the mean of |S_j| for any Δ and base. The bound is at least 1/2.

    |S_1| = 1, and |S_j| + |S_{j+1}| ≥ |S_{j+1} − S_j| = 1, so Σ_j |S_j| ≥ 1 + ⌊(d/2 − 1)/2⌋.

    >>> partial_sum_floor(8), partial_sum_floor(6)
    (0.5, 0.6666666666666666)
    """
    n_pairs = checks.even("dim", dim) // 2
    return (1 + (n_pairs - 1) // 2) / n_pairs


def random_walk_level(dim: int) -> float:
    """Return the level that the mean of |S_j| approaches when the directions Δθ_i are practically random.

    The level is the mean of √(πj)/2 over j.

    For large j, √(πj)/2 is the mean length of a walk of j unit steps in random directions (Rayleigh's distribution).

    >>> round(random_walk_level(128), 3)
    4.779
    """
    n_pairs = checks.even("dim", dim) // 2
    return sum(math.sqrt(math.pi * j) / 2 for j in range(1, n_pairs + 1)) / n_pairs


class Bounds(NamedTuple):
    """A score and three bounds on its absolute value; see `bounds`."""

    score: Tensor
    steps: Tensor
    abel: Tensor
    triangle: Tensor


def bounds(
    q: Tensor,
    k: Tensor,
    distances: Positions,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Bounds:
    """Return the score at each distance, and three bounds on it. Each has shape (…,) + distances.shape and is float64.

    With h_{d/2} = 0, summation by parts gives Σ_i h_i e^{iΔθ_i} = −Σ_i S_{i+1}(h_{i+1} − h_i), hence

        |score| ≤ Σ_i |S_{i+1}| |h_{i+1} − h_i|            (``steps``)
                ≤ max_i |h_{i+1} − h_i| · Σ_i |S_{i+1}|    (``abel``, RoFormer's, section 3.4.3).

    ``triangle`` comes from the triangle inequality, |score| ≤ Σ_i |h_i|, so it is the same at every distance.

    ``q``, ``k``: (…, dim), floating point, with the same dim and shapes that broadcast.

    >>> ones = torch.ones(8)
    >>> near, far = bounds(ones, ones, [1, 1000]).abel
    >>> round(near.item(), 2), round(far.item(), 2)  # the scores themselves are 7.07 and 2.25
    (18.34, 8.74)
    """
    a, b = amplitudes(q, k, layout)
    frequencies = rope.inv_freq(2 * a.shape[-1], base).tolist()
    distances = rope.as_positions("distances", distances).to(a.device)
    h = torch.complex(a, -b)
    steps = torch.cat((h, torch.zeros_like(h[..., :1])), -1).diff().abs()
    axes = (..., *(None,) * distances.ndim)
    by_steps, lengths = 0, 0
    for i, partial_sum in enumerate(running_sums(distances, frequencies)):
        length = partial_sum.abs()
        by_steps = by_steps + steps[..., i][axes] * length
        lengths = lengths + length
    return Bounds(
        score_at(distances, a, b, base),
        by_steps,
        steps.amax(-1)[axes] * lengths,
        h.abs().sum(-1)[axes].expand_as(by_steps),
    )


def running_sums(
    distances: Positions, frequencies: Sequence[float]
) -> Iterator[Tensor]:
    """Yield S_1, S_2, … one after another, each for all distances at once: complex128, with the shape of ``distances``.

    >>> [walked.abs().item() for walked in running_sums(0, [1.0, 0.1])]
    [1.0, 2.0]
    """
    distances = rope.as_positions("distances", distances)
    where = rope.float64_device(distances.device)
    distances = distances.to(device=where, dtype=torch.float64)
    total = torch.zeros_like(distances, dtype=torch.complex128)
    for frequency in frequencies:
        radians = distances * frequency
        total = total + torch.polar(torch.ones_like(radians), radians)
        yield total
