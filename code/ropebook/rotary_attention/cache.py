"""The key/value cache, which keeps the keys and values of all tokens so far."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ropebook import checks


class KVCache:
    """One layer's rotated keys and its values for all tokens so far, with memory for ``max_len`` tokens.

    A key is rotated once, by its own position, and never again. That is enough, because every query is rotated by its
    own position too, and then the score depends only on the distance. This fails if the frequencies change while the
    text grows, as in dynamic scaling, because the keys in the cache were rotated with the old frequencies. So layers
    with such frequencies refuse a cache. Only :class:`ropebook.extrapolation.ExtendedAttention` accepts a cache, either
    with unrotated keys, or if you explicitly ask for "rotated" keys.

    Memory is allocated when the first keys arrive, for their batch size, dtype and device. It is overwritten in place,
    so use a cache only for inference, under ``torch.no_grad()``.

    >>> from ropebook.rotary_attention import RotaryAttention
    >>> layer, cache = RotaryAttention(8, n_heads=2, layout="half"), KVCache(max_len=6)
    >>> with torch.no_grad():
    ...     prefill = layer(torch.zeros(1, 5, 8), cache=cache)
    ...     token = layer(torch.zeros(1, 1, 8), cache=cache)
    >>> token.shape, cache.length
    (torch.Size([1, 1, 8]), 6)
    """

    def __init__(self, max_len: int):
        self.max_len = checks.integer("max_len", max_len, minimum=1)
        self.length = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Append ``k`` and ``v``, (batch, n_kv_heads, new, head_dim) each, and return the keys and values of all tokens
        so far.

        Raises ``ValueError`` if their shape, dtype or device doesn't match the cache, or if there is no room for them.
        The cache is then unchanged.
        """
        self._check(k, v)
        if self.length == 0:
            batch, heads, _, head_dim = k.shape
            self.keys = k.new_empty(batch, heads, self.max_len, head_dim)
            self.values = torch.empty_like(self.keys)
        start, self.length = self.length, self.length + k.shape[2]
        self.keys[:, :, start : self.length] = k
        self.values[:, :, start : self.length] = v
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def reset(self) -> None:
        """Empty the cache. The next keys may have another batch size, dtype or device."""
        self.length = 0
        self.__dict__.pop("keys", None)
        self.__dict__.pop("values", None)

    def crop(self, length: int) -> None:
        """Keep only the first ``length`` tokens, for example after a wrong guess about the next tokens. The next token
        will then be at position ``length``.

        >>> cache = KVCache(max_len=6)
        >>> cache.append(torch.ones(1, 2, 5, 8), torch.ones(1, 2, 5, 8))[0].shape
        torch.Size([1, 2, 5, 8])
        >>> cache.crop(3)
        >>> cache.length
        3
        """
        self.length = checks.integer("length", length, 0, self.length)

    def reorder(self, rows: Tensor) -> None:
        """Replace row i with row ``rows[i]``, as beam search requires. ``rows``: int64, (batch,); a row may occur
        twice."""
        if not isinstance(rows, Tensor) or rows.dtype != torch.int64:
            found = getattr(rows, "dtype", type(rows).__name__)
            raise TypeError(f"rows must be a tensor of int64, got {found}")
        if self.length == 0:
            raise ValueError(
                "rows must be of a cache that holds tokens, got an empty one"
            )
        batch = len(self.keys)
        if rows.shape != (batch,):
            raise ValueError(
                f"rows must be one for each of {batch} rows, got shape {tuple(rows.shape)}"
            )
        if checks.readable(rows):
            checks.entries("rows", rows, 0, batch - 1)
        rows = rows.to(self.keys.device)
        for kept in (self.keys, self.values):
            # index_select makes a copy, so no row is overwritten before it has been read.
            kept[:, :, : self.length] = kept[:, :, : self.length].index_select(
                0, rows
            )

    def _check(self, k: Tensor, v: Tensor) -> None:
        if checks.floating("k", k).dim() != 4:
            raise ValueError(
                f"k must be (batch, heads, seq, head_dim), got {tuple(k.shape)}"
            )
        if k.requires_grad or v.requires_grad:
            raise ValueError(
                "k and v must not require gradients, because a cache is overwritten in place: use torch.no_grad()"
            )
        _check_same("v", v, "k", k, k.shape)
        if self.length:
            batch, heads, _, head_dim = self.keys.shape
            _check_same(
                "k", k, "the cache", self.keys, (batch, heads, k.shape[2], head_dim)
            )
        if self.length + k.shape[2] > self.max_len:
            raise ValueError(
                f"the cache must have room for {k.shape[2]} more tokens, "
                f"got {self.length} of max_len = {self.max_len} taken"
            )


def _check_same(
    name: str, x: Tensor, other_name: str, other: Tensor, shape: Sequence[int]
) -> None:
    """Check that ``x`` has this ``shape``, and that it has the dtype and device of ``other``."""
    found, wanted = (
        (tuple(s), t.dtype, str(t.device))
        for s, t in ((x.shape, x), (shape, other))
    )
    if found != wanted:
        raise ValueError(f"{name} must fit {other_name}, {wanted}, got {found}")
