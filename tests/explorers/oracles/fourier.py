"""Reference values for the Fourier explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import torch

from ropebook.complex_plane import amplitudes, key_for, score_at
from ropebook.explorers.fourier import COLUMNS, FINE_SAMPLES, MOST_ROWS
from ropebook.sinusoidal import angles, wavelengths
from tests.explorers.draws import normals


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    The entries for every pair are the amplitude of its wave, |q_i|² (``size``), its product at ``distance``, and its
    wavelength. The entries for the sum of the first ``summed`` pairs are the ``score`` at that distance and the
    ``highest`` score anywhere. The curves run from distance 0 to ``span``. There are the ``waves`` of the pairs
    ``shown``, sampled at the edges of 720 columns, and the ``total``, with ``fine`` samples per step.

    >>> from ropebook.explorers.fourier import Fourier
    >>> figure = Fourier(peak=77, distance=77)
    >>> data = compute(figure.dials())
    >>> round(data["score"], 9) == round(data["highest"], 9) == figure.dim
    True
    """
    base, distance = dials["base"], dials["distance"]
    a, b = waves_of(dials)
    within = torch.arange(len(a)) < dials["summed"]
    at, fine = samples(dials)
    shown = rows(len(a))
    products = products_at(distance, a, b, dials)
    size = torch.hypot(a, b)
    return {
        "shown": shown,
        "size": size.tolist(),
        "wavelengths": wavelengths(dials["dim"], base).tolist(),
        "products": products.tolist(),
        "score": (products * within).sum().item(),
        "highest": (size * within).sum().item(),
        "waves": products_at(columns(dials), a, b, dials)[:, shown].T.tolist(),
        "fine": fine,
        "total": score_at(at, a * within, b * within, base).tolist(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A product has two terms, |a cos Δθ| and |b sin Δθ|. A sum has the terms of all its pairs.
    """
    a, b = waves_of(dials)
    data = compute(dials)
    within = torch.arange(len(a)) < dials["summed"]
    at, _ = samples(dials)
    here, ends, all_ = (products_at(place, a, b, dials, size=True) for place in (dials["distance"], columns(dials), at))
    return {
        "fine": 0.0,
        "shown": 0.0,
        "size": data["size"],
        "wavelengths": data["wavelengths"],
        "products": here.tolist(),
        "score": (here * within).sum().item(),
        "highest": data["highest"],
        "waves": ends[:, data["shown"]].T.tolist(),
        "total": (all_ * within).sum(-1).tolist(),
    }


def query(draw: int, dim: int) -> torch.Tensor:
    """Return the query, (dim,) in float64: all ones for draw 0, and standard normal numbers for any other draw."""
    if draw == 0:
        return torch.ones(dim, dtype=torch.float64)
    return torch.from_numpy(normals(f"fourier {draw}", dim))


def waves_of(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the amplitudes a_i and b_i, each (dim/2,), for the query and for a key chosen so that their score is
    highest at the distance ``peak``."""
    q = query(dials["draw"], dials["dim"])
    return amplitudes(q, key_for(q, dials["peak"], dials["base"]))


def products_at(
    distances: Any,
    a: torch.Tensor,
    b: torch.Tensor,
    dials: dict[str, Any],
    size: bool = False,
) -> torch.Tensor:
    """Return a_i cos Δθ_i + b_i sin Δθ_i for every pair, with the shape distances.shape + (dim/2,).

    With ``size=True``, return the sum of the absolute values of both terms instead.
    """
    turned = angles(distances, dials["dim"], dials["base"])
    parts = (a * turned.cos(), b * turned.sin())
    return sum(part.abs() if size else part for part in parts)


def columns(dials: dict[str, Any]) -> torch.Tensor:
    """Return the distances at the edges of the columns, (721,) in float64."""
    return torch.arange(COLUMNS + 1, dtype=torch.float64) * (dials["span"] / COLUMNS)


def samples(dials: dict[str, Any]) -> tuple[torch.Tensor, int]:
    """Return the distances at which the sum is sampled, from 0 to ``span``, and the number of samples per step."""
    span = dials["span"]
    # a power of 2, so that the sampled distances need no rounding
    fine = 1 << (max(1, FINE_SAMPLES // span).bit_length() - 1)
    return torch.arange(span * fine + 1, dtype=torch.float64) / fine, fine


def rows(pairs: int) -> list[int]:
    """Return the pairs that are drawn as waves: all of them or, if there are too many, the middle pair of each of 16
    equal-sized groups."""
    count = min(pairs, MOST_ROWS)
    return [(2 * k + 1) * pairs // (2 * count) for k in range(count)]
