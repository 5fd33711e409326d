"""How q and k are rotated: by which frequencies, in which direction, and with tables of which type."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from ropebook import rope
from ropebook.diagnose import frequencies, rules
from ropebook.diagnose.bands import banded
from ropebook.diagnose.differences import further
from ropebook.diagnose.findings import Declared, Findings
from ropebook.diagnose.measures import HALVES, SINGLE, Turn
from ropebook.diagnose.names import part
from ropebook.diagnose.rounding import coarse, rounded
from ropebook.diagnose.scaling import UNSCALED, read
from ropebook.diagnose.starting import length, start
from ropebook.diagnose.versus import compared
from ropebook.diagnose.warps import warp

SAID = {
    "unscaled": UNSCALED,
    "halved_dim": "the base is {square:,.6g} = {base:,.6g}²: half of d stands in the exponent",
    "doubled_dim": "the base is {root:,.6g} = √{base:,.6g}: the factor 2 is missing in the exponent",
    "shifted_exponent": "the exponent is shifted: pair 0 turns by {first:.4g} radians a position instead of {right:.4g}",
    "wider_exponent": "the exponent is divided by the width of the head, not by that of the part that turns",
    "growing_frequencies": "the minus is missing in the exponent: frequencies grow from pair to pair",
    "reversed_frequencies": "the frequencies are in reverse order: pair 0 is the slowest",
    "half_frequencies": "each frequency (θ) is rounded to a half type, off by up to {off:.2%}",
    "degrees": "angles are taken for degrees: pair 0 turns by {first:.5f} radians a position",
    "turned_twice": "both q and k are rotated twice, so angles are doubled: pair 0 turns by {first:.4g} radians a position{unscaled}",
    "faster": "every pair turns {times:.4g} times as fast as it should{unscaled}",
    "clockwise": "clockwise, the opposite direction (a sign is reversed): pair 0 turns by {first:+.6f} radians a position. Scores still depend on m − n alone, but "
    "they are those of −Δ in place of Δ",
    "still_pairs": "{still} of {pairs} pairs stand still: they are not rotated (frequency 0)",
    "repeated_frequencies": "frequencies come twice and the slowest not at all, as if a table spread over entries were "
    "cut in half",
    "other_scaling": "frequencies are scaled twice",
}


def turning(findings: Findings) -> None:
    """Record everything that follows from the angles and lengths of q and k."""
    turn = findings.main
    _frequencies(findings, turn)
    rounded = [one for one in findings.rotating.values() if one.table is not None]
    _table(findings, rounded[0] if rounded else turn)
    start(findings)
    length(findings)
    for turned in findings.rotating.values():
        if turned.places:
            found = warp(turned.places)
            findings.mistakes[found.name] = found.said


def whole(turn: Turn, rotary_dim: int) -> Tensor:
    """Return the frequencies of all pairs in the rotated part. Pairs that don't rotate have frequency 0."""
    at = numbers_of(turn, rotary_dim)
    if at is None:
        return turn.theta
    theta = torch.zeros(
        max(rotary_dim // 2, int(at.max()) + 1), dtype=torch.float64
    )
    theta[at] = turn.theta
    return theta


def numbers_of(turn: Turn, rotary_dim: int) -> Tensor | None:
    """Return the indices of these pairs within the rotated part. Returns None if the layout is unknown."""
    layout = turn.layout
    if len(turn.first) == 1:
        # a single pair fits either layout, so use the distance between its entries
        apart = turn.second[0] - turn.first[0]
        layout = {rotary_dim // 2: "half", 1: "interleaved"}.get(apart)
    if not layout:
        return None
    first = torch.tensor(turn.first) - turn.begins(rotary_dim)
    return first // 2 if layout == "interleaved" else first


def by_declared(matrix: Tensor, turn: Turn, declared: Declared) -> Turn:
    """If the measured angles don't fit the positions, use the declared frequencies to find the positions that do fit.

    ``matrix`` contains the matrices that ``turn`` describes, at positions 0, 1, 2, ….
    """
    strange = turn.places and warp(turn.places).at is None
    bent = turn.uneven > max(10 * turn.tolerance, 1e-2)
    moved = strange or bent or turn.places
    if turn.kind != "rotation" or turn.flaws or turn.order or not moved:
        return turn
    expected = declared.frequencies(declared.rotary_dim or turn.rotary_dim)
    numbers = None if expected is None else numbers_of(turn, 2 * len(expected))
    if numbers is None or int(numbers.max()) >= len(expected):
        return turn
    theta = expected[numbers]
    first, second = list(turn.first), list(turn.second)
    seen = torch.complex(matrix[:, first, first], matrix[:, second, first])
    tried = torch.arange(-len(seen), 2 * len(seen), dtype=torch.float64)
    right = torch.polar(torch.ones(1, dtype=torch.float64), tried[:, None] * theta)
    off = (seen[:, None] / turn.factor - right).abs().amax(-1)
    if off.amin(1).max() > max(1e-3, 2 * turn.tolerance):
        return turn
    places = tuple(tried[off.argmin(1)].int().tolist())
    if places == turn.places or places == tuple(range(len(places))):
        return turn
    some = all(place in (0, m) for m, place in enumerate(places)) and any(places)
    if not (strange or bent or some):
        return turn
    return replace(
        turn, theta=theta, phase=torch.zeros_like(theta), uneven=0.0, places=places
    )


def _frequencies(findings: Findings, turn: Turn) -> None:
    declared = findings.declared
    uneven = turn.uneven > max(10 * turn.tolerance, 1e-2)
    coarse = turn.table is not None or turn.uneven > 1e-4
    if findings.call.tables:
        findings.theta = turn.theta
        said = "not seen: angles come from the tables that it is given"
        findings.evidence["base"] = said
        _direction(findings, turn.theta)
        _uneven_angles(findings, turn, uneven)
        return
    if not turn.theta.any():
        findings.mistakes["nothing_turns"] = (
            "no pair rotates with the position: all frequencies are 0"
        )
        findings.theta = turn.theta
        return
    width = declared.rotary_dim or turn.rotary_dim
    theta = whole(turn, width)
    expected = declared.frequencies(2 * len(theta))
    if expected is not None and len(expected) != len(theta):
        expected = None
    if _rounded_angles(findings, turn, expected):
        return
    rule = None
    if expected is not None:
        rule = rules.explained(
            theta, expected, dim=turn.dim, base=declared.base, coarse=coarse
        )
        two = rule is not None and {"unscaled", "turned_twice"} <= set(rule.names)
        if two or (rule is None and not (len(theta) > 1 and _based(theta, turn))):
            rule = (
                rules.uniform(
                    theta,
                    expected,
                    dim=turn.dim,
                    base=declared.base,
                    coarse=coarse,
                )
                or rule
            )
    if rule is not None:
        _named(findings, rule, theta, expected)
        exact = rule.theta[rule.theta != 0]
        findings.exact = len(exact) == len(turn.theta)
        findings.theta = exact if findings.exact else turn.theta
    else:
        _direction(findings, rules.unwound(theta))
        read(findings, turn, theta)
        findings.theta = None if coarse else turn.theta
    _uneven_angles(findings, turn, uneven)
    if expected is not None:
        _pair_by_pair(findings, theta, expected, turn, rule is not None)


# Frequency mistakes whose sentences don't say which pairs are affected.
_VAGUE = (
    "uneven_frequencies",
    "other_scaling",
    "other_base",
    "still_pairs",
    "repeated_frequencies",
    "reversed_frequencies",
    "unscaled",
    "faster",
    "clockwise",
)


def _pair_by_pair(
    findings: Findings,
    theta: Tensor,
    expected: Tensor,
    turn: Turn,
    ruled: bool,
) -> None:
    """Extend the sentence about frequencies with a pair-by-pair comparison to the frequencies that the weights need."""
    name = next((one for one in _VAGUE if one in findings.mistakes), None)
    unnamed = not findings.undetermined and not any(
        part(one) == "frequencies" for one in findings.mistakes
    )
    known = findings.declared.whole or findings.declared.inv_freq is not None
    coarse = turn.table is not None or turn.uneven > 1e-4
    if name is None and not (unnamed and known and not coarse and not ruled):
        return
    close = 1e-3 if turn.table is None and turn.uneven < 1e-4 else 1e-2
    if findings.declared.whole and name is None and turn.uneven < 1e-5:
        close = 1e-4
    if (theta[len(theta) // 2 :] < 0).all():
        theta = -theta
    said = compared(rules.unwound(theta), expected, close)
    bands = banded(rules.unwound(theta), expected, findings.declared.base)
    if said is not None and bands is not None:
        said = f"{said}. {bands}"
    if said is not None and name is None:
        name = "still_pairs" if (theta == 0).any() else "uneven_frequencies"
        findings.mistakes[name] = said
    elif said is not None:
        findings.mistakes[name] += further(said)


def _rounded_angles(
    findings: Findings, turn: Turn, expected: Tensor | None
) -> bool:
    """Check whether the angles are those that the weights need, except for rounding. If so, record the rounding."""
    if (
        expected is None
        or turn.flaws
        or turn.order
        or turn.places
        or turn.phase.any()
    ):
        return False
    numbers = numbers_of(turn, 2 * len(expected))
    if numbers is None or int(numbers.max()) >= len(expected):
        return False
    expected = expected[numbers]
    role = next(role for role in findings.turns if findings.turns[role] is turn)
    seen = findings.near[role]
    first, second = list(turn.first), list(turn.second)
    found = torch.stack((seen[:, first, first], seen[:, second, first]))
    close = 2e-5 if turn.table is None else 2**-8
    at = _places(findings, turn)
    said = rounded(found / turn.factor, at, expected, turn.phase, close)
    if said is None or said[0] != "half_angles":
        wide = turn.table is None or turn.trembles
        said = coarse(found / turn.factor, at, expected) if wide else None
        if said is None:
            return False
    name, how = said
    findings.mistakes[name] = how
    if name == "half_angles":
        findings.mistakes[name] = (
            f"{how} before their cosine and sine are taken: near the start they are off by up to {turn.uneven:.2g} radians, "
            "and the further the more"
        )
    findings.theta, findings.exact = expected, True
    findings.base = findings.declared.base
    findings.evidence["unit"] = "radians"
    _direction(findings, expected)
    return True


def _places(findings: Findings, turn: Turn) -> Tensor:
    """Return the positions by which tokens at 0, 1, 2, … are really rotated."""
    if turn.places:
        return torch.tensor(turn.places, dtype=torch.float64)
    near = len(next(iter(findings.near.values())))
    return torch.arange(near, dtype=torch.float64)


def _based(theta: Tensor, turn: Turn) -> bool:
    """Check whether these are the unscaled frequencies of some base."""
    moving = rules.unwound(theta).abs()
    return (
        frequencies.read(moving, 2 * len(theta), turn.tolerance, None).kind
        == "plain"
    )


def _uneven_angles(findings: Findings, turn: Turn, uneven: bool) -> None:
    """Record angles that are not proportional to the position, whether because of rounding or for another reason."""
    if findings.theta is not None and turn.uneven > 1e-4:
        m = _places(findings, turn)[:, None]
        role = next(role for role in findings.turns if findings.turns[role] is turn)
        seen = findings.near[role]
        cos = seen[:, turn.first, turn.first] / turn.factor
        exact = m * findings.theta
        # with permuted entries or other flaws, the cosines are elsewhere in the matrix
        if not turn.order and not turn.flaws:
            off = ((exact + turn.phase).cos() - cos).abs().max().item()
            rounded = turn.table is not None or turn.trembles
            if off < (max(2**-8, turn.tolerance) if rounded else 3 * SINGLE):
                # a half-precision table explains the deviation
                return
            for half in HALVES:
                other = (exact.to(half).double() + turn.phase).cos()
                close = 2e-3 if rounded else min(2e-3, off / 4)
                if (other - cos).abs().max() < close + turn.tolerance:
                    findings.mistakes["half_angles"] = (
                        "angles are rounded to a half type before their cosine and sine are taken: near the start they "
                        f"are off by up to {turn.uneven:.2g} radians, and the further the more"
                    )
                    return
            uneven = uneven or (findings.exact and not rounded and not turn.places)
    if uneven:
        findings.mistakes["uneven_angles"] = (
            "angles are not proportional to the position: they miss a straight line by up to "
            f"{turn.uneven:.2g} radians{_slightly(turn.uneven)}"
        )


def _slightly(uneven: float) -> str:
    if uneven > 0.02:
        return ""
    return ". They are slightly off, as inexact angles, cosines and sines are (a 2π of few digits, a coarse sine, rounding)"


def _named(
    findings: Findings, rule: rules.Rule, theta: Tensor, expected: Tensor
) -> None:
    declared = findings.declared
    base = declared.base or 1.0
    moving = theta != 0
    values = {
        "base": base,
        "square": base**2,
        "root": base**0.5,
        "first": theta[0].item(),
        "right": expected[0].item(),
        "off": (rule.theta / expected - 1).abs().max().item(),
        "times": (rule.theta[-1] / expected[-1]).abs().item(),
        "still": int((~moving).sum()),
        "pairs": len(theta),
        "unscaled": "",
    }
    if declared.inv_freq is not None and declared.base is not None:
        plain = rope.inv_freq(2 * len(expected), base)
        times = (rule.theta / plain).abs()
        if (times / times[0] - 1).abs().max() < 1e-3 and abs(times[0] - 1) > 1e-3:
            values["unscaled"] = (
                f", and {times[0]:.4g} times as fast as unscaled: the scaling's factor multiplies or divides wrongly"
            )
    for name in rule.names:
        if name == "clockwise" and "opposite_signs" in findings.mistakes:
            continue
        if (
            name == "still_pairs"
            and not declared.whole
            and 2 * values["still"] >= len(theta)
            and declared.inv_freq is None
            and declared.rotary_dim is None
        ):
            findings.undetermined["still_pairs"] = (
                f"{SAID[name].format(**values)}, as p-RoPE has it: right only for weights that are trained so. "
                "Declare inv_freq, with zeros for pairs that stand still"
            )
            continue
        findings.mistakes[name] = SAID[name].format(**values)
    exponent = {"halved_dim": base**2, "doubled_dim": base**0.5}
    known = [exponent[name] for name in rule.names if name in exponent]
    if declared.base is not None:
        findings.base = known[0] if known else declared.base
        findings.evidence["base"] = f"{findings.base:,.6g}"
    else:
        findings.evidence["base"] = (
            "not seen: frequencies are those that were declared"
        )
    if "degrees" not in rule.names:
        findings.evidence["unit"] = "radians"
    _direction(findings, rule.theta)


def _direction(findings: Findings, theta: Tensor) -> None:
    """Record the direction of rotation.

    We rely on the slow pairs, because fast pairs may rotate by more than half a turn per position.
    """
    moving = theta[theta != 0]
    if not len(moving):
        return
    clockwise = bool((moving[len(moving) // 2 :] < 0).double().mean() > 0.5)
    first = theta[0].item()
    if not clockwise:
        said = f"counter-clockwise: pair 0 turns by {first:+.6f} radians a position"
        findings.evidence["direction"] = said
    elif "opposite_signs" not in findings.mistakes:
        findings.mistakes.setdefault(
            "clockwise", SAID["clockwise"].format(first=first)
        )


def _table(findings: Findings, turn: Turn) -> None:
    evidence, call = findings.evidence, findings.call
    if turn.table is None:
        evidence["table"] = "wider than a half type"
        return
    name = str(turn.table).removeprefix("torch.")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, 4, call.dim, dtype=torch.float64, generator=generator)
    turned = call(x, x, x, torch.arange(4))[0]
    if torch.equal(turned.to(turn.table).double(), turned):
        evidence["table"] = f"not seen: what it returns is rounded to {name}"
        if findings.declared.whole:
            findings.mistakes["rounded_result"] = (
                f"what comes back is rounded to {name}, though the input is not: precision is lost"
            )
        return
    short = {"bfloat16": "bf16", "float16": "fp16"}[name]
    off = 2.0**-9
    known = findings.theta is not None and len(findings.theta) == len(turn.first)
    if known and not turn.order and not turn.flaws:
        role = next(role for role in findings.turns if findings.turns[role] is turn)
        cos = findings.near[role][:, turn.first, turn.first]
        angles = _places(findings, turn)[:, None] * findings.theta + turn.phase
        off = min((cos - turn.factor * angles.cos()).abs().max().item(), off)
    findings.mistakes[f"{short}_table"] = (
        f"every cosine and sine is rounded to {name}, though the vectors are not: the tables are off by up to {off:.2g}"
    )
