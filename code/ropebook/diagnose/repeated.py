"""The same tokens in other calls: alone, in shorter or longer sequences, reordered, or with fewer rows or heads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook.diagnose.alone import unlike
from ropebook.diagnose.broken import raised
from ropebook.diagnose.chance import unsteady
from ropebook.diagnose.differences import SAME, different, further
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import Turn
from ropebook.diagnose.warps import warp
from ropebook.diagnose.whereabouts import OR_FREQUENCIES, placed, together

LONG = 2048


class Other(NamedTuple):
    """Another call: the mistake to record if its result differs, a description, and the tokens that the call passes."""

    name: str
    said: str
    places: Tensor  # (seq,), or (rows, seq)
    rows: int | None = None  # the number of rows, if not all
    heads: int | None = None  # the number of heads of k, if not all


def repeated(findings: Findings, honoured: bool) -> None:
    """Check that other calls rotate the tokens of a sequence exactly as a call with the whole sequence does.

    The function is compared only with itself, so nothing needs to be known about its rotation. ``honoured`` says
    whether the function honours positions. If it does, other calls may pass arbitrary positions.
    """
    call = findings.call
    near = len(next(iter(findings.near.values())))
    known = {}
    for other in _others(findings, near, honoured):
        if other.name in findings.mistakes:
            continue
        # a call with fewer rows or heads is compared with a call for a sequence of the same length
        seq = other.places.shape[-1] if other.rows or other.heads else near
        try:
            if seq not in known:
                given = vectors(findings, seq)
                known[seq] = given, call.apart(given, torch.arange(seq))
        except Exception:
            return
        given, whole = known[seq]
        sent = {role: _chosen(x, other, role) for role, x in given.items()}
        # a function may refuse a different number of heads and, unless everything is declared, positions that decrease
        must = not other.heads and (
            findings.declared.whole or other.name != "other_positions"
        )
        found = asked(findings, other.said, sent, other.places, must=must)
        if found is None:
            continue
        for role, turned in found.items():
            right = _chosen(whole[role], other, role)
            close = near_enough(findings, role)
            said = different(turned, right, sent[role], close)
            if said is not None:
                chance = unsteady(call, sent, other.places)
                if chance is not None:
                    findings.mistakes["random"] = f"{other.said}: {chance}"
                    return
                who = f"{role}, " if findings.both else ""
                findings.mistakes[other.name] = f"{other.said}: {who}{said}" + (
                    where(findings, role, other.places, sent, turned)
                )
                break


def where(
    findings: Findings,
    role: str,
    places: Tensor,
    sent: dict[str, Tensor],
    came: Tensor,
) -> str:
    """Describe the positions by which the tokens of a call are really rotated.

    Returns a sentence to append, or "" if they are unknown.
    """
    said = None
    if places.shape == (1,):
        place = int(places)
        several = [place, max(place // 2, 1), max(place // 3, 2)]
        alone = [torch.tensor([one]) for one in several]
        said = together(findings, role, alone, lambda seq: vectors(findings, seq))
        if said is None or OR_FREQUENCIES in said:
            # the positions are unknown, or may be right if the frequencies are wrong, so describe the frequencies too
            said = "; ".join(one for one in (said, unlike(findings, role)) if one)
        said = said and f"a token alone: {said}"
    said = said or placed(findings, role, sent[role], came, places)
    return further(said)


def vectors(findings: Findings, seq: int, apart: bool = True) -> dict[str, Tensor]:
    """Draw random q, k, v (rows, heads, seq, dim).

    They differ from row to row and from head to head unless ``apart`` is false.
    """
    rows, heads = findings.call.rows_and_heads
    generator = torch.Generator().manual_seed(6)
    shape = (rows, heads) if apart else (1, 1)
    shape += (seq, findings.call.dim)
    given = {
        role: torch.randn(shape, dtype=torch.float64, generator=generator).expand(
            rows, heads, seq, -1
        )
        for role in "qkv"
    }
    if "crossed" in findings.mistakes:
        given["k"] = given["q"]
    return given


def asked(
    findings: Findings,
    what: str,
    given: dict[str, Tensor],
    positions: Tensor,
    why: bool = False,
    must: bool = False,
) -> dict[str, Tensor] | None:
    """Call the function and return its results, or None if it raises an error.

    If ``must`` is true, an error is recorded as a mistake. Otherwise the evidence notes that ``what`` could not be
    tested. It includes the error message if ``why`` is true.
    """
    try:
        return findings.call.apart(given, positions)
    except Exception as error:
        if must:
            raised(findings, error, _call_of(positions))
            return None
        said = f"{what}: raises {type(error).__name__}"
        said += f": {error}" if why else ""
        findings.evidence.setdefault("not asked", said.partition("\n")[0])
        return None


def _call_of(positions: Tensor) -> str:
    seq = positions.shape[-1]
    if bool((positions.diff(dim=-1) < 0).any()):
        places = ", ".join(str(one) for one in positions.flatten()[:9].tolist())
        return f"positions that go back, as in packed texts ({places})"
    if seq == 1:
        return (
            f"a token that comes alone, at position {int(positions.flatten()[0]):,}"
        )
    return f"{seq:,} tokens at positions {int(positions.min()):,} to {int(positions.max()):,}"


def near_enough(findings: Findings, role: str) -> float:
    """Return the allowed error for random vectors.

    In a half-precision type, entries around 4 are already off by 0.02.
    """
    turn = findings.turns.get(role)
    return 0.1 if turn is None or turn.table is not None else 5 * SAME


def _chosen(x: Tensor, other: Other, role: str) -> Tensor:
    """Select the tokens of x (rows, heads, seq, dim) that the call ``other`` passes."""
    x = x[: other.rows] if other.rows else x
    x = x[:, : other.heads] if other.heads and role != "q" else x
    if other.places.ndim == 1:
        return x[:, :, other.places]
    return torch.stack(
        [row[:, at] for row, at in zip(x, other.places, strict=True)]
    )


def _others(findings: Findings, near: int, honoured: bool) -> Iterator[Other]:
    rows, heads = findings.call.rows_and_heads
    text = torch.arange(near)
    if honoured:
        for place in (near // 2, near // 3):
            said = (
                f"a token that comes alone, at position {place}, is not turned as it is in a text, so with a cache every "
                "new token is wrong"
            )
            yield Other("one_token", said, torch.tensor([place]))
    for seq in (1, 2, 3, 8, 16, 17, 32):
        if seq < near:
            said = f"a token is turned otherwise in a text of {seq} tokens than in one of {near}"
            yield Other("depends_on_text", said, text[:seq])
    if honoured and findings.call.places:
        for seq in (2, 3):
            said = f"{seq} tokens that come from position {near // 2} on are not turned as they are in a text"
            yield Other("depends_on_text", said, text[near // 2 :][:seq])
        said = "positions that go back, as packed texts have them, are not read as they are"
        yield Other("other_positions", said, torch.tensor([0, 1, 2, 3, 0, 1, 2]))
        yield Other("other_positions", said, torch.tensor([9, 9, 4, 7, 1, 1, 0]))
    if rows > 1:
        said = "a batch of one row is not turned as the first row of two is"
        yield Other("other_rows", said, text[:5], rows=1)
    if heads > 1 and {"q", "k"} <= set(findings.call.vectors):
        said = "with fewer heads of k than of q, its heads are not turned as they are with as many"
        yield Other("other_heads", said, text[:5], heads=1)
    yield Other("stale", "the same call gives another result later", text)


# --- Far positions, compared with the rotation measured near the start ---


def far_calls(findings: Findings) -> None:
    """Check a long sequence, a far token on its own, and distant rows, using the angles measured near the start."""
    call, length = findings.call, findings.declared.length or LONG
    last = min(length, LONG) - 1
    near = len(next(iter(findings.near.values())))
    if last <= near or findings.theta is None or not findings.exact:
        return
    text = torch.arange(last + 1)
    others = [
        Other(
            "depends_on_text",
            f"in a text of {last + 1:,} tokens, tokens are not turned as they are near the start",
            text,
        )
    ]
    if call.places and findings.honoured:
        said = f"a token that comes alone, at position {length - 1:,}, is not turned as its position has it"
        others.append(Other("one_token", said, torch.tensor([length - 1])))
    if "positions" in call.given and call.rows_and_heads[0] > 1:
        said = (
            "rows at positions far from each other are not each turned by its own"
        )
        if "rows" in findings.evidence and "own" in findings.evidence["rows"]:
            apart = torch.stack((torch.arange(6), length - 9 + torch.arange(6)))
            others.append(Other("other_rows", said, apart))
    for other in others:
        if other.name in findings.mistakes:
            continue
        given = vectors(findings, other.places.shape[-1], apart=False)
        must = findings.declared.length is not None and other.name != "other_rows"
        found = asked(findings, other.said, given, other.places, must=must)
        if found is None:
            continue
        for role, turn in findings.rotating.items():
            if turn.flaws or turn.order or turn.trembles or not turn.layout:
                continue
            if "other_rest" in findings.mistakes:
                continue
            if turn.places and warp(turn.places).at is None:
                continue
            right = modelled(findings, turn, given[role], other.places)
            close = 0.1 if turn.table is not None else 0.02
            looked = _looked(findings)
            said = different(
                found[role][looked], right[looked], given[role][looked], close
            )
            if said is not None:
                who = f"{role}, " if findings.both else ""
                findings.mistakes[other.name] = f"{other.said}: {who}{said}" + (
                    where(findings, role, other.places, given, found[role])
                )
                break


def _looked(findings: Findings) -> tuple[slice, slice]:
    """Select the rows and heads that aren't already known to be rotated differently."""
    rows, heads = (slice(None),) * 2
    if "other_rows" in findings.mistakes or findings.call.one_row:
        rows = slice(0, 1)
    if "other_heads" in findings.mistakes:
        heads = slice(findings.call.head, findings.call.head + 1)
    return rows, heads


def modelled(findings: Findings, turn: Turn, x: Tensor, places: Tensor) -> Tensor:
    """Rotate x to these positions, using the frequencies measured near the start."""
    at = places.double()
    if turn.places:
        at = warp(turn.places).at(at)
    theta = findings.theta
    own = theta.shape != turn.theta.shape
    if own or (turn.theta - theta).abs().max() > 10 * turn.tolerance:
        theta = turn.theta
    angles = at[..., None] * theta + turn.phase
    if angles.ndim == 3:
        angles = angles[:, None]
    first, second = list(turn.first), list(turn.second)
    out = x.clone()
    cos, sin = angles.cos(), angles.sin()
    one, two = x[..., first], x[..., second]
    out[..., first] = turn.factor * (one * cos - two * sin)
    out[..., second] = turn.factor * (one * sin + two * cos)
    return out
