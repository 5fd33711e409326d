"""Find the position by which each token is really rotated, and the rule that relates it to the requested position."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import Turn
from ropebook.diagnose.starting import begin
from ropebook.diagnose.warps import reordered

# For each call, the requested positions, and the positions by which the tokens are really rotated.
Calls = list[tuple[Tensor, Tensor]]
# Two random vectors, or two positions, count as equal if they differ by less than this.
CLOSE = 0.02
# The largest position that is considered.
FURTHEST = 2**15
# Appended to the description of a rule if other frequencies would lead to the same angles.
OR_FREQUENCIES = ", or frequencies are"
HALVES = (
    (torch.bfloat16, "bfloat16"),
    (torch.float16, "float16"),
    (torch.float8_e4m3fn, "float8"),
)


def found_at(
    findings: Findings, turn: Turn, sent: Tensor, came: Tensor, at: Tensor
) -> Tensor | None:
    """Find the positions (tokens,) by which vectors (tokens, dim) are rotated.

    Returns None if a vector fits no position.

    ``sent`` and ``came`` are the vectors passed and returned. ``at`` contains the requested positions.
    """
    if turn.flaws or not turn.first or turn.theta is None:
        return None
    theta = frequencies_of(findings, turn)
    if not theta.any():
        return None
    if turn.order:
        came = came[:, list(turn.order)]
    first, second = list(turn.first), list(turn.second)
    one = torch.complex(sent[:, first], sent[:, second])
    two = torch.complex(came[:, first], came[:, second]) / turn.factor
    last = int(min(2 * at.abs().max() + 64, FURTHEST))
    tried = torch.arange(-last, last + 1, dtype=torch.float64)
    part = torch.cat([at / step for step in (3, 4, 8, 16, 32)])
    tried = torch.cat((tried, at + 0.5, at - 0.5, at / 2, part, _means(at)))
    turned = torch.polar(
        torch.ones(1, dtype=torch.float64), tried[:, None] * theta + turn.phase
    )
    score = ((two * one.conj()) @ turned.conj().T).real
    # of equally good fits, take the one nearest to the requested position
    near = (tried - at[:, None]).abs() / (1e9 * (1 + at.abs().max()))
    best = (score - near).argmax(1)
    off = (two - one * turned[best]).abs().amax(1)
    close = 0.1 if turn.table is not None else CLOSE
    return tried[best] if off.max() < close else None


def _means(at: Tensor) -> Tensor:
    return torch.stack((at.mean(), (at.min() + at.max()) / 2))


def frequencies_of(findings: Findings, turn: Turn) -> Tensor:
    """Return the exact frequencies, or the frequencies measured for this turn if they differ from the exact ones."""
    exact = findings.theta
    if exact is None or exact.shape != turn.theta.shape:
        return turn.theta
    own = (turn.theta - exact).abs().max() > 10 * turn.tolerance
    return turn.theta if own else exact


def placed(
    findings: Findings, role: str, sent: Tensor, came: Tensor, at: Tensor
) -> str | None:
    """Describe the positions by which the tokens of a call are rotated. Returns None if they are right or unknown.

    ``sent`` and ``came`` are the vectors passed and returned, (rows, heads, tokens, dim). ``at`` contains the requested
    positions, (tokens,) or (rows, tokens).
    """
    turn = findings.turns.get(role)
    if turn is None or turn.kind != "rotation":
        return None
    rows, heads, seq, _ = came.shape
    at = (at if at.ndim == 2 else at.expand(rows, seq)).double()
    if findings.call.one_row or "other_rows" in findings.mistakes:
        rows = 1
    head = min(findings.call.head, heads - 1)
    found = [
        found_at(findings, turn, sent[row, head], came[row, head], at[row])
        for row in range(rows)
    ]
    if any(one is None for one in found):
        return None
    return _rows(list(zip(at[:rows], found, strict=True)), _start(turn))


def _start(turn: Turn) -> float:
    """Return the position by which a token at position 0 is rotated, or 0 if it is unknown."""
    began = begin(turn)
    return began[1] if began else 0.0


def _later(calls: Calls, start: float) -> Calls:
    return [(at, found + start) for at, found in calls]


def _rows(calls: Calls, start: float) -> str | None:
    """Describe how the rows of a batch are rotated.

    If one rule explains all rows, describe the rule; otherwise describe the first wrong row.
    """
    if all(_same(one, other) for one, other in calls):
        return None
    if all(_same(torch.stack(one), torch.stack(calls[0])) for one in calls):
        calls = calls[:1]
    if len(calls) > 1 and not _same(calls[0][0], calls[1][0]):
        found = [other for _, other in calls]
        if all(_same(calls[0][0], one) for one in found):
            return "every row is rotated at the positions of row 0, the first one"
        if all(_same(calls[-1][0], one) for one in found):
            return "every row is rotated at the positions of the last row"
        if _same(found[0], calls[-1][0]) and _same(found[-1], calls[0][0]):
            return "the rows have exchanged their positions"
        if all(_same(found[0], one) for one in found):
            return "all rows are rotated at the same positions"
    said = rule(calls) or rule(_later(calls, start))
    if said is not None:
        return said
    several = len(calls) > 1
    for row, one in enumerate(calls):
        if not _same(*one):
            found = rule([one]) or _listed(*_later([one], start)[0])
            return f"row {row} of a batch: {found}" if several else found
    return None


def rule(calls: Calls) -> str | None:
    """Describe the rule that turns the requested positions into the observed ones. Returns None if no known rule fits.

    >>> at = torch.tensor([5.0, 6, 7])
    >>> rule([(at, at + 5)])
    'the position of the first token is added once more: the start of the call (its offset) is counted twice'
    >>> rule([(at, at * 0)])
    'every token is rotated as if at position 0: it comes back not rotated at all, unchanged'
    """
    for said, made in _rules(calls):
        if all(_same(made(at), found) for at, found in calls):
            return said
    return None


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and bool(((one - other).abs() < CLOSE).all())


def _rules(calls: Calls) -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    """Yield the known rules, simplest first: a sentence, and a function that maps the positions of a call."""
    several = max(len(at) for at, _ in calls) > 1
    alike = "all tokens of a call are rotated at the same position"
    token = "every token" if several else "it"

    def counted(at: Tensor) -> Tensor:
        return torch.arange(len(at), dtype=torch.float64)

    yield (
        f"{token} is rotated as if at position 0: it comes back not rotated at all, unchanged",
        torch.zeros_like,
    )
    if several:
        yield (
            f"{alike}, that of the first one: positions don't advance within a call",
            lambda at: at[:1].expand(len(at)),
        )
        yield (
            f"{alike}, that of the last one",
            lambda at: at[-1:].expand(len(at)),
        )
        yield f"{alike}, the largest", lambda at: at.max().expand(len(at))
        yield f"{alike}, the smallest", lambda at: at.min().expand(len(at))
        yield f"{alike}, the mean of them", lambda at: at.mean().expand(len(at))
        yield (
            "positions are counted from 0 in each call, and the given positions are ignored",
            counted,
        )
        yield (
            "positions are counted on from the first one of the call: gaps and restarts between them are ignored",
            lambda at: at[0] + counted(at),
        )
        yield (
            "only the first token is at the position that is given, and the others are counted from the start of the call",
            lambda at: torch.cat((at[:1], counted(at)[1:])),
        )
        yield (
            "the first position of the call is subtracted from all: each call starts from 0",
            lambda at: at - at[0],
        )
        yield (
            "positions are in reverse order: the first token is rotated by the position of the last one",
            lambda at: at.flip(0),
        )
        yield (
            "positions are counted from the end of the call, back from 0 at the last token",
            lambda at: at - at[-1],
        )
        yield (
            "positions never go back, as packed texts need it: each is the largest so far",
            lambda at: at.cummax(0)[0],
        )
        yield (
            "positions are sorted, whatever order they have",
            lambda at: at.sort()[0],
        )
        yield (
            "the position of the first token is added once more: the start of the call (its offset) is counted twice",
            lambda at: at + at[0],
        )
        yield (
            "the last token of a call is not rotated: it is at position 0",
            lambda at: torch.cat((at[:-1], torch.zeros(1))),
        )
        yield (
            "the first token of a call is not rotated: it is at position 0",
            lambda at: torch.cat((torch.zeros(1), at[1:])),
        )
    yield from _moved(calls, token)
    yield from _scaled(calls)
    if several:
        yield from _reordered(calls)
    yield from _bounded(calls)


def _moved(
    calls: Calls, token: str
) -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    many = len({len(at) for at, _ in calls}) > 1
    if many:
        yield (
            "each is rotated too far by the number of tokens in the call",
            lambda at: at + len(at),
        )
        yield (
            "each is rotated too far by the number of tokens in the call, less 1",
            lambda at: at + len(at) - 1,
        )
    off = (calls[0][1] - calls[0][0])[0].item()
    if off:
        much = f"{abs(off):g} position{'s' if abs(off) != 1 else ''}"
        one = "one position" if abs(off) == 1 else much
        way = "too far (later)" if off > 0 else "too early (before it)"
        count = "" if many else _as_many(off, len(calls[0][0]))
        yield (
            f"{token} is rotated as if it were {one} {way}, {off:+g}{count}",
            lambda at: at + off,
        )
    yield (
        "position m is rotated like −m: the other way round, clockwise (opposite direction)",
        torch.neg,
    )


def _as_many(off: float, seq: int) -> str:
    return f", as many as the call has tokens ({seq})" if off == seq > 1 else ""


def _scaled(calls: Calls) -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    at, found = calls[0]
    largest = int(at.abs().argmax())
    if not at[largest] or not found[largest]:
        return
    times = (found[largest] / at[largest]).item()
    if times != 1:
        words = {2: "twice as large: doubled", 0.5: "half as large: halved"}
        how = words.get(times) or (
            f"{times:.4g} times as large"
            if times > 1
            else f"divided by {1 / times:.4g}"
        )
        # nothing distinguishes positions that are too large from frequencies that are too large
        yield f"positions are {how}{OR_FREQUENCIES}", lambda at: at * times
    for step in range(2, 17):
        yield (
            f"positions are divided by {step} without remainder: {step} neighbours each share one position",
            lambda at, step=step: at // step,
        )
    for kind, name in HALVES:
        yield (
            f"positions are rounded to {name}",
            lambda at, kind=kind: at.to(kind).double(),
        )


def _reordered(
    calls: Calls,
) -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    """Yield the order shared by all calls. Yields nothing if a call uses positions that were not requested."""
    at, found = max(calls, key=lambda one: len(one[0]))
    if len(at.unique()) < len(at):
        return
    near = (found[:, None] - at).abs()
    if near.amin(1).max() > CLOSE:
        return
    said = reordered(near.argmin(1))
    if said is None:
        return
    yield said, lambda at: _in_order(calls, at)


def _in_order(calls: Calls, at: Tensor) -> Tensor:
    """Return the positions observed in the call that requested ``at``, if they are a permutation of ``at``."""
    found = next(other for one, other in calls if one is at)
    alike = _same(found.sort()[0], at.sort()[0].double())
    return found if alike else torch.full_like(at, torch.inf)


def _bounded(calls: Calls) -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    at = torch.cat([at for at, _ in calls])
    found = torch.cat([found for _, found in calls])
    most, least = found.max().item(), found.min().item()
    yield (
        f"positions beyond {most:,.0f} are clamped: all of them are rotated like {most:,.0f}",
        lambda at: at.clamp(max=most),
    )
    apart = (at - found).abs()
    whole = [round(one) for one in apart.tolist() if one > 0.5]
    period = math.gcd(*whole) if whole else 0
    if period > 1:
        yield (
            f"positions begin again (wrap around) every {period:,}: they are taken modulo {period:,}",
            lambda at: at % period,
        )
    if most - least < CLOSE:
        yield (
            f"every token is rotated as if at position {most:g}, whatever its position",
            lambda at: torch.full_like(at, most),
        )


def _listed(at: Tensor, found: Tensor) -> str:
    """List a few positions that are wrong, and those used in their place."""
    wrong = (at - found).abs() > CLOSE
    asked = ", ".join(f"{one:g}" for one in at[wrong][:4].tolist())
    like = ", ".join(f"{one:g}" for one in found[wrong][:4].tolist())
    more = ", …" if int(wrong.sum()) > 4 else ""
    some = "positions" if int(wrong.sum()) > 1 else "position"
    are = "are" if int(wrong.sum()) > 1 else "is"
    return f"{some} {asked}{more} {are} rotated as if at {like}{more}"


def together(
    findings: Findings, role: str, places: list[Tensor], given: Callable
) -> str | None:
    """Describe a rule that explains several calls: all of them, or all the wrong ones, or just the first wrong one.

    If there is no such rule, a few positions are listed. Returns None if the calls are right, or can't be measured.
    ``given(tokens)`` must return vectors for a call with that many tokens.
    """
    turn = findings.turns.get(role)
    if turn is None or turn.kind != "rotation":
        return None
    calls = []
    for at in places:
        sent = given(at.shape[-1])
        try:
            came = findings.call.apart(sent, at)[role]
        except Exception:
            return None
        one, head = (at if at.ndim == 1 else at[0]).double(), findings.call.head
        found = found_at(findings, turn, sent[role][0, head], came[0, head], one)
        if found is None:
            return None
        calls.append((one, found))
    if all(_same(*one) for one in calls):
        return None
    wrong = [one for one in calls if not _same(*one)]
    start = _start(turn)
    for some in (calls, wrong, wrong[:1]):
        said = rule(some) or rule(_later(some, start))
        if said is not None:
            return said
    return _listed(*_later(wrong, start)[0])


def by_row(
    findings: Findings,
    sent: dict[str, Tensor],
    came: dict[str, Tensor],
    at: Tensor,
) -> str | None:
    """Describe how each row after the first is rotated, if rows with equal positions are rotated differently."""
    head = findings.call.head
    for role, turn in findings.rotating.items():
        for row in range(1, len(came[role])):
            one, other = sent[role][row, head], came[role][row, head]
            if (one - other).abs().max() < CLOSE:
                return f"row {row} of {role} comes back unchanged, not rotated"
            found = found_at(findings, turn, one, other, at.double())
            said = found is not None and rule([(at.double(), found)])
            if said:
                return f"row {row} of {role}: {said}"
    return None


def by_head(
    findings: Findings,
    sent: dict[str, Tensor],
    came: dict[str, Tensor],
    at: Tensor,
) -> str | None:
    """If heads with equal positions are rotated differently, describe the positions by which they are rotated."""
    places = at.double()
    for role, turn in findings.rotating.items():
        found = []
        for head in range(came[role].shape[1]):
            one = sent[role][0, head], came[role][0, head]
            found.append(found_at(findings, turn, *one, places))
        if any(one is None for one in found):
            continue
        seen = torch.stack(found)
        if all(_same(one, places) for one in found):
            continue
        said = _of_heads(seen, places)
        if said is None:
            wrong = [
                head for head, one in enumerate(found) if not _same(one, places)
            ]
            listed = [
                f"head {head}: {rule([(places, found[head])]) or _listed(places, found[head])}"
                for head in wrong[:3]
            ]
            said = f"positions depend on the head. {'; '.join(listed)}"
        return said
    return None


def _of_heads(seen: Tensor, at: Tensor) -> str | None:
    """Find the rule behind the positions (heads, tokens) used by all heads. Returns None if no known rule fits."""
    heads, seq = seen.shape
    head = torch.arange(heads)[:, None]
    token = torch.arange(seq)
    step = (seen[1] - seen[0])[0].item()
    if step and _same(seen, at + step * head):
        return f"positions depend on the head: {step:+g} is added for each head, as if the number of the head were a position"
    if _same(seen, at[head % seq].expand(-1, seq)):
        return "positions run along the heads, not along the tokens: the wrong axis"
    flat, other = head * seq + token, token * heads + head
    for index in (flat // heads, other % seq, other // seq, flat % heads):
        if index.max() < seq and _same(seen, at[index]):
            return (
                "positions depend on the head: the position of a token is found as if heads and tokens came in the other order "
                "in memory (two axes are exchanged, transposed or flattened in the wrong order, or a stride is wrong)"
            )
    return None
