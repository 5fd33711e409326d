"""Right and wrong rules for computing frequencies, and a search for the rule that explains measured frequencies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch

from ropebook import rope
from ropebook.diagnose.measures import within_half
from ropebook.shapes import Float

Theta = Float[torch.Tensor, " pairs"]


# Bases used by real models, and bases that result from slips: 1 if the power is forgotten, e if exp is used without
# log(base).
_BASES = (10_000.0, 500_000.0, 1_000_000.0, 20_000.0, 100.0, math.e, 1.0)


class Rule(NamedTuple):
    """A rule that explains measured frequencies: the names of its mistakes (none if it is right) and exact values."""

    names: tuple[str, ...]
    theta: torch.Tensor

    @property
    def clockwise(self) -> bool:
        """Whether all angles have the opposite sign."""
        return "clockwise" in self.names


def explained(
    theta: Theta,
    expected: Theta,
    *,
    dim: int,
    base: float | None,
    coarse: bool = False,
) -> Rule | None:
    """Find the rule with the fewest mistakes that explains ``theta``. Returns None if no rule explains it.

    ``theta`` contains the measured frequencies, known up to whole turns, and ``expected`` those that the weights need.
    ``dim`` is the head width, and ``base`` the base of the weights.

    >>> right = rope.inv_freq(16)
    >>> explained(right.deg2rad(), right, dim=16, base=None).names
    ('degrees',)
    """
    moving = theta != 0
    tried = sorted(
        _combined(expected, dim, base),
        key=lambda one: (len(one[0]), "turned_twice" in one[0]),
    )
    for names, candidate in tried:
        if moving.any() and _same(theta[moving], candidate[moving], coarse):
            lost = ("still_pairs",) if expected[~moving].any() else ()
            return Rule((*names, *lost), candidate * moving)
    for names, candidate in tried:
        # some pairs rotate in the opposite direction
        signs = torch.where(
            within_half(theta - candidate).abs()
            <= within_half(theta + candidate).abs(),
            1.0,
            -1.0,
        )
        if moving.all() and _same(theta, candidate * signs, coarse):
            return Rule((*names, "clockwise"), candidate * signs)
    return None


def uniform(
    theta: Theta, expected: Theta, *, dim: int, base: float | None, coarse: bool
) -> Rule | None:
    """Check whether all pairs are too fast by the same factor. (If they are all too slow, that is a kind of scaling.)

    >>> right = rope.inv_freq(16)
    >>> uniform(right * 3, right, dim=16, base=None, coarse=False).names
    ('faster',)
    """
    slow = len(theta) // 2
    for names, candidate in _exponents(expected, dim, base):
        if "shifted_exponent" in names:
            # a shifted exponent is itself a factor, and combined with a second factor it would explain any scaling
            continue
        ratio = (theta[slow:] / candidate[slow:]).median().item()
        if not abs(ratio) > 1 + 1e-4 or not math.isfinite(ratio):
            continue
        if _same(theta, ratio * candidate, coarse):
            backwards = () if ratio > 0 else ("clockwise",)
            twice = abs(abs(ratio) - 2) < 1e-3
            faster = "turned_twice" if twice else "faster"
            return Rule((*names, faster, *backwards), ratio * candidate)
    return None


def known(
    expected: Theta, *, dim: int, base: float | None
) -> list[tuple[tuple[str, ...], torch.Tensor]]:
    """List all rules, each with its mistakes' names and its frequencies. Rules with fewer mistakes come first."""
    found = list(_combined(expected, dim, base))
    width = 2 * len(expected)
    found += [
        (("other_base",), rope.inv_freq(width, other))
        for other in _BASES
        if other != base
    ]
    return sorted(found, key=lambda one: len(one[0]))


def _combined(
    expected: Theta, dim: int, base: float | None
) -> Iterator[tuple[tuple[str, ...], torch.Tensor]]:
    """Yield every exponent in every unit, with the rotation applied once or twice, in both directions."""
    units = (((), 1.0), (("degrees",), math.pi / 180))
    times = (((), 1.0), (("turned_twice",), 2.0))
    signs = (((), 1.0), (("clockwise",), -1.0))
    for exponent, unit, twice, sign in itertools.product(
        _exponents(expected, dim, base), units, times, signs
    ):
        names = (*exponent[0], *unit[0], *twice[0], *sign[0])
        yield names, exponent[1] * unit[1] * twice[1] * sign[1]


def _exponents(
    expected: Theta, dim: int, base: float | None
) -> list[tuple[tuple[str, ...], torch.Tensor]]:
    width = 2 * len(expected)
    found = [((), expected)]
    if base is not None:
        plain = rope.inv_freq(width, base)
        if not torch.allclose(plain, expected, rtol=1e-6, atol=0):
            found.append((("unscaled",), plain))
            found.append((("other_scaling",), expected**2 / plain))
        found += [
            (("halved_dim",), rope.inv_freq(width, base**2)),
            (("doubled_dim",), rope.inv_freq(width, base**0.5)),
        ]
        found += [
            (("shifted_exponent",), plain * base ** (shift / width))
            for shift in (-2, -1, 1, 2)
        ]
        if dim > width:
            wider = rope.inv_freq(dim, base)[: len(expected)]
            found.append((("wider_exponent",), wider))
    found.append((("growing_frequencies",), 1 / expected))
    found.append((("reversed_frequencies",), expected.flip(0)))
    pairs = len(expected)
    for repeated in (
        expected.repeat_interleave(2)[:pairs],
        expected[: (pairs + 1) // 2].repeat(2)[:pairs],
    ):
        found.append((("repeated_frequencies",), repeated))
    halves = (torch.bfloat16, torch.float16)
    found += [
        (("half_frequencies",), expected.to(half).double()) for half in halves
    ]
    return found


def _same(theta: Theta, candidate: Theta, coarse: bool) -> bool:
    """Check whether frequencies agree up to whole turns: to five digits, or to two if tables or angles are rounded."""
    # in float32 a function is off by 1e-6; with base 10,050 instead of 10,000 it is off by 1e-4
    relative, absolute = (1e-2, 2e-6) if coarse else (2e-5, 3e-8)
    allowed = relative * candidate.abs() + absolute
    seen = allowed < 0.1
    if int(seen.sum()) < min(2, len(theta)):
        return False
    off = within_half(theta - candidate).abs()
    return bool((off <= allowed)[seen].all())


def unwound(theta: Theta) -> Theta:
    """Add the whole turns that fast pairs complete between two positions, by extrapolating from the slow pairs.

    >>> fast = 4 * rope.inv_freq(32)
    >>> bool((unwound(within_half(fast)) - fast).abs().max() < 1e-9)
    True
    """
    moving = theta != 0
    pair = torch.arange(len(theta), dtype=torch.float64)
    slow = moving & (pair >= len(theta) // 2)
    if slow.sum() < 2 or not (theta[slow].sign() == theta[slow][0].sign()).all():
        return theta
    sign, logs = theta[slow][0].sign(), theta[slow].abs().log()
    centred = pair[slow] - pair[slow].mean()
    slope = (centred * logs).sum() / centred.square().sum()
    line = sign * (logs.mean() + slope * (pair - pair[slow].mean())).exp()
    near = within_half(theta - line)
    on_line = (near.abs() < 1e-3 * line.abs() + 1e-6) & (line.abs() < 50)
    return torch.where(on_line, line + near, theta)
