"""The base and the scaling of frequencies that don't follow the declared rule."""

from __future__ import annotations

import math

from torch import Tensor

from ropebook.diagnose import frequencies, rules
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import Turn
from ropebook.diagnose.versus import power, shifted

UNSCALED = "frequencies are those of the base alone: the scaling that was declared is missing"


def read(findings: Findings, turn: Turn, theta: Tensor) -> None:
    """Record the base and the scaling of frequencies that don't follow the declared rule."""
    declared = findings.declared
    straight = rules.unwound(theta)
    width = 2 * len(theta)
    found = frequencies.read(straight.abs(), width, turn.tolerance, declared.base)
    findings.base = found.base
    said = [] if found.base is None else [f"{found.base:,.6g}"]
    # the evidence for scaling is recorded separately
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
        said = f"{still} of {len(theta)} pairs stand still: they are not rotated (frequency 0)"
        known = declared.inv_freq is not None or declared.whole
        if known or 2 * still < len(theta):
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
        findings.mistakes[name] = said + _why(findings, found, theta)
        return
    said = {
        "linear": f"linear, by {found.factor:.4g}: positions count 1/{found.factor:.4g} each (position interpolation)",
        "by parts": f"by parts, by {found.factor:.4g}, as YaRN or Llama 3 do: {found.said}",
        "uneven": f"of no known kind: {found.said}",
    }[found.kind]
    findings.evidence["scaling"] = said
    if told:
        findings.mistakes["other_scaling"] = (
            f"not the frequencies that were declared: {said}"
        )
    elif findings.declared.whole:
        name = "uneven_frequencies" if found.kind == "uneven" else "other_scaling"
        findings.mistakes[name] = (
            f"frequencies are scaled, though no scaling was declared: {said}{_why(findings, found, theta)}. If weights are "
            "used so, declare inv_freq"
        )
    elif found.kind != "uneven" or found.slowed:
        findings.undetermined["scaling"] = (
            f"{said}. Right only for weights that are used so: declare inv_freq"
        )
    else:
        findings.mistakes["uneven_frequencies"] = found.said


def _why(findings: Findings, found: frequencies.Frequencies, theta: Tensor) -> str:
    """Suggest a cause if all frequencies are multiplied by the same factor. Returns "" if no known cause fits."""
    base = found.base or findings.declared.base
    if found.kind != "linear" or base is None:
        return ""
    return shifted(found.factor, base, 2 * len(theta))


def _base(findings: Findings, found: frequencies.Frequencies, turn: Turn) -> None:
    base = findings.declared.base
    if base is None or found.base is None or found.kind in ("by parts", "uneven"):
        return
    close = 50 * turn.tolerance * math.log(base) if turn.table is not None else 5e-5
    if abs(found.base / base - 1) < close:
        if found.kind == "plain" and findings.declared.inv_freq is not None:
            findings.mistakes["unscaled"] = UNSCALED
        return
    said = f"the base is {found.base:,.6g}, not {base:,.6g}"
    r = turn.rotary_dim
    said += power(found.base, base, r)
    if found.base > base and r > 2 and found.kind == "plain":
        s = (found.base / base) ** ((r - 2) / r)
        said += f". NTK-aware scaling by {s:.4g} would do that" if s > 1.5 else ""
    findings.mistakes["other_base"] = said
