"""Exercises on complex numbers: rotating with a single product, and the waves that add up to a score."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import complex_plane
from ropebook.exercises.marking import Chosen, Rotation, Written, random

ROTATION = Rotation(
    "interleaved",
    10000.0,
    "one product of complex numbers for every pair.",
    hints={
        "other_layout": "view_as_complex pairs neighbours.",
        "clockwise": "There is one conjugate too many.",
        "opposite_signs": "Rotate both by the same number; the conjugate comes later, in the score.",
    },
)


def _of_products(products: Tensor) -> tuple[Tensor, Tensor]:
    return products.real, products.imag


def _complex(x: Tensor) -> Tensor:
    return torch.view_as_complex(x.unflatten(-1, (-1, 2)))


def _neighbours(x: Tensor) -> Tensor:
    """Reorder a half-split vector, so that the two entries of each pair are next to each other."""
    return torch.stack(x.chunk(2, -1), -1).flatten(-2)


AMPLITUDES = Written(
    lambda q, k: tuple(complex_plane.amplitudes(q, k)),
    {
        "no_conjugate": (
            lambda q, k: _of_products(_complex(q) * _complex(k)),
            "the conjugate is missing: this is the product q̂ k̂, but the score is the real part of q̂ times the conjugate of k̂.",
        ),
        "swapped": (
            lambda q, k: tuple(reversed(complex_plane.amplitudes(q, k))),
            "a and b have changed places: a belongs to the cosine.",
        ),
        "wrong_conjugate": (
            lambda q, k: tuple(complex_plane.amplitudes(k, q)),
            "b has the wrong sign: the wrong factor is conjugated, so the score is that of −Δ.",
        ),
        "other_layout": (
            lambda q, k: tuple(complex_plane.amplitudes(_neighbours(q), _neighbours(k))),
            "your pairs are half a vector apart, but here they are neighbours.",
        ),
        "lengths": (
            lambda q, k: (_complex(q).abs() * _complex(k).abs(), 0 * _complex(q).abs()),
            "only the lengths are left: the angle between q and k is lost.",
        ),
    },
    [(random(8, seed=1), random(8, seed=2)), (random(6, seed=3), random(6, seed=4))],
    "the score is Σ a cos Δθ + b sin Δθ.",
)  # fmt: skip


def planted(q: Tensor, k: Tensor, m: Tensor, n: Tensor, theta: Tensor) -> Tensor:
    """Compute the score of q at position m and k at position n. One of the lines contains a mistake."""
    query = torch.view_as_complex(q.unflatten(-1, (-1, 2)))
    key = torch.view_as_complex(k.unflatten(-1, (-1, 2)))
    query = query * torch.exp(1j * m * theta)
    key = key * torch.exp(1j * n * theta)
    product = query * key
    return product.real.sum(-1)


BUG = Chosen(
    "product",
    {
        "query": "this line is right. It reads neighbours as one complex number and rotates it by mθ.",
        "key": "this line is right. It rotates by nθ, in the same direction as the query. The conjugate comes later.",
        "product": "without a conjugate, the angles add up, so the score depends on m + n. It should be query · conj(key).",
        "return": "this line is right. It sums the real part over pairs.",
    },
)
