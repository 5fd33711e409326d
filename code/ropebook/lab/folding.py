"""Predict the score that a head would give to a record at any distance.

Plotted against distance, these scores form a curve that folds back.

A score is Σ_i Re(q_i k̄_i e^{iθ_iΔ})/√d. Once we have measured the products
q_i k̄_i for a question and a record, they give us the score at every distance and
with any frequencies. We measure them in contexts of the trained length, where the
model works as it was trained to.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention import MultiHeadAttention
from ropebook.complex_plane import to_complex
from ropebook.lab.asking import Asked
from ropebook.lab.frequencies import rotary_of
from ropebook.lab.model import LanguageModel
from ropebook.shapes import Complex, Float

# the number of questions per batch
_BATCH = 64


class Products(NamedTuple):
    """The mean of q_i k̄_i/√d for each kind of question: complex128 (layers, heads, d/2).

    The mean is taken over all questions of that kind, and over both records that have the requested key.
    """

    first: Complex[Tensor, "layers heads pairs"]
    last: Complex[Tensor, "layers heads pairs"]

    @property
    def contrast(self) -> Complex[Tensor, "layers heads pairs"]:
        """The difference between the two kinds of question: ``first`` minus ``last``."""
        return self.first - self.last


@torch.no_grad()
def each(
    model: LanguageModel, asked: Asked
) -> Complex[Tensor, "layers heads questions two pairs"]:
    """Compute q_i k̄_i/√d for every question and the two records with its key, starting with the earlier record.

    Returns complex128 (layers, heads, contexts · n, 2, d/2).

    ``model`` must use rotation without a context-extension method. ``asked`` must contain contexts of the order task
    that are no longer than the trained length. Raises ``ValueError`` for a model that does not rotate.

    >>> import numpy as np
    >>> from ropebook.lab.asking import Layout, contexts
    >>> model = LanguageModel("rope-10000", length=64, dim=16, n_layers=2, n_heads=2)
    >>> dots = {"a.py": np.full(99, ord("."), np.uint8)}
    >>> each(model, contexts(Layout("order", 63, 16, 63, contexts=1, asked=3), dots)).shape
    torch.Size([2, 2, 6, 2, 4])
    """
    layout = rotary_of(model).layout
    n, length = asked.queries.shape[1], asked.tokens.shape[1]
    rows = torch.cat(
        (asked.tokens.repeat_interleave(n, 0), asked.queries.reshape(-1, 1)), 1
    )
    places = length - torch.stack((asked.far, asked.near), -1).reshape(-1, 2)
    batches = zip(rows.split(_BATCH), places.split(_BATCH), strict=True)
    return torch.cat([_each(model, *batch, layout) for batch in batches], 2)


def _each(
    model: LanguageModel, rows: Tensor, places: Tensor, layout: str
) -> Tensor:
    x = model.embed(rows, None, 0)
    at = torch.arange(len(rows))[:, None]
    found = []
    for layer in model.layers:
        attention = layer.attention
        q, k, _ = MultiHeadAttention.project(attention, layer.attention_norm(x))
        q = to_complex(q[:, :, -1].double(), layout)
        k = to_complex(k.transpose(1, 2)[at, places].double(), layout)
        # the shape is (questions, records, heads, pairs)
        both = q[:, None] * k.conj() / attention.head_dim**0.5
        found.append(both.permute(2, 0, 1, 3))
        x = layer(x)
    return torch.stack(found)


def products(model: LanguageModel, asked: Asked) -> Products:
    """Average the products that `each` returns.

    Raises the errors of `each`, and ``ValueError`` unless the contexts contain both kinds of questions.
    """
    first = asked.first.reshape(-1)
    if not first.any() or first.all():
        raise ValueError(
            "asked must have questions for the first record and for the last one"
        )
    means = each(model, asked).mean(3)
    return Products(means[:, :, first].mean(2), means[:, :, ~first].mean(2))


def curve(
    product: Complex[Tensor, " pairs"],
    theta: Float[Tensor, " pairs"],
    distances: Float[Tensor, " distances"],
) -> Float[Tensor, " distances"]:
    """Compute the score at each distance: Σ_i Re(p_i e^{iθ_iΔ}), float64.

    >>> one = torch.ones(1, dtype=torch.complex128)
    >>> curve(one, torch.tensor([torch.pi]), torch.tensor([0.0, 1.0, 2.0])).round()
    tensor([ 1., -1.,  1.], dtype=torch.float64)
    """
    if product.shape != theta.shape:
        raise ValueError(
            f"product must be of theta's shape {tuple(theta.shape)}, got {tuple(product.shape)}"
        )
    checks.floating("distances", distances)
    angles = distances.double()[:, None] * theta.double()
    turned = torch.polar(torch.ones_like(angles), angles)
    return (product * turned).real.sum(-1)
