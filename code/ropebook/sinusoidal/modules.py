"""Modules that add computed or learned positions to token vectors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.rope import Positions, as_positions, dim_and_base, wide
from ropebook.sinusoidal.codes import whole_positions
from ropebook.sinusoidal.vectors import encoding


class SinusoidalEncoding(nn.Module):
    """Adds the sinusoidal encoding to word vectors: x (…, seq, dim) → x + PE, of the same shape and dtype.

    The module has no parameters or buffers, so training changes nothing, sequences may have any length, and ``.half()``
    has nothing to round. (A buffer of frequencies would be rounded, and would then be wrong.) Half-precision inputs are
    added in float32 and rounded once.

    Vaswani et al. (2017) multiply the word vectors by √dim first and apply dropout afterwards; both are left to the
    caller.

    >>> SinusoidalEncoding(dim=2)(torch.zeros(1, 2, 2))
    tensor([[[0.0000, 1.0000],
             [0.8415, 0.5403]]])
    """

    def __init__(self, dim: int, base: float = 10000.0) -> None:
        super().__init__()
        self.dim, self.base = dim_and_base(dim, base)

    def forward(self, x: Tensor, positions: Positions | None = None) -> Tensor:
        """Add the encoding to x. ``positions``: as in `encoding`, with a shape that broadcasts to x.shape[:-1]; by
        default 0 … seq − 1."""
        positions = _positions_of(x, positions, self.dim)
        dtype = wide(x.dtype)
        added = encoding(positions, self.dim, self.base, dtype)
        return (x.to(dtype) + added).to(x.dtype)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, base={self.base:g}"


class LearnedPositions(nn.Module):
    """Adds a trained vector to each position: x (…, seq, dim) → x + weight[positions], of the same shape.

    This is how BERT and GPT-2 do it. ``weight`` is (max_length, dim), drawn from a normal distribution with standard
    deviation ``std`` (0.02 in BERT). Positions from max_length on have no vector, so they raise an error.

    >>> LearnedPositions(dim=4, max_length=512)(torch.zeros(1, 513, 4))
    Traceback (most recent call last):
        ...
    ValueError: positions must lie between 0 and 511 (max_length=512 vectors were learned, no more), got 512
    """

    def __init__(self, dim: int, max_length: int, std: float = 0.02) -> None:
        super().__init__()
        self.dim = checks.integer("dim", dim, minimum=1)
        self.max_length = checks.integer("max_length", max_length, minimum=1)
        self.std = checks.number("std", std, minimum=0)
        self.weight = nn.Parameter(torch.empty(self.max_length, self.dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.std)

    def forward(self, x: Tensor, positions: Positions | None = None) -> Tensor:
        """Add the vectors to x. ``positions``: integers from 0 to max_length − 1 that broadcast to x.shape[:-1]; by
        default 0 … seq − 1."""
        positions = _positions_of(x, positions, self.dim)
        note = f" (max_length={self.max_length} vectors were learned, no more)"
        positions = whole_positions(
            "positions",
            positions,
            minimum=0,
            maximum=self.max_length - 1,
            note=note,
        )
        return x + self.weight[positions].to(x.dtype)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, max_length={self.max_length}"


def _positions_of(x: Tensor, positions: Positions | None, dim: int) -> Tensor:
    """Return the positions of the word vectors x, on the device of x. Positions passed by the caller are checked
    against x; the default is 0 … seq − 1."""
    checks.floating("x", x)
    if x.ndim < 2 or x.shape[-1] != dim:
        raise ValueError(
            f"x must have shape (..., seq, {dim}), got {tuple(x.shape)}"
        )
    if positions is None:
        return torch.arange(x.shape[-2], device=x.device)
    positions = as_positions("positions", positions).to(x.device)
    try:
        fits = torch.broadcast_shapes(positions.shape, x.shape[:-1]) == x.shape[:-1]
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"positions must broadcast to {tuple(x.shape[:-1])}, got shape {tuple(positions.shape)}"
        )
    return positions
