"""Explorer for the chapter on decay. It draws a clock hand for each pair, and shows which hands complete a turn within a
context."""

from __future__ import annotations

import traitlets

from ropebook import decay
from ropebook.colours import meaning
from ropebook.explorers import Explorer, Whole
from ropebook.explorers.kit import dials

MOST_LENGTH = 1_000_000


MODELS = [
    (model.name, model.dim, model.base, model.context) for model in decay.MODELS
]
"""Settings of published models: the name, the number of entries that are rotated in each head, the base, and the length
of the texts seen in training."""


class Bank(Explorer):
    """A clock hand for each of the dim/2 pairs, at angle mθ_i. The figure shows which hands complete a turn within a
    context.

    Invalid values raise ``TraitError``.

    Args:
        position: m, 0 to 10⁶. It may lie beyond the context.
        base: 1 to 10⁷.
        dim: an even number from 2 to 512.
        length: L, the length of the context, 2 to 10⁶. Its positions are 0 to L − 1.
    """

    script = "bank.js"
    colours = meaning(
        blue="pairs that complete a turn within the context",
        orange="new: angles beyond those of the context lie ahead of the pair",
    )

    position = Whole(
        1000,
        min=0,
        max=MOST_LENGTH,
        log=True,
        label="Position m",
        below="positions are counted from 0",
        above="no text here is longer",
        note="The position may be beyond the context.",
        unit="tokens",
        more=True,
    )
    base = dials.base()
    dim = dials.dimension(
        128,
        above="the clocks would be too small",
        note="One hand for each pair of entries.",
    )
    length = Whole(
        4096,
        min=2,
        max=MOST_LENGTH,
        log=True,
        label="Context L",
        below="with a single position nothing rotates",
        above="no model here reads more",
        note="The positions are 0 to L − 1.",
        unit="tokens",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A clock for each pair of dimensions, from fast to slow. The hands of the fast pairs have turned many "
            "times, while those of the slow pairs are orange because they do not complete a turn within the "
            "context, and a sector shows how far each of them gets. Below, a logarithmic strip shows the "
            "wavelengths, and those beyond the line that marks the context are orange."
        )
