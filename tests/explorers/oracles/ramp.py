"""Reference values for the Ramp explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

from ropebook import extrapolation
from ropebook.sinusoidal import inv_freq


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``paper`` and ``code`` have each pair's share of interpolation, from 0 to 1, according to the paper and to the code.
    The code's ramp begins and ends at the pair indices ``low`` and ``high``. ``ratio`` is the code's
    frequency divided by the paper's for each pair. ``largest`` is the largest factor between the two frequencies, in
    either direction, and ``pair`` is the pair where it occurs.

    >>> from ropebook.explorers.ramp import Ramp
    >>> figure = Ramp()  # Llama 2's numbers, stretched 16 times
    >>> data = compute(figure.dials())
    >>> data["low"], data["high"], round(data["largest"], 2), data["pair"]
    (20.0, 46.0, 3.04, 38)
    """
    theta = inv_freq(dials["dim"], dials["base"])
    ends = (dials["trained_length"], dials["alpha"], dials["beta"])
    truncate = dials["truncate"]
    paper = 1 - extrapolation.ramp_in_turns(theta, *ends)
    code = 1 - extrapolation.ramp_in_pairs(theta, *ends, truncate=truncate)
    low, high = extrapolation.ramp_range(theta, *ends, truncate=truncate)
    differ = extrapolation.paper_against_code(theta, dials["factor"], *ends, truncate=truncate)
    return {
        "paper": paper.tolist(),
        "code": code.tolist(),
        "low": low.item(),
        "high": high.item(),
        "ratio": (1 / differ.ratio).tolist(),
        "largest": differ.largest,
        "pair": differ.pair,
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A share is 1 minus a quotient of differences. The ends of the code's ramp are pair indices, so their scale is the
    number of pairs.
    """
    data = compute(dials)
    pairs = dials["dim"] // 2
    alpha, beta = dials["alpha"], dials["beta"]
    index = (data["low"] + data["high"]) / (data["high"] - data["low"])
    return {
        "paper": [1 + (alpha + beta) / (beta - alpha)] * pairs,
        "code": [1 + index] * pairs,
        "low": pairs,
        "high": pairs,
        "ratio": data["ratio"],
        "largest": data["largest"],
        "pair": 0.0,
    }
