"""Exercises on the rotation: its matrix, and the score of two vectors at their positions."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import derivation
from ropebook.exercises.marking import HALF_EXPONENT, Chosen, Written, random


def _matrix(m: float, dim: int, base: float, layout: str = "interleaved") -> Tensor:
    return derivation.rotation_matrix(m, dim, base, layout=layout)


def _unsigned(m: int, dim: int, base: float) -> Tensor:
    """Return a wrong rotation, in which both sines have a plus sign."""
    right = _matrix(m, dim, base)
    return right.where(right.tril() != 0, right.T)


MATRIX = Written(
    _matrix,
    {
        "clockwise": (
            lambda m, d, b: _matrix(-m, d, b),
            "it turns clockwise: the minus belongs in the upper row.",
        ),
        "degrees": (
            lambda m, d, b: _matrix(m * torch.pi / 180, d, b),
            "angles are taken for degrees: 57 times too slow.",
        ),
        "other_layout": (
            lambda m, d, b: _matrix(m, d, b, "half"),
            "a proper rotation of other pairs: entry 0 turns with entry d/2, and should with its neighbour.",
        ),
        "same_angle": (
            lambda m, d, b: _matrix(m, d, 1.0),
            "all pairs turn by m: each has its own frequency.",
        ),
        "halved_dim": (
            lambda m, d, b: _matrix(m, d, b**2),
            "frequencies fall too fast: half of d stands in the exponent.",
        ),
        "half_exponent": (
            lambda m, d, b: _matrix(m, d, b**0.5),
            HALF_EXPONENT,
        ),
        "missing_minus": (
            _unsigned,
            "both sines are plus: this is no rotation, lengths change.",
        ),
    },
    [(1, 8, 10000.0), (2, 6, 50.0)],
    "blocks along the diagonal, each turned by its own angle.",
)


def _score(q: Tensor, k: Tensor, distance: float, base: float = 10000.0) -> Tensor:
    return q @ _matrix(distance, len(q), base) @ k


SCORE = Written(
    lambda q, k, m, n: _score(q, k, n - m),
    {
        "wrong_way": (
            lambda q, k, m, n: _score(q, k, m - n),
            "this is qᵀ R_{m−n} k. The transpose turns q back: qᵀ R_mᵀ R_n k = qᵀ R_{n−m} k.",
        ),
        "sum": (
            lambda q, k, m, n: _score(q, k, m + n),
            "the score knows m + n: one of the two is turned the wrong way.",
        ),
        "no_sign": (
            lambda q, k, m, n: _score(q, k, -abs(m - n)),
            "before and behind are alike: the distance has lost its sign.",
        ),
        "query_only": (
            lambda q, k, m, n: _score(q, k, -m),
            "q is turned and k is not: the score knows m alone.",
        ),
        "key_only": (
            lambda q, k, m, n: _score(q, k, n),
            "k is turned and q is not: the score knows n alone.",
        ),
        "half_exponent": (
            lambda q, k, m, n: _score(q, k, n - m, 100.0),
            HALF_EXPONENT,
        ),
        "not_turned": (
            lambda q, k, m, n: q @ k,
            "nothing is turned: this is the plain product.",
        ),
        "scaled": (
            lambda q, k, m, n: _score(q, k, n - m) / len(q) ** 0.5,
            "divided by √d: that is attention's affair, the product itself was asked for.",
        ),
    },
    [
        (random(4, seed=1), random(4, seed=2), 7, 3),
        (random(8, seed=3), random(8, seed=4), 2, 5),
    ],
    "it depends on n − m alone.",
)


def planted(
    q: Tensor, k: Tensor, positions: Tensor, base: float = 10000.0
) -> Tensor:
    """Compute the scores of q and k, (T, d), after rotating them. One of the lines of the rotation has a mistake."""
    theta = base ** (-torch.arange(0, q.shape[-1], 2) / q.shape[-1])
    angle = positions[:, None] * theta
    cos, sin = angle.cos(), angle.sin()
    q1, q2, k1, k2 = q[..., ::2], q[..., 1::2], k[..., ::2], k[..., 1::2]
    turned_q = torch.cat((q1 * cos - q2 * sin, q1 * sin + q2 * cos), -1)
    turned_k = torch.cat((k1 * cos + k2 * sin, k2 * cos - k1 * sin), -1)
    return turned_q @ turned_k.T


BUG = Chosen(
    "turned_k",
    {
        "theta": "0, 2, 4, … over d: the frequencies are right.",
        "angle": "the product of position and frequency, in radians: it is right.",
        "q1, q2": "neighbours are pairs: it is right.",
        "turned_q": "counter-clockwise, as it should be. (Firsts and seconds are put in another order, in q and k alike.)",
        "turned_k": "k is turned clockwise, so the score knows m + n. Both must turn the same way; the transpose does the rest.",
    },
)
