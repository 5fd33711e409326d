"""Reference values for the Precision explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import torch

from ropebook.sinusoidal import inv_freq


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    The tables ``exact`` and ``cells`` have count · dim numbers: for each position its cosines, then its sines. Each
    position also has the value that was ``used`` for it after rounding, the largest error of any of its cosines, and a
    flag ``fresh`` that says whether its row differs from the previous one. ``lost`` counts the positions whose angle
    isn't finite; their numbers are set to 0. ``different`` counts the other fresh rows. ``error`` is the largest error
    overall.

    >>> from ropebook.explorers.precision import Precision
    >>> figure = Precision(dtype="bfloat16", rounded="positions", first=256, count=64)
    >>> compute(figure.dials())["different"]
    33
    """
    exact = tables(dials, "float64")
    used, cells = positions_of(dials), tables(dials, dials["dtype"])
    lost = int((~used.isfinite()).sum())
    kept = dials["count"] - lost  # lost positions come last
    used[kept:] = 0
    cells[kept:] = 0
    half = dials["dim"] // 2
    errors = (cells - exact).abs()[:, :half].amax(-1)
    errors[kept:] = 0
    fresh = torch.ones(dials["count"], dtype=torch.int64)
    fresh[1:] = (cells[1:] != cells[:-1]).any(-1)
    return {
        "exact": exact.flatten().tolist(),
        "cells": cells.flatten().tolist(),
        "used": used.tolist(),
        "errors": errors.tolist(),
        "fresh": fresh.tolist(),
        "different": int(fresh[:kept].sum()),
        "lost": lost,
        "error": errors.max().item(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A cosine is at most 1. Positions and counts must be equal.
    """
    one = ("exact", "cells", "errors", "error")
    return {name: 1.0 if name in one else 0.0 for name in compute(dials)}


def positions_of(dials: dict[str, Any]) -> torch.Tensor:
    """Return the positions from which the angles are computed, (count,) in float64.

    Positions that float16 can't represent are infinite.
    """
    positions = dials["first"] + torch.arange(dials["count"], dtype=torch.float64)
    if dials["rounded"] in ("positions", "everything"):
        positions = positions.to(getattr(torch, dials["dtype"])).double()
    return positions


def tables(dials: dict[str, Any], dtype: str) -> torch.Tensor:
    """Return cosines and sines side by side, (count, dim) in float64, rounded to ``dtype`` wherever the dials say so.

    The cosines and sines themselves are computed in float64 and rounded once, so the remaining error comes from the
    angles.
    """
    as_dtype, stage = getattr(torch, dtype), dials["rounded"]
    frequencies = inv_freq(dials["dim"], dials["base"])
    positions = positions_of({**dials, "dtype": dtype})
    if stage in ("frequencies", "everything"):
        frequencies = frequencies.to(as_dtype).double()
    angles = positions[:, None] * frequencies
    if stage == "everything":  # the product of two rounded numbers, rounded once
        angles = (positions.to(as_dtype)[:, None] * frequencies.to(as_dtype)).double()
    return torch.cat([angles.cos(), angles.sin()], -1).to(as_dtype).double()
