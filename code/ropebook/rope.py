"""The foundation of every chapter: frequencies, positions, angles, cosines and sines, pairs.

Notation: position m, dimension d (even), pair index i = 0 … d/2 − 1, base b, frequency θ_i = b^(−2i/d) in radians per
position. Angles mθ_i are computed in float64, and only the finished cosine or sine is cast to a smaller type. For a
device without float64 (mps), the angles are computed on the CPU.

The functions check their arguments, except for those described as "without checks", whose callers have already checked
them.
"""

from __future__ import annotations

import math

import numpy
import torch
from torch import Tensor

from ropebook import checks
from ropebook.shapes import Float, Int, Real, Shaped

# Up to this position the float64 angle mθ is accurate to 1e-6 radian. Far beyond it, the angle would be silently wrong.
LARGEST_POSITION = 2**31

# A tensor, or anything that NumPy can turn into an array; see `angles`.
Positions = Tensor | numpy.ndarray | list | float

_WIDE = (torch.float32, torch.float64)
_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


# --- Frequencies ----------------------------------------------------------------------------------------------------


def inv_freq(
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
) -> Float[Tensor, " pairs"]:
    """Return the frequencies θ_i = base^(−2i/dim), in radians per position: shape (dim/2,), in decreasing order from 1.

    ``dtype`` is float64 or float32. Half-precision types are refused: in bfloat16 a frequency can be wrong by one part
    in 256, so the angle mθ_i could be off by a whole radian once it has reached 256 radians.

    >>> inv_freq(8)
    tensor([1.0000, 0.1000, 0.0100, 0.0010], dtype=torch.float64)
    """
    dim, base = dim_and_base(dim, base)
    checks.choice("dtype", dtype, (torch.float64, torch.float32))
    exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    return (base**-exponents).to(dtype=dtype, device=device)


def wavelengths(dim: int, base: float = 10000.0) -> Float[Tensor, " pairs"]:
    """Return the wavelengths λ_i = 2π/θ_i: how many positions each pair needs to complete one turn. Shape (dim/2,),
    float64.

    The shortest is 2π. The longest is 2π·base^((dim−2)/dim), which is less than 2π·base.

    >>> [round(length) for length in wavelengths(8).tolist()]
    [6, 63, 628, 6283]
    """
    return 2 * math.pi / inv_freq(dim, base)


def dim_and_base(dim: int, base: float) -> tuple[int, float]:
    """Check and return a dimension, which must be even, and a base, which must be at least 1.

    >>> dim_and_base(64, 10000)
    (64, 10000.0)
    """
    return checks.even("dim", dim), checks.number("base", base, minimum=1)


# --- Positions and angles -------------------------------------------------------------------------------------------


def angles(
    positions: Positions, dim: int, base: float = 10000.0
) -> Float[Tensor, "... pairs"]:
    """Return the angles mθ_i in radians: shape positions.shape + (dim/2,), float64.

    ``positions``: a tensor, array, list or number; integers, float32 or float64. They may be negative or fractional,
    and are at most 2^31 in absolute value. Half-precision types are refused, because bfloat16 cannot tell 256 from 257.

    >>> angles(3, dim=4)
    tensor([3.0000, 0.0300], dtype=torch.float64)
    """
    dim, base = dim_and_base(dim, base)
    m = in_float64(as_positions("positions", positions))
    return m[..., None] * inv_freq(dim, base, device=m.device)


def turns(
    positions: Positions, dim: int, base: float = 10000.0
) -> Float[Tensor, "... pairs"]:
    """Return how many turns each pair has completed, mθ_i/2π: shape positions.shape + (dim/2,), float64.

    The fractional part is the direction in which the pair's clock hand points. A pair that has completed a turn at m =
    L − 1 has been at every angle within a sequence of L tokens.

    >>> turns(511, dim=4)
    tensor([81.3282,  0.8133], dtype=torch.float64)
    """
    return angles(positions, dim, base) / (2 * math.pi)


def as_positions(name: str, value: Positions) -> Real[Tensor, " ..."]:
    """Convert ``value`` to a tensor of int64, float32 or float64, with no entry above `LARGEST_POSITION` in absolute
    value.

    >>> as_positions("positions", [0, 1.5])
    tensor([0.0000, 1.5000], dtype=torch.float64)
    """
    allowed = "integers or float32 or float64 numbers"
    if not isinstance(value, Tensor):
        given = value
        try:
            # NumPy keeps Python's floats in float64, while torch would round them.
            value = torch.from_numpy(numpy.array(given, order="C"))
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be {allowed}, got {given!r}") from None
        # An empty list contains no floats, so its positions count as integers.
        if value.numel() == 0 and isinstance(given, (list, tuple)):
            value = value.long()
    if value.dtype not in (*_INTEGERS, *_WIDE):
        raise TypeError(f"{name} must be {allowed}, got dtype {value.dtype}")
    value = value if value.is_floating_point() else value.long()
    return checks.entries(name, value, -LARGEST_POSITION, LARGEST_POSITION)


def check_positions(positions: Tensor) -> None:
    """Raise ``TypeError`` unless ``positions`` is a tensor of integers, float32 or float64, and ``ValueError`` if any
    position is beyond ±2^31 or NaN. Values on an accelerator are not read, because we would have to wait for the
    device. Values in a compiled graph are not read either.
    """
    allowed = "positions must be"
    if not isinstance(positions, Tensor):
        raise TypeError(f"{allowed} a tensor, got {type(positions).__name__}")
    if positions.dtype not in (*_INTEGERS, *_WIDE):
        kinds = "integers, float32 or float64"
        raise TypeError(f"{allowed} {kinds}, got dtype {positions.dtype}")
    if checks.readable(positions):
        wide = positions if positions.is_floating_point() else positions.long()
        checks.entries("positions", wide, -LARGEST_POSITION, LARGEST_POSITION)


def float64_device(device: torch.device) -> torch.device:
    """Return the device on which to compute in float64: ``device`` itself, or the CPU for mps, which has no float64.

    >>> float64_device(torch.device("mps"))
    device(type='cpu')
    """
    return torch.device("cpu") if device.type == "mps" else device


def wide(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which numbers of this dtype are rotated: float64 for float64, and float32 for all others.

    >>> wide(torch.bfloat16)
    torch.float32
    """
    return torch.float64 if dtype == torch.float64 else torch.float32


def in_float64(x: Shaped[Tensor, " *shape"]) -> Float[Tensor, " *shape"]:
    """Convert x to float64, on its own device if that device has float64, otherwise on the CPU.

    >>> in_float64(torch.tensor([1, 2]))
    tensor([1., 2.], dtype=torch.float64)
    """
    return x.to(device=float64_device(x.device), dtype=torch.float64)


# --- Cosines and sines ----------------------------------------------------------------------------------------------


def cos_sin(
    positions: Real[Tensor, " *shape"],
    inv_freq: Float[Tensor, " pairs"],
    dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "*shape pairs"], Float[Tensor, "*shape pairs"]]:
    """Compute cos mθ_i and sin mθ_i: two tensors of shape positions.shape + (d/2,), on the device of ``positions``.

    ``positions``: integers, float32 or float64, any shape, checked by `check_positions`. If their values may not be
    read, the cos and sin of any position beyond 2^31 are NaN. ``inv_freq``: θ, shape (d/2,), float32 or float64.

    The angles are computed in float64, and only the finished cosine and sine are cast to ``dtype``, float32 or float64.
    In float32, 2^24 and 2^24 + 1 are the same number. Even at much smaller positions, float32 angles have a relative
    error of about 2^−24.

    >>> cos, sin = cos_sin(torch.tensor([0, 1]), inv_freq(4))
    >>> sin
    tensor([[0.0000, 0.0000],
            [0.8415, 0.0100]])
    """
    check_positions(positions)
    checks.choice("dtype", dtype, _WIDE)
    check_frequencies(inv_freq)
    if inv_freq.ndim != 1:
        shape = tuple(inv_freq.shape)
        raise ValueError(f"inv_freq must have shape (d/2,), got {shape}")
    return tables(positions, inv_freq, dtype)


def check_frequencies(inv_freq: Tensor) -> None:
    """Raise ``TypeError`` unless ``inv_freq`` is a tensor of float32 or float64, and ``ValueError`` if it contains NaN
    or infinity. The values are checked only when they may be read (`checks.readable`)."""
    if checks.floating("inv_freq", inv_freq).dtype not in _WIDE:
        raise TypeError(
            f"inv_freq must be float32 or float64, got {inv_freq.dtype}"
        )
    if checks.readable(inv_freq):
        checks.finite("inv_freq", inv_freq)


def tables(
    positions: Real[Tensor, " *shape"],
    inv_freq: Float[Tensor, " pairs"],
    dtype: torch.dtype,
) -> tuple[Float[Tensor, "*shape pairs"], Float[Tensor, "*shape pairs"]]:
    """Do the work of `cos_sin`, without checks."""
    if torch.compiler.is_compiling() and not _for_onnx():
        return tables_kept(positions, inv_freq, dtype)
    return _tables(positions, inv_freq, dtype)


def _tables(
    positions: Tensor, inv_freq: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    device = positions.device
    m = in_float64(positions)
    m = m.where(m.abs() <= LARGEST_POSITION, torch.nan)
    angles = m[..., None] * inv_freq.to(m.device).double()
    return angles.cos().to(dtype).to(device), angles.sin().to(dtype).to(device)


def _for_onnx() -> bool:
    """Return whether the graph is being exported to ONNX, which does not support this module's custom operator."""
    return torch.compiler.is_exporting() and torch.onnx.is_in_onnx_export()


# Without a custom operator, a compiler would merge cosine and sine into the loop over the heads, and recompute them in
# float64 for each head.
tables_kept = torch.library.custom_op(
    "ropebook::cos_sin",
    _tables,
    mutates_args=(),
    schema="(Tensor positions, Tensor inv_freq, ScalarType dtype) -> (Tensor, Tensor)",
)


@tables_kept.register_fake
def _(
    positions: Tensor, inv_freq: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    shape = (*positions.shape, *inv_freq.shape)
    return tuple(positions.new_empty(shape, dtype=dtype) for _ in range(2))


def _keep_for_backward(ctx, inputs: tuple, output: tuple) -> None:
    positions, inv_freq, _ = inputs
    ctx.save_for_backward(positions, inv_freq)


def _tables_backward(ctx, of_cos: Tensor, of_sin: Tensor) -> tuple:
    """Return the gradients of m and θ. The derivative of cos φ is −sin φ, and that of sin φ is cos φ. The derivative of
    φ = mθ is θ with respect to m, and m with respect to θ."""
    positions, inv_freq = ctx.saved_tensors
    m, theta = in_float64(positions), inv_freq.double()
    cos, sin = tables_kept(m, theta.to(m.device), torch.float64)
    of_angle = of_sin.to(cos) * cos - of_cos.to(cos) * sin
    of_m = of_theta = None
    if ctx.needs_input_grad[0]:
        of_m = (of_angle * theta.to(m.device)).sum(-1).to(positions)
    if ctx.needs_input_grad[1]:
        of_theta = (of_angle * m[..., None]).flatten(0, -2).sum(0).to(inv_freq)
    return of_m, of_theta, None


tables_kept.register_autograd(_tables_backward, setup_context=_keep_for_backward)


# --- Pairs ----------------------------------------------------------------------------------------------------------


def split_pairs(
    x: Shaped[Tensor, "*shape dim"], layout: str = "interleaved"
) -> tuple[Shaped[Tensor, "*shape dim//2"], Shaped[Tensor, "*shape dim//2"]]:
    """Return the first and the second entries of all pairs of x (…, d): two views of shape (…, d/2).

    >>> split_pairs(torch.arange(6), "interleaved")
    (tensor([0, 2, 4]), tensor([1, 3, 5]))
    >>> split_pairs(torch.arange(6), "half")
    (tensor([0, 1, 2]), tensor([3, 4, 5]))
    """
    checks.layout(layout)
    check_pairs(x)
    return split(x, layout)


def join_pairs(
    first: Shaped[Tensor, "*shape pairs"],
    second: Shaped[Tensor, "*shape pairs"],
    layout: str = "interleaved",
) -> Shaped[Tensor, "*shape 2*pairs"]:
    """Undo `split_pairs`: join two tensors (…, d/2) into one (…, d).

    >>> join_pairs(torch.tensor([0, 2]), torch.tensor([1, 3]))
    tensor([0, 1, 2, 3])
    """
    checks.layout(layout)
    for name, x in (("first", first), ("second", second)):
        if checks.tensor(name, x).ndim == 0 or x.shape != first.shape:
            raise ValueError(
                f"{name} must have shape (…, d/2), the same as the other, got {tuple(x.shape)}"
            )
    return join(first, second, layout)


def split(
    x: Shaped[Tensor, "*shape dim"], layout: str
) -> tuple[Shaped[Tensor, "*shape dim//2"], Shaped[Tensor, "*shape dim//2"]]:
    """Do the work of `split_pairs`, without checks."""
    if layout == "interleaved":
        return x.unflatten(-1, (-1, 2)).unbind(-1)
    return x.unflatten(-1, (2, -1)).unbind(-2)


def join(
    first: Shaped[Tensor, "*shape pairs"],
    second: Shaped[Tensor, "*shape pairs"],
    layout: str,
) -> Shaped[Tensor, "*shape 2*pairs"]:
    """Do the work of `join_pairs`, without checks."""
    axis = -1 if layout == "interleaved" else -2
    return torch.stack((first, second), axis).flatten(-2)


def check_pairs(x: Tensor, name: str = "x") -> None:
    """Raise ``TypeError`` unless x is a tensor, and ``ValueError`` unless it has pairs: (…, d) with d even."""
    if checks.tensor(name, x).ndim == 0 or x.shape[-1] < 2 or x.shape[-1] % 2:
        shape = tuple(x.shape)
        raise ValueError(
            f"{name} must have an even last axis >= 2, got shape {shape}"
        )


def concatenated_order(dim: int) -> Int[Tensor, " dim"]:
    """Return the order that puts all sines of the interleaved encoding first, followed by all cosines: shape (dim,),
    int64.

    ``encoding(positions, dim)[..., concatenated_order(dim)]`` is Marian's table in transformers. (In M2M100 and FSMT,
    the frequencies differ as well: θ_i = base^(−i/(d/2 − 1)), as if our base were raised to the power d/(d − 2).)

    >>> concatenated_order(6)
    tensor([0, 2, 4, 1, 3, 5])
    """
    return torch.arange(checks.even("dim", dim)).view(-1, 2).T.flatten()
