"""How q and k are turned: by which frequencies, in which direction, and by tables of which type."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook.diagnose import frequencies, rules
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import HALVES, SINGLE, Turn
from ropebook.diagnose.starting import length, start
from ropebook.diagnose.warps import warp

SAID = {
    "unscaled": "frequencies are those of the base alone: the scaling that was declared is missing",
    "halved_dim": "the base is {square:,.6g} = {base:,.6g}²: half of d stands in the exponent",
    "doubled_dim": "the base is {root:,.6g} = √{base:,.6g}: the factor 2 is missing in the exponent",
    "shifted_exponent": "the exponent is shifted: pair 0 turns by {first:.4g} radians a position instead of {right:.4g}",
    "wider_exponent": "the exponent is divided by the width of the head, not by that of the part that turns",
    "growing_frequencies": "the minus is missing in the exponent: frequencies grow from pair to pair",
    "reversed_frequencies": "the frequencies are in reverse order: pair 0 is the slowest",
    "half_frequencies": "each θ is rounded to a half type, off by up to {off:.2%}",
    "degrees": "angles are taken for degrees: pair 0 turns by {first:.5f} radians a position",
    "turned_twice": "both q and k are turned twice: pair 0 turns by {first:.4g} radians a position",
    "faster": "every pair turns {times:.4g} times as fast as it should",
    "clockwise": "clockwise: pair 0 turns by {first:+.6f} radians a position. Scores still depend on m − n alone, but "
    "they are those of −Δ in place of Δ",
    "still_pairs": "{still} of {pairs} pairs stand still",
    "repeated_frequencies": "frequencies come twice and the slowest not at all, as if a table spread over entries were "
    "cut in half",
    "other_scaling": "frequencies are scaled twice",
}


def turning(findings: Findings) -> None:
    """Everything that the angles and lengths of q and k say."""
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
    """The frequencies of all pairs of the part that turns, 0 where one stands still."""
    if not turn.layout:
        return turn.theta
    first = torch.tensor(turn.first) - turn.begins(rotary_dim)
    at = first // 2 if turn.layout == "interleaved" else first
    theta = torch.zeros(
        max(rotary_dim // 2, int(at.max()) + 1), dtype=torch.float64
    )
    theta[at] = turn.theta
    return theta


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
        findings.mistakes["nothing_turns"] = "no pair turns with the position"
        findings.theta = turn.theta
        return
    width = declared.rotary_dim or turn.rotary_dim
    theta = whole(turn, width)
    expected = declared.frequencies(2 * len(theta))
    if expected is not None and len(expected) != len(theta):
        expected = None
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
        _read(findings, turn, theta)
        findings.theta = None if coarse else turn.theta
    _uneven_angles(findings, turn, uneven)


def _places(findings: Findings, turn: Turn) -> Tensor:
    """The positions by which 0, 1, 2, … are turned."""
    if turn.places:
        return torch.tensor(turn.places, dtype=torch.float64)
    near = len(next(iter(findings.near.values())))
    return torch.arange(near, dtype=torch.float64)


def _based(theta: Tensor, turn: Turn) -> bool:
    """Whether these are the frequencies of some base, not scaled."""
    moving = rules.unwound(theta).abs()
    return (
        frequencies.read(moving, 2 * len(theta), turn.tolerance, None).kind
        == "plain"
    )


def _uneven_angles(findings: Findings, turn: Turn, uneven: bool) -> None:
    """Angles that are no line: rounded to a half type, or something else."""
    if findings.theta is not None and turn.uneven > 1e-4:
        m = _places(findings, turn)[:, None]
        role = next(role for role in findings.turns if findings.turns[role] is turn)
        seen = findings.near[role]
        cos = seen[:, turn.first, turn.first] / turn.factor
        exact = m * findings.theta
        # elsewhere cosines lie where the order of the entries puts them
        if not turn.order and not turn.flaws:
            off = ((exact + turn.phase).cos() - cos).abs().max().item()
            rounded = turn.table is not None or turn.trembles
            if off < (max(2**-8, turn.tolerance) if rounded else 3 * SINGLE):
                # a table of a half type explains it
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
            f"{turn.uneven:.2g} radians"
        )


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
    }
    for name in rule.names:
        if name == "clockwise" and "opposite_signs" in findings.mistakes:
            continue
        if (
            name == "still_pairs"
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
    """Which way pairs turn, by the slow ones: a fast one may turn by more than half a turn a position."""
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


def _read(findings: Findings, turn: Turn, theta: Tensor) -> None:
    """Frequencies of no rule that was declared: what base and what scaling they have."""
    declared = findings.declared
    straight = rules.unwound(theta)
    _direction(findings, straight)
    width = 2 * len(theta)
    found = frequencies.read(straight.abs(), width, turn.tolerance, declared.base)
    findings.base = found.base
    said = [] if found.base is None else [f"{found.base:,.6g}"]
    # what scaling does is said where scaling is
    said += [found.said] if found.kind not in ("by parts", "uneven") else []
    findings.evidence["base"] = ": ".join(said)
    if found.kind == "degrees":
        findings.mistakes["degrees"] = f"angles are taken for degrees: {found.said}"
    else:
        findings.evidence["unit"] = "radians"
    if found.kind == "half":
        findings.mistakes["half_frequencies"] = found.said
    if found.kind in ("linear", "by parts", "uneven"):
        findings.scaling, findings.factor = found.kind, found.factor
        _scaling(findings, found, straight.abs())
    still = int((theta == 0).sum())
    if still and found.kind not in ("one",):
        said = f"{still} of {len(theta)} pairs stand still"
        if declared.inv_freq is not None or 2 * still < len(theta):
            findings.mistakes["still_pairs"] = said
        else:
            findings.undetermined["still_pairs"] = (
                f"{said}, as p-RoPE has it: right only for weights that are trained so. "
                "Declare inv_freq, with zeros for pairs that stand still"
            )
    _base(findings, found, turn)


def _scaling(
    findings: Findings, found: frequencies.Frequencies, theta: Tensor
) -> None:
    told = findings.declared.inv_freq is not None
    if found.kind == "linear" and found.factor < 1:
        times = 1 / found.factor
        said = f"all pairs turn {times:.4g} times as fast as base^(−2i/d)"
        findings.evidence["scaling"] = said
        name = "turned_twice" if abs(times - 2) < 1e-3 else "faster"
        findings.mistakes[name] = said
        return
    said = {
        "linear": f"linear, by {found.factor:.4g}: positions count 1/{found.factor:.4g} each (position interpolation)",
        "by parts": f"by parts, by {found.factor:.4g}, as YaRN or Llama 3 do: {found.said}",
        "uneven": f"of no known kind: {found.said}",
    }[found.kind]
    findings.evidence["scaling"] = said
    if told:
        right = findings.declared.inv_freq
        if len(right) == len(theta):
            said += f". {frequencies.apart(theta, right, 1e-3).capitalize()}"
        findings.mistakes["other_scaling"] = (
            f"not the frequencies that were declared: {said}"
        )
    elif found.kind != "uneven" or found.slowed:
        findings.undetermined["scaling"] = (
            f"{said}. Right only for weights that are used so: declare inv_freq"
        )
    else:
        findings.mistakes["uneven_frequencies"] = found.said


def _base(findings: Findings, found: frequencies.Frequencies, turn: Turn) -> None:
    base = findings.declared.base
    if base is None or found.base is None or found.kind in ("by parts", "uneven"):
        return
    close = 50 * turn.tolerance * math.log(base) if turn.table is not None else 5e-5
    if abs(found.base / base - 1) < close:
        if found.kind == "plain" and findings.declared.inv_freq is not None:
            findings.mistakes["unscaled"] = SAID["unscaled"]
        return
    said = f"the base is {found.base:,.6g}, not {base:,.6g}"
    r = turn.rotary_dim
    if found.base > base and r > 2:
        s = (found.base / base) ** ((r - 2) / r)
        said += f". NTK-aware scaling by {s:.4g} would do that" if s > 1.5 else ""
    findings.mistakes["other_base"] = said


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
        return
    short = {"bfloat16": "bf16", "float16": "fp16"}[name]
    off = 2.0**-9
    if findings.theta is not None and not turn.order and not turn.flaws:
        role = next(role for role in findings.turns if findings.turns[role] is turn)
        cos = findings.near[role][:, turn.first, turn.first]
        angles = _places(findings, turn)[:, None] * findings.theta + turn.phase
        off = min((cos - turn.factor * angles.cos()).abs().max().item(), off)
    findings.mistakes[f"{short}_table"] = (
        f"every cosine and sine is a number of {name}, and the vectors are wider: tables off by up to {off:.2g}"
    )
