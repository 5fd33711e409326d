"""Explorer for the *Rotary position embedding* chapter. It moves a query and a key along a text, keeping the distance
between them fixed."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Whole
from ropebook.explorers.kit import dials

MOST_POSITION = 4096
SHIFTS = 256
"""The number of shifts that the curves show. They start at shift 0."""
DRAWS = 16


class Lock(Explorer):
    """The score of a query at m + shift and a key at n + shift, with RoPE and with an added sinusoidal encoding.

    RoPE's score ⟨R_m q, R_n k⟩ does not change with ``shift``, while the score ⟨q + PE_m, k + PE_n⟩ does. Invalid
    values raise ``TraitError``.

    Args:
        m, n: the positions before the shift, 0 to 4,096.
        shift: the number of positions by which query and key are both moved, 0 to 255.
        base: 1 to 10⁷.
        dim: an even number from 2 to 512.
        pair: the pair whose plane is drawn, 0 to dim/2 − 1. It is lowered if ``dim`` becomes too small.
        draw: which random q and k to use, 0 to 15.
    """

    script = "lock.js"
    colours = meaning(
        blue="RoPE's score",
        green="the query",
        violet="the key",
    )

    m = Whole(
        20,
        min=0,
        max=MOST_POSITION,
        log=True,
        label="Query position m",
        below="positions are counted from 0",
        above="use the shift to go further",
        note="The position before the shift.",
        unit="tokens",
        more=True,
    )
    n = Whole(
        4,
        min=0,
        max=MOST_POSITION,
        log=True,
        label="Key position n",
        below="positions are counted from 0",
        above="use the shift to go further",
        note="The position before the shift.",
        unit="tokens",
        more=True,
    )
    shift = Whole(
        20,
        min=0,
        max=SHIFTS - 1,
        label="Shift t",
        below="the text begins at position 0",
        above="the curves end there",
        note="This is added to both m and n.",
        unit="tokens",
    )
    base = dials.base(note="θᵢ = b^(−2i/d), in both encodings.")
    dim = dials.dimension(16)
    pair = dials.pair(2, note="The pair whose plane is drawn.")
    draw = dials.draw(2, DRAWS)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Two panels show the query and the key as arrows in the plane of one pair: on the left, RoPE rotates "
            "them, and on the right, a sinusoidal encoding is added to them. Below, the scores over all pairs are "
            "plotted against a shift that moves query and key together. RoPE's score is a flat line, while the "
            "sinusoidal score goes up and down."
        )
