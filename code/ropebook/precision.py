"""Which numbers in a rotation may be rounded? To find out, we carry out one step in a low-precision type and all others
in float64.

In the computation of a score, we can round the positions, the frequencies, the angles, the finished cosines and sines,
or the rotated queries and keys. The functions here round one of these quantities and measure the effect on the tables
and on the scores.
"""

from __future__ import annotations

from typing import NamedTuple

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
    """Compute cos mθ_i and sin mθ_i in float64, with one step done in ``dtype``. Each has shape positions.shape +
    (dim/2,).

    ``rounded`` says what is rounded: "positions" (m), "inv_freq" (θ), "angles" (m, θ and their product, as if
    everything were computed in dtype), "table" (the finished cos and sin), or ``None`` (nothing). In float16, positions
    from 65,520 on become infinite, and their cosines become NaN.

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
    """Return the largest error of any pair's cos or sin, at each position: shape positions.shape, float64, at most 2.

    >>> errors = table_error(torch.tensor([1, 257]), 64, rounded="positions")
    >>> errors[0].item(), errors[1].item() > 0.8
    (0.0, True)
    """
    ours = rounded_cos_sin(positions, dim, base, dtype=dtype, rounded=rounded)
    exact = rounded_cos_sin(positions, dim, base)
    errors = [(a - b).abs().amax(-1) for a, b in zip(ours, exact, strict=True)]
    return torch.maximum(*errors)


class ScoreError(NamedTuple):
    """The errors of scores, relative to |q||k|; the result of `score_error`."""

    rms: Float[Tensor, " *shape"]
    """The root mean square over random q and k. Their directions are independent, and all directions are equally
    likely."""
    worst: Float[Tensor, " *shape"]
    """The largest error over all nonzero q and k."""


def score_error(
    positions: Real[Tensor, " *shape"],
    dim: int,
    base: float = 10000.0,
    *,
    distance: int = 1,
    dtype: torch.dtype = torch.bfloat16,
    rounded: str = "table",
    generator: torch.Generator | None = None,
) -> ScoreError:
    """Return the error of the score of a query at m and a key at m − ``distance``, for each m in ``positions``:
    float64.

    The exact score depends only on ``distance``. The error should too, but if ``rounded`` is an early step, the error
    also depends on m. ``rounded`` is a step of `rounded_cos_sin`, or "result", which means that the rotation is exact,
    and the rotated q and k are then rounded to ``dtype``.

    For a step of `rounded_cos_sin` the error is qᵀEk, where each pair i contributes a block of size e_i (`pair_errors`)
    to E. So ``worst`` and ``rms`` are both exact. ``worst`` is the operator norm of E, max e_i, which is reached by a q
    and a k that are zero outside the pair with the largest e_i. ``rms`` is the Frobenius norm of E divided by d,
    √(2Σe_i²)/d.

    For "result", ``worst`` is the least upper bound, 2δ + δ². Here δ = u/(1 + u) is the largest relative rounding error
    in ``dtype``, and 1 + 2u is the next number after 1 in ``dtype``. Rotated q and k whose entries are all just above 1
    + u come as close to this bound as you like at any position. ``rms`` is measured over 1,000 pairs of q and k that
    ``generator`` draws.

    >>> m = torch.tensor([10, 1_000_000])
    >>> score_error(m, 64, dtype=torch.float32, rounded="angles").worst < 0.1
    tensor([True, True])
    """
    checks.choice("rounded", rounded, (*ROUNDED, "result"))
    if rounded != "result":
        options = {"distance": distance, "dtype": dtype, "rounded": rounded}
        errors = pair_errors(positions, dim, base, **options)
        return ScoreError(
            rms=(2 * errors.square().sum(-1)).sqrt() / dim, worst=errors.amax(-1)
        )
    distance = checks.integer("distance", distance)
    check_positions(positions)
    checks.choice("dtype", dtype, _FLOATS)
    at = positions.flatten().double()
    x = torch.randn(2, 1000, 1, dim, dtype=torch.float64, generator=generator)
    x = x.expand(-1, -1, len(at), -1)
    exact = [
        rotate_by_pairs(one, *rounded_cos_sin(where, dim, base))
        for one, where in zip(x, (at, at - distance), strict=True)
    ]
    q, k = (one.to(dtype).double() for one in exact)
    off = (q * k - exact[0] * exact[1]).sum(-1) / x.norm(dim=-1).prod(0)
    rms = off.square().mean(0).sqrt().reshape(positions.shape)
    u = torch.finfo(dtype).eps / 2
    share = u / (1 + u)
    return ScoreError(rms, torch.full_like(rms, 2 * share + share**2))


def pair_errors(
    positions: Real[Tensor, " *shape"],
    dim: int,
    base: float = 10000.0,
    *,
    distance: int = 1,
    dtype: torch.dtype = torch.bfloat16,
    rounded: str = "table",
) -> Float[Tensor, "*shape pairs"]:
    """Return the largest error of each pair's part of the score, relative to the pair's length in q times its length in
    k.

    The query is at m, the key at m − ``distance``, and one step of `rounded_cos_sin` is done in ``dtype``. If z is cos
    + i·sin and ẑ the rounded z, a pair adds Re(q k̄ z_m z̄_n) to the score. The error is then Re(q k̄ e) with e = ẑ_m
    ẑ̄_n − z_m z̄_n, and it is largest if q k̄ has the direction of ē.

    >>> pair_errors(torch.tensor([1001]), 4, rounded="positions") > 0.5  # bfloat16 has no 1001: it is taken for 1000
    tensor([[ True, False]])
    """
    distance = checks.integer("distance", distance)
    check_positions(positions)

    def relative(step: str | None) -> Tensor:
        here, there = (
            torch.complex(
                *rounded_cos_sin(at, dim, base, dtype=dtype, rounded=step)
            )
            for at in (positions, positions.double() - distance)
        )
        return here * there.conj()

    return (relative(rounded) - relative(None)).abs()
