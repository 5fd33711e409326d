"""A gallery of mistakes that were found in published code and explanations, and measurements that detect them. Each
entry is a rotation that is wrong in exactly one way.

None of these rotations raises an error, and all of them return tensors of the right shapes. Each takes q, k, v (…, T,
d) and their positions (T,), and returns q′, k′, v′.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.efficient import rotate_by_pairs, rotate_every_two, rotate_half
from ropebook.precision import rounded_cos_sin
from ropebook.rope import join_pairs, split_pairs
from ropebook.shapes import Float, Real

Vectors = Float[Tensor, "*batch seq dim"]
Positions = Real[Tensor, " seq"]
Rotated = tuple[Vectors, Vectors, Vectors]


def _turn(x: Tensor, angles: Tensor, layout: str) -> Tensor:
    return rotate_by_pairs(x, angles.cos(), angles.sin(), layout)


def correct(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """The correct rotation: q and k are rotated by their positions, and v is left unchanged. q, k, v (…, T, d),
    positions (T,)."""
    angles = rope.angles(positions, q.shape[-1], base)
    return _turn(q, angles, layout), _turn(k, angles, layout), v


def missing_sin(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: the sine is left out for k, which becomes k·cos + rotate_half(k). q is rotated correctly."""
    angles = rope.angles(positions, q.shape[-1], base)
    k1, k2 = split_pairs(k, layout)
    cos = angles.cos()
    k_wrong = join_pairs(k1 * cos - k2, k2 * cos + k1, layout).to(k.dtype)
    return _turn(q, angles, layout), k_wrong, v


def ignored_positions(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: the argument ``positions`` is never read, so every text is rotated as if it started at position 0 and had
    no gaps."""
    return correct(q, k, v, torch.arange(q.shape[-2]), base=base, layout=layout)


def degrees(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: mθ_i is assumed to be in degrees, so every pair rotates 57 times too slowly."""
    angles = rope.angles(positions, q.shape[-1], base).deg2rad()
    return _turn(q, angles, layout), _turn(k, angles, layout), v


def halved_dim(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: the exponent uses half the head dimension, θ_i = base^(−2i/(d/2)). The correct rotation gives the same
    result if its base is squared."""
    return correct(q, k, v, positions, base=base**2, layout=layout)


def swapped_layout(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: cos and sin are arranged for one layout, but the quarter turn belongs to the other layout, so the two
    entries of a pair get different angles."""
    angles = rope.angles(positions, q.shape[-1], base)
    wide = join_pairs(angles, angles, layout)
    quarter = rotate_half if layout == "interleaved" else rotate_every_two

    def turn(x: Tensor) -> Tensor:
        return (x * wide.cos() + quarter(x) * wide.sin()).to(x.dtype)

    return turn(q), turn(k), v


def other_layout(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: q and k are rotated correctly, but in the layout that the weights were not trained for."""
    other = "half" if checks.layout(layout) == "interleaved" else "interleaved"
    return correct(q, k, v, positions, base=base, layout=other)


def rotated_values(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: v is rotated, as well as q and k."""
    angles = rope.angles(positions, q.shape[-1], base)
    return tuple(_turn(x, angles, layout) for x in (q, k, v))


def bf16_table(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: cos and sin are rounded to bfloat16 although q and k are wider, as happens when a table is loaded from a
    half-precision checkpoint."""
    cos, sin = rounded_cos_sin(positions, q.shape[-1], base, rounded="table")
    turned = (rotate_by_pairs(x, cos, sin, layout) for x in (q, k))
    return *turned, v


def query_only(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: q is rotated but k is not, so the score depends on m instead of m − n."""
    q, _, _ = correct(q, k, v, positions, base=base, layout=layout)
    return q, k, v


def key_value(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    positions: Positions,
    *,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Rotated:
    """Wrong: k and v are rotated but q is not. This is the right function, applied to the wrong two tensors."""
    _, k, v = rotated_values(q, k, v, positions, base=base, layout=layout)
    return q, k, v


_EVERY = (
    missing_sin,
    ignored_positions,
    degrees,
    halved_dim,
    swapped_layout,
    other_layout,
    rotated_values,
    bf16_table,
    query_only,
    key_value,
)
MISTAKES: Mapping[str, Callable[..., Rotated]] = types.MappingProxyType(
    {mistake.__name__: mistake for mistake in _EVERY}
)


class Diagnosis(NamedTuple):
    """The results of `diagnose`. Each field is the largest deviation from a property that a rotation must have. The
    deviation is 0, up to rounding, if the rotation has that property."""

    lengths: float  # | |q′|/|q| − 1 |, also for k: a rotation preserves lengths
    start: float  # |q′ − q| at position 0, also for k: nothing is rotated there
    shift: float  # change of the scores when all positions move by the same amount
    scores: float  # error of the scores at positions 0, 1, 2, …
    gaps: float  # error of the scores at positions with gaps
    values: float  # |v′ − v|
    output: float  # change of softmax(scores) v′ when all positions move by the same amount

    def caught_by(self, tolerance: float = 1e-6) -> tuple[str, ...]:
        """Return the names of the measurements that exceed ``tolerance``. Testing any one of them would detect the
        mistake."""
        measured = self._asdict().items()
        # `not <=` makes NaN count as a mistake
        return tuple(name for name, size in measured if not size <= tolerance)


def diagnose(
    rotation: Callable[..., Rotated],
    *,
    dim: int = 64,
    seq_len: int = 16,
    base: float = 10000.0,
    layout: str = "interleaved",
    shift: int = 100,
    generator: torch.Generator | None = None,
) -> Diagnosis:
    """Measure a rotation on random q, k and v in float64. The rotation may be one of `MISTAKES`, or any function with
    the same signature.

    Scores are divided by √d. The positions with gaps are 0, 3, 6, …. All positions are moved by ``shift``.

    >>> diagnose(correct).caught_by()
    ()
    >>> diagnose(rotated_values).caught_by()
    ('values', 'output')
    """
    seq_len = checks.integer("seq_len", seq_len, minimum=2)
    shift = checks.integer("shift", shift, minimum=1)
    checks.even("dim", dim)
    q, k, v = torch.randn(3, seq_len, dim, dtype=torch.float64, generator=generator)
    at = torch.arange(seq_len)

    def scores(function: Callable[..., Rotated], positions: Tensor) -> Tensor:
        q2, k2, _ = function(q, k, v, positions, base=base, layout=layout)
        return q2 @ k2.T / math.sqrt(dim)

    def output(positions: Tensor) -> Tensor:
        _, _, v2 = rotation(q, k, v, positions, base=base, layout=layout)
        return scores(rotation, positions).softmax(-1) @ v2

    q2, k2, v2 = rotation(q, k, v, at, base=base, layout=layout)
    turned, plain = torch.stack((q2, k2)), torch.stack((q, k))
    return Diagnosis(
        lengths=_largest(turned.norm(dim=-1) / plain.norm(dim=-1) - 1),
        start=_largest(turned[:, 0] - plain[:, 0]),
        shift=_largest(scores(rotation, at + shift) - scores(rotation, at)),
        scores=_largest(scores(rotation, at) - scores(correct, at)),
        gaps=_largest(scores(rotation, 3 * at) - scores(correct, 3 * at)),
        values=_largest(v2 - v),
        output=_largest(output(at + shift) - output(at)),
    )


def compared(
    rotations: Mapping[str, Callable[..., Rotated]], seed: int = 0, **options
) -> dict[str, list]:
    """Return the columns of a table with the name of each rotation and its results from `diagnose`. A measurement that
    passes is shown as None.

    All rotations are measured on the same random numbers. ``options`` are passed on to `diagnose`.

    >>> compared({"correct": correct, "values too": rotated_values})["scores"]
    [None, None]
    """
    found = [
        diagnose(rotation, generator=torch.Generator().manual_seed(seed), **options)
        for rotation in rotations.values()
    ]
    columns = {
        name: [
            getattr(one, name) if name in one.caught_by() else None for one in found
        ]
        for name in Diagnosis._fields
    }
    return {"rotation": list(rotations), **columns}


def _largest(tensor: Tensor) -> float:
    return tensor.abs().max().item()
