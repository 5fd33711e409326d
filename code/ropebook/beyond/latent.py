"""Multi-head latent attention.

The keys and values of all heads come from one short vector per token. Positions are encoded in a separate, rotated part
of queries and keys (the "decoupled" rotation).

Source: DeepSeek-AI 2024, *DeepSeek-V2*, section 2.1. The tests compare this module with transformers'
DeepseekV3Attention.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.attention import scaled_dot_product_attention
from ropebook.beyond.values import turned_by
from ropebook.rope import Positions
from ropebook.shapes import Float

Tokens = Float[Tensor, "batch seq width"]


class Cached(NamedTuple):
    """The cache entries of each token.

    ``latent`` (batch, seq, rank) contains the latents c. ``key`` (batch, seq, rotary_dim) contains one rotated key per
    token, which all heads share.
    """

    latent: Tensor
    key: Tensor


class LatentAttention(nn.Module):
    """One layer of causal latent attention.

    Each head's query and key have ``dim`` unrotated and ``rotary_dim`` rotated entries. A key's unrotated entries are
    computed from the latent. Its rotated entries bypass the latent and are shared by all heads.
    """

    def __init__(
        self,
        width: int,
        n_heads: int,
        *,
        rank: int,
        dim: int,
        rotary_dim: int,
        v_dim: int,
        base: float = 10000.0,
    ):
        super().__init__()
        sizes = {"width": width, "n_heads": n_heads, "rank": rank}
        for name, size in {**sizes, "dim": dim, "v_dim": v_dim}.items():
            checks.integer(name, size, minimum=1)
        self.n_heads, self.dim, self.v_dim = n_heads, dim, v_dim
        self.rotary_dim, self.base = checks.even("rotary_dim", rotary_dim), base
        self.w_q = nn.Linear(width, n_heads * (dim + rotary_dim), bias=False)
        self.w_down = nn.Linear(width, rank + rotary_dim, bias=False)
        self.norm = nn.RMSNorm(rank, eps=1e-6)
        self.w_up = nn.Linear(rank, n_heads * (dim + v_dim), bias=False)
        self.w_o = nn.Linear(n_heads * v_dim, width, bias=False)

    def cached(self, x: Tokens, places: Positions) -> Cached:
        """Return the cache entries for these tokens."""
        latent, key = self.w_down(x).split(
            [self.norm.weight.shape[0], self.rotary_dim], -1
        )
        return Cached(self.norm(latent), turned_by(key, places, self.base))

    def queries(self, x: Tokens, places: Positions) -> tuple[Tensor, Tensor]:
        """Return the unrotated and the rotated part of every head's query.

        Their shapes are (batch, heads, seq, dim) and (batch, heads, seq, rotary_dim).
        """
        q = self.w_q(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        still, turning = q.split([self.dim, self.rotary_dim], -1)
        return still, turned_by(turning, places, self.base)

    def forward(self, x: Tokens, places: Positions) -> Tokens:
        """Compute the output as in training, with each head's keys and values computed from the latents."""
        held = self.cached(x, places)
        up = self.w_up(held.latent).unflatten(-1, (self.n_heads, -1))
        k, v = up.transpose(1, 2).split([self.dim, self.v_dim], -1)
        shared = held.key[:, None].expand(-1, self.n_heads, -1, -1)
        q = torch.cat(self.queries(x, places), -1)
        found = scaled_dot_product_attention(
            q, torch.cat((k, shared), -1), v, is_causal=True
        )
        return self.w_o(found.transpose(1, 2).flatten(2))

    def absorbed(self, x: Tokens, places: Positions) -> Tokens:
        """Compute the same output as `forward`, but use the latents themselves as keys and values.

        W_UK is multiplied into the queries, and W_UV into the output. As in decoding from a cache, all heads then share
        one vector per token, which is both the key and the value.
        """
        held = self.cached(x, places)
        w_k, w_v = self.w_up.weight.unflatten(0, (self.n_heads, -1)).split(
            [self.dim, self.v_dim], 1
        )
        still, turning = self.queries(x, places)
        q = torch.cat((still @ w_k, turning), -1)
        k = torch.cat((held.latent, held.key), -1)[:, None]
        scale = (self.dim + self.rotary_dim) ** -0.5
        scores = scale * (q @ k.mT)
        later = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        weights = scores.masked_fill(later, -torch.inf).softmax(-1)
        found = weights @ held.latent[:, None] @ w_v.mT
        return self.w_o(found.transpose(1, 2).flatten(2))


def between(
    w_q: Float[Tensor, "dim width"],
    w_uk: Float[Tensor, "dim rank"],
    rotation: Float[Tensor, "dim dim"],
) -> Float[Tensor, "width rank"]:
    """Compute W_Q^T R_{n−m} W_UK, the matrix of a score between one token and another token's latent.

    Without the rotation, this matrix is the same for all distances.
    """
    return w_q.mT @ rotation @ w_uk


def numbers_cached(
    n_heads: int, dim: int, rank: int, rotary_dim: int
) -> dict[str, int]:
    """Count the numbers that a cache stores per token and layer.

    There are three cases: keys and values for every head, keys and values for a single head, and a latent.

    >>> numbers_cached(n_heads=128, dim=128, rank=512, rotary_dim=64)
    {'every head': 32768, 'one head': 256, 'latent': 576}
    """
    sizes = {"n_heads": n_heads, "dim": dim, "rank": rank}
    for name, size in sizes.items():
        checks.integer(name, size, minimum=1)
    checks.even("rotary_dim", rotary_dim)
    return {
        "every head": 2 * n_heads * dim,
        "one head": 2 * dim,
        "latent": rank + rotary_dim,
    }
