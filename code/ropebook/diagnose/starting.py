"""Where the positions of q and k start, and whether the vectors keep their lengths."""

from __future__ import annotations

import math

from torch import Tensor

from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import Turn, within_half


def start(findings: Findings) -> None:
    """Record whether q and k are rotated at position 0, and whether both count positions from the same start."""
    begins = {}
    for role, turn in findings.rotating.items():
        found = begin(turn)
        if found is None:
            findings.mistakes["turned_start"] = (
                f"at position 0 pairs are turned already, by up to {turn.phase.abs().max():.2g} radians: an angle (phase) is "
                f"added that does not depend on the position{_each(turn)}"
            )
            return
        quarter, begins[role] = found
        if quarter and "swapped_cos_sin" not in findings.mistakes:
            findings.mistakes["swapped_cos_sin"] = (
                "cosine and sine have changed places: at position 0 every pair is turned by a quarter already"
            )
            # swapping cosine and sine turns an angle φ into π/2 − φ, so the reversed direction is part of this mistake
            backwards = findings.mistakes.pop("clockwise", None)
            if backwards is None:
                findings.mistakes["clockwise"] = (
                    "clockwise, if cosine and sine change places again"
                )
    values = list(begins.values())
    if len(values) > 1 and abs(values[0] - values[1]) > 0.01:
        findings.mistakes["shifted_key"] = (
            f"q counts positions from {values[0]:.3g} and k from {values[1]:.3g}: "
            f"k is rotated as if it were {_count(abs(values[1] - values[0]))} "
            f"{'later' if values[1] > values[0] else 'earlier'} than q. Scores are those of a distance that is "
            f"{values[1] - values[0]:+.3g} off"
        )
    elif values and abs(values[0]) > 0.01:
        findings.evidence["start"] = (
            f"positions count from {values[0]:.3g}: scores do not see it, if all queries and keys do"
        )
        if findings.declared.whole and findings.call.places:
            way = "later" if values[0] > 0 else "earlier"
            findings.undetermined["start"] = (
                f"every token is rotated as if it were {_count(abs(values[0]))} {way} than the one that is given ({values[0]:+.3g}, "
                "an offset that all positions share, so that counting starts elsewhere). Scores don't see it as long as this "
                "function rotates every query and every key; keys in a cache that other code filled would be off by as much"
            )
    elif "swapped_cos_sin" not in findings.mistakes:
        findings.evidence["start"] = "nothing is turned at position 0"


def _count(positions: float) -> str:
    return "1 position" if positions == 1 else f"{positions:.3g} positions"


def _each(turn: Turn) -> str:
    one = turn.phase[0]
    alike = (turn.phase - one).abs().max() < 10 * turn.tolerance
    if alike and abs(abs(one.item()) - math.pi) < 0.01:
        return ", half a turn of every pair: what is rotated comes back negated (with the opposite sign)"
    return f", the same for every pair: {one:+.4g} radians" if alike else ""


def _factor(factors: list[float], right: float) -> str:
    """Explain how the attention factor was misused. Returns "" if no explanation fits."""
    for times, said in (
        (0, "the attention factor (mscale) is not applied"),
        (2, "the attention factor (mscale) is applied twice"),
        (3, "the attention factor (mscale) is applied three times"),
        (-1, "vectors are divided by the attention factor (mscale)"),
    ):
        if right != 1 and all(
            abs(one / right**times - 1) < 1e-3 for one in factors
        ):
            return f": {said}"
    return ""


def begin(turn: Turn) -> tuple[float, float] | None:
    """Explain the angles at position 0 as a position, or a quarter turn plus a position.

    Returns None if neither fits.
    """
    close = 10 * turn.tolerance
    for quarter in (0.0, math.pi / 2, -math.pi / 2):
        phase = within_half(turn.phase - quarter)
        if phase.abs().max() < close:
            return quarter, 0.0
    for quarter in (0.0, math.pi / 2, -math.pi / 2):
        first = _first(turn, within_half(turn.phase - quarter), close)
        if first is not None:
            return quarter, first
    return None


def _first(turn: Turn, phase: Tensor, close: float) -> float | None:
    """Find the position whose angles equal these phases. Returns None if there is none."""
    moving = turn.theta.abs() > 1e-3
    if not moving.any():
        return None
    theta, phase = turn.theta[moving], phase[moving]
    found = (phase[-1] / theta[-1]).item()
    whole = round(found)
    for value in (whole, found):
        if within_half(phase - value * theta).abs().max() < max(close, 0.02):
            return float(value)
    return None


def length(findings: Findings) -> None:
    """Record whether q and k keep their lengths or are multiplied by the declared attention factor."""
    turns = findings.rotating
    factors = {role: turn.factor for role, turn in turns.items()}
    close = max(turn.tolerance for turn in turns.values())
    declared = findings.declared.attention_factor
    right = 1.0 if declared is None else declared
    if all(abs(factor / right - 1) < close for factor in factors.values()):
        off = max(abs(factor - right) for factor in factors.values())
        findings.evidence["lengths"] = (
            f"kept, up to {max(off, 1e-16):.0g}"
            if right == 1
            else f"times {right:.4g}, as declared"
        )
        return
    each = [
        f"{role if findings.both else 'x'} comes back "
        + (
            f"{factor:.4g} times as long"
            if abs(factor - 1) > close
            else "as long as it was"
        )
        for role, factor in factors.items()
    ]
    scores = math.prod(factors.values()) ** (1 if len(factors) > 1 else 2)
    said = f"{', '.join(each)}; scores are {scores:.4g} times as large"
    largest = max(factors.values())
    alike = largest - min(factors.values()) < close
    s = math.exp((largest - 1) / 0.1) if largest < 3 else math.inf
    if (
        declared is None
        and alike
        and largest > 1
        and findings.scaling == "by parts"
    ):
        if abs(s / findings.factor - 1) < 1e-2:
            said += f": YaRN's factor for s = {s:.3g}"
        findings.evidence["lengths"] = said
        return
    if declared is not None:
        said += f", and {right**2:.4g} was declared{_factor(list(factors.values()), right)}"
    elif findings.declared.inv_freq is not None and alike and largest > 1:
        findings.undetermined["lengths"] = f"{said}: declare attention_factor"
        return
    findings.mistakes["longer" if scores >= right**2 else "shorter"] = said
