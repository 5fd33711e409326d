"""Compare measured frequencies, pair by pair, with those that the weights need, and describe the differences."""

from __future__ import annotations

import math

import torch

from ropebook.diagnose.differences import numbered
from ropebook.diagnose.measures import within_half
from ropebook.shapes import Float

Theta = Float[torch.Tensor, " pairs"]


def compared(theta: Theta, expected: Theta, close: float) -> str | None:
    """Describe which pairs rotate wrongly, and in what way. Returns None if every pair is right.

    ``close`` is the allowed error, relative to each frequency.

    >>> from ropebook import rope
    >>> right = rope.inv_freq(8)
    >>> compared(right * torch.tensor([1, 1, 0, 0]), right, 1e-3)
    'pairs 2 and 3 do not rotate at all (their frequencies are 0), and the other pairs are right'
    >>> compared(right[[0, 0, 1, 1]], right, 1e-3)
    'pairs 0, 1, 2, 3 have the frequencies of pairs 0, 0, 1, 1: frequencies are repeated, in another order than by pair'
    """
    still = (theta == 0) & (expected != 0)
    right = _same(theta, expected, close)
    back = _same(theta, -expected, close) & ~right & ~still
    rest = ~(right | still | back)
    said = []
    if still.any():
        are = "their frequencies are" if still.sum() > 1 else "its frequency is"
        do = "do" if still.sum() > 1 else "does"
        said.append(f"{numbered('pairs', still)} {do} not rotate at all ({are} 0)")
    if back.any():
        rotate = "rotate" if back.sum() > 1 else "rotates"
        said.append(
            f"{numbered('pairs', back)} {rotate} the other way (opposite direction)"
        )
    other = _of_other_pairs(theta, expected, still, close) if rest.any() else None
    if rest.any():
        said.append(other or _otherwise(theta, expected, rest, close))
    if not said:
        return None
    if right.any() and other is None:
        they = "s are" if right.sum() > 1 else " is"
        said.append(f"the other pair{they} right")
    return ", and ".join(said)


def _same(theta: torch.Tensor, other: torch.Tensor, close: float) -> torch.Tensor:
    return within_half(theta - other).abs() <= close * other.abs() + 3e-8


def _otherwise(
    theta: Theta,
    expected: Theta,
    rest: torch.Tensor,
    close: float,
) -> str:
    """Describe pairs that rotate at the wrong rate."""
    alike = within_half(theta[rest] - theta[rest][0]).abs().max()
    if rest.sum() > 2 and alike <= close * theta[rest].abs().max():
        return (
            f"{numbered('pairs', rest)} all have the same frequency, {theta[rest][0]:.4g} radians a position, instead of "
            "one each"
        )
    ratio = theta / torch.where(expected == 0, torch.inf, expected)
    least, most = ratio[rest].min().item(), ratio[rest].max().item()
    which = numbered("pairs", rest)
    rotate = "rotate" if rest.sum() > 1 else "rotates"
    if most - least < 1e-3 * abs(most) and abs(most - 1) > 1e-3:
        return f"{which} {rotate} {_times(most, int(rest.sum()))}"
    how = "each by a different factor"
    if abs(most - 1) < 0.15 and abs(least - 1) < 0.15:
        return (
            f"{which} {rotate} a little off, {how}: by {least - 1:+.2%} to {most - 1:+.2%}, as frequencies or exponents "
            "that are rounded to few digits would"
        )
    if most < 1:
        return f"{which} {rotate} too slowly, {how} ({_span(1 / most, 1 / least)})"
    if least > 1:
        return f"{which} {rotate} too fast, {how} ({_span(least, most)})"
    return (
        f"{which} {rotate} {_span(least, most)} times as fast as they should, {how}"
    )


def _span(least: float, most: float) -> str:
    return f"{least:.4g} to {most:.4g}"


def _times(ratio: float, pairs: int) -> str:
    they, their = ("it", "its") if pairs == 1 else ("they", "their")
    if 0 < ratio < 1:
        return f"{1 / ratio:.4g} times too slowly (at 1/{1 / ratio:.4g} of {their} frequency)"
    return f"{ratio:.4g} times as fast as {they} should"


def _of_other_pairs(
    theta: Theta, expected: Theta, still: torch.Tensor, close: float
) -> str | None:
    """Check whether all moving pairs have the frequencies of other pairs, whether reordered or repeated."""
    if len(theta) < 4:
        return None
    like = _same(theta[:, None], expected, close)
    if not (like.any(1) | still).all():
        return None
    of = like.double().argmax(1)
    moving = ~still
    if len(of[moving].unique()) == 1:
        # if all pairs have the same frequency, that is described elsewhere
        return None
    some = ", ".join(str(i) for i in moving.nonzero().flatten()[:8].tolist())
    theirs = ", ".join(str(i) for i in of[moving][:8].tolist())
    more = ", …" if moving.sum() > 8 else ""
    once = len(of[moving].unique()) == int(moving.sum())
    how = "permuted, each at another pair's place" if once else "repeated"
    return (
        f"pairs {some}{more} have the frequencies of pairs {theirs}{more}: frequencies are {how}, in another order than "
        "by pair"
    )


def power(found: float, base: float, width: int) -> str:
    """Explain why the frequencies for ``base`` look like those for the base ``found``.

    Returns "" if either base is too small to tell.

    >>> power(100.0, 10_000.0, 64)
    '. Exponents are 1/2 of what they should be: as if divided by 2 times the width, 128 instead of 64'
    """
    if abs(found - 1) < 1e-6:
        return ". All pairs have the same frequency: every exponent is 0"
    if base <= 1 or found <= 1:
        return ""
    times = math.log(found) / math.log(base)

    def near(value: float) -> bool:
        return abs(times / value - 1) < 1e-5

    for step in range(2, 129):
        if near(1 / step):
            return (
                f". Exponents are 1/{step} of what they should be: as if divided by {step} times the width, "
                f"{step * width} instead of {width}" + _heads(step)
            )
        if near(step):
            return f". Exponents are {step} times what they should be: as if divided by 1/{step} of the width"
    if width > 2 and near(width / (width - 2)):
        return (
            f". Exponents go from 0 to 1 with both ends counted: i/(pairs − 1), as if divided by {width - 2} instead of "
            f"{width}"
        )
    for value, name in ((1 / math.log(10), "10"), (1 / math.log(2), "2")):
        if near(value):
            return f". The exponent has the logarithm to base {name} where the natural one belongs"
    if near(math.log(10)) or near(math.log(2)):
        return ". The exponent has a logarithm of another base than its power"
    return f". Exponents are {times:.4g} times what they should be"


def _heads(step: int) -> str:
    return f" (the width of {step} heads, or the hidden size)" if step > 2 else ""


def shifted(factor: float, base: float, width: int) -> str:
    """Explain why all frequencies are divided by ``factor``: a different exponent or a different unit.

    Returns "" if neither fits.

    >>> shifted(10_000.0 ** (2 / 64), 10_000.0, 64)
    '. That is an exponent that is shifted by 1 pair: each pair has the frequency that belongs to the next'
    """
    if abs(factor / (2 * math.pi) - 1) < 1e-5:
        return ". That factor is 2π: angles count whole turns"
    if abs(factor * 2 * math.pi - 1) < 1e-5:
        return ". That factor is 2π: angles are multiplied by 2π"
    if base <= 1:
        return ""
    pairs = math.log(factor) / math.log(base) * width / 2
    if abs(2 * pairs - round(2 * pairs)) > 1e-3 or not 0 < abs(pairs) < 4.5:
        return ""
    pairs = round(2 * pairs) / 2
    some = f"{abs(pairs):g} pair" + ("s" if abs(pairs) > 1 else "")
    whose = {1: "the next", -1: "the one before"}.get(pairs)
    theirs = (
        f": each pair has the frequency that belongs to {whose}" if whose else ""
    )
    return f". That is an exponent that is shifted by {some}{theirs}"
