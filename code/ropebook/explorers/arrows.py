"""The explorer on the book's first page: a query and a key as two arrows, rotated by their tokens' positions."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Whole
from ropebook.explorers.kit import dials

MOST_DIMS = 128
TOKENS = 24
"""The text has the positions 0 … 23."""
QUERY = (-0.34, -1.17)
KEY = (0.28, -0.8)
"""The pair of the query and of the key that is drawn, before rotation. The numbers are chosen so that the opening angle
and score are moderate."""
WORDS = ("it", "cat")
"""The tokens to which the query and the key belong."""


class Arrows(Explorer):
    """A pair of a query and of a key, rotated by mθ and nθ, and the angle and the score between them.

    ``m``, ``n``: 0 to 23, the positions of the two tokens. ``base``: 1 to 10⁷. ``dim``: even, 2 to 128. ``pair``:
    0 to dim/2 − 1 (lowered if ``dim`` becomes too small). Bad values raise ``TraitError``.
    """

    script = "arrows.js"
    colours = meaning(
        blue="the angle between the two arrows",
        green="the query",
        violet="the key",
    )

    m = Whole(
        10,
        min=0,
        max=TOKENS - 1,
        label="Query position m",
        below="positions are counted from 0",
        above="the text ends there",
        note="The query is rotated by mθ.",
        more=True,
    )
    n = Whole(
        5,
        min=0,
        max=TOKENS - 1,
        label="Key position n",
        below="positions are counted from 0",
        above="the text ends there",
        note="The key is rotated by nθ.",
        more=True,
    )
    pair = dials.pair(1, dims=MOST_DIMS, more=False)
    base = dials.base()
    dim = dials.dimension(16, max=MOST_DIMS)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A row of tokens. One of them, the word it, has a query, and an earlier one, the word cat, has a key. Below, "
            "the query and the key are drawn as two arrows from one point, each rotated in proportion to its position. "
            "An arc marks the angle between them; beside the arrows are that angle and the score."
        )
