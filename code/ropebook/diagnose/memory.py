"""Check whether later calls reuse the positions, angles or tables of an earlier call by mistake.

That happens if the cache's key leaves out part of what the cached values depend on.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook.diagnose.calling import Call
from ropebook.diagnose.differences import several
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.repeated import near_enough, vectors

# The numbers of tokens per call. No other trial uses them, so nothing has been cached for them yet.
COUNTS = (13, 19, 21, 14, 11)


def remembered(findings: Findings) -> str | None:
    """Check whether calls reuse the positions of an earlier call. Describe how, or return None if they don't.

    Each series consists of calls that share the number of tokens, and some also share their first or last position, or
    the tensor of positions. The result of each call is compared with the right results for its own positions
    and for those of earlier calls.
    """
    call = findings.call
    if not call.places or call.tables or findings.one_by_one:
        return None
    near = len(next(iter(findings.near.values())))
    rows = call.rows_and_heads[0] > 1 and not call.one_row
    own = "positions" in call.given
    for key, series in _series():
        if max(int(at.max()) for at in series) >= near:
            continue
        if series[0].ndim == 2 and not (rows and own):
            continue
        same = "the tensor" in key
        if same and not own:
            continue
        said = _from_earlier(findings, _reusing(call) if same else call, series)
        if said is not None:
            return (
                f"{said}, which it asked for. That happens wherever {key}. Angles (or tables, or positions) are cached, and "
                "the cache's key leaves out where the call starts (its offset) or which positions it has"
            )
    return None


def _series() -> list[tuple[str, list[Tensor]]]:
    """List the series to try. Each item describes what its calls share, and contains the positions of each call."""
    few, some, many, rows, again = (torch.arange(count) for count in COUNTS)
    tokens = "a later call has as many tokens"
    apart = [(9, 30), (20, 3), (0, 14)]
    return [
        (tokens, [few + start for start in (30, 5, 17, 2)]),
        (f"{tokens} and the same last position", [2 * some + 4, some + 22]),
        (f"{tokens} and the same first position", [2 * many + 3, many + 3]),
        (
            f"{tokens} and rows",
            [torch.stack((rows + one, rows + other)) for one, other in apart],
        ),
        (
            f"{tokens} and gets the tensor of positions again, though its numbers have changed since, as in a loop",
            [again + start for start in (3, 20, 1)],
        ),
    ]


def _from_earlier(
    findings: Findings, call: Call, series: list[Tensor]
) -> str | None:
    """Make a series of calls. Say which of them is rotated by the positions of an earlier one, or None if none is.

    Other trials report calls that are wrong in any other way.
    """
    said = None
    for number, at in enumerate(series):
        given = vectors(findings, at.shape[-1])
        try:
            found = call.apart(given, at)
        except Exception:
            # errors are reported by other trials
            return None
        for role in set(found) - {"v"}:
            close = near_enough(findings, role)
            off = [
                _off(findings, role, given[role], found[role], places)
                for places in series[: number + 1]
            ]
            if off[-1] < close:
                continue
            like = next(
                (series[one] for one in range(number) if off[one] < close), None
            )
            if like is None:
                return None
            who = role if findings.both else "x"
            said = said or (
                f"{who} is rotated by the positions of an earlier call: {several(at)} are turned like {several(like)}"
            )
    return said


def _off(
    findings: Findings, role: str, sent: Tensor, came: Tensor, places: Tensor
) -> float:
    """Return the largest difference between ``came`` and the vectors ``sent`` rotated by the positions ``places``.

    Both have shape (rows, heads, tokens, dim). Only the measured head is compared.
    """
    head, near = findings.call.head, findings.near[role]
    lines = places if places.ndim == 2 else places[None]
    return max(
        (torch.einsum("tij,tj->ti", near[line], sent[row, head]) - came[row, head])
        .abs()
        .max()
        .item()
        for row, line in enumerate(lines)
    )


def _reusing(call: Call) -> Call:
    """Return a version of the call that passes the same tensor every time, after writing the new positions into it."""
    held = []

    class Reusing(type(call)):
        """A call that passes one tensor of positions again and again."""

        def beside(self, role: str, positions: Tensor, batch: int) -> Tensor | int:
            fresh = super().beside(role, positions, batch)
            if role != "positions":
                return fresh
            if not held:
                held.append(fresh)
            return held[0].copy_(fresh)

    return Reusing(**vars(call))
