"""Reference values for the Alive explorer: the numbers that it computes without its model, and those that it takes from
the model's result."""

from __future__ import annotations

from typing import Any

import torch

from ropebook import extrapolation
from ropebook.explorers.alive import HEAD_DIM, TRAINED, text_of
from ropebook.lab.longer import method_options
from ropebook.lab.reading import WITH_FACTOR
from ropebook.rope import inv_freq

ASKED = ("text", "own", "length", "method", "factor", "base")


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``bytes`` is the text for the model to read. ``theta`` is in radians per position, and ``scale`` is a factor on each
    query's scores. At distances of ``window`` and beyond, queries and keys are rotated to the positions ``farQuery``
    and ``farKey``; a ``window`` of 0 means that this never happens. ``fresh`` says whether the result belongs to the
    current dial settings.

    The other entries come from the result: the bytes that were read (``shown``), the ``bits`` of each byte except the
    first, the same values for the unmodified model (``plain``), the ``chosen`` byte, the byte for which the model
    was asked (``looked``), the head's attention weights at that byte (``row``), and the ``means`` of ``bits`` and of
    ``plain``.
    """
    read = list(text_of(dials["text"], dials["own"], dials["length"]))
    places = torch.arange(len(read) - 1)
    theta, scale = inv_freq(HEAD_DIM, dials["base"]), torch.ones(len(places), dtype=torch.float64)
    far = {"window": 0, "farQuery": [], "farKey": []}
    if dials["method"] != "none":
        factor = dials["factor"] if dials["method"] in WITH_FACTOR else None
        method = extrapolation.make(dials["method"], **method_options(dials["method"], factor, TRAINED))
        if method.acts_on == "frequencies":
            theta, on_both = method(theta, len(places))
            scale = scale * on_both**2
        elif method.acts_on == "queries":
            scale = method.query_scale(places)
        else:
            query, key = method.far_positions(places.double(), places.double())
            far = {"window": method.window, "farQuery": query.tolist(), "farKey": key.tolist()}
    result = dials["result"]
    at = result["at"]
    shown = list(text_of(at["text"], at["own"], at["length"]))
    return {
        "bytes": read,
        "theta": theta.tolist(),
        "scale": scale.tolist(),
        **far,
        "fresh": all(dials[name] == at[name] for name in ASKED),
        "shown": shown,
        "bits": result["bits"],
        "plain": result["plain"],
        "chosen": min(dials["byte"], len(shown) - 1),
        "looked": min(at["byte"], len(shown) - 1),
        "row": result["row"],
        "means": [means(result["bits"]), means(result["plain"])],
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    Frequencies, factors and means are compared relative to their own size. All other entries must be equal.
    """
    data = compute(dials)
    return {"theta": data["theta"], "scale": data["scale"], "means": data["means"]}


def means(bits: list[float]) -> list[float]:
    """Return the mean of the bits within L and, if the text is longer than L, the mean of those beyond it."""
    return [sum(part) / len(part) for part in (bits[:TRAINED], bits[TRAINED:]) if part]
