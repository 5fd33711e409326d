"""Build a model with a bias added to its scores. As in ALiBi, the bias depends only
on the head and the distance.

Such a bias can correct a head's mean score at distances that did not occur in
training. It changes no frequencies, so the part of the score that depends on
content stays as it was. Nothing is trained.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.attention import merge_heads
from ropebook.real.bias import at
from ropebook.real.layers import check_plain
from ropebook.real.reading import sharing_weights
from ropebook.rotary_attention import LlamaModel, RotaryAttention
from ropebook.shapes import Complex, Float

PIECE = 256
"""The number of queries whose scores are in memory at a time."""


def held(
    amplitudes: Complex[Tensor, "*heads pairs"],
    inv_freq: Float[Tensor, " pairs"],
    length: int,
    trained: int,
    pairs: slice | list[int] = slice(None),
) -> Float[Tensor, "*heads length"]:
    """Compute the bias that keeps the mean score of these pairs constant beyond the
    distance ``trained``, for the distances 0 … length − 1. The bias is 0 up to
    ``trained``. Beyond it, the bias is C(trained) − C(Δ), where C is computed by
    `ropebook.real.bias.at`.

    >>> z, theta = torch.tensor([-2.0 + 0j]).to(torch.complex128), torch.tensor([torch.pi / 2])
    >>> held(z, theta, length=5, trained=2).round()  # the mean score is −2, 0, 2, 0, −2
    tensor([0., 0., 0., 2., 4.], dtype=torch.float64)
    """
    checks.integer("length", length, minimum=1)
    checks.integer("trained", trained, minimum=0)
    distances = torch.arange(length, dtype=torch.float64)
    scores = at(amplitudes, inv_freq, distances, pairs)
    there = at(amplitudes, inv_freq, distances.new_tensor([float(trained)]), pairs)
    return torch.where(distances > trained, there - scores, 0.0)


def with_penalty(
    model: LlamaModel, added: Float[Tensor, "layers heads distances"]
) -> LlamaModel:
    """Return a new model with the same weights that adds ``added[layer, head, Δ]``
    to the score of every query and key at distance Δ. The bias is added after the
    division by √d. The first token's scores are unchanged.

    The model reads only whole texts, and a text must have no more tokens than there
    are distances. It raises ``ValueError`` for longer texts, and if positions, a
    mask or a cache is given.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=1, n_heads=2, layout="half")
    >>> tokens = torch.tensor([[1, 2, 3, 4]])
    >>> with_penalty(model, torch.zeros(1, 2, 4))(tokens).allclose(model(tokens), atol=1e-6)
    True
    """
    heads = len(model.layers), model.layers[0].attention.n_heads
    if added.shape[:2] != heads:
        raise ValueError(
            f"added must be (layers, heads, distances), {heads[0]} and {heads[1]}, got {tuple(added.shape)}"
        )
    other = sharing_weights(model)
    for layer, rows in zip(other.layers, added, strict=True):
        layer.attention = _Penalised(layer.attention, rows)
    return other


class _Penalised(nn.Module):
    """The attention of one layer, with a bias by distance. It processes the queries
    in pieces."""

    follows_length = False

    def __init__(self, attention: RotaryAttention, added: Tensor):
        super().__init__()
        self.attention = attention
        self.rotary = (
            attention.rotary
        )  # under this name, the model finds the tables that all layers share
        # The bias in reverse order, followed by −∞ for the keys that a query must
        # not see.
        future = added.new_full((len(added), PIECE), -torch.inf)
        self.reversed = torch.cat((added.flip(1), future), 1).float()

    def forward(self, x: Tensor, positions=None, mask=None, cache=None) -> Tensor:
        given = {"positions": positions, "mask": mask, "cache": cache}
        check_plain("a penalty is added", **given)
        layer, length = self.attention, x.shape[1]
        distances = self.reversed.shape[1] - PIECE
        if length > distances:
            raise ValueError(
                f"tokens must be at most {distances}, as many as the penalty has distances, got {length}"
            )
        q, k, v = layer.project(x)
        found = []
        for start in range(0, length, PIECE):
            stop = min(start + PIECE, length)
            # Row m of the table starts with the first key, at distance m. From
            # there the distances fall to 0, and then come the keys after the query.
            windows = self.reversed.unfold(1, stop, 1)
            table = windows[:, distances - stop : distances - start].flip(1)
            table[:, :, 0] = 0
            found.append(
                nn.functional.scaled_dot_product_attention(
                    q[:, :, start:stop],
                    k[:, :, :stop],
                    v[:, :, :stop],
                    attn_mask=table.to(q.dtype)[None],
                    enable_gqa=layer.n_kv_heads != layer.n_heads,
                )
            )
        return layer.out_proj(merge_heads(torch.cat(found, 2)))
