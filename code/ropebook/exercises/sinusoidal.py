"""Exercises on sinusoids: the encoding, and the matrix that shifts it by k positions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook import rope, sinusoidal
from ropebook.exercises.marking import HALF_EXPONENT, Chosen, Written


def encode(positions: Tensor, dim: int, base: float) -> Tensor:
    """Return the right answer: sin and cos of mθ_i side by side, (T, d)."""
    return _from_angles(rope.angles(positions, dim, base))


def _from_angles(angles: Tensor) -> Tensor:
    return rope.join(angles.sin(), angles.cos(), "interleaved")


def _exponents(factor: float):
    def wrong(positions: Tensor, dim: int, base: float) -> Tensor:
        exponents = factor * torch.arange(dim // 2, dtype=torch.float64) / dim
        return _from_angles(positions[:, None] * base**exponents)

    return wrong


ENCODING = Written(
    encode,
    {
        "cosine_first": (
            lambda m, d, b: rope.join(
                rope.angles(m, d, b).cos(),
                rope.angles(m, d, b).sin(),
                "interleaved",
            ),
            "sine and cosine have changed places: position 0 should be (0, 1, 0, 1, …).",
        ),
        "concatenated": (
            lambda m, d, b: encode(m, d, b)[..., rope.concatenated_order(d)],
            "the numbers are right, but in a different order: all sines come first, then all cosines.",
        ),
        "degrees": (
            lambda m, d, b: _from_angles(rope.angles(m, d, b).deg2rad()),
            "the angles are treated as degrees.",
        ),
        "whole_turns": (
            lambda m, d, b: _from_angles(2 * math.pi * rope.angles(m, d, b)),
            "angles are too large by a factor of 2π: θ is in radians per position, not in turns.",
        ),
        "half_exponent": (
            _exponents(-1.0),
            HALF_EXPONENT,
        ),
        "double_exponent": (
            _exponents(-4.0),
            "the exponent is 4i/d: it has d/2 instead of d.",
        ),
        "growing": (
            _exponents(2.0),
            "frequencies grow: the minus sign in the exponent is missing.",
        ),
        "sine_alone": (
            lambda m, d, b: rope.join(
                rope.angles(m, d, b).sin(),
                rope.angles(m, d, b).sin(),
                "interleaved",
            ),
            "there is no cosine, and a sine alone cannot tell whether the hand goes up or down.",
        ),
    },
    [(torch.tensor([0, 1, 5]), 8, 10000.0), (torch.tensor([2, 30]), 6, 50.0)],
    "position 0 is (0, 1, 0, 1, …), and each pair rotates at its own frequency.",
)


def _unsigned(k: int, dim: int, base: float) -> Tensor:
    """Return a wrong shift matrix, in which both sines have a plus sign."""
    right = sinusoidal.shift_matrix(k, dim, base)
    return right.where(right.triu() != 0, right.T)


def _same_angle(k: int, d: int, b: float) -> Tensor:
    cos, sin = math.cos(k), math.sin(k)
    block = torch.tensor([[cos, sin], [-sin, cos]], dtype=torch.float64)
    return torch.block_diag(*[block] * (d // 2))


def _halves(k: int, d: int, b: float) -> Tensor:
    order = rope.concatenated_order(d)
    return sinusoidal.shift_matrix(k, d, b)[order][:, order]


STEP = Written(
    lambda k, d, b: sinusoidal.shift_matrix(k, d, b),
    {
        "backwards": (
            lambda k, d, b: sinusoidal.shift_matrix(k, d, b).T,
            "this steps back, because the minus sign is in the upper row. That is right for pairs (cos, sin), but these are (sin, cos).",
        ),
        "no_minus": (
            _unsigned,
            "a minus sign is missing, so this matrix does not preserve lengths.",
        ),
        "same_angle": (_same_angle, "all pairs turn by k: each should turn by k times its own frequency."),
        "half_exponent": (lambda k, d, b: sinusoidal.shift_matrix(k, d, b**0.5), HALF_EXPONENT),
        "halves": (_halves, "pairs lie half a vector apart here, and the encoding has them side by side."),
    },
    [(1, 8, 10000.0), (2, 6, 50.0)],
    "it moves the encoding of any position by k positions.",
)  # fmt: skip


def planted(positions: Tensor, dim: int, base: float = 10000.0) -> Tensor:
    """Compute an encoding, (T, d). One of the lines contains a mistake."""
    pair = torch.arange(0, dim, 2, dtype=torch.float64)
    theta = base ** (-pair / dim)
    angles = positions.bfloat16()[:, None] * theta.bfloat16()
    table = torch.stack((angles.sin(), angles.cos()), -1)
    return table.flatten(-2).float()


BUG = Chosen(
    "angles",
    {
        "pair": "this line is right. 0, 2, 4, … is 2i already.",
        "theta": "this line is right. The exponent is −2i/d.",
        "angles": "bfloat16 cannot hold 257, so from position 256 on, neighbours share an encoding. Angles need at least float32.",
        "table": "this line is right. Sine and cosine are side by side.",
        "return": "converting to a wider type at the end does no harm, but it repairs nothing.",
    },
)
