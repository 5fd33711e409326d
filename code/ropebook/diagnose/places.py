"""Check the positions by which q and k are rotated, row by row, one token at a time, and in longer sequences."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ropebook.diagnose.alone import changed, changed_to
from ropebook.diagnose.broken import last_good, raised
from ropebook.diagnose.chance import unsteady
from ropebook.diagnose.differences import different, further
from ropebook.diagnose.far import FAR, far
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import NotFinite, matrices, measured
from ropebook.diagnose.memory import remembered
from ropebook.diagnose.repeated import (
    asked,
    far_calls,
    near_enough,
    repeated,
    vectors,
    where,
)
from ropebook.diagnose.whereabouts import by_head, by_row, together

# Numbers count as equal if they differ by less than this.
_NEAR = 1e-3


def positions(findings: Findings) -> None:
    """Check that positions are honoured in every row, with gaps, with a later start, token by token, and far away."""
    call, evidence = findings.call, findings.evidence
    near = len(next(iter(findings.near.values())))
    shift = near // 3
    late = torch.arange(shift) + shift
    honoured = False
    kept = remembered(findings)
    if kept is not None:
        findings.mistakes["stale"] = kept
        evidence["positions"] = "not always those that it is given"
    elif call.places:
        if _honoured(findings, 3 * torch.arange(shift), late):
            honoured = True
            evidence["positions"] = (
                "honoured, with gaps between them and from a later start"
            )
    elif "offset" in call.given:
        honoured = _agree(findings, findings.at(late), late)
        if honoured:
            evidence["positions"] = (
                "counted from the offset that it is given; gaps cannot be asked for"
            )
        else:
            findings.mistakes["ignored_positions"] = (
                "the offset is not read: every text starts at 0"
            )
    else:
        evidence["positions"] = (
            "none are asked for: every text starts at 0, so with a cache each new token would be at 0"
        )
    findings.honoured = honoured
    _listed(findings)
    _row_by_row(findings)
    _head_by_head(findings)
    if findings.one_by_one:
        return
    if kept is not None:
        # comparisons between calls would only show it again
        _depends(findings, near) or far(findings)
        return
    _rows(findings)
    if "other_positions" in findings.mistakes and call.places and not honoured:
        return
    repeated(findings, honoured)
    if "not_linear" in findings.mistakes or not _depends(findings, near):
        before = len(findings.mistakes)
        far(findings)
        rounded = {"half_angles", "half_positions"} & set(findings.mistakes)
        bent = "not_linear" in findings.mistakes
        if len(findings.mistakes) == before and not (rounded or bent):
            far_calls(findings)


def _listed(findings: Findings) -> None:
    """If positions are misread in a way that has no name of its own, report how the first few tokens are rotated."""
    if "other_positions" not in findings.mistakes or not any(
        turn.places for turn in findings.rotating.values()
    ):
        return
    if "each other's" in findings.mistakes["other_positions"]:
        return
    text = torch.arange(12)
    given = vectors(findings, len(text))
    try:
        found = findings.call.apart(given, text)
    except Exception:
        return
    for role in findings.rotating:
        said = where(findings, role, text, given, found[role])
        if said:
            findings.mistakes["other_positions"] += said
            return


def _row_by_row(findings: Findings) -> None:
    """If rows with equal positions are rotated differently, add to the report how the other rows are rotated."""
    if "other_rows" not in findings.mistakes:
        return
    text = torch.arange(8) + 3
    given = vectors(findings, len(text), apart=False)
    found = asked(findings, "rows that are alike", given, text)
    said = found and by_row(findings, given, found, text)
    findings.mistakes["other_rows"] += further(said)


def _head_by_head(findings: Findings) -> None:
    """If heads are rotated differently, add to the report how each of the other heads is rotated."""
    call, mistakes = findings.call, findings.mistakes
    if "other_heads" not in mistakes or ";" in mistakes["other_heads"]:
        return
    text = torch.arange(12)
    given = vectors(findings, len(text), apart=False)
    found = asked(findings, "heads that are alike", given, text)
    said = found and by_head(findings, given, found, text)
    if said:
        mistakes["other_heads"] += further(said)
        return
    for head in range(call.rows_and_heads[1]):
        if head == call.head:
            continue
        try:
            seen = matrices(replace(call, head=head), torch.arange(24))
        except Exception:
            return
        for role, turn in findings.rotating.items():
            other = measured(seen[role])
            said = changed_to(
                other, turn, f"in head {call.head}", findings.declared
            )
            if said:
                who = f" of {role}" if findings.both else ""
                mistakes["other_heads"] += f". Head {head}{who}: {said}"
                return


def _honoured(findings: Findings, gaps: Tensor, late: Tensor) -> bool:
    """Check that gaps and a later start are honoured. If they are not, record which positions are used instead."""
    mistakes = findings.mistakes
    apart, moved = findings.at(gaps), findings.at(late)
    shift = len(gaps)

    def agree(one: dict[str, Tensor], places: Tensor) -> bool:
        return _agree(findings, one, places)

    missed = [
        role
        for role in apart
        if not agree({role: apart[role]}, gaps)
        or not agree({role: moved[role]}, late)
    ]
    if not missed:
        return True
    if _from_the_end(findings, apart, moved):
        return False
    alone = findings.both and len(missed) == 1 and len(findings.rotating) > 1
    who = f"of {missed[0]} alone, " if alone else ""
    said = together(
        findings,
        missed[0],
        [late, gaps, late[:3], late[1:6]],
        lambda seq: vectors(findings, seq),
    )
    said = further(said)
    apart = {role: apart[role] for role in missed}
    moved = {role: moved[role] for role in missed}
    if findings.one_by_one:
        findings.evidence["positions"] = "honoured where each token comes alone"
        mistakes["one_position"] = (
            f"{who}tokens that come together in a call are not rotated as each is that comes alone{said}"
        )
        return False
    wanted, ahead = agree(apart, gaps), agree(moved, late)
    same = all((apart[role] - moved[role]).abs().max() < _NEAR for role in apart)
    if wanted and same:
        mistakes["stale"] = (
            f"{who}positions {shift}, {shift + 1}, {shift + 2}, … are turned like 0, 3, 6, …, which an earlier call of "
            f"the same length asked for: a table is kept that it should not keep{said}"
        )
    elif agree(apart, torch.arange(shift)) and not ahead:
        mistakes["ignored_positions"] = (
            f"{who}positions 0, 3, 6, … and {shift}, {shift + 1}, {shift + 2}, … are rotated like 0, 1, 2, …: the "
            f"argument is ignored{said}"
        )
    elif ahead:
        mistakes["ignored_gaps"] = (
            f"{who}positions are not read but for the first one: 0, 3, 6, … are turned like 0, 1, 2, …{said}"
        )
    else:
        again = wanted and all(
            agree({role: matrix}, torch.arange(shift))
            for role, matrix in moved.items()
        )
        findings.evidence["positions"] = (
            f"{who}counted from the first one that it is given: with a cache each new token is at 0"
            if wanted
            else f"{who}not those that it is given"
        )
        mistakes["ignored_start"] = (
            f"{who}positions {shift}, {shift + 1}, {shift + 2}, … are not turned as they are in a longer text"
            + (", but like 0, 1, 2, …: each text starts at 0" if again else said)
        )
    return False


def _from_the_end(
    findings: Findings, apart: dict[str, Tensor], moved: dict[str, Tensor]
) -> bool:
    """Check whether positions are counted backwards from the last token of a sequence."""
    shift = len(next(iter(moved.values())))
    if _backwards(findings, apart, moved):
        return True
    for role, turn in findings.rotating.items():
        if turn.theta.sum() > 0:
            return False
        near = findings.near[role]
        off = (moved[role] - near[-shift:]).abs().max()
        if max(off, (apart[role][-1] - near[-1]).abs().max()) > _NEAR:
            return False
    if not findings.rotating:
        return False
    findings.withdraw("clockwise")
    findings.mistakes["other_positions"] = (
        "positions are counted from the end of the text: the last token is at 0"
    )
    return True


def _backwards(
    findings: Findings, apart: dict[str, Tensor], moved: dict[str, Tensor]
) -> bool:
    """Check whether positions are reversed: the first token gets the last one's position, and so on."""
    shift = len(next(iter(moved.values())))
    gaps, late = 3 * torch.arange(shift), torch.arange(shift) + shift
    for role in findings.rotating:
        right = findings.near[role].flip(0)
        off = (apart[role].flip(0) - right[gaps]).abs().max()
        if max(off, (moved[role].flip(0) - right[late]).abs().max()) > _NEAR:
            return False
    if not findings.rotating:
        return False
    findings.withdraw("clockwise", "turned_start")
    findings.mistakes["other_positions"] = (
        "positions are read in the other order: the first token is turned by the position of the last one"
    )
    return True


def _agree(findings: Findings, found: dict[str, Tensor], places: Tensor) -> bool:
    """Check that these matrices equal the ones measured earlier at ``places``."""
    return all(
        (matrix - findings.near[role][places]).abs().max() < _NEAR
        for role, matrix in found.items()
    )


def _rows(findings: Findings) -> None:
    """Check rows with different positions, as left padding produces them.

    Each row must be rotated just as it is when all rows have that row's positions.
    """
    call = findings.call
    rows = call.rows_and_heads[0]
    if rows < 2 or "positions" not in call.given or call.tables:
        return
    if {"moved", "other_rows"} & set(findings.mistakes):
        return
    places = (torch.arange(5), torch.tensor([2, 2, 3, 3, 4]))
    if findings.honoured:
        places = (torch.arange(5), torch.arange(5) + 7)
    given = vectors(findings, 5)
    try:
        found = call.apart(given, torch.stack(places))
        each = [call.apart(given, at.expand(rows, -1)) for at in places]
        one = call.apart(given, places[1])
    except Exception as error:
        findings.evidence["rows"] = "one row of positions serves all"
        if findings.declared.whole:
            raised(
                findings,
                error,
                f"rows at positions of their own, of shape (batch, seq) = ({rows}, 5), as padding and packing need them",
            )
        return
    for role, turned in found.items():
        close = near_enough(findings, role)
        right = torch.stack([each[row][role][row] for row in range(rows)])
        said = different(turned, right, given[role], close)
        who = f"{role}, " if findings.both else ""
        if said is None:
            said = different(each[1][role], one[role], given[role], close)
            if said is not None:
                findings.mistakes["other_rows"] = (
                    f"rows whose positions are given one by one are not turned as with one row for all: {who}{said}"
                    + where(
                        findings,
                        role,
                        places[1].expand(rows, -1),
                        given,
                        each[1][role],
                    )
                )
                return
            continue
        if different(turned, each[0][role], given[role], close) is None:
            findings.mistakes["ignored_rows"] = (
                "every row is turned by the positions of the first: rows with padding are wrong"
            )
        else:
            findings.mistakes["other_rows"] = (
                f"rows that are at positions of their own are turned by others: {who}{said}"
                + where(findings, role, torch.stack(places), given, turned)
            )
        return
    findings.evidence["rows"] = "each may be at positions of its own"


def _depends(findings: Findings, near: int) -> bool:
    """Check whether a token is rotated differently in a longer sequence, or in a call that contains a far position."""
    call = findings.call
    last = (findings.declared.length or FAR[-1]) - 1
    seen = torch.tensor([1, 3, near - 2, near - 1])
    # if gaps are not honoured, only sequences without gaps can be checked
    gaps = findings.honoured and call.places
    # ascending, because a function may remember the first call that reaches far enough
    steps = (128, 256, 512, 1024, 2048, 4096, 8192)
    edges = [edge for step in (64, *steps) for edge in (step - 1, step)]
    far = [edge for edge in edges if near <= edge < last] if gaps else []
    far += [max(last, near)] if gaps else []
    tried = [torch.cat((seen, torch.tensor([place]))) for place in far]
    for number, places in enumerate([*tried, torch.arange(min(last + 1, 2048))]):
        off = _off_beside(findings, places, near)
        if off is None:
            continue
        role, much = off
        mistakes = findings.mistakes
        chance = unsteady(call, _one_vector(findings, len(places)), places)
        if chance is not None:
            mistakes["random"] = f"in a text that goes on to {places[-1]}, {chance}"
            return True
        mistakes["depends_on_text"] = (
            f"positions up to {near - 1} are turned otherwise in a text that goes on to {places[-1]}: {role} is off "
            f"by up to {much:.2g}. Keys in a cache then fit no later query"
        )
        after = _off_beside(findings, torch.arange(near), near)
        if number < len(tried):
            before = int(tried[number - 1][-1]) if number else near - 1
            mistakes["depends_on_text"] += _from_where(
                findings, before, int(places[-1]), near, bisected=after is None
            )
        mistakes["depends_on_text"] += _in_such(findings, role, places)
        if after is not None and "stale" not in mistakes:
            mistakes["stale"] = (
                f"after a call that goes on to position {places[-1]}, later calls with small positions are turned otherwise "
                f"than before, too: {after[0]} is off by up to {after[1]:.2g}. The earlier call is remembered: its table, base "
                f"or frequencies are kept and never set back{changed(findings)}"
            )
        return True
    return False


def _one_vector(findings: Findings, seq: int) -> dict[str, Tensor]:
    """Return the same random vector in every place, as q, k, v (rows, heads, seq, dim)."""
    call = findings.call
    generator = torch.Generator().manual_seed(4)
    rows, heads = call.rows_and_heads
    rows = 1 if call.one_row else rows
    vector = torch.randn(call.dim, dtype=torch.float64, generator=generator)
    return dict.fromkeys("qkv", vector.expand(rows, heads, seq, -1))


def _off_beside(
    findings: Findings, places: Tensor, near: int
) -> tuple[str, float] | None:
    """Find a role whose tokens near the start are rotated differently in this call than in short calls.

    Returns the role and the size of the difference.
    """
    call = findings.call
    sent = _one_vector(findings, len(places))
    vector = sent["q"][0, 0, 0]
    try:
        found = call.apart(sent, places)
    except Exception:
        return None
    if not all(turned.isfinite().all() for turned in found.values()):
        # reported by the check of far positions
        return None
    seen = places[places < near]
    for role, turned in found.items():
        right = findings.near[role][seen] @ vector
        off = (turned[0, call.head, : len(seen)] - right).abs().max().item()
        if off > (0.1 if findings.turns[role].table else 5 * _NEAR):
            return role, off
    return None


def _from_where(
    findings: Findings, before: int, place: int, near: int, bisected: bool
) -> str:
    """Describe how large the largest position in a call must be before the other tokens are rotated differently.

    Returns a sentence.
    """

    def good(last: int) -> bool:
        at = torch.tensor([1, 3, near - 2, near - 1, last])
        return _off_beside(findings, at, near) is None

    if bisected:
        before = last_good(good, before, place)
        place = before + 1
    if place == before + 1:
        return (
            f". All tokens of a call are concerned if it has a position of {place:,} or more; with positions up to {before:,} "
            "alone they are right"
        )
    return (
        f". All tokens of a call are concerned if it has a large position: up to {before:,} they are right, and with "
        f"{place:,} not"
    )


def _in_such(findings: Findings, role: str, places: Tensor) -> str:
    """Describe how tokens near the start are rotated in a call with large positions. Returns a sentence."""
    turn = findings.turns[role]
    if turn.kind != "rotation" or turn.flaws:
        return ""
    text = torch.arange(24)
    many = len(places) > 512
    far = torch.arange(24, len(places)) if many else places[-1:]
    if many and len(places) * findings.call.dim**2 > 2**23:
        return ""
    try:
        found = findings.at(torch.cat((text, far)))[role][: len(text)]
    except (ValueError, NotFinite):
        return ""
    said = changed_to(measured(found), turn, "in others", findings.declared)
    if said is None:
        return ""
    if "frequencies" in said:
        said += (
            ". Frequencies depend on the largest position of a call, as those of a dynamic base (NTK) or of short and long "
            "factors do"
        )
    return f". In such a call, {said}"
