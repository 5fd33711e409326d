"""Scaled dot-product attention: a softmax turns scores into weights, and the output is a weighted mean of values.

For half-precision types (float16, bfloat16) the arithmetic is done in float32, and only the result is cast back.

Source: Vaswani et al. 2017, *Attention Is All You Need*, equation (1).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention.heads import repeat_heads
from ropebook.attention.masks import whole_mask

HALF_TYPES = (torch.float16, torch.bfloat16)


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """Compute softmax(q kᵀ · scale + mask) v: for each query, a mean of the values, weighted by how well keys match it.

    Shapes: ``q`` (…, Hq, Tq, d), ``k`` (…, Hkv, Tk, d), ``v`` (…, Hkv, Tk, dv); the result is (…, Hq, Tq, dv). Without
    heads, the shapes are (Tq, d), (Tk, d) and (Tk, dv). ``Hq`` is a multiple of ``Hkv``: query head h reads key head h
    // (Hq / Hkv), so Hkv = 1 is multi-query attention and 1 < Hkv < Hq is grouped-query attention.

    ``mask``, ``is_causal`` and ``scale`` mean the same as in :func:`attention_weights`. With ``return_weights`` the
    result is the tuple (output, weights). The output has ``q``'s dtype. It is zero for a query that may not attend to
    any key.

    >>> q = torch.tensor([[1.0, 0.0]])
    >>> k = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> v = torch.tensor([[10.0], [20.0]])
    >>> scaled_dot_product_attention(q, k, v, scale=0.0)  # no key is preferred: the plain mean
    tensor([[15.]])
    """
    _check_values(q, k, v)
    weights = attention_weights(q, k, mask, is_causal=is_causal, scale=scale)
    if q.dim() > 2:
        v = repeat_heads(v, q.shape[-3])
    out = (weights @ v.to(weights.dtype)).to(q.dtype)
    return (out, weights) if return_weights else out


def attention_weights(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    r"""Compute softmax(q kᵀ · scale + mask), the weight that each query gives to each key: (…, Hq, Tq, Tk).

    The weights in a row are non-negative and sum to 1. If the query may not attend to any key, they are all zero
    instead. (The formula on its own would divide zero by zero and give NaN.) The weights have ``q``'s dtype, or float32
    if that is a half-precision type.

    ``mask`` is broadcast to (…, Hq, Tq, Tk). Boolean: True = may attend. Floating point: added to the scores after
    scaling, −inf = may not attend. ``is_causal`` applies :func:`causal_mask` as well. ``scale`` defaults to 1/√d.

    >>> x = torch.eye(2)
    >>> attention_weights(x, x, is_causal=True, scale=math.log(3))
    tensor([[1.0000, 0.0000],
            [0.2500, 0.7500]])
    """
    _check_queries_and_keys(q, k)
    scale = (
        1 / math.sqrt(q.shape[-1])
        if scale is None
        else checks.number("scale", scale)
    )
    if q.dim() > 2:
        k = repeat_heads(k, q.shape[-3])
    dtype = torch.float32 if q.dtype in HALF_TYPES else q.dtype
    scores = q.to(dtype) @ k.to(dtype).transpose(-2, -1) * scale
    mask = whole_mask(mask, is_causal, scores.shape, scores.device)
    if mask is None:
        return scores.softmax(-1)
    scores = (
        scores.masked_fill(~mask, -math.inf)
        if mask.dtype == torch.bool
        else scores + mask.to(dtype)
    )
    # The softmax of a row of −inf is 0/0. We give such a row harmless scores before the softmax, and replace its
    # weights with zeros afterwards. The zeros alone would not be enough, because the gradient would still contain NaN.
    closed = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(closed, 0.0).softmax(-1).masked_fill(closed, 0.0)


def _check_queries_and_keys(q: Tensor, k: Tensor) -> None:
    checks.floating("q", q)
    _check_like("k", checks.floating("k", k), q=q)
    if q.dim() < 2 or q.shape[-1] == 0:
        raise ValueError(
            f"q must be (…, heads, seq, head_dim) or (seq, head_dim), got {tuple(q.shape)}"
        )
    if (
        k.dim() != q.dim()
        or k.shape[-1] != q.shape[-1]
        or k.shape[:-3] != q.shape[:-3]
    ):
        raise ValueError(
            f"k must have q's shape except for heads and length; q's is {tuple(q.shape)}, got {tuple(k.shape)}"
        )
    if q.dim() > 2 and (k.shape[-3] == 0 or q.shape[-3] % k.shape[-3]):
        raise ValueError(
            f"k must have a number of heads that divides q's, {q.shape[-3]}, got {k.shape[-3]}"
        )


def _check_values(q: Tensor, k: Tensor, v: Tensor) -> None:
    _check_queries_and_keys(q, k)
    _check_like("v", checks.floating("v", v), q=q)
    if v.shape[:-1] != k.shape[:-1]:
        raise ValueError(
            f"v must have k's shape except for the last axis, {tuple(k.shape)}, got {tuple(v.shape)}"
        )


def _check_like(name: str, x: Tensor, q: Tensor) -> None:
    if x.dtype != q.dtype:
        raise TypeError(f"{name} must have q's dtype, {q.dtype}, got {x.dtype}")
    if x.device != q.device:
        raise ValueError(
            f"{name} must be on q's device, {q.device}, got {x.device}"
        )
