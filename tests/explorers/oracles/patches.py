"""Reference values for the Patches explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import torch

from ropebook import beyond, rope
from ropebook.explorers.patches import GOLDEN, SIDE


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``scores`` has the mean cosine of the chosen patch with every patch, row by row. ``below``, ``beside`` and
    ``slanted`` are the scores of the patch's neighbours: the one below it, the one beside it and the ones on both
    diagonals. ``axes`` says what each pair depends on: 0 for rows, 1 for columns, 2 for both.

    >>> from ropebook.explorers.patches import Patches
    >>> found = compute(Patches(dim=2, dim_columns=2, base=10).dials())
    >>> found["axes"], round(found["below"], 4)
    ([0, 1], 0.7702)
    """
    waves = waves_of(dials)
    here = torch.tensor([dials["row"], dials["column"]])
    steps = torch.cartesian_prod(torch.arange(SIDE), torch.arange(SIDE)) - here
    near = torch.tensor([[1, 0], [0, 1], [1, 1], [1, -1]])
    below, beside, *slanted = mean_cosine(near, waves)
    heard = waves != 0
    both = torch.full((waves.shape[1],), dials["form"] in ("line", "mixed"))
    return {
        "scores": mean_cosine(steps, waves),
        "axes": torch.where(both, 2, heard[1].long()).tolist(),
        "below": below,
        "beside": beside,
        "slanted": slanted,
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A score is a mean of cosines, whose angles grow with the frequencies and the number of steps.
    """
    data = compute(dials)
    return {
        "scores": [1.0] * len(data["scores"]),
        "axes": [0.0] * len(data["axes"]),
        "below": 1.0,
        "beside": 1.0,
        "slanted": [1.0, 1.0],
    }


def mean_cosine(steps: torch.Tensor, waves: torch.Tensor) -> list[float]:
    return beyond.angles(steps, waves).cos().mean(-1).tolist()


def waves_of(dials: dict[str, Any]) -> torch.Tensor:
    """Return the frequencies for rows and columns: (2, pairs) in float64."""
    form, rows, columns = dials["form"], dials["dim"], dials["dim_columns"]
    if form == "axial":
        return beyond.axial([rows, columns], [dials["base"], dials["base_columns"]])
    theta = rope.inv_freq(rows + columns, dials["base"])
    if form == "line":
        return torch.stack((SIDE * theta, theta))
    if form == "mixed":
        return beyond.mixed(rows + columns, dials["base"], GOLDEN * torch.arange(len(theta), dtype=torch.float64))
    if form == "sections":
        return beyond.mrope([rows // 2, columns // 2], dials["base"])
    in_turn = [axis for _ in range(min(rows, columns) // 2) for axis in (0, 1)]
    axes = torch.tensor(in_turn + [int(columns > rows)] * (len(theta) - len(in_turn)))
    return torch.stack((theta * (axes == 0), theta * (axes == 1)))
