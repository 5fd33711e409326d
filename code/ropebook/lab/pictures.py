"""Figures of the second experiment. Functions with the argument ``measured`` take
the contents of results/measured.json, including its "opened" part."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from ropebook import checks, results
from ropebook.figures import (
    BLUE,
    INK,
    MUTED,
    NARROW,
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

OF_TEXT = {"python": "Python", "language": "generated language"}
SCHEME_LINES: Mapping[str, str] = {
    name: SCHEMES[name].title
    for name in (
        "learned", "sinusoidal", "rope-100", "rope-10000", "rope-500000", "alibi", "none", "t5", "alternate",
    )
}  # fmt: skip
"""The schemes' titles by cell, in the order of the panels."""
FULL = 1.0
"""The difference, in bits per byte, at which a cell of a map reaches its full
colour."""


ABOVE = 22
"""How far the heading of a column is above its first panel, in pixels. The panel's own title is between them."""
LAST = " last"
"""Suffix that is added to a cell's name when the same model sees only its last L
bytes."""


def method_lines(s: int) -> dict[str, str]:
    """Return the titles by cell, in the order of the panels.

    The cells are plain RoPE, RoPE that sees only the last L bytes, and RoPE with each method, extended to s·L.
    """
    lines = {LONGER: TITLES[""], LONGER + LAST: "its last L bytes"}
    for name in ("linear", "ntk", "ntk_by_parts_chosen", "yarn", "yarn_chosen", "self_extend", "rerope"):  # fmt: skip
        factor = "" if name == "rerope" else f"/{s}"
        lines[f"{LONGER}/{name}{factor}"] = TITLES[name]
    return lines


def by_position(
    measured: Mapping,
    lines: Mapping[str, str],
    alt: str,
    caption: str,
    texts: Sequence[str] = TEXTS,
    reach: int = 1,
) -> None:
    """Draw bits per byte against position, with a row of panels for each line and a column for each of ``texts``.

    The row's own line is drawn in blue: its mean over seeds, and a thin line for each seed. The means of all other
    lines are drawn in grey.

    Dashed lines mark L and ``reach`` times L.
    """
    for text in texts:
        checks.choice("text", text, TEXTS)
    middles = _middles(measured["edges"])

    def seeds_of(id: str, text: str) -> np.ndarray:
        cell = measured["opened"]["cells"][id.removesuffix(LAST)]
        cell = cell["last"] if id.endswith(LAST) else cell
        return np.array(cell["curves"][text])

    fig, axes = _panels(lines, len(texts), 84, sharey="col")
    for column, text in enumerate(texts):
        found = {id: seeds_of(id, text) for id in lines}
        for row, (id, title) in enumerate(lines.items()):
            ax = axes[row, column]
            for other, seeds in found.items():
                at = middles[: seeds.shape[1]]
                if other == id:
                    ax.plot(at, seeds.T, color=BLUE, linewidth=0.6, alpha=0.5)
                named = title if column == 0 else ""
                _line(ax, at, seeds.mean(0), named, own=other == id)
            for times in {1, reach}:
                at = times * measured["length"]
                ax.axvline(at, color=MUTED, linewidth=1, linestyle="--")
            ax.set(xscale="log", xlim=(12, measured["text"]))
            ax.set_xticks([16, 64, 256, 1024], ["16", "64", "256", "1,024"])
            ax.minorticks_off()
        axes[0, column].set_title(OF_TEXT[text], pad=ABOVE)
        axes[-1, column].set(xlabel="position")
    fig.supylabel("bits per byte on held-out text", fontsize=12.5)
    display_figure(fig, alt, f"{caption} {results.caption(measured)}")


def by_distance(
    measured: Mapping, lines: Mapping[str, str], alt: str, caption: str
) -> None:
    """Draw the share of right answers against distance in long contexts.

    There is a row of panels for each line and a column for each task. The row's own line is drawn in blue: its mean
    over seeds, and a dot for each seed. The means of all other lines are drawn in grey.
    """
    distances, length = measured["distances"], str(measured["text"])
    cells = {id: measured["opened"]["cells"].get(id) for id in lines}
    # Models that see only the last bytes were not tested here, and learned schemes cannot read that far.
    asked = {
        id: cell
        for id, cell in cells.items()
        if cell is not None
        and not any(None in cell[task][length] for task in TASKS)
    }
    fig, axes = _panels(asked, len(TASKS), 84, sharey=True)
    for column, (task, guess) in enumerate(
        zip(TASKS, (1 / VALUES, 0.5), strict=True)
    ):
        for row, id in enumerate(asked):
            ax = axes[row, column]
            for other, cell in asked.items():
                seeds, own = np.array(cell[task][length]), other == id
                title = lines[id] if column == 0 else ""
                _line(ax, distances, seeds.mean(0), title, own=own)
                if own:
                    ax.plot(distances, seeds.T, "o", color=BLUE, markersize=2.5)
            ax.axhline(guess, color=MUTED, linewidth=1, linestyle=":")
            ax.axvline(measured["length"], color=MUTED, linewidth=1, linestyle="--")
            ax.set(xscale="log", ylim=(-0.04, 1.04), yticks=[0, 1])
            ax.set_xticks([32, 128, 384, 1536], ["32", "128", "384", "1,536"])
            ax.minorticks_off()
        axes[0, column].set_title(task, pad=ABOVE)
        axes[-1, column].set(xlabel="bytes back")
    fig.supylabel("right answers", fontsize=12.5)
    display_figure(fig, alt, f"{caption} {results.caption(measured)}")


def _panels(lines: Mapping[str, object], columns: int, height: float, **options):
    """Make a grid with one row of panels per line. Each row is ``height`` pixels high."""
    return figure(
        480,
        60 + height * len(lines),
        rows=len(lines),
        columns=columns,
        sharex=True,
        squeeze=False,
        **options,
    )


def _line(
    ax,
    at: Sequence[float],
    mean: np.ndarray,
    title: str,
    *,
    own: bool,
) -> None:
    """Draw a line in a panel.

    The panel's own line is blue, and its title goes above the panel. Other lines are grey, in the background.
    """
    look = {"color": BLUE, "linewidth": 1.8, "zorder": 3}
    if not own:
        look = {"color": MUTED, "linewidth": 0.5, "alpha": 0.5, "zorder": 1}
    ax.plot(at, mean, **look)
    if own and title:
        ax.text(
            0,
            1.04,
            title,
            color=BLUE,
            fontsize=11,
            transform=ax.transAxes,
            va="bottom",
        )


def differences(
    measured: Mapping,
    against: str,
    text: str,
    rows: Mapping[str, str],
    alt: str,
    caption: str,
) -> None:
    """Draw differences in bits as a map with a column for each band.

    A cell is coloured if its confidence interval excludes 0: blue for a gain, orange for a cost. A row for a factor s
    has a vertical bar at s·L. The caption begins with the name of the corpus.

    For ``against``, ``text`` and ``rows``, see `ropebook.lab.tables.grid`.
    """
    grid = tables.grid(measured["opened"], against, text, rows)
    fig, ax = figure(NARROW, 50 + 20 * len(rows))
    length = measured["length"]
    bands = ["to L"]
    bands += [f"to {stop // length} L" for _, stop in measured["bands"][1:]]
    shown = np.where(grid.sure, -grid.values, 0)  # orange marks values below 0
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
                tables.signed(value),
                ha="center",
                va="center",
                color=INK if grid.sure[row, column] else MUTED,
            )
    title = OF_TEXT[text][0].upper() + OF_TEXT[text][1:]
    display_figure(fig, alt, f"{title}: {caption} {results.caption(measured)}")


def _middles(edges: Sequence[int]) -> np.ndarray:
    """Return the middle of each window between two edges, on a logarithmic axis. A window excludes its lower edge."""
    return np.array(
        [math.sqrt((start + 1) * stop) for start, stop in itertools.pairwise(edges)]
    )
