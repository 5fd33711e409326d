"""Rotated values.

If RoPE also rotates the values, the output depends on the position. Rotating the output back removes that dependence.

The output of a query is Σ A_mn v_n, and its weights A_mn depend only on n − m. With rotated values, the output becomes
Σ A_mn R_n v_n, which changes when the text moves. Rotating this back by R_m^T gives Σ A_mn R_{n−m} v_n, which does not
change.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention import attention_weights
from ropebook.efficient import apply_rotary
from ropebook.rope import Positions, as_positions, cos_sin, inv_freq, wide
from ropebook.shapes import Float

WAYS = ("still", "turned", "turned back")

Vectors = Float[Tensor, "*heads seq dim"]


def turned_by(
    x: Vectors,
    places: Positions,
    base: float = 10000.0,
    *,
    back: bool = False,
    layout: str = "interleaved",
) -> Vectors:
    """Rotate each vector of x according to its position, or in the opposite direction if ``back`` is true."""
    theta = inv_freq(x.shape[-1], base)
    cos, sin = cos_sin(as_positions("places", places), theta, wide(x.dtype))
    return apply_rotary(x, cos, -sin if back else sin, layout=layout)


def attend(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    places: Positions,
    *,
    values: str = "still",
    base: float = 10000.0,
    causal: bool = False,
) -> Vectors:
    """Compute attention with RoPE. ``values`` says how the values are treated.

    They are left unrotated, or they are rotated, or they are rotated and the output is then rotated back.
    """
    checks.choice("values", values, WAYS)
    q, k = turned_by(q, places, base), turned_by(k, places, base)
    weights = attention_weights(q, k, is_causal=causal)
    if values == "still":
        return weights @ v
    found = weights @ turned_by(v, places, base)
    return (
        turned_by(found, places, base, back=True) if values != "turned" else found
    )


def change(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference between two tensors, as a share of the largest entry of ``expected``. Raises
    ``ValueError`` if their shapes differ."""
    if found.shape != expected.shape:
        raise ValueError(
            f"found must have the shape of expected, {tuple(expected.shape)}, got {tuple(found.shape)}"
        )
    return float((found - expected).abs().max() / expected.abs().max())


def shift_change(
    q: Vectors,
    k: Vectors,
    v: Vectors,
    by: float,
    *,
    values: str = "still",
    base: float = 10000.0,
) -> float:
    """Measure how much the output for a sequence changes when all its places move by ``by``.

    The result is a share of the output's largest entry.
    """
    places = torch.arange(q.shape[-2])
    here = attend(q, k, v, places, values=values, base=base)
    there = attend(q, k, v, places + by, values=values, base=base)
    return change(there, here)
