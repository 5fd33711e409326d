"""Matrices A that can rotate a vector by a position with several coordinates: R(m) = exp(m_1 A_1 + m_2 A_2 + …).

Each A is antisymmetric, so the rotation preserves lengths. The score depends only on n − m if and only if the matrices
A commute. In that case, there is a basis in which all of them consist of 2 × 2 blocks, so the rotation is described by
waves (`ropebook.beyond.axes`).
"""

from __future__ import annotations

from itertools import combinations

import torch
from torch import Tensor

from ropebook.rope import in_float64
from ropebook.shapes import Float, Real

Generators = Float[Tensor, "axes dim dim"]


def operator(
    place: Real[Tensor, " axes"], generators: Generators
) -> Float[Tensor, "dim dim"]:
    """Compute exp(m_1 A_1 + m_2 A_2 + …), float64."""
    if place.shape != generators.shape[:1]:
        raise ValueError(
            f"place must have shape ({len(generators)},), a number for each generator, got {tuple(place.shape)}"
        )
    sums = torch.einsum("a,aij->ij", in_float64(place), in_float64(generators))
    return torch.linalg.matrix_exp(sums)


def commutator(generators: Generators) -> float:
    """Return the largest entry of A B − B A, over all pairs of generators A and B.

    >>> commutator(spins())
    1.0
    """
    pairs = combinations(generators, 2)
    return max((float((a @ b - b @ a).abs().max()) for a, b in pairs), default=0.0)


def shift_error(
    generators: Generators, m: Real[Tensor, " axes"], n: Real[Tensor, " axes"]
) -> float:
    """Measure how far R(m)ᵀR(n) is from R(n − m). Returns the largest entry of the difference."""
    product = operator(m, generators).mT @ operator(n, generators)
    return float((product - operator(n - m, generators)).abs().max())


def spins() -> Float[Tensor, "2 3 3"]:
    """Return two generators that do not commute: those of rotations of space about the first and the second axis.

    >>> spins()[0]
    tensor([[ 0.,  0.,  0.],
            [ 0.,  0., -1.],
            [ 0.,  1.,  0.]], dtype=torch.float64)
    """
    about = torch.zeros(2, 3, 3, dtype=torch.float64)
    about[0, 2, 1], about[0, 1, 2] = 1, -1
    about[1, 0, 2], about[1, 2, 0] = 1, -1
    return about
