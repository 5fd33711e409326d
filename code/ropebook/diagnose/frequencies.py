"""The base and the scaling behind a list of measured frequencies."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from ropebook import rope
from ropebook.shapes import Float

IN_DEGREES = 180 / math.pi
# Bases used by real models, tried if the frequencies are too coarse to reveal the base.
_KNOWN = (10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 5_000_000.0, 10_000_000.0)


class Frequencies(NamedTuple):
    """How measured frequencies compare with base^(−2i/d): the kind of scaling, the base, and a sentence about both."""

    kind: str  # plain, degrees, linear, by parts, uneven, half (half-precision type) or one (a single pair)
    base: float | None
    factor: float  # the largest θ expected / θ found
    said: str
    slowed: bool = False  # whether no pair is sped up, and each is slowed at least as much as the pair before it


def read(
    theta: Float[torch.Tensor, " pairs"],
    dim: int,
    tolerance: float,
    base: float | None,
) -> Frequencies:
    """Find the base and the scaling of ``theta``.

    ``theta`` contains absolute values in radians per position. ``base`` is the expected base, if it is known.

    >>> read(rope.inv_freq(8, 500.0), 8, 1e-4, None)[:3]
    ('plain', 500.0, 1.0)
    >>> read(rope.inv_freq(8, 500.0) / 4, 8, 1e-4, None)[:3]
    ('linear', 500.0, 4.0)
    """
    turning = theta > 0
    theta = theta[turning]
    if len(theta) < 2 or not turning[: len(theta)].all():
        slow = 1 / theta[0].item() if len(theta) else math.inf
        kind = "degrees" if _near(slow, IN_DEGREES, tolerance) else "one"
        return Frequencies(
            kind, None, slow, "one pair alone does not tell the base"
        )
    step = 2.0 / dim
    pair = torch.arange(len(theta), dtype=torch.float64)
    half = _rounded(theta, dim, base)
    if half is not None:
        return half
    logs = theta.log()
    spread = pair - pair.mean()
    slope = ((spread * logs).sum() / spread.square().sum()).item()
    start = (logs.mean() - slope * pair.mean()).item()
    line = start + slope * pair
    miss = (logs - line).abs().max().item()
    if miss < tolerance:
        found = _round(math.exp(-slope / step), 4 * miss)
        slower = math.exp(-start)
        first, last = theta[0].item(), theta[-1].item()
        if abs(start) < 3 * tolerance:
            said = f"θ falls from {first:.4g} to {last:.3g} as base^(−2i/{dim})"
            return Frequencies("plain", found, 1.0, said)
        if _near(slower, IN_DEGREES, 3 * tolerance):
            said = f"pair 0 turns by {first:.5f} radians (one degree) a position"
            return Frequencies("degrees", found, slower, said)
        slower = _round(slower, 4 * miss)
        share = f"1/{slower:.4g} of" if slower > 1 else f"{1 / slower:.4g} times"
        said = f"every θ is {share} base^(−2i/{dim})"
        return Frequencies("linear", found, slower, said)
    # estimated from the first two pairs; no base is larger than e^60
    steepness = (theta[0] / theta[1]).log().item() / step
    fast = base or _round(math.exp(min(max(steepness, 0.0), 60.0)), tolerance / 10)
    ratio = rope.inv_freq(dim, max(fast, 1.0))[: len(theta)] / theta
    return _scaled(ratio, theta, fast, tolerance)


def _scaled(
    ratio: Float[torch.Tensor, " pairs"],
    theta: Float[torch.Tensor, " pairs"],
    base: float,
    tolerance: float,
) -> Frequencies:
    """Describe frequencies in which different pairs are slowed by different factors."""
    last = ratio[-1].item()
    fast = int(((ratio - 1).abs() < 10 * tolerance).sum())
    slow = int(((ratio / last - 1).abs() < 10 * tolerance).sum())
    rising = bool((ratio.diff() > -1e-3).all()) and bool((ratio > 1 - 1e-3).all())
    if rising and fast and slow > 1 and last > 1 + 1e-3 and _ramp(ratio):
        said = (
            f"the {fast} fastest pairs are as base {base:,.0f} has them, the {slow} slowest turn {last:.4g} times "
            f"too slowly, the {len(ratio) - fast - slow} between them in between"
        )
        return Frequencies("by parts", base, _round(last, tolerance / 10), said)
    # no extension method spaces frequencies evenly
    steps = theta.diff()
    even = bool((steps - steps.mean()).abs().max() < 1e-4 * steps.abs().max())
    # the rule that comes nearest: one factor for all pairs, the geometric mean of the smallest and the largest
    factor = math.sqrt(ratio.min().item() * ratio.max().item())
    off = math.sqrt(ratio.max().item() / ratio.min().item()) - 1
    scaled = "" if abs(factor - 1) < 1e-3 else f", all divided by {factor:.3g}"
    said = (
        f"θ is no power of a base. The nearest rule is base {base:,.0f}{scaled}, from which a pair is off by up to "
        f"{off:.1%} (θ expected / θ found runs from {ratio.min():.4g} to {ratio.max():.4g})"
    )
    return Frequencies(
        "uneven", base, ratio.max().item(), said, rising and not even
    )


def _ramp(ratio: Float[torch.Tensor, " pairs"]) -> bool:
    """Check whether the slowed share is linear in the pair index (YaRN) or in the frequency (Llama 3)."""
    share = (1 - 1 / ratio) / (1 - 1 / ratio[-1])
    between = (share > 1e-3) & (share < 1 - 1e-3)
    share = share[between]
    if len(share) < 3:
        return True
    # if the slowed share is linear in the frequency, the kept share falls by nearly the same factor from pair to pair
    line = (share.diff().diff().abs() < 1e-3).all()
    kept = 1 - share
    curved = (kept.diff() < 0).all() and (share.diff().diff() < 1e-3).all()
    return bool(line or curved)


def _rounded(
    theta: Float[torch.Tensor, " pairs"], dim: int, base: float | None
) -> Frequencies | None:
    """Check whether these are the frequencies for some base, rounded to a half-precision type."""
    for half, name in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16")):
        # this also finds frequencies that were rounded to float32 on the way
        if not torch.allclose(theta.to(half).double(), theta, rtol=1e-6, atol=0):
            continue
        for known in (base, *_KNOWN):
            exact = rope.inv_freq(dim, known or 10_000.0)[: len(theta)]
            if torch.allclose(exact.to(half).double(), theta, rtol=1e-5, atol=0):
                off = (theta / exact - 1).abs().max().item()
                if off > 1e-6:
                    said = f"each frequency θ is that of base {known or 1e4:,.0f} rounded to {name}, off by up to {off:.2%}"
                    return Frequencies("half", known or 1e4, 1.0, said)
    return None


def _near(value: float, other: float, tolerance: float) -> bool:
    return abs(value / other - 1) < tolerance


def _round(value: float, tolerance: float) -> float:
    """Round ``value`` to the smallest number of digits that stays within the measurement's tolerance."""
    for digits in range(1, 7):
        short = float(f"{value:.{digits}g}")
        if abs(short / value - 1) < max(tolerance, 1e-9):
            return short
    return value
