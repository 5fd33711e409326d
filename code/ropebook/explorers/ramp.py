"""The explorer of chapter *Longer texts* that sets YaRN's ramp as its paper writes it beside the ramp of its code."""

from __future__ import annotations

import traitlets

from ropebook.explorers import Even, Explorer, Real, Switch, Whole
from ropebook.explorers.ladder import (
    LEAST_ALPHA,
    LEAST_BASE,
    LEAST_BETA,
    MOST_ALPHA,
    MOST_BETA,
    MOST_DIMS,
    MOST_FACTOR,
    MOST_LENGTH,
)


class Ramp(Explorer):
    """How much of each pair YaRN interpolates: linear in the pair's turns (paper) or in its index (code), and what differs.

    ``alpha``: 0.25 to 2, and ``beta``: 2.5 to 64, turns within L at the ramp's ends. ``trained_length``: L, 16 to 131072.
    ``base``: 500 to 10⁷. ``dim``: even, 4 to 512. ``factor``: s, 1 to 64. ``truncate``: whether the code rounds the ends
    of its ramp outwards to whole pairs, as is usual. Bad values raise ``TraitError``.
    """

    script = "ramp.js"

    alpha = Real(
        1.0,
        min=LEAST_ALPHA,
        max=MOST_ALPHA,
        log=True,
        label="Slow end α",
        below="no pair would be slow enough",
        above=f"α must be less than β, which begins at {LEAST_BETA}",
        note="Turns within L. Pairs with fewer are interpolated.",
        more=True,
    )
    beta = Real(
        32.0,
        min=LEAST_BETA,
        max=MOST_BETA,
        log=True,
        label="Fast end β",
        below=f"β must be more than α, which ends at {MOST_ALPHA}",
        above="hardly a pair would be kept",
        note="Turns within L. Pairs with more are kept.",
        more=True,
    )
    trained_length = Whole(
        4096,
        min=16,
        max=MOST_LENGTH,
        log=True,
        label="Trained length L",
        below="too short for a pair to turn",
        above="few models see more in training",
        note="Tokens in the longest text of training.",
        more=True,
    )
    base = Real(
        10_000.0,
        min=LEAST_BASE,
        max=1e7,
        log=True,
        label="Base b",
        below="the code’s ramp can run backwards there, and at base 1 it has no value",
        above="no model goes further",
        note="Pair i turns by θᵢ = b^(−2i/d) radians per position.",
    )
    dim = Even(
        128,
        min=4,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="a ramp needs two pairs",
        above="wider heads show nothing new",
        note="Of a head: d/2 pairs.",
    )
    factor = Real(
        16.0,
        min=1.0,
        max=MOST_FACTOR,
        log=True,
        label="Factor s",
        below="L′ would be shorter than L",
        above="no method is used so far out",
        note="Interpolated pairs are slowed down by it.",
    )
    truncate = Switch(
        True,
        label="Round the ends",
        note="The code’s ramp begins and ends at whole pairs, rounded outwards.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "How much of each pair is interpolated, from none for the fast pairs to all for the slow ones: as YaRN's paper "
            "writes it, a curve that rises steeply and then creeps to the end, and as its code does it, a straight ramp "
            "between the same ends; below, the factor between the frequencies that the two make, pair by pair."
        )
