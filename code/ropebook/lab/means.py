"""Means over files and over bands of positions, with standard errors: of differences, file by file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.shapes import Float


class Mean(NamedTuple):
    """A mean over files and its standard error."""

    mean: Tensor
    error: Tensor


def over_files(values: Float[Tensor, "files ..."]) -> Mean:
    """Mean over the first axis, and its standard error, s/√n with s² divided by n − 1. ``ValueError`` for fewer than two.

    >>> over_files(torch.tensor([1.0, 3.0]))
    Mean(mean=tensor(2., dtype=torch.float64), error=tensor(1., dtype=torch.float64))
    """
    checks.floating("values", values)
    if values.ndim == 0 or len(values) < 2:
        raise ValueError(
            f"values must be of two files at least, got shape {tuple(values.shape)}"
        )
    values = values.double()
    return Mean(values.mean(0), values.std(0) / math.sqrt(len(values)))


def paired(a: Float[Tensor, " *files"], b: Float[Tensor, " *files"]) -> Mean:
    """The mean of a − b over files, (files, …) each, and its standard error: of the differences, file by file.

    >>> paired(torch.tensor([2.0, 5.0]), torch.tensor([1.0, 4.0]))
    Mean(mean=tensor(1., dtype=torch.float64), error=tensor(0., dtype=torch.float64))
    """
    if checks.floating("a", a).shape != checks.floating("b", b).shape:
        raise ValueError(
            f"a and b must be of the same files, got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    return over_files(a.double() - b.double())


def band_means(
    bits: Float[Tensor, "files bytes"], bands: Sequence[tuple[int, int]]
) -> Float[Tensor, "files bands"]:
    """Means over bands of positions, bits (files, T) to (files, bands); NaN for a band that the text does not fill."""
    return torch.stack(
        [
            bits[:, start:stop].mean(1)
            if stop <= bits.shape[1]
            else bits.new_full((len(bits),), math.nan)
            for start, stop in bands
        ],
        1,
    )


def for_json(values: Tensor | list | float) -> list | float | None:
    """Numbers for JSON, five digits behind the point, None for NaN.

    >>> for_json(torch.tensor([[1 / 3, math.nan]])), for_json(-0.0)
    ([[0.33333, None]], 0.0)
    """
    if isinstance(values, Tensor):
        values = values.tolist()
    if isinstance(values, list):
        return [for_json(value) for value in values]
    # + 0.0: no −0
    return None if math.isnan(values) else round(values, 5) + 0.0
