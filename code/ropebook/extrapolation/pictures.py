"""The figures for the chapter's pages. Only the pages import this module, because it needs matplotlib."""

from __future__ import annotations

from torch import Tensor

from ropebook.extrapolation.dynamic import DynamicNTK
from ropebook.extrapolation.frequencies import (
    Interpolation,
    NTKAware,
    NTKByParts,
    YaRN,
)
from ropebook.extrapolation.measures import stretch, turned
from ropebook.figures import (
    BLUE,
    MUTED,
    display_figure,
    figure,
    name_line,
)


def stretches(inv_freq: Tensor, trained_length: int, target_length: int) -> None:
    """Plot how much each of six methods stretches the wavelengths of a model's pairs.

    ``target_length`` must be 4 times the trained length.
    """
    factor = target_length / trained_length
    lines = (
        (
            "dynamic NTK, s = 4",
            DynamicNTK(trained_length, factor),
            "-",
            45,
            (-6, 9),
        ),
        ("interpolation", Interpolation(factor), "-", 9, (0, 9)),
        ("NTK-aware", NTKAware(factor), "-", 48, (6, -10)),
        ("by parts", NTKByParts(factor, trained_length), "-", 34, (-5, 3)),
        ("YaRN's code", YaRN(factor, trained_length), "--", 23, (3, -20)),
        (
            "Llama 3.1",
            NTKByParts(factor, trained_length, beta=4.0),
            ":",
            39,
            (7, -5),
        ),
    )
    fig, ax = figure(480, 340)
    for name, method, dashes, at, offset in lines:
        stretched = stretch(method, inv_freq, target_length)
        colour = BLUE if isinstance(method, NTKByParts | YaRN) else MUTED
        [line] = ax.plot(stretched, dashes, color=colour, linewidth=1.8, label=name)
        name_line(line, name, at=at, offset=offset)
    pairs = len(inv_freq)
    first = int(turned(inv_freq, trained_length).sum())
    # The line begins above the name of Llama 3.1's curve.
    ax.axvline(first - 0.5, 0.32, color=MUTED, linewidth=1, linestyle="--")
    ax.text((first + pairs - 1) / 2, 1.15, "no full turn", color=MUTED, ha="center")
    ax.set(
        yscale="log",
        ylim=(0.77, 16),
        xlabel="pair i",
        ylabel="stretch of the wavelength",
    )
    ax.set_yticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
    ax.minorticks_off()
    display_figure(
        fig,
        f"Six lines show how much six methods stretch each of {pairs} pairs, on a logarithmic axis from 1 to 16. The line of "
        "interpolation is level at 4, while the lines of NTK-aware scaling and dynamic NTK rise straight to 4 and to 13. The "
        "lines of the by-parts methods stay at 1 for the fast pairs, rise in the middle, and are level at 4 for the pairs "
        "that have not completed a turn.",
        f"How much each pair is stretched, for d = {2 * pairs}, L = {trained_length:,} and a text {factor:g} times that long. "
        "The blue lines are by-parts methods. "
        "Pairs to the right of the dashed line never completed a turn in training. Where a curve is below "
        f"{factor:g} for such a pair, the pair reaches new angles.",
    )
