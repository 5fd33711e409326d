"""Reference values for the Measured explorer, computed in float64 with the book's modules."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ropebook.explorers.measured import (
    FOLLOWING,
    LONGER,
    ROPE,
    SCHEMES,
    unpacked,
)

Rows = Sequence[Sequence[float | None]]


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name; an entry is None if nothing was measured.

    ``lines`` are the keys of the lines to draw, with the chosen line first. ``against`` is the key of the line that the
    others are compared with. For the chosen line: its ``factor`` (0 if it has none), whether it is ``tuned``, and
    whether it ``follows`` the length of the text. ``idle`` lists the dials that have no effect.

    For each line, at the centres ``at`` of the windows: the bits per byte of all ``seeds``, and their ``means``.
    ``here`` is the mean in the chosen ``window``, which covers the ``bytes`` (from, to), and ``hereSeeds`` are the
    values of the seeds in it. The share of correct answers at each distance is ``far`` (with ``farSeeds``) in the long
    texts, and ``near`` (with ``nearSeeds``) in texts of the trained length.

    ``hereApart``: for each line except ``against``, its mean here minus that of ``against``. ``apart``: the mean
    difference in each band with its interval, or, for a scheme, each seed's difference. ``last``: the bits beyond L of
    the model that only sees its last L bytes. ``lastApart``: these bits in each band, minus those of ``against``.
    ``band`` and ``distance`` are those that contain the position or lie next to it.
    """
    data, position, text = dials["measured"], dials["position"], dials["text"]
    cells, edges, distances = data["cells"], data["edges"], data["distances"]
    schemes, loss = dials["run"] == "schemes", dials["show"] == "loss"
    against = ROPE if schemes else LONGER
    chosen = ROPE if schemes else chosen_key(dials)
    lines = list(SCHEMES) if schemes else list(dict.fromkeys([chosen, against]))
    parts = chosen.split("/")
    method = parts[1] if len(parts) > 1 else "none"
    factor = int(parts[2]) if len(parts) > 2 else 0
    tuned = parts[-1] == "tuned"
    effects = {
        "text": loss,
        "method": not schemes and method == dials["method"],
        "factor": factor > 0,
        "tuned": not schemes and tuned == dials["tuned"],
    }
    k = bisect_left(edges, position) - 1
    shown = [cells[key] for key in lines]
    others = [cells[key] for key in lines if key != against]
    seeds = [unpacked(cell[text], len(edges) - 1) for cell in shown]
    means = [mean_of(rows) for rows in seeds]
    base = means[lines.index(against)][k]
    last = None if schemes else data["last"][chosen if tuned else LONGER]
    task = "retrieval" if loss else dials["show"]
    far, near = ([unpacked(cell[task][which], len(distances)) for cell in shown] for which in ("far", "near"))
    return {
        "lines": lines,
        "against": against,
        "factor": factor,
        "tuned": tuned,
        "follows": method.startswith(FOLLOWING),
        "idle": [name for name, effect in effects.items() if not effect],
        "at": [math.sqrt((start + 1) * stop) for start, stop in pairwise(edges)],
        "seeds": seeds,
        "means": means,
        "here": [mean[k] for mean in means],
        "hereSeeds": [[row[k] for row in rows] for rows in seeds],
        "window": k,
        "bytes": [edges[k] + 1, edges[k + 1]],
        "hereApart": [
            None if mean[k] is None else mean[k] - base
            for key, mean in zip(lines, means, strict=True)
            if key != against
        ],
        "apart": [cell["apart"][text] for cell in others],
        "last": last
        and [
            None if start < data["length"] else bits
            for start, bits in zip(edges, unpacked(last[text], len(edges) - 1)[0], strict=False)
        ],
        "lastApart": last
        and [
            None if start < data["length"] else bits
            for (start, _), bits in zip(data["bands"], last["apart"][text], strict=True)
        ],
        "band": next(b for b, (_, stop) in enumerate(data["bands"]) if position <= stop),
        "far": [mean_of(rows) for rows in far],
        "farSeeds": far,
        "near": [mean_of(rows) for rows in near],
        "nearSeeds": near,
        "distance": min(
            range(len(distances)),
            key=lambda d: max(distances[d] / position, position / distances[d]),
        ),
    }


def mean_of(rows: Rows) -> list[float | None]:
    """Return the mean of each column, summed from the first seed to the last as in the script, so that even the last
    digit agrees."""
    found = []
    for column in zip(*rows, strict=True):
        total = 0.0
        for value in column:
            total += 0 if value is None else value
        found.append(None if None in column else total / len(column))
    return found


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the terms for the comparison.

    Only the centres of the windows are computed. All other entries are measured numbers and their means, and must be
    equal.
    """
    return {"at": compute(dials)["at"]}


def chosen_key(dials: Mapping[str, Any]) -> str:
    """Return the cell that the dials select. If it doesn't exist, return the one without fine-tuning, without the
    factor, or without the method."""
    method = f"{LONGER}/{dials['method']}"
    keys = [f"{method}/{dials['factor']}/tuned"] if dials["tuned"] else []
    keys += [f"{method}/{dials['factor']}", method, LONGER]
    return next(key for key in keys if key in dials["measured"]["cells"])
