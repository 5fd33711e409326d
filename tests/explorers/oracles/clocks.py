"""Reference values for the Clocks explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ropebook.explorers.clocks import BITS, FINE_SAMPLES, MOST_WAVES
from ropebook.sinusoidal import (
    binary_digits,
    binary_waves,
    encoding,
    turns,
    wavelengths,
)


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    At ``position``: the binary ``digits``, the ``turns`` of each hand since position 0, the ``encoding``, the number of
    hands without a full turn (``young``), and the ``wavelengths``. For the ``span`` positions that begin at ``start``:
    the digits of each position (``squares``), the sinusoids inside the digits (``bitWaves``), and those of the pairs
    ``shown`` (``waves``), with ``fine`` samples per position.

    >>> from ropebook.explorers.clocks import Clocks
    >>> figure = Clocks(position=6)
    >>> compute(figure.dials())["digits"][:4]
    [0, 1, 1, 0]
    """
    position, base, dim, span = (dials[name] for name in ("position", "base", "dim", "span"))
    turned = turns(position, dim, base)
    start, fine, shown = window(dials)
    bits, waves = curves(dials)
    whole = torch.arange(start, start + span)
    return {
        "start": start,
        "fine": fine,
        "shown": shown,
        "digits": binary_digits(position, BITS).tolist(),
        "squares": binary_digits(whole, BITS).T.tolist(),
        "bitWaves": bits.tolist(),
        "waves": waves.tolist(),
        "turns": turned.tolist(),
        "encoding": encoding(position, dim, base, torch.float64).tolist(),
        "young": int((turned < 1).sum()),
        "wavelengths": wavelengths(dim, base).tolist(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the terms for the comparison: each number relative to its own size; integers must be equal."""
    data = compute(dials)
    exact = ("start", "fine", "shown", "digits", "squares", "young")
    return {name: 0.0 if name in exact else np.abs(value).tolist() for name, value in data.items()}


def window(dials: dict[str, Any]) -> tuple[int, int, list[int]]:
    """Return the first position shown, the samples per position, and the pairs drawn as waves.

    These are all of the pairs, or 13 evenly spaced ones including the first and the last.
    """
    start = max(0, dials["position"] - dials["span"] // 2)
    pairs = dials["dim"] // 2
    few = range(pairs) if pairs <= MOST_WAVES else (k * (pairs - 1) // (MOST_WAVES - 1) for k in range(MOST_WAVES))
    # a power of 2, so that the sampled positions need no rounding
    fine = 1 << (max(1, FINE_SAMPLES // dials["span"]).bit_length() - 1)
    return start, fine, list(few)


def curves(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sinusoids inside the digits, (13, samples), and those of the pairs shown, (pairs shown, samples), in
    float64.

    Each position is divided into ``fine`` equal parts, from half a position before it to half a position after it. The
    samples are at the centres of these parts; with a single part, that is the position itself.
    """
    start, fine, shown = window(dials)
    at = start - 0.5 + (torch.arange(dials["span"] * fine, dtype=torch.float64) + 0.5) / fine
    sines = encoding(at, dials["dim"], dials["base"], torch.float64)[:, 0::2]
    return binary_waves(at, BITS).T, sines[:, shown].T
