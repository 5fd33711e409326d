"""Reference values for the Pairing explorer, computed in float64 with the book's modules."""

from __future__ import annotations

from typing import Any

import torch

from ropebook.derivation import pairs, rotate
from ropebook.efficient import interleaved_to_half
from ropebook.explorers.pairing import BASE, MOST_POSITION
from tests.explorers.draws import normals


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    The data say which channel is at each index of q and of k, list the numbers at these indices, and say which indices
    the rotation treats as pairs. There is a score for the key at each position from 0 to 64, and one for the key
    at n. Each of them comes with its reference, the score if q, k and the pairs are interleaved.

    >>> from ropebook.explorers.pairing import Pairing
    >>> figure = Pairing(permute_q=True, permute_k=True, pairing="half")
    >>> data = compute(figure.dials())
    >>> abs(data["score"] - data["reference"]) < 1e-12
    True
    """
    q, k = vectors(dials["dim"])
    places = [places_of(dials, name) for name in ("permute_q", "permute_k")]
    stored = [vector[order] for vector, order in zip((q, k), places, strict=True)]
    scores = scores_of(*stored, dials["m"], dials["pairing"])
    references = scores_of(q, k, dials["m"], "interleaved")
    return {
        "qChannels": places[0].tolist(),
        "kChannels": places[1].tolist(),
        "q": stored[0].tolist(),
        "k": stored[1].tolist(),
        "links": pairs(dials["dim"], dials["pairing"]).tolist(),
        "scores": scores.tolist(),
        "references": references.tolist(),
        "score": scores[dials["n"]].item(),
        "reference": references[dials["n"]].item(),
        "difference": (scores - references).abs().max().item(),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A score has dim terms, whose absolute values add up to at most |q| |k|.
    """
    q, k = vectors(dials["dim"])
    data = compute(dials)
    largest = (q.norm() * k.norm()).item()
    exact = ("qChannels", "kChannels", "links")
    vectors_ = {name: [abs(one) for one in data[name]] for name in "qk"}
    return {name: 0.0 if name in exact else vectors_.get(name, largest) for name in data}


def vectors(dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the query and the key in the interleaved layout, each (dim,) in float64."""
    return tuple(torch.from_numpy(normals(f"pairing {name}", dim)) for name in "qk")


def places_of(dials: dict[str, Any], permute: str) -> torch.Tensor:
    """Return the channel at each index of a vector, where ``permute`` names the switch that permutes this vector."""
    if dials[permute]:
        return interleaved_to_half(dials["dim"])
    return torch.arange(dials["dim"])


def scores_of(q: torch.Tensor, k: torch.Tensor, m: int, layout: str) -> torch.Tensor:
    """Return the scores of q at position m with k at each position from 0 to 64: (65,)."""
    keys = rotate(k, torch.arange(MOST_POSITION + 1), BASE, layout)
    return keys @ rotate(q, m, BASE, layout)
