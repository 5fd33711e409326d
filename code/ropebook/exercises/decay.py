"""Exercises on distance: the score of equal vectors, and the pairs that complete a turn."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook import decay, rope
from ropebook.exercises.marking import HALF_EXPONENT, Chosen, Written


def share(distances: Tensor, dim: int, base: float) -> Tensor:
    """Return the right answer: the mean of cos Δθ_i over the pairs."""
    return rope.angles(distances, dim, base).cos().mean(-1)


SHARE = Written(
    share,
    {
        "sum": (
            lambda m, d, b: share(m, d, b) * (d // 2),
            "this is the sum: divide it by its value at distance 0, which is the number of pairs.",
        ),
        "over_dim": (
            lambda m, d, b: share(m, d, b) / 2,
            "this is divided by d. There are d/2 pairs, and the value at distance 0 should be 1.",
        ),
        "sine": (
            lambda m, d, b: rope.angles(m, d, b).sin().mean(-1),
            "these are sines, but for equal vectors the sines cancel and the cosines are left.",
        ),
        "degrees": (
            lambda m, d, b: rope.angles(m, d, b).deg2rad().cos().mean(-1),
            "here the angles are treated as degrees.",
        ),
        "absolute": (
            lambda m, d, b: rope.angles(m, d, b).cos().abs().mean(-1),
            "each term has lost its sign, but a score may be negative.",
        ),
        "half_exponent": (
            lambda m, d, b: share(m, d, b**0.5),
            HALF_EXPONENT,
        ),
        "one_pair": (
            lambda m, d, b: rope.angles(m, d, b).cos()[..., 0],
            "this is only the first pair.",
        ),
        "bound": (
            lambda m, d, b: torch.polar(torch.ones(()).double(), rope.angles(m, d, b)).mean(-1).abs(),
            "this is the length of the complex mean, an upper bound. The score is its real part.",
        ),
    },
    [(torch.tensor([0, 1, 10, 300]), 8, 10000.0), (torch.tensor([3, 50]), 16, 100.0)],
    "the curve is 1 at distance 0, and never as large again.",
)  # fmt: skip


def _count(limit: float, shorter: int = 1):
    def wrong(length: int, dim: int, base: float) -> int:
        return int(((length - shorter) * rope.inv_freq(dim, base) >= limit).sum())

    return wrong


TURNED = Written(
    lambda length, d, b: decay.turned_pairs(length, d, b),
    {
        "half_turn": (
            _count(math.pi),
            "these pairs make half a turn, but a whole turn is 2π.",
        ),
        "radian": (
            _count(1.0),
            "these pairs rotate by one radian, but a whole turn is 2π.",
        ),
        "one_more": (
            _count(2 * math.pi, 0),
            "the largest distance in a text of L tokens is L − 1, not L.",
        ),
        "the_others": (
            lambda length, d, b: d // 2 - decay.turned_pairs(length, d, b),
            "these are the pairs that do not complete a turn.",
        ),
        "entries": (
            lambda length, d, b: 2 * decay.turned_pairs(length, d, b),
            "this counts entries, but two entries make one pair.",
        ),
        "half_exponent": (
            lambda length, d, b: decay.turned_pairs(length, d, b**0.5),
            HALF_EXPONENT,
        ),
        "degrees": (_count(360.0), "this compares an angle in radians with 360."),
    },
    [(4096, 128, 10000.0), (7, 8, 10000.0), (8, 4, 16.0), (512, 64, 500.0)],
    "a pair completes a turn if (L − 1)θ reaches 2π.",
)


def claim(
    dim: int = 64, base: float = 10000.0, tokens: int = 2048, tries: int = 200
) -> Tensor:
    """Compute scores by distance, "averaged over random vectors".

    The scores decay only because one of the lines is wrong.
    """
    q = torch.randn(tries, dim, dtype=torch.float64)
    k = q.clone()
    q_hat, k_hat = (torch.view_as_complex(x.unflatten(-1, (-1, 2))) for x in (q, k))
    turn = torch.polar(
        torch.ones(()).double(), rope.angles(range(tokens), dim, base)
    )
    scores = ((q_hat * k_hat.conj())[:, None] * turn).real.sum(-1)
    return scores.mean(0) / math.sqrt(dim)


LEAK = Chosen(
    "k",
    {
        "q": "this line is right. It draws new normally distributed numbers for each try.",
        "k": "each key equals its query, so the content leaks in. For independent keys, the mean is 0 at every distance, "
        "and nothing is there to decay.",
        "turn": "this line is right. It has the angle at every distance, for each pair.",
        "scores": "this line is right. It takes the real part of q̂ times the conjugate of k̂, rotated.",
        "return": "this line is right. It takes a mean over tries and divides it by √d.",
    },
)
