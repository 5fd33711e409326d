"""Multi-head attention with rotated queries and keys, and a test of whether its output depends on absolute positions.

Sources: Su et al. 2021, *RoFormer*, section 3.2.2 and equation (34): queries and keys are rotated, values are not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention import (
    MultiHeadAttention,
    merge_heads,
    scaled_dot_product_attention,
    whole_mask,
)
from ropebook.efficient import RotaryEmbedding
from ropebook.rotary_attention.cache import KVCache


class RotaryAttention(MultiHeadAttention):
    """Self-attention in which every head rotates its queries and keys by their positions; values are not rotated.

    ``dim``: width of the model. ``n_heads``: number of query heads. ``n_kv_heads`` (default ``n_heads``): number of key
    and value heads, which must divide ``n_heads``. ``head_dim`` (default dim / n_heads): width of a head, even.
    ``bias``: whether the four projections have a bias. ``rotary``: options of
    :class:`ropebook.efficient.RotaryEmbedding`, such as ``base``, ``layout``, ``rotary_dim`` and ``scaling``; all heads
    share them, and the frequencies are computed for d = ``head_dim``.

    >>> layer = RotaryAttention(16, n_heads=4, n_kv_heads=2, base=500000.0, layout="half")
    >>> layer(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        *,
        head_dim: int | None = None,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **rotary,
    ):
        super().__init__(
            dim,
            n_heads,
            n_kv_heads,
            head_dim=head_dim,
            bias=bias,
            fused=True,
            device=device,
            dtype=dtype,
        )
        self.rotary = RotaryEmbedding(
            checks.even("head_dim", self.head_dim), **rotary
        )

    @property
    def follows_length(self) -> bool:
        """Whether the rotation changes as the text grows. If it does, rotated keys cannot be cached."""
        scaling = getattr(self.rotary, "scaling", None)
        return getattr(scaling, "follows_length", False)

    def project(
        self, x: Tensor, positions: Tensor | None = None, offset: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the rotated queries, the rotated keys and the values of ``x``: (batch, heads, seq, head_dim) each."""
        q, k, v = super().project(x)
        q, k = self.rotary(q, k, positions, offset=offset)
        return q, k, v

    def forward(
        self,
        x: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = True,
        cache: KVCache | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Map x (batch, seq, dim) to an output of the same shape, or with ``return_weights`` to the pair (output,
        weights).

        ``positions``: (seq,) or (batch, seq); by default the tokens follow those in ``cache``, or start at 0. ``mask``
        and ``is_causal``: as in `ropebook.attention.attention_weights`. The keys in the cache come first, followed by
        the new keys, so ``mask`` must broadcast to (batch, n_heads, seq, cached + seq), which is also the shape of the
        weights. "Causal" refers to the order of tokens in the row, even if their positions are in a different order.

        Raises ``ValueError`` for a ``cache`` if the frequencies depend on the length: see :class:`KVCache`.

        The output is computed by ``torch.nn.functional.scaled_dot_product_attention``, which never forms the weights.
        If you ask for the weights, the book's own function computes the output.
        """
        checks.floating("x", x)
        if x.dim() != 3 or x.shape[-1] != self.dim:
            raise ValueError(
                f"x must be (batch, seq, {self.dim}), got {tuple(x.shape)}"
            )
        if cache is not None and not isinstance(cache, KVCache):
            raise TypeError(
                f"cache must be a KVCache or None, got {type(cache).__name__}"
            )
        batch, seq_len, _ = x.shape
        cached = 0 if cache is None else cache.length
        if seq_len == 1:
            # one new token may attend to everything
            is_causal = False
        if mask is not None or cached:
            # torch's is_causal can't be combined with a mask, and it aligns the first query with the first key.
            shape = (batch, self.n_heads, seq_len, cached + seq_len)
            mask = whole_mask(mask, is_causal, shape, x.device)
            is_causal = False
        offset = cached if positions is None else 0
        # In ExtendedAttention, ``keep`` determines which keys are cached. It is "rotated" only if caching rotated keys
        # is safe or was explicitly requested.
        if cache is not None and getattr(self, "keep", None) != "rotated":
            scaling = getattr(self.rotary, "scaling", None)
            if self.follows_length:
                raise ValueError(
                    "cache must be None if the frequencies follow the length, because cached keys keep the old ones; "
                    f"got a cache with {scaling!r}: fix the frequencies, or keep unrotated keys (ExtendedAttention)"
                )
            if scaling is not None and positions is None:
                # A custom scaling function may lack follows_length. With a tensor of positions, it receives no length
                # to depend on.
                positions = torch.arange(cached, cached + seq_len, device=x.device)
                offset = 0
        q, k, v = self.project(x, positions, offset)
        if cache is not None:
            k, v = cache.append(k, v)
        if return_weights:
            heads, weights = scaled_dot_product_attention(
                q, k, v, mask, is_causal=is_causal, return_weights=True
            )
            return self.out_proj(merge_heads(heads)), weights
        return self.out_proj(merge_heads(self._fused(q, k, v, mask, is_causal)))


@torch.no_grad()
def shift_change(layer: RotaryAttention, x: Tensor, shift: int) -> float:
    """Return how much the outputs change when every position moves by ``shift``, relative to the largest output.

    The result is zero, up to rounding, if scores depend only on the distance between positions. ``x``: (batch, seq,
    dim).

    >>> x = torch.randn(1, 8, 16, dtype=torch.float64)
    >>> layer = RotaryAttention(dim=16, n_heads=2, layout="half", dtype=torch.float64)
    >>> shift_change(layer, x, shift=1000) < 1e-10
    True
    """
    positions = torch.arange(x.shape[1], device=x.device)
    shift = checks.integer("shift", shift)
    here, there = layer(x, positions), layer(x, positions + shift)
    return ((there - here).abs().max() / here.abs().max()).item()


class RotatedValueAttention(RotaryAttention):
    """A mistake that we keep in order to measure it: values are rotated too. When all tokens move by t positions, the
    output of each head is multiplied by R_t, so it reveals absolute positions.

    >>> x = torch.randn(1, 8, 16, dtype=torch.float64)
    >>> layer = RotatedValueAttention(16, n_heads=2, layout="half", dtype=torch.float64)
    >>> shift_change(layer, x, shift=1000) > 0.01
    True
    """

    def project(
        self, x: Tensor, positions: Tensor | None = None, offset: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x, positions, offset)
        _, v = self.rotary(q, v, positions, offset=offset)
        return q, k, v
