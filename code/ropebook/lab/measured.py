"""Gather the results of the second experiment for use on pages, from the files that `benchmarks/trials.py` stored.

The files in results/trials contain one number per document or question. Here we keep
their means (one for each seed), the confidence intervals of comparisons
(`ropebook.lab.intervals`), and the verdicts (`ropebook.lab.rule`). That is enough for the figures and small enough to
put in a notebook. Everything here can be recomputed from those files; a test does this.
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
"""The numbers that `benchmarks/trials.py evaluate` stored, keyed by cell
("rope-10000-0-3200/yarn/4")."""


def trainings(told: Mapping[str, Mapping]) -> list[dict[str, object]]:
    """Return a row for each training run, with the facts that pages quote.

    ``told`` contains results/trials/<name>.json by name, and the rows are sorted by name. Shares and bits are measured
    on the development part, within L.

    "headroom" contains the bits with the full context, and with only the last L/2 bytes as context. "floor" contains
    the same two numbers for an ideal reader who knows the language.
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
    """Return the results of each scheme and extension ("rope-10000-3200/yarn/4"), with
    one entry for each seed.

    - "bits", by band, and "curves": both are grouped by corpus.
    - The shares of right answers, grouped by task, context length and distance.
    - "other": in the order task, the share of answers that name the other record with
      the same key.
    - "last": the "bits" and "curves" of the model when it sees only the last L bytes.
    - "ended": the bits when the input stops at the end of the band.

    If a model was trained for a different number of steps than the others, its name
    includes that number ("rope-100-3200"). Such a model may have fewer seeds, as long as
    no extension is applied to it. A number is None if the model cannot read that far.
    Raises ``ValueError`` if any other cell lacks a seed.
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
    """Split a cell's name into the seed and the name without it. Raises ``ValueError`` if it is not the name of a cell.

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
    """Return the share of answers marked with ``letter`` at each distance, in order of distance."""
    if by_distance is None:
        return None
    far = [by_distance[distance] for distance in sorted(by_distance, key=int)]
    return [round(letters.count(letter) / len(letters), 4) for letters in far]


def _means(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Average each column over the rows. The mean is None for a column that the model did not reach."""
    columns = np.array(rows, dtype=float).mean(0).tolist()
    return [None if math.isnan(mean) else round(mean, 4) for mean in columns]


Rows = list[list[float] | None]
"""For each band, the mean and the two ends of its confidence interval, in bits per
byte."""


def differences(numbers: Numbers) -> dict[str, dict[str, dict[str, Rows]]]:
    """Return the comparisons shown on the pages, by kind, cell and corpus.

    Each band has the mean with its 95 % confidence interval (over seeds and files), or None if a model cannot read that
    far.

    - "plain": every extension minus the model as it was trained.
    - "last": every cell minus the corresponding plain model that sees only the last L bytes, if that model was tested.
      A model that was trained further is compared instead with itself, seeing only the last L bytes.
    - "none": a model that was trained further with a method, minus one that was trained
      for just as long without it.

    Cells that lack any of the `SEEDS` are left out.
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
    """Return the schemes that can find records within L. ``rows`` is the result of `trainings`.

    The share of records found must be at least `EMERGED` on average over the seeds, and at least `LEAST` for every
    seed. If a model was trained for a different number of steps than planned, the name of its scheme includes that
    number."""
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
    """Return each claim with its verdict in one word, its counts and its comparisons.

    Each comparison has the mean, the ends of the confidence interval, and the outcome. For ``able``, see `rule.judge`.
    """
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
    """Return the bits of dynamic NTK from L to 2 L, averaged over files, one number per seed.

    "cached" means that keys keep the rotation they received on arrival; "anew" means that everything is recomputed.
    """
    return {
        name: [
            round(float(np.mean(rule.Cached(LONGER, anew).of(numbers, seed))), 4)
            for seed in SEEDS
        ]
        for name, anew in (("cached", False), ("anew", True))
    }
