"""Where q and k are turned: which positions are read, in which rows, one token at a time, and far away."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import NotFinite, Turn

# Looked at far away: where half types begin to miss positions, and where tables end.
FAR = (257, 1003, 2049, 4097, 8193)
# No search for the position that a far one is turned like goes beyond this.
SEARCHED = 2**15
_NEAR = 1e-3


def positions(findings: Findings) -> None:
    """Whether positions are honoured: with gaps, from a later start, in every row, one at a time, far away."""
    call = findings.call
    near = len(next(iter(findings.near.values())))
    shift = near // 3
    late = torch.arange(shift) + shift
    evidence = findings.evidence
    if call.places:
        gaps = 3 * torch.arange(shift)
        if _honoured(findings, gaps, late):
            evidence["positions"] = (
                "honoured, with gaps between them and from a later start"
            )
            _one_token(findings, near)
            _rows(findings)
            _far(findings)
    elif "offset" in call.given:
        if _agree(findings, findings.at(late), late):
            evidence["positions"] = (
                "counted from the offset that it is given; gaps cannot be asked for"
            )
            _one_token(findings, near)
            _far(findings)
        else:
            findings.mistakes["ignored_positions"] = (
                "the offset is not read: every text starts at 0"
            )
    else:
        evidence["positions"] = (
            "none are asked for: every text starts at 0, so with a cache each new token would be at 0"
        )
        _far(findings)


def _honoured(findings: Findings, gaps: Tensor, late: Tensor) -> bool:
    """Whether gaps and a later start are; if not, which of them are read."""
    mistakes = findings.mistakes
    apart, moved = findings.at(gaps), findings.at(late)
    wanted = _agree(findings, apart, gaps)
    ahead = _agree(findings, moved, late)
    shift = len(gaps)
    if wanted and ahead:
        return True
    same = all((apart[role] - moved[role]).abs().max() < _NEAR for role in apart)
    if wanted and same:
        mistakes["stale"] = (
            f"positions {shift}, {shift + 1}, {shift + 2}, … are turned like 0, 3, 6, …, which an earlier call of the "
            "same length asked for: a table is kept that it should not keep"
        )
    elif _agree(findings, apart, torch.arange(shift)) and not ahead:
        mistakes["ignored_positions"] = (
            f"positions 0, 3, 6, … and {shift}, {shift + 1}, {shift + 2}, … are turned like 0, 1, 2, …: the argument is "
            "not read"
        )
    elif ahead:
        mistakes["ignored_gaps"] = (
            "of the positions only the first is read: 0, 3, 6, … are turned like 0, 1, 2, …"
        )
    else:
        findings.evidence["positions"] = (
            "counted from the first one that it is given: with a cache each new token is at 0"
            if wanted
            else "not those that it is given"
        )
        mistakes["ignored_start"] = (
            f"positions {shift}, {shift + 1}, {shift + 2}, … are not turned as they are in a longer text"
        )
    return False


def _agree(findings: Findings, found: dict[str, Tensor], places: Tensor) -> bool:
    """Whether matrices are those that were seen at ``places`` before."""
    return all(
        (matrix - findings.near[role][places]).abs().max() < _NEAR
        for role, matrix in found.items()
    )


def _one_token(findings: Findings, near: int) -> None:
    """A single token, as a model with a cache has it."""
    for place in (near // 2, near // 3):
        try:
            found = findings.at(torch.tensor([place]))
        except ValueError as error:
            findings.evidence["one token"] = str(error)
            return
        if not _agree(findings, found, torch.tensor([place])):
            findings.mistakes["one_token"] = (
                f"a token that comes alone, at position {place}, is not turned as it is in a text: with a cache every "
                "new token is wrong"
            )
            return


def _rows(findings: Findings) -> None:
    """Rows that are at positions of their own, as left padding makes them."""
    call = findings.call
    if "batch" not in call.order or "positions" not in call.given or call.tables:
        return
    rows, heads = call.rows_and_heads
    places = torch.stack((torch.arange(5), torch.arange(5) + 7))
    generator = torch.Generator().manual_seed(2)
    shape = (rows, heads, 5, call.dim)
    given = {
        role: torch.randn(shape, dtype=torch.float64, generator=generator)
        for role in "qkv"
    }
    try:
        found = call.apart(given, places)
    except Exception:
        findings.evidence["rows"] = "one row of positions serves all"
        return
    for role, turned in found.items():
        matrix = findings.near[role]
        right = torch.einsum("btij,bhtj->bhti", matrix[places], given[role])
        # what returns half types is off by 0.02 for entries of 4
        close = 0.1 if findings.turns[role].table is not None else 5 * _NEAR
        # heads that are turned otherwise have been reported
        looked = slice(0, 1 if "other_heads" in findings.mistakes else heads)
        if (turned - right)[:, looked].abs().max() < close:
            continue
        first = torch.einsum("tij,bhtj->bhti", matrix[places[0]], given[role])
        if (turned - first)[:, looked].abs().max() < close:
            findings.mistakes["ignored_rows"] = (
                "every row is turned by the positions of the first: rows with padding are wrong"
            )
        else:
            findings.mistakes["other_rows"] = (
                "rows that are at positions of their own are turned by others"
            )
        return
    findings.evidence["rows"] = "each may be at positions of its own"


# --- Far away ---


def _far(findings: Findings) -> None:
    """Positions up to the length: half types, tables that end or begin again."""
    length = findings.declared.length
    turns = findings.rotating
    if "not_linear" in findings.mistakes or any(
        turn.flaws and turn.reader is None for turn in turns.values()
    ):
        return
    if not turns:
        return
    if length is None:
        places = FAR
    else:
        tried = {*FAR, 385, 4095, length // 4, length // 2, length // 2 + 9}
        tried |= {3 * length // 4 - 2, length - 7, length - 1}
        places = sorted(place for place in tried if 2 <= place < length)
    if not findings.call.places and "offset" not in findings.call.given:
        places = [place for place in places if place <= 4096]
        if any(turn.flaws for turn in turns.values()):
            # whole matrices of a long text are too much
            return
    seen = []
    for place in places:
        pair = torch.tensor([place - 1, place])
        try:
            seen.append((place, _angles(findings, pair)))
        except NotFinite:
            raise
        except ValueError as error:
            findings.evidence["far"] = str(error)
            if length is not None:
                findings.mistakes["too_short"] = (
                    f"{error}, and texts have {length:,} positions"
                )
            break
    if findings.theta is None:
        _steps(findings, seen)
        return
    for role in turns:
        if _compared(findings, role, [(place, one[role]) for place, one in seen]):
            return
    if seen and "far" not in findings.evidence:
        findings.evidence["far"] = f"right up to position {seen[-1][0]:,}"


def _angles(findings: Findings, places: Tensor) -> dict[str, Tensor]:
    """(cosine, sine) of every pair at two places, as (2, 2, pairs), for q and k."""
    call = findings.call
    rows, heads = call.rows_and_heads
    at = places
    if not call.places and "offset" not in call.given:
        at = torch.arange(int(places[-1]) + 1)
    sent = {}
    for role in "qkv":
        turn = findings.turns.get(role, findings.turns["q"])
        x = torch.zeros(rows, heads, len(at), call.dim, dtype=torch.float64)
        x[..., list(turn.first)] = 1.0
        sent[role] = x
    try:
        found = call.apart(sent, at)
    except Exception as error:
        said = f"{findings.name} raised {type(error).__name__} at positions {places[0]} to {places[1]}: {error}"
        raise ValueError(said) from error
    read = {}
    for role, turn in findings.rotating.items():
        if turn.reader is not None:
            cos, sin = turn.reader(findings.at(at)[role][-2:])
            read[role] = torch.stack((cos, sin)) / turn.factor
            continue
        one = found[role][0, 0, -2:]
        if not one.isfinite().all():
            row = int((~one.isfinite().all(-1)).nonzero()[0])
            raise NotFinite(
                f"the rotation of {role} is not finite: NaN or infinity at position {places[row]}, for finite vectors"
            )
        if turn.order:
            one = one[:, list(turn.order)]
        read[role] = torch.stack((one[:, turn.first], one[:, turn.second]))
        read[role] = read[role] / turn.factor
    return read


def _expected(findings: Findings, role: str, places: Tensor) -> Tensor:
    """Angles at places, by frequencies that are exact."""
    turn = findings.turns[role]
    theta = findings.theta
    if (turn.theta - theta).abs().max() > 10 * turn.tolerance:
        # q and k have frequencies of their own
        theta = turn.theta
    return places[:, None] * theta + turn.phase


def _compared(
    findings: Findings, role: str, seen: list[tuple[int, Tensor]]
) -> bool:
    """Say what is wrong with positions far away, if anything is."""
    turn = findings.turns[role]
    wrong = []
    for place, found in seen:
        angles = _expected(findings, role, torch.tensor([place - 1.0, place]))
        off = (found - torch.stack((angles.cos(), angles.sin()))).abs().max().item()
        if off > max(0.02, 3 * turn.tolerance) + 1e-6 * place:
            wrong.append((place, found, off))
    if not wrong:
        return False
    name, said = _cause(findings, role, wrong)
    findings.mistakes[name] = said
    return True


def _cause(findings: Findings, role: str, wrong: list) -> tuple[str, str]:
    """The name of what happens far away: each wrong place is turned like another one, or like none."""
    place, _, off = wrong[0]
    last = min(int(1.02 * wrong[-1][0]) + 2, SEARCHED)
    angles = _expected(findings, role, torch.arange(last, dtype=torch.float64))
    table = torch.stack((angles.cos(), angles.sin()))
    close = max(0.02, 3 * findings.turns[role].tolerance)
    like = {}
    for one, found, _ in wrong:
        near = (table - found[:, 1:]).abs().amax((0, 2))
        if near.min() < close:
            like[one] = int(near.argmin())
    for half, name in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16")):
        if like and all(
            abs(float(torch.tensor(float(one)).to(half)) - other) <= 1
            for one, other in like.items()
        ):
            return "half_positions", (
                f"position {place} is turned like {like.get(place, 'none')}: positions are rounded to {name}"
            )
    for half, name in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16")):
        exact = _expected(
            findings, role, torch.tensor([float(one) for one, *_ in wrong])
        )
        rounded = exact.to(half).double()
        found = torch.stack([found[:, 1] for _, found, _ in wrong], 1)
        if (
            torch.stack((rounded.cos(), rounded.sin())) - found
        ).abs().max() < 2 * close:
            return "half_angles", (
                f"at position {place} cosine and sine are off by {off:.2g}: angles are rounded to {name}"
            )
    if len(like) == len(wrong):
        end = min(like.values())
        still = all(
            (found[:, 0] - found[:, 1]).abs().max() < close
            for one, found, _ in wrong
            if one - 1 > end
        )
        if still and max(like.values()) - end <= 1:
            return "clamped", (
                f"from position {end} on all are turned like {end}: the table ends there, and is read at its end"
            )
        period = math.gcd(*(one - other for one, other in like.items()))
        return "wrapped", (
            f"position {place} is turned like {like[place]}: positions begin again, after {period:,} or a part of it"
        )
    return "other_far", (
        f"at position {place} cosine and sine are off by up to {off:.2g}, and near the start they are right"
    )


def _steps(findings: Findings, seen: list[tuple[int, dict[str, Tensor]]]) -> None:
    """Where frequencies are not known exactly: how far a pair turns from one position to the next."""
    for place, one in seen:
        for role, found in one.items():
            turn: Turn = findings.turns[role]
            angles = torch.atan2(found[1], found[0])
            step, wanted = angles[1] - angles[0], turn.theta
            off = (torch.polar(torch.ones_like(step), step - wanted) - 1).abs()
            if off.max() > 0.1:
                pair = int(off.argmax())
                findings.mistakes["half_positions"] = (
                    f"from position {place - 1} to {place} pair {pair} turns by {step[pair]:+.2f} radians, and near the "
                    f"start by {wanted[pair]:+.2f} (up to whole turns): positions or angles are rounded to a half type"
                )
                return
