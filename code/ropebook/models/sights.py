"""Summarise the checkpoints. Counts leave out rows with too few sourced values (those for
which `Checkpoint.counts` is false). In all other rows, they leave out unknown values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from ropebook import checks
from ropebook.models.file import COLUMNS, UNKNOWN, Checkpoint, checkpoints


def counted(rows: Iterable[Checkpoint] | None = None) -> list[Checkpoint]:
    """Return the rows for which `Checkpoint.counts` is true. By default, ``rows`` are
    the guide's rows.

    >>> all(row.counts for row in counted())
    True
    """
    return [row for row in (checkpoints() if rows is None else rows) if row.counts]


def known(
    *columns: str, rows: Iterable[Checkpoint] | None = None
) -> list[Checkpoint]:
    """Return the rows of `counted` in which each of these columns has a source.

    Raises:
        ValueError: a column is not in `COLUMNS`.
    """
    for column in columns:
        checks.choice("column", column, COLUMNS)
    return [
        row
        for row in counted(rows)
        if all(row.of(column) != UNKNOWN for column in columns)
    ]


def layouts(rows: Iterable[Checkpoint] | None = None) -> Counter:
    """Count the rows with each layout.

    >>> layouts()["half"] > layouts()["interleaved"]
    True
    """
    return Counter(row.of("layout") for row in known("layout", rows=rows))


class Group(NamedTuple):
    """The bases of the checkpoints whose shipped length is above ``above`` and at
    most ``upto`` tokens."""

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
    """Return the smallest, median and largest base for each range of lengths
    between two limits.

    Only models whose positions are a single number are included, because the rows
    and columns of a picture are not lengths of text. If the base differs between
    layers, we use the base of the layers that see the whole text.

    Args:
        limits: lengths in tokens, in ascending order.

    Raises:
        ValueError: there are fewer than two limits, or they are not in ascending
            order.
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
    """Group the rows of ``known("scaling")`` by their type of scaling, such as "yarn".
    The checkpoints in the group "none" have no scaling."""
    found: dict[str, list[Checkpoint]] = {}
    for row in known("scaling", rows=rows):
        scaling = row.of("scaling")
        kind = scaling if scaling == "none" else scaling["type"]
        found.setdefault(kind, []).append(row)
    return found


def differences(rows: Iterable[Checkpoint] | None = None) -> list[Checkpoint]:
    """Return the rows about which sources disagree."""
    return [
        row
        for row in (checkpoints() if rows is None else rows)
        if row.disagreements
    ]
