"""Split a model's width into heads, and let several query heads share keys and values.

Sources: Shazeer 2019, *Fast Transformer Decoding* (one key head for all), and Ainslie et al. 2023, *GQA* (groups).
"""

from __future__ import annotations

from torch import Tensor

from ropebook import checks


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """Reshape (…, seq, n_heads · head_dim) to (…, n_heads, seq, head_dim).

    Head h gets the h-th block of ``head_dim`` consecutive features.

    >>> import torch
    >>> split_heads(torch.zeros(5, 7, 12), 3).shape
    torch.Size([5, 3, 7, 4])
    """
    checks.floating("x", x)
    checks.integer("n_heads", n_heads, minimum=1)
    if x.dim() < 2 or x.shape[-1] % n_heads:
        raise ValueError(
            f"x must be (…, seq, n_heads · head_dim) with n_heads = {n_heads}, got {tuple(x.shape)}"
        )
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """Reshape (…, n_heads, seq, head_dim) to (…, seq, n_heads · head_dim), the inverse of :func:`split_heads`.

    >>> import torch
    >>> merge_heads(torch.zeros(5, 3, 7, 4)).shape
    torch.Size([5, 7, 12])
    """
    checks.floating("x", x)
    if x.dim() < 3:
        raise ValueError(
            f"x must be (…, n_heads, seq, head_dim), got {tuple(x.shape)}"
        )
    return x.transpose(-3, -2).flatten(-2)


def repeat_heads(x: Tensor, n_heads: int) -> Tensor:
    """Repeat key or value heads so that each of the ``n_heads`` query heads has its own.

    Maps (…, Hkv, seq, d) to (…, n_heads, seq, d). Each head appears n_heads / Hkv times in a row, once for every query
    head that shares it.

    >>> import torch
    >>> repeat_heads(torch.tensor([[[1.0]], [[2.0]]]), 6).flatten()
    tensor([1., 1., 1., 2., 2., 2.])
    """
    checks.floating("x", x)
    checks.integer("n_heads", n_heads, minimum=1)
    if x.dim() < 3:
        raise ValueError(
            f"x must be (…, heads, seq, head_dim), got {tuple(x.shape)}"
        )
    if x.shape[-3] == 0 or n_heads % x.shape[-3]:
        raise ValueError(
            f"n_heads must be a multiple of x's number of heads, {x.shape[-3]}, got {n_heads}"
        )
    return x.repeat_interleave(n_heads // x.shape[-3], dim=-3)


def check_heads(n_heads: int, n_kv_heads: int | None) -> tuple[int, int]:
    """Check and return the numbers of query heads and of key/value heads. ``n_kv_heads`` must divide ``n_heads``.

    If it is None, it is the same as ``n_heads``.

    >>> check_heads(8, None)
    (8, 8)
    """
    n_heads = checks.integer("n_heads", n_heads, minimum=1)
    n_kv_heads = (
        n_heads
        if n_kv_heads is None
        else checks.integer("n_kv_heads", n_kv_heads, minimum=1)
    )
    if n_heads % n_kv_heads:
        raise ValueError(
            f"n_kv_heads must divide n_heads = {n_heads}, got {n_kv_heads}"
        )
    return n_heads, n_kv_heads
