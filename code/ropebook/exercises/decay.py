"""Exercises on distance: the score of equal vectors, and the pairs that complete a turn."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook import decay, rope
from ropebook.exercises.marking import HALF_EXPONENT, Chosen, Written


def share(distances: Tensor, dim: int, base: float) -> Tensor:
    """Compute the right answer: the mean of cos Δθ_i over the pairs."""
    return rope.angles(distances, dim, base).cos().mean(-1)


SHARE = Written(
    share,
    {
        "sum": (
            lambda m, d, b: share(m, d, b) * (d // 2),
            "this is the sum: divide by its value at distance 0, the number of pairs.",
        ),
        "over_dim": (
            lambda m, d, b: share(m, d, b) / 2,
            "divided by d: there are d/2 pairs, and at distance 0 it should be 1.",
        ),
        "sine": (
            lambda m, d, b: rope.angles(m, d, b).sin().mean(-1),
            "sines have cancelled: for equal vectors cosines stay.",
        ),
        "degrees": (
            lambda m, d, b: rope.angles(m, d, b).deg2rad().cos().mean(-1),
            "angles are taken for degrees.",
        ),
        "absolute": (
            lambda m, d, b: rope.angles(m, d, b).cos().abs().mean(-1),
            "each term is taken without its sign: a score may be negative.",
        ),
        "half_exponent": (
            lambda m, d, b: share(m, d, b**0.5),
            HALF_EXPONENT,
        ),
        "one_pair": (
            lambda m, d, b: rope.angles(m, d, b).cos()[..., 0],
            "this is the first pair alone.",
        ),
        "bound": (
            lambda m, d, b: torch.polar(torch.ones(()).double(), rope.angles(m, d, b)).mean(-1).abs(),
            "this is the length of the complex mean, an upper bound. The score is its real part.",
        ),
    },
    [(torch.tensor([0, 1, 10, 300]), 8, 10000.0), (torch.tensor([3, 50]), 16, 100.0)],
    "1 at distance 0, and never again quite so large.",
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
            "these have made half a turn: a whole one is 2π.",
        ),
        "radian": (
            _count(1.0),
            "these have turned by one radian: a whole turn is 2π.",
        ),
        "one_more": (
            _count(2 * math.pi, 0),
            "the largest distance in a text of L tokens is L − 1, not L.",
        ),
        "the_others": (
            lambda length, d, b: d // 2 - decay.turned_pairs(length, d, b),
            "these are the ones that have not come round.",
        ),
        "entries": (
            lambda length, d, b: 2 * decay.turned_pairs(length, d, b),
            "entries are counted: two of them are one pair.",
        ),
        "half_exponent": (
            lambda length, d, b: decay.turned_pairs(length, d, b**0.5),
            HALF_EXPONENT,
        ),
        "degrees": (_count(360.0), "an angle in radians is compared with 360."),
    },
    [(4096, 128, 10000.0), (7, 8, 10000.0), (8, 4, 16.0), (512, 64, 500.0)],
    "a pair has come round if (L − 1)θ reaches 2π.",
)


def claim(
    dim: int = 64, base: float = 10000.0, tokens: int = 2048, tries: int = 200
) -> Tensor:
    """Compute scores by distance, "averaged over random vectors". Because of a mistake in one of the lines, the scores
    decay."""
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
        "q": "normal numbers, drawn anew for each try: it is right.",
        "k": "each key is its query. So the content leaks in: for independent keys the mean is 0 at every distance, "
        "and nothing is there to decay.",
        "turn": "the angle of every distance, for each pair: it is right.",
        "scores": "the real part of q̂ times k̂ conjugate, turned: it is right.",
        "return": "a mean over tries, divided by √d: it is right.",
    },
)
