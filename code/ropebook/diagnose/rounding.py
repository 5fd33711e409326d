"""Which of the positions, frequencies and angles are rounded to a half-precision type before cosines are taken."""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor

from ropebook.diagnose.measures import HALVES


def rounded(
    found: Tensor, at: Tensor, theta: Tensor, phase: Tensor, close: float
) -> tuple[str, str] | None:
    """Find the rounding that explains the cosines and sines ``found`` (2, tokens, pairs) at positions ``at``.

    ``theta`` contains the exact frequencies. Returns the name of the mistake and a sentence, or None if nothing is
    rounded or no rounding fits.

    >>> at, theta = torch.arange(300.0, 310.0).double(), torch.tensor([1.0, 0.1]).double()
    >>> angles = at.bfloat16().double()[:, None] * theta
    >>> rounded(torch.stack((angles.cos(), angles.sin())), at, theta, theta * 0, 1e-3)
    ('half_positions', 'positions are rounded to bfloat16')
    """
    exact = _off(found, at[:, None] * theta + phase)
    if exact < 3 * close:
        return None
    tried = [
        (_off(found, angles(at, theta, kind, which) + phase), which, kind)
        for kind, which in itertools.product(HALVES, _choices())
    ]
    least = min(off for off, _, _ in tried)
    if least > min(close, exact / 2):
        return None
    # of the explanations that fit about equally well, take the one with the fewest roundings
    good = [one for one in tried if one[0] <= max(2 * least, close / 20)]
    _, which, kind = min(good, key=lambda one: (len(one[1]), one[0]))
    name = f"half_{which[-1]}"
    type_ = str(kind).removeprefix("torch.")
    rest = "" if len(which) == 1 else f"{', '.join(which[:-1])} and "
    return name, f"{rest}{which[-1]} are rounded to {type_}"


def coarse(found: Tensor, at: Tensor, theta: Tensor) -> tuple[str, str] | None:
    """Check whether the cosines and sines ``found`` have small errors, equally large near position 0 and elsewhere.

    Returns the name of the mistake and a sentence, or None.

    >>> at, theta = torch.arange(48.0).double(), torch.tensor([1.0, 0.1]).double()
    >>> angles = at[:, None] * theta
    >>> coarse((torch.stack((angles.cos(), angles.sin())) * 127).round() / 127, at, theta)[0]
    'coarse_table'
    """
    exact = at[:, None] * theta
    off = (torch.stack((exact.cos(), exact.sin())) - found).abs().amax((0, 2))
    quarter = len(off) // 4
    if not 2e-4 < off.max() < 0.02 or off[:quarter].max() < 0.6 * off.max():
        return None
    most = off.max().item()
    if (found.square().sum(0) - 1).abs().max() < 1e-5:
        return "uneven_angles", (
            f"angles are rounded: they come in steps of about {2 * most:.2g} radians, {math.pi / most:,.0f} a turn"
        )
    return "coarse_table", (
        f"cosines and sines are rounded: they are off by up to {most:.2g} wherever one looks, as in a table of few digits "
        f"(about {math.log2(1 / most):.0f} bits)"
    )


def _choices() -> list[tuple[str, ...]]:
    names = ("positions", "frequencies", "angles")
    return [
        some for count in (1, 2, 3) for some in itertools.combinations(names, count)
    ]


def angles(
    at: Tensor, theta: Tensor, kind: torch.dtype, which: tuple[str, ...]
) -> Tensor:
    """Multiply positions by frequencies, rounding each quantity named in ``which`` to ``kind``.

    Returns (tokens, pairs) in float64.
    """
    if "positions" in which:
        at = at.to(kind).double()
    if "frequencies" in which:
        theta = theta.to(kind).double()
    product = at[:, None] * theta
    return product.to(kind).double() if "angles" in which else product


def _off(found: Tensor, angles: Tensor) -> float:
    off = torch.stack((angles.cos(), angles.sin())) - found
    return off.abs().nan_to_num().max().item()
