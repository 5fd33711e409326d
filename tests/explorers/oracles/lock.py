"""Reference values for the Lock explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import torch

from ropebook.derivation import rotate, score
from ropebook.explorers.lock import SHIFTS
from ropebook.sinusoidal import encoding
from tests.explorers import draws


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    Both scores, summed over all pairs, are given at the shift (``rope``, ``added``), without a shift (``ropeHome``,
    ``addedHome``), and at every shift (``ropeCurve``, ``addedCurve``). For the chosen pair, x and y of
    the query and x and y of the key are given before the rotation (``bare``), after it (``turned``), and after adding
    the encoding instead of rotating (``summed``).

    >>> from ropebook.explorers.lock import Lock
    >>> figure = Lock(m=7, n=3)
    >>> before = compute(figure.dials())["rope"]
    >>> figure.shift = 100
    >>> abs(compute(figure.dials())["rope"] - before) < 1e-12
    True
    """
    m, n, shift, base, dim, pair = (dials[name] for name in ("m", "n", "shift", "base", "dim", "pair"))
    q, k = vectors(dials)
    shifts = torch.arange(SHIFTS)
    rope = score(q, k, m + shifts, n + shifts, base)
    at_m, at_n = (encoding(position + shifts, dim, base, torch.float64) for position in (m, n))
    added = ((q + at_m) * (k + at_n)).sum(-1)
    both = slice(2 * pair, 2 * pair + 2)
    turned = [
        rotate(q, m + shift, base)[both],
        rotate(k, n + shift, base)[both],
    ]
    summed = [(q + at_m[shift])[both], (k + at_n[shift])[both]]
    return {
        "rope": rope[shift].item(),
        "ropeHome": rope[0].item(),
        "added": added[shift].item(),
        "addedHome": added[0].item(),
        "ropeCurve": rope.tolist(),
        "addedCurve": added.tolist(),
        "bare": [*q[both].tolist(), *k[both].tolist()],
        "turned": torch.cat(turned).tolist(),
        "summed": torch.cat(summed).tolist(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A score has four products per pair. Each is no larger than the product of the lengths of the query's pair and the
    key's pair.
    """
    q, k = (x.view(-1, 2).norm(dim=-1) for x in vectors(dials))
    pair = dials["pair"]
    rope, added = q * k, (q + 1) * (k + 1)  # a pair of the encoding has length 1
    longest = max(q[pair], k[pair]).item() + 1
    return {
        **dict.fromkeys(("rope", "ropeHome", "ropeCurve"), rope.sum().item()),
        **dict.fromkeys(("added", "addedHome", "addedCurve"), added.sum().item()),
        **dict.fromkeys(("bare", "turned", "summed"), longest),
    }


def vectors(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the query and the key of a draw: standard normal numbers, each (dim,) in float64."""
    return tuple(
        torch.from_numpy(draws.normals(f"lock {name} {dials['draw']}", dials["dim"])) for name in ("query", "key")
    )
