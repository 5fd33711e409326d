"""Half-precision vectors: are their positions and angles also rounded to half precision?"""

from __future__ import annotations

from dataclasses import replace

import torch

from ropebook.diagnose.differences import different
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import HALVES
from ropebook.diagnose.repeated import asked, vectors

# For vectors with entries up to 4, rounded tables and products cause errors below this limit, and rounded angles
# cause larger ones.
CLOSE = 0.2
TOKENS = 6


def precise(findings: Findings) -> None:
    """Check whether vectors with many digits are rounded on input or output. Unit vectors can't reveal this."""
    known = {"not_linear", "moved", "crossed", "other_rows", "other_heads"}
    if not findings.declared.whole or known & set(findings.mistakes):
        return
    if any(turn.table is not None for turn in findings.turns.values()):
        return
    at = torch.arange(4)
    given = vectors(findings, len(at))
    found = asked(findings, "vectors of many digits", given, at)
    if found is None:
        return
    seen = findings.at(at)
    for role, turned in found.items():
        if role == "v":
            continue
        off = (turned - _through(seen[role], given[role])).abs().max().item()
        if 2e-4 < off < 0.1:
            how = ""
            for half in HALVES:
                short = given[role].to(half).double()
                if (turned - _through(seen[role], short)).abs().max() < 1e-5:
                    how = f": they are rounded to {str(half).removeprefix('torch.')} before they are rotated"
            who = role if findings.both else "x"
            findings.mistakes["rounded_result"] = (
                f"vectors lose precision{how}. {who} is off by up to {off:.2g}, as in a half type"
            )
            return


def _through(matrix: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.einsum("tij,bhtj->bhti", matrix, x)


def halves(findings: Findings) -> None:
    """Compare half-precision vectors at far positions with the same vectors in a wider type."""
    call = findings.call
    known = {"half_positions", "half_angles", "not_linear", "stale", "other_far"}
    known |= {"not_finite", "zeros"}
    if not call.places or call.tables or not findings.honoured:
        return
    if known & set(findings.mistakes):
        return
    if any(turn.flaws for turn in findings.turns.values()):
        # a map that is not a rotation may grow without bound
        return
    last = min(findings.declared.length or 2048, 4096)
    at = torch.arange(last - TOKENS, last)
    given = vectors(findings, TOKENS)
    for half in HALVES:
        # both calls receive numbers that the half-precision type represents exactly
        sent = {role: x.to(half).double() for role, x in given.items()}
        right = asked(findings, "a far text", sent, at)
        if right is None:
            return
        try:
            found = replace(call, dtype=half).apart(sent, at)
        except Exception:
            # not every operation supports half-precision types
            continue
        for role, turned in found.items():
            size = findings.turns[role].factor if role in findings.turns else 1.0
            close = CLOSE * max(1.0, abs(size))
            said = different(turned, right[role], sent[role], close)
            if said is not None:
                who = f"{role}, " if findings.both else ""
                name = str(half).removeprefix("torch.")
                findings.mistakes["half_vectors"] = (
                    f"with vectors of {name}, positions or angles are rounded to {name} as well: at positions "
                    f"{at[0]:,} to {at[-1]:,} {who}{said}"
                )
                return
