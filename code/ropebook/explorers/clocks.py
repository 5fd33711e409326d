"""Explorer for the *Sinusoidal positions* chapter. It shows binary digits, clock hands and sinusoids side by side."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Whole
from ropebook.explorers.kit import dials

MOST_POSITION = 4096
MOST_SPAN = 4096
BITS = 13
"""The number of binary digits of 4096."""
MOST_WAVES = BITS
"""The maximum number of sinusoids in the figure, one for each binary digit. Any further pairs are shown only as clock
hands."""
FINE_SAMPLES = 512
"""The approximate number of samples of a curve in a short window, where curves are also sampled between positions."""


class Clocks(Explorer):
    """A position written in three ways: as binary digits, as clock hands that turn by θ_i per position, and as
    sinusoids.

    Invalid values raise ``TraitError``.

    Args:
        position: 0 to 4,096.
        base: 1 to 10⁷.
        dim: an even number from 2 to 512. There are dim/2 clock hands.
        span: the number of positions around ``position`` that the waves show, 8 to 4,096.
    """

    script = "clocks.js"
    colours = meaning(
        blue="the sinusoids and how far their hands have turned",
    )

    position = Whole(
        100,
        min=0,
        max=MOST_POSITION,
        label="Position m",
        below="positions are counted from 0",
        above="more would soon need another digit",
        note="An arrow key is one position.",
        unit="tokens",
    )
    base = dials.base(
        note="With b = 2^(d/2) each hand is half as fast as the one before, just as each digit is."
    )
    dim = dials.dimension(
        16,
        above="the clocks would be too small",
        note="One hand for each pair of entries.",
    )
    span = Whole(
        64,
        min=8,
        max=MOST_SPAN,
        log=True,
        label="Positions shown",
        below="fewer show no wave",
        above="more show only bands",
        note="The positions around m, but never below 0.",
        unit="tokens",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The binary digits of positions around a chosen one, drawn as square waves with periods 2, 4, 8 and so "
            "on, each with a sinusoid inside. Next to them are the sinusoids of the encoding, from fast to slow. "
            "Below is a clock hand for each pair, with a ring that shows how far the hand has turned since position "
            "0."
        )
