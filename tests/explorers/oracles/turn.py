"""Reference values for the Turn explorer, computed in float64 with the book's modules."""

from __future__ import annotations

import math
from typing import Any

import torch

from ropebook.derivation import rotate, rotation
from ropebook.explorers.turn import FINE, SPAN, TRAIL
from ropebook.sinusoidal import angles


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``angles`` are the angles of all pairs at ``position``; ``start`` and ``turned`` are the vector at position 0 and at
    ``position``. The other entries describe the chosen pair: the rotation ``matrix``, row by row; the pair's length
    ``before`` and ``after`` the rotation; its directions at the latest positions, beginning at ``trailStart``
    (``trail``: x, y, x, y, …); and its two coordinates near the position, beginning at ``first``, with 8 samples per
    position (``waves``). ``young`` is the number of pairs that haven't completed a turn.

    >>> from ropebook.explorers.turn import Turn
    >>> figure = Turn(dim=4, position=2, pair=0)  # the chapter's example by hand
    >>> [round(x, 4) for x in compute(figure.dials())["turned"]]
    [-2.2347, 0.077, 2.9194, 4.0592]
    """
    position, base, dim, pair = (dials[name] for name in ("position", "base", "dim", "pair"))
    start = vector(dim)
    turned = rotate(start, position, base)
    radians = angles(position, dim, base)
    both = slice(2 * pair, 2 * pair + 2)
    first, at = window(position)
    trail_start = max(0, position - TRAIL + 1)
    return {
        "angles": radians.tolist(),
        "young": int((radians < 2 * math.pi).sum()),
        "start": start.tolist(),
        "turned": turned.tolist(),
        "matrix": rotation(radians[pair]).flatten().tolist(),
        "before": start[both].norm().item(),
        "after": turned[both].norm().item(),
        "trailStart": trail_start,
        "trail": rotate(start, torch.arange(trail_start, position + 1), base)[:, both].flatten().tolist(),
        "first": first,
        "waves": rotate(start, at, base)[:, both].T.tolist(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A rotated coordinate has two terms, neither of which is larger than the length of the pair. Integers must be equal.
    """
    data = compute(dials)
    length = data["before"]
    exact = dict.fromkeys(("young", "trailStart", "first"), 0.0)
    pairs = vector(dials["dim"]).view(-1, 2).norm(dim=-1)
    return {
        "angles": data["angles"],
        "start": data["start"],
        "turned": pairs.repeat_interleave(2).tolist(),
        "matrix": [1.0] * 4,
        "before": length,
        "after": length,
        "trail": length,
        "waves": length,
        **exact,
    }


def vector(dim: int) -> torch.Tensor:
    """Return the vector that is rotated, q = (1, 2, 3, …, dim), in float64.

    >>> vector(4)
    tensor([1., 2., 3., 4.], dtype=torch.float64)
    """
    return torch.arange(1, dim + 1, dtype=torch.float64)


def window(position: int) -> tuple[int, torch.Tensor]:
    """Return the first position that the curves show, and the positions at which they are sampled, (SPAN · FINE + 1,)
    in float64.

    >>> window(100)[0], window(100)[1][[0, -1]].tolist()
    (76, [76.0, 124.0])
    """
    first = max(0, position - SPAN // 2)
    return first, first + torch.arange(SPAN * FINE + 1, dtype=torch.float64) / FINE
