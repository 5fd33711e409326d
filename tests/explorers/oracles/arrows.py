"""Reference values for the Arrows explorer, computed in float64 with the book's modules."""

from __future__ import annotations

import math
from typing import Any

import torch

from ropebook.derivation import rotate, score
from ropebook.explorers.arrows import KEY, QUERY
from ropebook.sinusoidal import angles


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``theta`` is the pair's frequency in radians per token; ``query`` and ``key`` are coordinates at their positions;
    ``between`` is the angle between the two, from 0 to π; ``score`` is their score; and ``distance`` is m − n.

    >>> from ropebook.explorers.arrows import Arrows
    >>> here, there = compute(Arrows(m=9, n=4).dials()), compute(Arrows(m=23, n=18).dials())
    >>> round(here["score"] - there["score"], 12), here["query"] == there["query"]
    (0.0, False)
    """
    m, n, base, dim, pair = (dials[name] for name in ("m", "n", "base", "dim", "pair"))
    both = slice(2 * pair, 2 * pair + 2)
    q, k = torch.zeros(2, dim, dtype=torch.float64)
    q[both], k[both] = (torch.tensor(one, dtype=torch.float64) for one in (QUERY, KEY))
    query, key = rotate(q, m, base)[both], rotate(k, n, base)[both]
    return {
        "theta": angles(1, dim, base)[pair].item(),
        "query": query.tolist(),
        "key": key.tolist(),
        "between": (torch.view_as_complex(query) * torch.view_as_complex(key).conj()).angle().abs().item(),
        "score": score(q, k, m, n, base).item(),
        "distance": m - n,
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A coordinate is no larger than the length of its arrow, and the score is no larger than the product of both lengths.
    """
    query, key = math.hypot(*QUERY), math.hypot(*KEY)
    return {"theta": 1.0, "query": query, "key": key, "between": math.pi, "score": query * key, "distance": 0.0}
