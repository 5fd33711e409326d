"""What the explorer Measured shows, computed from the book's modules, in float64."""

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
    """The keys of the ``lines`` to draw, the chosen one first, and of the one that they are compared with
    (``against``); the ``factor`` of the chosen one, 0 without, whether it is ``tuned`` and whether it ``follows`` the
    length of the text; which dials have no effect (``idle``).

    For each line, at the middle of the windows ``at``, bits per byte of all ``seeds`` and their ``means``; the mean
    ``here``, in the ``window`` of the ``bytes`` (from, to), and the seeds there (``hereSeeds``); the share of right
    answers at each distance, in the long texts (``far``, ``farSeeds``) and in those of the trained length (``near``,
    ``nearSeeds``). ``hereApart``: for each line but ``against``, its mean here less that one's; ``apart``: in each
    band the mean difference and its interval, or of a scheme the difference of each seed. ``last``: bits of the model
    that sees its last L bytes only, beyond L; ``lastApart``, in each band, less those of ``against``. ``band`` and
    ``distance``: which of them the position is in or next to. None where nothing was measured.
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
    """The mean of each column, summed from the first seed to the last as the script does, so that even the last
    digit agrees."""
    found = []
    for column in zip(*rows, strict=True):
        total = 0.0
        for value in column:
            total += 0 if value is None else value
        found.append(None if None in column else total / len(column))
    return found


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Only the windows' middles are computed; all other entries are measured numbers and their means, and must be the
    same."""
    return {"at": compute(dials)["at"]}


def chosen_key(dials: Mapping[str, Any]) -> str:
    """The cell that the dials ask for; if there is none, that without fine-tuning, without the factor, or without the
    method."""
    method = f"{LONGER}/{dials['method']}"
    keys = [f"{method}/{dials['factor']}/tuned"] if dials["tuned"] else []
    keys += [f"{method}/{dials['factor']}", method, LONGER]
    return next(key for key in keys if key in dials["measured"]["cells"])
