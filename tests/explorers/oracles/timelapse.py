"""Reference values for the Timelapse explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import torch

from ropebook.explorers.timelapse import MOST_KEYS
from ropebook.extrapolation import DynamicNTK, ntk_base
from ropebook.sinusoidal import inv_freq


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``scale`` is dynamic NTK's effective scale at ``length``, and ``bases`` has the base with which each token was
    rotated. ``keys`` are the sampled positions. ``errors`` has one entry for each of these keys: the root mean square
    error of its score with the last query, for random q and k, in units of the score's standard deviation. It ranges
    from 0 to 2, and would be √2 for two unrelated scores. ``error`` is the root mean square of all entries.

    >>> from ropebook.explorers.timelapse import Timelapse
    >>> figure = Timelapse(length=64, trained_length=64)
    >>> max(compute(figure.dials())["errors"])
    0.0
    >>> figure.length = 160
    >>> round(compute(figure.dials())["scale"], 2)
    2.5
    """
    base, dim, length = dials["base"], dials["dim"], dials["length"]
    method = DynamicNTK(dials["trained_length"], dials["factor"])
    scales = [method.effective_scale(n) for n in range(1, length + 1)]
    keys = sampled_keys(length)
    errors = 2 * (angle_errors(keys, dials) / 2).sin()
    errors = errors.square().mean(-1).sqrt()
    return {
        "scale": scales[-1],
        "bases": [ntk_base(base, dim, scale) for scale in scales],
        "keys": keys,
        "errors": errors.tolist(),
        "error": errors.square().mean().sqrt().item(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    An error is the difference between two scores, and each of them has a standard deviation of 1.
    """
    data = compute(dials)
    return {
        "scale": data["scale"],
        "bases": data["bases"],
        "keys": 0.0,
        "errors": [1.0] * len(data["errors"]),
        "error": 1.0,
    }


def sampled_keys(length: int) -> list[int]:
    """Return the positions 0 … length − 1 or, if there are more than 256, a sample of 256 including the first and the
    last.

    >>> sampled_keys(3), sampled_keys(511)[:3], len(sampled_keys(511)), sampled_keys(511)[-1]
    ([0, 1, 2], [0, 2, 4], 256, 510)
    """
    count = min(length, MOST_KEYS)
    return [k * (length - 1) // max(1, count - 1) for k in range(count)]


def angle_errors(keys: list[int], dials: dict[str, Any]) -> torch.Tensor:
    """Return n(θ_i(n) − θ_i(now)), the angle by which each pair of each cached key is rotated too far: (keys, dim/2) in
    float64, in radians."""
    theta = inv_freq(dials["dim"], dials["base"])
    method = DynamicNTK(dials["trained_length"], dials["factor"])
    now, _ = method(theta, dials["length"])
    came = torch.stack([method(theta, key + 1)[0] for key in keys])
    return torch.tensor(keys, dtype=torch.float64)[:, None] * (came - now)
