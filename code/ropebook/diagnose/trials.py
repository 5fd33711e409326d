"""Trials of the whole rotation: comparing rows and heads, adding vectors, and checking scores against the reference."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from ropebook import mistakes
from ropebook.diagnose.bent import bent
from ropebook.diagnose.broken import by_chance
from ropebook.diagnose.chance import CALLS, unsteady
from ropebook.diagnose.differences import different, further
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.repeated import asked
from ropebook.diagnose.witness import model

SHIFT = 16
# The number of tokens in a long call.
LONG = 300
# The number of rows in a large batch.
MANY = 8
# Numbers count as equal if they differ by less than this.
NONE = 1e-3


def _vectors(findings: Findings, seq: int, alike: bool) -> dict[str, Tensor]:
    """Draw random q, k, v (batch, heads, seq, dim). If ``alike``, every row and head gets the same vectors."""
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


def steady(findings: Findings) -> None:
    """Check that the same call returns the same result each time."""
    given = _vectors(findings, 6, False)
    at = torch.arange(6) + 1
    seen = []
    for _ in range(8):
        try:
            seen.append(findings.call.apart(given, at))
        except Exception:
            # errors are reported by other trials
            return
    for role in seen[0]:
        first = seen[0][role]
        off = [(one[role] - first).abs().nan_to_num().max().item() for one in seen]
        if max(off) < NONE:
            continue
        chance = by_chance(findings, lambda: findings.call.apart(given, at))
        if chance is None:
            chance = unsteady(findings.call, given, at, calls=CALLS)
        if chance is not None:
            findings.mistakes["random"] = chance
            return
        later = next(i for i, one in enumerate(off) if one > NONE)
        back = any(one < NONE for one in off[later:])
        findings.mistakes["stale"] = (
            "the same call gives another result each time, so it remembers earlier calls (it counts them, or keeps what "
            f"they left): call {later + 1} is off the first by up to {off[later]:.2g} in {role}"
            + (
                ", and a later call is as the first again: they alternate"
                if back
                else ""
            )
        )
        return


def steady_when_long(findings: Findings) -> None:
    """Check, if nothing else is wrong, that a long call returns the same result each time."""
    if findings.mistakes:
        return
    seq = min(findings.declared.length or LONG, LONG)
    chance = unsteady(
        findings.call, _vectors(findings, seq, False), torch.arange(seq)
    )
    if chance is not None:
        findings.mistakes["random"] = chance


def first_call(findings: Findings) -> None:
    """Check that the very first call returned the same result as an identical call now."""
    off = _since_the_first(findings)
    if {"stale", "random"} & set(findings.mistakes) or off < NONE:
        return
    came = findings.call.first[0]
    tokens = findings.call.order.split().index("seq")
    alike = (came - came.narrow(tokens, 0, 1)).abs().max() < NONE
    how = ". It came back alike at every position, not rotated" if alike else ""
    findings.mistakes["stale"] = (
        "the very first call of the function gives another result than the same call does later, so it keeps something from one "
        f"call to the next (a buffer or table that is filled too late): it is off by up to {off:.2g}{how}"
    )


def still_the_same(findings: Findings) -> None:
    """Check, if nothing else is wrong, that the first call still returns the same result after all the others."""
    off = _since_the_first(findings)
    if findings.mistakes or off < NONE / 10:
        return
    findings.mistakes["stale"] = (
        "after other calls (of other lengths, numbers of rows and heads, and with vectors of float32, bfloat16 and float16) the "
        f"first one gives another result than before, off by up to {off:.2g}: an earlier call is remembered, as by a table that "
        "is kept in the type of the last vectors, so that precision is lost for later ones"
    )


def _since_the_first(findings: Findings) -> float:
    """Repeat the very first call, and return how much its result differs from the original.

    Returns 0 if it raises an error.
    """
    try:
        later = findings.call.probe()
    except Exception:
        # errors are reported by other trials
        return 0.0
    return max(
        (one - other).abs().nan_to_num().max().item()
        for one, other in zip(findings.call.first, later, strict=True)
    )


def overwritten(findings: Findings) -> bool:
    """Check whether a call overwrites the result of an earlier one. If so, record the mistake and return True."""
    given = _vectors(findings, 6, False)
    at = torch.arange(6) + 1
    try:
        found = findings.call.apart(given, at)
        before = {role: x.clone() for role, x in found.items()}
        findings.call.apart({role: 2 * x for role, x in given.items()}, at)
    except Exception:
        # errors are reported by other trials
        return False
    for role, x in found.items():
        if (x - before[role]).abs().nan_to_num().max() > NONE:
            findings.mistakes["stale"] = (
                f"what a call returned as {role} is written over by the next call: both come back in the same memory (a buffer "
                "that is used again), so earlier results are lost"
            )
            return True
    return False


def crossed(findings: Findings) -> None:
    """Check that the returned q depends only on q, and the returned k only on k.

    If the two results are merely swapped, later calls swap them back. If one depends on the other in any other way,
    later trials pass one set of vectors as both q and k.
    """
    call = findings.call
    if not {"q", "k"} <= set(call.vectors):
        return
    given = _vectors(findings, 5, False)
    own, strange = [], []
    for role, other in (("q", "k"), ("k", "q")):
        sent = {**given, other: torch.zeros_like(given[other])}
        found = asked(findings, "q or k of zeros", sent, torch.arange(5), why=True)
        if found is None:
            return
        sizes = {one: found[one].nan_to_num().abs().max() for one in "qk"}
        own.append(sizes[role])
        strange.append(sizes[other])
    if max(strange) < NONE:
        return
    if max(own) < NONE:
        findings.call = replace(call, exchanged=True)
        said = "q and k come back in each other's place"
    else:
        said = "what comes back as q is made of k as well, or k of q"
    findings.mistakes["crossed"] = said


def moved(findings: Findings) -> None:
    """Check that a vector passed in one row, at one head and token, is returned in that place and nowhere else."""
    call = findings.call
    rows, heads = call.rows_and_heads
    seq = 5
    vector = _vectors(findings, 1, True)["q"][0, 0, 0]
    for place in ((rows - 1, heads - 1, 3), (0, 0, 1)):
        x = torch.zeros(rows, heads, seq, call.dim, dtype=torch.float64)
        x[place] = vector
        given = dict.fromkeys("qkv", x)
        found = asked(
            findings, "one token alone", given, torch.arange(seq), why=True
        )
        if found is None:
            return
        for role, turned in found.items():
            seen = turned.nan_to_num().norm(dim=-1)
            seen[place] = 0.0
            if seen.max() > NONE:
                there = (seen == seen.max()).nonzero()[0].tolist()
                findings.mistakes["moved"] = (
                    f"what goes in at {_place(place)} as {role} comes back at {_place(there)}, too or instead"
                )
                return


def _place(place: tuple[int, int, int] | list[int]) -> str:
    row, head, token = place
    return f"row {row}, head {head}, token {token}"


def alike(findings: Findings) -> None:
    """Check that equal vectors in all rows and heads are rotated to equal vectors.

    If rows differ, only one row is measured from then on; if heads differ, only one head.
    """
    call = findings.call
    given = _vectors(findings, 5, True)
    text = torch.arange(5)
    try:
        # use gaps if possible, because the function may leave the first few positions unrotated
        found = call.apart(given, 3 * text if call.places else text)
    except Exception:
        # errors caused by gaps are reported by other trials
        found = asked(
            findings, "rows and heads that are alike", given, text, why=True
        )
        if found is None:
            return
    head = _sound_head(given, found)
    for role, turned in found.items():
        if not turned.isfinite().all():
            # reported when the matrices are measured
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
            findings.call = replace(findings.call, head=head)
            heads = (turned - turned[:, head : head + 1]).abs().amax((0, 2, 3))
            which = (heads > 1e-3).nonzero().flatten().tolist()
            findings.mistakes["other_heads"] = (
                f"heads {', '.join(map(str, which))} are not turned as head {head} is: {role} is off by up to "
                f"{heads.max():.2g}{_how(findings, role, which[0])}"
            )


def batched(findings: Findings) -> None:
    """Check that equal vectors are also rotated to equal vectors in every row of a larger batch.

    If they don't, only one row is measured from then on.
    """
    call = findings.call
    if call.rows_and_heads[0] < 2 or call.one_row:
        return
    given = {
        role: x[:1].expand(MANY, -1, -1, -1)
        for role, x in _vectors(findings, 5, True).items()
    }
    at = torch.arange(5) + 3 * call.places
    try:
        found = call.apart(given, at)
    except Exception:
        # a function may refuse a batch of a different size
        return
    for role, turned in found.items():
        if not turned.isfinite().all():
            # reported when the matrices are measured
            continue
        said = different(turned, turned[:1].expand_as(turned), given[role], NONE)
        if said is not None:
            findings.mistakes["other_rows"] = (
                f"in a batch of {MANY} rows, not all are turned as row 0 is, at the same positions: {role}, {said}"
            )
            findings.call = replace(call, one_row=True)
            return


def _sound_head(given: dict[str, Tensor], found: dict[str, Tensor]) -> int:
    """Return the first head that is rotated without changing lengths, or 0 if there is none."""
    moved, kept = True, True
    for role, turned in found.items():
        moved = moved & ((turned - given[role]).abs().amax((0, 2, 3)) > NONE)
        ratio = (turned.norm(dim=-1) / given[role].norm(dim=-1)).movedim(1, 0)
        ratio = ratio.flatten(1)
        kept = kept & (ratio.amax(1) - ratio.amin(1) < NONE) & (ratio[:, 0] > NONE)
    good = (moved & kept).nonzero().flatten()
    return int(good[0]) if len(good) else 0


def _how(findings: Findings, role: str, other: int) -> str:
    """Describe what another head does to a constant input.

    It may leave the input unrotated, or rotate it like the measured head at other positions.
    """
    call = findings.call
    seq = 12
    given = {
        one: x[:, :, :1].expand(-1, -1, seq, -1)
        for one, x in _vectors(findings, 1, True).items()
    }
    found = asked(
        findings, "one vector in every place", given, torch.arange(seq), why=True
    )
    if found is None:
        return ""
    turned = found[role][0]
    one, right, went = turned[other], turned[call.head], given[role][0, 0]
    if (one - went).abs().max() < NONE:
        return f"; head {other} comes back as it went in"
    if one.abs().max() < NONE:
        return f"; head {other} comes back as zeros"
    for later in range(-4, 5):
        here = slice(max(later, 0), seq + min(later, 0))
        there = slice(max(-later, 0), seq + min(-later, 0))
        if later and (one[there] - right[here]).abs().max() < NONE:
            return f"; head {other} is turned by positions that are {later:+d} off"
    return ""


def linear(findings: Findings) -> None:
    """Check that the map is linear and acts on each row and head separately.

    If so, its matrices predict every result.
    """
    if "moved" in findings.mistakes:
        return
    call = findings.call
    seq = min(4, len(findings.near["q"]))
    given = _vectors(findings, seq, False)
    if {"other_rows", "other_heads"} & set(findings.mistakes):
        given = {role: x[:1, :1].expand_as(x) for role, x in given.items()}
    if "crossed" in findings.mistakes:
        given["k"] = given["q"]
    found = asked(findings, "sums of vectors", given, torch.arange(seq), why=True)
    if found is None:
        return
    # measured again, because the result may depend on the sequence length
    seen = findings.at(torch.arange(seq))
    for role, turned in found.items():
        wanted = torch.einsum("tij,bhtj->bhti", seen[role], given[role])
        off = (
            (turned - wanted)[:1, :1]
            if "other_rows" in findings.mistakes
            else turned - wanted
        )
        if "other_heads" in findings.mistakes:
            off = off[:, call.head : call.head + 1]
        if off.abs().max() > 0.1:
            findings.mistakes["not_linear"] = (
                f"of the sum of two vectors it does not make the sum of what it makes of each: off by {off.abs().max():.2g}"
                + further(bent(findings))
            )
            return


def properties(findings: Findings) -> None:
    """Take the measurements shown in the gallery, if positions can be chosen."""
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
    """Compare scores at random positions with those of a reference rotation that fits everything declared."""
    call, declared = findings.call, findings.declared
    asked_for = call.places or "offset" in call.given
    if (
        not asked_for
        or call.tables
        or set(findings.undetermined) - {"start", "in_place"}
    ):
        return
    right = model(findings)
    if right is None:
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
    q, k = (found.get(role, found["q"]) for role in "qk")
    right_q = right(given["q"], at, "q")
    right_k = right_q if not findings.both else right(given["k"], at, "k")
    scale = math.sqrt(call.dim)
    off = (q @ k.mT - right_q @ right_k.mT).abs().max().item() / scale
    close = 0.2 if findings.main.table is not None else 0.01
    said = f"scores at random positions are off the reference's by up to {off:.1g}"
    findings.evidence["reference"] = said
    if off > close and not findings.mistakes:
        who = [
            different(found[role], wanted, given[role], close)
            for role, wanted in (("q", right_q), ("k", right_k))
            if role in found
        ]
        parts = [
            f"{role}: {one}" for role, one in zip("qk", who, strict=False) if one
        ]
        findings.mistakes["other_scores"] = "; ".join([said, *parts])
