"""Inspect the input of each layer's attention while the model reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

from ropebook.real.reading import last_states
from ropebook.rotary_attention import LlamaModel, RotaryAttention
from ropebook.shapes import Int

Seen = TypeVar("Seen")


@torch.no_grad()
def in_each_layer(
    model: LlamaModel,
    tokens: Int[Tensor, "batch seq"],
    look: Callable[[RotaryAttention, Tensor], Seen],
) -> list[Seen]:
    """Call ``look`` with each layer's attention and its input (batch, seq, dim),
    and return the results in the order of the layers.

    ``look`` is called while the model reads, so the inputs do not have to be kept
    in memory.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=2, n_heads=2, layout="half")
    >>> in_each_layer(model, torch.tensor([[1, 2, 3]]), lambda attention, x: tuple(x.shape))
    [(1, 3, 8), (1, 3, 8)]
    """
    seen: list[Seen] = []
    hooks = [
        layer.attention.register_forward_pre_hook(
            lambda attention, given: seen.append(look(attention, given[0]))
        )
        for layer in model.layers
    ]
    try:
        last_states(model, tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def check_plain(where: str, **given: object) -> None:
    """Raise ``ValueError`` if any of the arguments is not None, because the
    modified attention can only read whole texts. ``where`` describes the
    modification."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"{name} must be None where {where}")
