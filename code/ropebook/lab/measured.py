"""The second experiment as pages show it, gathered from the files that
`benchmarks/trials.py` stored.

The files in results/trials have a number for each text and each question. Here we
keep their means (one number for each seed), the intervals of
`ropebook.lab.intervals` for comparisons, and the verdicts of `ropebook.lab.rule`.
That is enough for drawing, and small enough for a notebook to carry. Everything
here can be recomputed from those files, and a test does so.
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
"""The numbers that `benchmarks/trials.py evaluate` stored, by cell
("rope-10000-0-3200/yarn/4")."""


def trainings(told: Mapping[str, Mapping]) -> list[dict[str, object]]:
    """What a page says about each training, from results/trials/<name>.json, in the
    order of the names. Shares and bits are those on the development part, within L.

    "headroom": bits with everything that came before, and with only the last L/2
    bytes. "floor": the same for a reader who knows the language.
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
    """The rows of each scheme and extension ("rope-10000-3200/yarn/4"), one for
    each seed.

    - "bits" by band, and "curves": both by text.
    - The shares of right answers: by task, length of the text and distance.
    - "other": the share of the order task's answers that name the same key's other
      record.
    - "last": "bits" and "curves" of the model with only its last L bytes.
    - "ended": bits in texts that end with the band.

    If a training had more steps than the others, its name says how many
    ("rope-100-3200"). Without an extension, such a model may have fewer seeds. A
    number is None if the model does not reach that far. Raises ``ValueError`` if a
    seed of another cell is missing.
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
    """A cell's name without its seed, and the seed. Raises ``ValueError`` if the
    name isn't a cell's.

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
    """The share of one kind of answer (given by its letter) at each distance, from
    near to far."""
    if by_distance is None:
        return None
    far = [by_distance[distance] for distance in sorted(by_distance, key=int)]
    return [round(letters.count(letter) / len(letters), 4) for letters in far]


def _means(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """The mean of each column over the rows. It is None for a column that the model
    did not reach."""
    columns = np.array(rows, dtype=float).mean(0).tolist()
    return [None if math.isnan(mean) else round(mean, 4) for mean in columns]


Rows = list[list[float] | None]
"""For each band, the mean and the ends of its interval, in bits per byte."""


def differences(numbers: Numbers) -> dict[str, dict[str, dict[str, Rows]]]:
    """The comparisons on the pages, by kind, cell and text: the mean and its
    interval (95 %, over seeds and files) for each band, or None if a model does not
    reach it.

    - "plain": every extension minus the model as it was trained.
    - "last": every cell minus its plain model with only the last L bytes, if that was
      tested. A model that was trained further is compared with itself instead, with only
      the last L bytes.
    - "none": a model that was trained further with a method, minus one that was trained
      equally long without it.

    Cells that don't have all `SEEDS` are left out.
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
    """The schemes in ``rows`` (the result of `trainings`) that find records within
    L: the share of records found is at least `EMERGED` on average over the seeds,
    and at least `LEAST` with every seed. If a training had another number of steps
    than planned, its scheme's name includes them."""
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
    """Each claim with its word and its counts and, for each comparison, the mean,
    the ends of the interval and the outcome. ``able``: see `rule.judge`."""
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
    """Bits of dynamic NTK from L to 2 L, one mean over files for each seed: with
    keys as they were rotated on arrival ("cached"), and with everything recomputed
    ("anew")."""
    return {
        name: [
            round(float(np.mean(rule.Cached(LONGER, anew).of(numbers, seed))), 4)
            for seed in SEEDS
        ]
        for name, anew in (("cached", False), ("anew", True))
    }
