"""Reference values for the Distance explorer, computed in float64 with the book's modules."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from ropebook.complex_plane import amplitudes, score_at
from ropebook.explorers.distance import (
    CLOSE,
    MOST_COLUMNS,
    MOST_SAMPLES,
    NEAR,
    SPOTS,
)
from tests.explorers.draws import normals


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``low`` and ``high`` are the smallest and the largest score in each column of ``per`` keys. If ``per`` is 1, every
    score is included. Otherwise only the scores of the `sampled_keys` are included: all keys nearer to the query than
    ``reach``, and some of the others.

    The following entries are derived from these scores: ``least`` and its key ``leastAt`` (if several keys tie, the one
    nearest to the query); ``negativeAt``, the key nearest to the query with a score below 0, or −1 if there is none;
    and the number of local ``maxima``, or −1 if scores were sampled. ``home`` is the score at the query's own position.
    ``swing`` is √(½ Σ|h_i|²), the root mean square of the score at distances so large that the angles of all pairs are
    effectively random.

    >>> from ropebook.explorers.distance import Distance
    >>> figure = Distance(dim=256, query=0, length=512)
    >>> data = compute(figure.dials())
    >>> round(data["least"], 1), data["leastAt"], data["negativeAt"]
    (49.7, 509, -1)
    """
    a, b = waves_of(dials)
    query, length = dials["query"], dials["length"]
    keys, per, reach = sampled_keys(query, length)
    scores = score_at(query - keys, a, b, dials["base"])
    columns = torch.full((math.ceil(length / per),), math.nan, dtype=torch.float64)
    low, high = (columns.scatter_reduce(0, keys // per, scores, kind, include_self=False) for kind in ("amin", "amax"))
    size = torch.hypot(a, b)
    lowest = scores <= scores.min() + 1e-9 * size.sum()
    rises = low.diff() > 0
    return {
        "per": per,
        "reach": reach,
        "low": low.tolist(),
        "high": high.tolist(),
        "home": a.sum().item(),
        "least": scores.min().item(),
        "leastAt": nearest(keys[lowest], query),
        "negativeAt": nearest(keys[scores < 0], query),
        "maxima": int((rises[:-1] & ~rises[1:]).sum()) if per == 1 else -1,
        "swing": (size.square().sum() / 2).sqrt().item(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A score is a sum of d/2 waves with amplitudes |h_i|. Positions and the number of maxima must be equal.
    """
    data = compute(dials)
    size = torch.hypot(*waves_of(dials)).sum().item()
    sums = {name: np.full(np.shape(data[name]), size).tolist() for name in ("low", "high", "home", "least")}
    return {**dict.fromkeys(data, 0.0), **sums, "swing": data["swing"]}


def vectors_of(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the query and the key, each (dim,) in float64."""
    dim, draw = dials["dim"], dials["draw"]
    if dials["vectors"] in ("same", "random"):
        q, k = (torch.from_numpy(normals(f"distance {name} {draw}", dim)) for name in ("query", "key"))
        return q, q if dials["vectors"] == "same" else k
    q = torch.ones(dim, dtype=torch.float64)
    if dials["vectors"] == "slow":
        q[: dim // 4 * 2] = 0
    return q, q


def waves_of(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the score's amplitudes a_i and b_i, each (dim/2,) in float64."""
    return amplitudes(*vectors_of(dials))


def sampled_keys(query: int, length: int) -> tuple[torch.Tensor, int, int]:
    """Return the positions of the sampled keys, (samples,) int64; the number of positions per column of the picture;
    and the distance below which every key is included.

    In texts of up to 4096 tokens, every key is sampled. In longer texts, the sample consists of the 3072 keys nearest
    to the query and eight keys in each column, at `CLOSE` and `SPOTS`.

    >>> keys, per, reach = sampled_keys(0, 65536)
    >>> per, reach, keys[3072:3075].tolist()
    (128, 3072, [0, 2, 4])
    """
    if length <= MOST_SAMPLES:
        return torch.arange(length), 1, length
    first = min(max(0, query - NEAR // 2), length - NEAR)
    near = torch.arange(first, first + NEAR)
    left = query - first + 1 if first > 0 else length
    right = first + NEAR - query if first + NEAR < length else length
    per = math.ceil(length / MOST_COLUMNS)
    offsets = torch.tensor([*CLOSE, *(math.floor(per * spot) for spot in SPOTS)])
    far = (torch.arange(0, length, per)[:, None] + offsets).ravel()
    return torch.cat((near, far[far < length])), per, min(left, right)


def nearest(keys: torch.Tensor, query: int) -> int:
    """Return the key nearest to the query. If two are equally near, return the earlier one; if there are none, return
    −1.

    >>> nearest(torch.tensor([9, 1, 20]), 5)
    1
    """
    if not len(keys):
        return -1
    return min(keys.tolist(), key=lambda key: (abs(key - query), key))
