"""What the explorer Clocks shows, computed from the book\'s modules, in float64."""

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
    """Digits and pairs at ``position``: ``digits``, ``turns`` of each hand since position 0, ``encoding``, how many
    hands are ``young`` (no full turn yet), ``wavelengths``. And around it, in the ``span`` positions from ``start``
    on: the digits of each position (``squares``); the sinusoids inside them (``bitWaves``) and those of the pairs
    ``shown`` (``waves``), with ``fine`` samples to a position.

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
    """Every number is one term, its own; whole numbers must be equal."""
    data = compute(dials)
    exact = ("start", "fine", "shown", "digits", "squares", "young")
    return {name: 0.0 if name in exact else np.abs(value).tolist() for name, value in data.items()}


def window(dials: dict[str, Any]) -> tuple[int, int, list[int]]:
    """The first position shown, the samples per position, and the pairs that are drawn as waves: all, or 13 spread
    evenly from the first to the last."""
    start = max(0, dials["position"] - dials["span"] // 2)
    pairs = dials["dim"] // 2
    few = range(pairs) if pairs <= MOST_WAVES else (k * (pairs - 1) // (MOST_WAVES - 1) for k in range(MOST_WAVES))
    fine = 1 << (max(1, FINE_SAMPLES // dials["span"]).bit_length() - 1)  # a power of 2: places are not rounded
    return start, fine, list(few)


def curves(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The sinusoids inside the digits, (13, samples), and those of the pairs shown, (pairs shown, samples); float64.

    The samples lie in the middles of ``fine`` equal parts of each position, from half a position before it to half a
    position after: with one part, at the position.
    """
    start, fine, shown = window(dials)
    at = start - 0.5 + (torch.arange(dials["span"] * fine, dtype=torch.float64) + 0.5) / fine
    sines = encoding(at, dials["dim"], dials["base"], torch.float64)[:, 0::2]
    return binary_waves(at, BITS).T, sines[:, shown].T
