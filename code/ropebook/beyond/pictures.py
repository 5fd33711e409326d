"""Figures for the chapter's pages."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import accumulate

import torch

from ropebook.beyond.axes import angles, axial, mixed
from ropebook.beyond.mrope import SPLITS, axis_of_pair
from ropebook.beyond.shifts import shift_errors
from ropebook.figures import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    display_figure,
    figure,
    heatmap,
    name_line,
    powers,
)
from ropebook.shapes import Float

AXES = (BLUE, MUTED, ORANGE)
LINES = (
    # vectors, angles, label, colour
    (torch.float64, "float64", "float64", MUTED),
    (torch.float32, "float64", "float32, angles in float64", BLUE),
    (torch.float32, "float32", "float32, angles in float32", ORANGE),
    (torch.bfloat16, "float64", "bfloat16, angles in float64", INK),
)


def similarity(
    rows: int, columns: int, waves: torch.Tensor
) -> Float[torch.Tensor, "rows columns"]:
    """Compute the score of the middle patch with every patch for q = k = (1, …, 1), as a share of the largest score.

    This share is the mean cosine of the pairs' angles.
    """
    places = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))
    middle = torch.tensor([rows // 2, columns // 2])
    return angles(places - middle, waves).cos().mean(-1).view(rows, columns)


def patches(side: int = 15, dim: int = 64, base: float = 100.0) -> None:
    """Show the score of the middle patch with every patch in three cases.

    The patches are numbered in a line, have axial waves, or have mixed waves.
    """
    theta = axial([dim], base)
    # If the patches are numbered row by row, one row down is as far as `side` columns to the right.
    line = torch.cat((side * theta, theta))
    golden = math.pi * (3 - math.sqrt(5))
    directions = golden * torch.arange(dim // 2, dtype=torch.float64)
    panels = (
        ("in a line", line),
        ("axial", axial([dim // 2] * 2, base)),
        ("mixed", mixed(dim, base, directions)),
    )
    fig, axes = figure(660, 240, columns=3)
    for ax, (title, waves) in zip(axes, panels, strict=True):
        heatmap(ax, similarity(side, side, waves), limit=1, form=None)
        ax.set_title(title)
    display_figure(
        fig,
        f"Three maps of {side} by {side} patches. With patches numbered in a line, only a short bar in the row of the middle "
        "patch is dark. With the axial form, a dark cross runs along the row and the column of the middle patch. With the "
        "mixed form, there is a round spot around the middle patch.",
        f"The score of each patch with the middle patch, for q = k = (1, …, 1), d = {dim} and base {base:g}. Blue scores are "
        "positive, and orange scores are negative.",
    )


def sections(splits: Mapping[str, Mapping[str, object]] = SPLITS) -> None:
    """Show which axis each pair follows. Each named split is a row of bars, with the fastest pairs first."""
    fig, ax = figure(560, 150)
    names, rows = [], []
    for at, (name, split) in enumerate(splits.items()):
        given, in_turn = split["sections"], split["interleaved"]
        for pair, axis in enumerate(axis_of_pair(given, interleaved=in_turn)):
            ax.barh(at, 1, left=pair, height=0.7, color=AXES[axis], linewidth=0.3)
        if not in_turn:
            ends = list(accumulate(given, initial=0))
            for axis, *section in zip(
                ("time", "row", "column"), ends, ends[1:], strict=False
            ):
                ax.text(sum(section) / 2, at - 0.42, axis, ha="center", va="bottom")
        names.append(name)
        counts = f"{given[0]} for time, {given[1]} for the row, {given[2]} for the column"
        order = (
            "in turn, the last ones for time" if in_turn else "one after the other"
        )
        rows.append(f"{name}: {counts}, {order}.")
    ax.set(
        yticks=range(len(names)),
        yticklabels=names,
        xlim=(0, max(sum(split["sections"]) for split in splits.values())),
        ylim=(-0.85, len(names) - 0.6),
        xlabel="pair i, from fast to slow",
    )
    ax.invert_yaxis()
    ax.grid(False)
    display_figure(
        fig,
        f"Rows of coloured bars, with a bar for each pair. {' '.join(rows)}",
        "The axis that each pair follows in each model. The colours mean the same in both rows.",
    )


def shifts(dim: int = 64, trials: int = 64) -> None:
    """Plot how much a score changes when both places move, against how far they move. The plot shows the median and
    the largest change of many scores."""
    by = [int(10 ** (e / 2)) for e in range(13)]
    fig, ax = figure(560, 320)
    for dtype, wide, label, colour in LINES:
        found = [
            shift_errors(s, dim=dim, dtype=dtype, angles=wide, trials=trials)
            for s in by
        ]
        [line] = ax.plot(by, [one.median() for one in found], color=colour)
        name_line(line, label, at=0, offset=(4, -11))
        ax.plot(
            by,
            [one.max() for one in found],
            color=colour,
            linewidth=1,
            linestyle=":",
        )
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="how far both positions move (tokens)",
        ylabel="change in the score",
        ylim=(1e-16, 1),
    )
    powers(ax.xaxis)
    powers(ax.yaxis)
    display_figure(
        fig,
        "Four lines show the change against moves of 1 to a million tokens, each with a dotted line above it. With float64, it rises from "
        "below 10⁻¹⁴ to 10⁻¹². With angles in float64, it stays near 10⁻⁸ for float32 and near 10⁻³ for bfloat16, but with "
        "angles in float32 it rises with the move and exceeds that of bfloat16.",
        "How much a score changes when both positions move, against the size of the move. Solid lines are medians, and dotted lines are maxima, over "
        f"{trials} random pairs of unit vectors with d = {dim}, at positions below 4,096.",
    )
