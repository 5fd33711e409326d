"""The last trial, for functions that have passed all others: compare calls of many shapes with the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import rope
from ropebook.diagnose.bent import bent
from ropebook.diagnose.chance import unsteady
from ropebook.diagnose.differences import different, further
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.repeated import near_enough
from ropebook.diagnose.starting import begin
from ropebook.diagnose.whereabouts import placed

# Sequence lengths, mostly around powers of 2, where kernels that process blocks tend to go wrong.
TEXTS = (4, 6, 7, 9, 12, 31, 33, 63, 64, 65, 127, 128, 129, 257, 513, 1025)
Turned = Callable[[Tensor, Tensor, str], Tensor]


class Case(NamedTuple):
    """A test call: the mistake to record if its result is wrong, a description, and the inputs."""

    name: str
    said: str
    places: Tensor  # (seq,), or (rows, seq)
    rows: int | None = None
    heads: tuple[int, int] | None = None  # the numbers of heads of q and of k
    times: float = 1.0  # the factor by which all vectors are multiplied
    dtype: torch.dtype | None = None
    strided: bool = False  # whether heads come after tokens in memory


def model(findings: Findings) -> Turned | None:
    """Build a reference that rotates q or k (rows, heads, tokens, dim). Returns None if too little is declared."""
    declared, main = findings.declared, findings.main
    if not declared.complete or main.dim % 2:
        return None
    width = declared.rotary_dim or main.rotary_dim or main.dim
    theta = declared.frequencies(width)
    if 2 * len(theta) != width:
        return None
    factor = declared.attention_factor or 1.0
    if "lengths" in findings.evidence:
        factor = main.factor or 1.0
    starts = {}
    for role, turn in findings.rotating.items():
        began = begin(turn)
        starts[role] = began[1] if began else 0.0

    def turned(x: Tensor, at: Tensor, role: str) -> Tensor:
        angles = (at.double() + starts.get(role, 0.0))[..., None] * theta
        angles = angles[:, None] if angles.ndim == 3 else angles
        part, rest = x[..., :width], x[..., width:]
        first, second = rope.split(part, declared.layout)
        cos, sin = angles.cos(), angles.sin()
        pair = first * cos - second * sin, first * sin + second * cos
        return torch.cat((factor * rope.join(*pair, declared.layout), rest), -1)

    return turned


def witness(findings: Findings) -> None:
    """If no mistake has been found so far, compare calls of many shapes with the reference, vector by vector."""
    call = findings.call
    if set(findings.mistakes) - {"changed_inputs"}:
        return
    if set(findings.undetermined) - {"start", "in_place"}:
        return
    if not call.places or call.tables or not findings.honoured:
        return
    right = model(findings)
    if right is None:
        return
    for case in _cases(findings):
        found = _told(findings, case, right)
        if found is not None:
            name, findings.mistakes[name] = found
            return


def _told(findings: Findings, case: Case, right: Turned) -> tuple[str, str] | None:
    """Name the mistake in the result of a call, and describe it.

    Returns None if the result is right, or if the function refuses the call.
    """
    call = findings.call
    sent = _sent(findings, case)
    if case.dtype is not None:
        call = replace(call, dtype=case.dtype)
        sent = {role: x.to(case.dtype).double() for role, x in sent.items()}
    if case.strided:
        sent = {
            role: x.transpose(1, 2).contiguous().transpose(1, 2)
            for role, x in sent.items()
        }
    try:
        found = call.apart(sent, case.places)
    except Exception:
        # if the function should have accepted the call, another trial reports that
        return None
    for role, turned in found.items():
        if role == "v":
            continue
        close = max(near_enough(findings, role), 0.02)
        if case.dtype in (torch.bfloat16, torch.float16):
            close = 0.2
        close = (close + 2e-6 * case.places.max().item()) * max(
            1.0, findings.main.factor
        )
        x, came = sent[role] / case.times, turned / case.times
        said = different(came, right(x, case.places, role), x, close)
        if said is not None:
            chance = unsteady(call, sent, case.places)
            if chance is not None:
                return "random", f"{case.said}: {chance}"
            who = f"{role}, " if findings.both else ""
            said = f"{case.said}: {who}{said}"
            if case.name == "not_linear":
                said += further(bent(findings))
            elif "as it went in" not in said:
                # an unchanged vector is at position 0, or at a position with the same matrix
                said += further(placed(findings, role, x, came, case.places))
            return case.name, said
    return None


def _sent(findings: Findings, case: Case) -> dict[str, Tensor]:
    """Draw random q, k, v (rows, heads, seq, dim) for a case."""
    rows, heads = findings.call.rows_and_heads
    rows = case.rows or (len(case.places) if case.places.ndim == 2 else rows)
    of_q, of_k = case.heads or (heads, heads)
    generator = torch.Generator().manual_seed(10)
    seq, dim = case.places.shape[-1], findings.call.dim
    return {
        role: case.times
        * torch.randn(
            rows, count, seq, dim, dtype=torch.float64, generator=generator
        )
        for role, count in (("q", of_q), ("k", of_k), ("v", of_k))
    }


def _cases(findings: Findings) -> Iterator[Case]:
    length = findings.declared.length or 256
    last = min(length, 2**15) - 1
    rows, heads = findings.call.rows_and_heads
    text = torch.arange(5)
    yield from _places(last)
    for at in sorted({0, 1, 2, last // 3, last}):
        said = f"a token that comes alone, at position {at:,}, is not rotated as it should be"
        yield Case("one_token", said, torch.tensor([at]))
    for seq in TEXTS:
        if seq <= last + 1:
            said = (
                f"in a text of {seq:,} tokens not all are rotated as they should be"
            )
            yield Case("depends_on_text", said, torch.arange(seq))
    for start, seq in ((1, 2), (1, 5), (37, 65), (100, 16), (last - 63, 64)):
        if 0 <= start <= last + 1 - seq:
            said = f"{seq} tokens from position {start:,} on are not all rotated as they should be"
            yield Case("depends_on_text", said, start + torch.arange(seq))
    if rows > 1 and "own" in findings.evidence.get("rows", ""):
        yield from _rows(last)
    if rows > 1:
        for count in (1, 3, 5):
            said = (
                f"in a batch of {count} not all rows are rotated as they should be"
            )
            yield Case("other_rows", said, text, rows=count)
    if heads > 1:
        both = {"q", "k"} <= set(findings.call.vectors)
        for of_q, of_k in ((1, 1), (8, 2), (6, 6), (5, 5), (32, 8)):
            said = f"with {of_q} heads of q and {of_k} of k not all are rotated as they should be"
            if both or of_q == of_k:
                yield Case("other_heads", said, text + 3, heads=(of_q, of_k))
    if rows > 1 and heads > 1:
        said = "heads that come after tokens in memory (transposed, not contiguous) are rotated otherwise"
        yield Case("memory_layout", said, text + 3, heads=(4, 4), strided=True)
    for times in (300.0, 1e-3):
        said = (
            f"vectors that are {times:g} times as long are not rotated like others"
        )
        yield Case("not_linear", said, text + 3, times=times)
    for kind in (torch.float32, torch.bfloat16, torch.float16):
        name = str(kind).removeprefix("torch.")
        said = f"vectors of {name} are rotated otherwise"
        yield Case("other_dtype", said, text + 3, dtype=kind)
    yield from _places(last)


def _places(last: int) -> Iterator[Case]:
    """Yield cases with positions in any order, near and far. They are tried both before and after all other cases."""
    generator = torch.Generator().manual_seed(11)
    some = torch.randperm(last + 1, generator=generator)[:8]
    name, said = "other_positions", "are not rotated as they should be"
    yield Case("other_far", f"tokens at random positions {said}", some.sort()[0])
    yield Case(name, f"tokens whose positions are in no order {said}", some)
    for places in (
        [0, 1, 2, 3, 0, 1, 2, 0, 1],
        [0, 0, 0, 0, 1, 2, 3],
        [1, 1, 1, 0, 1, 2, 3],
        [7, 7, 7, 7],
        [9, 8, 7, 6, 5],
        [0, 2, 4, 6, 8, 10],
        [5, 6, 7, last - 2, last - 1, last],
    ):
        some = ", ".join(map(str, places))
        yield Case(name, f"tokens at positions {some} {said}", torch.tensor(places))


def _rows(last: int) -> Iterator[Case]:
    """Yield cases whose rows have different positions: left-padded, packed, or far apart.

    In one case there are as many rows as tokens.
    """
    for rows in (
        [[0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 2, 3]],
        [[1, 1, 0, 1, 2], [0, 1, 2, 3, 4], [1, 1, 1, 1, 0]],
        [[0, 1, 2, 0, 1], [0, 0, 1, 2, 3]],
        [[3, 4, 5, 6], [last - 3, last - 2, last - 1, last]],
        [[0, 1, 2], [4, 5, 6], [9, 10, 11]],
        [[11], [4], [last]],
    ):
        said = f"rows at positions {rows} are not rotated as they should be"
        yield Case("other_rows", said, torch.tensor(rows))
