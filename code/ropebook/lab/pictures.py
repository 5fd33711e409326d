"""Figures of the second experiment: each function draws from results/measured.json, whose "opened" part must be there."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from ropebook import checks, results
from ropebook.figures import (
    BLUE,
    CRIMSON,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    TEAL,
    VIOLET,
    display_figure,
    figure,
    heatmap,
)
from ropebook.lab import tables
from ropebook.lab.claims import LONGER, TITLES
from ropebook.lab.data import VALUES
from ropebook.lab.model import SCHEMES
from ropebook.lab.rule import TEXTS
from ropebook.lab.tasks import TASKS

Look = tuple[str, str, str]
"""A line's name, colour and dashes."""
OF_TEXT = {"python": "Python", "language": "generated language"}
_LOOKS = {
    "learned": (CRIMSON, ":"),
    "sinusoidal": (TEAL, "-"),
    "rope-100": (BLUE, ":"),
    "rope-10000": (BLUE, "-"),
    "rope-500000": (BLUE, "--"),
    "alibi": (ORANGE, "-"),
    "none": (MUTED, "-"),
    "t5": (VIOLET, "-"),
    "alternate": (GREEN, "-"),
}
SCHEME_LINES: Mapping[str, Look] = {
    name: (SCHEMES[name].title, *look) for name, look in _LOOKS.items()
}
"""How each scheme is drawn, by cell."""
FULL = 1.0
"""Bits per byte at which a cell of a map reaches its full colour."""


LAST = " last"
"""Appended to a cell's name: the same model with only its last L bytes."""


def method_lines(s: int) -> dict[str, Look]:
    """How plain RoPE, RoPE with only the last L bytes, and RoPE with the methods for s·L are drawn, by
    cell."""
    looks = {
        "linear": (CRIMSON, "-"),
        "ntk": (ORANGE, "-"),
        "ntk_by_parts_chosen": (GREEN, "-"),
        "yarn": (VIOLET, ":"),
        "yarn_chosen": (VIOLET, "-"),
        "self_extend": (BLUE, "-"),
        "rerope": (TEAL, "-"),
    }
    lines: dict[str, Look] = {
        LONGER: (TITLES[""], INK, "-"),
        LONGER + LAST: ("its last L bytes", INK, ":"),
    }
    for name, look in looks.items():
        factor = "" if name == "rerope" else f"/{s}"
        lines[f"{LONGER}/{name}{factor}"] = (TITLES[name], *look)
    return lines


def by_position(
    measured: Mapping,
    lines: Mapping[str, Look],
    alt: str,
    caption: str,
    texts: Sequence[str] = TEXTS,
    reach: int = 1,
) -> None:
    """Bits per byte against the position in the text, a panel for each of ``texts``: the mean over seeds, and each seed
    as a thin line.

    Dashed: L, and ``reach`` times L.
    """
    middles = _middles(measured["edges"])
    fig, axes = figure(480, 380, columns=len(texts), squeeze=False)
    for ax, text in zip(axes[0], texts, strict=True):
        checks.choice("text", text, TEXTS)
        for id, (title, colour, dashes) in lines.items():
            cell = measured["opened"]["cells"][id.removesuffix(LAST)]
            cell = cell["last"] if id.endswith(LAST) else cell
            seeds = np.array(cell["curves"][text])
            at = middles[: seeds.shape[1]]
            ax.plot(at, seeds.T, color=colour, linewidth=0.6, alpha=0.4)
            ax.plot(
                at,
                seeds.mean(0),
                dashes,
                color=colour,
                linewidth=1.8,
                label=title,
            )
        for times in {1, reach}:
            at = times * measured["length"]
            ax.axvline(at, color=MUTED, linewidth=1, linestyle="--")
        ax.set(xscale="log", title=OF_TEXT[text], xlabel="position")
        ax.set_xticks([16, 64, 256, 1024], ["16", "64", "256", "1024"])
        ax.set(xlim=(12, measured["text"]))
        ax.minorticks_off()
    axes[0, 0].set(ylabel="bits per byte, held out")
    _legend(fig, axes[0, 0])
    display_figure(fig, alt, f"{caption} {results.caption(measured)}")


def by_distance(
    measured: Mapping, lines: Mapping[str, Look], alt: str, caption: str
) -> None:
    """Right answers against the distance, in long texts, a panel for each task: the mean over seeds as a line, each
    seed as a dot."""
    distances, length = measured["distances"], str(measured["text"])
    fig, axes = figure(480, 400, columns=len(TASKS), sharey=True)
    for ax, task, guess in zip(axes, TASKS, (1 / VALUES, 0.5), strict=True):
        for id, (title, colour, dashes) in lines.items():
            cell = measured["opened"]["cells"].get(id)
            # models with only their last bytes are not asked, and learned schemes
            # do not reach that far
            if cell is None or None in cell[task][length]:
                continue
            seeds = cell[task][length]
            ax.plot(
                distances,
                np.mean(seeds, 0),
                dashes,
                color=colour,
                linewidth=1.6,
                label=title,
            )
            ax.plot(
                distances,
                np.transpose(seeds),
                "o",
                color=colour,
                markersize=2.5,
                alpha=0.6,
            )
        ax.axhline(guess, color=MUTED, linewidth=1, linestyle=":")
        ax.axvline(measured["length"], color=MUTED, linewidth=1, linestyle="--")
        ax.set(xscale="log", title=task, xlabel="bytes back", ylim=(-0.02, 1.02))
        ax.set_xticks([32, 128, 384, 1536], ["32", "128", "384", "1536"])
        ax.minorticks_off()
    axes[0].set(ylabel="right answers")
    _legend(fig, axes[0])
    display_figure(fig, alt, f"{caption} {results.caption(measured)}")


def differences(
    measured: Mapping,
    against: str,
    text: str,
    rows: Mapping[str, str],
    alt: str,
    caption: str,
) -> None:
    """Differences in bits by band as a map; a cell is coloured if its interval excludes 0. A row with a factor s has a
    vertical bar at s·L. The caption begins with the text's title.

    ``against``, ``text``, ``rows``: see `ropebook.lab.tables.grid`.
    """
    grid = tables.grid(measured["opened"], against, text, rows)
    fig, ax = figure(480, 50 + 20 * len(rows))
    length = measured["length"]
    bands = ["to L"]
    bands += [f"to {stop // length} L" for _, stop in measured["bands"][1:]]
    shown = np.where(grid.sure, grid.values, 0)
    heatmap(ax, shown, limit=FULL, rows=grid.rows, columns=bands, form=None).set(
        aspect="auto"
    )
    for row, id in enumerate(rows):
        factor = re.search(r"/(\d+)(/tuned)?$", id)
        if factor:
            at = 1 + math.log2(int(factor[1]))
            ax.plot([at, at], [row, row + 1], color=INK, linewidth=2)
    for (row, column), value in np.ndenumerate(grid.values):
        if math.isfinite(value):
            ax.text(
                column + 0.5,
                row + 0.5,
                f"{value:+.2f}".replace("-", "−"),
                ha="center",
                va="center",
                color=INK if grid.sure[row, column] else MUTED,
            )
    title = OF_TEXT[text][0].upper() + OF_TEXT[text][1:]
    display_figure(fig, alt, f"{title}: {caption} {results.caption(measured)}")


def _middles(edges: Sequence[int]) -> np.ndarray:
    """The middles of the windows between the edges, on a logarithmic axis; a window begins after its
    first edge."""
    return np.array(
        [math.sqrt((start + 1) * stop) for start, stop in itertools.pairwise(edges)]
    )


def _legend(fig, ax) -> None:
    fig.legend(
        *ax.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        columnspacing=1,
        handlelength=1.6,
    )
