"""What the checkpoints show together. All counts use only the rows that count, and among them only known values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from ropebook import checks
from ropebook.models.file import COLUMNS, UNKNOWN, Checkpoint, checkpoints


def counted(rows: Iterable[Checkpoint] | None = None) -> list[Checkpoint]:
    """The rows that count; by default among the guide's rows.

    >>> all(row.counts for row in counted())
    True
    """
    return [row for row in (checkpoints() if rows is None else rows) if row.counts]


def known(
    *columns: str, rows: Iterable[Checkpoint] | None = None
) -> list[Checkpoint]:
    """Of the rows that count, those whose values in these columns all have a source.

    Raises:
        ValueError: a name that is not in `COLUMNS`.
    """
    for column in columns:
        checks.choice("column", column, COLUMNS)
    return [
        row
        for row in counted(rows)
        if all(row.of(column) != UNKNOWN for column in columns)
    ]


def layouts(rows: Iterable[Checkpoint] | None = None) -> Counter:
    """Layout -> how many rows have it.

    >>> layouts()["half"] > layouts()["interleaved"]
    True
    """
    return Counter(row.of("layout") for row in known("layout", rows=rows))


class Group(NamedTuple):
    """The bases of the checkpoints that ship for lengths above ``above`` up to ``upto`` tokens."""

    above: int
    upto: int
    models: int
    least: float
    middle: float
    most: float


def bases(
    limits: Sequence[int] = (1, 4096, 32_768, 131_072, 16_777_216),
    rows: Iterable[Checkpoint] | None = None,
) -> list[Group]:
    """How bases go with lengths: for each range between two limits, the smallest, median and largest
    base.

    Only models whose positions are a single number, because rows and columns of a picture are not lengths of
    text. Where layers differ, the base is that of the layers that see the whole text.

    Args:
        limits: lengths in tokens, rising.

    Raises:
        ValueError: fewer than two limits, or not rising.
    """
    limits = checks.listed("limits", limits, "a list of lengths")
    if len(limits) < 2 or sorted(set(limits)) != limits:
        raise ValueError(f"limits must be two or more that rise, got {limits}")
    lines = [
        row
        for row in known("base", "shipped", "axes", rows=rows)
        if row.of("axes") == 1 and row.of("base") != "none"
    ]
    groups = []
    for above, upto in pairwise(limits):
        found = [
            row.of("base") for row in lines if above < row.of("shipped") <= upto
        ]
        if found:
            spread = min(found), median(found), max(found)
            groups.append(Group(above, upto, len(found), *spread))
    return groups


def stretched(
    rows: Iterable[Checkpoint] | None = None,
) -> dict[str, list[Checkpoint]]:
    """Type of scaling (as in `Value`, or "none") -> the rows that ship with it."""
    found: dict[str, list[Checkpoint]] = {}
    for row in known("scaling", rows=rows):
        scaling = row.of("scaling")
        kind = scaling if scaling == "none" else scaling["type"]
        found.setdefault(kind, []).append(row)
    return found


def differences(rows: Iterable[Checkpoint] | None = None) -> list[Checkpoint]:
    """The rows on which sources disagree."""
    return [
        row
        for row in (checkpoints() if rows is None else rows)
        if row.disagreements
    ]
