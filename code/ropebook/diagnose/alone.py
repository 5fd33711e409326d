"""How a token is rotated that comes alone, where that is not how it is rotated in a text."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook.diagnose import pairing
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import measured
from ropebook.diagnose.versus import compared


def one_by_one(findings: Findings, count: int) -> dict[str, Tensor]:
    """The matrices of positions 0, 1, 2, …, each asked for in a call of its own."""
    each = [findings.at(torch.tensor([place])) for place in range(count)]
    return {role: torch.cat([one[role] for one in each]) for role in each[0]}


def changed(findings: Findings) -> str:
    """How frequencies differ in later calls from what was measured: a sentence to add, "" if they don't."""
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
    """In which pairs and frequencies a token alone differs from one in a text, in words; None if in neither."""
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
