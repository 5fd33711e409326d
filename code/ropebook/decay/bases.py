"""The base that a context needs according to the criterion of Men et al. (2024).

This module computes how far a base reaches, and searches for the smallest base that reaches far enough.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import NamedTuple

from ropebook import checks
from ropebook.decay.curves import Device, first_below, whole_length
from ropebook.sinusoidal import distance_kernel

# The smallest bases that Men et al. (2024) found for each context length, with d = 128.
PUBLISHED_BASES = MappingProxyType(
    {
        "1k": 4.3e3,
        "2k": 1.6e4,
        "4k": 2.7e4,
        "8k": 8.4e4,
        "16k": 3.1e5,
        "32k": 6.4e5,
        "64k": 2.1e6,
        "128k": 7.8e6,
        "256k": 3.6e7,
        "512k": 6.4e7,
        "1M": 5.1e8,
    }
)


def tokens(label: str | int, thousand: int = 1024) -> int:
    """Convert a label such as "128k", "128K" or "1M" to a context length. ``thousand`` is the value of k: 1,024 or 1,000.

    A number, or a label without a letter, is already the length.

    >>> tokens("4k"), tokens("4K", thousand=1000), tokens("1M"), tokens(128000), tokens("131,072")
    (4096, 4000, 1048576, 128000, 131072)
    """
    checks.choice("thousand", thousand, (1000, 1024))
    if not isinstance(label, str):
        return checks.integer("label", label, minimum=1)
    match = re.fullmatch(
        r"([1-9][0-9]*|[1-9][0-9]{0,2}(?:,[0-9]{3})+)([kKmM]?)", label
    )
    if not match:
        raise ValueError(
            f"label must be a whole number, with k or M or without, such as '128k', got {label!r}"
        )
    power = {"": 0, "k": 1, "m": 2}[match[2].lower()]
    return int(match[1].replace(",", "")) * thousand**power


def reach(base: float, dim: int, limit: int, device: Device = None) -> int:
    """Return the number of positions for which a base meets the criterion Σ_i cos mθ_i ≥ 0, counted from m = 0.

    The reach is the first m that violates the criterion, or ``limit`` if no smaller m does. The search stops at the
    first negative sum. A base is admissible for a context of L tokens if its reach, computed with a limit of at least
    L, is at least L (Men et al. 2024).

    >>> reach(10000, dim=128, limit=4096)
    1707
    """
    limit = whole_length("limit", limit)
    curve = partial(distance_kernel, dim=checks.even("dim", dim), base=base)
    negative = first_below(curve, 0.0, limit, device)
    return limit if negative is None else negative


def significant_grid(digits: int, low: float, high: float) -> list[float]:
    """Return all numbers from ``low`` to ``high`` inclusive with ``digits`` significant digits, in increasing order.

    The paper's grid has two significant digits: 1,000, 1,100, …, 9,900, 10,000, 11,000, ….

    >>> [int(base) for base in significant_grid(2, 970, 1200)]
    [970, 980, 990, 1000, 1100, 1200]
    """
    digits = checks.integer("digits", digits, minimum=1, maximum=6)
    low = checks.number("low", low, minimum=1)
    high = checks.number("high", high, minimum=low)
    grid = []
    # Start one decade early, because rounding may put the logarithm of a number on either side of a whole number.
    for decade in range(int(math.log10(low)) - 1, int(math.log10(high)) + 2):
        for mantissa in range(10 ** (digits - 1), 10**digits):
            power = decade - digits + 1
            grid.append(
                mantissa * 10.0**power if power >= 0 else mantissa / 10**-power
            )
    return [number for number in grid if low <= number <= high]


def smallest_base(
    length: int, bases: Iterable[float], dim: int = 128, device: Device = None
) -> float | None:
    """Return the first of ``bases`` (in increasing order) that is admissible for ``length`` positions, or None.

    The bases are tried one by one. Bisection could miss the smallest one, because the admissible bases do not form an
    interval (`runs`). For the same reason the answer depends on the grid: a finer grid may contain a smaller admissible
    base.

    >>> smallest_base(1024, significant_grid(2, 1e3, 1e4))
    4300.0
    """
    length = whole_length("length", length)
    return next(
        (
            base
            for base in _rising(bases)
            if reach(base, dim, length, device) >= length
        ),
        None,
    )


class Run(NamedTuple):
    """A run of ``count`` neighbouring bases on a grid, from ``first`` to ``last``, all of which are admissible."""

    first: float
    last: float
    count: int


def runs(bases: Sequence[float], reaches: Sequence[int], length: int) -> list[Run]:
    """List the admissible bases for ``length`` positions as runs of neighbours on the grid ``bases``.

    ``reaches[j]`` is the `reach` of bases[j], found with a limit of at least ``length``. Nothing is known about bases
    between two grid points.

    >>> runs([1.0, 2.0, 3.0, 4.0], [9, 5, 8, 9], length=8)
    [Run(first=1.0, last=1.0, count=1), Run(first=3.0, last=4.0, count=2)]
    """
    length = whole_length("length", length)
    bases = _rising(bases)
    if len(bases) != len(reaches):
        raise ValueError(
            f"bases and reaches must be equally many, got {len(bases)} and {len(reaches)}"
        )
    found = []
    for admissible, group in groupby(
        zip(bases, reaches, strict=True), key=lambda pair: pair[1] >= length
    ):
        if admissible:
            run = [base for base, _ in group]
            found.append(Run(run[0], run[-1], len(run)))
    return found


class Comparison(NamedTuple):
    """A published smallest base, compared with ours.

    ``first_negative`` is the first position at which the published base violates the criterion, or None.
    """

    length: int
    published: float
    ours: float | None
    agrees: bool
    first_negative: int | None


def compare(
    length: int,
    published: float,
    bases: Iterable[float],
    dim: int = 128,
    device: Device = None,
) -> Comparison:
    """Search ``bases`` for the smallest admissible one, and check a published base against the same criterion.

    >>> compare(4096, 2.7e4, significant_grid(2, 1e3, 1e5))
    Comparison(length=4096, published=27000.0, ours=29000.0, agrees=False, first_negative=4079)
    """
    ours = smallest_base(length, bases, dim, device)
    reached = reach(published, dim, length, device)
    return Comparison(
        length,
        published,
        ours,
        ours == published,
        reached if reached < length else None,
    )


def _rising(bases: Iterable[float]) -> list[float]:
    bases = [checks.number("bases", base, minimum=1) for base in bases]
    if any(after <= before for before, after in pairwise(bases)):
        raise ValueError("bases must rise, each greater than the one before")
    return bases
