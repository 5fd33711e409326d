"""The explorer that opens the book: a query and a key as two arrows, which their tokens' positions turn."""

from __future__ import annotations

import traitlets

from ropebook.explorers import Explorer, Real, Whole

DIM = 16
TOKENS = 24
"""The text has the positions 0 … 23."""
QUERY = (-0.34, -1.17)
KEY = (0.28, -0.8)
"""The one pair of query and key that is drawn, before any turn; with them the opening angle and score are middling."""
WORDS = ("it", "cat")
"""Whose query and whose key they are."""


class Arrows(Explorer):
    """One pair of a query and of a key, turned by mθ and nθ, and the angle and the score between them.

    ``m``, ``n``: 0 to 23, where the two tokens stand. ``base``: 1 to 10⁷. ``pair``: 0 to 7, of a head with 16
    dimensions: θ = base^(−2·pair/16). Bad values raise ``TraitError``.
    """

    script = "arrows.js"

    m = Whole(
        10,
        min=0,
        max=TOKENS - 1,
        label="Query position m",
        below="positions are counted from 0",
        above="the text ends there",
        note="The query turns by mθ.",
        more=True,
    )
    n = Whole(
        5,
        min=0,
        max=TOKENS - 1,
        label="Key position n",
        below="positions are counted from 0",
        above="the text ends there",
        note="The key turns by nθ.",
        more=True,
    )
    pair = Whole(
        1,
        min=0,
        max=DIM // 2 - 1,
        label="Pair i",
        below="pairs are counted from 0",
        above="16 dimensions have no more pairs",
        note="Of 8. Each turns more slowly than the one before.",
    )
    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all pairs would stand still",
        note="Per token a pair turns by θ = b^(−2i/16) radians.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A row of tokens, in which one token, the word it, has a query and an earlier one, the word cat, has a key. "
            "Below, the query and the key as two arrows from one point, turned as far as their positions say. An arc "
            "marks the angle between them; beside it stand that angle and the score."
        )
