"""Explorer for the *Sinusoidal positions* chapter. It shows the encoding as a picture, and below it the distance
kernel."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Switch, Whole, Within
from ropebook.explorers.kit import dials

MOST_DIMS = 512
MOST_LENGTH = 4096
MOST_COLUMNS = 640
"""The maximum number of columns in the picture. If there are more positions, each column is a blend of several."""


class Heatmap(Explorer):
    """The encoding of the positions 0 … length − 1 as a heatmap, and the distance kernel from a reference position.

    Invalid values raise ``TraitError``.

    Args:
        base: 1 to 10⁷.
        dim: an even number from 2 to 512.
        length: the number of positions, 1 to 4,096.
        reference: the reference position, 0 to length − 1. It is lowered if ``length`` becomes too short.
        interleaved: whether the rows are in the vector's order, in which the sine and cosine of each pair alternate.
            Otherwise all sines come before all cosines.
    """

    script = "heatmap.js"
    colours = meaning(
        blue="entries above zero, and the similarity",
        orange="below zero: entries",
    )

    base = dials.base()
    dim = dials.dimension(
        64,
        max=MOST_DIMS,
        above="more rows than the picture has",
        note="An even number: one sine and one cosine per pair.",
    )
    length = Whole(
        640,
        min=1,
        max=MOST_LENGTH,
        log=True,
        label="Length",
        below="a text has at least one position",
        above="longer pictures show only means",
        note="Positions 0 to length − 1.",
        unit="tokens",
        more=True,
    )
    reference = Whole(
        320,
        min=0,
        max=MOST_LENGTH - 1,
        label="Reference position",
        below="positions are counted from 0",
        above="the longest text ends there",
        note="The curve compares each position with it.",
        unit="tokens",
        within=Within("length", plus=-1),
    )
    interleaved = Switch(
        False,
        label="Interleaved",
        note="On: the rows alternate sine and cosine, as in the vector. Off: all sines come first. The numbers are the same.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The sinusoidal encoding as a picture, with a column for each position and a row for each entry. The "
            "waves are fast in the first rows and become slower from row to row. Under the picture, a curve shows "
            "the similarity of each position to a reference position, with a peak there and ripples that die away "
            "on both sides."
        )
