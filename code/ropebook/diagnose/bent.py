"""Nonlinear maps: outputs for vectors of different lengths show if a map normalizes, clips, rounds or adds something."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from ropebook.diagnose.findings import Findings

# The same random vectors are multiplied by each of these factors.
SCALES = (1e-2, 1.0, 1e2)
# The allowed relative error.
CLOSE = 1e-3
TOKENS = 4
SHORT = (
    (torch.float8_e4m3fn, "float8 (e4m3)"),
    (torch.float8_e5m2, "float8 (e5m2)"),
    (torch.bfloat16, "bfloat16"),
    (torch.float16, "float16"),
)
# If the map treats longer vectors differently, unit vectors may wrongly suggest these mistakes.
_APPARENT = (
    "coarse_table",
    "bf16_table",
    "fp16_table",
    "longer",
    "shorter",
    "other_rest",
    "no_pairs",
    "uneven_lengths",
    "mixed_tables",
    "unknown",
)


def added(findings: Findings) -> bool:
    """Check whether zero vectors are returned as zeros. If not, record what is added to them, and return True."""
    call = findings.call
    rows, heads = call.rows_and_heads
    zeros = torch.zeros(rows, heads, TOKENS, call.dim, dtype=torch.float64)
    try:
        found = call.apart(dict.fromkeys("qkv", zeros), torch.arange(TOKENS) + 1)
    except Exception:
        # errors are reported by other trials
        return False
    for role, came in found.items():
        size = came.abs().max().item()
        if size < CLOSE or not came.isfinite().all():
            continue
        off = (came - came[:, :, :1]).abs().max().item()
        how = (
            "the same at every position"
            if off < CLOSE
            else "another number at each position, as a learnt or sinusoidal embedding of positions would be"
        )
        findings.mistakes["not_linear"] = (
            f"vectors of zeros don't come back as zeros: something is added to {role if findings.both else 'x'} (a bias, a "
            f"constant), of up to {size:.2g}, {how}. A rotation only multiplies"
        )
        return True
    return False


def bent(findings: Findings) -> str | None:
    """Describe in what way the map of q or k is nonlinear. Returns None if no known kind of map explains it.

    If one does, remove the mistakes that were wrongly inferred from unit vectors.
    """
    call = findings.call
    rows, heads = call.rows_and_heads
    generator = torch.Generator().manual_seed(12)
    x = torch.randn(
        rows, heads, TOKENS, call.dim, dtype=torch.float64, generator=generator
    )
    at = torch.arange(TOKENS) + 1
    try:
        seen = [call.apart(dict.fromkeys("qkv", x * one), at) for one in SCALES]
        minus = call.apart(dict.fromkeys("qkv", -x), at)
        right = {
            role: one[1 : TOKENS + 1]
            for role, one in findings.near.items()
            if role != "v"
        }
    except Exception:
        return None
    said = {}
    for role in right:
        if any(one[role].isnan().any() for one in seen):
            continue
        wanted = torch.einsum("tij,bhtj->bhti", right[role], x)
        found = [one[role] for one in seen]
        if all(
            (came / scale - wanted).abs().max() < CLOSE
            for came, scale in zip(found, SCALES, strict=True)
        ):
            continue
        how = next(_how(found, minus[role], wanted), None)
        if how is not None:
            said[role] = how
    if not said:
        return None
    roles = [role for role in said if said[role] == next(iter(said.values()))]
    findings.withdraw(*_APPARENT)
    return f"{findings.names(roles)}: {said[roles[0]]}"


def _how(found: list[Tensor], minus: Tensor, wanted: Tensor) -> Iterator[str]:
    """Yield each kind of map that explains the results for the vectors of `SCALES`, the most likely kind first."""
    few, one, many = found
    most, size = many.abs().max().item(), wanted.norm(dim=-1)
    lengths = [came.norm(dim=-1) for came in found]
    alike = lengths[1].mean()
    if all((each / alike - 1).abs().max() < 1e-2 for each in lengths):
        unit = many.square().mean(-1).sqrt().mean().item()
        what = (
            "their root mean square is 1 (RMS norm)"
            if abs(unit - 1) < 1e-2
            else f"the length {alike:.4g}"
        )
        mean = ""
        if one.mean(-1).abs().max() < CLOSE:
            mean = ", and their entries have the mean 0, as layer norm has it"
        yield (
            f"every vector comes back with the same length, whatever length it had: it is normalized, {what}{mean}. Lengths "
            "(norms) of q and k are lost, and scores with them"
        )
    near = (few * 100 - wanted).abs().max() < 1e-2 * wanted.abs().max()
    if near and (lengths[2] / lengths[2].mean() - 1).abs().max() < CLOSE:
        yield (
            f"long vectors are shortened to the length {lengths[2].mean():.4g} (their norm is clipped, capped), so lengths are "
            "not kept"
        )
    if (lengths[2] / lengths[1] - 1).abs().max() < 1e-2:
        yield (
            "vectors are normalized: 100 times as long ones come back with the same length, so lengths (norms) are lost"
        )
    moved = one + minus
    if moved.abs().max() > 1e-2 * one.abs().max():
        below = (torch.cat(found) >= 0).all()
        yield (
            "vectors of the opposite sign don't come back with the opposite sign"
            + (
                ": no entry is below 0, as with ReLU or an absolute value"
                if below
                else ""
            )
        )
    bounded = most < 0.2 * 100 * wanted.abs().max()
    at_most = (many.abs() > most * (1 - 1e-9)).sum()
    if bounded and at_most > 3:
        sharp = near and (one.abs() < most * (1 - 1e-6)).any()
        inside = wanted.abs() < 0.9 * most
        clean = inside.any() and (one - wanted)[inside].abs().max() < 1e-2
        how = (
            f"entries are clipped (clamped): none comes back above {most:.4g} or below {-most:.4g}, and smaller ones are right"
            if sharp and clean
            else f"large entries are squashed (saturate, as tanh or a soft cap makes them): none comes back above {most:.4g}"
        )
        yield f"{how}. The length (norm) of long vectors is not kept"
    if bounded:
        yield (
            f"large entries are squashed (saturate): of vectors that are 100 times as long, none comes back above {most:.4g}. "
            "Their length (norm) is not kept"
        )
    for kind, name in SHORT:
        if torch.equal(one.to(kind).double(), one):
            yield f"what comes back is rounded to {name}: precision is lost"
    off = [
        ((came / scale - wanted).abs().amax(-1) / size).max().item()
        for came, scale in zip(found, SCALES, strict=True)
    ]
    if max(off) < 0.1:
        yield (
            f"what comes back is rounded to few digits (quantized): entries are off by up to {max(off):.1%} of a vector's "
            "length, whether it is long or short"
        )
    powers = (lengths[2] / lengths[1]).log() / math.log(100.0)
    if (powers - powers.mean()).abs().max() < 1e-2 and (
        powers.mean() - 1
    ).abs() > 0.1:
        yield (
            f"vectors that are 100 times as long come back {100 ** powers.mean().item():.4g} times as long: lengths (norms) "
            "are not kept, but raised to a power"
        )
