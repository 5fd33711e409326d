"""Multi-head self-attention as a module.

Source: Vaswani et al. 2017, *Attention Is All You Need*, section 3.2.2.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.attention.dot_product import scaled_dot_product_attention
from ropebook.attention.heads import check_heads, merge_heads, split_heads
from ropebook.attention.masks import whole_mask


class MultiHeadAttention(nn.Module):
    """Self-attention with several heads: project, split into heads, attend in each head, merge, project again.

    ``dim`` is the width of the model. ``head_dim`` is the width of a head; the default is dim / n_heads, which must
    then be a whole number. ``n_kv_heads`` (default ``n_heads``) is the number of key and value heads, and must divide
    ``n_heads``. ``bias`` says whether the four projections have a bias. With ``fused=True`` the attention itself is
    computed by ``torch.nn.functional.scaled_dot_product_attention``. This yields the same numbers faster and without
    storing the scores, so such a layer cannot return the weights.

    Source: Vaswani et al. 2017, section 3.2.2.

    >>> layer = MultiHeadAttention(dim=16, n_heads=4, n_kv_heads=2)
    >>> layer(torch.zeros(1, 5, 16), is_causal=True).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        *,
        head_dim: int | None = None,
        bias: bool = True,
        fused: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.dim = checks.integer("dim", dim, minimum=1)
        self.n_heads, self.n_kv_heads = check_heads(n_heads, n_kv_heads)
        if head_dim is None:
            if dim % n_heads:
                raise ValueError(
                    f"dim must be a multiple of n_heads = {n_heads}, got {dim}"
                )
            head_dim = dim // n_heads
        self.head_dim = checks.integer("head_dim", head_dim, minimum=1)
        self.fused = fused
        q_dim, kv_dim = n_heads * head_dim, self.n_kv_heads * head_dim
        like = {"bias": bias, "device": device, "dtype": dtype}
        self.q_proj = nn.Linear(dim, q_dim, **like)
        self.k_proj = nn.Linear(dim, kv_dim, **like)
        self.v_proj = nn.Linear(dim, kv_dim, **like)
        self.out_proj = nn.Linear(q_dim, dim, **like)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the queries, keys and values of ``x``, split into heads: (batch, heads, seq, head_dim) each.

        This is the method to override in a subclass that changes queries and keys before the scores are computed.
        """
        q = split_heads(self.q_proj(x), self.n_heads)
        k = split_heads(self.k_proj(x), self.n_kv_heads)
        v = split_heads(self.v_proj(x), self.n_kv_heads)
        return q, k, v

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Map x (batch, seq, dim) to an output of the same shape.

        With ``return_weights`` the result is the tuple (output, weights), where the weights have shape (batch, n_heads,
        seq, seq). ``mask`` and ``is_causal`` mean the same as in :func:`attention_weights`.
        """
        checks.floating("x", x)
        if x.dim() != 3 or x.shape[-1] != self.dim:
            raise ValueError(
                f"x must be (batch, seq, {self.dim}), got {tuple(x.shape)}"
            )
        if self.fused and return_weights:
            raise ValueError(
                "return_weights must be False with fused=True, which never computes the weights, got True"
            )
        q, k, v = self.project(x)
        if self.fused:
            return self.out_proj(merge_heads(self._fused(q, k, v, mask, is_causal)))
        heads, weights = scaled_dot_product_attention(
            q, k, v, mask, is_causal=is_causal, return_weights=True
        )
        out = self.out_proj(merge_heads(heads))
        return (out, weights) if return_weights else out

    def _fused(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        if mask is not None:  # torch's function takes a mask or is_causal, not both
            mask = whole_mask(
                mask, is_causal, (*q.shape[:-1], k.shape[-2]), q.device
            )
            mask = mask if mask.dtype == torch.bool else mask.to(q.dtype)
            is_causal = False
        grouped = self.n_kv_heads != self.n_heads
        return nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=is_causal, enable_gqa=grouped
        )

    @classmethod
    def from_torch(
        cls, other: nn.MultiheadAttention, *, fused: bool = False
    ) -> MultiHeadAttention:
        """Make a layer that computes the same function as ``other``, with a copy of its weights.

        In ``other``, queries, keys and values must have the same width, and there must be no dropout, no
        ``add_bias_kv`` and no ``add_zero_attn``; otherwise ``ValueError`` is raised. The new layer is batch-first even
        if ``other`` is not.
        """
        if not isinstance(other, nn.MultiheadAttention):
            raise TypeError(
                f"other must be a torch.nn.MultiheadAttention, got {type(other).__name__}"
            )
        if other.in_proj_weight is None:
            widths = f"{other.kdim}, {other.vdim} and {other.embed_dim}"
            raise ValueError(
                f"other must have kdim, vdim and embed_dim equal, got {widths}"
            )
        if other.dropout or other.bias_k is not None or other.add_zero_attn:
            raise ValueError(
                "other must have dropout=0, add_bias_kv=False and add_zero_attn=False, "
                f"got {other.dropout}, {other.bias_k is not None} and {other.add_zero_attn}"
            )
        weight, bias = other.in_proj_weight, other.in_proj_bias
        like = {"device": weight.device, "dtype": weight.dtype}
        layer = cls(
            other.embed_dim,
            other.num_heads,
            bias=bias is not None,
            fused=fused,
            **like,
        )
        with torch.no_grad():
            ours = (layer.q_proj, layer.k_proj, layer.v_proj)
            for linear, rows in zip(ours, weight.chunk(3), strict=True):
                linear.weight.copy_(rows)
            layer.out_proj.weight.copy_(other.out_proj.weight)
            if bias is not None:
                for linear, rows in zip(ours, bias.chunk(3), strict=True):
                    linear.bias.copy_(rows)
                layer.out_proj.bias.copy_(other.out_proj.bias)
        return layer
