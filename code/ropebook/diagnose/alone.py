"""Tokens that are rotated differently when passed on their own than as part of a sequence."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import rope
from ropebook.diagnose import pairing
from ropebook.diagnose.findings import Declared, Findings
from ropebook.diagnose.frequencies import read
from ropebook.diagnose.measures import Turn, measured, within_half
from ropebook.diagnose.starting import begin
from ropebook.diagnose.turning import whole
from ropebook.diagnose.versus import compared

WARPED = "positions 0, 1, 2, … are rotated as if they were "


def one_by_one(findings: Findings, count: int) -> dict[str, Tensor]:
    """Measure the matrices of positions 0, 1, 2, …, each in a separate call."""
    each = [findings.at(torch.tensor([place])) for place in range(count)]
    return {role: torch.cat([one[role] for one in each]) for role in each[0]}


def changed(findings: Findings) -> str:
    """Describe how the frequencies change in later calls. Returns a sentence to append, or "" if they stay the same."""
    for _ in range(3):
        try:
            again = findings.at(torch.arange(24))
        except ValueError:
            return ""
        for role, turn in findings.rotating.items():
            now = measured(again[role])
            if now.theta is None or now.theta.shape != turn.theta.shape:
                continue
            said = compared(now.theta, turn.theta, 1e-3)
            if said:
                who = f"of {role}, " if findings.both else ""
                return f". In a later call, {who}{said}{likened(now, findings.declared)}"
    return ""


def unlike(findings: Findings, role: str) -> str | None:
    """Describe how rotating a token on its own differs from rotating it within a sequence.

    Returns None if nothing differs.
    """
    turn = findings.turns.get(role)
    if turn is None or turn.kind != "rotation" or turn.theta is None:
        return None
    try:
        other = measured(one_by_one(findings, 24)[role])
    except Exception:
        return None
    return changed_to(other, turn, declared=findings.declared)


def likened(other: Turn, declared: Declared | None) -> str:
    """Return a sentence to append that names the rule for the frequencies of ``other``, or "" if no known rule fits."""
    if declared is None or declared.base is None or len(other.theta) < 2:
        return ""
    theta = whole(other, declared.rotary_dim or other.rotary_dim).abs()
    plain = rope.inv_freq(2 * len(theta), declared.base)
    if compared(theta, plain, 1e-4) is None:
        if declared.inv_freq is None:
            return ""
        return f". They are unscaled: those of base {declared.base:,.6g} without its scaling"
    expected = declared.inv_freq
    if (
        expected is not None
        and len(expected) == len(theta)
        and compared(theta, expected, 1e-4) is None
    ):
        return ". They are scaled as declared"
    found = read(theta, 2 * len(theta), other.tolerance, None)
    if found.kind == "plain" and abs(found.base / declared.base - 1) > 1e-3:
        size = "larger" if found.base > declared.base else "smaller"
        return f". They are those of another base, a {size} base: {found.base:,.5g} instead of {declared.base:,.6g}"
    if found.kind == "linear" and abs(found.base / declared.base - 1) < 1e-3:
        return f". All are divided by {found.factor:.4g}, as positions that are interpolated"
    return ""


def changed_to(
    other: Turn,
    turn: Turn,
    where: str = "in a text",
    declared: Declared | None = None,
) -> str | None:
    """Describe how the map ``other`` differs from ``turn``.

    Returns None if they agree. ``where`` says in words how ``turn`` was measured.

    >>> from ropebook import rope
    >>> from ropebook.diagnose.measures import turned
    >>> angles = torch.arange(5.0)[:, None].double() * rope.inv_freq(4)
    >>> one = turned(4, (0, 1), (2, 3), angles.cos(), angles.sin())
    >>> other = turned(4, (0, 1), (2, 3), angles.cos(), -angles.sin())
    >>> changed_to(other, one)
    'it is rotated the other way round (backward: the sign of its angles is reversed)'
    """
    if other.kind == "identity":
        return (
            "it comes back as zeros"
            if abs(other.factor) < 1e-6
            else "it is not rotated at all, and comes back unchanged"
        )
    if other.kind != "rotation":
        return None
    if (other.first, other.second) != (turn.first, turn.second):
        return (
            f"it is paired in another layout: {pairing.pairs_said(other)}; {where}, "
            f"{pairing.pairs_said(turn)}"
        )
    if abs(other.factor / turn.factor - 1) > 1e-3:
        return f"it comes back {other.factor / turn.factor:.4g} times as long as {where}"
    close = 10 * max(other.tolerance, turn.tolerance)
    if other.places != turn.places and turn.theta.any():
        return (
            f"{WARPED}{', '.join(map(str, other.places[:9]))}, …"
            if other.places
            else None
        )
    if (
        within_half(other.theta + turn.theta).abs().max()
        < close
        < turn.theta.abs().max()
    ):
        return "it is rotated the other way round (backward: the sign of its angles is reversed)"
    said = compared(other.theta, turn.theta, 1e-3)
    if said:
        return f"its frequencies differ from those {where}: {said}{likened(other, declared)}"
    begun, began = begin(other), begin(turn)
    if begun and began and begun[0] == began[0] and abs(begun[1] - began[1]) > 0.01:
        return f"it is rotated by positions that are {begun[1] - began[1]:+.3g} off"
    if within_half(other.phase - turn.phase).abs().max() > close:
        return "it is turned by another angle that does not depend on the position"
    return None
