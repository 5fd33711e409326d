"""Explorer for the *Rotary position embedding* chapter. It rotates a vector to any position, pair by pair."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Whole
from ropebook.explorers.kit import dials

MOST_POSITION = 4096
TRAIL = 16
"""The number of positions marked on the circle. The current position is the last of them."""
SPAN = 48
"""The number of positions that the coordinate curves show."""
FINE = 8
"""The number of samples that a curve has per position, a power of 2."""


class Turn(Explorer):
    """The vector q = (1, 2, 3, …, d) rotated to a position. One pair is shown in its plane, and all pairs as small
    dials.

    With base 16/π² = 1.62114 and dim 4, pair 1 rotates by π/4 per position. Invalid values raise ``TraitError``.

    Args:
        position: 0 to 4,096.
        base: 1 to 10⁷.
        dim: an even number from 2 to 512.
        pair: the pair shown in its plane, 0 to dim/2 − 1. It is lowered if ``dim`` becomes too small.
    """

    script = "turn.js"
    colours = meaning(
        blue="the vector, and its first coordinate",
    )

    position = Whole(
        5,
        min=0,
        max=MOST_POSITION,
        log=True,
        label="Position m",
        below="positions are counted from 0",
        above="by then the figure has shown everything",
        note="Pair i is rotated by mθᵢ radians.",
        unit="tokens",
    )
    base = dials.base()
    dim = dials.dimension(
        16, above="the dials would be too small", note="The vector has d/2 pairs."
    )
    pair = dials.pair(1)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The plane of one pair, with an arrow at position 0, the same arrow rotated counter-clockwise to its "
            "position, and dots that mark its tip at earlier positions. Beside the plane are the matrix of the "
            "rotation and waves that show the arrow's two coordinates at each position. Below is a small dial for "
            "each pair, from the fastest to the slowest."
        )
