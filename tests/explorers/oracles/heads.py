"""Reference values for the Heads explorer, computed with the book's modules."""

from __future__ import annotations

import math
from typing import Any

import torch

from ropebook.explorers.heads import HEADS, MEASURES


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``levels`` says how blue each cell of the map is, from 0 to 1, layer by layer. For the chosen head, there are the
    ``shares`` of its pairs, the pair with the largest share (``longest``), the total share of the ``fast`` half of the
    pairs, and the ``weights`` on the first token and by distance. For each measure, there are its mean, lowest and
    highest values over the texts.

    >>> from ropebook.explorers.heads import Heads
    >>> data = compute(Heads(layer=17, head=1).dials())
    >>> data["longest"], data["previous"][0] > 0.7 > data["first"][0]
    (25, True)
    """
    found = dials["found"]
    at = torch.tensor([dials["layer"] - 1, dials["head"] - 1]) @ torch.tensor([HEADS, 1])
    shares, weights = (torch.tensor(found[name], dtype=torch.float64)[at] / 1000 for name in ("shares", "weights"))
    units = {name: 100.0 if name == "entropy" else 1000.0 for name in MEASURES}
    # A fully blue cell stands for a weight of 1 or, for the entropy, for weights spread evenly over 1,024 tokens.
    full = round(math.log(1024), 2) if dials["measure"] == "entropy" else 1.0
    means = torch.tensor(found[dials["measure"]]["mean"], dtype=torch.float64)
    return {
        "levels": (means / units[dials["measure"]] / full).tolist(),
        "shares": shares.tolist(),
        "weights": weights.tolist(),
        **{name: [found[name][side][at] / unit for side in ("mean", "low", "high")] for name, unit in units.items()},
        "fast": shares[: len(shares) // 2].sum().item(),
        "longest": int(shares.argmax()),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry."""
    return {**compute(dials), "fast": 1.0, "longest": 0.0}
