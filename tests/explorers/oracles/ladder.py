"""Reference values for the Ladder explorer, computed in float64 with the book's modules."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from ropebook import extrapolation
from ropebook.explorers.ladder import (
    METHODS,
)
from ropebook.sinusoidal import inv_freq, wavelengths


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``target`` is L′ as an integer. ``wavelengths`` has one entry per pair, and ``turned`` is the number of pairs that
    complete a turn within L. ``beyond`` is the largest angle, in radians, by which any pair exceeds its trained range
    at L′ if no method is used. For each of the methods ``shown``, ``stretch`` is the factor on each pair's wavelength,
    and ``left`` is the largest excess angle that the method leaves.

    >>> from ropebook.explorers.ladder import Ladder
    >>> figure = Ladder(linear=True, yarn=True)  # Llama 2, stretched four times
    >>> data = compute(figure.dials())
    >>> data["turned"], data["shown"], round(data["beyond"], 1), [round(left, 3) for left in data["left"]]
    (46, ['linear', 'yarn'], 16.4, [0.001, 0.001])
    """
    theta = inv_freq(dials["dim"], dials["base"])
    length, target = dials["trained_length"], target_length(dials)
    shown = methods(dials)
    return {
        "target": target,
        "wavelengths": wavelengths(dials["dim"], dials["base"]).tolist(),
        "turned": int(extrapolation.turned(theta, length).sum()),
        "beyond": extrapolation.overshoot(theta, length, target, theta).max().item(),
        "shown": list(shown),
        "stretch": [extrapolation.stretch(method, theta).tolist() for method in shown.values()],
        "left": [
            extrapolation.overshoot(theta, length, target, method(theta)[0]).max().item() for method in shown.values()
        ],
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    An angle beyond the trained range is the difference between two angles. Neither is larger than the angle of the
    first pair that doesn't complete a turn.
    """
    data = compute(dials)
    slow = data["wavelengths"][data["turned"] :]
    largest = data["target"] * 2 * math.pi / slow[0] if slow else 0.0
    return {
        "target": 0.0,
        "wavelengths": data["wavelengths"],
        "turned": 0.0,
        "beyond": largest,
        "stretch": data["stretch"],
        "left": [largest] * len(data["left"]),
    }


def target_length(dials: dict[str, Any]) -> int:
    """Return L′ = s·L, rounded down.

    >>> target_length({"trained_length": 4096, "factor": 2.5})
    10240
    """
    return math.floor(dials["trained_length"] * dials["factor"])


def methods(dials: dict[str, Any]) -> dict[str, extrapolation.Frequencies]:
    """Return a dictionary of the methods that are switched on, in the order of `METHODS`.

    Each dial sets the option of the same name.
    """
    shown = {name: extrapolation.METHODS[name].form for name in METHODS if dials[name]}
    return {
        name: form(**{one.name: dials[one.name] for one in dataclasses.fields(form) if one.name in dials})
        for name, form in shown.items()
    }
