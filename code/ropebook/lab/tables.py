"""Tables and grids of the second experiment, for pages: each function takes the "opened" part of results/measured.json.

A table is columns by head, as `ropebook.show.table` takes them; a grid is for `ropebook.figures.heatmap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ropebook import checks
from ropebook.lab.claims import LENGTHWISE, LONGER, STRETCHED, TITLES
from ropebook.lab.extensions import FACTORS, TUNED
from ropebook.lab.model import SCHEMES
from ropebook.lab.rule import TEXTS
from ropebook.lab.scores import BANDS, LENGTH, TEXT
from ropebook.lab.tasks import TASKS

Columns = dict[str, list]
SHORT = {
    "holds": "hold",
    "fails": "fail",
    "no difference": "no difference",
    "undecided": "undecided",
    "not asked": "not asked",
}


def mean(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Over seeds, of each column; None where a model does not reach.

    >>> mean([[1.0, None], [2.0, None]])
    [1.5, None]
    """
    return [
        None if None in column else float(np.mean(column))
        for column in zip(*rows, strict=True)
    ]


def far(rows: Sequence[Sequence[float] | None], beyond: int) -> float | None:
    """The mean share over seeds and over the distances from the ``beyond``-th on; None where a model does not reach."""
    if None in rows:
        return None
    return float(np.mean([row[beyond:] for row in rows]))


def schemes(opened: Mapping, text: str) -> Columns:
    """A row for each scheme as it was trained: bits by band, and the shares of both tasks, within L and, of far records, in long texts."""
    checks.choice("text", text, TEXTS)
    cells = [opened["cells"][scheme] for scheme in SCHEMES]
    bits = [mean(cell["bits"][text]) for cell in cells]
    within, beyond = str(LENGTH), str(TEXT)
    near = len(cells[0]["retrieval"][within][0])
    columns: Columns = {"scheme": [scheme.title for scheme in SCHEMES.values()]}
    for at, (start, stop) in enumerate(BANDS):
        columns[f"{start}…{stop} (bits)"] = [row[at] for row in bits]
    for task in TASKS:
        columns[f"{task} within"] = [far(cell[task][within], 0) for cell in cells]
        columns[f"{task} far"] = [far(cell[task][beyond], near) for cell in cells]
    return columns


class Grid(NamedTuple):
    """``values`` (rows, bands), NaN where there is nothing; ``sure``: whether the interval leaves 0 out."""

    rows: list[str]
    columns: list[str]
    values: np.ndarray
    sure: np.ndarray


def methods(*, tuned: bool = False) -> dict[str, str]:
    """What is shown of each method, by cell: "rope-10000-3200/yarn/4" to "YaRN (published β), 4"."""
    if tuned:
        titles = {"none": "no method", **TITLES}
        return {
            f"{LONGER}/{name}/{s}/tuned": f"{titles[name]}, {s}"
            for name in TUNED
            for s in FACTORS
        }
    found = {
        f"{LONGER}/{name}/{s}": f"{TITLES[name]}, {s}"
        for name in STRETCHED
        for s in FACTORS
    }
    return found | {f"{LONGER}/{name}": TITLES[name] for name in LENGTHWISE}


def grid(opened: Mapping, against: str, text: str, rows: Mapping[str, str]) -> Grid:
    """Differences in bits by band, of the cells in ``rows``, ``against`` "plain", "last" or "none" (see `measured.differences`)."""
    checks.choice("against", against, opened["differences"])
    checks.choice("text", text, TEXTS)
    values = np.full((len(rows), len(BANDS)), np.nan)
    sure = np.zeros(values.shape, bool)
    for at, id in enumerate(rows):
        for band, found in enumerate(opened["differences"][against][id][text]):
            if found is not None:
                values[at, band] = found[0]
                sure[at, band] = found[1] > 0 or found[2] < 0
    return Grid(
        list(rows.values()),
        [f"{start}…{stop}" for start, stop in BANDS],
        values,
        sure,
    )


def verdicts(opened: Mapping, ids: Iterable[str]) -> Columns:
    """The claims with these ids, each with its word and how its comparisons came out."""
    by_id = {row["id"]: row for row in opened["verdicts"]}
    rows = [by_id[id] for id in ids]
    return {
        "claim": [row["claim"] for row in rows],
        "verdict": [row["word"].removesuffix(" here") for row in rows],
        "comparisons": [counted(row["counts"]) for row in rows],
    }


def counted(counts: Mapping[str, int]) -> str:
    """
    >>> counted({"holds": 5, "fails": 0, "no difference": 1, "undecided": 0})
    '5 hold, 1 no difference'
    """
    return ", ".join(
        f"{counts[outcome]} {word}"
        for outcome, word in SHORT.items()
        if counts.get(outcome)
    )


def then_and_now(first: Sequence[Mapping], opened: Mapping) -> Columns:
    """Verdicts of the first experiment ("id", "claim", "verdict") beside the second's, of the claims that both have."""
    by_id = {
        row["id"]: row["word"].removesuffix(" here") for row in opened["verdicts"]
    }
    both = [row for row in first if row["id"] in by_id]
    return {
        "claim": [row["claim"] for row in both],
        "first": [row["verdict"].removesuffix(" here") for row in both],
        "now": [by_id[row["id"]] for row in both],
    }
