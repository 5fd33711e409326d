"""Statistics of a curve over distances: mean, lowest value, oscillations, and where it first falls below a level.

A curve is a function of distances: it takes an int64 tensor of shape (n,) and returns float64 values of the same shape
on the same device. The functions here pass it at most CHUNK distances at a time, so the memory they need does not grow
with the length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.sinusoidal import distance_kernel

Curve = Callable[[Tensor], Tensor]  # distances (n,) -> values (n,)
Device = torch.device | str | None

CHUNK = 2**16  # the number of distances per chunk


def whole_length(name: str, value: int) -> int:
    """Check a number of tokens, which must be at least 1. Error messages use ``name`` as the name of the argument."""
    return checks.integer(name, value, 1, rope.LARGEST_POSITION)


class Summary(NamedTuple):
    """The result of `summarize`."""

    mean: float
    least: float
    least_at: int
    first_negative: int | None
    local_maxima: int
    rises: int


def summarize(curve: Curve, length: int, device: Device = None) -> Summary:
    """Summarize the values of a curve from Δ = 0 to length − 1.

    ``local_maxima`` counts the interior distances whose value is greater than the value before and not less than the
    value after. ``rises`` counts the distances at which the curve is higher than one step before. The curve falls
    monotonically if and only if ``rises`` is 0. ``first_negative`` is None if no value is below 0. Raises
    ``ValueError`` if the values do not have the shape of the distances, or if one of them is NaN.

    >>> found = summarize(lambda distances: distances.double().cos(), 10)
    >>> found.least_at, found.first_negative, found.local_maxima, found.rises
    (3, 2, 1, 3)
    """
    length = whole_length("length", length)
    total, least, least_at, first_negative = 0.0, math.inf, 0, None
    local_maxima = rises = 0
    before = None  # the last two values of the previous chunk
    for distances in _chunks(0, length, device):
        values = _values(curve, distances)
        start = int(distances[0])
        total += values.sum().item()
        lowest = int(values.argmin())
        if values[lowest] < least:
            least, least_at = values[lowest].item(), start + lowest
        if first_negative is None and least < 0:
            first_negative = start + int((values < 0).int().argmax())
        joined = values if before is None else torch.cat((before, values))
        up = joined.diff() > 0
        local_maxima += int((up[:-1] & ~up[1:]).sum())
        # If the last chunk left two values, the step between these two has already been counted.
        rises += int(up[0 if before is None else len(before) - 1 :].sum())
        before = joined[-2:]
    return Summary(
        total / length, least, least_at, first_negative, local_maxima, rises
    )


class Windows(NamedTuple):
    """The mean, smallest and largest value of a curve in each window: shape (windows,), float64, on the CPU."""

    mean: Tensor
    least: Tensor
    greatest: Tensor


def windows(curve: Curve, edges: Sequence[int], device: Device = None) -> Windows:
    """Return a curve's mean, smallest and largest value in each window edges[j] ≤ Δ < edges[j + 1].

    ``edges``: at least two non-negative integers in strictly increasing order.

    >>> windows(lambda distances: distances.double(), [0, 2, 4]).mean
    tensor([0.5000, 2.5000], dtype=torch.float64)
    """
    edges = [
        checks.integer("edges", edge, 0, rope.LARGEST_POSITION) for edge in edges
    ]
    if len(edges) < 2 or any(stop <= start for start, stop in pairwise(edges)):
        raise ValueError(f"edges must be two or more, and increase, got {edges}")
    rows = []
    for start, stop in pairwise(edges):
        total, least, greatest = 0.0, math.inf, -math.inf
        for distances in _chunks(start, stop, device):
            values = _values(curve, distances)
            total += values.sum().item()
            least = min(least, values.min().item())
            greatest = max(greatest, values.max().item())
        rows.append((total / (stop - start), least, greatest))
    return Windows(*torch.tensor(rows, dtype=torch.float64).T)


def trend(
    curve: Curve, length: int, device: Device = None
) -> tuple[Tensor, Windows]:
    """Return the trend of a curve over Δ < ``length``, window by window.

    Each window is about a third longer than the one before (by a factor of 10^(1/8)).

    Returns the tuple (middles, trend). ``middles`` contains the middles of the windows, (windows,) in float64, and
    ``trend`` the mean, smallest and largest value in each window.

    >>> middles, found = trend(lambda distances: distances.double(), 10)
    >>> middles.tolist() == found.mean.tolist() == [1.0, 2.0, 3.0, 4.5, 6.0, 8.0]
    True
    """
    steps = round(8 * math.log10(whole_length("length", length))) + 1
    edges = sorted({round(10 ** (step / 8)) for step in range(steps)})
    middles = [(start + stop - 1) / 2 for start, stop in pairwise(edges)]
    return torch.tensor(middles, dtype=torch.float64), windows(curve, edges, device)


def first_below(
    curve: Curve, level: float, length: int, device: Device = None
) -> int | None:
    """Return the first distance in 0 … length − 1 at which a curve is below ``level``, or None if the curve never is.

    The search stops after the chunk that contains this distance.

    >>> first_below(lambda distances: distances.double().cos(), 0.0, 100)
    2
    """
    level = checks.number("level", level)
    return _first(
        curve,
        lambda values: values < level,
        0,
        whole_length("length", length),
        device,
    )


def first_return(
    share: float,
    length: int,
    dim: int,
    base: float = 10000.0,
    device: Device = None,
) -> int | None:
    """Return the first Δ < length at which K(Δ) is back at ``share`` times K(0), after falling below it, or None.

    K is almost periodic: it comes arbitrarily close to K(0) again, but with many pairs only at very large distances.

    >>> first_return(0.99, 10000, dim=8)  # its frequencies are powers of 1/10: the period is 2000π
    6283
    """
    share = checks.number("share", share, above=0, maximum=1)
    length = whole_length("length", length)
    curve = partial(distance_kernel, dim=checks.even("dim", dim), base=base)
    level = share * (dim // 2)
    left = first_below(curve, level, length, device)
    if left is None:
        return None
    return _first(curve, lambda values: values >= level, left, length, device)


def _first(
    curve: Curve,
    condition: Callable[[Tensor], Tensor],
    start: int,
    stop: int,
    device: Device,
) -> int | None:
    for distances in _chunks(start, stop, device):
        found = condition(_values(curve, distances))
        if found.any():
            return int(distances[0]) + int(found.int().argmax())
    return None


def _chunks(start: int, stop: int, device: Device) -> Iterator[Tensor]:
    """Yield the distances start … stop − 1 in pieces.

    The first piece is small, and each is twice as long as the last, up to CHUNK.
    """
    size = CHUNK // 16
    while start < stop:
        end = min(start + size, stop)
        yield torch.arange(start, end, device=device)
        start, size = end, min(2 * size, CHUNK)


def _values(curve: Curve, distances: Tensor) -> Tensor:
    values = checks.floating("what curve gives", curve(distances))
    if values.shape != distances.shape:
        raise ValueError(
            f"curve must give one value for each distance, shape {tuple(distances.shape)}, got {tuple(values.shape)}"
        )
    if values.isnan().any():
        raise ValueError("curve must give numbers, got NaN")
    return values
