"""The figures for the chapter's pages. Each function draws one figure and displays it with a text alternative."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from ropebook import checks
from ropebook.decay.bound import (
    bounds,
    mean_partial_sum,
    partial_sum_floor,
    partial_sums,
    random_walk_level,
)
from ropebook.decay.curves import Curve, trend
from ropebook.decay.scores import random_scores
from ropebook.decay.sweeps import BASES, DIMS, share
from ropebook.figures import (
    BLUE,
    INK,
    MUTED,
    UNDER_NAME,
    display_figure,
    figure,
    powers,
)
from ropebook.sinusoidal import distance_kernel

LEAST_WIDTH = 1.012
"""The minimum width of a bar on the logarithmic axis, as a factor, so that a single base can be seen."""


def trends(length: int = 10**6) -> None:
    """Plot the trend of S(Δ)/S(0) for q = k = (1, …, 1) and Δ < ``length``, with few pairs and with many."""
    fig, axes = figure(480, 270, columns=2, sharey=True)
    for ax, dim in zip(axes, (8, 256), strict=True):
        _band(ax, partial(share, dim=dim), length, BLUE)
        ax.axhline(0, color=MUTED, linewidth=1)
        ax.set(xscale="log", title=f"d = {dim}", xlabel="distance Δ")
        powers(ax.xaxis)
        ax.set_xticks([1, 100, 10_000, 1_000_000])
    axes[0].set_ylabel("S(Δ) / S(0)")
    display_figure(
        fig,
        "Two panels show the score against distances up to a million, on a logarithmic axis. For d = 8, the mean falls to zero "
        "in steps, and the wide band around it reaches one again. For d = 256, the mean falls from one to zero in a straight "
        "line, and the band around it is narrow.",
        "The score against distance, for q = k = (1, …, 1) and base 10,000. The line is the mean over a window of distances, and "
        "the band runs from the smallest score in the window to the largest. The mean falls while the score swings around it, "
        "and with fewer pairs the swings are wider.",
    )


def random_band(dim: int, samples: int = 2000) -> None:
    """Plot the mean and spread of the scores of random vectors, with the score of q = k = (1, …, 1) for comparison."""
    distances = torch.logspace(0, 5, 120).round().unique().long()
    spread = random_scores(distances, dim, samples=samples)
    fig, ax = figure(480, 280)
    ends = (spread.mean - spread.std, spread.mean + spread.std)
    ax.fill_between(distances, *ends, color=MUTED, alpha=0.25, linewidth=0)
    ax.plot(distances, spread.mean, color=MUTED)
    ax.plot(
        distances, 2 * distance_kernel(distances, dim), color=BLUE, linewidth=1.2
    )
    ax.text(25, 0.78 * dim, "q = k = (1, …, 1)", color=BLUE, bbox=UNDER_NAME)
    ax.text(
        1.1,
        -1.2 * math.sqrt(dim),
        "q, k random: mean ± spread",
        color=MUTED,
        va="top",
        bbox=UNDER_NAME,
    )
    ax.set(xscale="log", xlabel="distance Δ", ylabel="score")
    powers(ax.xaxis)
    display_figure(
        fig,
        f"Scores against distance, on a logarithmic axis. The curve for equal vectors oscillates as it falls from {dim} to zero. The "
        f"band for random vectors is level around zero and reaches about {math.sqrt(dim):.0f} to each side at all distances.",
        f"Scores against distance, for d = {dim} and base 10,000. On average, the score of equal vectors falls with distance, but "
        "scores of random vectors have mean zero and standard deviation √d at every distance.",
    )


def sweep_grid(length: int = 4096) -> None:
    """Plot S(Δ)/S(0) for q = k = (1, …, 1) and Δ < ``length``.

    There is a small panel for each combination of BASES and DIMS.
    """
    fig, axes = figure(
        480, 620, rows=len(BASES), columns=len(DIMS), sharex=True, sharey=True
    )
    for row, base in zip(axes, BASES, strict=True):
        for ax, dim in zip(row, DIMS, strict=True):
            _band(ax, partial(share, dim=dim, base=base), length, BLUE, 0.3, 1.2)
            ax.axhline(0, color=MUTED, linewidth=0.8)
            ax.set(xscale="log", ylim=(-1.05, 1.05), yticks=[])
            ax.set_xticks([1, 1000], ["1", "10³"])
            ax.minorticks_off()
            ax.grid(False)
        power = round(math.log10(base))
        name = f"{base:.0f}" if base < 1e4 else f"10{'⁴⁵⁶⁷'[power - 4]}"
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for ax, dim in zip(axes[0], DIMS, strict=True):
        ax.set_title(f"{dim}", loc="center")
    fig.supxlabel("distance Δ", fontsize=12.5)
    fig.supylabel("base", fontsize=12.5)
    fig.suptitle("d", fontsize=13)
    display_figure(
        fig,
        "Sixty small panels, for ten bases from 1 to ten million and six dimensions from 8 to 256. At base 1, a band from "
        "minus one to one fills every panel. With larger bases the curves fall later, and with larger d the band around the "
        "mean is narrower.",
        f"The score S(Δ)/S(0) for q = k = (1, …, 1), against distances from 1 to {length:,}. The vertical axis of each panel runs from "
        "−1 to 1. The line is the mean around a distance, and the band runs from the smallest to the largest value. The base "
        "decides how soon the score falls, and d decides how widely it swings.",
    )


def walks(dim: int, distances: Sequence[int] = (3, 300, 30_000)) -> None:
    """Draw the partial sums S_1 … S_{d/2} as walks in the plane, with one panel for each of three distances."""
    fig, axes = figure(480, 240, columns=3)
    for ax, distance in zip(axes, distances, strict=True):
        steps = torch.cat((torch.zeros(1), partial_sums(distance, dim)))
        ax.plot(steps.real, steps.imag, color=BLUE, linewidth=1.3)
        ax.plot(0, 0, "o", color=INK, markersize=5)
        ax.plot(steps[-1].real, steps[-1].imag, "o", color=BLUE, markersize=7)
        ax.set(title=f"Δ = {distance:,}", aspect="equal", adjustable="datalim")
        ax.tick_params(labelsize=11)
    display_figure(
        fig,
        f"Three walks of {dim // 2} steps. At the first distance, a short curl is followed by a long, nearly straight line. At the "
        "second, a larger tangle is followed by a bent line, and at the third, the whole walk is a tangle.",
        f"The partial sums for d = {dim} as walks in the plane, from the start (small dot) to the end (large dot). All three walks "
        f"have {dim // 2} steps, but the scales of the panels differ. The bound depends on how far each walk gets from its start.",
    )


def falling_mean(dim: int, length: int = 10**6) -> None:
    """Plot the mean of |S_1| … |S_{d/2}| for Δ < ``length``, together with `random_walk_level` and
    `partial_sum_floor`."""
    fig, ax = figure(480, 290)
    _band(ax, partial(mean_partial_sum, dim=dim), length, BLUE)
    levels = {
        "a random walk": random_walk_level(dim),
        "never below": partial_sum_floor(dim),
    }
    for name, level in levels.items():
        ax.axhline(level, color=MUTED, linewidth=1.2, linestyle="--")
        ax.text(1, 1.05 * level, name, color=MUTED, va="bottom")
    ax.axvline(250, color=MUTED, linewidth=1.2)
    ax.text(
        280,
        30,
        "the paper's figure\nends about here",
        color=MUTED,
        va="top",
        bbox=UNDER_NAME,
    )
    ax.set(
        xscale="log",
        yscale="log",
        ylim=(0.4, 40),
        xlabel="distance Δ",
        ylabel="mean of |Sⱼ|",
    )
    powers(ax.xaxis)
    ax.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    ax.minorticks_off()
    display_figure(
        fig,
        "The mean length of the partial sums against distance, on logarithmic axes. It falls in a straight line from about 30 to "
        "about 5 near distance ten thousand and then stays level up to a million, inside a band that becomes wider. Dashed "
        "lines mark the level of a random walk and a lower bound.",
        f"The factor of the bound that depends on the distance, for d = {dim} and base 10,000. The line is the mean in a window of "
        "distances, and the band runs from the smallest to the largest value. "
        f"At Δ = 0 it is {(dim // 2 + 1) / 2}, and it falls to about {random_walk_level(dim):.1f}, but no further.",
    )


def bounds_beside_scores(vectors: Mapping[str, Tensor]) -> None:
    """Plot |score| and the paper's bound for q = k, relative to the bound from the triangle inequality.

    Each of the two named vectors has its own panel.
    """
    places = torch.logspace(0, 5, 200).round().unique().long()
    fig, axes = figure(480, 290, columns=2)
    for ax, (title, vector) in zip(axes, vectors.items(), strict=True):
        found = bounds(vector, vector, places)
        size = found.score.abs() / found.triangle
        ax.plot(places, size, ".", color=BLUE, markersize=3)
        ax.plot(places, found.abel / found.triangle, color=INK, linewidth=1.5)
        ax.axhline(1, color=MUTED, linewidth=1.5, linestyle="--")
        ax.set(
            xscale="log",
            yscale="log",
            title=title,
            xlabel="distance Δ",
            ylim=(1e-3, 60),
        )
        powers(ax.xaxis)
        ax.set_xticks([1, 100, 10_000])
        powers(ax.yaxis)
    axes[0].text(1, 1.15, "Σ|hᵢ|", color=MUTED, va="bottom")
    axes[0].text(40, 17, "the paper's bound", color=INK, va="bottom")
    axes[0].text(1.5, 0.02, "|score|", color=BLUE)
    display_figure(
        fig,
        "In the left of two panels with logarithmic axes, the paper's bound is above the dashed line of the triangle "
        "inequality at every distance. In the right panel, it starts on the dashed line and falls to about a seventh of it. The "
        "dots for the score lie below both lines, often far below.",
        "Dots show the absolute score at each distance, and the line is the paper's bound. Both are divided by the bound from the triangle "
        f"inequality (dashed). Here d = {vector.shape[-1]}. On the left, the step from the last hᵢ to 0 makes the paper's bound loose. "
        "On the right, all steps are small, so the paper's bound is better.",
    )


def islands(
    runs: Mapping[str, Sequence[tuple[float, float, int]]],
    published: Mapping[str, float],
    ours: Mapping[str, float],
    measured: str,
) -> None:
    """Draw the admissible bases for each context length as bars, and the published smallest base and ours as triangles.

    ``runs``: for each length's label, the (first, last, count) of each run. ``measured``: where and when the runs were
    found.
    """
    fig, ax = figure(480, 320)
    for place, (label, found) in enumerate(runs.items()):
        for first, last, _ in found:
            width = max(last, first * LEAST_WIDTH) - first
            ax.barh(place, width, left=first, height=0.5, color=BLUE, linewidth=0)
        marks = {"color": MUTED, "markersize": 6, "clip_on": False}
        ax.plot(published[label], place - 0.42, "v", **marks)
        ax.plot(ours[label], place + 0.42, "^", color=INK, markersize=6)
    ax.set_yticks(range(len(runs)), list(runs))
    ax.set(
        xscale="log",
        xlim=(1e3, 1e8),
        ylim=(len(runs) - 0.2, -0.8),
        xlabel="base",
        ylabel="context L",
    )
    ax.grid(False, axis="y")
    legend = {"va": "center", "bbox": UNDER_NAME}
    ax.text(2e3, len(runs) - 1.42, "▼ paper", color=MUTED, **legend)
    ax.text(2e3, len(runs) - 0.65, "▲ ours, two digits", color=INK, **legend)
    powers(ax.xaxis)
    display_figure(
        fig,
        "Each context length has a row of bars on a logarithmic axis of bases, with narrow islands, a long bar with gaps, and a "
        "solid bar up to the right end. For longer contexts, the bars begin further to the right. Triangles mark the smallest base "
        "in the paper and in our search.",
        "The bases with three significant digits that meet the criterion for each context length, for d = 128 (blue). "
        "Islands are drawn a little wider than they are. In each row, some bases fail although smaller bases pass. "
        f"{measured}",
    )


def _band(
    ax,
    curve: Curve,
    length: int,
    colour: str,
    alpha: float = 0.25,
    width: float = 2,
) -> None:
    """Draw the trend of a curve: a line for the mean, and a band from the smallest to the largest value."""
    middles, found = trend(curve, checks.integer("length", length, minimum=2))
    ax.fill_between(
        middles, found.least, found.greatest, color=colour, alpha=alpha, linewidth=0
    )
    ax.plot(middles, found.mean, color=colour, linewidth=width)
