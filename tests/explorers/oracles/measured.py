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
    """Return the figure's data, keyed by name. A value that was not measured is None.

    ``lines`` are the keys of the lines to draw, with the chosen line first. ``against`` is the key of the line that the
    others are compared with. ``lineFactor`` is the factor of the chosen line (0 if its method takes none).
    ``lineTuned`` says whether its model was fine-tuned, and ``follows`` whether its method adapts to the length of the
    text. ``idle`` lists the dials that have no effect.

    Each line has one point per window, plotted at the window's centre (``at``): the bits per byte for each seed
    (``seeds``), and the mean over the seeds (``means``). ``window`` is the index of the chosen window, and ``bytes``
    are its first and last byte; ``here`` and ``hereSeeds`` are the mean and the seeds' values in that window. The share
    of correct answers at each distance is ``far`` (seed by seed, ``farSeeds``) in long texts, and ``near`` (seed by
    seed, ``nearSeeds``) in texts of the trained length.

    ``hereApart`` is the mean in the chosen window minus the mean of ``against``, for each of the other lines. ``apart``
    is the mean difference in each band with its interval or, for a scheme, each seed's difference. ``last`` has the
    bits per byte beyond L when the model sees only the last L bytes, and ``lastApart`` has these bits in each band,
    minus those of ``against``. ``band`` is the index of the band that contains the position, and ``distance`` is the
    index of the distance nearest to the position.
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
        "lineFactor": factor,
        "lineTuned": tuned,
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
    """Return the mean of each column. The seeds are added in the same order as in the script, so even the last digit
    agrees."""
    found = []
    for column in zip(*rows, strict=True):
        total = 0.0
        for value in column:
            total += 0 if value is None else value
        found.append(None if None in column else total / len(column))
    return found


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    Only the centres of the windows need a tolerance. All other entries are measured numbers or means of such numbers,
    and must be equal.
    """
    return {"at": compute(dials)["at"]}


def chosen_key(dials: Mapping[str, Any]) -> str:
    """Return the cell that the dials select. If there is no such cell, fall back to the cell without fine-tuning, then
    without the factor, then without the method."""
    method = f"{LONGER}/{dials['method']}"
    keys = [f"{method}/{dials['factor']}/tuned"] if dials["tuned"] else []
    keys += [f"{method}/{dials['factor']}", method, LONGER]
    return next(key for key in keys if key in dials["measured"]["cells"])
