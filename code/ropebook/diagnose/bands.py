"""Scaling by parts: which pairs a method keeps, slows down or blends, and which of these three bands are wrong."""

from __future__ import annotations

import torch

from ropebook import rope
from ropebook.diagnose.differences import numbered
from ropebook.diagnose.measures import within_half
from ropebook.shapes import Float

Theta = Float[torch.Tensor, " pairs"]
# The kept share of a frequency counts as right if its error is smaller than this.
CLOSE = 2e-3


def banded(theta: Theta, expected: Theta, base: float | None) -> str | None:
    """Describe what was done to the fast, middle and slow pairs.

    ``theta`` contains the measured frequencies, and ``expected`` those that the weights need. Returns None if the
    weights' scaling has no such bands, or if every band is right.

    >>> plain = rope.inv_freq(16, 10_000.0)
    >>> share = torch.tensor([1, 1, 0.7, 0.4, 0, 0, 0, 0]).double()
    >>> right, found = plain * (share + (1 - share) / 4), plain * (1 - share + share / 4)
    >>> banded(found, right, 10_000.0).partition(": ")[0]
    'Fast and slow pairs are exchanged (the ramp runs the other way round, as with its two bounds swapped)'
    """
    if base is None or len(theta) != len(expected):
        return None
    plain = rope.inv_freq(2 * len(expected), base)
    slowed = plain / torch.where(expected == 0, torch.inf, expected)
    times = slowed.max().item()
    if times < 1 + 1e-2 or (slowed - times).abs().max() < 1e-2:
        return None
    right, found = (_kept(one, plain, times) for one in (expected, theta))
    fast, slow = right > 1 - CLOSE, right.abs() < CLOSE
    middle = ~fast & ~slow
    if not (fast.any() and slow.any()) or (theta <= 0).any():
        return None
    other = _formed(theta, plain, right, times, middle)
    if other is not None:
        return other
    bands = [
        _band("fast", "kept", theta, expected, found, fast, times),
        _band("middle (blended)", "blended", theta, expected, found, middle, times),
        _band("slow", "slowed", theta, expected, found, slow, times),
    ]
    said = [one for one in bands if one]
    if all("right" in one for one in said):
        return None
    return f"The scaling has bands: {'; '.join(said)}"


def _kept(theta: Theta, plain: Theta, times: float) -> Theta:
    """Return the kept share of each frequency: 1 if the frequency is unscaled, 0 if it is divided by ``times``."""
    return (theta / plain - 1 / times) / (1 - 1 / times)


def _formed(
    theta: Theta, plain: Theta, right: Theta, times: float, middle: torch.Tensor
) -> str | None:
    """Describe the wrong way of blending that explains all frequencies. Returns None if no known way explains them."""
    share = right.clamp(0, 1)
    low = plain / times

    def like(one: Theta) -> bool:
        return bool((within_half(theta - one).abs() <= CLOSE * one).all())

    if like(share * low + (1 - share) * plain):
        return (
            "Fast and slow pairs are exchanged (the ramp runs the other way round, as with its two bounds swapped): the fast "
            f"ones, {numbered('pairs', right > 0.5)}, are divided by {times:.4g} and so too slow, and the slow ones are kept, "
            "not divided"
        )
    if not middle.any():
        return None
    reversed_ = torch.where(middle, 1 - share, share)
    if like(reversed_ * plain + (1 - reversed_) * low):
        return (
            f"The blend in the middle band ({numbered('pairs', middle)}, between the fast pairs that are kept and the slow ones "
            "that are divided) is reversed: its ramp runs the wrong way, with 1 − share instead of the share"
        )
    for said, one in (
        (
            "blended as wavelengths (1/θ), not as frequencies",
            1 / (share / plain + (1 - share) / low),
        ),
        (
            "blended as logarithms (a geometric mean), not as frequencies",
            plain**share * low ** (1 - share),
        ),
        (
            "not blended but kept, as the fast ones are (the ramp is missing: one hard bound)",
            torch.where(share > CLOSE, plain, low),
        ),
        (
            "not blended but divided, as the slow ones are (the ramp is missing: one hard bound)",
            torch.where(share < 1 - CLOSE, low, plain),
        ),
        (
            "not blended but each kept or divided whole (the ramp is missing: one hard bound in the middle)",
            torch.where(share > 0.5, plain, low),
        ),
        (
            "blended with the square of the share",
            share**2 * plain + (1 - share**2) * low,
        ),
    ):
        if like(one):
            which = numbered("pairs", middle)
            return f"In the middle band ({which}, between fast and slow) frequencies are {said}"
    return None


def _band(
    name: str,
    kind: str,
    theta: Theta,
    expected: Theta,
    found: Theta,
    where: torch.Tensor,
    times: float,
) -> str | None:
    """Describe the pairs of one band. Returns None if the band is empty."""
    if not where.any():
        return None
    which = f"the {name} {numbered('pairs', where)}"
    they = "is" if int(where.sum()) == 1 else "are"
    ratio = (theta / torch.where(expected == 0, torch.inf, expected))[where]
    if (ratio - 1).abs().max() < CLOSE:
        return f"{which} {they} right"
    kept = found[where]
    if kind != "kept" and (kept - 1).abs().max() < CLOSE:
        return f"{which} {they} kept, not divided (not scaled: too fast)"
    if kind != "slowed" and kept.abs().max() < CLOSE:
        return (
            f"{which} {they} divided by {times:.4g} like the slow ones (too slow)"
        )
    if (ratio - ratio[0]).abs().max() < CLOSE * ratio[0].abs():
        how = f"{ratio[0]:.4g} times as fast as they should be"
        if kind == "slowed":
            how += f" (divided by {times / ratio[0]:.4g} instead of {times:.4g})"
        return f"{which} {they} {how}"
    span = f"{ratio.min():.4g} to {ratio.max():.4g}"
    ramp = ""
    if kind == "blended" and (kept > -CLOSE).all() and (kept < 1 + CLOSE).all():
        way = "too much" if (ratio > 1 - CLOSE).all() else None
        way = "too little" if (ratio < 1 + CLOSE).all() else way
        shift = f": each keeps {way} of its frequency" if way else ""
        ramp = f" (the ramp differs: its bounds or its shape are others{shift})"
    return f"{which} {they} {span} times as fast as they should be{ramp}"
