"""Places with several coordinates.

Each pair has a vector called its wave, and its angle is the dot product of the wave with the place.

Sources: Su 2021, *The Road to a Better Transformer, 4* (two axes); Heo et al. 2024, *Rotary Position Embedding for
Vision Transformer* (axial and mixed).
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence

import torch
from torch import Tensor

from ropebook import checks
from ropebook.efficient import apply_rotary
from ropebook.rope import check_positions, in_float64, inv_freq, wide
from ropebook.shapes import Float, Real

Places = Real[Tensor, "*seq axes"]
Waves = Float[Tensor, "axes pairs"]


def axial(dims: Sequence[int], base: float | Sequence[float] = 10000.0) -> Waves:
    """Return axial waves, in which each pair follows one axis.

    Axis a is given ``dims[a]`` entries of the head, with the frequencies of a head of that size.

    ``base`` is one base for all axes, or a list with one base for each axis. The pairs of the first axis come first.

    >>> axial([4, 2], base=100)
    tensor([[1.0000, 0.1000, 0.0000],
            [0.0000, 0.0000, 1.0000]], dtype=torch.float64)
    """
    dims = checks.listed("dims", dims, "a list of integers")
    if not dims:
        raise ValueError("dims must have a number for each axis, got none")
    if isinstance(base, numbers.Real):
        bases = [base] * len(dims)
    else:
        bases = checks.listed("base", base, "a number or a list of numbers")
    if len(bases) != len(dims):
        raise ValueError(
            f"base must be one number, or one for each of {len(dims)} dims, got {len(bases)}"
        )
    return torch.block_diag(
        *(inv_freq(dim, b)[None] for dim, b in zip(dims, bases, strict=True))
    )


def in_blocks(waves: Waves) -> Waves:
    """Reorder axial waves so that the axes alternate: x, y, x, y, …

    A block with one pair per axis has four entries for two axes, and six for three.

    ``waves`` must come from `axial` with equal dims. Raises ``ValueError`` for other waves.

    >>> in_blocks(axial([4, 4], base=100))
    tensor([[1.0000, 0.0000, 0.1000, 0.0000],
            [0.0000, 1.0000, 0.0000, 0.1000]], dtype=torch.float64)
    """
    n_axes, pairs = waves.shape
    owner = torch.arange(pairs) * n_axes // pairs
    if pairs % n_axes or waves[owner != torch.arange(n_axes)[:, None]].any():
        raise ValueError(
            f"waves must have equally many pairs for each of {n_axes} axes, got {pairs} pairs"
        )
    return waves.unflatten(1, (n_axes, -1)).mT.flatten(1)


def mixed(dim: int, base: float, directions: Float[Tensor, " pairs"]) -> Waves:
    """Return mixed waves, in which every pair depends on both axes.

    Pair i has frequency θ_i along its own direction φ_i, so w_i = θ_i (cos φ_i, sin φ_i).

    ``directions`` contains the angles φ (dim/2,) in radians. A model starts from random directions and then learns the
    waves.

    >>> mixed(4, 100, torch.zeros(2))
    tensor([[1.0000, 0.1000],
            [0.0000, 0.0000]], dtype=torch.float64)
    """
    theta = inv_freq(dim, base)
    checks.floating("directions", directions)
    if directions.shape != theta.shape:
        raise ValueError(
            f"directions must have shape ({len(theta)},), one for each pair, got {tuple(directions.shape)}"
        )
    phi = checks.finite("directions", in_float64(directions))
    return torch.stack((theta * phi.cos(), theta * phi.sin()))


def angles(places: Places, waves: Waves) -> Float[Tensor, "*seq pairs"]:
    """Compute the angle w_i · m of every pair, in radians, float64.

    ``places`` may be integers, float32 or float64, as in `check_positions`.

    >>> angles(torch.tensor([[2, 3]]), axial([2, 2]))
    tensor([[2., 3.]], dtype=torch.float64)
    """
    check_positions(places)
    if places.ndim == 0 or places.shape[-1] != len(waves):
        raise ValueError(
            f"places must have {len(waves)} numbers each, one for each axis of waves, got shape {tuple(places.shape)}"
        )
    return in_float64(places) @ in_float64(waves)


def turned(
    x: Float[Tensor, "*heads seq dim"],
    places: Real[Tensor, "seq axes"],
    waves: Waves,
    *,
    layout: str = "interleaved",
) -> Float[Tensor, "*heads seq dim"]:
    """Rotate each vector of x by its place m. Pair i rotates by w_i · m radians."""
    checks.floating("x", x)
    phi = angles(places, waves)
    cos, sin = (y.to(x.device, wide(x.dtype)) for y in (phi.cos(), phi.sin()))
    return apply_rotary(x, cos, sin, layout=layout)


def score(
    q: Float[Tensor, "*heads queries dim"],
    k: Float[Tensor, "*heads keys dim"],
    m: Real[Tensor, "queries axes"],
    n: Real[Tensor, "keys axes"],
    waves: Waves,
) -> Float[Tensor, "*heads queries keys"]:
    """Compute the scores of queries at places m with keys at places n, divided by √d."""
    both = turned(q, m, waves) @ turned(k, n, waves).mT
    return both / math.sqrt(q.shape[-1])
