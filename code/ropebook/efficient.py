"""The rotation, computed fast: a ladder of forms of one product, and the module that models use.

Every form turns pair i of x at position m by the angle φ = mθ_i, counter-clockwise:

    x₁′ = x₁ cos φ − x₂ sin φ
    x₂′ = x₂ cos φ + x₁ sin φ

In layout "interleaved" a pair is the entries (2i, 2i + 1), as in Su et al., "RoFormer" (2021), equation 34; in layout
"half" it is (i, i + d/2), as in GPT-NeoX and in transformers' Llama. The forms take x (…, T, d) with cos and sin (T, d/2),
or x (B, H, T, d) with cos and sin (B, T, d/2), as `cos_sin` gives them, and return the type of x. cos and sin are float32
or float64, never half; half data are widened for the arithmetic and rounded once, at the end.
"""

from __future__ import annotations

import functools
import textwrap
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ropebook import checks, memory, sinusoidal

BACKENDS = ("eager", "compiled", "triton")

# (inv_freq, length) -> (inv_freq, attention_factor): see RotaryEmbedding
Scaling = Callable[[Tensor, int | None], tuple[Tensor, float]]

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_WIDE = (torch.float32, torch.float64)


# --- The tables -----------------------------------------------------------------------------------------------------


def cos_sin(
    positions: Tensor, inv_freq: Tensor, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """cos mθ_i and sin mθ_i: two tensors of shape positions.shape + (d/2,), on the device of ``positions``.

    ``positions``: integers, float32 or float64, any shape, as `check_positions` has them; where it may not read them,
    cos and sin of one beyond 2^31 are NaN. ``inv_freq``: θ, shape (d/2,), float32 or float64. The angles
    are computed in float64 and only the finished cosine and sine are cast to ``dtype``, float32 or float64: float32
    cannot tell 2^24 from 2^24 + 1, and long before that its angles are off by 2^−24 of themselves.

    >>> cos, sin = cos_sin(torch.tensor([0, 1]), sinusoidal.inv_freq(4))
    >>> sin
    tensor([[0.0000, 0.0000],
            [0.8415, 0.0100]])
    """
    check_positions(positions)
    checks.choice("dtype", dtype, _WIDE)
    if checks.floating("inv_freq", inv_freq).dtype not in _WIDE:
        raise TypeError(
            f"inv_freq must be float32 or float64, got {inv_freq.dtype}"
        )
    if inv_freq.ndim != 1:
        raise ValueError(
            f"inv_freq must have shape (d/2,), got {tuple(inv_freq.shape)}"
        )
    if torch.compiler.is_compiling():
        return _cos_sin_kept(positions, inv_freq, dtype)
    return _cos_sin(positions, inv_freq, dtype)


def _cos_sin(
    positions: Tensor, inv_freq: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    device = positions.device
    where = torch.device("cpu") if device.type == "mps" else device  # no float64
    m = positions.to(where).double()
    m = m.where(m.abs() <= sinusoidal.LARGEST_POSITION, torch.nan)
    angles = m[..., None] * inv_freq.to(where).double()
    return angles.cos().to(dtype).to(device), angles.sin().to(dtype).to(device)


# A compiler would merge cosine and sine into the loop over the heads and compute them anew for each head, in float64.
# What is an operation to it, it leaves alone.
_cos_sin_kept = torch.library.custom_op(
    "ropebook::cos_sin",
    _cos_sin,
    mutates_args=(),
    schema="(Tensor positions, Tensor inv_freq, ScalarType dtype) -> (Tensor, Tensor)",
)


@_cos_sin_kept.register_fake
def _(
    positions: Tensor, inv_freq: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    shape = (*positions.shape, *inv_freq.shape)
    return tuple(positions.new_empty(shape, dtype=dtype) for _ in range(2))


def split_pairs(x: Tensor, layout: str = "interleaved") -> tuple[Tensor, Tensor]:
    """The first and the second entries of all pairs of x (…, d): two views of shape (…, d/2).

    >>> split_pairs(torch.arange(6), "interleaved")
    (tensor([0, 2, 4]), tensor([1, 3, 5]))
    >>> split_pairs(torch.arange(6), "half")
    (tensor([0, 1, 2]), tensor([3, 4, 5]))
    """
    checks.layout(layout)
    _check_even(x)
    if layout == "interleaved":
        return x.unflatten(-1, (-1, 2)).unbind(-1)
    return x.unflatten(-1, (2, -1)).unbind(-2)


def join_pairs(
    first: Tensor, second: Tensor, layout: str = "interleaved"
) -> Tensor:
    """The inverse of `split_pairs`: two tensors (…, d/2) to one (…, d).

    >>> join_pairs(torch.tensor([0, 2]), torch.tensor([1, 3]))
    tensor([0, 1, 2, 3])
    """
    checks.layout(layout)
    axis = -1 if layout == "interleaved" else -2
    return torch.stack((first, second), axis).flatten(-2)


# --- The ladder -----------------------------------------------------------------------------------------------------


def rotate_dense(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved"
) -> Tensor:
    """R_m x as it stands in the paper: a d × d matrix for each position, nearly all of it zeros."""
    cos, sin = _fit(x, cos, sin, layout)
    dim = x.shape[-1]
    matrix = cos.new_zeros(*cos.shape[:-1], dim, dim)
    first, second = split_pairs(torch.arange(dim, device=x.device), layout)
    matrix[..., first, first] = cos
    matrix[..., first, second] = -sin
    matrix[..., second, first] = sin
    matrix[..., second, second] = cos
    return _product("...ij,...j->...i", matrix, x)


def rotate_blocks(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved"
) -> Tensor:
    """Only the blocks: a 2 × 2 matrix for each position and pair, times the pair."""
    cos, sin = _fit(x, cos, sin, layout)
    rows = torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)
    blocks = torch.stack(rows, -2)
    pairs = torch.stack(split_pairs(x, layout), -1)
    turned = _product("...ij,...j->...i", blocks, pairs)
    return join_pairs(*turned.unbind(-1), layout)


def rotate_every_two(x: Tensor) -> Tensor:
    """Every pair (2i, 2i + 1) by a quarter turn: (x₀, x₁, x₂, x₃, …) to (−x₁, x₀, −x₃, x₂, …).

    >>> rotate_every_two(torch.tensor([1, 2, 3, 4]))
    tensor([-2,  1, -4,  3])
    """
    first, second = split_pairs(x, "interleaved")
    return join_pairs(-second, first, "interleaved")


def rotate_half(x: Tensor) -> Tensor:
    """Every pair (i, i + d/2) by a quarter turn: the halves (x₁, x₂) to (−x₂, x₁).

    >>> rotate_half(torch.tensor([1, 2, 3, 4]))
    tensor([-3, -4,  1,  2])
    """
    first, second = split_pairs(x, "half")
    return torch.cat((-second, first), -1)


def rotate_interleaved(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The sparse form, layout "interleaved": x ⊗ cos + rotate_every_two(x) ⊗ sin; equation 34 of Su et al. (2021)."""
    cos, sin = _fit(x, cos, sin)
    cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    return (x * cos + rotate_every_two(x) * sin).to(x.dtype)


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The sparse form, layout "half": x ⊗ cos + rotate_half(x) ⊗ sin, as GPT-NeoX and transformers' Llama write it."""
    cos, sin = _fit(x, cos, sin)
    cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    return (x * cos + rotate_half(x) * sin).to(x.dtype)


def rotate_sparse(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved"
) -> Tensor:
    """`rotate_interleaved` or `rotate_halves`, as ``layout`` says."""
    checks.layout(layout)
    form = rotate_interleaved if layout == "interleaved" else rotate_halves
    return form(x, cos, sin)


def rotate_by_pairs(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved"
) -> Tensor:
    """The two lines of the formula. Plain torch makes six temporaries of it; a compiler makes one loop of it."""
    cos, sin = _fit(x, cos, sin, layout)
    x1, x2 = split_pairs(x, layout)
    y = join_pairs(x1 * cos - x2 * sin, x2 * cos + x1 * sin, layout)
    return y.to(x.dtype)


def rotate_complex(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved"
) -> Tensor:
    """One product of complex numbers, (x₁ + ix₂)(cos φ + i sin φ): one pass over the data.

    Interleaved pairs are complex numbers already, where they lie in memory; halves must be brought together first.
    """
    cos, sin = _fit(x, cos, sin, layout)
    wide = x.to(torch.result_type(x, cos))
    if layout == "half":
        wide = join_pairs(*split_pairs(wide, "half"), "interleaved")
    elif not _is_complex_in_memory(wide):
        wide = wide.clone(memory_format=torch.contiguous_format)
    z = torch.view_as_complex(wide.unflatten(-1, (-1, 2)))
    y = torch.view_as_real(z * torch.complex(cos, sin)).to(x.dtype)
    return join_pairs(*y.unbind(-1), "half") if layout == "half" else y.flatten(-2)


def rotate_eager(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved"
) -> Tensor:
    """The default off CUDA: the fastest form without a compiler. Interleaved: `rotate_complex`. Halves: x ⊗ cos, and
    the other half added to each half of it, where it lies. Inside a ``torch.compile`` of yours: `rotate_by_pairs`."""
    if torch.compiler.is_compiling():
        return rotate_by_pairs(x, cos, sin, layout)
    if layout != "half":
        return rotate_complex(x, cos, sin, layout)
    cos, sin = _fit(x, cos, sin, layout)
    half = x.shape[-1] // 2
    y = x * torch.cat((cos, cos), -1)
    y[..., :half].addcmul_(x[..., half:].to(y.dtype), sin, value=-1)
    y[..., half:].addcmul_(x[..., :half].to(y.dtype), sin)
    return y.to(x.dtype)


def rotate_in_place(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved"
) -> Tensor:
    """The rotation written over x, which is returned: no memory but for one head at a time.

    Autograd: the gradient is turned by −φ, and x itself is not kept for it. An x that is a leaf of the graph, or a view
    of one, is refused, for its old values would be lost; so are cos and sin that want a gradient (``ValueError``). Where
    x was kept by an earlier operation, or is the argument of an activation checkpoint, which would be rotated twice,
    torch's own count of changes raises in the backward pass.

    An x in which several entries are one number in memory, such as keys expanded to the number of query heads, is
    refused (``ValueError``): it would be rotated once for each of them. Rotate it before it is expanded.
    """
    _fit(x, cos, sin, layout)
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
        return x.copy_(rotate_by_pairs(x, cos, sin, layout))
    return _InPlace.apply(x, cos, sin, layout)


class _InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
        ctx.mark_dirty(x)
        ctx.save_for_backward(cos, sin)  # and not x, which is overwritten
        ctx.layout = layout
        return _overwrite(x, cos, sin, layout)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple:
        cos, sin = ctx.saved_tensors
        return rotate_eager(grad, cos, -sin, ctx.layout), None, None, None


def _overwrite(x: Tensor, cos: Tensor, sin: Tensor, layout: str) -> Tensor:
    if (
        layout == "interleaved"
        and x.dtype == cos.dtype
        and _is_complex_in_memory(x)
    ):
        cos, sin = _fit(x, cos, sin, layout)
        torch.view_as_complex(x.unflatten(-1, (-1, 2))).mul_(
            torch.complex(cos, sin)
        )
        return x
    for head in x.unbind(1) if x.ndim == 4 else (x,):
        if x.dtype != cos.dtype:  # rounding after each step would add up
            head.copy_(rotate_eager(head, cos, sin, layout))
            continue
        x1, x2 = split_pairs(head, layout)
        old = x1.clone()
        x1.mul_(cos).addcmul_(x2, sin, value=-1)
        x2.mul_(cos).addcmul_(old, sin)
    return x


def _is_complex_in_memory(x: Tensor) -> bool:
    # what torch.view_as_complex asks for: the two numbers of a pair side by side, pairs whole steps apart
    *strides, last = x.stride()
    return last == 1 and not any(n % 2 for n in (*strides, x.storage_offset()))


def rotate_compiled(
    x: Tensor, cos: Tensor, sin: Tensor, layout: str = "interleaved"
) -> Tensor:
    """`rotate_by_pairs` through ``torch.compile``: one loop that reads and writes x once.

    The first call compiles, some ten seconds on a CPU; sizes may change afterwards. Without a working compiler it warns
    (``RuntimeWarning``) and rotates eagerly.
    """
    _fit(x, cos, sin, layout)
    if torch.compiler.is_compiling():
        return rotate_by_pairs(x, cos, sin, layout)
    if x.device.type in _WITHOUT_COMPILER:
        return rotate_eager(x, cos, sin, layout)
    try:
        return _compiled()(x, cos, sin, layout)
    except RuntimeError as error:
        result = rotate_eager(x, cos, sin, layout)  # fails too if x is to blame
        if isinstance(error, torch._dynamo.exc.BackendCompilerFailed):
            _WITHOUT_COMPILER.add(x.device.type)
        reason = textwrap.shorten(str(error), 200)
        warnings.warn(
            f"no compiled rotation on {x.device.type}, rotating eagerly: {reason}",
            RuntimeWarning,
            stacklevel=2,
        )
        return result


_WITHOUT_COMPILER: set[str] = set()  # kinds of device on which compiling has failed


@functools.cache
def _compiled() -> Callable[..., Tensor]:
    return torch.compile(rotate_by_pairs, dynamic=True, fullgraph=True)


# The rungs of the ladder by the names that `rotation_cost` has for them: each form(x, cos, sin, layout).
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


# --- One entry ------------------------------------------------------------------------------------------------------


def apply_rotary(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    layout: str = "interleaved",
    backend: str | None = None,
) -> Tensor:
    """x rotated, of the same shape and type: the form to use.

    ``x``: (B, H, T, d), or (…, T, d) where cos and sin are (T, rotary_dim/2). If rotary_dim < d, the first rotary_dim
    entries are rotated and the rest pass through. ``backend``: "eager", "compiled" (`rotate_compiled`), "triton" (the
    kernel of ``ropebook.triton_kernel``), or ``None``: triton on CUDA where it can run, else eager.
    """
    return _rotated((x,), cos, sin, layout, backend)[0]


def apply_rotary_qk(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    layout: str = "interleaved",
    backend: str | None = None,
) -> tuple[Tensor, Tensor]:
    """q and k rotated by the same positions, each as `apply_rotary` does it; in one launch where the backend can."""
    return _rotated((q, k), cos, sin, layout, backend)


def _rotated(
    tensors: tuple[Tensor, ...],
    cos: Tensor,
    sin: Tensor,
    layout: str,
    backend: str | None,
) -> tuple[Tensor, ...]:
    for x in tensors:
        _fit(x, cos, sin, layout, partial=True)
    backend = _backend(backend, tensors)
    if backend == "triton":
        from ropebook import triton_kernel

        q, k = tensors if len(tensors) == 2 else (tensors[0], None)
        return triton_kernel.rotary(q, k, cos, sin, layout=layout)
    form = rotate_compiled if backend == "compiled" else rotate_eager
    rotary_dim = 2 * cos.shape[-1]
    return tuple(
        form(x, cos, sin, layout)
        if x.shape[-1] == rotary_dim
        else torch.cat(
            (form(x[..., :rotary_dim], cos, sin, layout), x[..., rotary_dim:]), -1
        )
        for x in tensors
    )


def _backend(backend: str | None, tensors: tuple[Tensor, ...]) -> str:
    if backend is not None:
        return checks.choice("backend", backend, BACKENDS)
    device = tensors[0].device
    if (
        device.type != "cuda"
        or torch.compiler.is_compiling()
        or any(x.ndim != 4 for x in tensors)
    ):
        return "eager"
    from ropebook import triton_kernel

    return "triton" if triton_kernel.available(device) else "eager"


# --- What each form costs -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RotationCost:
    """What it costs to rotate the heads of one token; made by :func:`rotation_cost`.

    Operations are additions, multiplications and changes of sign of real numbers. Bytes are all that the steps of a form
    read and write, each step for itself, as if no cache kept anything between two steps.
    """

    flops: int
    data_bytes: int  # of the heads and of what is made from them on the way
    table_bytes: (
        int  # of cosines and sines, wherever they are read to be multiplied
    )

    @property
    def bytes(self) -> int:
        """All of them: ``data_bytes + table_bytes``."""
        return self.data_bytes + self.table_bytes

    @property
    def intensity(self) -> float:
        """Operations per byte: below what a processor can do per byte of memory traffic, memory decides the time."""
        return self.flops / self.bytes


# Per entry of a head: operations, numbers read and written; per entry of one head, for each token: numbers of the table.
# ("dense" has d times these operations and table entries.)
_COSTS = {
    ("dense", "interleaved"): (2, 2, 1),
    ("dense", "half"): (2, 2, 1),
    ("blocks", "interleaved"): (4, 6, 2),
    ("blocks", "half"): (4, 6, 2),
    ("sparse", "interleaved"): (3.5, 10, 2),
    ("sparse", "half"): (3.5, 10, 2),
    ("by_pairs", "interleaved"): (3, 9, 2),
    ("by_pairs", "half"): (3, 9, 2),
    ("complex", "interleaved"): (3, 2, 1),
    ("complex", "half"): (3, 6, 1),
    ("eager", "interleaved"): (3, 2, 1),
    ("eager", "half"): (3, 5, 2),
    ("in_place", "interleaved"): (3, 2, 1),
    ("in_place", "half"): (3, 6, 2),
    ("compiled", "interleaved"): (3, 2, 1),
    ("compiled", "half"): (3, 2, 1),
}


def rotation_cost(
    form: str,
    head_dim: int,
    n_heads: int = 1,
    layout: str = "interleaved",
    bytes_per_element: int = 4,
) -> RotationCost:
    """Count what ``form`` costs per token, for ``n_heads`` heads of d = ``head_dim`` entries, by hand.

    With H = ``n_heads`` and β = ``bytes_per_element`` (data, tables and temporaries alike):

    - "dense": 2d²·H operations, 2d·H numbers, a table of d²
    - "blocks": 4d·H operations (2·2·2 for each 2 × 2 product), 6d·H numbers (pairs gathered, product, result
      scattered), a table of 2d
    - "sparse" (`rotate_interleaved`, `rotate_halves`): 3.5d·H operations, 10d·H numbers (sign d, swap 2d, two products 2d
      each, sum 3d), a table of 2d
    - "by_pairs" run step by step: 3d·H operations, 9d·H numbers, a table of 2d
    - "complex": 3d·H operations (4 products and 2 sums a pair), 2d·H numbers, a table of d; half-split 6d·H numbers
    - "eager": interleaved as "complex"; half-split 5d·H numbers, a table of 2d
    - "in_place": interleaved 2d·H numbers; half-split 6d·H numbers and the table of 2d for every head, but head by head,
      so that most of it stays in the cache
    - "compiled", and the Triton kernel: 3d·H operations, 2d·H numbers, a table of d: the least there is

    >>> rotation_cost("compiled", head_dim=128, n_heads=40).data_bytes == 2 * 128 * 40 * 4
    True
    """
    checks.choice("form", form, FORMS)
    checks.layout(layout)
    dim = checks.even("head_dim", head_dim)
    n_heads = checks.integer("n_heads", n_heads, minimum=1)
    size = checks.integer("bytes_per_element", bytes_per_element, minimum=1)
    flops, moved, table = _COSTS[form, layout]
    whole = dim if form == "dense" else 1
    passes = n_heads if (form, layout) == ("in_place", "half") else 1
    return RotationCost(
        flops=int(flops * dim) * whole * n_heads,
        data_bytes=moved * dim * n_heads * size,
        table_bytes=table * dim * whole * passes * size,
    )


# --- The module that models use -------------------------------------------------------------------------------------


_FIXED = ("dim", "rotary_dim", "base", "inv_freq")


class RotaryEmbedding(nn.Module):
    """Rotates queries and keys by their positions: q (B, H_q, T, dim), k (B, H_kv, T, dim) to (q′, k′).

    ``rotary_dim`` (default ``dim``): only the first rotary_dim entries of each head turn, and θ_i = base^(−2i/rotary_dim),
    as in GPT-NeoX. ``layout`` (default "interleaved") and ``backend`` as in `apply_rotary`. ``table_length``: rows of the table of cosines and
    sines to begin with (default 4096). The table starts at position 0 and doubles as a text grows past its end; rows
    that lie further off, as after an ``offset`` into a cache that was filled elsewhere, are computed and not kept.

    ``scaling``: how a method of context extension enters. A function (inv_freq, length) -> (inv_freq, attention_factor):
    inv_freq (rotary_dim/2,), float64; length, the highest position + 1 where that follows from shapes and the offset, and
    ``None`` for a tensor of positions, which would have to be read back from the device. attention_factor multiplies cos
    and sin, hence what the rotated entries add to a score by its square, and what the others (from rotary_dim on) add not
    at all. With scaling there is no table: the frequencies may depend on the length. One that was read from a config
    (:func:`ropebook.extrapolation.from_transformers`) asks for the config's base and rotary_dim, and for a layout that is
    named, since configs do not say it: ``ValueError`` for others.

    There is nothing to train and nothing in the state_dict. ``inv_freq`` is float64 and stays so whatever ``.half()``,
    ``.to(dtype)`` or autocast do to the model; angles are float64, cos and sin float32 (float64 for float64 data).
    ``dim``, ``rotary_dim``, ``base`` and ``inv_freq`` (rotary_dim/2,), of which each reading is a copy, belong together
    and cannot be set (``AttributeError``): other frequencies are another module, by its base or by ``scaling``.

    >>> rope = RotaryEmbedding(dim=4)
    >>> q, k = torch.ones(1, 2, 3, 4), torch.ones(1, 1, 3, 4)
    >>> whole, last = rope(q, k)[0], rope(q[:, :, 2:], k[:, :, 2:], offset=2)[0]
    >>> torch.equal(whole[:, :, 2:], last)
    True
    """

    def __init__(
        self,
        dim: int,
        base: float = 10000.0,
        *,
        layout: str | None = None,
        rotary_dim: int | None = None,
        scaling: Scaling | None = None,
        table_length: int | None = None,
        backend: str | None = None,
    ) -> None:
        super().__init__()
        self.dim = checks.even("dim", dim)
        self.base = checks.number("base", base, minimum=1)
        self.layout = checks.layout("interleaved" if layout is None else layout)
        self.rotary_dim = _rotary_dim(self.dim, rotary_dim)
        if scaling is not None and not callable(scaling):
            raise TypeError(f"scaling must be a function or None, got {scaling!r}")
        if hasattr(scaling, "asked_of_rotary"):
            for name, asked in scaling.asked_of_rotary(self.dim).items():
                if getattr(self, name) != asked:
                    raise ValueError(
                        f"{name} must be {asked}, as in the config of scaling, got {getattr(self, name)}"
                    )
            if layout is None:
                raise ValueError(
                    f"layout must be one of {', '.join(map(repr, checks.LAYOUTS))}, for the config of scaling does not say it, got None"
                )
        self.scaling = scaling
        if table_length is None:
            table_length = 4096
        self.table_length = checks.integer("table_length", table_length, minimum=1)
        if backend is not None:
            checks.choice("backend", backend, BACKENDS)
        self.backend = backend
        with torch.device("cpu"):  # under torch.device("meta") too
            self._inv_freq = sinusoidal.inv_freq(self.rotary_dim, self.base)
        self._table: tuple[Tensor, Tensor] | None = None

    @property
    def inv_freq(self) -> Tensor:
        """θ_i, shape (rotary_dim/2,), float64: a copy, for the tables that were made of them would not follow."""
        return self._inv_freq.clone()

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FIXED and "_table" in self.__dict__:  # which is set last
            raise AttributeError(
                f"{name} cannot be set once the module is made, got {textwrap.shorten(repr(value), 60)}; "
                "make another RotaryEmbedding, with its base, or with scaling=lambda inv_freq, length: (other_inv_freq, 1.0)"
            )
        super().__setattr__(name, value)

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        positions: Tensor | None = None,
        *,
        offset: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """``positions``: a tensor (T,) or (B, T), integers, float32 or float64; default offset … offset + T − 1.

        With a cache of keys, ``offset`` is the number of tokens that are in it already. Packed texts and left padding
        need positions.
        """
        self._check_heads(q, k)
        seq_len = q.shape[-2]
        dtype = torch.float64 if q.dtype == torch.float64 else torch.float32
        if positions is None:
            cos, sin = self._contiguous(offset, seq_len, dtype, q.device)
        else:
            if offset != 0:
                raise ValueError(
                    f"offset must be 0 where positions are given, got {offset}"
                )
            check_positions(positions)
            batch = q.shape[0]
            if positions.shape not in ((seq_len,), (1, seq_len), (batch, seq_len)):
                raise ValueError(
                    f"positions must have shape ({seq_len},) or ({q.shape[0]}, {seq_len}), "
                    f"got {tuple(positions.shape)}"
                )
            cos, sin = self.cos_sin(positions.to(q.device), dtype)
        return apply_rotary_qk(
            q, k, cos, sin, layout=self.layout, backend=self.backend
        )

    def cos_sin(
        self,
        positions: Tensor,
        dtype: torch.dtype = torch.float32,
        *,
        length: int | None = None,
    ) -> tuple[Tensor, Tensor]:
        """`cos_sin` of the module's frequencies: two tensors of shape positions.shape + (rotary_dim/2,).

        ``length`` is what ``scaling`` is told. Always computed, never looked up."""
        if self.scaling is None:
            return cos_sin(positions, self._inv_freq, dtype)
        inv_freq, factor = self._scaled(length)
        cos, sin = cos_sin(positions, inv_freq, dtype)
        return cos * factor, sin * factor

    def _contiguous(
        self, offset: int, seq_len: int, dtype: torch.dtype, device: torch.device
    ) -> tuple[Tensor, Tensor]:
        offset = checks.integer("offset", offset, minimum=0)
        end = offset + seq_len
        if end > sinusoidal.LARGEST_POSITION:
            raise ValueError(
                f"offset must leave positions below {sinusoidal.LARGEST_POSITION}, got {offset}"
            )
        if self.scaling is not None:
            positions = torch.arange(offset, end, device=device)
            return self.cos_sin(positions, dtype, length=end)
        table = self._table
        if table is not None and (table[0].dtype, table[0].device) != (
            dtype,
            device,
        ):
            table = None
        rows = self.table_length if table is None else len(table[0])
        fits = table is not None and rows >= end
        # Far from the table, no rows between: an offset of a million asks for one token, not for a million.
        # And to grow the table is for eager code: a graph may own the memory of what it made.
        far = end > 2 * rows and offset > seq_len
        if not fits and (far or torch.compiler.is_compiling()):
            return self.cos_sin(torch.arange(offset, end, device=device), dtype)
        if not fits:
            while rows < end:
                rows *= 2
            # a table that inference mode made would be refused by a later training step
            with torch.inference_mode(False):
                table = self.cos_sin(torch.arange(rows, device=device), dtype)
            self._table = table
        return table[0][offset:end], table[1][offset:end]

    def _scaled(self, length: int | None) -> tuple[Tensor, float]:
        result = self.scaling(self.inv_freq, length)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                f"scaling must return (inv_freq, attention_factor), got {type(result).__name__}"
            )
        inv_freq, factor = result
        checks.floating("scaling's inv_freq", inv_freq)
        if inv_freq.shape != self._inv_freq.shape:
            raise ValueError(
                f"scaling's inv_freq must have shape {tuple(self._inv_freq.shape)}, got {tuple(inv_freq.shape)}"
            )
        return inv_freq, checks.number(
            "scaling's attention_factor", factor, above=0
        )

    def _check_heads(self, q: Tensor, k: Tensor) -> None:
        for name, x in (("q", q), ("k", k)):
            checks.floating(name, x)
            if x.ndim != 4 or x.shape[-1] != self.dim:
                raise ValueError(
                    f"{name} must have shape (batch, heads, seq, {self.dim}), got {tuple(x.shape)}"
                )
        if q.shape[0] != k.shape[0] or q.shape[2] != k.shape[2]:
            raise ValueError(
                f"q and k must agree in batch and seq, got {tuple(q.shape)} and {tuple(k.shape)}"
            )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True):
        # .to(), .half() and the like come through here. The frequencies follow to a new device and are never cast.
        super()._apply(fn, recurse)
        device = fn(torch.empty(0)).device
        if device.type not in ("meta", "mps"):  # no values, no float64
            self._inv_freq = self._inv_freq.to(device)
        self._table = None
        return self

    def extra_repr(self) -> str:
        return f"dim={self.dim}, base={self.base:g}, layout={self.layout!r}, rotary_dim={self.rotary_dim}"


# --- From one layout to the other -----------------------------------------------------------------------------------


def interleaved_to_half(dim: int, rotary_dim: int | None = None) -> Tensor:
    """The order with x_half = x_interleaved[..., order]: shape (dim,), int64. First entries of the pairs, then seconds.

    Entries from ``rotary_dim`` (default ``dim``) on stay where they are.

    >>> interleaved_to_half(6)
    tensor([0, 2, 4, 1, 3, 5])
    """
    dim = checks.even("dim", dim)
    rotary_dim = _rotary_dim(dim, rotary_dim)
    return torch.cat(
        (sinusoidal.concatenated_order(rotary_dim), torch.arange(rotary_dim, dim))
    )


def half_to_interleaved(dim: int, rotary_dim: int | None = None) -> Tensor:
    """The inverse order, with x_interleaved = x_half[..., order].

    >>> half_to_interleaved(6)
    tensor([0, 3, 1, 4, 2, 5])
    """
    return interleaved_to_half(dim, rotary_dim).argsort()


def convert_weight(
    weight: Tensor,
    n_heads: int,
    head_dim: int,
    to: str,
    rotary_dim: int | None = None,
) -> Tensor:
    """The weight (or bias) of a query or key projection, its outputs reordered for the other layout.

    ``weight``: (n_heads·head_dim, inputs), as in torch.nn.Linear, or a bias (n_heads·head_dim,); ``n_heads`` counts the
    heads of this projection, so with grouped heads it is the number of key heads for keys. ``to`` is the layout wanted,
    from the other one. Scores stay the same only if queries *and* keys are converted; values and outputs never are.

    >>> convert_weight(torch.arange(8.0), n_heads=2, head_dim=4, to="half")
    tensor([0., 2., 1., 3., 4., 6., 5., 7.])
    """
    checks.floating("weight", weight)
    n_heads = checks.integer("n_heads", n_heads, minimum=1)
    head_dim = checks.even("head_dim", head_dim)
    if weight.ndim not in (1, 2) or weight.shape[0] != n_heads * head_dim:
        raise ValueError(
            f"weight must have n_heads·head_dim = {n_heads * head_dim} rows, got shape {tuple(weight.shape)}"
        )
    checks.choice("to", to, checks.LAYOUTS)
    order = interleaved_to_half if to == "half" else half_to_interleaved
    rows = order(head_dim, rotary_dim).to(weight.device)
    return weight.unflatten(0, (n_heads, head_dim))[:, rows].flatten(0, 1)


# --- Checks of arguments --------------------------------------------------------------------------------------------


def _check_even(x: Tensor) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"x must be a tensor, got {type(x).__name__}")
    if x.ndim == 0 or x.shape[-1] < 2 or x.shape[-1] % 2:
        raise ValueError(
            f"x must have an even last axis >= 2, got shape {tuple(x.shape)}"
        )


def check_positions(positions: Tensor) -> None:
    """``TypeError`` unless ``positions`` is a tensor of integers, float32 or float64; ``ValueError`` for one beyond ±2^31
    or NaN. Values on an accelerator are not read, for that would wait for it, nor those in a graph that is compiled.
    """
    if not isinstance(positions, Tensor):
        raise TypeError(
            f"positions must be a tensor, got {type(positions).__name__}"
        )
    if positions.dtype not in (*_INTEGERS, *_WIDE):
        raise TypeError(
            f"positions must be integers, float32 or float64, got dtype {positions.dtype}"
        )
    if checks.readable(positions):
        largest = sinusoidal.LARGEST_POSITION
        wide = positions if positions.is_floating_point() else positions.long()
        checks.entries("positions", wide, -largest, largest)


def _rotary_dim(dim: int, rotary_dim: int | None) -> int:
    if rotary_dim is None:
        return dim
    if checks.even("rotary_dim", rotary_dim) > dim:
        raise ValueError(
            f"rotary_dim must be at most dim = {dim}, got {rotary_dim}"
        )
    return rotary_dim


def _fit(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    layout: str = "interleaved",
    partial: bool = False,
) -> tuple[Tensor, Tensor]:
    """cos and sin, checked against x (…, T, d), with an axis for the heads of x (B, H, T, d) if they are (B, T, d/2)."""
    checks.layout(layout)
    checks.floating("x", x)
    _check_even(x)
    for name, table in (("cos", cos), ("sin", sin)):
        if checks.floating(name, table).dtype not in _WIDE:
            raise TypeError(f"{name} must be float32 or float64, got {table.dtype}")
    if cos.shape != sin.shape or cos.dtype != sin.dtype:
        raise ValueError(
            f"cos and sin must be alike, got {cos.dtype} {tuple(cos.shape)} and {sin.dtype} {tuple(sin.shape)}"
        )
    pairs = x.shape[-1] // 2
    tokens = x.shape[-2] if x.ndim > 1 else None
    rows = [(tokens,)]
    if x.ndim in (3, 4):
        rows += [(1, tokens), (x.shape[0], tokens)]
    if cos.shape[:-1] not in rows or not (
        cos.shape[-1] == pairs or (partial and 0 < cos.shape[-1] < pairs)
    ):
        raise ValueError(
            "cos and sin must have shape (T, d/2) or (B, T, d/2) for x (..., T, d), "
            f"got {tuple(cos.shape)} for {tuple(x.shape)}"
        )
    if cos.ndim == 3 and x.ndim == 4:
        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return cos, sin


def _product(equation: str, left: Tensor, right: Tensor) -> Tensor:
    """einsum in the wider type of the two, whatever autocast wants, cast to the type of ``right``."""
    wide = torch.result_type(left, right)
    with torch.autocast(right.device.type, enabled=False):
        return torch.einsum(equation, left.to(wide), right.to(wide)).to(right.dtype)
