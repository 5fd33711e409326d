"""The encoding itself, a common mistake in computing it, and the angles that occur in a text of a given length."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.rope import (
    Positions,
    angles,
    as_positions,
    float64_device,
    inv_freq,
)

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def unseen_angles(
    positions: Positions, length: int, dim: int, base: float = 10000.0
) -> Tensor:
    """Return how far each pair's angle is from the nearest angle that occurs for this pair in a text of ``length``
    words: in radians, from 0 to π.

    Within the text, pair i sweeps the arc from 0 to (length − 1)θ_i. The result is 0 on that arc, and 0 everywhere for
    a pair that completes a turn. Shape positions.shape + (dim/2,), float64; ``positions``: as in `angles`.

    >>> unseen_angles([99, 150], length=101, dim=4)  # the second pair has swept 1 radian
    tensor([[0.0000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """
    length = checks.integer("length", length, minimum=1)
    pointing = angles(positions, dim, base).remainder(2 * math.pi)
    arc = angles(length - 1, dim, base).to(pointing.device)
    nearest_end = torch.minimum(pointing - arc, 2 * math.pi - pointing)
    return nearest_end.clamp(min=0)


def encoding(
    positions: Positions,
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Return the sinusoidal encoding PE of any positions: shape positions.shape + (dim,), interleaved.

    Entry 2i is sin mθ_i, entry 2i + 1 is cos mθ_i. ``positions``: as in `angles`. The result is on their device, except
    that for mps a float64 result is on the CPU. ``dtype`` is float64, float32, bfloat16 or float16; the angles are
    always float64.

    >>> encoding([0, 1], dim=4, dtype=torch.float64)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 1.0000]], dtype=torch.float64)
    """
    checks.choice("dtype", dtype, FLOATS)
    result = interleave(angles(positions, dim, base)).to(dtype)
    # A float64 result stays on the angles' device.
    if isinstance(positions, Tensor) and dtype != torch.float64:
        result = result.to(positions.device)
    return result


def encoding_all_in(
    positions: Positions,
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Compute `encoding` with positions, frequencies and angles all in ``dtype``: a common mistake, kept for
    comparison.

    In bfloat16 and float16 the angle loses digits as m grows, and soon the result is the encoding of some other
    position. In float16, positions from 65,520 on become infinite, and their encoding becomes NaN.
    """
    checks.choice("dtype", dtype, FLOATS)
    positions = as_positions("positions", positions)
    if dtype == torch.float64:
        positions = positions.to(float64_device(positions.device))
    frequencies = inv_freq(dim, base).to(dtype).to(positions.device)
    return interleave(positions.to(dtype)[..., None] * frequencies)


class RoundingError(NamedTuple):
    """The largest error of any entry of an encoding, measured by `rounding_error`."""

    cast_last: float
    throughout: float


def rounding_error(
    positions: Positions,
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.bfloat16,
) -> RoundingError:
    """Return the largest error in ``dtype`` compared with float64, in two cases: only the result is cast (`encoding`),
    or everything is computed in ``dtype`` (`encoding_all_in`).

    If only the result is cast, the error is at most half the spacing of the numbers below 1: 2^−9 in bfloat16, 2^−12 in
    float16, 2^−25 in float32 (and 2^−25 more in the half-precision types, which torch casts by way of float32). If
    everything is computed in ``dtype``, the error grows to as much as 2, because a sine can be −1 where it should be
    +1; it is NaN where float16 positions overflow.

    >>> rounding_error(range(4096), dim=64, dtype=torch.bfloat16).cast_last <= 2**-9 + 2**-25
    True
    """
    exact = encoding(positions, dim, base, torch.float64)
    if exact.numel() == 0:
        raise ValueError("positions must hold at least one position, got none")
    errors = (
        (approximate.to(exact.device).double() - exact).abs().max().item()
        for approximate in (
            encoding(positions, dim, base, dtype),
            encoding_all_in(positions, dim, base, dtype),
        )
    )
    return RoundingError(*errors)


def interleave(radians: Tensor) -> Tensor:
    """Alternate the sines and cosines of angles: (…, d/2) to (…, d).

    >>> interleave(torch.tensor([0.0, math.pi / 2]))[:2]
    tensor([0., 1.])
    """
    return torch.stack((radians.sin(), radians.cos()), dim=-1).flatten(-2)
