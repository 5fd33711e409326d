"""Explorer for the *Implementing RoPE* chapter. It shows tables of cosines and sines, exact and with rounding."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Whole
from ropebook.explorers.kit import dials

MOST_COUNT = 128
MOST_FIRST = 10_000_000
DTYPES = ("float64", "float32", "bfloat16", "float16")
STAGES = ("result", "frequencies", "positions", "everything")


class Precision(Explorer):
    """The cosines and sines of neighbouring positions, exact and with rounding during the computation.

    Invalid values raise ``TraitError``.

    Args:
        dtype: "float64", "float32", "bfloat16" or "float16".
        rounded: what is rounded to this type in addition to the result. "result": nothing else. "frequencies": the
            frequencies. "positions": the positions. "everything": frequencies, positions and angles.
        first: the first position, 0 to 10⁷.
        count: the number of positions, 8 to 128.
        dim: an even number from 2 to 512.
        base: 1 to 10⁷.
    """

    script = "precision.js"
    colours = meaning(
        blue="entries above zero",
        orange="wrong: the error of an entry; below zero in the tables",
    )

    dtype = Choice(
        DTYPES,
        "bfloat16",
        label="Type",
        note="Their precision is 53, 24, 8 and 11 binary digits.",
    )
    rounded = Choice(
        STAGES,
        "everything",
        label="What is rounded",
        note="The result alone, or also the frequencies θᵢ, the positions, or both of these and the angles.",
    )
    first = Whole(
        1000,
        min=0,
        max=MOST_FIRST,
        log=True,
        label="First position",
        below="positions are counted from 0",
        above="further on, even float32 merges positions",
        note="In the field, an arrow key moves it by one; Page Up doubles it.",
        unit="tokens",
    )
    count = Whole(
        64,
        min=8,
        max=MOST_COUNT,
        log=True,
        label="Positions shown",
        below="fewer show no pattern",
        above="rows would be thinner than a pixel",
        note="Each has its own row.",
        unit="tokens",
        more=True,
    )
    dim = dials.dimension(
        32,
        above="columns would be thinner than a pixel",
        note="A cosine and a sine for each pair.",
        more=True,
    )
    base = dials.base(more=True)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Two tables of cosines and sines as pictures, with a row for each position. The left table is exact, "
            "and in the right table, which is rounded, neighbouring rows merge into bands. A third picture shows "
            "the error of every entry. The larger the error, the more it stands out from the background."
        )
