"""What the explorer Measured shows, computed from the book\'s modules, in float64."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ropebook.explorers.measured import (
    RUNS,
    SCHEMES,
    key_of,
)


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """The keys of the ``lines`` to draw, the chosen one first, and of the one that they are compared with
    (``against``); the ``factor`` of the chosen one, 0 without, whether it is ``tuned``, and which dials have no
    effect (``idle``).

    For each line, at the middle of the bins ``at``, ``curves``, bits per byte; its value ``here``, in the bin
    ``bytes`` (from, to); the share of values given back whole at each distance, in the long texts (``far``)
    with its standard error (``farError``), and in those of the trained length (``near``). ``spread``: of the
    first line, the standard error over files of each band. ``hereApart``: for each line but ``against``, its
    value here less that one's; ``apart``: so for each band, paired over files; ``apartError``, its standard
    error; ``decided``, whether it exceeds two of them with the same sign in both seeds. ``window``: bits in
    each band of the model that sees its last L bytes only; ``windowApart``, less those of ``against``. ``band``
    and ``distance``: which of them the position is in or next to. None where nothing was measured.
    """
    data, position = dials["measured"], dials["position"]
    cells = data["cells"]
    schemes = dials["run"] == "schemes"
    run = RUNS[0] if schemes else dials["run"]
    against = f"{run}/none"
    chosen = against if schemes else chosen_key(dials)
    lines = (
        [key for scheme in SCHEMES if (key := f"{scheme}-0/none") in cells]
        if schemes
        else list(dict.fromkeys([chosen, against]))
    )
    parts = chosen.split("/")
    factor = int(parts[2]) if len(parts) > 2 else 0
    tuned = parts[-1] == "tuned"
    idle = [
        name
        for name, effect in (
            ("method", not schemes and parts[1] == dials["method"]),
            ("factor", factor > 0),
            ("tuned", not schemes and tuned == dials["tuned"]),
        )
        if not effect
    ]
    edges, distances = data["edges"], data["distances"]
    k = bisect_left(edges, position) - 1
    shown = [cells[key] for key in lines]
    others = [cells[key] for key in lines if key != against]
    here = [cell["bits"][k] for cell in shown]
    base = cells[against]["bits"][k]
    return {
        "lines": lines,
        "against": against,
        "factor": factor,
        "tuned": tuned,
        "idle": idle,
        "at": [math.sqrt((start + 1) * stop) for start, stop in pairwise(edges)],
        "curves": [cell["bits"] for cell in shown],
        "here": here,
        "bytes": [edges[k] + 1, edges[k + 1]],
        "hereApart": [
            None if value is None else value - base for key, value in zip(lines, here, strict=True) if key != against
        ],
        "spread": shown[0]["error"],
        "apart": [cell["apart"] for cell in others],
        "apartError": [cell["apartError"] for cell in others],
        "decided": [cell["decided"] for cell in others],
        "window": data["windowed"][run]["bits"],
        "windowApart": data["windowed"][run]["apart"],
        "band": next(b for b, (_, stop) in enumerate(data["bands"]) if position <= stop),
        "far": [cell["far"] for cell in shown],
        "farError": [
            [
                None if share is None else math.sqrt(share * (1 - share) / n)
                for share, n in zip(cell["far"], data["asked"], strict=True)
            ]
            for cell in shown
        ],
        "near": [cell["near"] for cell in shown],
        "distance": min(
            range(len(distances)),
            key=lambda d: max(distances[d] / position, position / distances[d]),
        ),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Only the bins' middles are computed; all other entries are measured numbers, and must be the same."""
    return {"at": compute(dials)["at"]}


def chosen_key(dials: Mapping[str, Any]) -> str:
    """The cell that the dials ask for; if there is none, that without fine-tuning, without the factor, or without the
    method."""
    run, method, factor = dials["run"], dials["method"], dials["factor"]
    keys = [key_of(run, method, factor, True)] if dials["tuned"] else []
    keys += [
        key_of(run, method, factor),
        key_of(run, method),
        key_of(run, "none"),
    ]
    return next(key for key in keys if key in dials["measured"]["cells"])
