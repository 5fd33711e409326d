"""Explorer for the chapter about the published model. It shows how the model's scores depend on distance alone, and
how slowing down some pairs changes this dependence and the measured losses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import traitlets

from ropebook import results
from ropebook.colours import meaning
from ropebook.explorers import Explorer, Whole
from ropebook.explorers.kit import dials
from ropebook.real import published, rule, stored

PAIRS = 32
REACH = 16_384
"""The largest distance that is shown."""
STEP = 64
"""The distance between neighbouring points on a curve."""
WITHIN, BEYOND = map(list, (rule.WITHIN, rule.BEYOND))
"""The ranges of positions over which the two losses in the readouts are averaged."""
TRAINED = WITHIN[1]
BLOCK = 1024
"""Each loss in the figure is the mean of so many tokens."""
FACTORS = (1.5, 2.0, 3.0)
"""The factors with which losses were measured."""
WEIGHTS = published.STORED


class Penalty(Explorer):
    """The mean score over all heads of SmolLM2-135M at each distance, with the pairs from ``first`` to ``last`` slowed
    down.

    Invalid values raise ``TraitError``. ``FileNotFoundError`` is raised if there are no results for the model.

    Args:
        first, last: the ends of the band of pairs, 0 to 31. Both are included, and either may be the larger one.
        factor: by how much the pairs are slowed down, 1 to 8.
        distance: the distance whose values the figure shows, 0 to 16,384.
    """

    script = "penalty.js"
    colours = meaning(
        blue="score and loss with slower pairs",
        orange="new: what is beyond the trained length begins here",
    )

    first = Whole(
        22,
        min=0,
        max=PAIRS - 1,
        label="First slowed pair",
        below="pairs are counted from 0, the fastest",
        above="a head of this model has 32 pairs",
        note="Pairs from here to the last one are slowed down.",
    )
    last = Whole(
        26,
        min=0,
        max=PAIRS - 1,
        label="Last slowed pair",
        below="pairs are counted from 0, the fastest",
        above="a head of this model has 32 pairs",
        note="Pairs from the first one to here are slowed down.",
    )
    factor = dials.factor(
        2.0,
        max=8,
        label="Slowed by",
        below="pairs would turn faster than in training",
        above="eight times slower, pairs would hardly turn",
        note="Their frequencies are divided by this. Losses were measured at the marks.",
        stops=FACTORS,
    )
    distance = Whole(
        12_288,
        min=0,
        max=REACH,
        label="Distance Δ",
        below="a key can't be nearer than the query itself",
        above="the picture ends at twice the trained length",
        note="The values are read here.",
        unit="tokens",
        more=True,
    )
    bias = traitlets.Dict(help="the numbers, see load").tag(sync=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(bias=load(), **kwargs)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Two curves of the mean score of all heads of a published model, against the distance between query and "
            "key. In the original model, the score falls until shortly before the trained length and then rises "
            "again; with the chosen pairs slowed down, it keeps falling for longer. A second panel shows the "
            "measured loss at each position of a text, which in the original model climbs beyond the trained length."
        )

    def dials(self) -> dict[str, Any]:
        """Return the current values of the dials. The entry ``bias`` contains the numbers from which the
        figure is computed."""
        return {**super().dials(), "bias": self.bias}


def load() -> Mapping[str, Any]:
    """Load the numbers that the page contains.

    For each pair, ``real`` and ``imag`` are the two parts of its mean amplitude over all heads, and ``theta`` is its
    frequency. For ``losses``, see `measured`. ``FileNotFoundError`` is raised if the mean scores or the losses of the
    unchanged model were not measured.
    """
    bias = stored.bias()
    mean = bias.amplitudes.mean((0, 1))
    return {
        "real": [round(x, 4) for x in mean.real.tolist()],
        "imag": [round(x, 4) for x in mean.imag.tolist()],
        "theta": bias.inv_freq.tolist(),
        "losses": measured(),
    }


def measured() -> dict[str, list[float]]:
    """Return the measured losses in the Python text, in nats: a list with one loss per block of 1,024 tokens for each
    band of pairs. A key such as "22-26/2" contains the first pair, the last pair and the factor. The key "" stands for
    the unchanged model."""
    bands = []
    for path in results.find("bias").parent.glob("loss-code-slow-*.json"):
        change = results.load(path.stem)["change"]
        first, last = change["pairs"][0], change["pairs"][-1]
        if len(change["pairs"]) == last - first + 1:
            name = path.stem.removeprefix("loss-code-")
            bands.append((first, last, change["factor"], name))
    changes = {"": "as-is"} | {
        f"{first}-{last}/{factor:g}": name
        for first, last, factor, name in sorted(bands)
    }
    return {
        key: [round(loss, 3) for loss in stored.losses("code", name).tolist()]
        for key, name in changes.items()
    }
