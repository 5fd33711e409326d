"""What the explorer Saturation shows, computed from the book\'s modules, in float64."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ropebook.attention import attention_weights, softmax_gradient_norm
from ropebook.explorers.saturation import DRAWS, MEAN_DIMS, MOST_DIMS, MOST_KEYS
from tests.explorers.draws import normals


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Scores, weights, gradient norm and entropy at ``dim``; weights and gradient norm of this draw at every dim;
    the gradient norm's mean over all draws."""
    dim, n_keys = dials["dim"], dials["n_keys"]
    draw, scaled = dials["draw"], dials["scaled"]
    query, keys = (table[draw] for table in vectors())
    scores = keys[:n_keys, :dim] @ query[:dim]
    every = weights(n_keys, [draw], list(range(1, MOST_DIMS + 1)), scaled)[0]
    gradient = softmax_gradient_norm(every)
    draws = list(range(DRAWS))
    mean = {on: softmax_gradient_norm(weights(n_keys, draws, MEAN_DIMS, on)).mean(0) for on in (True, False)}
    return {
        "scores": (scores / math.sqrt(dim) if scaled else scores).tolist(),
        "weights": every[dim - 1].tolist(),
        "gradient": gradient[dim - 1].item(),
        "entropy": torch.special.entr(every[dim - 1]).sum().item(),
        "everyDim": every.tolist(),
        "everyGradient": gradient.tolist(),
        "meanDims": MEAN_DIMS,
        "meanScaled": mean[True].tolist(),
        "meanRaw": mean[False].tolist(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """A score is a sum of products; weights are shares of 1; the gradient's norm and the entropy are compared with
    their greatest values."""
    dim, draw = dials["dim"], dials["draw"]
    query, keys = (table[draw, ..., :dim] for table in vectors())
    products = (keys[: dials["n_keys"]] * query).abs().sum(-1)
    scale = 1 / math.sqrt(dim) if dials["scaled"] else 1.0
    return {
        "scores": (products * scale).tolist(),
        "weights": 1.0,
        "gradient": 0.5,
        "entropy": math.log(dials["n_keys"]),
        "everyDim": 1.0,
        "everyGradient": 0.5,
        "meanDims": 0.0,
        "meanScaled": 0.5,
        "meanRaw": 0.5,
    }


@cache
def vectors() -> tuple[Tensor, Tensor]:
    """Queries (16, 512) and keys (16, 32, 512) of every draw: standard normal, float64; shorter vectors are their
    beginnings."""
    queries = [normals(f"query {draw}", MOST_DIMS) for draw in range(DRAWS)]
    keys = [[normals(f"key {draw} {n}", MOST_DIMS) for n in range(MOST_KEYS)] for draw in range(DRAWS)]
    return torch.from_numpy(np.array(queries)), torch.from_numpy(np.array(keys))


def weights(n_keys: int, draws: list[int], dims: list[int], scaled: bool) -> Tensor:
    """Softmax weights (draws, dims, n_keys): query and keys cut to their first d numbers, for each d in ``dims``."""
    query, keys = (table[draws] for table in vectors())
    within = torch.arange(MOST_DIMS) < torch.tensor(dims).unsqueeze(-1)
    queries = query.unsqueeze(-2) * within  # zeros beyond d: (draws, dims, 512)
    if scaled:
        queries = queries / torch.tensor(dims, dtype=torch.float64).sqrt()[:, None]
    return attention_weights(queries, keys[:, :n_keys], scale=1.0)
