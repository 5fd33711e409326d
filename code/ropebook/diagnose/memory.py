"""Positions, angles or tables of an earlier call that later calls are given again, because something is cached by a key
that leaves out part of what they depend on."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook.diagnose.findings import Findings
from ropebook.diagnose.repeated import near_enough, vectors

# No other trial makes calls of as many tokens, so a cache is still empty for them.
COUNTS = (13, 19, 21, 11, 14)


def remembered(findings: Findings) -> str | None:
    """Describe what calls are given that an earlier one has left, or return None if there is nothing of the kind.

    Calls that share the number of tokens (and their first or last position, or the tensor of positions) follow each
    other, and each result is compared with those at the positions of its own call and of earlier ones.
    """
    call = findings.call
    if not call.places or call.tables or findings.one_by_one:
        return None
    near = len(next(iter(findings.near.values())))
    for key, series in _series():
        if max(int(at.max()) for at in series) >= near:
            continue
        told = _from_earlier(findings, call, key, series)
        if told is not None:
            return told
    if "positions" in call.given:
        said = "the tensor of positions is the same (its numbers have been changed since, as a decoding loop does)"
        series = [torch.arange(COUNTS[3]) + start for start in (3, 20, 1)]
        if max(int(at.max()) for at in series) < near:
            return _from_earlier(findings, _reusing(call), said, series)
    return None


def _series() -> list[tuple[str, list[Tensor]]]:
    """List series of calls: what they share, and their positions."""
    few, some, many, _, rows = (torch.arange(count) for count in COUNTS)
    tokens = "it has as many tokens"
    return [
        (tokens, [few + start for start in (30, 5, 17, 2)]),
        (f"{tokens} and the same last position", [2 * some + 4, some + 22]),
        (f"{tokens} and the same first position", [3 + 2 * many, 3 + many]),
        (
            "it has as many rows and tokens",
            [
                torch.stack((rows + one, rows + other))
                for one, other in ((9, 30), (20, 3), (0, 14))
            ],
        ),
    ]


def _from_earlier(
    findings: Findings, call: object, key: str, series: list[Tensor]
) -> str | None:
    """Make a series of calls. Say if some of them are rotated by the positions of an earlier one."""
    head = call.head
    rows = call.rows_and_heads[0]
    wrong = None
    for number, at in enumerate(series):
        if at.ndim == 2 and (rows < 2 or "positions" not in call.given or call.one_row):
            return None
        given = vectors(findings, at.shape[-1])
        try:
            found = call.apart(given, at)
        except Exception:
            # errors are reported by other trials
            return None
        for role, came in found.items():
            if role == "v":
                continue
            close = near_enough(findings, role)

            def off(places: Tensor, role: str = role, came: Tensor = came) -> float:
                lines = places if places.ndim == 2 else places[None]
                return max(
                    (
                        torch.einsum(
                            "tij,tj->ti",
                            findings.near[role][line],
                            given[role][row, head],
                        )
                        - came[row, head]
                    )
                    .abs()
                    .max()
                    .item()
                    for row, line in enumerate(lines)
                )

            if off(at) < close:
                continue
            like = [before for before in range(number) if off(series[before]) < close]
            if not like:
                return None
            who = role if findings.both else "x"
            wrong = wrong or (who, at, series[like[-1]])
    if wrong is None:
        return None
    who, at, other = wrong
    return (
        f"{who} is rotated by the positions of an earlier call, wherever {key}: positions {_some(at)} are turned like "
        f"{_some(other)}, which that call asked for. Angles (or tables, or positions) are cached, and the key of the cache "
        "leaves out where the call starts (its offset) or which positions it has"
    )


def _reusing(call: object) -> object:
    """Return the same call, but each time with the same tensor of positions, into which new ones are written."""
    held = []

    class Reusing(type(call)):
        """A call that passes one tensor of positions again and again."""

        def beside(self, role: str, positions: Tensor, batch: int) -> Tensor | int:
            fresh = super().beside(role, positions, batch)
            if role != "positions":
                return fresh
            if held:
                held[0].copy_(fresh)
            else:
                held.append(fresh)
            return held[0]

    return Reusing(**vars(call))


def _some(at: Tensor) -> str:
    return ", ".join(str(one) for one in at.flatten()[:4].tolist()) + ", …"
