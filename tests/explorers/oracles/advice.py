"""Reference values for the Advice explorer, computed in float64 with the book's modules."""

from __future__ import annotations

import math
from typing import Any

from ropebook import extrapolation as X
from ropebook.explorers.advice import CASES
from ropebook.sinusoidal import inv_freq


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers quoted in the advice, keyed by name.

    ``needed`` says whether anything has to be done, and ``young`` is the number of pairs that haven't completed a turn.
    ``scale`` and ``attention`` are YaRN's s and f. ``window``, ``group`` and ``reach`` are Self-Extend's parameters.
    ``grown`` is dynamic NTK's base at L′, and ``left`` is the largest angle by which a pair still exceeds its trained
    range with that base. ``least`` is the smallest sufficient NTK factor, and ``raised`` is the larger base that the
    advice recommends.

    >>> from ropebook.explorers.advice import Advice
    >>> data = compute(Advice().dials())
    >>> data["scale"], data["window"], data["group"], data["reach"], round(data["raised"])
    (4.0, 2048, 8, 18432, 68827)
    """
    length, dim, base = dials["trained_length"], dials["dim"], dials["base"]
    theta, needed = inv_freq(dim, base), dials["target_length"] > length
    shared = {"needed": needed, "young": dim // 2 - int(X.turned(theta, length).sum())}
    if not needed:
        nothing = {"scale": 1.0, "attention": 1.0, "window": length // 2, "group": 1, "reach": length}
        return {**shared, **nothing, "grown": base, "left": 0.0, "least": 1.0, "raised": base}
    target = dials["target_length"]
    found = {choice.when: choice.method for choice in X.choices(length, target, dim=dim, base=base)}
    yarn, extend, dynamic, larger, _ = (found[when] for when in CASES.values())
    scaled, _ = dynamic(theta, target)
    return {
        **shared,
        "scale": yarn.factor,
        "attention": X.yarn_factor(yarn.factor),
        "window": extend.window,
        "group": extend.group,
        "reach": extend.reach(length),
        "grown": X.ntk_base(base, dim, dynamic.effective_scale(target)),
        "left": X.overshoot(theta, length, target, scaled).max().item(),
        "least": X.least_ntk_factor(theta, length, target),
        "raised": larger.base,
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    An angle beyond the trained range is the difference between two angles. Neither is larger than the angle of the
    first pair that doesn't complete a turn.
    """
    data = compute(dials)
    largest = max(dials["target_length"], dials["trained_length"]) * 2 * math.pi / (dials["trained_length"] - 1)
    return {
        **{name: value for name, value in data.items() if name != "needed"},
        "left": largest if data["young"] else 0.0,
    }
