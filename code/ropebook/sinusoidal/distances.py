"""Relative position: a step as a matrix, the distance kernel, and how far apart two encodings are."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ropebook.rope import (
    Positions,
    angles,
    as_positions,
    dim_and_base,
    in_float64,
    inv_freq,
)


def relative_positions(
    query_positions: Positions, key_positions: Positions
) -> Tensor:
    """Return the distances Δ = m − n between every query and key: (…, queries) and (…, keys) to (…, queries, keys).

    >>> relative_positions([0, 1, 2], [0, 1, 2])
    tensor([[ 0, -1, -2],
            [ 1,  0, -1],
            [ 2,  1,  0]])
    """
    queries = as_positions("query_positions", query_positions)
    keys = as_positions("key_positions", key_positions)
    for name, positions in (("query_positions", queries), ("key_positions", keys)):
        if positions.ndim == 0:
            raise ValueError(
                f"{name} must have at least one axis, got the single number {positions.item()}"
            )
    return queries[..., :, None] - keys[..., None, :]


def shift_matrix(offset: Positions, dim: int, base: float = 10000.0) -> Tensor:
    """Return the matrix M_k such that PE_{m+k} = M_k PE_m at every m: shape offset.shape + (dim, dim), float64.

    For each pair, the matrix has a 2 × 2 block on its diagonal, a rotation by kθ_i:

        [ cos kθ_i   sin kθ_i]
        [−sin kθ_i   cos kθ_i]

    The rotation is clockwise, because the pair is (sin, cos) and not (cos, sin). M_k is orthogonal, and M_j M_k =
    M_{j+k}.

    >>> from ropebook.sinusoidal import encoding
    >>> bool((shift_matrix(3, 8) @ encoding(4, 8, dtype=torch.float64)).allclose(encoding(7, 8, dtype=torch.float64)))
    True
    """
    radians = angles(as_positions("offset", offset), dim, base)
    cos, sin = radians.cos(), radians.sin()
    result = radians.new_zeros(*radians.shape[:-1], dim, dim)
    even = torch.arange(0, dim, 2, device=radians.device)
    result[..., even, even] = cos
    result[..., even, even + 1] = sin
    result[..., even + 1, even] = -sin
    result[..., even + 1, even + 1] = cos
    return result


def distance_kernel(
    distances: Positions, dim: int, base: float = 10000.0
) -> Tensor:
    """Return the kernel K(Δ) = Σ_i cos θ_iΔ = PE_m · PE_n, a fingerprint of the distance: shape distances.shape,
    float64.

    The kernel is d/2 at Δ = 0, and it is an even function: K(−Δ) = K(Δ). The sum is taken pair by pair. For any
    ``dim``, it therefore needs only as much memory as a few copies of the distances.

    >>> distance_kernel([0, 1, -1], dim=4)
    tensor([2.0000, 1.5403, 1.5403], dtype=torch.float64)
    """
    return _sum_over_pairs(torch.cos, distances, dim, base)


def chord(distances: Positions, dim: int, base: float = 10000.0) -> Tensor:
    """Return the distance between two encodings, |PE_{m+Δ} − PE_m|, which is the same for every m: shape
    distances.shape, float64.

    It is √(d − 2K(Δ)). We compute it as 2·√(Σ_i sin²(θ_iΔ/2)), which loses no digits where the encodings almost
    coincide.

    >>> chord([0, 1, 2], dim=2)
    tensor([0.0000, 0.9589, 1.6829], dtype=torch.float64)
    """

    def squared_half_chord(radians: Tensor) -> Tensor:
        return (radians / 2).sin().square()

    return 2 * _sum_over_pairs(squared_half_chord, distances, dim, base).sqrt()


def _sum_over_pairs(
    term: Callable[[Tensor], Tensor], distances: Positions, dim: int, base: float
) -> Tensor:
    dim, base = dim_and_base(dim, base)
    distances = in_float64(as_positions("distances", distances))
    total = torch.zeros_like(distances)
    # We take one pair at a time, because the whole table would be dim/2 times larger.
    for frequency in inv_freq(dim, base).tolist():
        total += term(distances * frequency)
    return total
