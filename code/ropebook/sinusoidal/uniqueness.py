"""Is the code unique? To find out, we look for the two kernel values that are closest to each other, for the distance
after which the encoding comes closest to repeating itself, and for the exact period."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import torch

from ropebook import checks
from ropebook.rope import LARGEST_POSITION, dim_and_base, inv_freq
from ropebook.sinusoidal.distances import chord, distance_kernel


class ClosestValues(NamedTuple):
    """The two distances whose kernel values are closest: |K(first) − K(second)| = ``gap``, which is accurate to within
    ``error``."""

    first: int
    second: int
    gap: float
    error: float


class ClosestReturn(NamedTuple):
    """The distance at which |PE_{m+distance} − PE_m| is smallest, and that smallest value, ``gap``."""

    distance: int
    gap: float


def closest_values(
    max_distance: int, dim: int, base: float = 10000.0
) -> ClosestValues:
    """Find the two distances from 0 to max_distance whose values of K are closest.

    If the θ_i are algebraic (as they are for any base that is a whole number or a float), no two whole distances of the
    same sign have the same K. Equal values would mean that a sum of exponentials of distinct algebraic numbers
    vanishes, which the Lindemann–Weierstrass theorem rules out. But of N + 1 values in an interval of length d,
    two must be within d/N of each other, so in any fixed precision the fingerprint stops being unique. ``error`` bounds
    the float64 error of ``gap``; a gap below it says only that float64 cannot tell the two values apart.

    >>> found = closest_values(100, dim=64)
    >>> found.gap > found.error
    True
    """
    max_distance = checks.integer(
        "max_distance", max_distance, minimum=1, maximum=LARGEST_POSITION
    )
    values, order = distance_kernel(
        torch.arange(max_distance + 1), dim, base
    ).sort()
    gaps = values.diff()
    narrowest = int(gaps.argmin())
    first, second = sorted(order[narrowest : narrowest + 2].tolist())
    # Each of the two values has an angle error of a few units in the last place of Δθ_i, and the rounding error of a
    # sum of d/2 numbers.
    largest_angles = max_distance * inv_freq(dim, base).sum().item()
    error = 2 * 2**-51 * (largest_angles + (dim / 2) ** 2)
    return ClosestValues(first, second, gaps[narrowest].item(), error)


def closest_return(
    max_distance: int, dim: int, base: float = 10000.0
) -> ClosestReturn:
    """Find the distance from 1 to max_distance after which the encoding comes closest to repeating itself.

    On whole positions the vector is always unique, for every base and dim, because θ_0 = 1 radian, and two different
    whole numbers never differ by a multiple of 2π. The gap says how close two vectors can come to each other.

    >>> closest_return(1000, dim=2).distance  # 710/113 is nearly 2π
    710
    """
    max_distance = checks.integer(
        "max_distance", max_distance, minimum=1, maximum=LARGEST_POSITION
    )
    gaps = chord(torch.arange(1, max_distance + 1), dim, base)
    nearest = int(gaps.argmin())
    return ClosestReturn(nearest + 1, gaps[nearest].item())


def exact_period(dim: int, base: float = 10000.0) -> float | None:
    """Return the period of the encoding over *real* positions, or ``None`` if there is none.

    All pairs return to their starting angles at the same time if and only if the frequencies are commensurate, which
    means that base^(2/dim) is a rational number p/q (in lowest terms). Then θ_i = (q/p)^i, and the period is
    2π·p^(dim/2 − 1). Otherwise the encoding is only almost periodic. On whole positions it has no period at all, since
    every period is a multiple of 2π. ``base`` is taken to be the exact value of the float.

    >>> round(exact_period(8, base=10000) / (2 * math.pi))
    1000
    >>> exact_period(128, base=10000) is None
    True
    """
    dim, base = dim_and_base(dim, base)
    pairs = dim // 2
    exact = Fraction(base)
    numerator = _whole_root(exact.numerator, pairs)
    if numerator is None or _whole_root(exact.denominator, pairs) is None:
        return None
    return 2 * math.pi * numerator ** (pairs - 1)


def _whole_root(value: int, degree: int) -> int | None:
    """Return the whole number whose ``degree``-th power is ``value``, or None if there is none."""
    low, high = 1, 1 << -(-value.bit_length() // degree)
    # We bisect with integers, because for numbers with this many digits a floating-point root is only a guess.
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**degree < value else (low, middle)
    return low if low**degree == value else None
