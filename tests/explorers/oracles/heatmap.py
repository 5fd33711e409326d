"""Reference values for the Heatmap explorer, computed in float64 with the book's modules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ropebook.explorers.heatmap import MOST_COLUMNS
from ropebook.sinusoidal import (
    angles,
    concatenated_order,
    distance_kernel,
    encoding,
    turns,
    wavelengths,
)


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``cells`` lists the picture's cells row by row, ``rows`` · ``columns`` numbers in all. Each column covers ``per``
    positions (see :func:`blends`). ``kernel`` is K(m − reference)/(d/2) for each position m. ``wavelengths`` has one
    entry per pair, and ``turned`` is the number of pairs that complete a turn by the last position.

    >>> from ropebook.explorers.heatmap import Heatmap
    >>> figure = Heatmap(length=100, reference=50)
    >>> round(compute(figure.dials())["kernel"][50], 12)
    1.0
    >>> Heatmap(dim=7)
    Traceback (most recent call last):
        ...
    traitlets.traitlets.TraitError: dim must be an even integer >= 2 and <= 512, got 7
    """
    base, dim, length = dials["base"], dials["dim"], dials["length"]
    cells, per = blends(dials)
    return {
        "cells": cells.ravel().tolist(),
        "rows": dim,
        "columns": cells.shape[1],
        "per": per,
        "kernel": (distance_kernel(distances(dials), dim, base) / (dim / 2)).tolist(),
        "wavelengths": wavelengths(dim, base).tolist(),
        "turned": int((turns(length - 1, dim, base) >= 1).sum()),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A cell is a weighted mean of sines or cosines, the kernel is a mean of cosines, and a wavelength is a single term.
    """
    cosines = angles(distances(dials), dials["dim"], dials["base"]).cos()
    return {
        "cells": blends(dials, size=True)[0].ravel().tolist(),
        "rows": 0.0,
        "columns": 0.0,
        "per": 0.0,
        "kernel": cosines.abs().mean(-1).tolist(),
        "wavelengths": wavelengths(dials["dim"], dials["base"]).tolist(),
        "turned": 0.0,
    }


def distances(dials: dict[str, Any]) -> torch.Tensor:
    """Return Δ = m − reference for every position m."""
    return torch.arange(dials["length"]) - dials["reference"]


def blends(dials: dict[str, Any], size: bool = False) -> tuple[np.ndarray, int]:
    """Return the picture and the number of positions per column (``per``). The picture is (dim, columns) in float64,
    with rows in the order of the display.

    Up to 640 positions get a column each. Longer texts are smoothed: a column centred at c is the weighted mean of all
    positions m with |m − c| < 2·per, including positions before 0 and after the last one. The weights are cos²(π(m −
    c)/(4·per)), a Hann window. It makes waves that are too short for the columns vanish, instead of looking like slower
    waves. With ``size=True``, the absolute values of the encoding are averaged.
    """
    dim, length = dials["dim"], dials["length"]
    per = math.ceil(length / MOST_COLUMNS)
    middles = torch.arange(math.ceil(length / per), dtype=torch.float64) * per + (per - 1) / 2
    reach = 2 * per if per > 1 else 1
    # Each centre plus each offset must be an integer position. So the offsets are integers if the centres are integers,
    # and half-integers otherwise.
    offsets = np.arange(1 - reach, reach) if per % 2 else np.arange(0.5 - reach, reach)
    weights = np.cos(np.pi * offsets / (2 * reach)) ** 2
    total = np.zeros((len(middles), dim))
    for offset, weight in zip(offsets.tolist(), weights / weights.sum(), strict=True):
        values = encoding(middles + offset, dim, dials["base"], torch.float64).numpy()
        total += weight * (np.abs(values) if size else values)
    order = np.arange(dim) if dials["interleaved"] else concatenated_order(dim).numpy()
    return total.T[order], per
