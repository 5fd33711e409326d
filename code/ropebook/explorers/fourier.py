"""Explorer for the *RoPE in the complex plane* chapter. It shows a score as a Fourier sum with one wave per pair."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Whole, Within
from ropebook.explorers.kit import dials

MOST_DIMS = 512
MOST_DISTANCE = 4096
MOST_DRAWS = 20
MOST_ROWS = 16
"""The maximum number of waves in the figure."""
COLUMNS = 720
"""The number of columns between distance 0 and the longest distance. Waves are computed at the edges of the columns."""
FINE_SAMPLES = 512
"""The maximum number of samples of the sum in a short range, where it is also sampled between whole distances."""


class Fourier(Explorer):
    """The score of a query q with the key k = R_peak q, at every distance. It is a sum of waves, one for each pair, and
    all of them are in phase at ``peak``.

    Invalid values raise ``TraitError``. ``peak`` and ``distance`` are lowered if ``span`` becomes too short, and
    ``summed`` if the head has fewer pairs.

    Args:
        peak: the distance with the highest score, 0 to ``span``.
        distance: the distance at which the products of the pairs are added up, 0 to ``span``.
        span: the longest distance that is shown, 16 to 4,096.
        base: 1 to 10⁷.
        dim: an even number from 2 to 512.
        summed: the number of pairs that are added up, starting with the fastest, 1 to dim/2. By default, all are.
        draw: the query. 0 means ones; 1 to 20 mean random numbers.
    """

    script = "fourier.js"
    colours = meaning(
        blue="products that add to the score",
        orange="below zero: products that take from the score",
    )

    peak = Whole(
        100,
        min=0,
        max=MOST_DISTANCE,
        log=True,
        label="Peak at Δ",
        below="distances are counted from 0 here",
        above="the longest range ends there",
        note="The key is the query rotated by this many tokens.",
        unit="tokens",
        more=True,
        within=Within("span"),
    )
    distance = Whole(
        60,
        min=0,
        max=MOST_DISTANCE,
        log=True,
        label="Distance Δ",
        below="distances are counted from 0 here",
        above="the longest range ends there",
        note="Where the products are added up. In the field, an arrow key moves it by one.",
        unit="tokens",
        within=Within("span"),
    )
    span = Whole(
        200,
        min=16,
        max=MOST_DISTANCE,
        log=True,
        label="Longest Δ shown",
        below="a shorter range shows no wave",
        above="a longer range shows only bands",
        note="The picture shows distances from 0 to this one.",
        unit="tokens",
        more=True,
    )
    base = dials.base()
    dim = dials.dimension(
        32, max=MOST_DIMS, note="One wave for each pair of entries."
    )
    summed = Whole(
        MOST_DIMS // 2,
        min=1,
        max=MOST_DIMS // 2,
        log=True,
        label="Pairs summed",
        within=Within("dim", times=0.5, follows=True),
        below="a sum needs at least one pair",
        above="the widest head has no more pairs",
        note="The sum starts with the fastest pair.",
        more=True,
    )
    draw = Whole(
        0,
        min=0,
        max=MOST_DRAWS,
        label="Query",
        below="0 means all ones",
        above="there are no more random queries",
        note="0: all entries are 1, so all waves have the same height. 1, 2, …: random entries.",
        more=True,
    )

    @traitlets.default("summed")
    def _default_summed(self) -> int:
        return self.dim // 2

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The score of a query and a key against their distance, as a sum of waves. Above is one wave for each "
            "pair of dimensions, from fast to slow, all with a crest at the same distance; below is their sum, "
            "which is highest there. Next to them, bars show the products of the pairs at a second distance and how "
            "they add up to the score."
        )
