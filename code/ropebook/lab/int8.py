"""Weights of one byte each, with one scale per row: the small model as a notebook carries it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

LARGEST = 63
"""The integer for a row's largest entry. Using int8's full range would take an eighth more space, and saves
less than `COST`."""
COST = 0.0011
"""What rounding costs `ropebook.lab.model.pretrained`, in bits per byte, on Python code that it was not trained on, 39
files of L bytes; the standard error is 0.0008."""
SCALES = ".scales"


def rounded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as int8 (rows, columns), each with its scales, float32 (rows,), under its name plus `SCALES`. Everything
    else stays unchanged, including what is already rounded.

    >>> stored = rounded({"w": torch.tensor([[1.0, -0.25], [0.0, 0.0]])})
    >>> stored["w"].tolist(), (stored["w.scales"] * LARGEST).tolist()
    ([[63, -16], [0, 0]], [1.0, 0.0])
    """
    stored = {}
    for name, weight in weights.items():
        if weight.ndim < 2 or weight.dtype == torch.int8:
            stored[name] = weight
            continue
        scales = weight.abs().amax(1, keepdim=True).float() / LARGEST
        # a row of zeros has the scale 0
        steps = (weight / scales).nan_to_num(0)
        stored[name] = steps.round().to(torch.int8)
        stored[name + SCALES] = scales.squeeze(1)
    return stored


def restored(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `rounded`, in float32; other weights stay unchanged.

    >>> restored(rounded({"w": torch.tensor([[1.0, -0.25]])}))["w"]
    tensor([[ 1.0000, -0.2540]])
    """
    weights = {}
    for name, weight in stored.items():
        if weight.dtype == torch.int8:
            weights[name] = weight * stored[name + SCALES][:, None]
        elif not name.endswith(SCALES):
            weights[name] = weight
    return weights
