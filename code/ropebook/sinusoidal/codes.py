"""Simpler codes (counting, fractions, binary digits), and measures for any code."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.rope import Positions, as_positions, in_float64
from ropebook.sinusoidal.vectors import FLOATS


def counting(length: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the simplest code, in which position m is the number m. Shape (length, 1).

    The numbers grow without bound, and so do their products. Half-precision types also run out of integers:

    >>> counting(258, torch.bfloat16)[255:].flatten().tolist()
    [255.0, 256.0, 256.0]
    """
    length = checks.integer("length", length, minimum=1)
    checks.choice("dtype", dtype, FLOATS)
    return torch.arange(length)[:, None].to(dtype)


def fractions(length: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the counting code squeezed into 0 … 1: position m is m/(length − 1). Shape (length, 1); length at least 2.

    This code stays small, but the size of a step from word to word depends on the length of the text:

    >>> fractions(3).flatten().tolist(), fractions(5).flatten().tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    # For a single word the fraction would be 0/0.
    length = checks.integer("length", length, minimum=2)
    checks.choice("dtype", dtype, FLOATS)
    m = torch.arange(length, dtype=torch.float64)[:, None]
    return (m / (length - 1)).to(dtype)


def binary_digits(positions: Positions, bits: int) -> Tensor:
    """Return the binary digits of positions, lowest digit first: shape positions.shape + (bits,), int64.

    Digit j is a square wave of period 2^(j+1) (`binary_periods`). Positions are integers from 0 to 2^bits − 1.

    >>> binary_digits([5, 6], bits=3)
    tensor([[1, 0, 1],
            [0, 1, 1]])
    """
    bits = checks.integer("bits", bits, minimum=1, maximum=31)
    positions = whole_positions(
        "positions", positions, minimum=0, maximum=2**bits - 1
    )
    return (positions[..., None] >> torch.arange(bits, device=positions.device)) & 1


def binary_periods(bits: int) -> Tensor:
    """Return the periods 2^(j+1) of the binary digits j = 0 … bits − 1, in positions: shape (bits,), int64.

    >>> binary_periods(4)
    tensor([ 2,  4,  8, 16])
    """
    bits = checks.integer("bits", bits, minimum=1, maximum=31)
    return 2 ** torch.arange(1, bits + 1)


def binary_waves(positions: Positions, bits: int) -> Tensor:
    """Return the sinusoids behind the binary digits: shape positions.shape + (bits,), float64.

    Wave j is −sin(2π(m + ½)/2^(j+1)). It has the period of digit j, and it is positive exactly where the digit is 1, so
    the digit is the sign of the wave. The ½ shifts the wave so that it is never 0 at a whole position.

    >>> (binary_waves(6, bits=3) > 0).long()
    tensor([0, 1, 1])
    """
    positions = as_positions("positions", positions)
    m = in_float64(positions)[..., None]
    return -torch.sin(2 * math.pi * (m + 0.5) / binary_periods(bits).to(m.device))


class CodeSummary(NamedTuple):
    """The result of `describe_codes`."""

    largest_norm: float
    smallest_step: float
    largest_step: float
    distinct: int


def describe_codes(codes: Tensor) -> CodeSummary:
    """Measure a position code: the size of its vectors, the steps between neighbours, and the number of positions it
    distinguishes.

    ``codes``: (length, numbers per position), floating point, length at least 2. A good code has bounded norms, steps
    of the same size everywhere and for every length, and as many distinct rows as positions.

    >>> describe_codes(counting(4096, torch.bfloat16)).distinct
    769
    """
    checks.floating("codes", codes)
    if codes.ndim != 2 or codes.shape[0] < 2 or codes.shape[1] < 1:
        raise ValueError(
            f"codes must have shape (length >= 2, numbers per position), got {tuple(codes.shape)}"
        )
    distinct = codes.shape[0] - len(collisions(codes))
    exact = in_float64(codes)
    norms, steps = exact.norm(dim=-1), exact.diff(dim=0).norm(dim=-1)
    return CodeSummary(
        norms.max().item(),
        steps.min().item(),
        steps.max().item(),
        distinct=distinct,
    )


def collisions(codes: Tensor) -> Tensor:
    """Find the positions whose code is the same as that of an earlier position: shape (count, 2), rows (earliest,
    later), int64.

    ``codes``: (length,) or (length, numbers per position). Codes are compared exactly, so round them to the dtype of
    interest first: ``collisions(encoding(range(4096), 64, dtype=torch.bfloat16))``.

    >>> collisions(counting(262, torch.bfloat16))
    tensor([[256, 257],
            [259, 260],
            [259, 261]])
    """
    checks.floating("codes", codes)
    if codes.ndim not in (1, 2) or codes.shape[1:] == (0,):
        raise ValueError(
            f"codes must have shape (length,) or (length, numbers per position >= 1), got {tuple(codes.shape)}"
        )
    if not codes.isfinite().all():
        raise ValueError("codes must be finite, got infinities or NaN among them")
    values, group = torch.unique(
        codes, dim=None if codes.ndim == 1 else 0, return_inverse=True
    )
    later = torch.arange(len(codes), device=codes.device)
    none = torch.full((len(values),), len(codes), device=codes.device)
    earliest = none.scatter_reduce(0, group, later, "amin")[group]
    return torch.stack((earliest, later), dim=-1)[earliest != later]


def whole_positions(
    name: str, value: Positions, minimum: int, maximum: int, note: str = ""
) -> Tensor:
    """Convert ``value`` to a tensor of whole positions from ``minimum`` to ``maximum``. Error messages refer to it as
    ``name`` and end with ``note``.

    >>> whole_positions("m", [0, 7], minimum=0, maximum=7)
    tensor([0, 7])
    """
    value = as_positions(name, value)
    if value.is_floating_point():
        raise TypeError(f"{name} must be integers, got dtype {value.dtype}")
    return checks.entries(name, value, minimum, maximum, note)
