"""The second experiment as pages show it, gathered from what `benchmarks/trials.py` stored.

The files in results/trials have a number for each text and each question. Here we keep their means, a number for each
seed, the intervals of `ropebook.lab.intervals` for comparisons, and the verdicts of `ropebook.lab.rule`: enough for
drawing, and small enough for a notebook to carry. Everything here can be recomputed from those files, and a test does
so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from ropebook.lab import rule
from ropebook.lab.claims import LONGER
from ropebook.lab.intervals import crossed
from ropebook.lab.model import SCHEMES
from ropebook.lab.scores import BANDS
from ropebook.lab.tasks import TASKS
from ropebook.lab.trials import EMERGED, LEAST, SEEDS

Numbers = Mapping[str, Mapping]
"""By cell ("rope-10000-0-3200/yarn/4"), the numbers that `benchmarks/trials.py
evaluate` stored."""


def trainings(told: Mapping[str, Mapping]) -> list[dict[str, object]]:
    """What a page says about each training, by name, from results/trials/<name>.json; shares and bits on the
    development part, within L.

    "headroom": bits with everything that came before, and with only the last L/2 bytes; "floor": the same for a reader
    who knows the language.
    """
    rows = []
    for name, one in sorted(told.items()):
        run = one["run"]
        headroom = {
            text: _means(pairs)
            for text, pairs in one["headroom"].items()
            if text in rule.TEXTS
        }
        rows.append(
            {
                "name": name,
                "scheme": run["scheme"],
                "seed": run["seed"],
                "steps": run["steps"],
                "epochs": one["epochs"],
                "seconds": one["seconds"],
                "parameters": one["parameters"],
                "losses": one["losses"],
                **{task: one["within"][task] for task in TASKS},
                "bits": {
                    text: _means(one["development"][text])[0] for text in rule.TEXTS
                },
                "headroom": headroom,
                "floor": _means(one["headroom"]["language_floor"]),
                "device": one["provenance"]["device"],
                "date": one["provenance"]["date"],
            }
        )
    return rows


def cells(
    numbers: Numbers, seeds: Sequence[int] = SEEDS
) -> dict[str, dict[str, object]]:
    """By scheme and extension ("rope-10000-3200/yarn/4"), a row for each seed: "bits" by band and "curves", by text; shares of right answers
    by task, length of the text and distance. "other": the share of the order task's answers that are the same key's
    other record. "last": "bits" and "curves" of the model with only its last L bytes. "ended": bits in texts that end
    with the band. A training with more steps than the others has these in its name ("rope-100-3200"); as it was trained
    it may have fewer seeds. There is None where a model does not reach. ``ValueError`` if a seed of another cell is
    missing.
    """
    found = {}
    for id, of_seed in _by_seed(numbers).items():
        may_lack = "/" not in id and id not in SCHEMES
        if set(of_seed) != set(seeds) and not may_lack:
            raise ValueError(
                f"numbers must have {id} with the seeds {tuple(seeds)}, got {tuple(sorted(of_seed))}"
            )
        found[id] = _cell([of_seed[seed] for seed in sorted(of_seed)])
    return found


def _by_seed(numbers: Numbers) -> dict[str, dict[int, Mapping]]:
    found: dict[str, dict[int, Mapping]] = {}
    for name, cell in numbers.items():
        id, seed = id_of(name)
        found.setdefault(id, {})[seed] = cell
    return found


def id_of(name: str) -> tuple[str, int]:
    """A cell's name without its seed, and the seed. ``ValueError`` if it isn't a cell's name.

    >>> id_of("none-1"), id_of("rope-10000-0-3200/yarn/4")
    (('none', 1), ('rope-10000-3200/yarn/4', 0))
    """
    run, slash, extension = name.partition("/")
    parts = re.fullmatch(r"(.+?)-(\d)(-\d+)?", run)
    if not parts:
        raise ValueError(f"name must be a cell's, as 'none-0', got {name!r}")
    scheme, seed, steps = parts.groups(default="")
    return scheme + steps + slash + extension, int(seed)


def _cell(rows: Sequence[Mapping]) -> dict[str, object]:
    told = [row["numbers"] for row in rows]
    found: dict[str, object] = _bits_and_curves(told)
    for task in TASKS:
        found[task] = {
            length: [_shares(one[task][length]) for one in told]
            for length in told[0][task]
        }
    found["other"] = {
        length: [_shares(one["order"][length], "o") for one in told]
        for length in told[0]["order"]
    }
    if all("ended" in row for row in rows):
        found["ended"] = {
            text: [_means(row["ended"][text]) for row in rows]
            for text in rule.TEXTS
        }
    if all("last" in row for row in rows):
        found["last"] = _bits_and_curves([row["last"] for row in rows])
    return found


def _bits_and_curves(rows: Sequence[Mapping]) -> dict[str, object]:
    return {
        "bits": {text: [_means(row[text]) for row in rows] for text in rule.TEXTS},
        "curves": {
            text: [[round(x, 3) for x in row["curves"][text]] for row in rows]
            for text in rule.TEXTS
        },
    }


def _shares(
    by_distance: Mapping[str, str] | None, letter: str = "1"
) -> list[float] | None:
    """The share of one kind of answer (a letter), by distance, from near to far."""
    if by_distance is None:
        return None
    far = [by_distance[distance] for distance in sorted(by_distance, key=int)]
    return [round(letters.count(letter) / len(letters), 4) for letters in far]


def _means(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """The mean of each column over the rows; None for a column that was not reached."""
    columns = np.array(rows, dtype=float).mean(0).tolist()
    return [None if math.isnan(mean) else round(mean, 4) for mean in columns]


Rows = list[list[float] | None]
"""For each band the mean and the ends of its interval, in bits per byte."""


def differences(numbers: Numbers) -> dict[str, dict[str, dict[str, Rows]]]:
    """The comparisons on the pages, by kind, cell and text: mean and interval (95 %, seeds and files) for each band,
    None where a model does not reach.

    "plain": every extension minus the model as it was trained. "last": every cell whose model was tested with only its
    last L bytes, minus that; a model that was trained further, minus itself. "none": trained further with a method,
    minus trained equally long without. Cells without all `SEEDS` are left out.
    """
    ids = [
        id
        for id, of_seed in _by_seed(numbers).items()
        if set(of_seed) == set(SEEDS)
    ]
    found: dict[str, dict] = {"plain": {}, "last": {}, "none": {}}
    for id in ids:
        scheme, _, extension = id.partition("/")
        with_last = extension if extension.endswith("/tuned") else ""
        if "last" in numbers[rule.cell_name(scheme, SEEDS[0], with_last)]:
            found["last"][id] = _rows(
                numbers, scheme, extension, with_last, last=True
            )
        if extension:
            found["plain"][id] = _rows(numbers, scheme, extension, "")
        method, _, rest = extension.partition("/")
        if rest.endswith("/tuned") and method != "none":
            found["none"][id] = _rows(numbers, scheme, extension, f"none/{rest}")
    return found


def _rows(
    numbers: Numbers, scheme: str, one: str, other: str, *, last: bool = False
) -> dict[str, Rows]:
    def row(text: str, band: tuple[int, int]) -> list[float] | None:
        comparison = rule.Comparison(
            rule.Bits(scheme, one, text, band),
            rule.Bits(scheme, other, text, band, last),
            "lower",
        )
        table = comparison.table(numbers)
        if table.isnan().any(0).all():
            return None
        return [round(x, 4) for x in crossed(table)[:3]]

    return {text: [row(text, band) for band in BANDS] for text in rule.TEXTS}


def able(rows: Iterable[Mapping]) -> set[str]:
    """The schemes among `trainings` (with their steps, if these are not the planned ones) that find records within L:
    `EMERGED` of them on average over the seeds, and `LEAST` with every seed."""
    shares: dict[str, dict[int, float]] = {}
    for row in rows:
        id, seed = id_of(row["name"])
        shares.setdefault(id, {})[seed] = row["retrieval"]
    return {
        id
        for id, by_seed in shares.items()
        if set(by_seed) == set(SEEDS)
        and min(by_seed.values()) >= LEAST
        and sum(by_seed.values()) >= EMERGED * len(SEEDS)
    }


def verdicts(
    numbers: Numbers, claims: Iterable[rule.Claim], able: Collection[str]
) -> list[dict[str, object]]:
    """Each claim, its word and its counts, and for each comparison mean, ends of the interval and outcome. ``able``: see `rule.judge`."""
    return [
        {
            "id": verdict.claim.id,
            "claim": verdict.claim.text,
            "source": verdict.claim.source,
            "word": verdict.word,
            "counts": verdict.counts,
            "found": [
                [*(round(x, 4) for x in one.interval[:3]), one.outcome]
                for one in verdict.found
            ],
        }
        for verdict in rule.judge(claims, numbers, able)
    ]


def caching(numbers: Numbers) -> dict[str, list[float]]:
    """Dynamic NTK from L to 2 L, a mean over files for each seed: with keys as rotated on arrival ("cached"), and with
    everything recomputed ("anew")."""
    return {
        name: [
            round(float(np.mean(rule.Cached(LONGER, anew).of(numbers, seed))), 4)
            for seed in SEEDS
        ]
        for name, anew in (("cached", False), ("anew", True))
    }
