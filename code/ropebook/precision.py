"""Which numbers of a rotation may be rounded: each step of it done in a narrow type, all others in float64.

On its way to a score a number can be rounded as a position, a frequency, an angle, a finished cosine or sine, or as a
rotated query or key. The functions round one of these and measure what that does to the tables and to scores.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.efficient import rotate_by_pairs
from ropebook.rope import check_positions
from ropebook.shapes import Float, Real

_FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)

ROUNDED = ("positions", "inv_freq", "angles", "table")


def rounded_cos_sin(
    positions: Real[Tensor, " *shape"],
    dim: int,
    base: float = 10000.0,
    *,
    dtype: torch.dtype = torch.bfloat16,
    rounded: str | None = None,
) -> tuple[Float[Tensor, "*shape pairs"], Float[Tensor, "*shape pairs"]]:
    """cos mθ_i and sin mθ_i in float64, with one step done in ``dtype``: each positions.shape + (dim/2,).

    ``rounded``: "positions" (m is rounded), "inv_freq" (θ is), "angles" (m, θ and their product are, as when all of it is
    computed in dtype), "table" (the finished cos and sin are), or ``None`` for the exact values. In float16 positions from
    65520 on are infinite, and their cosines NaN.

    >>> cos, _ = rounded_cos_sin(torch.tensor([256, 257]), dim=2, rounded="positions")
    >>> bool(cos[0] == cos[1])  # bfloat16 has no 257
    True
    """
    check_positions(positions)
    checks.choice("dtype", dtype, _FLOATS)
    if rounded is not None:
        checks.choice("rounded", rounded, ROUNDED)
    m = positions.double()[..., None]
    theta = rope.inv_freq(dim, base, device=positions.device)
    if rounded in ("positions", "angles"):
        m = m.to(dtype).double()
    if rounded in ("inv_freq", "angles"):
        theta = theta.to(dtype).double()
    angles = m * theta
    if rounded == "angles":
        angles = angles.to(dtype).double()
    cos, sin = angles.cos(), angles.sin()
    if rounded == "table":
        cos, sin = cos.to(dtype).double(), sin.to(dtype).double()
    return cos, sin


def table_error(
    positions: Real[Tensor, " *shape"],
    dim: int,
    base: float = 10000.0,
    *,
    dtype: torch.dtype = torch.bfloat16,
    rounded: str = "table",
) -> Float[Tensor, " *shape"]:
    """How far cos or sin is off at each position, at worst over the pairs: shape positions.shape, float64, at most 2.

    >>> errors = table_error(torch.tensor([1, 257]), 64, rounded="positions")
    >>> errors[0].item(), errors[1].item() > 0.8
    (0.0, True)
    """
    ours = rounded_cos_sin(positions, dim, base, dtype=dtype, rounded=rounded)
    exact = rounded_cos_sin(positions, dim, base)
    errors = [(a - b).abs().amax(-1) for a, b in zip(ours, exact, strict=True)]
    return torch.maximum(*errors)


def score_error(
    positions: Real[Tensor, " *shape"],
    dim: int,
    base: float = 10000.0,
    *,
    distance: int = 1,
    dtype: torch.dtype = torch.bfloat16,
    rounded: str = "table",
    generator: torch.Generator | None = None,
) -> Float[Tensor, " *shape"]:
    """How far the score of a query at m and a key at m − ``distance`` is off, at each m of ``positions``: float64.

    The error is a fraction of |q||k|, root mean square over 64 random q and k (normal entries). The exact score depends on
    ``distance`` alone; so should the error, and where ``rounded`` is an early step it does not. ``rounded`` is a step of
    `rounded_cos_sin`, or "result": all exact, and the rotated q and k rounded to ``dtype``.

    >>> m = torch.tensor([10, 1_000_000])
    >>> early, late = score_error(m, 64, rounded="result").tolist()
    >>> late < 2 * early
    True
    """
    checks.choice("rounded", rounded, (*ROUNDED, "result"))
    distance = checks.integer("distance", distance)
    check_positions(positions)
    step = None if rounded == "result" else rounded
    q, k = torch.randn(2, 64, 1, dim, dtype=torch.float64, generator=generator)
    at = positions.flatten().double()
    before = at - distance

    def scores(step: str | None, result: torch.dtype) -> Tensor:
        def turned(x: Tensor, at: Tensor) -> Tensor:
            how = {"dtype": dtype, "rounded": step}
            cos, sin = rounded_cos_sin(at, dim, base, **how)
            x = x.expand(-1, len(at), -1)
            return rotate_by_pairs(x, cos, sin).to(result).double()

        return (turned(q, at) * turned(k, before)).sum(-1)

    off = scores(step, dtype if rounded == "result" else torch.float64)
    off = (off - scores(None, torch.float64)) / (q.norm(dim=-1) * k.norm(dim=-1))
    return off.square().mean(0).sqrt().reshape(positions.shape)
