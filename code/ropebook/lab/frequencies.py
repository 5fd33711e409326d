"""A trained model with other frequencies: in another order, or without one. Nothing is trained here.

Pairs are counted as their frequencies θ_i are, from the fastest, i = 0.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from ropebook import checks
from ropebook.complex_plane import to_complex
from ropebook.efficient import RotaryEmbedding
from ropebook.lab.model import LanguageModel
from ropebook.shapes import Float, Int


def rotary_of(model: LanguageModel) -> RotaryEmbedding:
    """Its rotation, the same in every layer. ``ValueError`` for a model that does not rotate, or has a method."""
    rotary = model.layers[0].attention.rotary
    if not isinstance(rotary, RotaryEmbedding):
        raise ValueError(
            f"model must rotate its queries and keys, got scheme {model.scheme!r}"
        )
    if rotary.scaling is not None:
        raise ValueError(
            "model must have its own frequencies, got one with a method"
        )
    return rotary


def with_frequencies(
    model: LanguageModel, inv_freq: Float[Tensor, " pairs"]
) -> LanguageModel:
    """The model with other θ, the same in every layer: (d/2,), float64 or float32, any order, 0 for a pair that does not turn.

    A new model with the same weights, not copies of them; ``model`` stays as it is. ``ValueError`` for a model that does not rotate, or has a
    method already, for another number of pairs, and for NaN or infinity.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=1, n_heads=2)
    >>> still = with_frequencies(model, torch.zeros(4))
    >>> still.layers[0].attention.rotary.cos_sin(torch.tensor([5]))[0]
    tensor([[1., 1., 1., 1.]])
    """
    rotary = rotary_of(model)
    if checks.floating("inv_freq", inv_freq).shape != rotary.inv_freq.shape:
        raise ValueError(
            f"inv_freq must be of shape {tuple(rotary.inv_freq.shape)}, got {tuple(inv_freq.shape)}"
        )
    checks.finite("inv_freq", inv_freq)
    other = copy.deepcopy(
        model, {id(weight): weight for weight in model.parameters()}
    )
    turning = RotaryEmbedding(
        rotary.dim,
        rotary.base,
        layout=rotary.layout,
        scaling=lambda theta, _: (inv_freq.to(theta), 1.0),
        backend=rotary.backend,
    )
    for layer in other.layers:
        layer.attention.rotary = turning.to(model.embedding.weight.device)
    return other


def permutation(pairs: int, seed: int) -> Int[Tensor, " pairs"]:
    """A random order of the pairs, int64 (pairs,), that is not the one they have.

    >>> permutation(2, seed=7)
    tensor([1, 0])
    """
    checks.integer("pairs", pairs, minimum=2)
    draws = torch.Generator().manual_seed(checks.integer("seed", seed))
    while True:
        order = torch.randperm(pairs, generator=draws)
        if not torch.equal(order, torch.arange(pairs)):
            return order


def permuted(model: LanguageModel, order: Int[Tensor, " pairs"]) -> LanguageModel:
    """The model in whose layers pair i turns with θ_order[i]; the projections, trained for θ_i, stay.

    ``ValueError`` if ``order`` does not name each pair once.
    """
    theta = rotary_of(model).inv_freq
    if order.dtype != torch.int64 or not torch.equal(
        order.sort().values, torch.arange(len(theta))
    ):
        raise ValueError(
            f"order must have each of 0 … {len(theta) - 1} once, got {order.tolist()}"
        )
    return with_frequencies(model, theta[order])


def reordered(model: LanguageModel, order: Int[Tensor, " pairs"]) -> LanguageModel:
    """As `permuted`, but the rows of W_q and W_k are permuted with the frequencies, pair by pair.

    Every score is a sum over pairs, so this is the same model: only the order of the summands is another. New W_q and W_k; all other
    weights are shared.
    """
    other = permuted(model, order)
    rotary = rotary_of(model)
    pairs = to_complex(torch.arange(rotary.dim).double(), rotary.layout)
    entries = torch.view_as_real(pairs).long()  # of pair i in a head: (d/2, 2)
    source = torch.empty(rotary.dim, dtype=torch.int64)
    source[entries] = entries[order]
    for layer in other.layers:
        for name in ("q_proj", "k_proj"):
            linear = copy.deepcopy(getattr(layer.attention, name))
            weight = linear.weight.data.unflatten(0, (-1, rotary.dim))
            linear.weight.data = weight[:, source].flatten(0, 1)
            setattr(layer.attention, name, linear)
    return other


def without_pair(model: LanguageModel, pair: int) -> LanguageModel:
    """The model with θ_i = 0 for one pair: it counts in the scores as before, but says nothing of the distance."""
    inv_freq = rotary_of(model).inv_freq.clone()
    inv_freq[checks.integer("pair", pair, 0, len(inv_freq) - 1)] = 0
    return with_frequencies(model, inv_freq)
