"""The explorer of the chapter on decay that plots the score of one query with every key against the key's position."""

from __future__ import annotations

import traitlets

from ropebook import decay
from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Whole, Within
from ropebook.explorers.kit import dials

MOST_LENGTH = 1_000_000
MOST_DRAWS = 20
MOST_SAMPLES = 4096
"""If there are at most this many keys, all scores are computed."""
NEAR = 3072
"""In longer texts, scores are computed for this many keys closest to the query, and for some in each column of the
picture."""
MOST_COLUMNS = 512
CLOSE = (0, 2, 4)
"""The positions in a column at which it is sampled, chosen so that both halves of the fastest wave, 2π long, can be
seen."""
SPOTS = (0.18, 0.37, 0.55, 0.76, 0.93)
"""Further places in a column at which it is sampled, as shares of its width. They are uneven, so that no wave can hide
between the samples."""


FIGURES = [
    {"query": one.query_position, "length": one.length, "dim": one.dim}
    for one in decay.FIGURES
]
"""The settings of the text's figures, for the buttons."""


class Distance(Explorer):
    """The score of a query at one position with the same key at every position of a text.

    ``base``: 1 to 10⁷. ``dim``: even, 2 to 512. ``query``: the query's position, 0 to length − 1 (lowered if the length
    becomes too short). ``length``: the number of positions, 2 to 10⁶; if there are more than 4096, the distant ones are
    sampled. ``vectors``: "ones", q = k = (1, …, 1); "same", q = k, random; "random", q and k random and independent;
    "slow", q = k, with entries 1 in the slower half of the pairs and 0 in the others. ``draw``: which random vectors to
    use, 1 to 20. Bad values raise ``TraitError``.
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
        within=Within("length", plus=-1),
    )
    length = Whole(
        512,
        min=2,
        max=MOST_LENGTH,
        log=True,
        label="Length L",
        below="a single key is not a curve",
        above="longer texts show only bands",
        note=f"Keys at 0 to L − 1. Beyond {MOST_SAMPLES} distant keys are sampled.",
        more=True,
    )
    vectors = Choice(
        {
            "ones": "ones",
            "same": "q = k",
            "random": "q and k",
            "slow": "slow pairs",
        },
        label="Query and key",
        note="All ones; random and equal; random and different; ones in the slower half of the pairs, 0 in the others.",
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
            "The score of one query with the same key at every position of a text, as a curve over the positions. For "
            "q = k it peaks at the query and falls in swings, in the same way to the left and to the right. It never "
            "settles: far away it swings about zero, or about what the slowest pairs still add."
        )
