"""Explorer for the first page of the book. It draws a query and a key as two arrows, rotated by the positions of their
tokens."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Whole
from ropebook.explorers.kit import dials

MOST_DIMS = 128
TOKENS = 24
"""The number of tokens in the text. Their positions are 0 to 23."""
QUERY = (-0.34, -1.17)
KEY = (0.28, -0.8)
"""The entries of the query and of the key that form the pair in the figure, before rotation. They were chosen to give a
moderate angle and score in the opening state."""
WORDS = ("it", "cat")
"""The tokens that the query and the key belong to."""


class Arrows(Explorer):
    """A pair of entries of a query, and the same pair of a key, rotated by mθ and nθ. The figure also shows the angle
    between them, and the score.

    Invalid values raise ``TraitError``.

    Args:
        m, n: the positions of the two tokens, 0 to 23.
        base: 1 to 10⁷.
        dim: an even number from 2 to 128.
        pair: the index of the pair, 0 to dim/2 − 1. It is lowered if ``dim`` becomes too small.
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
        unit="tokens",
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
        unit="tokens",
        more=True,
    )
    pair = dials.pair(1, dims=MOST_DIMS, more=False)
    base = dials.base()
    dim = dials.dimension(16, max=MOST_DIMS)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A row of tokens in which the word “it” has a query and the earlier word “cat” has a key. Below, the "
            "query and the key are two arrows from the same point, each rotated by an angle proportional to its "
            "token’s position. An arc marks the angle between the arrows, and that angle and the score are written "
            "beside them."
        )
