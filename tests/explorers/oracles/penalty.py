"""Reference values for the Penalty explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import torch

from ropebook.explorers.penalty import REACH, STEP
from ropebook.real import rule
from ropebook.real.bias import at


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``plain`` is the mean score at each distance for the unchanged model, and ``changed`` is the same with the pairs
    ``from`` … ``to`` slowed down. For both curves there is the value at the dial's distance (``…Here``), and the point
    where the curve is lowest (``…Lowest``). ``plainLosses`` has the unchanged model's measured losses by position, and
    ``plainLoss`` their means within and beyond the trained length. ``losses`` and ``loss`` have those of the changed
    model, if they were measured.

    >>> from ropebook.explorers.penalty import Penalty
    >>> data = compute(Penalty(first=26, last=22).dials())
    >>> data["from"], data["to"], data["changedHere"] < data["plainHere"]
    (22, 26, True)
    """
    bias = dials["bias"]
    low, high = sorted((dials["first"], dials["last"]))
    theta = torch.tensor(bias["theta"], dtype=torch.float64)
    slowed = theta.clone()
    slowed[low : high + 1] /= dials["factor"]
    amplitudes = torch.complex(*(torch.tensor(bias[part], dtype=torch.float64) for part in ("real", "imag")))
    places = torch.arange(0, REACH + 1, STEP, dtype=torch.float64)
    here = torch.tensor([dials["distance"]], dtype=torch.float64)
    curves = {name: at(amplitudes, rates, places) for name, rates in (("plain", theta), ("changed", slowed))}
    key = "" if dials["factor"] == 1 else f"{low}-{high}/{dials['factor']:.17g}"
    losses = bias["losses"].get(key)
    return {
        "from": low,
        "to": high,
        **{name: curve.tolist() for name, curve in curves.items()},
        "plainHere": at(amplitudes, theta, here).item(),
        "changedHere": at(amplitudes, slowed, here).item(),
        **{f"{name}Lowest": int(places[curve.argmin()]) for name, curve in curves.items()},
        "losses": losses,
        "plainLosses": bias["losses"][""],
        "loss": losses and in_bands(losses),
        "plainLoss": in_bands(bias["losses"][""]),
    }


def in_bands(losses: list[float]) -> list[float]:
    return [rule.band_mean(losses, band) for band in (rule.WITHIN, rule.BEYOND)]


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry. For a score, a sum of cosines and sines, it is the sum of the
    amplitudes. For a loss, it is the loss itself."""
    data, bias = compute(dials), dials["bias"]
    size = sum(map(abs, [*bias["real"], *bias["imag"]]))
    return {
        **{name: [size] * len(data[name]) for name in ("plain", "changed")},
        **dict.fromkeys(("plainHere", "changedHere"), size),
        **dict.fromkeys(("from", "to", "plainLowest", "changedLowest"), 0.0),
        **{name: data[name] for name in ("loss", "plainLoss") if data[name]},
    }
