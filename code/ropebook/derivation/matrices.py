"""R_m, which rotates pair i by mθ_i: its matrix, the rotation of vectors, scores, and the matrix exponential."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.rope import Positions


def rotation(angle: Positions) -> Tensor:
    """Return the counter-clockwise rotation by ``angle`` radians: shape angle.shape + (2, 2), float64.

    ``angle``: a tensor, array, list or number; integers, float32 or float64, at most 2^31 in absolute value.

    >>> rotation(torch.pi / 2).round(decimals=12) + 0.0
    tensor([[ 0., -1.],
            [ 1.,  0.]], dtype=torch.float64)
    """
    angle = _float64("angle", angle)
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((cos, -sin, sin, cos), dim=-1).unflatten(-1, (2, 2))


def pairs(dim: int, layout: str = "interleaved") -> Tensor:
    """Return the indices of the two entries that form each pair: row i is pair i. Shape (dim/2, 2), int64.

    >>> pairs(6).tolist(), pairs(6, "half").tolist()
    ([[0, 1], [2, 3], [4, 5]], [[0, 3], [1, 4], [2, 5]])
    """
    entries = torch.arange(checks.even("dim", dim))
    if checks.layout(layout) == "half":
        return entries.view(2, -1).T
    return entries.view(-1, 2)


def rotation_matrix(
    positions: Positions,
    dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Tensor:
    """Return the matrix R_m, which rotates pair i by mθ_i: shape positions.shape + (dim, dim), float64.

    The matrix has one 2 × 2 rotation per pair and zeros elsewhere (Su et al. 2021, section 3.2.2, equation 15).
    ``positions``: as in `ropebook.sinusoidal.angles`, so they may be negative or fractional.

    >>> R = rotation_matrix(range(8), dim=6)
    >>> bool((R[5].T @ R[2]).allclose(R[3].T))  # R_mᵀ R_n = R_{n−m}
    True
    """
    blocks = rotation(rope.angles(positions, dim, base))
    return _on_the_diagonal(blocks, layout)


def rotate(
    x: Tensor,
    positions: Positions,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Tensor:
    """Compute R_m x for every vector x of length dim and its position m.

    The result has the shape, dtype and device of x.

    ``x``: floating point, (…, dim), such as (batch, heads, seq, dim). ``positions``: any shape that broadcasts with
    x.shape[:-1], such as (seq,). The arithmetic is done in float64; only the result is cast.

    >>> rotate(torch.tensor([1.0, 2.0, 3.0, 4.0]), 2)
    tensor([-2.2347,  0.0770,  2.9194,  4.0592])
    """
    dim = _last_axis("x", x)
    order = pairs(dim, layout)
    blocks = rotation(rope.angles(positions, dim, base))
    _broadcasting("positions", blocks.shape[:-3], x.shape[:-1])
    where = rope.float64_device(x.device)
    columns = x.to(where).double()[..., order].unsqueeze(-1)
    turned = (blocks.to(where) @ columns).flatten(-3)  # one pair after another
    return turned[..., order.flatten().argsort()].to(x.dtype).to(x.device)


def score(
    q: Tensor,
    k: Tensor,
    m: Positions,
    n: Positions,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Tensor:
    """Return the score ⟨R_m q, R_n k⟩ in float64, without dividing by √dim.

    The shape results from broadcasting q[..., 0], k[..., 0], m and n.

    ``q``, ``k``: (…, dim), floating point. ``m``, ``n``: positions that broadcast with q.shape[:-1] and k.shape[:-1].

    >>> q, k = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 1.0, 0.0]])
    >>> score(q, k, m=[7, 107], n=[5, 105])
    tensor([2.9964, 2.9964], dtype=torch.float64)
    """
    if _last_axis("q", q) != _last_axis("k", k):
        raise ValueError(
            f"q and k must agree in their last axis, got shapes {tuple(q.shape)} and {tuple(k.shape)}"
        )
    query, key = (
        rotate(rope.in_float64(vector), at, base, layout)
        for vector, at in ((q, m), (k, n))
    )
    _broadcasting("k, rotated,", key.shape, query.shape)
    return (query * key).sum(-1)


def generator(
    dim: int, base: float = 10000.0, layout: str = "interleaved"
) -> Tensor:
    """Return the skew-symmetric matrix Ω with R_m = exp(mΩ): shape (dim, dim), float64.

    The block for pair i is θ_i J, where J is the quarter turn [[0, −1], [1, 0]].

    >>> generator(4)
    tensor([[ 0.0000, -1.0000,  0.0000,  0.0000],
            [ 1.0000,  0.0000,  0.0000,  0.0000],
            [ 0.0000,  0.0000,  0.0000, -0.0100],
            [ 0.0000,  0.0000,  0.0100,  0.0000]], dtype=torch.float64)
    """
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    return _on_the_diagonal(
        rope.inv_freq(dim, base)[:, None, None] * quarter, layout
    )


def _on_the_diagonal(blocks: Tensor, layout: str) -> Tensor:
    """Return a matrix in which blocks[…, i, :, :] is the 2 × 2 block of pair i, and all other entries are zero."""
    dim = 2 * blocks.shape[-3]
    order = pairs(dim, layout)
    result = blocks.new_zeros(*blocks.shape[:-3], dim, dim)
    result[..., order[:, :, None], order[:, None, :]] = blocks
    return result


def _last_axis(name: str, vectors: Tensor) -> int:
    if checks.floating(name, vectors).ndim == 0:
        raise ValueError(f"{name} must have shape (..., dim), got a single number")
    return vectors.shape[-1]


def _broadcasting(name: str, shape: torch.Size, other: torch.Size) -> None:
    try:
        torch.broadcast_shapes(shape, other)
    except RuntimeError:
        raise ValueError(
            f"{name} must broadcast with {tuple(other)}, got shape {tuple(shape)}"
        ) from None


def _float64(name: str, value: Positions) -> Tensor:
    return rope.in_float64(rope.as_positions(name, value))
