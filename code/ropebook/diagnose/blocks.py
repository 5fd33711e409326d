"""Pairs whose matrix is not (cos −sin; sin cos): what was written instead, and the cosines and sines behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ropebook.diagnose.measures import SINGLE, Angles, Matrices, Turn, turned
from ropebook.rope import split_pairs

# A mistake that a pair's matrix (a b; c e) may show: the mistake's name, the cosine, the sine, and the pairs of
# numbers that are equal if the mistake was made.
Form = tuple[str, Angles, Angles, tuple[tuple[Tensor, Tensor], ...]]
# A pair has to move by this much before we can distinguish its curve from a line.
MOVING = 0.05


def mended(
    matrix: Matrices, turn: Turn, layout: str | None, width: int | None
) -> Turn | None:
    """If pairs mix their entries wrongly, find the rotation that was meant, and name the flaw.

    Returns None if no known flaw fits.
    """
    for first, second in _pairs(matrix, turn, layout, width):
        numbers = _numbers(matrix, first, second)
        for index, (name, cos, sin, equal) in enumerate(_forms(*numbers)):
            if all(_close(one, other) for one, other in equal):
                found = turned(turn.dim, first, second, cos, sin)
                if name == "uncrossed" and found is not None and sin[0].any():
                    # at position 0 a rotation leaves entries as they are
                    continue
                if found is not None and found.theta.any():
                    reader = _reader(first, second, index)
                    return replace(
                        found, flaws=(name,), off=turn.off, reader=reader
                    )
        found = (
            _one_table(turn, first, second, *numbers)
            or _ellipse(turn, first, second, *numbers)
            or _lengthened(turn, first, second, *numbers)
        )
        if found is not None:
            return found
    return None


def _lengthened(
    turn: Turn,
    first: tuple[int, ...],
    second: tuple[int, ...],
    *numbers: Angles,
) -> Turn | None:
    """Find the rotation if the two entries of a pair are multiplied by different factors, before or after rotating."""
    for when in ("after", "before"):
        cos, sin, equal, sizes = _evened(*numbers, when)
        if min(one.min() for one in sizes) < 1e-3 or _close(*sizes):
            continue
        found = turned(turn.dim, first, second, cos, sin)
        if not all(_close(*two) for two in equal) or found is None:
            continue
        if not found.theta.any():
            continue
        moving = any(not _close(size, size[:1]) for size in sizes)
        factor = torch.stack(sizes)[:, 0].mean().item()
        off = max((size / factor - 1).abs().max().item() for size in sizes)

        return replace(
            found,
            flaws=("lengths" if moving else "uneven_lengths",),
            off=off,
            factor=factor,
            note=f"the two entries of a pair are multiplied by factors of their own, {when} it is rotated"
            + _spread(first, second, sizes),
            reader=_divided(first, second, factor, when),
        )
    return None


def _divided(
    first: tuple[int, ...], second: tuple[int, ...], factor: float, when: str
) -> Callable[[Matrices], tuple[Angles, Angles]]:
    def read(matrix: Matrices) -> tuple[Angles, Angles]:
        cos, sin, _, _ = _evened(*_numbers(matrix, first, second), when)
        return factor * cos, factor * sin

    return read


def _evened(
    a: Angles, b: Angles, c: Angles, e: Angles, when: str
) -> tuple[Angles, Angles, tuple, tuple[Angles, Angles]]:
    """Undo the factors by which the two entries of a pair are multiplied after or before the rotation.

    If ``when`` is "after", the rows of the pair's matrix are divided by their lengths. If it is "before", the columns
    are. Returns the cosine, the sine, the numbers that must be equal in a rotation, and the two lengths.
    """
    beside, below = (b, c) if when == "after" else (c, b)
    sizes = torch.hypot(a, beside), torch.hypot(below, e)
    one, other = (size.clamp(min=1e-300) for size in sizes)
    beside, below = beside / one, below / other
    sin = below if when == "after" else beside
    return a / one, sin, ((a / one, e / other), (beside, -below)), sizes


def _spread(
    first: tuple[int, ...], second: tuple[int, ...], sizes: tuple[Angles, Angles]
) -> str:
    """Return a clause that names the layout in which each pair has two equal factors, or "" if there is none."""
    order = torch.tensor([*first, *second]).argsort()
    entries = torch.cat([size[-1] for size in sizes])[order]
    for layout in ("interleaved", "half"):
        if len(first) > 1 and _close(*split_pairs(entries, layout)):
            return f", and these are spread for the other layout, the {layout} one"
    return ""


def one_row(matrix: Matrices, turn: Turn) -> Turn | None:
    """Find the rotation that explains one entry of each pair when the other entry is computed wrongly."""
    if not turn.first:
        return None
    a, b, c, e = _numbers(matrix, turn.first, turn.second)
    for cos, sin, which in ((a, -b, "second"), (e, c, "first")):
        if sin[0].any():
            continue
        found = turned(turn.dim, turn.first, turn.second, cos, sin)
        if found is not None and found.theta.any():
            note = f"the {which} one is wrong"
            return replace(found, flaws=("half_turned",), off=turn.off, note=note)
    return None


def _pairs(
    matrix: Matrices, turn: Turn, layout: str | None, width: int | None
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the measured pairs, or the pairs of each layout if no entry is mixed with another."""
    if turn.first:
        yield turn.first, turn.second
    elif turn.kind == "missing_sin":
        own = matrix.diagonal(dim1=-2, dim2=-1)
        changed = (own - own[:1]).abs().amax(0).nonzero().flatten()
        start, stop = int(changed[0]), int(changed[-1]) + 1
        stop = max(stop + (stop - start) % 2, width or 0)
        for one in sorted(("interleaved", "half"), key=lambda one: one != layout):
            pairs = split_pairs(torch.arange(start, min(stop, turn.dim)), one)
            yield tuple(tuple(x.tolist()) for x in pairs)


def _numbers(
    matrix: Matrices, first: tuple[int, ...], second: tuple[int, ...]
) -> tuple[Angles, ...]:
    first, second = list(first), list(second)
    return (
        matrix[:, first, first],
        matrix[:, first, second],
        matrix[:, second, first],
        matrix[:, second, second],
    )


def _forms(a: Angles, b: Angles, c: Angles, e: Angles) -> Iterator[Form]:
    """Yield the known wrong formulas. The function under test may multiply the result of any of them by a factor."""
    none = torch.zeros_like(a)
    f, g = torch.hypot(a, b).mean(), torch.hypot(c, e).mean()
    yield "overwritten", a, -b, ((c * f, -a * b), (e * f, a * f - b * b))
    yield "overwritten", e, c, ((b * g, -c * e), (a * g, e * g - c * c))
    yield "half_turned", a, -b, ((c, none), (e, e[:1]))
    yield "half_turned", e, c, ((b, none), (a, a[:1]))
    yield "uncrossed", (a + e) / 2, (e - a) / 2, ((b, none), (c, none))
    yield "missing_minus", a, c, ((e, a), (b, c))
    yield "added", a - 1, c, ((e, a), (b, -c))


def _close(one: Tensor, other: Tensor) -> bool:
    return (one - other).abs().max().item() < SINGLE


def _reader(
    first: tuple[int, ...], second: tuple[int, ...], index: int
) -> Callable[[Matrices], tuple[Angles, Angles]]:
    def read(matrix: Matrices) -> tuple[Angles, Angles]:
        _, cos, sin, _ = list(_forms(*_numbers(matrix, first, second)))[index]
        return cos, sin

    return read


def _one_table(
    turn: Turn,
    first: tuple[int, ...],
    second: tuple[int, ...],
    a: Angles,
    b: Angles,
    c: Angles,
    e: Angles,
) -> Turn | None:
    """Find the rotation if only the cosine or only the sine was used. Angles are read off the first two positions."""
    if not (_close(a, e) and _close(b, -c)):
        return None
    still = [(x - x[:1]).abs().max() < SINGLE for x in (a, c)]
    if still[0] and not still[1] and a.abs().min() > 0.1 and _close(a, a[:1, :1]):
        factor = a[0, 0].item()
        theta = (c[1] / factor).clamp(-1, 1).asin()
        return _at_start(turn, first, second, theta, factor, "missing_cos", _sines)
    if still[1] and not still[0] and a[0].abs().min() > 0.1:
        if not _close(a[0], a[0, :1]):
            return None
        factor = a[0, 0].item()
        theta = (a[1] / factor).clamp(-1, 1).acos()
        return _at_start(
            turn, first, second, theta, factor, "missing_sin", _cosines
        )
    if _close(a, c) and a[0].abs().min() > 0.1 and _close(a[0], a[0, :1]):
        factor = a[0, 0].item()
        theta = (a[1] / factor).clamp(-1, 1).acos()
        found = _at_start(
            turn, first, second, theta, factor, "mixed_tables", _cosines
        )
        return replace(found, note="the cosine is used where the sine belongs")
    if _close(a, c) and not a[0].any():
        theta = a[1].clamp(-1, 1).asin()
        found = _at_start(turn, first, second, theta, 1.0, "mixed_tables", _sines)
        return replace(found, note="the sine is used where the cosine belongs")
    return None


def _cosines(a: Angles, c: Angles) -> tuple[Angles, Angles]:
    return a, torch.full_like(a, math.nan)


def _sines(a: Angles, c: Angles) -> tuple[Angles, Angles]:
    return torch.full_like(c, math.nan), c


def _at_start(
    turn: Turn,
    first: tuple[int, ...],
    second: tuple[int, ...],
    theta: Tensor,
    factor: float,
    name: str,
    taken: Callable,
) -> Turn:
    def read(matrix: Matrices) -> tuple[Angles, Angles]:
        a, _, c, _ = _numbers(matrix, first, second)
        return taken(a, c)

    return replace(
        turn,
        kind="rotation",
        first=first,
        second=second,
        theta=theta,
        phase=torch.zeros_like(theta),
        factor=factor,
        flaws=(name,),
        reader=read,
    )


def _ellipse(
    turn: Turn,
    first: tuple[int, ...],
    second: tuple[int, ...],
    a: Angles,
    b: Angles,
    c: Angles,
    e: Angles,
) -> Turn | None:
    """Find the rotation if cosine and sine have the same frequency, but different amplitudes or positions."""
    if not (_close(a, e) and _close(b, -c)) or len(a) < 8:
        return None
    around = ((a[2:] + a[:-2]) * a[1:-1] + (c[2:] + c[:-2]) * c[1:-1]).sum(0)
    theta = around / (a[1:-1].square() + c[1:-1].square()).sum(0).clamp(min=1e-12)
    theta = (theta / 2).clamp(-1, 1).acos()
    angles = torch.arange(len(a), dtype=torch.float64)[:, None] * theta
    basis = torch.stack((angles.cos(), angles.sin()), -1).transpose(0, 1)
    seen = torch.stack((a, c), -1).transpose(0, 1)
    weights = torch.linalg.lstsq(basis, seen, driver="gelsd").solution
    if (basis @ weights - seen).abs().max() > 10 * SINGLE:
        return None
    (x1, x2), (y1, y2) = weights[:, 0].T, weights[:, 1].T
    large, other = torch.hypot(x1, y1), torch.hypot(x2, y2)
    phase, late = torch.atan2(-y1, x1), torch.atan2(x2, y2)
    fast = theta * len(a) > 1.0
    if not fast.any():
        return None
    apart = torch.remainder(late - phase + math.pi, 2 * math.pi) - math.pi
    if (apart[fast].abs() > 0.75 * math.pi).all():
        # the sine is negated: the pair rotates the other way
        theta, phase, apart = -theta, -phase, -(apart - math.pi * apart.sign())
    bigger, smaller = large[fast].median().item(), other[fast].median().item()
    if min(bigger, smaller) < 1e-3:
        return None
    if apart[fast].abs().max() < 1e-3:
        note = f"the cosine is {bigger:.4g} and the sine {smaller:.4g} times as large as it should be"
    else:
        steps = (apart / theta)[fast]
        if (steps - steps[0]).abs().max() > 0.05:
            return None
        note = f"the sine is that of {steps[0]:+.3g} positions"
    phase = torch.where(fast, phase, torch.zeros_like(phase))

    def read(matrix: Matrices) -> tuple[Angles, Angles]:
        cos, _, sin, _ = _numbers(matrix, first, second)
        return (
            cos * (smaller / bigger if smaller > bigger else 1.0),
            torch.full_like(sin, math.nan),
        )

    return replace(
        turn,
        kind="rotation",
        first=first,
        second=second,
        theta=theta,
        phase=phase,
        factor=max(bigger, smaller),
        flaws=("mixed_tables",),
        note=note,
        table=None,
        reader=read,
    )
