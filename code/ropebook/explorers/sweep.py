"""Explorer for the chapter on decay. It compares the score curves of many bases."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.decay import BASES  # noqa: F401 (for the script)
from ropebook.explorers import Explorer, Whole
from ropebook.explorers.kit import dials

MOST_LENGTH = 4096
NEAR = 128
"""Each curve is computed at all distances below this one, and at 64 distances in each octave beyond it."""


class Sweep(Explorer):
    """K(Δ)/K(0), the score of q = k = (1, …, 1) as a share of its peak. It is shown for ten bases from 1 to 10⁷, and
    for one that the reader chooses.

    Invalid values raise ``TraitError``.

    Args:
        base: the chosen base, 1 to 10⁷.
        dim: an even number from 2 to 512.
        length: the number of distances that are shown, 16 to 4,096.
    """

    script = "sweep.js"
    colours = meaning(
        blue="the score with this base",
        orange="below zero: the score from here on",
    )

    base = dials.base()
    dim = dials.dimension(128, note="The same for all curves.")
    length = Whole(
        4096,
        min=16,
        max=MOST_LENGTH,
        log=True,
        label="Length L",
        below="so few distances show no curve",
        above="more would take too long to compute",
        note="Distances run from 0 to L − 1. The axis begins at distance 1. At distance 0 every curve is 1.",
        unit="tokens",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Curves of a score against the distance between query and key, on a logarithmic axis, for a query and a "
            "key whose entries are all the same. Ten small curves are for bases from 1 to ten million, and a large "
            "one is for the chosen base. With a larger base the curve drops below half of its peak farther to the "
            "right, with a small base it falls immediately and then swings around zero, and at base 1 it keeps "
            "swinging between its peak and the opposite."
        )
