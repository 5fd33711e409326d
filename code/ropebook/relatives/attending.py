"""Attention with any scheme, implemented in three ways: in plain code, with torch's fused function, and with
FlexAttention.

All three give the same result, but they need different amounts of memory (see `ropebook.relatives.cost`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from ropebook import checks
from ropebook.attention import causal_mask
from ropebook.relatives.curves import Fire
from ropebook.relatives.scheme import Bias, Scheme, fit
from ropebook.shapes import Float

Vectors = Float[Tensor, "batch heads seq dim"]
Values = Float[Tensor, "batch heads seq width"]


def attend(
    scheme: Scheme, q: Vectors, k: Vectors, v: Values, *, causal: bool = False
) -> Values:
    """Compute attention for a text at positions 0 … T − 1, in plain code.

    Raises ``TypeError`` or ``ValueError`` if q, k, v and the scheme do not fit together. `attend_fused` and
    `attend_flex` raise the same errors.
    """
    places = _places(scheme, q, k, v)
    scores = scheme.score(q, k, places, places)
    if causal:
        seen = causal_mask(q.shape[-2], device=q.device)
        scores = scores.masked_fill(~seen, -math.inf)
    return scores.softmax(-1) @ v


def attend_fused(
    scheme: Scheme, q: Vectors, k: Vectors, v: Values, *, causal: bool = False
) -> Values:
    """Compute the same as `attend`, using ``torch.nn.functional.scaled_dot_product_attention``, which receives the bias
    as a mask."""
    places = _places(scheme, q, k, v)
    q, k, added = scheme.parts(q, k, places, places)
    if added is None:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    added = added.to(q)
    if causal:
        seen = causal_mask(q.shape[-2], device=q.device)
        added = added.masked_fill(~seen, -math.inf)
    # The bias is the same for every text in the batch.
    added = added.expand(*q.shape[:-1], k.shape[-2])
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=added)


def attend_flex(
    scheme: Scheme,
    q: Vectors,
    k: Vectors,
    v: Values,
    *,
    causal: bool = False,
    flex: Callable | None = None,
) -> Values:
    """Compute the same as `attend`, using FlexAttention. The scheme must add nothing, or a bias that depends only on
    the distance and the head.

    The bias of each distance and head is looked up when a score is computed, so the table has (heads, 2T − 1) numbers
    instead of (heads, T, T). ``flex`` is ``flex_attention`` itself, or a compiled version of it. Raises ``TypeError``
    for any other scheme.
    """
    from torch.nn.attention.flex_attention import (
        create_block_mask,
        flex_attention,
    )

    q, k, row = _parts_by_row(scheme, q, k, _places(scheme, q, k, v))
    mask, length = None, q.shape[-2]
    if causal:
        mask = create_block_mask(
            lambda b, h, m, n: m >= n, None, None, length, length, q.device
        )

    def looked_up(score, b, h, m, n):
        return score + row[h, m - n + length - 1]

    return (flex or flex_attention)(
        q, k, v, score_mod=None if row is None else looked_up, block_mask=mask
    )


def _places(scheme: Scheme, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Check the scheme, and that q, k and v fit together. Returns the positions 0 … T − 1."""
    if not isinstance(scheme, Scheme):
        raise TypeError(
            f"scheme must be a Scheme of ropebook.relatives, such as Rope(64), got {scheme!r}"
        )
    if checks.floating("q", q).ndim < 3:
        raise ValueError(f"q must be (…, heads, seq, dim), got {tuple(q.shape)}")
    for name, x in (("k", k), ("v", v)):
        checks.floating(name, x)
        found, wanted = ((t.dtype, str(t.device)) for t in (x, q))
        if found != wanted:
            raise TypeError(f"{name} must fit q, {wanted}, got {found}")
    places, _ = fit(q, k, *[torch.arange(q.shape[-2], device=q.device)] * 2)
    if v.shape[:-1] != k.shape[:-1]:
        raise ValueError(
            f"v must have k's shape except for its width; k's is {tuple(k.shape)}, got {tuple(v.shape)}"
        )
    return places


def _parts_by_row(
    scheme: Scheme, q: Tensor, k: Tensor, places: Tensor
) -> tuple[Tensor, Tensor, Tensor | None]:
    if isinstance(scheme, Bias):
        row = by_distance(scheme, len(places)).to(q)
        if len(row) != q.shape[-3]:
            raise ValueError(
                f"q must have {len(row)} heads, as the scheme has, got {q.shape[-3]}"
            )
        return q, k, row
    q, k, added = scheme.parts(q, k, places, places)
    if added is not None:
        raise TypeError(
            f"scheme must add nothing, or a bias of the distance, got {type(scheme).__name__}, "
            "whose scores depend on the content"
        )
    return q, k, None


def by_distance(scheme: Bias, length: int) -> Float[Tensor, "heads both"]:
    """Return the bias at the distances −(T − 1) … T − 1. Raises ``TypeError`` for `Fire`, whose bias does not depend on
    the distance alone."""
    if isinstance(scheme, Fire):
        raise TypeError(
            "scheme must be a bias of the distance alone, got Fire, which looks at the query's place"
        )
    return scheme.bias(torch.arange(1 - length, length), [0])[..., 0]
