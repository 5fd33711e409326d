"""Compute a model's loss at every position of a long text, using little memory.

Attention never forms its (T, T) table, because torch's fused function works in
blocks. For 12,288 tokens and a vocabulary of 49,152, the logits would take 2.4 GB,
so they are computed for a few hundred positions at a time.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.rotary_attention import LlamaModel
from ropebook.shapes import Float, Int, Real

PIECE = 512
"""The number of positions whose logits are in memory at a time."""


def sharing_weights(model: LlamaModel) -> LlamaModel:
    """Return a copy of a model that shares its weights, so that its parts can be
    replaced while ``model`` stays as it is.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=1, n_heads=2, layout="half")
    >>> other = sharing_weights(model)
    >>> other is model, other.lm_head.weight is model.lm_head.weight
    (False, True)
    """
    return copy.deepcopy(
        model, {id(weight): weight for weight in model.parameters()}
    )


@torch.no_grad()
def last_states(
    model: LlamaModel,
    tokens: Int[Tensor, "batch seq"],
    positions: Real[Tensor, "*rows seq"] | None = None,
) -> Float[Tensor, "batch seq dim"]:
    """Return the input of ``model.lm_head``, which is the normalised output of the
    last layer: (batch, seq) to (batch, seq, dim).

    For ``positions``, see `LlamaModel.forward`.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=2, n_heads=2, layout="half")
    >>> tokens = torch.tensor([[1, 2, 3]])
    >>> torch.equal(model.lm_head(last_states(model, tokens)), model(tokens))
    True
    """
    headless = sharing_weights(model)
    headless.lm_head = nn.Identity()
    return headless(tokens, positions)


@torch.no_grad()
def losses(
    model: LlamaModel, tokens: Int[Tensor, " seq"], piece: int = PIECE
) -> Float[Tensor, " targets"]:
    """Compute the loss, in nats, at each position of one text: (T,) tokens to
    (T − 1,) float32. Entry t is the loss on token t + 1. To save memory, logits are
    computed for ``piece`` positions at a time; this does not affect the result.

    Raises:
        TypeError: the tokens are not integers.
        ValueError: there are fewer than two tokens, or one of them is not in the
            vocabulary.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=1, n_heads=2, layout="half")
    >>> losses(model, torch.tensor([1, 2, 3])).shape
    torch.Size([2])
    """
    checks.integer("piece", piece, minimum=1)
    if tokens.ndim != 1 or len(tokens) < 2:
        raise ValueError(
            f"tokens must be (seq,), two or more, got {tuple(tokens.shape)}"
        )
    # The last token is only a target, but like the others it must be in the
    # vocabulary.
    return losses_of_states(
        model, last_states(model, tokens[None])[0], tokens, piece
    )


@torch.no_grad()
def losses_of_states(
    model: LlamaModel,
    states: Float[Tensor, "seq dim"],
    tokens: Int[Tensor, " seq"],
    piece: int = PIECE,
) -> Float[Tensor, " targets"]:
    """Do the same as `losses`, for a text that the model has already read: ``states`` is
    what `last_states` returns for it, (T, dim)."""
    found = [
        nn.functional.cross_entropy(model.lm_head(some), wanted, reduction="none")
        for some, wanted in zip(
            states[:-1].split(piece), tokens[1:].long().split(piece), strict=True
        )
    ]
    return torch.cat(found)


def by_stretch(
    values: Float[Tensor, " seq"], stretch: int
) -> Float[Tensor, " stretches"]:
    """Average values over blocks of ``stretch`` positions, float64. Values left over at the end are dropped.

    >>> by_stretch(torch.tensor([1.0, 3.0, 5.0, 7.0, 100.0]), 2)
    tensor([2., 6.], dtype=torch.float64)
    """
    checks.integer("stretch", stretch, minimum=1, maximum=len(values))
    whole = len(values) // stretch * stretch
    return values[:whole].double().unflatten(0, (-1, stretch)).mean(1)
