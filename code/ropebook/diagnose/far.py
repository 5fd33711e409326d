"""Far positions, up to the declared length. There, half-precision types run out of digits, and tables end or repeat."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook.diagnose.broken import last_good
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import HALVES, NotFinite, Turn, within_half
from ropebook.diagnose.rounding import rounded
from ropebook.diagnose.warps import warp
from ropebook.diagnose.whereabouts import frequencies_of

# The far positions to check. Around these, half-precision types begin to lose positions, and tables end.
FAR = (257, 1003, 2049, 4097, 8193)
# The largest candidate in the search for the position by which a far token is really rotated.
SEARCHED = 2**15


def far(findings: Findings) -> None:
    """Check positions up to the declared length: are they rounded to half precision, and do tables end or repeat?"""
    length = findings.declared.length
    turns = findings.rotating
    if "not_linear" in findings.mistakes or any(
        turn.flaws and turn.reader is None for turn in turns.values()
    ):
        return
    if not turns or any(
        turn.places and warp(turn.places).at is None for turn in turns.values()
    ):
        return
    if length is None:
        places = FAR
    else:
        tried = {*FAR, 385, 4095, length // 4, length // 2, length // 2 + 9}
        tried |= {3 * length // 4 - 2, length - 7, length - 1}
        places = sorted(place for place in tried if 2 <= place < length)
    if not findings.honoured:
        places = [place for place in places if place <= 4096]
        if any(turn.flaws for turn in turns.values()):
            # the full matrices of a long sequence would be too large
            return
    seen = []
    for place in places:
        pair = torch.tensor([place - 1, place])
        try:
            seen.append((place, _angles(findings, pair)))
        except NotFinite as error:
            findings.mistakes.setdefault(
                "not_finite",
                _from_where(findings, seen, place, NotFinite, str(error)),
            )
            break
        except ValueError as error:
            findings.evidence["far"] = str(error)
            if length is not None:
                said = _from_where(findings, seen, place, ValueError, str(error))
                findings.mistakes["too_short"] = (
                    f"{said}, and texts have {length:,} positions"
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


def _from_where(
    findings: Findings, seen: list, place: int, kind: type, said: str
) -> str:
    """Return ``said``, a remark about the far position ``place``, with the last position at which calls still work."""
    low = seen[-1][0] if seen else len(next(iter(findings.near.values()))) - 1

    def good(last: int) -> bool:
        try:
            _angles(findings, torch.tensor([last - 1, last]))
        except kind:
            return False
        return True

    if low >= place - 1:
        return said
    last = last_good(good, low, place)
    how = "are numbers" if kind is NotFinite else "are answered"
    return f"{said}. Positions up to {last:,} {how}, and from {last + 1:,} on they are not: as with a table that ends there"


def _angles(findings: Findings, places: Tensor) -> dict[str, Tensor]:
    """Measure, for q and for k, the cosine and sine of every pair at two positions.

    Returns a tensor (2, 2, pairs) for each role. The first axis is cosine and sine, the second the two positions.
    """
    call = findings.call
    rows, heads = call.rows_and_heads
    at = places
    if not findings.honoured:
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
        one = found[role][0, call.head, -2:]
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


def _expected(
    findings: Findings, role: str, places: Tensor, warped: bool = True
) -> Tensor:
    """Compute the angles at these positions.

    Uses the exact frequencies, or the frequencies measured for this role if they differ.
    """
    turn = findings.turns[role]
    theta = findings.theta
    own = theta.shape != turn.theta.shape
    if own or (turn.theta - theta).abs().max() > 10 * turn.tolerance:
        # this role has its own pairs or frequencies
        theta = turn.theta
    if warped and turn.places:
        places = warp(turn.places).at(places)
    return places[:, None] * theta + turn.phase


def _compared(
    findings: Findings, role: str, seen: list[tuple[int, Tensor]]
) -> bool:
    """Record a mistake if the rotation is wrong at far positions. Returns whether one was recorded."""
    turn = findings.turns[role]
    wrong = []
    for place, found in seen:
        angles = _expected(findings, role, torch.tensor([place - 1.0, place]))
        off = found - torch.stack((angles.cos(), angles.sin()))
        # if only the cosines or only the sines are known, they are enough
        off = off.abs().nan_to_num().max().item()
        if off > _allowed(findings, turn, place):
            wrong.append((place, found, off))
    if not wrong:
        return False
    name, said = _cause(findings, role, wrong)
    if name in ("clamped", "wrapped", "other_far"):
        said += _until(findings, role, wrong[0][0])
    findings.mistakes[name] = said
    return True


def _until(findings: Findings, role: str, place: int) -> str:
    """Describe up to which position the angles are right, given that they are wrong at ``place``.

    Returns a sentence to append.
    """
    if not findings.honoured:
        return ""
    turn = findings.turns[role]

    def good(last: int) -> bool:
        at = torch.tensor([max(last - 1, 0), last])
        angles = _expected(findings, role, at[1:].double())
        off = _angles(findings, at)[role][:, 1:] - torch.stack(
            (angles.cos(), angles.sin())
        )
        return bool(off.abs().nan_to_num().max() <= _allowed(findings, turn, last))

    near = len(next(iter(findings.near.values()))) - 1
    try:
        last = last_good(good, near, place)
    except (ValueError, NotFinite):
        return ""
    return f". Up to position {last:,} angles are right, and from {last + 1:,} on they are not"


def _allowed(findings: Findings, turn: Turn, place: int) -> float:
    """Return the allowed error of a cosine at a position, assuming that float32 angles are accurate to seven digits."""
    # if cosines are rounded, or frequencies are only known from measurements, angles have fewer digits
    known = {"coarse_table", "uneven_angles"} & set(findings.mistakes)
    coarse = (
        known
        or turn.table is not None
        or turn.trembles
        or turn.flaws
        or turn.places
    )
    if coarse or not findings.exact or turn.uneven > 1e-4:
        return max(0.02, 3 * turn.tolerance) + 1e-6 * place
    return 2e-5 + 4e-7 * (1 + place * findings.theta.abs().max().item())


def _cause(findings: Findings, role: str, wrong: list) -> tuple[str, str]:
    """Find the positions by which far tokens are really rotated. Use them to name and describe the mistake."""
    place, _, off = wrong[0]
    last = min(int(1.02 * wrong[-1][0]) + 2, SEARCHED)
    # integers of 8 or 16 bits overflow to negative numbers
    searched = torch.arange(-min(last, 2**15), last, dtype=torch.float64)
    angles = _expected(findings, role, searched, warped=False)
    table = torch.stack((angles.cos(), angles.sin()))
    close = max(0.02, 3 * findings.turns[role].tolerance)
    if wrong[-1][2] < 0.2 and wrong[0][2] < close:
        last_place, _, largest = wrong[-1]
        return "drift", (
            f"angles drift from the right ones as positions grow: at {last_place:,} a cosine or a sine is off by "
            f"{largest:.2g}, more than float32 rounds. The reduction by 2π or the frequencies are not precise enough"
        )
    gone = _gone(findings, role, wrong) or _growing(findings, role, wrong)
    if gone is not None:
        return gone
    like = {}
    for one, found, _ in wrong:
        near = (table - found[:, 1:]).abs().nan_to_num().amax((0, 2))
        if near.min() < close:
            # of equally good matches, take the one nearest to 0
            best = (near < near.min() + 1e-9).nonzero().flatten()
            like[one] = int(searched[best[searched[best].abs().argmin()]])
    rounded = _rounded(findings, role, wrong, like, close)
    if rounded is not None:
        return rounded
    if len(like) == len(wrong):
        end = min(like.values())
        still = all(
            (found[:, 0] - found[:, 1]).abs().nan_to_num().max() < close
            for one, found, _ in wrong
            if one - 1 > end
        )
        if len(like) > 1 and not any(like.values()):
            return "clamped", (
                f"position {place} is not turned at all, and what follows neither: the table ends before"
            )
        if still and max(like.values()) - end <= 1:
            return "clamped", (
                f"from position {end} on all are turned like {end}: the table ends there, and is read at its end"
            )
        period = math.gcd(*(one - other for one, other in like.items()))
        if max(like.values()) - min(like.values()) < period:
            return "wrapped", (
                f"position {place} is turned like {like[place]}: positions begin again, after {period:,} or a part of it"
            )
        return "other_far", f"position {place} is turned like {like[place]}"
    between = _between(findings, role, wrong[0])
    if between is not None:
        return "other_far", between
    return "other_far", (
        f"at position {place} cosine and sine are off by up to {off:.2g}, and near the start they are right"
    )


def _between(findings: Findings, role: str, wrong: tuple) -> str | None:
    """Find the fractional position by which a far token is rotated, as with interpolated positions.

    Returns None if there is none.
    """
    place, found, _ = wrong
    close = max(0.02, 3 * findings.turns[role].tolerance)
    searched = torch.arange(0, 8 * min(place, 4096) + 1, dtype=torch.float64) / 8
    angles = _expected(findings, role, searched, warped=False)
    table = torch.stack((angles.cos(), angles.sin()))
    like = []
    for seen in found.unbind(1):
        near = (table - seen[:, None]).abs().nan_to_num().amax((0, 2))
        if near.min() > close:
            return None
        like.append(searched[near.argmin()].item())
    step = like[1] - like[0]
    return (
        f"position {place} is turned like {like[1]:g}, and the one before like {like[0]:g}: there, from one position to the next "
        f"angles advance by {step:g} positions instead of 1, as positions that are interpolated (squeezed, divided) do"
    )


def _growing(findings: Findings, role: str, wrong: list) -> tuple[str, str] | None:
    """Check whether the error of each pair's angle grows in proportion to the position."""
    if findings.turns[role].flaws:
        return None
    rates = []
    for place, found, _ in wrong:
        right = _expected(findings, role, torch.tensor([float(place)]))[0]
        off = within_half(torch.atan2(found[1, 1], found[0, 1]) - right)
        rates.append(off / place)
    first, last = rates[0], wrong[-1][0]
    pair = int(first.abs().argmax())
    grown = [
        rate
        for rate, (place, *_) in zip(rates, wrong, strict=True)
        if (first.abs() * place).max() < 2
    ]
    if len(grown) < 2 or first.abs().max() * wrong[0][0] > 0.3:
        return None
    if not all(
        (rate - first).abs().max() < 0.3 * first.abs().max() for rate in grown
    ):
        return None
    return "drift", (
        f"angles drift from the right ones as positions grow, in proportion to them: the error of pair {pair} is "
        f"{first[pair] * wrong[0][0]:+.2g} radians at position {wrong[0][0]:,} and about {first[pair] * last:+.2g} at {last:,}. "
        "Angles are inexact: reduced by a 2π of few digits, summed up with rounding, or of frequencies that are slightly off"
    )


def _gone(findings: Findings, role: str, wrong: list) -> tuple[str, str] | None:
    """Check whether wrong tokens at far positions are returned as zeros or with the wrong length.

    The description names the first such position.
    """
    sizes = [found[:, 1].square().sum(0).sqrt() for _, found, _ in wrong]
    if not all(size.isfinite().all() for size in sizes):
        return None
    if all(size.max() < 1e-3 for size in sizes):
        name, how = (
            "zeros",
            "entries that should be rotated come back as zeros, so vectors vanish",
        )
    elif all(
        abs(size.max() - 1) > 1e-2 and (size - size[0]).abs().max() < 1e-3
        for size in sizes
    ):
        times = f"{sizes[0][0].item():.4g} times as long as near the start"
        name, how = "lengths", f"vectors come back with another length, {times}"
    else:
        return None
    turn = findings.turns[role]
    if turn.flaws or not findings.honoured:
        return name, f"from position {wrong[0][0]:,} or an earlier one on {how}"
    like = wrong[0][1][:, 1]

    def good(last: int) -> bool:
        found = _angles(findings, torch.tensor([max(last - 1, 0), last]))[role][
            :, 1
        ]
        alike = found.square().sum(0).sqrt() - like.square().sum(0).sqrt()
        return bool(alike.abs().max() > 1e-3)

    near = len(next(iter(findings.near.values()))) - 1
    last = last_good(good, near, wrong[0][0])
    end = (
        f": the table ends there (it covers only {last + 1:,} positions)"
        if name == "zeros"
        else ""
    )
    return (
        name,
        f"from position {last + 1:,} on {how}{end}. Up to {last:,} they are right",
    )


def _rounded(
    findings: Findings,
    role: str,
    wrong: list,
    like: dict[int, int],
    close: float,
) -> tuple[str, str] | None:
    """Check whether positions or angles are rounded to a half-precision type.

    If both might be, choose the one that fits better.
    """
    place, _, off = wrong[0]
    at = torch.tensor([float(one) for one, *_ in wrong])
    found = torch.stack([found[:, 1] for _, found, _ in wrong], 1)
    turn, name, how = findings.turns[role], None, ""
    if not turn.places and not turn.flaws:
        theta = frequencies_of(findings, turn)
        said = rounded(found, at, theta, turn.phase, 2 * close)
        if said is not None:
            name, how = said
    if name is None and "half_angles" in findings.mistakes:
        return "half_angles", findings.mistakes["half_angles"]
    for kind in HALVES:
        short = [float(torch.tensor(float(one)).to(kind)) for one in like]
        near = zip(short, like.values(), strict=True)
        moved = any(one != other for one, other in zip(short, like, strict=True))
        if name is None and moved and all(abs(x - y) <= 1 for x, y in near):
            name = "half_positions"
            how = f"positions are rounded to {str(kind).removeprefix('torch.')}"
    if name == "half_positions" and place in like:
        return name, f"{how}: position {place} is rotated like {like[place]}"
    if name is not None:
        return (
            name,
            f"{how}: at position {place} cosine and sine are off by {off:.2g}",
        )
    return None


def _steps(findings: Findings, seen: list[tuple[int, dict[str, Tensor]]]) -> None:
    """Check by how much pairs rotate from one far position to the next, when the exact frequencies are unknown."""
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
