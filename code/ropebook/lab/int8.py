"""Store each weight as one byte, with one scale per row. Notebooks contain the small model in this form."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

LARGEST = 63
"""The integer that stands for a row's largest entry. Using int8's full range would take an
eighth more space, and the gain would be smaller than `COST`."""
COST = 0.0011
"""The cost of rounding `ropebook.lab.model.pretrained`, in bits per byte. We measured it
on 39 files of L bytes each, all of them Python code that the model was not trained on. The
standard error is 0.0008."""
SCALES = ".scales"


def rounded(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Round matrices to int8 (rows, columns).

    Each matrix's scales, float32 (rows,), are stored under the name of the matrix followed by `SCALES`. Everything else
    is returned unchanged, including weights that have already been rounded.

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
        # An all-zero row has a scale of 0.
        steps = (weight / scales).nan_to_num(0)
        stored[name] = steps.round().to(torch.int8)
        stored[name + SCALES] = scales.squeeze(1)
    return stored


def restored(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Undo `rounded`: convert rounded matrices back to float32.

    Other weights are returned unchanged.

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
