"""Exercises on the implementation: rotate as given weights require, and convert weights to the other layout."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import efficient
from ropebook.exercises.marking import Chosen, Rotation, Written, random

ROTATION = Rotation(
    "half",
    500_000.0,
    "these weights will speak.",
    hints={
        "other_layout": "This is a proper rotation, but for different weights. It is the most common mistake of all.",
        "other_base": "The weights need the right base as well.",
    },
)


def _convert(weight: Tensor, n_heads: int, to: str) -> Tensor:
    return efficient.convert_weight(
        weight, n_heads, weight.shape[0] // n_heads, to=to
    )


def _columns(weight: Tensor, n_heads: int) -> Tensor:
    order = efficient.interleaved_to_half(weight.shape[1])
    return weight[:, order]


CONVERSION = Written(
    lambda weight, n: _convert(weight, n, "half"),
    {
        "other_way": (
            lambda weight, n: _convert(weight, n, "interleaved"),
            "this goes the other way, from half-split to interleaved.",
        ),
        "one_head": (
            lambda weight, n: _convert(weight, 1, "half"),
            "all rows are ordered as if they were one head, so pairs are torn apart. Go head by head.",
        ),
        "columns": (_columns, "columns are reordered: these are inputs. The outputs are the rows."),
        "unchanged": (lambda weight, n: weight, "nothing is reordered."),
        "transposed": (
            lambda weight, n: _convert(weight, n, "half").mT,
            "it comes back transposed.",
        ),
        "heads_mixed": (
            lambda weight, n: weight.unflatten(0, (-1, n)).transpose(0, 1).flatten(0, 1),
            "this deals out rows to the heads in turn, but the rows of a head are neighbours.",
        ),
    },
    [(random(24, 8, seed=1), 3), (random(16, 16, seed=2), 2)],
    "within each head, the first entries of all pairs come first, and then the second entries.",
)  # fmt: skip


def planted(
    q: Tensor, k: Tensor, cache: list[Tensor], base: float = 10000.0
) -> Tensor:
    """Perform one step of generation. One of the lines contains a mistake.

    q and k, (T, d), belong to the new tokens, and ``cache`` contains the keys of earlier tokens.
    """
    d, new = q.shape[-1], q.shape[-2]
    theta = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    positions = torch.arange(new)
    cos, sin = efficient.cos_sin(positions, theta)
    q, k = (efficient.apply_rotary(x, cos, sin, layout="half") for x in (q, k))
    cache.append(k)
    return q @ torch.cat(cache).mT


BUG = Chosen(
    "positions",
    {
        "theta": "this line is right. The exponent is −2i/d, in float64.",
        "positions": "new tokens start at 0 each time. They should start where the cache ends: "
        "this works for the prompt, but breaks with the first token after it.",
        "cos, sin": "this line is right. It computes in float64 and returns float32.",
        "q, k": "this line is right. Both are rotated, in the same layout.",
        "cache": "this line is right, as long as the frequencies stay the same: it stores the keys after they are rotated.",
    },
)
