"""Which entries form pairs, which part of a head the pairs fill, and what happens to entries without a partner."""

from __future__ import annotations

import torch

from ropebook.diagnose.differences import numbered
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import Turn


def rest(findings: Findings, role: str, turn: Turn) -> None:
    """Check that entries without a partner come back unchanged."""
    width = findings.declared.rotary_dim or turn.rotary_dim
    start = turn.begins(findings.declared.rotary_dim)
    alone = torch.ones(turn.dim, dtype=torch.bool)
    alone[[*turn.first, *turn.second]] = False
    own = findings.near[role].diagonal(dim1=-2, dim2=-1)
    changed = (own - 1).abs().amax(0) > 1e-3
    # don't report pairs that don't rotate but are multiplied by the same factor as the others
    pair = torch.arange(turn.dim)
    inside = (pair >= start) & (pair < start + width)
    changed &= ~(inside & ((own - turn.factor).abs().amax(0) < 1e-3))
    changed &= alone
    if not changed.any() or turn.order:
        return
    factor = own[:, changed]
    how = f"come back {factor.mean():.3g} times as long"
    if factor.abs().max() < 1e-3:
        how = "come back as zeros"
    elif (factor - factor.mean()).abs().max() > 1e-3:
        how = "change with the position"
    which = numbered("entries", changed)
    findings.mistakes["other_rest"] = (
        f"{which} of {role if findings.both else 'x'} should pass through as they are, and {how}"
    )


def pairs(findings: Findings, turn: Turn) -> None:
    """Check that entries are paired as declared, in the part of a head that should rotate."""
    declared, evidence, found = (
        findings.declared,
        findings.evidence,
        findings.mistakes,
    )
    dim, n, part = turn.dim, len(turn.first), turn.rotary_dim
    evidence["layout"] = pairs_said(turn)
    start = turn.begins(declared.rotary_dim)
    if turn.layout is None and n > 1:
        found["own_layout"] = (
            f"the pairs are neither neighbours nor half a head apart: {pairs_said(turn)}"
        )
    elif declared.layout and turn.layout not in (None, declared.layout):
        found["other_layout"] = (
            f"the layout is {turn.layout!r}: entry {turn.first[0]} is paired with {turn.second[0]}, but in "
            f"{declared.layout!r} it is paired with "
            f"{turn.first[0] + (1 if declared.layout == 'interleaved' else part // 2)}"
        )
    if start and turn.layout:
        said = f"entries {start} to {max(turn.second)} turn, and the first {start} come back as they went in"
        if declared.rotary_dim is not None or declared.complete:
            found["other_part"] = (
                f"{said} (not rotated): it should be the first entries that are rotated, and not the last ones or others"
            )
        else:
            findings.undetermined["part"] = (
                f"{said}. If the first should turn, declare rotary_dim"
            )
    elif declared.rotary_dim is not None and _other_width(findings, turn):
        found["other_width"] = (
            f"{part} of {dim} entries turn, and {declared.rotary_dim} were declared: {_partners(findings, turn)}"
        )
    if 2 * n == dim:
        evidence["part"] = f"all {dim} entries turn"
    elif part == 2 * n:
        where = f"entries {turn.first[0]} to {turn.second[-1]}"
        evidence["part"] = (
            f"{part} of {dim} entries turn, {where}; the others come back as they went in"
        )
    else:
        evidence["part"] = (
            f"{n} of {part // 2} pairs turn, the slowest {part // 2 - n} stand still"
        )


def _other_width(findings: Findings, turn: Turn) -> bool:
    """Check whether the width of the rotated part differs from the declared one.

    In the interleaved layout a narrower part is accepted, because the missing pairs may simply not rotate.
    """
    width = findings.declared.rotary_dim
    return turn.rotary_dim > width or (
        turn.layout == "half" and turn.rotary_dim != width
    )


def _partners(findings: Findings, turn: Turn) -> str:
    """If the wrong number of entries is rotated, describe the actual and the correct partner of the first entry."""
    first, second, width = turn.first[0], turn.second[0], turn.rotary_dim
    share = "the whole head" if width == turn.dim else f"a part of {width}"
    if turn.layout != "half":
        return f"pairs fill {share} instead of the first {findings.declared.rotary_dim} entries"
    right = first + findings.declared.rotary_dim // 2
    return (
        f"pairs are formed across {share}, entry {first} is paired with entry {second} (half of {width} further), and "
        f"should be with entry {right}"
    )


def pairs_said(turn: Turn) -> str:
    """Describe the layout and the first pairs in words."""
    if len(turn.first) == 1:
        return "one pair alone: both layouts are the same"
    a, b = turn.first[0], turn.second[0]
    if turn.layout == "interleaved":
        return f"interleaved: entry {a} turns with entry {b}, {turn.first[1]} with {turn.second[1]}"
    if turn.layout == "half":
        return f"half: entry {a} turns with entry {b}, {turn.first[1]} with {turn.second[1]}"
    some = list(zip(turn.first, turn.second, strict=True))[:4]
    return ", ".join(f"{a} with {b}" for a, b in some) + ", …"
