"""The pictures for the chapter's pages. Each function draws a picture and displays it with a text alternative."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from ropebook import checks
from ropebook.rope import turns, wavelengths
from ropebook.sinusoidal.codes import binary_digits, binary_waves
from ropebook.sinusoidal.distances import distance_kernel
from ropebook.sinusoidal.uniqueness import closest_values

if TYPE_CHECKING:
    from ropebook.sinusoidal.adding import FourTerms


def draw_binary_waves(bits: int = 4) -> None:
    """Draw the binary digits of the positions 0 … 2^bits − 1, each with the wave inside it. ``bits``: 2 to 6."""
    from ropebook.figures import BLUE, INK, display_figure, figure

    bits = checks.integer("bits", bits, minimum=2, maximum=6)
    positions = torch.arange(2**bits)
    digits, dots = binary_digits(positions, bits), binary_waves(positions, bits)
    between = torch.linspace(-0.5, 2**bits - 0.5, 8 * 2**bits + 1)
    waves, edges = binary_waves(between, bits), torch.arange(2**bits + 1) - 0.5
    fig, axes = figure(480, 80 * bits, rows=bits, sharex=True)
    for j, ax in enumerate(reversed(axes)):
        blocks = 2 * digits[:, j] - 1
        ax.stairs(blocks, edges, fill=True, color=BLUE, alpha=0.2, linewidth=0)
        ax.plot(between, waves[:, j], color=BLUE)
        ax.plot(positions, dots[:, j], ".", color=INK, markersize=5)
        ax.set(ylim=(-1.2, 1.2), yticks=[-0.6, 0.6], yticklabels=["0", "1"])
        ax.set(ylabel=f"digit {j}")
        ax.tick_params(length=0)
        ax.grid(False)
    axes[-1].set(xlim=(-0.5, 2**bits - 0.5), xlabel="position m")
    display_figure(
        fig,
        f"A row for each of the {bits} binary digits of the positions 0 to {2**bits - 1}, with a block pattern of zeros and "
        "ones and a sine wave of the same period. The wave is above the middle exactly where the digit is 1. The lowest "
        f"digit repeats every 2 positions, and the highest every {2**bits}.",
        f"The {bits} binary digits of each position, and the wave inside each digit. A pale block is up where the digit is 1 "
        "and down where it is 0. The digit says only whether the dot on the wave is above or below the middle.",
    )


def draw_wavelengths(dim: int = 128, length: int = 512) -> None:
    """Plot the wavelengths of all clock hands for three bases, with a horizontal line at the length of the text."""
    from ropebook.figures import (
        BLUE,
        MUTED,
        display_figure,
        figure,
        name_line,
        powers,
    )

    length = checks.integer("length", length, minimum=1)
    pairs = torch.arange(checks.even("dim", dim) // 2)
    fig, ax = figure(480, 300)
    for base, colour in ((1000, MUTED), (10_000, BLUE), (1_000_000, MUTED)):
        [line] = ax.plot(
            pairs, wavelengths(dim, base), color=colour, marker=".", markevery=7
        )
        name_line(line, f"base {base:,}")
    ax.axhline(length, color=MUTED, linewidth=1.2, linestyle="--")
    ax.text(
        dim / 2 - 1, 0.4 * length, f"{length:,} tokens", color=MUTED, ha="right"
    )
    ax.set(yscale="log", xlim=(-1, dim / 2), xlabel="hand i")
    ax.set(ylabel="tokens for one turn")
    powers(ax.yaxis)
    display_figure(
        fig,
        f"Three straight lines show the wavelengths of {dim // 2} hands for the bases 1,000, 10,000 and a million, on a "
        "logarithmic axis. All three lines start at 6, and a larger base makes the line steeper. A dashed line marks the "
        "length of a text.",
        f"The wavelength of each hand for three bases, on a logarithmic axis (d = {dim}). Each wavelength is longer than the "
        "one before by the same factor. Hands above the dashed line do not complete a turn within the text. Every seventh "
        "hand has a dot.",
    )


def draw_kernel(dim: int = 128, reach: int = 48) -> None:
    """Plot K(Δ) for distances up to ``reach``, and mark the two distances whose values are closest, on both sides of
    0."""
    from ropebook.figures import BLUE, INK, MUTED, display_figure, figure

    distances = torch.arange(-checks.integer("reach", reach, minimum=2), reach + 1)
    kernel = distance_kernel(distances, dim)
    pair = closest_values(reach, dim)
    twins = torch.tensor([-pair.second, -pair.first, pair.first, pair.second])
    level = distance_kernel(pair.first, dim).item()
    fig, ax = figure(480, 300)
    ax.plot(distances, kernel, color=BLUE, linewidth=1, alpha=0.5)
    ax.plot(distances, kernel, ".", color=BLUE, markersize=5)
    ax.axhline(level, color=MUTED, linewidth=1, linestyle="--")
    ax.plot(twins, distance_kernel(twins, dim), "o", color=INK, markersize=7)
    for distance in twins.tolist():
        outer, right = abs(distance) == pair.second, distance > 0
        across, up = (8, 8) if outer else (-4, -18)
        ax.annotate(
            str(distance).replace("-", "−"),
            (distance, level),
            xytext=(across if right else -across, up),
            textcoords="offset points",
            ha="left" if right == outer else "right",
            color=INK,
        )
    ax.set(xlim=(-reach - 1, reach + 1), xlabel="distance Δ = m − n", ylabel="K(Δ)")
    display_figure(
        fig,
        f"The sum of cosines K against distances from minus {reach:,} to {reach:,}. The curve has a sharp, symmetric peak at "
        "distance zero, falls steeply within ten tokens, and then descends slowly with small waves. Four large dots, two on "
        "each side, lie at the same level.",
        f"The sum K against distance, for d = {dim}. K falls, but not steadily, and it is exactly the same at opposite distances. "
        "The four large dots seem to be at the same height, but on each side the two heights differ by too little to see.",
    )


def draw_terms(terms: FourTerms) -> None:
    """Plot the four terms of a score and their sum along a text, as returned by `slide` for the shifts 0, 1, 2, …"""
    from ropebook.figures import (
        BLUE,
        INK,
        MUTED,
        ORANGE,
        display_figure,
        figure,
        name_line,
    )

    last = len(terms.total) - 1
    fig, ax = figure(480, 340)
    for values, colour, name in (
        (terms.total, INK, "score"),
        (terms.position, BLUE, "position · position"),
        (terms.content_position, ORANGE, "token · position"),
        (terms.content, MUTED, "token · token"),
        (terms.position_content, ORANGE, "position · token"),
    ):
        width = 2.2 if name == "score" else 1.5
        [line] = ax.plot(values, color=colour, linewidth=width)
        name_line(line, name)
    ax.set(xlim=(0, last), xticks=range(0, last + 1, 50))
    ax.set(xlabel="position of the key")
    display_figure(
        fig,
        "Five curves against the position in the text. The token-token and position-position terms are horizontal lines. The "
        "two cross terms swing up and down irregularly, and the score, which is the sum of all four terms, swings with them "
        "by tens of units.",
        "The score of two random tokens at a fixed distance, and its four terms, against the position in the text. If the "
        "score were relative, its curve would be a horizontal line. The cross terms, in orange, make it swing.",
    )


def draw_turns(dim: int = 128, length: int = 512) -> None:
    """Plot how many turns each clock hand completes within a text of ``length`` words."""
    from ropebook.figures import (
        BLUE,
        MUTED,
        ORANGE,
        display_figure,
        figure,
        powers,
    )

    length = checks.integer("length", length, minimum=2)
    made = turns(length - 1, dim)
    whole = made >= 1
    pairs = torch.arange(dim // 2)
    fig, ax = figure(480, 290)
    for chosen, colour in ((whole, BLUE), (~whole, ORANGE)):
        ax.plot(pairs[chosen], made[chosen], ".", color=colour, markersize=7)
    ax.axhline(1, color=MUTED, linewidth=1.2, linestyle="--")
    ax.text(dim / 2 - 1, 1.3, "one whole turn", color=MUTED, ha="right")
    ax.text(0.13 * dim, 14, "completed a turn", color=BLUE)
    ax.text(0.33 * dim, 0.35, "did not complete a turn", color=ORANGE)
    ax.set(yscale="log", xlabel="hand i", ylabel=f"turns in {length - 1} steps")
    powers(ax.yaxis)
    display_figure(
        fig,
        f"The number of turns that each of {dim // 2} hands makes in {length - 1} steps, on a logarithmic axis. The dots lie on "
        "a straight line that falls and, halfway along, crosses the dashed line for one whole turn.",
        f"The number of turns that each hand completes in a text of {length:,} tokens. Blue hands complete at least one. In "
        "a longer text, orange hands reach angles that are new to the model.",
    )
