"""Reference values for the Bank explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from ropebook.decay import turned_pairs
from ropebook.sinusoidal import angles, turns, wavelengths


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    There are four entries for every pair: the number of ``turns`` it has made at the position, the number it has made
    at the ``last`` position of the context, the cosine and sine at the tip of its hand (``tips``, alternating), and its
    wavelength. ``turned`` is the number of pairs that complete a turn within the context. ``unseen`` counts the hands
    whose angle at the position never occurs within the context.

    >>> from ropebook.explorers.bank import Bank
    >>> figure = Bank(base=10_000, dim=128, length=4096)
    >>> compute(figure.dials())["turned"]
    46
    """
    position, base, dim, length = (dials[name] for name in ("position", "base", "dim", "length"))
    radians = angles(position, dim, base)
    now, last = turns(position, dim, base), turns(length - 1, dim, base)
    unseen = (last < 1) & (now % 1 > last)
    return {
        "turns": now.tolist(),
        "last": last.tolist(),
        "tips": [value for tip in zip(radians.cos().tolist(), radians.sin().tolist(), strict=True) for value in tip],
        "wavelengths": wavelengths(dim, base).tolist(),
        "turned": turned_pairs(length, dim, base),
        "unseen": int(unseen.sum()),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    Tips lie on a circle of radius 1, so their scale is 1. Counts must be equal, and all other numbers are compared
    relative to their own size.
    """
    data = compute(dials)
    return {
        **data,
        "tips": np.ones_like(data["tips"]).tolist(),
        "turned": 0.0,
        "unseen": 0.0,
    }
