"""The figures for the *Attention* chapter. Each function takes measured data and shows one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from ropebook.attention.scale import Rows
from ropebook.figures import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    VIOLET,
    display_figure,
    figure,
    heatmap,
    name_line,
    powers,
)


def gradient_sizes(
    dims: Sequence[int],
    scaled: Mapping[int, Sequence[Rows]],
    without: Mapping[int, Sequence[Rows]],
) -> None:
    """Plot the gradient of a typical row with respect to its dot products, against the head dimension.

    There are two lines per number of keys: one with the scale and one without it.
    """
    fig, ax = figure(480, 320)
    for n, colour in zip(scaled, (MUTED, BLUE, INK), strict=True):
        for rows, dashes in ((without[n], "-"), (scaled[n], "--")):
            sizes = [row.gradient for row in rows]
            [line] = ax.plot(dims, sizes, dashes, color=colour)
        name_line(line, f"{n} keys")
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="head dimension d",
        ylabel="median gradient w.r.t. q·k",
        ylim=(1e-4, 1),
    )
    powers(ax.xaxis, 2)
    powers(ax.yaxis)
    display_figure(
        fig,
        "Curves of the median size of the gradient against the head dimension, on logarithmic axes, for 16, 256 and 4,096 keys. With "
        "the scale, the curves fall evenly. Without it, they begin higher and then drop steeply, at a larger d if there are more "
        "keys, and only the curve for 16 keys drops far below its counterpart.",
        "The median size of the gradient with respect to the dot products, against the head dimension. The dashed lines are with "
        "the scale 1/√d, and the solid lines are without it. Where a solid line is above the dashed line of the same colour, a "
        "typical row has a larger gradient without the scale.",
    )


def mask_panels(masks: Mapping[str, Tensor]) -> None:
    """Draw boolean masks side by side, each under its name. In a filled cell, the query may attend to the key."""
    fig, axes = figure(480, 200, 1, len(masks))
    for ax, (title, mask) in zip(axes, masks.items(), strict=True):
        heatmap(ax, mask, form=None)
        ax.set(title=title, xlabel="key")
    axes[0].set_ylabel("query")
    display_figure(
        fig,
        f"Attention masks as grids of cells, with a row for each query and a column for each key: {', '.join(masks)}.",
        "Attention masks for a sentence of four tokens and two padding tokens, which are the last two columns. In a filled cell, "
        "the query may attend to the key.",
    )


def shared_heads(n_heads: int, kinds: Mapping[str, int]) -> None:
    """Show which query head reads which key/value head, with one panel per kind of attention.

    ``kinds`` maps the name of each kind to its number of key/value heads.
    """
    fig, axes = figure(480, 190, 1, len(kinds))
    for ax, (title, n_kv_heads) in zip(axes, kinds.items(), strict=True):
        for head in range(n_heads):
            group = head // (n_heads // n_kv_heads)
            middle = (group + 0.5) * n_heads / n_kv_heads - 0.5
            ax.plot([head, middle], [1, 0], color=MUTED, linewidth=1.2, zorder=1)
            ax.plot(head, 1, "s", color=GREEN, markersize=8)
            ax.plot(middle, 0, "s", color=VIOLET, markersize=8)
        limits = {"xlim": (-0.9, n_heads - 0.1), "ylim": (-0.6, 1.6)}
        ax.set(title=title, xticks=[], yticks=[], **limits)
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
        middle, plural = (n_heads - 1) / 2, "s" if n_kv_heads > 1 else ""
        ax.text(middle, 1.35, f"{n_heads} query heads", ha="center")
        ax.text(middle, -0.48, f"{n_kv_heads} key/value head{plural}", ha="center")
    display_figure(
        fig,
        "Eight query heads in a row, each joined by a line to the key/value head that it uses. In multi-head attention, every query "
        "head has its own key/value head. In grouped-query attention, four query heads share one, and in multi-query attention all share one.",
        "The query heads in three kinds of attention. Each line joins a query head to the key/value head that it uses.",
    )


def memory_and_time(
    lengths: Sequence[int],
    formula: Sequence[float],
    kept: Mapping[str, Sequence[float]],
    took: Mapping[str, Sequence[float]],
    where: str,
) -> None:
    """Plot memory and time of two functions against the sequence length.

    The memory is what is kept for the backward pass (MiB), and the time is in ms.
    """
    fig, (left, right) = figure(480, 260, 1, 2)
    [line] = left.plot(lengths, formula, color=INK, linewidth=1)
    name_line(line, "scores, by formula", at=0, offset=(17, 5))
    for (name, mib), colour, side in zip(
        kept.items(), (BLUE, MUTED), ((-8, 7), (8, -10)), strict=True
    ):
        [line] = left.plot(lengths, mib, "o-", color=colour)
        name_line(line, name, at=len(lengths) // 2, offset=side)
        [line] = right.plot(lengths, took[name], "o-", color=colour)
        name_line(line, name, at=len(lengths) // 2, offset=side)
    titles = (left, "kept for backward, MiB"), (right, "time, ms")
    for ax, title in titles:
        ax.set(xscale="log", yscale="log", title=title, xlabel="length T")
        powers(ax.xaxis, 2)
        powers(ax.yaxis)
    display_figure(
        fig,
        "Memory and time against the length, on logarithmic axes. The line for our code's memory gets steeper and "
        "steeper and approaches the formula's line, while the line for PyTorch's memory is half as steep. Both times rise with "
        "the length.",
        "The memory that attention keeps for the backward pass and the time that it takes, against the length of the text. The "
        f"memory was counted, and the time was measured on {where}.",
    )
