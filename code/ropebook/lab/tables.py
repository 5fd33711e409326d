"""Tables and grids of the second experiment, for use on pages.

Most functions take ``opened``, which is the "opened" part of results/measured.json.

A table is a dictionary that maps headings to columns, for `ropebook.show.table`. A grid
is for `ropebook.figures.heatmap`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ropebook import checks
from ropebook.lab.claims import CLAIMS, LENGTHWISE, LONGER, STRETCHED, TITLES
from ropebook.lab.extensions import FACTORS, TUNED
from ropebook.lab.rule import TEXTS, Comparison, Share
from ropebook.lab.scores import BANDS, LENGTH, TEXT
from ropebook.lab.tasks import TASKS
from ropebook.show import Signs

Columns = dict[str, list]
SHORT = {
    "holds": "hold",
    "fails": "fail",
    "no difference": "no difference",
    "undecided": "undecided",
    "not asked": "not asked",
}
# The signs of verdicts and of outcomes in tables
SIGNS = {
    "holds": "✓",
    "mostly holds": "(✓)",
    "does not hold": "✗",
    "fails": "✗",
    "mostly fails": "(✗)",
    "no difference": "=",
    "mixed": "±",
    "undecided": "?",
    "not asked": "○",
}


def signed(value: float, digits: int = 2) -> str:
    """Format a difference with its sign, by default with two decimals.

    >>> signed(-0.126), signed(-0.001)
    ('−0.13', '+0.00')
    """
    return f"{value:+z.{digits}f}".replace("-", "−")


def with_interval(found: Mapping[str, float], margin: float = 0.0) -> str:
    """Format a mean difference and its interval, given under the keys "mean", "low" and "high".

    If rounding to two decimals would put an end of the interval exactly on 0 or on ``margin``, there are three
    decimals, so that readers see on which side it lies.

    >>> with_interval({"mean": -0.5, "low": -0.66, "high": -0.38})
    '−0.50 (−0.66 to −0.38)'
    >>> with_interval({"mean": -0.12, "low": -0.197, "high": -0.043}, margin=0.2)
    '−0.120 (−0.197 to −0.043)'
    """
    ends = (abs(found["low"]), abs(found["high"]))
    hidden = any(end != round(end, 2) in (0.0, margin) for end in ends)
    mean, low, high = (
        signed(found[key], 3 if hidden else 2) for key in ("mean", "low", "high")
    )
    return f"{mean} ({low} to {high})"


def mean(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Average each column over seeds. The mean is None if a model cannot read that far.

    >>> mean([[1.0, None], [2.0, None]])
    [1.5, None]
    """
    return [
        None if None in column else float(np.mean(column))
        for column in zip(*rows, strict=True)
    ]


def far(rows: Sequence[Sequence[float] | None], beyond: int) -> float | None:
    """Average the shares over seeds, and over the distances from index ``beyond`` onwards.

    The mean is None if a model cannot read that far.

    Raises ``ValueError`` if ``beyond`` is not the index of a distance.
    """
    if None in rows:
        return None
    checks.integer("beyond", beyond, minimum=0, maximum=len(rows[0]) - 1)
    return float(np.mean([row[beyond:] for row in rows]))


def bits(opened: Mapping, id: str, text: str) -> list[float | None]:
    """Return a cell's bits per byte for each band, averaged over seeds.

    The number for a band is None if the model cannot read that far.
    """
    return mean(opened["cells"][id]["bits"][checks.choice("text", text, TEXTS)])


def answers(opened: Mapping, id: str, task: str, length: int) -> np.ndarray:
    """Return a cell's shares of right answers, from near to far: (seeds, distances).

    With ``task="other"``, return the shares of wrong answers in the order task that name the key's other record.
    """
    checks.choice("task", task, (*TASKS, "other"))
    return np.array(opened["cells"][id][task][str(length)])


def ordered(opened: Mapping, id: str, length: int) -> np.ndarray:
    """Among answers in the order task that name one of the key's two records, return the share that are right.

    The shape is (seeds, distances).

    The share is NaN if there are no such answers.
    """
    right = answers(opened, id, "order", length)
    with np.errstate(invalid="ignore"):
        return right / (right + answers(opened, id, "other", length))


_BESIDE = {
    "learned": "learned absolute",
    "sinusoidal": "sinusoidal",
    "none": "none, causal mask",
    "t5": "T5 buckets",
    "alibi": "ALiBi",
    "rope-10000": "RoPE, base 10⁴",
    "rope-500000": "RoPE, base 5·10⁵",
    "alternate": "RoPE and none in turn",
}
_NEAR, _FAR = 3, -1


def schemes(measured: Mapping) -> Columns:
    """Tabulate how each scheme performs within and beyond L without any context-extension method.

    The numbers are means over the available seeds.

    ``measured`` is the whole result, not only its "opened" part. The columns are:

    - Bits per byte on Python code, within L and in the last band of positions.
    - The share of records retrieved in long contexts, near and far. It is None if the
      scheme cannot find records within L.
    - How much the seeds differ, for each of the two bands: the largest loss minus the
      smallest.
    """
    opened, distances = measured["opened"], measured["distances"]
    rows = []
    for id, title in _BESIDE.items():
        if id in opened["cells"]:
            cell = np.array(opened["cells"][id]["bits"]["python"], float)
            losses, spreads = (
                [
                    None if np.isnan(value) else float(value)
                    for value in map(of, (cell[:, 0], cell[:, -1]))
                ]
                for of in (np.mean, np.ptp)
            )
            found = opened["cells"][id]["retrieval"][str(measured["text"])]
            told = id in opened["able"] and None not in found
            shares = mean(found) if told else [None] * len(distances)
            rows.append((title, *losses, shares[_NEAR], shares[_FAR], *spreads))
    first, last = measured["bands"][0], measured["bands"][-1]
    heads = (
        "scheme",
        f"bits, {first[0]:,} to {first[1]:,}",
        f"bits, {last[0]:,} to {last[1]:,}",
        f"found {distances[_NEAR]:,} back",
        f"found {distances[_FAR]:,} back",
        f"spread, {first[0]:,} to {first[1]:,}",
        f"spread, {last[0]:,} to {last[1]:,}",
    )
    return dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))


class Grid(NamedTuple):
    """A grid with one row per cell.

    ``values`` (rows, bands) is NaN where a value is missing. ``sure`` is true where the confidence interval excludes 0.
    """

    rows: list[str]
    values: np.ndarray
    sure: np.ndarray


def methods(*, tuned: bool = False) -> dict[str, str]:
    """Return the titles of the methods to show, by cell.

    For example, "rope-10000-3200/yarn/4" has the title "YaRN (published β), 4".
    """
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
    """Return a grid of the differences in bits: a row for each cell in ``rows``, and a
    column for each band. ``against`` is "plain", "last" or "none" (see
    `measured.differences`)."""
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
        values,
        sure,
    )


def advice(opened: Mapping, lines: Mapping[str, str]) -> Columns:
    """Tabulate arguments for and against each method in ``lines`` (a mapping from cells to titles).

    The columns are means over files and seeds:

    - Bits on Python code minus those of the plain model when it sees only its last L
      bytes, within L and in the last band.
    - The share of records found beyond L.
    - In the last band, the same difference in bits on the generated language.

    The first row is the plain model that sees only its last L bytes, which competes with
    the methods.
    """
    plain = opened["cells"][LONGER]
    reach = BANDS[-1][1] // LENGTH
    near = len(plain["retrieval"][str(LENGTH)][0])

    def last(text: str) -> list[float]:
        differences = opened["differences"]["last"]
        return [0.0, *(differences[id][text][-1][0] for id in lines)]

    def within(id: str) -> float:
        """Return the difference in bits within L. If a method adapts to the length, it
        is measured on inputs of L bytes."""
        if id == LONGER:  # the plain model minus itself
            return 0.0
        ended = opened["cells"][id].get("ended")
        if ended is None:
            return opened["differences"]["plain"][id]["python"][0][0]
        return mean(ended["python"])[0] - mean(plain["bits"]["python"])[0]

    return {
        "method": ["only the last L bytes", *lines.values()],
        "within L": [0.0, *map(within, lines)],
        f"{reach // 2} L to {reach} L": last("python"),
        "records beyond L": [
            None,
            *(
                far(opened["cells"][id]["retrieval"][str(TEXT)], near)
                for id in lines
            ),
        ],
        f"{reach // 2} L to {reach} L, other text": last("language"),
    }


def verdicts(opened: Mapping, ids: Iterable[str]) -> Columns:
    """Tabulate the claims with these ids.

    Each row contains the verdict and the outcomes of the comparisons: bits on each of the two corpora, and records.
    A table shows `SIGNS` instead of words: one for the verdict, and one for each comparison, in the order of the rule.
    """
    by_id = {row["id"]: row for row in opened["verdicts"]}
    rows = [by_id[id] for id in ids]
    columns: Columns = {
        "claim": [row["claim"] for row in rows],
        "verdict": [_signed_word(row["word"]) for row in rows],
    }
    of = {
        "records": "records",
        "python": "Python",
        "language": "generated language",
    }
    for kind, head in of.items():
        cells = []
        for row in rows:
            outcomes = [
                found[-1]
                for asked, found in zip(
                    CLAIMS[row["id"]].comparisons, row["found"], strict=True
                )
                if kind == _kind(asked)
            ]
            words = counted({each: outcomes.count(each) for each in SHORT})
            cells.append(
                Signs(words, [(SIGNS[one], one) for one in outcomes])
                if words
                else None
            )
        if any(cells):
            columns[head] = cells
    return columns


def _signed_word(verdict: str) -> Signs:
    word = verdict.removesuffix(" here")
    return Signs(word, [(SIGNS[word], word)])


def _kind(asked: Comparison) -> str:
    """Return what a comparison is about: "records", or the name of the corpus on which bits are compared.

    If the comparison names no corpus, "python" is returned.
    """
    if isinstance(asked.a, Share):
        return "records"
    return getattr(asked.a, "text", "python")


def counted(counts: Mapping[str, int]) -> str:
    """Describe in words how often each outcome occurred.

    >>> counted({"holds": 5, "fails": 0, "no difference": 1, "undecided": 0})
    '5 hold, 1 no difference'
    """
    return ", ".join(
        f"{counts[outcome]} {word}"
        for outcome, word in SHORT.items()
        if counts.get(outcome)
    )


def then_and_now(first: Sequence[Mapping], opened: Mapping) -> Columns:
    """Tabulate the claims whose verdict changed from the first experiment to the second.

    ``first`` contains the "id", "claim" and "verdict" of each claim in the first experiment. The columns contain that
    claim, the verdicts of both experiments, and the second experiment's outcomes on Python code, which was the only
    corpus of the first one. The last column, "change", contains "reversed" (from "for" to "against", or vice versa),
    "less sure", "surer" or "by degrees".

    Raises ``KeyError`` if a claim is no longer tested.
    """
    now = {
        row["id"]: row["word"].removesuffix(" here") for row in opened["verdicts"]
    }
    changed = [
        (row, then)
        for row in first
        if (then := row["verdict"].removesuffix(" here")) != now[row["id"]]
    ]
    ids = [row["id"] for row, _ in changed]
    return {
        "claim then": [row["claim"] for row, _ in changed],
        "then": [_signed_word(then) for _, then in changed],
        "now": [_signed_word(now[id]) for id in ids],
        "now, on Python": verdicts(opened, ids)["Python"],
        "change": [
            _change(then, now[id])
            for (_, then), id in zip(changed, ids, strict=True)
        ],
    }


def _change(then: str, now: str) -> str:
    sides = {
        "holds": 1,
        "mostly holds": 1,
        "does not hold": -1,
        "mostly fails": -1,
    }
    before, after = sides.get(then, 0), sides.get(now, 0)
    if before == after:
        return "by degrees"
    if before and after:
        return "reversed"
    return "surer" if after else "less sure"
