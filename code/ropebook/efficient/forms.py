"""Several ways to compute the same product, from the matrix in the paper to a single loop over the data.

Every form rotates pair i of x at position m by the angle φ = mθ_i,
counter-clockwise:

    x₁′ = x₁ cos φ − x₂ sin φ
    x₂′ = x₂ cos φ + x₁ sin φ

In layout "interleaved" a pair consists of the entries (2i, 2i + 1), as in Su et al., "RoFormer" (2021), equation 34; in
layout "half" it consists of (i, i + d/2), as in GPT-NeoX and in transformers' Llama. The forms take x (…, T, d) with
cos and sin (T, d/2), or x (B, H, T, d) with cos and sin (B, T, d/2), as returned by `ropebook.rope.cos_sin`. The result
has the dtype of x. cos and sin are float32 or float64, never half precision. Half-precision data are widened for the
arithmetic, and only the result is rounded.

Every form checks its arguments (`fit`). When one form calls another, it calls the version without checks.
"""

from __future__ import annotations

import functools
import textwrap
import types
import warnings
from collections.abc import Callable

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ropebook import checks, memory, rope
from ropebook.rope import join, split, split_pairs
from ropebook.shapes import Float, Shaped

Vectors = Float[Tensor, "*batch seq dim"]
Table = Float[Tensor, "*rows seq dim//2"]
Partial = Float[Tensor, "*rows seq pairs"]
"""A table of cosines or sines that may cover fewer pairs than the vector has."""

Form = Callable[..., Tensor]

# Rotating this many numbers takes less time than launching the operations that do it.
SMALL = 2**15


# --- Checking arguments ----------------------------------------------------------------------------------------------


def fit(
    x: Vectors,
    cos: Partial,
    sin: Partial,
    layout: str = "interleaved",
    partial: bool = False,
) -> tuple[Float[Tensor, "... pairs"], Float[Tensor, "... pairs"]]:
    """Check a form's arguments (types, shapes, and whether they fit together), and return cos and sin as `over_heads`
    returns them.

    ``partial``: whether cos and sin may cover fewer pairs than x has. Raises ``TypeError`` or ``ValueError`` if
    something is wrong.
    """
    checks.layout(layout)
    check_tables(cos, sin)
    check_rows(x, cos, partial)
    return over_heads(x, cos, sin)


def check_tables(cos: Tensor, sin: Tensor) -> None:
    """Do the checks of `fit` that involve only cos and sin."""
    for name, table in (("cos", cos), ("sin", sin)):
        if checks.floating(name, table).dtype not in (torch.float32, torch.float64):
            raise TypeError(f"{name} must be float32 or float64, got {table.dtype}")
    if cos.shape != sin.shape or cos.dtype != sin.dtype:
        raise ValueError(
            f"cos and sin must match, got {cos.dtype} {tuple(cos.shape)} and {sin.dtype} {tuple(sin.shape)}"
        )
    if cos.device != sin.device:
        raise ValueError(
            f"cos and sin must be on one device, got {cos.device} and {sin.device}"
        )


def check_rows(x: Tensor, cos: Tensor, partial: bool, name: str = "x") -> None:
    """Check x, called ``name`` in errors, as `fit` does, and check that cos has rows for the tokens of x."""
    checks.rotatable(name, x)
    rope.check_pairs(x, name)
    if x.device != cos.device:
        raise ValueError(
            f"{name} must be on the device of cos and sin, {cos.device}, got {x.device}"
        )
    tokens = x.shape[-2] if x.ndim > 1 else None
    rows = [(tokens,)]
    if x.ndim in (3, 4):
        rows += [(1, tokens), (x.shape[0], tokens)]
    pairs, given = x.shape[-1] // 2, cos.shape[-1] if cos.ndim else 0
    fits = given == pairs or (partial and 0 < given < pairs)
    if not fits or cos.shape[:-1] not in rows:
        raise ValueError(
            "cos and sin must have shape (T, d/2) or (B, T, d/2) for x (..., T, d), "
            f"got {tuple(cos.shape)} for {tuple(x.shape)} of {name}"
        )


def over_heads(
    x: Float[Tensor, "... dim"],
    cos: Float[Tensor, "... pairs"],
    sin: Float[Tensor, "... pairs"],
) -> tuple[Float[Tensor, "... pairs"], Float[Tensor, "... pairs"]]:
    """Add an axis for the heads of x (B, H, T, d) to cos and sin (B, T, d/2). If cos and sin have no batch axis, they
    are returned unchanged. The arguments are not checked."""
    if cos.ndim == 3 and x.ndim == 4:
        return cos.unsqueeze(1), sin.unsqueeze(1)
    return cos, sin


# For a single token, Tensor.to spends half as much time on inspecting its arguments as on the conversion itself.
_CASTS = {
    torch.float16: Tensor.half,
    torch.bfloat16: Tensor.bfloat16,
    torch.float32: Tensor.float,
    torch.float64: Tensor.double,
}


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """Compute ``x.to(dtype)``, but skip the call if x already has this dtype, because the call alone takes as long as a
    small product."""
    return x if x.dtype == dtype else _CASTS[dtype](x)


def fitted(form: Form) -> Form:
    """Wrap a form(x, cos, sin, layout) so that its arguments are first checked by `fit`."""

    @functools.wraps(form)
    def checked(
        x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved"
    ) -> Tensor:
        return form(x, *fit(x, cos, sin, layout), layout)

    return checked


def unchecked(form: Form) -> Form:
    """Return the form that `fitted` wrapped. It does not check its arguments, so the caller must have done that. The
    caller must also pass cos and sin as `over_heads` returns them."""
    return form.__wrapped__


# --- The forms ------------------------------------------------------------------------------------------------------


@fitted
def rotate_dense(
    x: Vectors, cos: Table, sin: Table, layout: str = "interleaved"
) -> Vectors:
    """Compute R_m x as the paper writes it, with a d × d matrix for each position. Nearly all entries of the matrix are
    zero."""
    dim = x.shape[-1]
    matrix = cos.new_zeros(*cos.shape[:-1], dim, dim)
    first, second = split(torch.arange(dim, device=x.device), layout)
    matrix[..., first, first] = cos
    matrix[..., first, second] = -sin
    matrix[..., second, first] = sin
    matrix[..., second, second] = cos
    return _product("...ij,...j->...i", matrix, x)


@fitted
def rotate_blocks(
    x: Vectors, cos: Table, sin: Table, layout: str = "interleaved"
) -> Vectors:
    """Compute R_m x from the nonzero blocks of R_m only: for each position and pair, a 2 × 2 matrix times the pair."""
    rows = torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)
    blocks = torch.stack(rows, -2)
    pairs = torch.stack(split(x, layout), -1)
    turned = _product("...ij,...j->...i", blocks, pairs)
    return join(*turned.unbind(-1), layout)


def rotate_every_two(
    x: Shaped[Tensor, "*shape dim"],
) -> Shaped[Tensor, "*shape dim"]:
    """Rotate every pair (2i, 2i + 1) by a quarter turn: (x₀, x₁, x₂, x₃, …) to (−x₁, x₀, −x₃, x₂, …).

    >>> rotate_every_two(torch.tensor([1, 2, 3, 4]))
    tensor([-2,  1, -4,  3])
    """
    first, second = split_pairs(_signed(x), "interleaved")
    return join(-second, first, "interleaved")


def rotate_half(x: Shaped[Tensor, "*shape dim"]) -> Shaped[Tensor, "*shape dim"]:
    """Rotate every pair (i, i + d/2) by a quarter turn: the halves (x₁, x₂) to (−x₂, x₁).

    >>> rotate_half(torch.tensor([1, 2, 3, 4]))
    tensor([-3, -4,  1,  2])
    """
    first, second = split_pairs(_signed(x), "half")
    return torch.cat((-second, first), -1)


def _signed(x: Tensor) -> Tensor:
    """Return x unchanged. Raises ``TypeError`` if its dtype has no negative numbers: in uint8, −1 would become 255."""
    if not checks.tensor("x", x).dtype.is_signed:
        raise TypeError(
            f"x must be of a type with negative numbers, got dtype {x.dtype}"
        )
    return x


def rotate_interleaved(x: Vectors, cos: Table, sin: Table) -> Vectors:
    """Compute the sparse form in layout "interleaved": x ⊗ cos + rotate_every_two(x) ⊗ sin (Su et al. 2021, equation
    34)."""
    cos, sin = fit(x, cos, sin)
    cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    return (x * cos + rotate_every_two(x) * sin).to(x.dtype)


def rotate_halves(x: Vectors, cos: Table, sin: Table) -> Vectors:
    """Compute the sparse form in layout "half": x ⊗ cos + rotate_half(x) ⊗ sin, as in GPT-NeoX and transformers'
    Llama."""
    cos, sin = fit(x, cos, sin)
    cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    return (x * cos + rotate_half(x) * sin).to(x.dtype)


def rotate_sparse(
    x: Vectors, cos: Table, sin: Table, layout: str = "interleaved"
) -> Vectors:
    """Call `rotate_interleaved` or `rotate_halves`, depending on ``layout``."""
    checks.layout(layout)
    form = rotate_interleaved if layout == "interleaved" else rotate_halves
    return form(x, cos, sin)


@fitted
def rotate_by_pairs(
    x: Vectors, cos: Table, sin: Table, layout: str = "interleaved"
) -> Vectors:
    """Compute the two lines of the formula directly. Plain torch creates six temporary tensors along the way; a
    compiler turns the whole computation into one loop."""
    x1, x2 = split(x, layout)
    y = join(x1 * cos - x2 * sin, x2 * cos + x1 * sin, layout)
    return y.to(x.dtype)


by_pairs = unchecked(rotate_by_pairs)


@fitted
def rotate_complex(
    x: Vectors, cos: Table, sin: Table, layout: str = "interleaved"
) -> Vectors:
    """Multiply complex numbers, (x₁ + ix₂)(cos φ + i sin φ), in a single pass over the data.

    Interleaved pairs are already stored like complex numbers. The two halves of half-split pairs must be brought
    together first.
    """
    wide = cast(x, torch.result_type(x, cos))
    if layout == "half":
        wide = join(*split(wide, "half"), "interleaved")
    elif not _is_complex_in_memory(wide):
        wide = wide.clone(memory_format=torch.contiguous_format)
    # We don't use unflatten and flatten, because autograd's own vmap (is_grads_batched) does not support them.
    z = torch.view_as_complex(wide.view(*wide.shape[:-1], wide.shape[-1] // 2, 2))
    y = cast(torch.view_as_real(z * torch.complex(cos, sin)), x.dtype)
    return join(*y.unbind(-1), "half") if layout == "half" else y.reshape(x.shape)


complex_product = unchecked(rotate_complex)


@fitted
def rotate_eager(
    x: Vectors, cos: Table, sin: Table, layout: str = "interleaved"
) -> Vectors:
    """Rotate x in the fastest way that needs no compiler. This is the default except on CUDA. Interleaved pairs are
    rotated by `rotate_complex`. For half-split pairs, the two lines of the formula are written directly into the
    result, in chunks of tokens that fit in the processor's cache. Inside your own ``torch.compile``, `rotate_by_pairs`
    is used instead.

    Autograd rotates the gradient by −φ, so it does not have to keep x (`Turn`).
    """
    if torch.compiler.is_compiling():
        return by_pairs(x, cos, sin, layout)
    if layout == "half" and (x.numel() <= SMALL or not _plain(x, cos, sin)):
        return rotate_few(x, *whole_rows(cos, sin))
    if layout != "half" and not _plain(x, cos, sin):
        return complex_product(x, cos, sin, layout)
    if x.requires_grad and torch.is_grad_enabled():
        return Turn.apply(x, cos, sin, layout)
    return _written(x, cos, sin, layout)


eager = unchecked(rotate_eager)


class Turn(torch.autograd.Function):
    """`rotate_eager` for autograd, without checks. The gradient is rotated by −φ, because the transpose of R_φ is
    R_−φ."""

    @staticmethod
    def forward(ctx, x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
        ctx.save_for_backward(cos, sin)
        ctx.layout = layout
        return _written(x, cos, sin, layout)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple:
        cos, sin = ctx.saved_tensors
        return eager(grad, cos, -sin, ctx.layout), None, None, None


def _plain(*tensors: Tensor) -> bool:
    """Return whether x, cos and sin can be rotated without torch recording the operations. This requires that cos and
    sin need no gradient, that there are no tangents or transforms of torch.func, and that all tensors are ordinary ones
    that are not being traced."""
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors[1:]):
        return False
    if forward_ad._current_level >= 0 or torch.jit.is_tracing():
        return False
    return all(ordinary(t) for t in tensors)


def ordinary(x: Tensor) -> bool:
    """Return whether the tensor contains actual numbers. A tensor that is being traced, or that belongs to a transform
    of torch.func, does not."""
    func = torch._C._functorch
    wrapped = func.is_functorch_wrapped_tensor(x) or func.is_legacy_batchedtensor(x)
    return type(x) in (Tensor, torch.nn.Parameter) and not wrapped


def whole_rows(cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    """Return cos and ∓sin for every entry of a half-split vector, instead of for every pair. `rotate_few` needs them in
    this form.

    >>> whole_rows(torch.ones(1, 1), torch.full((1, 1), 2.0))
    (tensor([[1., 1.]]), tensor([[-2.,  2.]]))
    """
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def rotate_few(
    x: Vectors, cos: Float[Tensor, "... dim"], sin: Float[Tensor, "... dim"]
) -> Vectors:
    """Rotate half-split x with as few operations as possible, without checks: x ⊗ cos plus the swapped halves of x
    times ∓sin.

    >>> rotate_few(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2), torch.tensor([[-1.0, 1.0]]))
    tensor([[-4.,  3.]])
    """
    dtype, half = x.dtype, x.shape[-1] // 2
    if dtype == cos.dtype:
        return torch.addcmul(x * cos, x.roll(half, -1), sin)
    wide = cast(x, torch.promote_types(dtype, cos.dtype))
    return cast(torch.addcmul(wide * cos, wide.roll(half, -1), sin), dtype)


# How many numbers each thread rotates at a time: few enough to fit in its cache, but so many that launching an
# operation and waiting for the other threads takes only a small part of the time.
CHUNK = 2**18


def _written(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Rotate x without autograd, in memory that is allocated only once."""
    dtype = torch.promote_types(x.dtype, cos.dtype)
    if layout != "half" and dtype == x.dtype:
        return complex_product(x, cos, sin, layout)
    if dtype != cos.dtype:
        cos, sin = cos.to(dtype), sin.to(dtype)
    if layout == "half":
        # so that the first step is one loop over whole rows
        cos = torch.cat((cos, cos), -1)
    tokens = x.shape[-2]
    at_once = CHUNK * torch.get_num_threads() * tokens // max(1, x.numel())
    at_once = max(1, at_once)
    if x.device.type != "cpu" or at_once >= tokens:
        return cast(_turned(cast(x, dtype), cos, sin, layout), x.dtype)
    y = torch.empty_like(x)
    parts = zip(*(t.split(at_once, -2) for t in (y, x, cos, sin)), strict=True)
    if dtype == x.dtype:
        for target, part, cos_part, sin_part in parts:
            _add_other_half(torch.mul(part, cos_part, out=target), part, sin_part)
        return y
    # Both are reused for every chunk, because allocating new memory would take longer than the arithmetic.
    wide = torch.empty((*x.shape[:-2], at_once, x.shape[-1]), dtype=dtype)
    turned = torch.empty_like(wide)
    for target, part, cos_part, sin_part in parts:
        count = part.shape[-2]
        if count < at_once:
            wide, turned = wide[..., :count, :], turned[..., :count, :]
        wide.copy_(part)
        if layout == "half":
            _add_other_half(torch.mul(wide, cos_part, out=turned), wide, sin_part)
            target.copy_(turned)
        else:
            z = torch.view_as_complex(wide.unflatten(-1, (-1, 2)))
            z.mul_(torch.complex(cos_part, sin_part))
            target.copy_(wide)
    return y


def _turned(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    """Rotate x, which must have the dtype of cos and sin. In layout "half", cos is as wide as x."""
    if layout != "half":
        return complex_product(x, cos, sin, layout)
    return _add_other_half(x * cos, x, sin)


def _add_other_half(y: Tensor, x: Tensor, sin: Tensor) -> Tensor:
    """Complete the rotation of y = x ⊗ cos by adding, to each half of y, the other half of x times ∓sin."""
    (y1, y2), (x1, x2) = y.chunk(2, -1), x.chunk(2, -1)
    y1.addcmul_(x2, sin, value=-1)
    y2.addcmul_(x1, sin)
    return y


def rotate_in_place(
    x: Vectors, cos: Table, sin: Table, layout: str = "interleaved"
) -> Vectors:
    """Overwrite x with its rotation and return it. This needs extra memory for only a single head, or for a single
    token.

    Autograd rotates the gradient by −φ, so x itself is not kept. If x is a leaf of the graph, or a view of one, it is
    refused (``ValueError``), because its old values would be lost. cos and sin that require a gradient are refused too.
    If an earlier operation kept x, or x is the argument of an activation checkpoint (which would rotate it twice),
    torch's version counter detects that x was overwritten, and the backward pass raises an error.

    If several entries of x share a memory location, as in keys expanded to the number of query heads, x is refused
    (``ValueError``), because that location would be rotated several times. Rotate first, then expand.
    """
    fit(x, cos, sin, layout)
    memory.check_writable("x", x)
    owner = x if x._base is None else x._base
    if torch.is_grad_enabled() and owner.is_leaf and owner.requires_grad:
        raise ValueError(
            "x must not be a leaf of the graph, or a view of one, to be rotated in place; got one with requires_grad"
        )
    if cos.requires_grad or sin.requires_grad:
        raise ValueError(
            "cos and sin must not require a gradient to rotate in place"
        )
    if torch.compiler.is_compiling():
        return x.copy_(by_pairs(x, *over_heads(x, cos, sin), layout))
    if not (x.requires_grad and torch.is_grad_enabled()):
        return overwrite(x, cos, sin, layout)
    return InPlace.apply(x, cos, sin, layout)


class InPlace(torch.autograd.Function):
    """`rotate_in_place` for autograd, without checks."""

    @staticmethod
    def forward(ctx, x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
        ctx.mark_dirty(x)
        # x itself is not saved, because it is overwritten
        ctx.save_for_backward(cos, sin)
        ctx.layout = layout
        return overwrite(x, cos, sin, layout)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple:
        cos, sin = over_heads(grad, *ctx.saved_tensors)
        return eager(grad, cos, -sin, ctx.layout), None, None, None


def overwrite(x: Vectors, cos: Table, sin: Table, layout: str) -> Vectors:
    """Rotate x in place, without checks and without autograd."""
    if x.ndim > 1 and x.shape[-2] == 1 and x.numel() <= SMALL:
        return x.copy_(eager(x, *over_heads(x, cos, sin), layout))
    same_type = x.dtype == cos.dtype
    if layout == "interleaved" and same_type and _is_complex_in_memory(x):
        turn = torch.complex(*over_heads(x, cos, sin))
        torch.view_as_complex(x.unflatten(-1, (-1, 2))).mul_(turn)
        return x
    for head in x.unbind(1) if x.ndim == 4 else (x,):
        if not same_type:
            # not rounded after each step, because the errors would add up
            head.copy_(eager(head, cos, sin, layout))
            continue
        x1, x2 = split(head, layout)
        old = x1.clone()
        x1.mul_(cos).addcmul_(x2, sin, value=-1)
        x2.mul_(cos).addcmul_(old, sin)
    return x


def _is_complex_in_memory(x: Tensor) -> bool:
    # torch.view_as_complex needs the two numbers of a pair side by side, an even offset, and even strides.
    *strides, last = x.stride()
    return last == 1 and not any(n % 2 for n in (*strides, x.storage_offset()))


@fitted
def rotate_compiled(
    x: Vectors, cos: Table, sin: Table, layout: str = "interleaved"
) -> Vectors:
    """Run `rotate_by_pairs` through ``torch.compile``, which turns it into one loop that reads x once and writes the
    result once.

    The first call compiles, so it takes much longer than later calls. Later calls may pass tensors of other sizes. If
    there is no working compiler, the function warns (``RuntimeWarning``) and rotates eagerly.
    """
    if torch.compiler.is_compiling():
        return by_pairs(x, cos, sin, layout)
    if x.device.type in _WITHOUT_COMPILER:
        return eager(x, cos, sin, layout)
    try:
        return _compiled_by_pairs()(x, cos, sin, layout)
    except RuntimeError as error:
        # If x caused the failure, the eager form raises an error too.
        result = eager(x, cos, sin, layout)
        if isinstance(error, torch._dynamo.exc.BackendCompilerFailed):
            _WITHOUT_COMPILER.add(x.device.type)
        reason = textwrap.shorten(str(error), 200)
        warnings.warn(
            f"no compiled rotation on {x.device.type}, rotating eagerly: {reason}",
            RuntimeWarning,
            stacklevel=3,
        )
        return result


compiled = unchecked(rotate_compiled)

# The types of device on which compiling has failed.
_WITHOUT_COMPILER: set[str] = set()


@functools.cache
def _compiled_by_pairs() -> Form:
    return torch.compile(by_pairs, dynamic=True, fullgraph=True)


# The forms, under the names that `rotation_cost` uses. Each is called as form(x, cos, sin, layout).
FORMS = types.MappingProxyType(
    {
        "dense": rotate_dense,
        "blocks": rotate_blocks,
        "sparse": rotate_sparse,
        "by_pairs": rotate_by_pairs,
        "complex": rotate_complex,
        "eager": rotate_eager,
        "in_place": rotate_in_place,
        "compiled": rotate_compiled,
    }
)


def _product(equation: str, left: Tensor, right: Tensor) -> Tensor:
    """Compute an einsum in the wider of the two types, regardless of autocast. The result has the type of ``right``."""
    wide = torch.result_type(left, right)
    with torch.autocast(right.device.type, enabled=False):
        return torch.einsum(equation, left.to(wide), right.to(wide)).to(right.dtype)
