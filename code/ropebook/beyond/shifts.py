"""Measure, at random places, how precisely a score is preserved when both places move by the same amount."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import checks
from ropebook.beyond.values import turned_by
from ropebook.efficient import apply_rotary
from ropebook.rope import inv_freq
from ropebook.shapes import Float

ANGLES = ("float64", "float32")


def shift_errors(
    by: int,
    *,
    dim: int = 64,
    dtype: torch.dtype = torch.float32,
    angles: str = "float64",
    trials: int = 256,
    reach: int = 4096,
    seed: int = 0,
) -> Float[Tensor, " trials"]:
    """Measure how far S(m + by, n + by) is from S(m, n), for random unit vectors and places: (trials,), float64.

    Places are below ``reach``. The vectors have type ``dtype``. ``angles`` is the type in which angles are computed:
    "float64", as in this book, or "float32", as in transformers.
    """
    checks.choice("angles", angles, ANGLES)
    checks.integer("trials", trials, minimum=1)
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(2, trials, dim, generator=generator, dtype=torch.float64)
    q, k = (x / x.norm(dim=-1, keepdim=True)).to(dtype)
    m, n = torch.randint(0, reach, (2, trials), generator=generator)
    there, here = (
        (
            _turned(q, m + s, angles).double() * _turned(k, n + s, angles).double()
        ).sum(-1)
        for s in (by, 0)
    )
    return (there - here).abs()


def _turned(x: Tensor, places: Tensor, angles: str) -> Tensor:
    if angles == "float64":
        return turned_by(x, places)
    phi = places[:, None].float() * inv_freq(x.shape[-1]).float()
    return apply_rotary(x, phi.cos(), phi.sin(), layout="interleaved")
