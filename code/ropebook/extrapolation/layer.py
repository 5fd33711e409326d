"""An attention layer that uses a method. The method may change the rotation, the distances, or the length of the
queries."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention import (
    MultiHeadAttention,
    merge_heads,
    repeat_heads,
    scaled_dot_product_attention,
    whole_mask,
)
from ropebook.efficient import apply_rotary
from ropebook.extrapolation.registry import make
from ropebook.rope import wide
from ropebook.rotary_attention import KVCache, RotaryAttention
from ropebook.shapes import Float, Real, Shaped


class ExtendedAttention(RotaryAttention):
    """`RotaryAttention` with a method from `METHODS`, given by its name and options.

    ``keep`` says whether a cache keeps "rotated" or "unrotated" keys. Rotated keys are cheaper, but they are wrong for
    methods that change distances. For methods that depend on the current length, they become wrong as soon as the
    frequencies change. Unrotated keys are rotated again for every query, with the current frequencies, so decoding
    gives the same result as a single pass for every method. The default is "rotated" for methods that are
    ``cache_safe`` in `METHODS`, otherwise "unrotated". The other arguments are those of `RotaryAttention`.

    >>> method = {"method": "self_extend", "options": {"window": 4, "group": 2}}
    >>> ExtendedAttention(dim=16, n_heads=2, layout="half", **method)(torch.zeros(1, 9, 16)).shape
    torch.Size([1, 9, 16])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        *,
        method: str,
        options: Mapping[str, object],
        keep: str | None = None,
        head_dim: int | None = None,
        **rest,
    ):
        built = make(method, **options)
        ways = ("unrotated",) if built.distances else ("rotated", "unrotated")
        if keep is None:
            keep = "rotated" if built.facts.cache_safe else "unrotated"
        checks.choice("keep", keep, ways)
        width = checks.integer("dim", dim, minimum=1)
        width //= checks.integer("n_heads", n_heads, minimum=1)
        rotary = built.rotary(head_dim or width)
        super().__init__(
            dim, n_heads, n_kv_heads, head_dim=head_dim, **rotary, **rest
        )
        self.method = built
        self.keep = keep

    @classmethod
    def of(
        cls,
        layer: RotaryAttention,
        *,
        method: str,
        options: Mapping[str, object],
        keep: str | None = None,
    ) -> ExtendedAttention:
        """Make a layer that uses the method and shares the projections, base, layout and rotary_dim of ``layer``.

        If ``layer.rotary`` has a ``scaling``, the new layer does not use it, because two methods cannot be combined.

        >>> layer = RotaryAttention(dim=16, n_heads=2, layout="half")
        >>> longer = ExtendedAttention.of(layer, method="rerope", options={"window": 4})
        >>> longer.q_proj is layer.q_proj
        True
        """
        rotary = layer.rotary
        rest = {} if method == "partial" else {"rotary_dim": rotary.rotary_dim}
        extended = cls(
            layer.dim,
            layer.n_heads,
            layer.n_kv_heads,
            head_dim=layer.head_dim,
            method=method,
            options=options,
            keep=keep,
            base=rotary.base,
            layout=rotary.layout,
            backend=rotary.backend,
            device="meta",  # the projections belong to the other layer
            **rest,
        )
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(extended, name, getattr(layer, name))
        extended.rotary.to(rotary.inv_freq.device)
        return extended.train(layer.training)

    @property
    def follows_length(self) -> bool:
        """Always False, so that a cache is accepted.

        A cache of rotated keys is used only if it is safe or was explicitly requested.
        """
        return False

    def project(
        self,
        x: Float[Tensor, "batch seq dim"],
        positions: Real[Tensor, "... seq"] | None = None,
        offset: int = 0,
    ) -> tuple[
        Float[Tensor, "batch heads seq head_dim"],
        Float[Tensor, "batch kv_heads seq head_dim"],
        Float[Tensor, "batch kv_heads seq head_dim"],
    ]:
        """Return queries, keys and values, (batch, heads, seq, head_dim). Queries and keys are rotated, unless ``keep``
        is "unrotated"."""
        if self.keep == "rotated":
            q, k, v = super().project(x, positions, offset)
        else:
            q, k, v = MultiHeadAttention.project(self, x)
        query_scale = self.method.query_scale
        if query_scale is not None:
            if positions is None:
                positions = torch.arange(offset, offset + q.shape[-2])
            scale = query_scale(positions.to(q.device))
            q = q * scale[..., None, :, None].to(q.dtype)
        return q, k, v

    def forward(
        self,
        x: Float[Tensor, "batch seq dim"],
        positions: Real[Tensor, "... seq"] | None = None,
        mask: Shaped[Tensor, " ..."] | None = None,
        *,
        is_causal: bool = True,
        cache: KVCache | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Do the same as `RotaryAttention.forward`. With unrotated keys, ``positions`` and ``cache`` cannot be
        combined."""
        if self.keep == "rotated":
            return super().forward(
                x,
                positions,
                mask,
                is_causal=is_causal,
                cache=cache,
                return_weights=return_weights,
            )
        if checks.floating("x", x).dim() != 3 or x.shape[-1] != self.dim:
            raise ValueError(
                f"x must be (batch, seq, {self.dim}), got {tuple(x.shape)}"
            )
        if cache is not None and not isinstance(cache, KVCache):
            raise TypeError(
                f"cache must be a KVCache or None, got {type(cache).__name__}"
            )
        if positions is not None and cache is not None:
            raise ValueError(
                "positions must be None with a cache of unrotated keys, which does not keep theirs"
            )
        cached = 0 if cache is None else cache.length
        q, k, v = self.project(x, positions, offset=cached)
        if cache is not None:
            k, v = cache.append(k, v)
        length = None if positions is not None else k.shape[-2]
        if positions is None:
            positions = torch.arange(length, device=x.device)
        shape = (*q.shape[:-1], k.shape[-2])
        mask = whole_mask(mask, is_causal, shape, x.device)
        here = positions[..., positions.shape[-1] - q.shape[-2] :]
        seen = self._seen_otherwise(q, k, here, positions)
        if seen is not None:
            mask = _both(mask, seen)
        q, k = (
            self._rotate(x, at, length) for x, at in ((q, here), (k, positions))
        )
        if not return_weights and seen is None:
            return self.out_proj(merge_heads(self._fused(q, k, v, mask, False)))
        heads, weights = scaled_dot_product_attention(
            q, k, v, mask, return_weights=True
        )
        out = self.out_proj(merge_heads(heads))
        return (out, weights) if return_weights else out

    def _rotate(self, x: Tensor, positions: Tensor, length: int | None) -> Tensor:
        """Rotate x (batch, heads, seq, head_dim) by its positions, with the frequencies for a sequence of ``length``
        tokens."""
        cos, sin = self.rotary.cos_sin(positions, wide(x.dtype), length=length)
        return apply_rotary(x, cos, sin, layout=self.rotary.layout)

    def _seen_otherwise(
        self, q: Tensor, k: Tensor, here: Tensor, positions: Tensor
    ) -> Tensor | None:
        """Return the correction that must be added to the scores because the method changes distances.

        The correction is computed from unrotated q and k. Returns None if the method leaves distances unchanged.
        """
        rule = self.method.distances
        if rule is None:
            return None
        k = repeat_heads(k, self.n_heads)
        rotary = self.rotary
        given = q, k, here, positions, rotary.inv_freq
        correction = rule.correction(*given, layout=rotary.layout)
        return correction / math.sqrt(self.head_dim)


def _both(mask: Tensor | None, bias: Tensor) -> Tensor:
    """Combine a mask (boolean or additive) and a bias into one additive mask."""
    if mask is None:
        return bias
    if mask.dtype == torch.bool:
        return bias.masked_fill(~mask, -math.inf)
    return bias + mask
