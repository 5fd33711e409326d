"""The explorer of chapter *Longer texts* that shows a cache of keys under a base that grows with the text."""

from __future__ import annotations

import traitlets

from ropebook.explorers import Even, Explorer, Real, Whole
from ropebook.explorers.ladder import LEAST_BASE, MOST_DIMS

MOST_LENGTH = 4096
MOST_FACTOR = 16
MOST_KEYS = 256
"""Keys whose error is computed; of longer texts as many, evenly spaced."""
TOP_ERROR = 1.7
"""Where the axis of the errors ends: a little above √2, round which they stay where nothing is left of the scores."""


class Timelapse(Explorer):
    """The keys of a text in a cache, each as it was rotated when it came, while dynamic NTK raises the base with the text.

    ``length``: how long the text is now, 1 to ``room``. ``room``: how many tokens the figure has place for, 64 to 4096 (one
    that becomes too small takes the length along). ``trained_length``: L, 16 to 2048. ``factor``: s, 1 to 16. ``base``: 500
    to 10⁷. ``dim``: even, 4 to 512. Bad values raise ``TraitError``.
    """

    script = "timelapse.js"

    length = Whole(
        160,
        min=1,
        max=MOST_LENGTH,
        log=True,
        label="Length now n",
        below="a text has a token",
        above="there is room for no more",
        note="Tokens so far; the last is the query. Not beyond the room.",
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
        more=True,
    )
    trained_length = Whole(
        64,
        min=16,
        max=2048,
        log=True,
        label="Trained length L",
        below="too short for a text",
        above="the text would never outgrow it",
        note="Up to here the base is b; then it grows.",
        more=True,
    )
    factor = Real(
        1.0,
        min=1.0,
        max=MOST_FACTOR,
        log=True,
        label="Factor s",
        below="the base would fall",
        above="the base would leap",
        note="Dynamic NTK’s: the scale is s·n/L − (s − 1). Plain: 1.",
        more=True,
    )
    base = Real(
        10_000.0,
        min=LEAST_BASE,
        max=1e7,
        log=True,
        label="Base b",
        below="no model goes lower",
        above="no model goes further",
        note="Up to the trained length.",
    )
    dim = Even(
        64,
        min=4,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="NTK’s exponent d/(d − 2) has no value at 2",
        above="wider heads show nothing new",
        note="Of a head: d/2 pairs.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The tokens of a text as cells in rows, each in the colour of the base that its key was rotated with when it "
            "came: one colour up to the trained length, then a new one with every token; the last cell is the new query, "
            "with the newest base. Below, how far its score with each cached key is off."
        )

    @traitlets.validate("length")
    def _valid_length(self, proposal: dict) -> int:
        if proposal["value"] > self.room:
            raise traitlets.TraitError(
                f"length must be an integer >= 1 and <= {self.room}, for room is {self.room}, got {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.observe("room")
    def _fit_length(self, _: dict) -> None:
        self.length = min(self.length, self.room)
