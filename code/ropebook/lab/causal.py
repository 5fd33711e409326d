"""One pair of a trained model at a time with another frequency: what depends on it is what it does.

Pairs are counted from the fastest, i = 0. A change is made in every layer and head that rotates, or in one head alone.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping

from torch import Tensor, nn

from ropebook import checks
from ropebook.efficient import RotaryEmbedding
from ropebook.lab.frequencies import rotary_of, with_frequencies
from ropebook.lab.model import LanguageModel
from ropebook.lab.scores import LENGTH, TEXT
from ropebook.shapes import Float

WAYS: Mapping[str, float] = {"halved": 0.5, "still": 0.0, "doubled": 2.0}
"""What the frequency of a pair is multiplied by in a map."""
BANDS = ("fast", "middle", "slow")


def periods(theta: Float[Tensor, " pairs"]) -> list[float]:
    """2π/θ of each pair, in bytes.

    >>> import torch
    >>> [round(x, 1) for x in periods(torch.tensor([1.0, 0.5]))]
    [6.3, 12.6]
    """
    return (2 * math.pi / checks.floating("theta", theta)).tolist()


def bands(
    theta: Float[Tensor, " pairs"], length: int = LENGTH, text: int = TEXT
) -> dict[str, list[int]]:
    """The pairs of each of the `BANDS`: "fast" ones complete a turn within ``length``, "slow" ones not even within ``text``; a band may be empty.

    >>> import torch
    >>> bands(torch.tensor([1.0, 0.01, 0.001]))
    {'fast': [0], 'middle': [1], 'slow': [2]}
    """
    found: dict[str, list[int]] = {name: [] for name in BANDS}
    for pair, period in enumerate(periods(theta)):
        name = BANDS[(period > length) + (period > text)]
        found[name].append(pair)
    return found


def half_turn_pair(
    theta: Float[Tensor, " pairs"], length: int = LENGTH
) -> int | None:
    """The fastest pair that makes half a turn at most within ``length``, so that its score can rise all the way; None if all make more.

    >>> import torch
    >>> half_turn_pair(torch.tensor([1.0, 0.02, 0.01, 0.001])), half_turn_pair(torch.tensor([1.0]))
    (2, None)
    """
    slow = [
        pair
        for pair, period in enumerate(periods(theta))
        if period >= 2 * checks.integer("length", length, minimum=1)
    ]
    return min(slow, key=lambda pair: periods(theta)[pair], default=None)


def changed(
    model: LanguageModel,
    pairs: Collection[int],
    factor: float,
    head: tuple[int, int] | None = None,
) -> LanguageModel:
    """The model with the frequency of these ``pairs`` multiplied by ``factor``, 0 or more; a new model with the same weights.

    ``head``: a layer and a head, from 0, in which alone it is done. ``ValueError`` for a model that does not rotate in every layer or has
    a method, and for pairs, layers and heads that it does not have.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=1, n_heads=2)
    >>> changed(model, [1], 0.5).layers[0].attention.rotary.scaling(rotary_of(model).inv_freq, 8)[0]
    tensor([1.0000, 0.0500, 0.0100, 0.0010], dtype=torch.float64)
    """
    theta = rotary_of(model).inv_freq
    if any(
        not isinstance(layer.attention.rotary, RotaryEmbedding)
        for layer in model.layers
    ):
        raise ValueError(
            f"model must rotate in every layer, got scheme {model.scheme!r}"
        )
    checks.number("factor", factor, minimum=0)
    for pair in pairs:
        theta[checks.integer("pair", pair, 0, len(theta) - 1)] *= factor
    if head is None:
        return with_frequencies(model, theta)
    layer, at = head
    checks.integer("layer", layer, 0, len(model.layers) - 1)
    checks.integer("head", at, 0, model.n_heads - 1)
    other = with_frequencies(model, theta).layers[layer].attention.rotary
    found = copy.deepcopy(
        model, {id(weight): weight for weight in model.parameters()}
    )
    found.layers[layer].attention.rotary = _OneHead(rotary_of(model), other, at)
    return found


def at_length(model: LanguageModel, length: int) -> LanguageModel:
    """A model whose frequencies follow the length, with those of ``length`` for good; others as they are.

    One pass over a text of ``length`` bytes is the same with both.
    """
    rotary = model.layers[0].attention.rotary
    scaling = getattr(rotary, "scaling", None)
    if not getattr(scaling, "follows_length", False):
        return model
    theta, factor = scaling(rotary.inv_freq, length)
    fixed = RotaryEmbedding(
        rotary.dim,
        rotary.base,
        layout=rotary.layout,
        scaling=lambda inv_freq, _: (theta.to(inv_freq), factor),
    )
    found = copy.deepcopy(
        model, {id(weight): weight for weight in model.parameters()}
    )
    for layer in found.layers:
        layer.attention.rotary = fixed
    return found


class _OneHead(nn.Module):
    """A rotation with other frequencies in one head."""

    def __init__(self, plain: RotaryEmbedding, other: RotaryEmbedding, head: int):
        super().__init__()
        self.plain, self.other, self.head = plain, other, head

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        positions: Tensor | None = None,
        *,
        offset: int = 0,
    ) -> tuple[Tensor, Tensor]:
        mine = slice(self.head, self.head + 1)
        others = self.other(q[:, mine], k[:, mine], positions, offset=offset)
        whole = self.plain(q, k, positions, offset=offset)
        for x, of_head in zip(whole, others, strict=True):
            x[:, mine] = of_head
        return whole
