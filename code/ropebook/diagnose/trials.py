"""Trials of the whole rotation: rows and heads against each other, sums of vectors, and scores against the reference."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from ropebook import mistakes, rope
from ropebook.diagnose.findings import Findings

SHIFT = 16


def _vectors(findings: Findings, seq: int, alike: bool) -> dict[str, Tensor]:
    """Random q, k, v (batch, heads, seq, dim), the same in every row and head or not."""
    rows, heads = findings.call.rows_and_heads
    generator = torch.Generator().manual_seed(1)
    shape = (
        (1, 1, seq, findings.call.dim)
        if alike
        else (rows, heads, seq, findings.call.dim)
    )
    return {
        role: torch.randn(shape, dtype=torch.float64, generator=generator).expand(
            rows, heads, seq, -1
        )
        for role in "qkv"
    }


def alike(findings: Findings) -> None:
    """The same vectors in every row and head come back alike. Else only the first row and head are looked at further."""
    call = findings.call
    found = call.apart(_vectors(findings, 5, True), torch.arange(5))
    for role, turned in found.items():
        if not turned.isfinite().all():
            # said where the matrices are measured
            continue
        rows = (turned - turned[:1]).abs().amax((1, 2, 3))
        heads = (turned - turned[:, :1]).abs().amax((0, 2, 3))
        if rows.max() > 1e-3:
            row = int((rows > 1e-3).nonzero()[0])
            findings.mistakes["other_rows"] = (
                f"row {row} of a batch is turned otherwise than row 0: {role} is off by up to {rows.max():.2g}"
            )
            findings.call = replace(findings.call, one_row=True)
        if heads.max() > 1e-3:
            which = (heads > 1e-3).nonzero().flatten().tolist()
            findings.mistakes["other_heads"] = (
                f"heads {', '.join(map(str, which))} are turned otherwise than head 0: {role} is off by up to "
                f"{heads.max():.2g}"
            )


def linear(findings: Findings) -> None:
    """A rotation is linear, and keeps heads and rows apart: what it does to unit vectors it does to all."""
    call = findings.call
    seq = min(4, len(findings.near["q"]))
    given = _vectors(findings, seq, False)
    if {"other_rows", "other_heads"} & set(findings.mistakes):
        given = {role: x[:1, :1].expand_as(x) for role, x in given.items()}
    found = call.apart(given, torch.arange(seq))
    for role, turned in found.items():
        wanted = torch.einsum(
            "tij,bhtj->bhti", findings.near[role][:seq], given[role]
        )
        off = (
            (turned - wanted)[:1, :1]
            if "other_rows" in findings.mistakes
            else turned - wanted
        )
        if "other_heads" in findings.mistakes:
            off = off[:, :1]
        if off.abs().max() > 0.1:
            findings.mistakes["not_linear"] = (
                f"of the sum of two vectors it does not make the sum of what it makes of each: off by {off.abs().max():.2g}"
            )


def properties(findings: Findings) -> None:
    """The measurements of the gallery, where positions can be asked for."""
    call, dim = findings.call, findings.call.dim
    length = findings.declared.length
    if not call.places or dim % 2 or (length or 2 * SHIFT) < 2 * SHIFT:
        return

    def rotation(q, k, v, positions, *, base, layout):
        found = call(q[None], k[None], v[None], positions)
        return tuple(x[0] for x in found)

    found = mistakes.diagnose(
        rotation,
        dim=dim,
        seq_len=SHIFT // 2,
        shift=SHIFT // 2,
        generator=torch.Generator().manual_seed(0),
    )
    same = "stay" if found.shift < 1e-4 else "change"
    findings.evidence["scores"] = (
        f"{same} when all positions move on by {SHIFT // 2}: by {found.shift:.1g} at most; "
        f"lengths change by {found.lengths:.1g} at most"
    )


def reference(findings: Findings) -> None:
    """Scores against those of a rotation that fits all that was declared, at random positions."""
    call, declared = findings.call, findings.declared
    main = findings.main
    if (
        not declared.complete
        or not (call.places or "offset" in call.given)
        or call.tables
        or findings.undetermined
        or main.dim % 2
    ):
        return
    width = declared.rotary_dim or main.rotary_dim or main.dim
    theta = declared.frequencies(width)
    if 2 * len(theta) != width:
        return
    last = min(declared.length or 256, 4096)
    generator = torch.Generator().manual_seed(3)
    seq = 8
    at = torch.randperm(last, generator=generator)[:seq].sort()[0]
    if not call.places:
        at = torch.arange(seq) + at[0].clamp(max=last - seq)
    given = _vectors(findings, seq, False)
    if "far" in findings.evidence and "raised" in findings.evidence["far"]:
        return
    try:
        found = call.apart(given, at)
    except Exception:
        return
    angles = at[:, None] * theta
    factor = declared.attention_factor or 1.0
    if "lengths" in findings.evidence:
        factor = main.factor or 1.0

    def turned(x: Tensor) -> Tensor:
        part, rest = x[..., :width], x[..., width:]
        first, second = rope.split(part, declared.layout)
        cos, sin = angles.cos(), angles.sin()
        pair = first * cos - second * sin, first * sin + second * cos
        return torch.cat((factor * rope.join(*pair, declared.layout), rest), -1)

    q, k = (found.get(role, found["q"]) for role in "qk")
    right_q = turned(given["q"])
    right_k = right_q if not findings.both else turned(given["k"])
    scale = math.sqrt(main.dim)
    off = (q @ k.mT - right_q @ right_k.mT).abs().max().item() / scale
    close = 0.2 if main.table is not None else 0.02
    said = f"scores at random positions are off the reference's by up to {off:.1g}"
    findings.evidence["reference"] = said
    if off > close and not findings.mistakes:
        findings.mistakes["other_scores"] = said
