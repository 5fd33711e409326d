"""Weights as one byte each, with one scale to a row: the small model as a notebook carries it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

LARGEST = 63
"""A row's largest entry. The other half of int8 would cost an eighth more to carry, for less than `COST`."""
COST = 0.0011
"""Bits per byte that rounding costs `ropebook.lab.model.pretrained` on Python that it was not trained on, 39 files of L bytes; the
standard error is 0.0008."""
SCALES = ".scales"


def rounded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as int8 (rows, columns), and beside each its scales, float32 (rows,), under its name with `SCALES`. The rest
    stays as it is, and so does what is rounded already.

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
    """The weights, in float32, of what `rounded` made; others as they are.

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
