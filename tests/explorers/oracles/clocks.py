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

    The entries for the current ``position`` are its binary ``digits``, the number of ``turns`` that each hand has made
    since position 0, the ``encoding``, the number of hands that haven't completed a turn (``young``), and the
    ``wavelengths``. The entries for the ``span`` positions starting at ``start`` are the digits of each position
    (``squares``), the sinusoid inside each digit (``bitWaves``), and the sinusoids of the pairs ``shown`` (``waves``).
    Both sets of sinusoids have ``fine`` samples per position.

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
    """Return the scale of the tolerance for each entry: the number's own size, or 0 for integers, which must be
    equal."""
    data = compute(dials)
    exact = ("start", "fine", "shown", "digits", "squares", "young")
    return {name: 0.0 if name in exact else np.abs(value).tolist() for name, value in data.items()}


def window(dials: dict[str, Any]) -> tuple[int, int, list[int]]:
    """Return the first position shown, the samples per position, and the pairs drawn as waves.

    If there are more than 13 pairs, only 13 evenly spaced ones are drawn, including the first and the last.
    """
    start = max(0, dials["position"] - dials["span"] // 2)
    pairs = dials["dim"] // 2
    few = range(pairs) if pairs <= MOST_WAVES else (k * (pairs - 1) // (MOST_WAVES - 1) for k in range(MOST_WAVES))
    # a power of 2, so that the sampled positions need no rounding
    fine = 1 << (max(1, FINE_SAMPLES // dials["span"]).bit_length() - 1)
    return start, fine, list(few)


def curves(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sinusoids inside the digits, (13, samples), and the sinusoids of the pairs shown, (pairs shown,
    samples), both in float64.

    The unit interval centred on each position is divided into ``fine`` equal parts, and the samples are taken at the
    centres of these parts. With a single part, the sample is at the position itself.
    """
    start, fine, shown = window(dials)
    at = start - 0.5 + (torch.arange(dials["span"] * fine, dtype=torch.float64) + 0.5) / fine
    sines = encoding(at, dials["dim"], dials["base"], torch.float64)[:, 0::2]
    return binary_waves(at, BITS).T, sines[:, shown].T
