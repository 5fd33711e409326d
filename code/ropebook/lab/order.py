"""Find out which pair tells the model the order of two records.

This module gathers the results that `benchmarks/asking.py` stored, for use on a page. The results are exploratory: no
rule has judged them yet.

A *cell* is a model, with or without a context-extension method, together with its
answers in every layout, written as letters (`ropebook.lab.asking.letters`). A *map*
shows what happens when we change the model's frequencies in one pair or band at a time
(`ropebook.lab.causal`). An *attack* tests the pair that the map singles out, at other
distances and in other contexts.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from ropebook.lab import asking
from ropebook.lab.causal import WAYS, periods
from ropebook.lab.intervals import crossed
from ropebook.lab.scores import BANDS
from ropebook.lab.trials import EXTENDED, STEPS

OCTAVES = BANDS[1:]
"""Ranges of distances. Each range excludes its upper end, except for the last one,
which ends with the context."""
KEPT = ("halved", "still", "doubled")


def id_of(name: str) -> tuple[str, int]:
    """Split a model's name into the rest of the name and the seed.

    Raises ``ValueError`` if it is not the name of a model.

    >>> id_of("none-1"), id_of("rope-10000-0-3200"), id_of("t5-2-bias-0.1")
    (('none', 1), ('rope-10000-3200', 0), ('t5-bias-0.1', 2))
    """
    parts = re.fullmatch(r"(.+?)-(\d)(-.+)?", name)
    if not parts:
        raise ValueError(f"name must be a model's, as 'none-0', got {name!r}")
    scheme, seed, rest = parts.groups(default="")
    return scheme + rest, int(seed)


def is_extended(name: str) -> bool:
    """Return whether context-extension methods are applied to the model.

    >>> is_extended("rope-10000-3-3200"), is_extended("rope-10000-0-3200-gaps")
    (True, False)
    """
    return id_of(name)[0] == f"{EXTENDED}-{2 * STEPS}"


def cell_name(model: str, extension: str = "") -> str:
    """Return the name of the file in which a cell is stored.

    >>> cell_name("rope-10000-0-3200", "yarn/8")
    'cell-rope-10000-0-3200-yarn-8'
    """
    return f"cell-{model}" + (f"-{extension}" if extension else "").replace(
        "/", "-"
    )


# --- A map ------------------------------------------------------------------------------------------------------------


def score(letters: Mapping[str, Sequence[str]], layout: str) -> float:
    """Return the mean of `ropebook.lab.asking.by_context` over all contexts.

    The first word of ``layout`` is the name of the task.
    """
    task = layout.split()[0]
    return float(np.mean(asking.by_context(letters[layout], task)))


def named(told: Mapping) -> int:
    """Return the pair for which halving the frequency leads to the best order score beyond L, according to a map.

    `gathered` calls it the model's pair.
    """
    return int(np.argmax([score(one, "order") for one in told["pairs"]["halved"]]))


def twin(told: Mapping, pair: int) -> int:
    """Find the pair whose share of the query and key lengths is closest to that of ``pair``, according to a map.

    ``pair`` itself is left out.
    """
    gaps = np.abs(np.array(told["shares"]) - told["shares"][pair])
    gaps[pair] = np.inf
    return int(gaps.argmin())


def _found(rows: Sequence[str]) -> float:
    """Return the share of answers that name any record with the asked key, even if it is not the right one."""
    return asking.share(rows) + asking.share(rows, asking.OTHER)


def _map(told: Mapping) -> dict[str, object]:
    theta = torch.tensor(told["theta"])

    def scores(letters: Mapping) -> dict[str, float]:
        of_order = {name: round(score(letters, name), 4) for name in told["plain"]}
        found = {
            f"found {name}": round(_found(letters[name]), 4) for name in of_order
        }
        return of_order | found

    plain = scores(told["plain"])
    pairs = {way: [scores(one) for one in told["pairs"][way]] for way in WAYS}
    return {
        "model": told["model"],
        "periods": [round(x, 1) for x in periods(theta)],
        "theta": told["theta"],
        "shares": told["shares"],
        "bands": told["bands"],
        "pair": named(told),
        "twin": twin(told, named(told)),
        "plain": plain,
        "pairs": {
            way: {name: [one[name] for one in rows] for name in plain}
            for way, rows in pairs.items()
        },
        "of_bands": {
            way: {band: scores(one) for band, one in told["of_bands"][way].items()}
            for way in WAYS
        },
    }


# --- Cells ------------------------------------------------------------------------------------------------------------


def _counts(rows: Sequence[str], first: Sequence[bool]) -> dict[str, list[float]]:
    """Return two shares for each kind of question: right answers, and answers that name the other record."""
    table = np.array([list(row) for row in rows])
    found = {}
    for kind in asking.KINDS:
        mine = table[:, np.array(first) == (kind == "first")]
        if mine.size:
            found[kind] = [
                round(float((mine == letter).mean()), 4)
                for letter in (asking.RIGHT, asking.OTHER)
            ]
    return found


def _cell(letters: Mapping, contexts: Mapping) -> dict[str, object]:
    """Return one model's numbers, grouped by layout.

    - "score": see `score`.
    - "kinds": see `_counts`.
    - "octaves", only beyond L: the scores, grouped by the distance of the earlier
      record.
    - "both" and "one", only for the order task beyond L: the score for questions whose
      records are both beyond L, and for questions whose later record is within L.
    """
    found = {}
    for name, rows in letters.items():
        task = name.split()[0]
        where = {
            side: np.array(contexts[name][side])[: len(rows)]
            for side in ("far", "near")
        }

        def mean(only, rows=rows, task=task) -> float | None:
            values = asking.by_context(rows, task, only)
            counts = only.sum(1)
            if not counts.sum():
                return None
            whole = np.nansum(np.where(counts, values * counts, 0))
            return round(float(whole / counts.sum()), 4)

        one = found[name] = {
            "score": round(score(letters, name), 4),
            "kinds": _counts(rows, contexts[name]["first"]),
        }
        start, stop = OCTAVES[0][0], OCTAVES[-1][1]
        if name in asking.TASKS:
            one["octaves"] = [
                mean((where["far"] >= low) & (where["far"] < high + (high == stop)))
                for low, high in OCTAVES
            ]
            if task == "order":
                beyond = where["near"] >= start
                one["both"], one["one"] = mean(beyond), mean(~beyond)
    return found


def _interval(table: torch.Tensor) -> list[float | None]:
    """Return the mean and the ends of its confidence interval. The ends are None if
    there is only one seed."""
    if len(table) < 2:
        return [round(table.mean().item(), 4), None, None]
    return [round(x, 4) for x in crossed(table)[:3]]


def _over_seeds(
    cells: Mapping[int, Mapping], plain: Mapping[int, Mapping] | None
) -> dict[str, object]:
    """For each layout, average over seeds and contexts, with confidence intervals.

    The averages are those of the score, and of the amount that a method adds to the score.
    """
    found: dict[str, dict] = {"score": {}, "less plain": {}}
    seeds = sorted(cells)
    for name in cells[seeds[0]]:
        task = name.split()[0]
        mine = [cells[seed][name] for seed in seeds]
        table = np.stack([asking.by_context(rows, task) for rows in mine])
        found["score"][name] = _interval(torch.from_numpy(table))
        if plain is not None:
            few = len(mine[0])
            other = [plain[seed][name][:few] for seed in seeds]
            found["less plain"][name] = _interval(asking.paired(mine, other, task))
    return found


# --- All of it --------------------------------------------------------------------------------------------------------


def gathered(folder: Path) -> dict[str, object]:
    """Gather everything that the page shows from the files in ``folder`` (results/asking).

    The result can be recomputed from those files; a test does this.
    """
    told = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    }
    contexts = told.pop("contexts")
    letters: dict[str, dict[int, Mapping]] = {}
    for one in told.values():
        if "answers" in one:
            id, seed = id_of(one["model"])
            id += f"/{one['extension']}" if one["extension"] else ""
            letters.setdefault(id, {})[seed] = one["answers"]
    cells = {}
    for id, by_seed in letters.items():
        plain = letters[id.partition("/")[0]] if "/" in id else None
        cells[id] = {
            "seeds": sorted(by_seed),
            "each": [_cell(by_seed[seed], contexts) for seed in sorted(by_seed)],
            **_over_seeds(by_seed, plain),
        }
    maps = {one["model"]: _map(one) for one in told.values() if "of_bands" in one}
    for name, one in maps.items():
        if is_extended(name):  # the page draws only these maps, and maps are large
            one["products"] = told[f"map-{name}"]["products"]
    attacks = {one["model"]: _attack(one) for one in told.values() if "twin" in one}
    further = {
        one["model"]: _scores(one["further"])
        for one in told.values()
        if "further" in one
    }
    first = next(iter(told.values()))
    return {
        "corpus": first["corpus"],
        "seconds": round(sum(one["seconds"] for one in told.values())),
        "contexts": {name: len(one["far"]) for name, one in contexts.items()},
        "cells": cells,
        "maps": maps,
        "attacks": attacks,
        "further": further,
    }


def _scores(letters: Mapping) -> dict[str, float]:
    """Return the order score in each layout."""
    return {
        name: round(float(np.mean(asking.by_context(rows, "order"))), 4)
        for name, rows in letters.items()
    }


def _attack(told: Mapping) -> dict[str, object]:
    return {
        "pair": told["pair"],
        "twin": told["twin"],
        "plain": _scores(told["plain"]),
        "pairs": {
            way: {at: _scores(one) for at, one in by_pair.items()}
            for way, by_pair in told["pairs"].items()
        },
        **{
            key: {
                at: round(score(one, "order"), 4) for at, one in told[key].items()
            }
            for key in ("slowed", "heads")
        },
    }


def means(maps: Mapping[str, Mapping], id: str) -> dict[str, np.ndarray]:
    """Return how much each change raises the score, according to the maps for a model's seeds.

    The result contains an array (seeds, pairs) for each combination of change and layout, such as "halved order".
    """
    mine = [one for name, one in maps.items() if id_of(name)[0] == id]
    found = {}
    for way, layout in itertools.product(KEPT, mine[0]["plain"]):
        rows = [
            np.array(one["pairs"][way][layout]) - one["plain"][layout]
            for one in mine
        ]
        found[f"{way} {layout}"] = np.stack(rows)
    return found
