"""Tokens that are rotated differently on their own than within a sequence."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook.diagnose import pairing
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import measured
from ropebook.diagnose.versus import compared


def one_by_one(findings: Findings, count: int) -> dict[str, Tensor]:
    """Measure the matrices of positions 0, 1, 2, …, each in a separate call."""
    each = [findings.at(torch.tensor([place])) for place in range(count)]
    return {role: torch.cat([one[role] for one in each]) for role in each[0]}


def changed(findings: Findings) -> str:
    """Describe how frequencies change in later calls, as a sentence to append. Returns "" if they stay the same."""
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
                return f". In a later call, {who}{said}"
    return ""


def unlike(findings: Findings, role: str) -> str | None:
    """Describe how a token on its own is rotated differently than in a sequence. Returns None if it isn't."""
    turn = findings.turns.get(role)
    if turn is None or turn.kind != "rotation" or turn.theta is None:
        return None
    try:
        other = measured(one_by_one(findings, 24)[role])
    except Exception:
        return None
    if other.kind == "identity":
        return "it is not rotated at all, and comes back unchanged"
    if other.kind != "rotation":
        return None
    if (other.first, other.second) != (turn.first, turn.second):
        return (
            f"it is paired in another layout: {pairing.pairs_said(other)}; in a text, "
            f"{pairing.pairs_said(turn)}"
        )
    if abs(other.factor / turn.factor - 1) > 1e-3:
        return f"it comes back {other.factor / turn.factor:.4g} times as long as in a text"
    said = compared(other.theta, turn.theta, 1e-3)
    return f"its frequencies differ from those in a text: {said}" if said else None
