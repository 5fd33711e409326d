"""Build a model that treats the first token differently from all others, by letting queries see it at another distance
or with other frequencies.

Many heads attend mostly to the first token (an attention sink: Xiao et al. 2023, arXiv
2309.17453). Does a model break beyond its length because it loses that token, or
because it misreads the other tokens? To find out, we repair one of the two and leave
the other as it is. Nothing is trained.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.attention import MultiHeadAttention, merge_heads, repeat_heads
from ropebook.efficient import RotaryEmbedding
from ropebook.real.layers import check_plain
from ropebook.real.reading import sharing_weights
from ropebook.rotary_attention import LlamaModel, RotaryAttention

_WIDTH = 8  # the fused kernel prefers head dimensions that are multiples of this


def with_sink_apart(
    model: LlamaModel,
    *,
    nearest: int | None = None,
    sink: RotaryEmbedding | None = None,
    others: RotaryEmbedding | None = None,
) -> LlamaModel:
    """Return a new model with the same weights, in which each query scores the first
    token's key separately.

    ``nearest``: the largest distance at which a query sees the first token. Queries that are farther away see it at
    this distance instead. By default, every query sees it at the true distance. ``sink`` and ``others``: the rotations
    for scores with the first token and with all other tokens (by default, the model's own rotation). The model reads
    only whole texts; it raises ``ValueError`` if positions, a mask or a cache is given.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=1, n_heads=2, layout="half")
    >>> tokens = torch.tensor([[1, 2, 3, 4]])
    >>> with_sink_apart(model)(tokens).allclose(model(tokens), atol=1e-6)
    True
    """
    if nearest is not None:
        checks.integer("nearest", nearest, minimum=1)
    apart = sharing_weights(model)
    own = apart.layers[0].attention.rotary
    for layer in apart.layers:
        layer.attention = _SinkApart(
            layer.attention, nearest, sink or own, others or own
        )
    return apart


class _SinkApart(nn.Module):
    """The attention of one layer. It computes the first token's scores separately, and passes them through the fused
    function.

    Each query gets one more entry: its score with the first key. In that entry, the first key has a 1 and all other
    keys have a 0. All other entries of the first key are set to 0. The fused function then computes the right scores
    without forming the whole table.
    """

    def __init__(
        self,
        attention: RotaryAttention,
        nearest: int | None,
        sink: RotaryEmbedding,
        others: RotaryEmbedding,
    ):
        super().__init__()
        self.attention = attention
        self.nearest = nearest
        self.sink = sink
        self.rotary = others  # under this name, the model finds the tables that all layers share

    follows_length = False

    def forward(self, x: Tensor, positions=None, mask=None, cache=None) -> Tensor:
        given = {"positions": positions, "mask": mask, "cache": cache}
        check_plain("the first token is seen apart", **given)
        layer = self.attention
        q, k, v = MultiHeadAttention.project(layer, x)
        places = torch.arange(x.shape[1], device=x.device)
        if self.nearest is not None:
            places = places.clamp(max=self.nearest)
        first = self.sink(k[:, :, :1], positions=places[:1])
        score = (
            self.sink(q, positions=places) @ repeat_heads(first, layer.n_heads).mT
        )
        q, k = self.rotary(q, k)
        # k may be a view of the tensor in which q and k were rotated together, so copy
        # it before changing it.
        k = k.clone()
        k[:, :, 0] = 0
        mark = torch.zeros_like(k[..., :1])
        mark[:, :, 0] = 1
        width = layer.head_dim
        wide = -(width + 1) % _WIDTH
        heads = nn.functional.scaled_dot_product_attention(
            nn.functional.pad(torch.cat((q, score), -1), (0, wide)),
            nn.functional.pad(torch.cat((k, mark), -1), (0, wide)),
            nn.functional.pad(v, (0, wide + 1)),
            is_causal=True,
            scale=1 / math.sqrt(width),
            enable_gqa=layer.n_kv_heads != layer.n_heads,
        )
        return layer.out_proj(merge_heads(heads[..., :width]))
