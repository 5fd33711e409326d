"""The rotation in complex numbers, and the score as a Fourier sum over distance.

Notation: a pair of entries (x, y) is the complex number z = x + iy. Position m of the query, n of the key, distance
Δ = m − n, head dimension d (even), pair i = 0 … d/2 − 1, frequency θ_i = base^(−2i/d) in radians per position. Then

    R_m x  ↔  z_i e^{imθ_i},        ⟨R_m q, R_n k⟩  =  Re Σ_i q_i conj(k_i) e^{iΔθ_i},

as in Su et al., "RoFormer" (2021), section 3.2. (The i in the exponent is the imaginary unit.)

The layout says which entries form pair i: "interleaved" (2i with 2i + 1, as in the paper) or "half" (i with i + d/2).
Angles are float64. For tensors on mps, which has no float64, they are computed on the CPU.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.rope import Positions
from ropebook.shapes import Complex, Float

# --- The map between pairs and complex numbers -----------------------------------------------------------------------


def to_complex(
    x: Float[Tensor, "*shape dim"], layout: str = "interleaved"
) -> Complex[Tensor, "*shape dim//2"]:
    """Convert each pair (x, y) to the complex number x + iy: (…, dim) real to (…, dim/2) complex. The result is a copy.

    float64 becomes complex128. float32 becomes complex64, and so do float16 and bfloat16, because torch has no usable
    complex type for them. No precision is lost.

    >>> to_complex(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([1.+2.j, 3.+4.j])
    >>> to_complex(torch.tensor([1.0, 2.0, 3.0, 4.0]), layout="half")
    tensor([1.+3.j, 2.+4.j])
    """
    checks.layout(layout)
    checks.even("the last axis of x", _vector("x", x).shape[-1])
    if x.dtype not in (torch.float32, torch.float64):
        x = x.float()
    if layout == "half":
        pairs = x.unflatten(-1, (2, -1)).mT
    else:
        pairs = x.unflatten(-1, (-1, 2))
    # view_as_complex needs the two numbers of a pair side by side, starting at an even offset in memory.
    return torch.view_as_complex(pairs.clone(memory_format=torch.contiguous_format))


def from_complex(
    z: Complex[Tensor, "*shape pairs"], layout: str = "interleaved"
) -> Float[Tensor, "*shape 2*pairs"]:
    """Undo `to_complex`: (…, dim/2) complex64 or complex128 to (…, dim) float32 or float64.

    >>> from_complex(torch.tensor([1 + 2j, 3 + 4j]), layout="half")
    tensor([1., 3., 2., 4.])
    """
    checks.layout(layout)
    if not isinstance(z, Tensor):
        raise TypeError(f"z must be a complex tensor, got {type(z).__name__}")
    if z.dtype not in (torch.complex64, torch.complex128):
        raise TypeError(f"z must be complex64 or complex128, got dtype {z.dtype}")
    if z.ndim == 0:
        raise ValueError("z must have shape (..., dim/2), got a single number")
    pairs = torch.view_as_real(z.resolve_conj())
    return (pairs.mT if layout == "half" else pairs).flatten(-2)


def phases(
    positions: Positions, dim: int, base: float = 10000.0
) -> Complex[Tensor, "... pairs"]:
    """Return the numbers e^{imθ_i}: shape positions.shape + (dim/2,), complex128.

    >>> phases(3, dim=2)
    tensor([-0.9900+0.1411j], dtype=torch.complex128)
    """
    radians = rope.angles(positions, dim, base)
    return torch.polar(torch.ones_like(radians), radians)


def rotate(
    x: Float[Tensor, "... dim"],
    positions: Positions,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Float[Tensor, "... dim"]:
    """Compute R_m x with one complex product for each pair, z_i e^{imθ_i}: shape (…, dim), in x's dtype and on its
    device.

    ``x``: floating point, (…, dim), such as (batch, heads, seq, dim). ``positions``: any shape that broadcasts with
    x.shape[:-1], such as (seq,). The arithmetic is done in complex128; only the result is cast. The result is the same
    as that of `ropebook.derivation.rotate` (Su et al. 2021, equation 12).

    >>> rotate(torch.tensor([1.0, 2.0, 3.0, 4.0]), 2)
    tensor([-2.2347,  0.0770,  2.9194,  4.0592])
    """
    dim = _vector("x", x).shape[-1]
    z = to_complex(rope.in_float64(x), layout)
    turn = phases(positions, dim, base)
    try:
        torch.broadcast_shapes(z.shape, turn.shape)
    except RuntimeError:
        raise ValueError(
            f"positions must broadcast with {tuple(x.shape[:-1])}, "
            f"got shape {tuple(turn.shape[:-1])}"
        ) from None
    return from_complex(z * turn.to(z.device), layout).to(x.dtype).to(x.device)


# --- The score as a Fourier sum over distance ------------------------------------------------------------------------


class Amplitudes(NamedTuple):
    """The two amplitudes a_i and b_i of each pair's wave, a_i cos Δθ_i + b_i sin Δθ_i."""

    a: Tensor
    b: Tensor


def amplitudes(
    q: Float[Tensor, "... dim"],
    k: Float[Tensor, "... dim"],
    layout: str = "interleaved",
) -> Amplitudes:
    """Return the amplitudes of the waves that add up to the score of q and k: a_i and b_i, each (…, dim/2), float64.

    In the interleaved layout a_i = q_{2i} k_{2i} + q_{2i+1} k_{2i+1} and b_i = q_{2i} k_{2i+1} − q_{2i+1} k_{2i}. They
    are the real part and the negated imaginary part of q_i conj(k_i). `score_at` then computes

        ⟨R_m q, R_n k⟩ = Σ_i a_i cos Δθ_i + b_i sin Δθ_i,   Δ = m − n.

    ``q``, ``k``: (…, dim), broadcastable, floating point, with the same dim.

    >>> amplitudes(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    Amplitudes(a=tensor([11.], dtype=torch.float64), b=tensor([-2.], dtype=torch.float64))
    """
    _vector("q", q), _vector("k", k)
    shapes = f"shapes {tuple(q.shape)} and {tuple(k.shape)}"
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"q and k must agree in their last axis, got {shapes}")
    try:
        torch.broadcast_shapes(q.shape, k.shape)
    except RuntimeError:
        raise ValueError(f"q and k must broadcast, got {shapes}") from None
    query, key = (to_complex(rope.in_float64(vector), layout) for vector in (q, k))
    product = query * key.conj()
    return Amplitudes(product.real, -product.imag)


def score_at(
    distances: Positions,
    a: Float[Tensor, "*shape pairs"],
    b: Float[Tensor, "*shape pairs"],
    base: float = 10000.0,
) -> Float[Tensor, " ..."]:
    """Return the score at each distance, Σ_i a_i cos Δθ_i + b_i sin Δθ_i: shape a.shape[:-1] + distances.shape,
    float64.

    ``a``, ``b``: (…, dim/2), of the same shape, as returned by `amplitudes`. The sum is taken pair by pair, so it needs
    only as much memory as a few copies of the distances.

    >>> q = torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> score_at([0, 1, -1], *amplitudes(q, q))  # q = k: the same on both sides
    tensor([30.0000, 27.7003, 27.7003], dtype=torch.float64)
    """
    for name, amplitude in (("a", a), ("b", b)):
        if _vector(name, amplitude).shape != a.shape or not amplitude.shape[-1]:
            raise ValueError(
                "a and b must have one shape (..., dim/2), "
                f"got {tuple(a.shape)} and {tuple(b.shape)}"
            )
    a, b = rope.in_float64(a), rope.in_float64(b)
    distances = rope.as_positions("distances", distances).to(a.device).double()
    total = a.new_zeros((*a.shape[:-1], *distances.shape))
    axes = (..., *(None,) * distances.ndim)
    frequencies = rope.inv_freq(2 * a.shape[-1], base)
    for i, frequency in enumerate(frequencies.tolist()):
        radians = distances * frequency
        total += a[..., i][axes] * radians.cos() + b[..., i][axes] * radians.sin()
    return total


def waves(
    distances: Positions, dim: int, base: float = 10000.0
) -> Float[Tensor, "... dim"]:
    """Return the waves of which every score is a weighted sum: first cos Δθ_0, cos Δθ_1, …, then sin Δθ_0, …. Shape
    distances.shape + (dim,), float64.

    ``waves(distances, dim) @ torch.cat((a, b))`` computes the scores of `score_at`.

    >>> waves([0, 1], dim=2)
    tensor([[1.0000, 0.0000],
            [0.5403, 0.8415]], dtype=torch.float64)
    """
    radians = rope.angles(distances, dim, base)
    return torch.cat((radians.cos(), radians.sin()), dim=-1)


def key_for(
    q: Float[Tensor, "... dim"],
    distance: Positions,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Float[Tensor, "... dim"]:
    """Find the key that scores highest with q at ``distance``, among all keys of the same length as q. It is R_distance
    q, with the shape and dtype of the result of `rotate`.

    Its score at this distance is |q|². By the Cauchy–Schwarz inequality, no key of that length scores higher at any
    distance.

    >>> q = torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)
    >>> score_at([776, 777, 778], *amplitudes(q, key_for(q, 777)))
    tensor([27.7003, 30.0000, 27.7003], dtype=torch.float64)
    """
    return rotate(_vector("q", q), distance, base, layout)


# --- Checks of arguments ---------------------------------------------------------------------------------------------


def _vector(name: str, x: Tensor) -> Tensor:
    if checks.floating(name, x).ndim == 0:
        raise ValueError(
            f"{name} must have at least one axis, the last for the pairs, got a single number"
        )
    return x
