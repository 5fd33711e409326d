"""Explorer for the chapter on decay. It plots the score of one query with every key, against the key's position."""

from __future__ import annotations

import traitlets

from ropebook import decay
from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Whole, Within
from ropebook.explorers.kit import dials

MOST_LENGTH = 1_000_000
MOST_DRAWS = 20
MOST_SAMPLES = 4096
"""The largest number of keys for which every score is computed."""
NEAR = 3072
"""If a text has too many keys to compute every score, we compute scores for this many keys nearest to the query, and
for a few keys in each column of the picture."""
MOST_COLUMNS = 512
CLOSE = (0, 2, 4)
"""Positions within a column at which scores are computed. They are close enough together to sample both halves of the
fastest wave, whose wavelength is 2π positions."""
SPOTS = (0.18, 0.37, 0.55, 0.76, 0.93)
"""Further points within a column at which scores are computed, as fractions of its width. They are unevenly spaced, so
that no wave can hide between them."""


FIGURES = [
    {"query": one.query_position, "length": one.length, "dim": one.dim}
    for one in decay.FIGURES
]
"""The settings of six published figures, for the explorer's menu."""


class Distance(Explorer):
    """The score of a query at one position with the same key at every position of a text.

    Invalid values raise ``TraitError``.

    Args:
        base: 1 to 10⁷.
        dim: an even number from 2 to 512.
        query: the query's position, 0 to length − 1. It is lowered if ``length`` becomes too short.
        length: the number of positions, 2 to 10⁶. If there are more than 4,096, scores far from the query are sampled.
        vectors: the query and the key. "ones": q = k = (1, …, 1). "same": random, with q = k. "random": random and
            independent. "slow": q = k, with ones in the slower half of the pairs and zeros in the rest.
        draw: which random vectors to use, 1 to 20.
    """

    script = "distance.js"
    colours = meaning(
        blue="scores above zero",
        orange="below zero: scores",
    )

    base = dials.base()
    dim = dials.dimension(256)
    query = Whole(
        256,
        min=0,
        max=MOST_LENGTH - 1,
        log=True,
        label="Query position m",
        below="positions are counted from 0",
        above="the longest text ends there",
        note="One of the L positions.",
        unit="tokens",
        within=Within("length", plus=-1),
    )
    length = Whole(
        512,
        min=2,
        max=MOST_LENGTH,
        log=True,
        label="Length L",
        below="a single key gives no curve",
        above="longer texts show only bands",
        note=f"Keys at 0 to L − 1. Beyond {MOST_SAMPLES} distant keys are sampled.",
        unit="tokens",
        more=True,
    )
    vectors = Choice(
        {
            "ones": "all ones",
            "same": "q = k",
            "random": "q ≠ k",
            "slow": "slow pairs",
        },
        label="Query and key",
        note="All entries are 1; random and equal; random and different; 1 in the slower half of the pairs and 0 elsewhere.",
        more=True,
    )
    draw = Whole(
        1,
        min=1,
        max=MOST_DRAWS,
        label="Random draw",
        below="draws are counted from 1",
        above="no more were drawn",
        note="Each draw has a different query and key.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A curve of the score between one query and copies of one key at every position of a text. For q = k, "
            "it peaks at the query and oscillates as it falls, symmetrically to the left and right. It never "
            "settles: far away, it swings around zero or around what the slowest pairs still contribute."
        )
