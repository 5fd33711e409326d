"""Analyse maps x · cos + Q x · sin that aren't rotations because the tables and the quarter turn Q don't match.

If the tables can be recovered, they reveal the other mistakes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ropebook.diagnose.blocks import mended, one_row
from ropebook.diagnose.measures import NOTHING, Matrices, Turn, turned
from ropebook.rope import join_pairs, split_pairs

LAYOUTS = ("interleaved", "half")
BROKEN = ("missing_minus", "mixed_tables", "no_pairs", "unknown")


def untangled(
    matrix: Matrices, turn: Turn, layout: str | None, width: int | None
) -> Turn:
    """Find the rotation that is left when known flaws of ``turn`` are undone. The result lists these flaws.

    Returns ``turn`` itself if no such rotation is found. ``layout`` and ``width`` are those of the weights, if known.
    They help because entries that don't rotate would otherwise go unnoticed.
    """
    if turn.kind == "missing_sin" and turn.first:
        return _by_cosine(matrix, turn)
    strange = turn.trembles or "lengths" in turn.flaws
    if turn.kind not in (*BROKEN, "missing_sin") and not strange:
        return turn
    known = mended(matrix, turn, layout, width)
    if known is not None or turn.kind == "missing_sin" or strange:
        return known or turn
    unit = torch.eye(turn.dim, dtype=torch.float64)
    changed = (matrix - unit).abs().amax(0) > NOTHING
    entries = (changed.any(0) | changed.any(1)).nonzero().flatten()
    if not len(entries):
        return turn
    start, stop = int(entries[0]), int(entries[-1]) + 1
    stop += (stop - start) % 2
    if start == 0:
        stop = max(stop, width or 0)
    if stop > turn.dim:
        return turn
    part = matrix[:, start:stop, start:stop]
    tables = _rows(part)
    if tables is None:
        return one_row(matrix, turn) or turn
    cos, sin, partner = tables
    found = []
    orders = sorted(LAYOUTS, key=lambda one: one != layout)
    for flaws, quarter, sign in _quarters(stop - start, orders):
        # an entry of a pair that doesn't rotate has no partner
        if ((partner != quarter) & (partner >= 0)).any():
            continue
        for spread in orders:
            one = _narrow(cos, spread), _narrow(sin * sign, spread)
            if any(x is None for x in one):
                continue
            for way, (more, c, s) in enumerate(_mended(*one)):
                pairs = split_pairs(torch.arange(start, stop), spread)
                first, second = (tuple(x.tolist()) for x in pairs)
                other = turned(turn.dim, first, second, c, s)
                if other is not None:
                    names = _named(flaws, more, spread)
                    reader = _reader(slice(start, stop), sign, spread, way, quarter)
                    found.append(
                        replace(other, flaws=names, off=turn.off, reader=reader)
                    )
    # take the rotation with the fewest flaws; if several have equally few, prefer one that rotates counter-clockwise
    found.sort(
        key=lambda one: (
            len(one.flaws),
            bool((one.theta < 0).sum() * 2 > len(one.theta)),
        )
    )
    return found[0] if found else one_row(matrix, turn) or turn


def _reader(part: slice, sign: Tensor, spread: str, way: int, quarter: Tensor):
    """Return a function that reads the same tables off matrices at other positions."""

    def read(matrix: Matrices) -> tuple[Tensor, Tensor]:
        inside = matrix[:, part, part]
        beside = inside.gather(-1, quarter.expand(len(inside), -1)[..., None])[
            ..., 0
        ]
        cos = split_pairs(inside.diagonal(dim1=-2, dim2=-1), spread)[0]
        sin = split_pairs(beside * sign, spread)[0]
        return list(_mended(cos, sin))[way][1:]

    return read


def _by_cosine(matrix: Matrices, turn: Turn) -> Turn:
    """Recover the frequencies from the cosines at the first two positions, because the sine is missing."""
    if not turn.first or turn.table is not None:
        return turn
    cos = matrix[:, turn.first, turn.first]
    if (cos[0] - cos[0].mean()).abs().max() > 1e-4 or cos[0].mean().abs() < 1e-4:
        return turn
    theta = (cos[1] / cos[0]).clamp(-1, 1).acos()
    return replace(
        turn,
        kind="rotation",
        theta=theta,
        phase=torch.zeros_like(theta),
        factor=cos[0].mean().item(),
        flaws=("missing_sin",),
    )


def _rows(part: Matrices) -> tuple[Tensor, Tensor, Tensor] | None:
    """Read cos from the diagonal and sin from the off-diagonal entry of each row, both as (seq, entries).

    Also returns the column of each off-diagonal entry, or −1 if its row has none. Returns None if a row has more than
    one off-diagonal entry, or if no row has any.
    """
    beside = part * (1 - torch.eye(part.shape[-1], dtype=torch.float64))
    largest = beside.abs().amax(0)
    partners = (largest > NOTHING).sum(-1)
    if partners.max() != 1:
        return None
    partner = largest.argmax(-1)
    sin = beside.gather(-1, partner.expand(len(part), -1)[..., None])[..., 0]
    partner = torch.where(partners > 0, partner, -1)
    return part.diagonal(dim1=-2, dim2=-1), sin, partner


def _quarters(width: int, orders: list[str]) -> Iterator[tuple]:
    """Yield right and wrong quarter turns: the layout and the flaws, then the partner and the sign of each row."""
    entries = torch.arange(width)
    for layout in orders:
        first, second = split_pairs(entries, layout)
        ones = torch.ones(width // 2, dtype=torch.float64)
        for written in orders:
            partner = join_pairs(second, first, written)
            flaw = (layout,) if written == layout else (layout, "no_pairs")
            yield flaw, partner, join_pairs(-ones, ones, written)
            yield (
                (*flaw, "missing_minus"),
                partner,
                torch.ones(width, dtype=torch.float64),
            )


def _narrow(table: Tensor, spread: str) -> Tensor | None:
    """Turn a table with one column per entry into a table with one column per pair of the layout ``spread``.

    Returns None if the two columns of a pair differ.
    """
    first, second = split_pairs(table, spread)
    return first if (first - second).abs().max() < 1e-6 else None


def _mended(
    cos: Tensor, sin: Tensor
) -> Iterator[tuple[tuple[str, ...], Tensor, Tensor]]:
    """Yield the tables as they are, and as they would be if a combined table had been split correctly.

    The wrong split takes halves instead of alternating entries, or vice versa.
    """
    yield (), cos, sin
    both = torch.cat((cos, sin), -1)
    yield ("mixed_tables",), both[..., 0::2], both[..., 1::2]
    taken = torch.stack((cos, sin), -1).flatten(-2).chunk(2, -1)
    yield ("mixed_tables",), *taken


def _named(
    flaws: tuple[str, ...], more: tuple[str, ...], spread: str
) -> tuple[str, ...]:
    layout, *others = flaws
    mixed = ("swapped_layout",) if layout != spread else ()
    return (*others, *mixed, *more)
