"""Reference values for the Shuffle explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ropebook.attention import scaled_dot_product_attention
from ropebook.explorers.shuffle import BASE, WIDTH, split_words
from ropebook.sinusoidal import encoding
from tests.explorers.draws import weight_matrix, word_vector


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data: the weights (n, n) and outputs (n, 16) in the order of the display, the outputs in the
    typed order, and how much the outputs and weights change."""
    typed, order = split_words(dials["words"]), dials["order"]
    now = [typed[place] for place in order]
    weights_before, before = attend(typed, dials["position"], dials["causal"])
    weights, outputs = attend(now, dials["position"], dials["causal"])
    changes = np.abs(outputs - before[order]).max(axis=-1)
    moved = weights_before[np.ix_(order, order)]
    return {
        "words": now,
        "weights": weights.tolist(),
        "outputs": outputs.tolist(),
        "typedOutputs": before.tolist(),
        "changes": changes.tolist(),
        "change": float(changes.max()),
        "weightChange": float(np.abs(weights - moved).max()),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    Weights add up to 1. An output is Σ w v with Σ w = 1, so the sum of its terms is at most the largest |v|. The
    largest |output| can't exceed this value either, so we use it as a stricter scale.
    """
    largest = float(np.abs(compute(dials)["typedOutputs"]).max())
    return {
        "weights": 1.0,
        "outputs": largest,
        "typedOutputs": largest,
        "changes": largest,
        "change": largest,
        "weightChange": 1.0,
    }


def attend(words: list[str], position: bool, causal: bool) -> tuple:
    """Run one head of self-attention on n words, each at its own position. Return the weights (n, n) and the outputs
    (n, 16), both in float64.

    Each word is represented by its vector from ``draws.word_vector``. If ``position`` is true, the sinusoidal encoding
    of the word's position is added.
    """
    x = torch.from_numpy(np.stack([word_vector(word, WIDTH) for word in words]))
    if position:
        x = x + encoding(range(len(words)), WIDTH, BASE, dtype=torch.float64)
    q, k, v = (x @ torch.from_numpy(weight_matrix(name, WIDTH)) for name in "qkv")
    outputs, weights = scaled_dot_product_attention(q, k, v, is_causal=causal, return_weights=True)
    return weights.numpy(), outputs.numpy()
