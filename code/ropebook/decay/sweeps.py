"""The effect of base and dimension on the score of q = k = (1, …, 1)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from torch import Tensor

from ropebook import checks
from ropebook.decay.curves import Device, Summary, first_below, summarize
from ropebook.rope import Positions
from ropebook.sinusoidal import distance_kernel

BASES = (1.0, 2.0, 10.0, 1e2, 5e2, 1e3, 1e4, 1e5, 1e6, 1e7)
DIMS = (8, 16, 32, 64, 128, 256)


class SweepRow(NamedTuple):
    """One row of `sweep`: a base and a dimension, with ``below_half`` and ``summary`` for the curve K(Δ)/K(0)."""

    base: float
    dim: int
    below_half: int | None
    summary: Summary


def sweep(
    length: int,
    bases: Iterable[float] = BASES,
    dims: Iterable[int] = DIMS,
    device: Device = None,
) -> list[SweepRow]:
    """Summarize the score of q = k = (1, …, 1) over Δ < length for each dim and base, as a share of its value at Δ = 0.

    ``below_half`` is the first distance at which the share is below 1/2, or None if it never is.

    >>> [row.below_half for row in sweep(1000, bases=[100, 10000], dims=[64])]
    [5, 28]
    """
    rows = []
    bases = list(bases)
    for dim in dims:
        for base in bases:
            curve = partial(share, dim=checks.even("dim", dim), base=base)
            half = first_below(curve, 0.5, length, device)
            summary = summarize(curve, length, device)
            rows.append(SweepRow(float(base), dim, half, summary))
    return rows


def share(distances: Positions, dim: int, base: float = 10000.0) -> Tensor:
    """Return S(Δ)/S(0) for q = k = (1, …, 1), which is K(Δ)/K(0): shape distances.shape, float64.

    >>> share([0, 46], dim=128)  # below a half for the first time
    tensor([1.0000, 0.4881], dtype=torch.float64)
    """
    return distance_kernel(distances, dim, base) / (checks.even("dim", dim) // 2)
