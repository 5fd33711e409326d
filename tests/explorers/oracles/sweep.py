"""Reference values for the Sweep explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from ropebook import decay
from ropebook.explorers.sweep import NEAR
from ropebook.sinusoidal import angles, distance_kernel


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    The entries for the chosen base are the curve at every distance below the length (``values``), its ``mean``, its
    smallest value (``least``), the distance where that value occurs (``leastAt``), the number of local ``maxima``, and
    the first distances at which the curve is below ½ (``belowHalf``) and below 0 (``firstNegative``), each −1 if there
    is none. The entries for all ten bases are the ``curves`` at a sample of ``distances`` (see `sampled_distances`),
    and the first distance at which each curve is below ½ (``halves``, −1 if there is none).

    >>> from ropebook.explorers.sweep import Sweep
    >>> figure = Sweep(base=10_000, dim=128)
    >>> data = compute(figure.dials())
    >>> data["belowHalf"], data["firstNegative"]
    (46, 1707)
    """
    base, dim, length = dials["base"], dials["dim"], dials["length"]
    [row] = decay.sweep(length, [base], [dim])
    distances = sampled_distances(length)
    curves = [share(distances, dim, other) for other in decay.BASES]
    return {
        "distances": distances.tolist(),
        "curves": [curve.tolist() for curve in curves],
        "halves": [first_half(dim, other, length) for other in decay.BASES],
        "values": share(torch.arange(length), dim, base).tolist(),
        "belowHalf": -1 if row.below_half is None else row.below_half,
        "firstNegative": -1 if row.summary.first_negative is None else row.summary.first_negative,
        "least": row.summary.least,
        "leastAt": row.summary.least_at,
        "maxima": row.summary.local_maxima,
        "mean": row.summary.mean,
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    The values are means of cosines, so their scale is the mean size of the cosines. For distances and counts the scale
    is 0, because they must match exactly.
    """
    base, dim, length = dials["base"], dials["dim"], dials["length"]
    distances = sampled_distances(length)
    values = sizes(torch.arange(length), dim, base)
    data = compute(dials)
    return {
        **dict.fromkeys(data, 0.0),
        "curves": [sizes(distances, dim, other).tolist() for other in decay.BASES],
        "values": values.tolist(),
        "least": values[data["leastAt"]].item(),
        "mean": values.mean().item(),
    }


def sampled_distances(length: int) -> torch.Tensor:
    """Return the distances below ``length`` at which the ten curves are computed.

    These are all distances below 128, followed by 64 in each octave. The spacing doubles from one octave to the next.

    >>> sampled_distances(264)[-6:].tolist()
    [248, 250, 252, 254, 256, 260]
    """
    octave = torch.arange(NEAR // 2, NEAR)
    parts = [torch.arange(NEAR)]
    while 2 * octave[0] < length:
        octave = 2 * octave
        parts.append(octave)
    distances = torch.cat(parts)
    return distances[distances < length]


def share(distances: torch.Tensor, dim: int, base: float) -> torch.Tensor:
    """Return K(Δ)/K(0) in float64, with the shape of the distances."""
    return distance_kernel(distances, dim, base) / (dim // 2)


def sizes(distances: torch.Tensor, dim: int, base: float) -> torch.Tensor:
    """Return the mean of |cos Δθ_i|."""
    return angles(distances, dim, base).cos().abs().mean(-1)


def first_half(dim: int, base: float, length: int) -> int:
    """Return the first distance at which K(Δ)/K(0) is below ½, or −1 if there is none below ``length``."""
    found = decay.first_below(partial(share, dim=dim, base=base), 0.5, length)
    return -1 if found is None else found
