"""Explorer for the *Beyond the line* chapter. It shows the score between one patch of an image and every other
patch."""

from __future__ import annotations

import math

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Whole
from ropebook.explorers.kit import dials

SIDE = 16
"""The number of patches along each side of the square image."""
GOLDEN = math.pi * (3 - math.sqrt(5))
"""The angle in radians between the directions of neighbouring pairs in the mixed form. It is chosen so that no
direction repeats."""
FORMS = {
    "line": "in a line",
    "axial": "axial",
    "mixed": "mixed",
    "sections": "sections",
    "interleaved": "interleaved",
}


class Patches(Explorer):
    """The scores of one patch with every patch of a 16 × 16 image, for q = k = (1, …, 1). Each score is shown as a
    share of the largest.

    Invalid values raise ``TraitError``.

    Args:
        form: how positions rotate pairs, one of `FORMS`.
        base, dim: the base and the number of entries for rows.
        base_columns, dim_columns: the base and the number of entries for columns. Only the axial form uses
            ``base_columns``; the other forms have the frequencies of a single head with dim + dim_columns entries.
        row, column: the position of the patch, 0 to 15 in each direction.
    """

    script = "patches.js"
    colours = meaning(
        blue="scores above zero, and pairs that follow rows",
        orange="below zero: scores",
    )

    form = Choice(
        FORMS,
        "axial",
        label="Form",
        note="How a position rotates the pairs.",
    )
    base = dials.base(
        100.0,
        label="Base of the rows",
        note="This is the only base, except in the axial form.",
    )
    dim = dials.dimension(
        32,
        max=128,
        label="Entries for rows",
        note="Two entries for each pair that encodes rows.",
    )
    base_columns = dials.base(
        100.0,
        label="Base of the columns",
        note="Only the axial form uses this base.",
        more=True,
    )
    dim_columns = dials.dimension(
        32,
        max=128,
        label="Entries for columns",
        note="Two entries for each pair that encodes columns.",
        more=True,
    )
    row = Whole(
        7,
        min=0,
        max=SIDE - 1,
        label="Row of the patch",
        below="rows are counted from 0",
        above="the image ends there",
        note="Counted from the top.",
        more=True,
    )
    column = Whole(
        7,
        min=0,
        max=SIDE - 1,
        label="Column of the patch",
        below="columns are counted from 0",
        above="the image ends there",
        note="Counted from the left.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A map of 16 by 16 patches, in which one patch near the middle is marked and the colour of every patch "
            "shows its score with that one. In the axial form, the row and the column of the marked patch stand out "
            "as a cross. Under the map, a strip in two colours shows which pairs encode the rows and which encode "
            "the columns."
        )
