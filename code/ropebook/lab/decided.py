"""Results of the second rule (`ropebook.lab.rule_two`), and their tables for pages.

They are computed from the cells that ``benchmarks/asking.py decide`` stored. The functions that take ``found`` expect
the contents of results/order_decided.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ropebook import checks
from ropebook.lab import rule_two
from ropebook.lab.asking import by_context
from ropebook.lab.claims import TITLES
from ropebook.lab.intervals import Interval
from ropebook.lab.model import SCHEMES
from ropebook.lab.order import OCTAVES
from ropebook.lab.order_pictures import EXTENDED_ID, title
from ropebook.lab.tables import signed, with_interval

Columns = dict[str, list]
_MODELS = (EXTENDED_ID, *SCHEMES)
COLUMNS = {
    "loss": {
        "beyond L": "beats plain {} python",
        "within L": "cost {} python",
        "beyond L, against the last L bytes": "worth {} python",
    },
    "answers": {
        "records beyond L": "retrieval {}",
        "order beyond L": "order {}",
        "order, short distances": "order short {}",
    },
}
"""The columns of `methods`: the claim behind each, with a place for the method's
name."""


def _cells(folder: Path) -> dict[str, dict]:
    """Read the cells in ``folder`` (results/asking/decide) into a dictionary with their file names as keys."""
    return {
        path.name: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*-[0-9].json"))
    }


def told(folder: Path) -> rule_two.Told:
    """Read the results in ``folder`` (results/asking/decide), grouped by cell and seed.

    Raises:
        ValueError: a cell was measured by another rule or on another text, or its weights differ from those of another
            cell of the same model.
    """
    found: dict[str, dict[int, Mapping]] = {}
    weights: dict[str, str] = {}
    corpus = None
    for name, one in _cells(folder).items():
        corpus = corpus or one["corpus"]
        known = weights.setdefault(one["model"], one["weights"])
        for key, expected in {
            "rule": rule_two.digest(),
            "corpus": corpus,
            "weights": known,
        }.items():
            if one[key] != expected:
                raise ValueError(
                    f"{key} in {name} must be {expected!r}, got {one[key]!r}"
                )
        found.setdefault(one["cell"], {})[one["seed"]] = one["told"]
    return found


def provenance(folder: Path) -> dict[str, object]:
    """Return where and when the cells in ``folder`` were measured.

    The result is the latest record, with the devices of all cells.
    """
    records = [one["provenance"] for one in _cells(folder).values()]
    devices = sorted({one["device"] for one in records})
    latest = max(records, key=lambda one: one["date"])
    return latest | {"device": " and ".join(devices)}


def gathered(folder: Path) -> dict[str, object]:
    """Judge all claims, first with all seeds and then with the new seeds alone.

    The result also contains the mean for each cell and seed, and the order scores by distance, on which no claim
    depends. Raises ``ValueError`` as `told` does.
    """
    cells = told(folder)
    claims = rule_two.claims()
    whole = rule_two.judge(claims, cells)
    new = rule_two.judge(claims, cells, rule_two.NEW)
    return {
        "rule": {"date": rule_two.DATE, "sha256": rule_two.digest()},
        "seeds": list(rule_two.SEEDS),
        "new": list(rule_two.NEW),
        "learned": sorted(rule_two.gate(cells)),
        "verdicts": [
            {
                "id": one.claim.id,
                "text": one.claim.text,
                "source": one.claim.source,
                "all": _found(one),
                "new": _found(other),
            }
            for one, other in zip(whole, new, strict=True)
        ],
        "levels": {
            cell: {
                layout: [_mean(by_seed[seed], layout) for seed in sorted(by_seed)]
                for layout in sorted(next(iter(by_seed.values())))
            }
            for cell, by_seed in sorted(cells.items())
        },
        "by_distance": _by_distance(cells, folder),
    }


def _found(verdict: rule_two.Verdict) -> dict[str, object]:
    ((interval, outcome),) = verdict.found
    return {"outcome": outcome} | (_plain(interval) if interval else {})


def _plain(interval: Interval) -> dict[str, float]:
    return {
        key: round(getattr(interval, key), 5) for key in ("mean", "low", "high")
    }


def _mean(cell: Mapping[str, Sequence], layout: str) -> float:
    rows = cell[layout]
    scores = (
        by_context(rows, layout.split()[0]) if isinstance(rows[0], str) else rows
    )
    return round(float(np.mean(scores)), 5)


def _by_distance(cells: rule_two.Told, folder: Path) -> dict[str, list]:
    """Compute each cell's order scores by seed and distance: (seeds, octaves).

    ``OCTAVES`` are ranges of the distance to the earlier record.
    """
    path = folder / "contexts.json"
    far = np.array(json.loads(path.read_text(encoding="utf-8"))["order"])
    last = OCTAVES[-1]
    within = [
        (far >= low) & ((far < high) | ((low, high) == last))
        for low, high in OCTAVES
    ]
    return {
        cell: [
            [
                round(float(np.nanmean(by_context(one["order"], "order", only))), 5)
                for only in within
            ]
            for _, one in sorted(by_seed.items())
        ]
        for cell, by_seed in sorted(cells.items())
        if all("order" in one for one in by_seed.values())
    }


def verdict(found: Mapping, id: str) -> Mapping:
    """Return the stored verdict on the claim with this id."""
    by_id = {one["id"]: one for one in found["verdicts"]}
    return by_id[checks.choice("id", id, by_id)]


def verdicts(found: Mapping, ids: Sequence[str]) -> Columns:
    """Tabulate claims with their outcomes, mean differences and 95% intervals.

    The table shows the results for all seeds, and for the new seeds alone.
    """
    rows = [verdict(found, id) for id in ids]
    margins = {
        one.id: rule_two.MARGINS[one.comparisons[0].a.task]
        for one in rule_two.claims()
    }
    new = f"with only seeds {' and '.join(map(str, found['new']))}"
    return {
        "claim": [_titled(one["text"]) for one in rows],
        "outcome": [one["all"]["outcome"] for one in rows],
        "mean": [_difference(one["all"], margins[one["id"]]) for one in rows],
        new: [
            f"{_difference(one['new'], margins[one['id']])}: {one['new']['outcome']}"
            if "mean" in one["new"]
            else one["new"]["outcome"]
            for one in rows
        ],
    }


def methods(found: Mapping, kind: str) -> Columns:
    """Tabulate what each method changes on Python code, compared with plain RoPE.

    ``kind`` is "loss" or "answers". A star marks a difference that the rule considers certain.
    """
    columns: Columns = {
        "method": [TITLES[name.partition("/")[0]] for name in rule_two.METHODS]
    }
    for head, id in COLUMNS[checks.choice("kind", kind, COLUMNS)].items():
        column = []
        for name in rule_two.METHODS:
            one = verdict(found, id.format(name))["all"]
            sure = one["outcome"] in ("holds", "fails") and one["mean"] != 0
            column.append(signed(one["mean"]) + "*" * sure)
        columns[head] = column
    return columns


def _titled(text: str) -> str:
    """Replace the model's name at the beginning of a claim with its title."""
    name, colon, rest = text.partition(":")
    return title(name) + colon + rest if name in _MODELS else text


def _difference(one: Mapping, margin: float) -> str:
    return with_interval(one, margin) if "mean" in one else "–"
