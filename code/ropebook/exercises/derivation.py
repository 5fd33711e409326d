"""Exercises on the rotation: its matrix, and the score of two vectors at their positions."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import derivation
from ropebook.exercises.marking import HALF_EXPONENT, Chosen, Written, random


def _matrix(m: float, dim: int, base: float, layout: str = "interleaved") -> Tensor:
    return derivation.rotation_matrix(m, dim, base, layout=layout)


def _unsigned(m: int, dim: int, base: float) -> Tensor:
    """Return a wrong rotation matrix, in which both sines have a plus sign."""
    right = _matrix(m, dim, base)
    return right.where(right.tril() != 0, right.T)


MATRIX = Written(
    _matrix,
    {
        "clockwise": (
            lambda m, d, b: _matrix(-m, d, b),
            "this rotates clockwise: the minus sign belongs in the upper row.",
        ),
        "degrees": (
            lambda m, d, b: _matrix(m * torch.pi / 180, d, b),
            "the angles are treated as degrees, so the rotation is 57 times too slow.",
        ),
        "other_layout": (
            lambda m, d, b: _matrix(m, d, b, "half"),
            "this is a proper rotation, but of different pairs: entry 0 is paired with entry d/2 instead of its neighbour.",
        ),
        "same_angle": (
            lambda m, d, b: _matrix(m, d, 1.0),
            "all pairs are rotated by m, but each has its own frequency.",
        ),
        "halved_dim": (
            lambda m, d, b: _matrix(m, d, b**2),
            "frequencies fall too fast: the exponent has d/2 instead of d.",
        ),
        "half_exponent": (
            lambda m, d, b: _matrix(m, d, b**0.5),
            HALF_EXPONENT,
        ),
        "missing_minus": (
            _unsigned,
            "both sines have a plus sign, so this is not a rotation: lengths change.",
        ),
    },
    [(1, 8, 10000.0), (2, 6, 50.0)],
    "it has blocks along the diagonal, each with its own angle.",
)


def _score(q: Tensor, k: Tensor, distance: float, base: float = 10000.0) -> Tensor:
    return q @ _matrix(distance, len(q), base) @ k


SCORE = Written(
    lambda q, k, m, n: _score(q, k, n - m),
    {
        "wrong_way": (
            lambda q, k, m, n: _score(q, k, m - n),
            "this is qᵀ R_{m−n} k. The transpose rotates q back: qᵀ R_mᵀ R_n k = qᵀ R_{n−m} k.",
        ),
        "sum": (
            lambda q, k, m, n: _score(q, k, m + n),
            "the score depends on m + n: one of the two is rotated the wrong way.",
        ),
        "no_sign": (
            lambda q, k, m, n: _score(q, k, -abs(m - n)),
            "keys before and after the query get the same score: the distance has lost its sign.",
        ),
        "query_only": (
            lambda q, k, m, n: _score(q, k, -m),
            "q is rotated and k is not, so the score depends on m alone.",
        ),
        "key_only": (
            lambda q, k, m, n: _score(q, k, n),
            "k is rotated and q is not, so the score depends on n alone.",
        ),
        "half_exponent": (
            lambda q, k, m, n: _score(q, k, n - m, 100.0),
            HALF_EXPONENT,
        ),
        "not_turned": (
            lambda q, k, m, n: q @ k,
            "nothing is rotated: this is the plain dot product.",
        ),
        "scaled": (
            lambda q, k, m, n: _score(q, k, n - m) / len(q) ** 0.5,
            "this is divided by √d, as in attention, but the exercise asks for the dot product itself.",
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
    """Compute the scores of q and k, (T, d), after rotating them. One line of the rotation contains a mistake."""
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
        "theta": "the frequencies are right. The exponents are 0, 2, 4, … over d.",
        "angle": "this line is right. An angle is the position times the frequency, in radians.",
        "q1, q2": "this line is right. Neighbours are pairs.",
        "turned_q": "this rotates counter-clockwise, as it should. (It reorders first and second entries, but in the same way for q and k.)",
        "turned_k": "k is rotated clockwise, so the score depends on m + n. Rotate both in the same direction; the transpose does the rest.",
    },
)
