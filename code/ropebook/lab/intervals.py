"""Intervals that contain the spread between seeds: of a mean over seeds and files that are crossed.

Every seed's model is tried on the same files (or texts, or contexts). So a number x_si has a part of its own, a part that is the
seed's, and a part that is the file's, and all three are drawn by chance: x_si = μ + a_s + b_i + e_si. The mean over all is uncertain
for all three reasons, Var(x̄) = σ_a²/S + σ_b²/I + σ_e²/(S·I). The mean squares of a two-way table estimate that sum without bias
(Searle, Casella, McCulloch 1992, section 4.3), and Satterthwaite's rule says with how many degrees of freedom. With three seeds that
differ much there are two, and the interval is as wide as two degrees of freedom make it: that is what three seeds are worth. Where
seeds or files seem to differ by less than the rest makes them differ by chance, so much is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.shapes import Float


class Interval(NamedTuple):
    """A mean, its interval, its standard error, and the degrees of freedom of that."""

    mean: float
    low: float
    high: float
    error: float
    freedom: float


def crossed(values: Float[Tensor, "seeds files"], level: float = 0.95) -> Interval:
    """The mean of (seeds, files) and its interval; files with NaN in any seed are left out.

    ``ValueError`` if there are fewer than two seeds, or fewer than two files are left.

    >>> found = crossed(torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    >>> round(found.mean, 3), round(found.error, 3), round(found.freedom, 3)  # all from the files
    (2.0, 0.577, 2.0)
    """
    checks.floating("values", values)
    checks.number("level", level, minimum=0.5, maximum=1 - 1e-9)
    if values.ndim != 2:
        raise ValueError(
            f"values must be of shape (seeds, files), got {tuple(values.shape)}"
        )
    values = values.double()[:, ~values.isnan().any(0)]
    seeds, files = values.shape
    if seeds < 2 or files < 2:
        raise ValueError(
            f"values must be of two seeds and two files at least, got {seeds} and {files}"
        )
    mean = values.mean()
    by_seed, by_file = values.mean(1, keepdim=True), values.mean(0, keepdim=True)
    rest = values - by_seed - by_file + mean
    squares = [
        (files * (by_seed - mean).square().sum() / (seeds - 1)).item(),
        (seeds * (by_file - mean).square().sum() / (files - 1)).item(),
        (rest.square().sum() / ((seeds - 1) * (files - 1))).item(),
    ]
    freedoms = [seeds - 1, files - 1, (seeds - 1) * (files - 1)]
    # no variance is below 0, so seeds and files count for as much as the rest alone
    # would make of them. To leave them out where their part comes out small would
    # leave it out where it is small by chance
    rest_alone = squares[2]
    squares[:2] = (max(square, rest_alone) for square in squares[:2])
    total = squares[0] + squares[1] - rest_alone
    weight = sum(
        square**2 / freedom
        for square, freedom in zip(squares, freedoms, strict=True)
    )
    freedom = max(total**2 / weight, 1.0) if weight else math.inf
    error = math.sqrt(total / (seeds * files))
    reach = student(0.5 + level / 2, freedom) * error if error else 0.0
    return Interval(
        mean.item(), mean.item() - reach, mean.item() + reach, error, freedom
    )


def student(probability: float, freedom: float) -> float:
    """The quantile of Student's t for a probability above ½ and any degrees of freedom, to six digits.

    >>> round(student(0.975, 2), 4), round(student(0.975, math.inf), 4)
    (4.3027, 1.96)
    """
    checks.number("probability", probability, above=0.5, maximum=1 - 1e-10)
    if not freedom >= 1:
        raise ValueError(f"freedom must be 1 at least, got {freedom}")
    t = NormalDist().inv_cdf(probability)
    if freedom > _MANY:
        near = (t**3 + t) / (4 * freedom)
        return t + near + (5 * t**5 + 16 * t**3 + 3 * t) / (96 * freedom**2)
    # beyond 0 the tail is convex: from below, where the normal quantile lies, Newton's steps never go too far
    step = t
    while step > 1e-9 * t:
        tail, density = _above(t, freedom)
        step = (tail - (1 - probability)) / density
        t += step
    return t


_MANY = 300  # degrees of freedom from which the first terms of Fisher's expansion have eight digits


def p_different(found: Interval, from_: float = 0.0) -> float:
    """The two-sided p-value of a mean that differs from ``from_``.

    >>> round(p_different(Interval(4.303, 0.0, 0.0, 1.0, 2.0)), 3)
    0.05
    """
    if not found.error:
        return float(found.mean == from_)
    t = abs(found.mean - from_) / found.error
    return min(1.0, 2 * _above(t, min(found.freedom, _MOST))[0])


def p_equivalent(found: Interval, margin: float) -> float:
    """The p-value of a mean within ±``margin`` of 0: of the two one-sided tests the larger (Schuirmann 1987).

    >>> round(p_equivalent(Interval(0.0, 0.0, 0.0, 1.0, 2.0), 2.92), 3)
    0.05
    """
    checks.number("margin", margin, above=0)
    if abs(found.mean) >= margin:
        return 1.0
    if not found.error:
        return 0.0
    t = (margin - abs(found.mean)) / found.error
    return _above(t, min(found.freedom, _MOST))[0]


def discoveries(p_values: Sequence[float], share: float = 0.05) -> list[bool]:
    """Which of many p-values pass, so that of those that do at most a ``share`` is expected to be false.

    Benjamini and Hochberg 1995: with m of them, the k smallest, k the largest for which the kth is at most k·share/m.

    >>> discoveries([0.04, 0.001, 0.012, 0.6])
    [False, True, True, False]
    """
    checks.number("share", share, above=0, maximum=1)
    m = len(p_values)
    ranked = sorted(p_values)
    passing = [p for k, p in enumerate(ranked, 1) if p <= k * share / m]
    return [bool(passing) and p <= passing[-1] for p in p_values]


_MOST = 1e4  # degrees of freedom: more make no difference that counts, and Simpson's rule is still fine enough


def _above(t: float, freedom: float) -> tuple[float, float]:
    """The probability beyond t, and the density at t.

    With t = √ν tan φ the density is proportional to cos^(ν − 1) φ dφ, which is summed from φ to π/2 by Simpson's rule.
    """
    start = math.atan(t / math.sqrt(freedom))
    angles = torch.linspace(start, math.pi / 2, 1001, dtype=torch.float64)
    heights = angles.cos().clamp(min=0) ** (freedom - 1)
    ends = heights[0] + heights[-1]
    area = ends + 4 * heights[1:-1:2].sum() + 2 * heights[2:-1:2].sum()
    area = area.item() * (math.pi / 2 - start) / 3000
    scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale = math.exp(scale) / math.sqrt(math.pi)
    density = scale * math.cos(start) ** (freedom + 1) / math.sqrt(freedom)
    return area * scale, density
