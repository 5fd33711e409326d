"""The scores that one head can compute from positions alone: any sum of waves of the distance, at the encoding's
frequencies."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import checks


def head_matrix(a: Tensor, b: Tensor) -> Tensor:
    """Return the matrix B such that PE_mᵀ B PE_n = Σ_i a_i cos θ_i(m − n) + b_i sin θ_i(m − n) at every m and n: (dim,
    dim).

    In a head, B is W_Qᵀ W_K. It has a block [[a_i, b_i], [−b_i, a_i]] for each pair and zeros elsewhere, so it commutes
    with every step matrix M_t. ``a``, ``b``: (dim/2,), floating point. With a = 1 and b = 0 the sum is the distance
    kernel. With a_i = cos kθ_i and b_i = sin kθ_i, B is M_{−k} transposed, and the sum is K(Δ − k).

    >>> head_matrix(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([[ 1.,  2.],
            [-2.,  1.]])
    """
    for name, heights in (("a", a), ("b", b)):
        if checks.floating(name, heights).ndim != 1:
            raise ValueError(
                f"{name} must have shape (dim/2,), got {tuple(heights.shape)}"
            )
    if a.shape != b.shape:
        raise ValueError(
            f"a and b must have one shape, got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    blocks = torch.stack((a, b, -b, a), dim=-1).unflatten(-1, (2, 2))
    return torch.block_diag(*blocks)
