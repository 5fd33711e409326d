"""Reference values for the Saturation explorer, computed in float64 with the book's modules."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ropebook.attention import attention_weights, softmax_gradient_norm
from ropebook.explorers.saturation import DRAWS, MEDIAN_DIMS, MOST_DIMS, MOST_KEYS
from tests.explorers.draws import normals


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    The scores, the weights and the norm of ∂weights/∂(q·k) are those of the chosen draw at ``dim``. The norm's median
    over all draws is given at some dims.
    """
    dim, n_keys = dials["dim"], dials["n_keys"]
    draw, scaled = dials["draw"], dials["scaled"]
    query, keys = (table[draw] for table in vectors())
    scores = keys[:n_keys, :dim] @ query[:dim]
    shares = weights(n_keys, [draw], [dim], scaled)[0]
    draws = list(range(DRAWS))
    median = {
        on: gradients(weights(n_keys, draws, MEDIAN_DIMS, on), MEDIAN_DIMS, on).quantile(0.5, dim=0)
        for on in (True, False)
    }
    return {
        "scores": (scores / math.sqrt(dim) if scaled else scores).tolist(),
        "weights": shares[0].tolist(),
        "gradient": gradients(shares, [dim], scaled)[0].item(),
        "medianDims": MEDIAN_DIMS,
        "medianScaled": median[True].tolist(),
        "medianRaw": median[False].tolist(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A score is a sum of products, and weights add up to 1. The gradient's norm is compared relative to its largest
    possible value.
    """
    dim, draw = dials["dim"], dials["draw"]
    query, keys = (table[draw, ..., :dim] for table in vectors())
    products = (keys[: dials["n_keys"]] * query).abs().sum(-1)
    scale = 1 / math.sqrt(dim) if dials["scaled"] else 1.0
    return {
        "scores": (products * scale).tolist(),
        "weights": 1.0,
        "gradient": 0.5,
        "medianDims": 0.0,
        "medianScaled": 0.5,
        "medianRaw": 0.5,
    }


@cache
def vectors() -> tuple[Tensor, Tensor]:
    """Return the queries, (16, 512), and the keys, (16, 32, 512), of all draws: standard normal numbers in float64.

    At a smaller dim, the figure uses the first dim entries of each vector.
    """
    queries = [normals(f"query {draw}", MOST_DIMS) for draw in range(DRAWS)]
    keys = [[normals(f"key {draw} {n}", MOST_DIMS) for n in range(MOST_KEYS)] for draw in range(DRAWS)]
    return torch.from_numpy(np.array(queries)), torch.from_numpy(np.array(keys))


def weights(n_keys: int, draws: list[int], dims: list[int], scaled: bool) -> Tensor:
    """Return the softmax weights, (draws, dims, n_keys), with query and key truncated to their first d numbers for each
    d in ``dims``."""
    query, keys = (table[draws] for table in vectors())
    within = torch.arange(MOST_DIMS) < torch.tensor(dims).unsqueeze(-1)
    queries = query.unsqueeze(-2) * within  # zero beyond d: (draws, dims, 512)
    if scaled:
        queries = queries / torch.tensor(dims, dtype=torch.float64).sqrt()[:, None]
    return attention_weights(queries, keys[:, :n_keys], scale=1.0)


def gradients(weights: Tensor, dims: list[int], scaled: bool) -> Tensor:
    """Return the norm of ∂weights/∂(q·k), (draws, dims): the norm of the derivative with respect to the scores, times
    the factor by which q·k is scaled."""
    factor = torch.tensor(dims, dtype=torch.float64).rsqrt() if scaled else 1.0
    return softmax_gradient_norm(weights) * factor
