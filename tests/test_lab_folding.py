"""Tests of extrapolating a score to any distance, compared with the model's own scores."""

import numpy as np
import pytest
import torch

from ropebook.lab import folding
from ropebook.lab.asking import Layout, contexts
from ropebook.lab.frequencies import rotary_of
from ropebook.lab.heads import queries_and_keys
from tests.lab_models import tiny

FILES = {"a.py": np.arange(40, 126, dtype=np.uint8).repeat(3)}
LAYOUT = Layout("order", 40, 16, 40, contexts=2, asked=2)


@torch.no_grad()
def test_products_give_the_scores_that_are_there():
    model, asked = tiny(), contexts(LAYOUT, FILES)
    found, theta = folding.each(model, asked), rotary_of(model).inv_freq
    at = 0
    for text, queries, far, near in zip(asked.tokens, asked.queries, asked.far, asked.near, strict=True):
        for query, *back in zip(queries, far, near, strict=True):
            tokens = torch.cat((text, query[None]))[None]
            for layer, (q, k) in enumerate(queries_and_keys(model, tokens)):
                for record, distance in enumerate(back):
                    scores = (q[0, :, -1] * k[0, :, len(text) - distance]).sum(-1) / q.shape[-1] ** 0.5
                    curves = [
                        folding.curve(found[layer, head, at, record], theta, distance[None].double()) for head in (0, 1)
                    ]
                    assert torch.allclose(torch.cat(curves), scores, rtol=1e-6, atol=1e-8)
            at += 1
    assert at == found.shape[2]


def test_means_are_by_kind_of_question():
    model, asked = tiny(), contexts(LAYOUT, FILES)
    found, every = folding.products(model, asked), folding.each(model, asked)
    first = asked.first.flatten()
    assert torch.allclose(found.first, every[:, :, first].mean((2, 3)))
    assert torch.allclose(found.contrast, every[:, :, first].mean((2, 3)) - every[:, :, ~first].mean((2, 3)))


def test_contexts_of_one_kind_are_refused():
    asked = contexts(Layout("retrieval", 40, 16, 40, contexts=2, asked=2), FILES)
    with pytest.raises(ValueError, match="asked must have questions for the first record and for the last one"):
        folding.products(tiny(), asked)
    with pytest.raises(ValueError, match="model must rotate its queries and keys"):
        folding.each(tiny("none"), asked)


def test_a_curve_comes_back_after_a_period():
    theta, product = torch.tensor([0.1]), torch.tensor([1 + 1j], dtype=torch.complex128)
    there = torch.tensor([3.0, 3.0 + 20 * torch.pi])
    assert folding.curve(product, theta, there).diff().abs() < 1e-4
    with pytest.raises(ValueError, match=r"product must be of theta's shape \(1,\), got \(2,\)"):
        folding.curve(product.repeat(2), theta, there)
