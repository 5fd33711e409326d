"""Rotate q and k in a single launch: a fused kernel written in Triton.

A rotation moves many bytes for few operations, so the kernel is designed to read as little as possible. Each program
takes a few tokens, loads their cosines and sines once, and keeps them in registers. It then goes through the heads of q
and k. If there are enough tokens to occupy the whole device, one program handles all heads of its tokens; otherwise the
heads are divided among several programs. Both numbers of a pair are handled by the same thread; interleaved rows are
loaded whole and then split. The arithmetic is float32 for all types except float64, and only the stored result is cast
back. The backward pass uses the same kernel with −sin, because it rotates by −mθ.

The kernel runs on CUDA. On a machine without CUDA, Triton can interpret it slowly with NumPy; set
``TRITON_INTERPRET=1`` before Triton is imported. Triton is optional. You can import this module without it, and
`available` says whether the kernel can run.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ropebook import checks, memory

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None

DATA_TYPES = (torch.bfloat16, torch.float16, torch.float32, torch.float64)

# How many numbers of one tensor a program keeps at a time. With four warps this is 16 per thread, or two loads of 16
# bytes in bf16.
TILE = 2048

# How many programs keep a large GPU busy. Such a GPU has about 130 multiprocessors, each of which runs 16 programs of
# four warps.
PROGRAMS = 2048


# --- The kernel -----------------------------------------------------------------------------------------------------


def _jit(function: Callable) -> Callable:
    """Apply `triton.jit` if Triton is installed. The original function remains accessible, so that its source can be
    shown."""
    if triton is None:
        return function
    kernel = triton.jit(function)
    kernel.__wrapped__ = function
    return kernel


@_jit
def rotary_kernel(
    q,
    k,
    q_out,
    k_out,
    cos,
    sin,
    q_strides,
    k_strides,
    q_out_strides,
    k_out_strides,
    cos_strides,
    sin_strides,
    tokens,
    INTERLEAVED: tl.constexpr,
    INVERSE: tl.constexpr,
    WIDE: tl.constexpr,
    PAIRS: tl.constexpr,
    PASSED: tl.constexpr,
    Q_HEADS: tl.constexpr,
    K_HEADS: tl.constexpr,
    STRIDE: tl.constexpr,
    BLOCK_HEADS: tl.constexpr,
    BLOCK_TOKENS: tl.constexpr,
    BLOCK_PAIRS: tl.constexpr,
    BLOCK_PASSED: tl.constexpr,
):
    """Rotate BLOCK_TOKENS tokens of one sequence, in BLOCK_HEADS of every STRIDE heads of q and k. Addresses are
    int64."""
    blocks = tl.cdiv(tokens, BLOCK_TOKENS)
    batch = (tl.program_id(0) // blocks).to(tl.int64)
    token = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK_TOKENS
    token += tl.arange(0, BLOCK_TOKENS)
    pair = tl.arange(0, BLOCK_PAIRS)[None, :]
    known = (token < tokens)[:, None] & (pair < PAIRS)
    cos += batch * cos_strides[0] + token[:, None] * cos_strides[1]
    sin += batch * sin_strides[0] + token[:, None] * sin_strides[1]
    c = tl.load(cos + pair * cos_strides[2], mask=known, other=0).to(WIDE)
    s = tl.load(sin + pair * sin_strides[2], mask=known, other=0).to(WIDE)
    if INVERSE:
        s = -s
    rotate_heads(
        q + batch * q_strides[0], q_out + batch * q_out_strides[0],
        q_strides, q_out_strides, token, tokens, c[None, :, :], s[None, :, :],
        INTERLEAVED, PAIRS, PASSED, Q_HEADS, STRIDE, BLOCK_HEADS, BLOCK_TOKENS, BLOCK_PAIRS, BLOCK_PASSED,
    )  # fmt: skip
    rotate_heads(
        k + batch * k_strides[0], k_out + batch * k_out_strides[0],
        k_strides, k_out_strides, token, tokens, c[None, :, :], s[None, :, :],
        INTERLEAVED, PAIRS, PASSED, K_HEADS, STRIDE, BLOCK_HEADS, BLOCK_TOKENS, BLOCK_PAIRS, BLOCK_PASSED,
    )  # fmt: skip


@_jit
def rotate_heads(
    x,
    out,
    strides,
    out_strides,
    token,
    tokens,
    c,
    s,
    INTERLEAVED: tl.constexpr,
    PAIRS: tl.constexpr,
    PASSED: tl.constexpr,
    HEADS: tl.constexpr,
    STRIDE: tl.constexpr,
    BLOCK_HEADS: tl.constexpr,
    BLOCK_TOKENS: tl.constexpr,
    BLOCK_PAIRS: tl.constexpr,
    BLOCK_PASSED: tl.constexpr,
):
    """Process this program's heads of x at the tokens ``token``. In each head, rotate 2·PAIRS entries, and copy PASSED
    further entries."""
    first_head = tl.program_id(1).to(tl.int64) * BLOCK_HEADS
    # The bounds are constants because Triton 3.6 cannot interpret a loop whose bound is an argument when NumPy is 2.4
    # or newer.
    for start in range(0, HEADS, STRIDE):  # pragma: no branch
        head = start + first_head + tl.arange(0, BLOCK_HEADS)[:, None, None]
        there = (head < HEADS) & (token < tokens)[None, :, None]
        row = head * strides[1] + token[None, :, None] * strides[2]
        out_row = head * out_strides[1] + token[None, :, None] * out_strides[2]
        if INTERLEAVED:
            column = tl.arange(0, 2 * BLOCK_PAIRS)[None, None, :]
            inside = there & (column < 2 * PAIRS)
            pairs = tl.load(x + row + column * strides[3], mask=inside, other=0)
            shape: tl.constexpr = (BLOCK_HEADS, BLOCK_TOKENS, BLOCK_PAIRS, 2)
            first, second = tl.split(tl.reshape(pairs, shape))
            turned = tl.interleave(first * c - second * s, first * s + second * c)
            tl.store(out + out_row + column * out_strides[3], turned, mask=inside)
        else:
            pair = tl.arange(0, BLOCK_PAIRS)[None, None, :]
            inside = there & (pair < PAIRS)
            first = tl.load(x + row + pair * strides[3], mask=inside, other=0)
            other = pair + PAIRS
            second = tl.load(x + row + other * strides[3], mask=inside, other=0)
            out_first = out + out_row + pair * out_strides[3]
            out_second = out + out_row + other * out_strides[3]
            tl.store(out_first, first * c - second * s, mask=inside)
            tl.store(out_second, first * s + second * c, mask=inside)
        if PASSED:
            rest = tl.arange(0, BLOCK_PASSED)[None, None, :]
            inside = there & (rest < PASSED)
            rest += 2 * PAIRS
            passed = tl.load(x + row + rest * strides[3], mask=inside, other=0)
            tl.store(out + out_row + rest * out_strides[3], passed, mask=inside)


# This is fixed when Triton is imported.
INTERPRETED = triton is not None and not isinstance(
    rotary_kernel, triton.JITFunction
)


# --- The launch -----------------------------------------------------------------------------------------------------


def _launch(
    xs: tuple[Tensor, ...],
    outs: tuple[Tensor, ...],
    cos: Tensor,
    sin: Tensor,
    layout: str,
    inverse: bool,
) -> None:
    """Rotate one or two tensors and write the results to ``outs``, which may be the same tensors."""
    if not any(x.numel() for x in xs):
        return
    q, q_out, k, k_out = xs[0], outs[0], xs[-1], outs[-1]
    q_heads, k_heads = q.shape[1], k.shape[1] if len(xs) == 2 else 0
    batch, _, tokens, dim = q.shape
    pairs = cos.shape[-1]
    cos, sin = cos.expand(batch, tokens, pairs), sin.expand(batch, tokens, pairs)
    # If the results overwrite the inputs, there is no need to copy the entries that are not rotated.
    passed = 0 if outs is xs else dim - 2 * pairs
    block_pairs = triton.next_power_of_2(pairs)
    # The tile grows first along heads or along tokens, depending on which are closer together in memory.
    rows = max(1, TILE // (2 * block_pairs))
    many_heads, many_tokens = map(
        triton.next_power_of_2, (max(q_heads, k_heads), tokens)
    )
    if q.stride(1) < q.stride(2):
        block_heads = min(many_heads, rows)
        block_tokens = min(many_tokens, rows // block_heads)
    else:
        block_tokens = min(many_tokens, rows)
        block_heads = min(many_heads, rows // block_tokens)
    # Each program loads the cosines and sines of its tokens, so they are loaded only once if one program handles all
    # heads.
    blocks = batch * triton.cdiv(tokens, block_tokens)
    shares = min(
        triton.next_power_of_2(triton.cdiv(PROGRAMS, blocks)),
        many_heads // block_heads,
    )
    grid = (blocks, shares)
    # Triton launches on the current device, which may not be the device of the tensors.
    with torch.cuda.device_of(q):
        rotary_kernel[grid](
            q, k, q_out, k_out, cos, sin,
            q.stride(), k.stride(), q_out.stride(), k_out.stride(), cos.stride(), sin.stride(),
            tokens,
            INTERLEAVED=layout == "interleaved",
            INVERSE=inverse,
            WIDE=tl.float64 if q.dtype == torch.float64 else tl.float32,
            PAIRS=pairs,
            PASSED=passed,
            Q_HEADS=q_heads,
            K_HEADS=k_heads,
            STRIDE=shares * block_heads,
            BLOCK_HEADS=block_heads,
            BLOCK_TOKENS=block_tokens,
            BLOCK_PAIRS=block_pairs,
            BLOCK_PASSED=triton.next_power_of_2(passed),
        )  # fmt: skip


class _Rotation(torch.autograd.Function):
    """The rotation of one or two tensors as an autograd function. Its backward pass rotates the gradients by the
    opposite angles.

    It saves cos and sin, but never q and k. Gradients are never rotated in-place, because they may be used elsewhere
    too.
    """

    @staticmethod
    def forward(ctx, cos, sin, layout, in_place, inverse, *xs):
        ctx.save_for_backward(cos, sin)
        ctx.layout, ctx.inverse = layout, inverse
        if in_place:
            ctx.mark_dirty(*xs)
        outs = xs if in_place else tuple(map(torch.empty_like, xs))
        _launch(xs, outs, cos, sin, layout, inverse)
        return outs

    @staticmethod
    def backward(ctx, *gradients):
        turned = _Rotation.apply(
            *ctx.saved_tensors, ctx.layout, False, not ctx.inverse, *gradients
        )
        return None, None, None, None, None, *turned


def rotary(
    q: Tensor,
    k: Tensor | None,
    cos: Tensor,
    sin: Tensor,
    *,
    layout: str = "interleaved",
    in_place: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Rotate q and k by the angles of cos and sin in one launch. Returns (q′, k′) with the same shapes and types as q
    and k.

    Args:
        q: (batch, heads, tokens, head_dim), bfloat16, float16, float32 or float64, with any strides.
        k: like q, but it may have another number of heads. With None, only q is rotated.
        cos, sin: (tokens, rotary_dim/2), or (batch, tokens, rotary_dim/2), float32 or float64, rotary_dim <= head_dim.
            They receive no gradient.
        layout: "interleaved" rotates the pairs (2i, 2i+1); "half" rotates the pairs (i, i + rotary_dim/2).
        in_place: write the results into q and k themselves and return them. Nothing is allocated.

    Entries beyond rotary_dim are left unchanged. The arithmetic is float32 (float64 for float64 data), and only the
    result is cast back. q and k receive gradients, which are rotated by the opposite angles. Higher derivatives work
    too.

    Raises:
        RuntimeError: Triton is not installed, or q is on a device that it cannot run on.
        TypeError, ValueError: an argument has the wrong type, shape, device or layout.

    >>> q, k = torch.tensor([[[[1.0, 2.0]]]]), torch.tensor([[[[3.0, 4.0]]]])
    >>> cos, sin = torch.tensor([[0.0]]), torch.tensor([[1.0]])  # a quarter of a turn
    >>> [x.tolist() for x in rotary(q, k, cos, sin)]
    [[[[[-2.0, 1.0]]]], [[[[-4.0, 3.0]]]]]

    Source: the rotation is eq. 34 of Su et al., "RoFormer" (2021); the pairs of the "half" layout are those of
    GPT-NeoX.
    """
    checks.layout(layout)
    if not isinstance(in_place, bool):
        raise TypeError(f"in_place must be True or False, got {in_place!r}")
    named = {"q": q} if k is None else {"q": q, "k": k}
    _check_data(named)
    _check_angles(q, cos, sin)
    if in_place:
        _check_writable(named)
    reason = _why_not(q.device)
    if reason is not None:
        raise RuntimeError(reason)
    xs = tuple(named.values())
    # If a function modifies a view, autograd allows it only one output, so in that case q and k are launched
    # separately.
    if (
        in_place
        and any(x.requires_grad for x in xs)
        and any(x._is_view() for x in xs)
    ):
        turned = [_Rotation.apply(cos, sin, layout, True, False, x)[0] for x in xs]
    else:
        turned = _Rotation.apply(cos, sin, layout, in_place, False, *xs)
    return turned[0], None if k is None else turned[1]


def available(device: torch.device | str | None = None) -> bool:
    """Return whether `rotary` runs on tensors of ``device``. None means CUDA if it is available, and the CPU otherwise.

    On CUDA, this requires Triton; elsewhere, it requires Triton's interpreter.

    >>> available("meta")
    False
    """
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return _why_not(torch.device(device)) is None


def _why_not(device: torch.device) -> str | None:
    if triton is None:
        return 'the Triton kernel (backend "triton") needs Triton, which is not installed (pip install "ropebook[gpu]")'
    if device.type == "cuda" or (device.type == "cpu" and INTERPRETED):
        return None
    return (
        f"the Triton kernel (backend 'triton') runs on CUDA, got tensors on {device}; on the CPU it can be "
        "interpreted, if TRITON_INTERPRET=1 is set before Triton is imported"
    )


# --- Checks of arguments ---------------------------------------------------------------------------------------------


def _check_data(named: dict[str, Tensor]) -> None:
    q = named["q"]
    for name, x in named.items():
        checks.floating(name, x)
        if x.dtype not in DATA_TYPES:
            raise TypeError(
                f"{name} must be bfloat16, float16, float32 or float64, got dtype {x.dtype}"
            )
        if x.ndim != 4:
            raise ValueError(
                f"{name} must have shape (batch, heads, tokens, head_dim), got {tuple(x.shape)}"
            )
        if x.shape[0] != q.shape[0] or x.shape[2:] != q.shape[2:]:
            raise ValueError(
                "q and k may differ only in their number of heads, got shapes "
                f"{tuple(q.shape)} and {tuple(x.shape)}"
            )
        if (x.dtype, x.device) != (q.dtype, q.device):
            raise ValueError(
                f"q and k must share dtype and device, got {q.dtype} on {q.device} "
                f"and {x.dtype} on {x.device}"
            )


def _check_angles(q: Tensor, cos: Tensor, sin: Tensor) -> None:
    batch, _, tokens, dim = q.shape
    for name, table in {"cos": cos, "sin": sin}.items():
        checks.floating(name, table)
        if table.dtype not in (torch.float32, torch.float64):
            raise TypeError(
                f"{name} must be float32 or float64, got dtype {table.dtype}"
            )
        if table.requires_grad:
            raise ValueError(
                f"{name} must not require a gradient: the kernel gives it none"
            )
        if table.device != q.device:
            raise ValueError(
                f"{name} must be on q's device {q.device}, got {table.device}"
            )
        if (
            table.shape != cos.shape
            or table.shape[:-1] not in ((tokens,), (1, tokens), (batch, tokens))
            or not 2 <= 2 * table.shape[-1] <= dim
        ):
            raise ValueError(
                "cos and sin must both have shape (tokens, rotary_dim/2) or (batch, tokens, rotary_dim/2) with "
                f"2 <= rotary_dim <= {dim}, batch = {batch}, tokens = {tokens}; got {tuple(cos.shape)} "
                f"and {tuple(sin.shape)}"
            )


def _check_writable(named: dict[str, Tensor]) -> None:
    for name, x in named.items():
        owner = x if x._base is None else x._base
        if owner.is_leaf and owner.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{name} must not be a leaf that requires a gradient, or a view of one, to be rotated in place"
            )
        memory.check_writable(name, x)
    if len(named) == 2:
        memory.check_apart(*named.values())
