"""Explorer for the *Context extension* chapter. It shows a cache of keys, with a base that grows with the text."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Whole, Within
from ropebook.explorers.kit import dials
from ropebook.explorers.ladder import LEAST_BASE

MOST_LENGTH = 4096
MOST_KEYS = 256
"""The largest number of keys for which the error is computed. If the text is longer, that many evenly spaced keys are
used."""
TOP_ERROR = 1.7
"""The upper end of the error axis. It is slightly above √2, the error of scores that have become random."""


class Timelapse(Explorer):
    """A key cache under dynamic NTK. Each key keeps the rotation that it was given on arrival, while the base rises as
    the text grows.

    Invalid values raise ``TraitError``.

    Args:
        length: the current length of the text, 1 to ``room``.
        room: how many tokens fit into the figure, 64 to 4,096. If it is set below ``length``, the length is lowered.
        trained_length: L, 16 to 2,048.
        factor: s, 1 to 16.
        base: 500 to 10⁷.
        dim: an even number from 4 to 512.
    """

    script = "timelapse.js"
    colours = meaning(
        blue="keys rotated with the trained base",
        orange="wrong: keys in the cache were rotated with a base that isn't the query's",
    )

    length = Whole(
        160,
        min=1,
        max=MOST_LENGTH,
        log=True,
        label="Length T",
        below="a text has at least one token",
        above="the figure has no more cells",
        note="The last token is the query.",
        unit="tokens",
        within=Within("room"),
    )
    room = Whole(
        256,
        min=64,
        max=MOST_LENGTH,
        log=True,
        label="Room",
        below="fewer show no growth",
        above="more cells would be too small to see",
        note="Tokens that the figure has cells for.",
        unit="tokens",
        more=True,
    )
    trained_length = dials.trained_length(
        64,
        max=2048,
        below="too short for a text",
        above="the text would hardly outgrow it",
        note="Up to here the base is b; then it grows.",
    )
    factor = dials.factor(
        1.0,
        max=16,
        below="the base would fall",
        above="the base would jump",
        note="Dynamic NTK’s scale is s·T/L − (s − 1); plain: s = 1.",
        more=True,
    )
    base = dials.base(
        min=LEAST_BASE,
        below="no model has a smaller base",
        above="no model has a larger base",
        note="The base up to L.",
    )
    dim = dials.dimension(
        64,
        min=4,
        below="NTK’s exponent d/(d − 2) has no value at 2",
        note="A head has d/2 pairs.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The tokens of a text as cells in rows, each in the colour of the base with which its key was rotated "
            "on arrival. All cells up to the trained length share a colour, every later token has a new one, and "
            "the last cell is the new query, with the newest base. Below is the error of the query's score with "
            "each cached key."
        )
