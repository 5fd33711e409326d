"""Explorer for the page about the heads of the published model. It shows a map of all heads. For the
chosen head, it shows which pairs are long and how far back the head looks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import torch
import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Whole
from ropebook.real import published, rule, stored, texts
from ropebook.real.heads import HeadMap

LAYERS, HEADS = 30, 9
BAND = (rule.BAND[0], rule.BAND[-1])
"""The first and the last of the pairs that are shaded."""
EDGES = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""A head's weights are summed up between neighbouring distances in this list. The first token is left out and has its
own entry."""
NATS = round(100 * torch.tensor(1024.0).log().item())
"""The largest entropy, in hundredths of a nat: 1,024 keys with equal weights."""
WEIGHTS = published.STORED
MEASURES = {
    "first": "first token",
    "previous": "previous token",
    "entropy": "entropy",
}


class Heads(Explorer):
    """All heads of SmolLM2-135M, coloured by what they attend to, and the pairs and distances that one of them uses.

    Invalid values raise ``TraitError``. ``FileNotFoundError`` is raised if there are no results for the model.

    Args:
        measure: what the colours show. "first" and "previous": the attention weight on the first token of the text, or
            on the token before the query. "entropy": how widely the weight is spread.
        layer: 1 to 30.
        head: 1 to 9.
    """

    script = "heads.js"
    colours = meaning(
        blue="more weight, or a wider spread",
        orange="broken: pairs 22–26, beyond the trained length",
    )

    measure = Choice(
        MEASURES,
        label="Colours show",
        note="Weight on a token, or how widely the weight is spread.",
    )
    layer = Whole(
        12,
        min=1,
        max=LAYERS,
        label="Layer",
        below="layers are counted from 1",
        above="the model has 30 layers",
        note="Counted from the input.",
    )
    head = Whole(
        5,
        min=1,
        max=HEADS,
        label="Head",
        below="heads are counted from 1",
        above="a layer has nine heads",
        note="The order within a layer means nothing.",
    )
    found = traitlets.Dict(help="the numbers, see load").tag(sync=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(found=load(), **kwargs)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A map of the 270 heads of a published model, with a column for each layer and a row for each head. "
            "Bluer cells mean that a head gives more attention to the chosen token, or spreads its attention more "
            "widely. Below, two bar charts for one head show each pair's share of the lengths of queries and keys, "
            "and the attention weight at each distance."
        )

    def dials(self) -> dict[str, Any]:
        """Return the current values of the dials. The entry ``found`` contains the numbers from which the figure is
        computed."""
        return {**super().dials(), "found": self.found}


def load() -> Mapping[str, Any]:
    """Load the numbers that the page contains. All are whole numbers, to keep the page small.

    Each list has an entry for every head, layer by layer. ``shares`` has the share of each pair in the product of the
    lengths of queries and keys, and ``weights`` has the attention weight on the first token and then in each bin of
    `EDGES`. They are means over the four texts, in thousandths. For each measure, ``mean``, ``low`` and ``high`` give
    its mean, its smallest and its largest value over the texts, in thousandths or hundredths of a nat.
    ``FileNotFoundError`` is raised if any of these were not measured.
    """
    maps = [stored.heads(text.name) for text in texts.EXPLORATION]
    shares = torch.stack([one.share() for one in maps]).mean(0)
    weights = torch.stack([_summed(one) for one in maps]).mean(0)
    found: dict[str, Any] = {
        "shares": _whole(shares.flatten(0, 1), 1000),
        "weights": _whole(weights.flatten(0, 1), 1000),
    }
    for name in MEASURES:
        each = torch.stack([getattr(one, name) for one in maps]).flatten(1)
        unit = 100 if name == "entropy" else 1000
        sides = {"mean": each.mean(0), "low": each.amin(0), "high": each.amax(0)}
        found[name] = {side: _whole(one, unit) for side, one in sides.items()}
    return found


def _summed(one: HeadMap) -> torch.Tensor:
    """Return the weight of each head on the first token, followed by the weight in each bin of `EDGES`."""
    ends = [one.edges.index(edge) for edge in EDGES]
    bins = [one.by_distance[..., a:b].sum(-1) for a, b in pairwise(ends)]
    return torch.stack([one.first, *bins], -1)


def _whole(values: torch.Tensor, unit: int) -> list:
    return (values * unit).round().int().tolist()
