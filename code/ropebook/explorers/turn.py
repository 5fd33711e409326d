"""The explorer of chapter *The rotation, derived* that turns a vector through its positions, pair by pair."""

from __future__ import annotations

import traitlets

from ropebook.explorers import Even, Explorer, Real, Whole

MOST_DIMS = 512
MOST_POSITION = 4096
TRAIL = 16
"""As many of the last positions are marked on the circle."""
SPAN = 48
"""As many positions the curves of the coordinates show."""
FINE = 8
"""Samples of a curve per position; a power of 2."""


class Turn(Explorer):
    """The vector q = (1, 2, 3, …, d) turned to a position: one pair in its plane, and all pairs as small dials.

    ``position``: 0 to 4096. ``base``: 1 to 10⁷. ``dim``: even, 2 to 512. ``pair``: 0 to dim/2 − 1 (a ``dim`` that
    becomes too small takes it along). With base 16/π² = 1.62114 and dim 4, pair 1 turns by π/4 per position. Bad values
    raise ``TraitError``.
    """

    script = "turn.js"

    position = Whole(
        5,
        min=0,
        max=MOST_POSITION,
        log=True,
        label="Position m",
        below="positions are counted from 0",
        above="by then the figure has shown everything",
        note="Pair i turns by mθᵢ radians.",
    )
    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all pairs would stand still",
        note="θᵢ = b^(−2i/d) radians per position.",
    )
    dim = Even(
        16,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="the dials would be too small",
        note="The vector has d/2 pairs.",
    )
    pair = Whole(
        1,
        min=0,
        max=MOST_DIMS // 2 - 1,
        label="Pair i",
        below="pairs are counted from 0",
        above="the longest vector has no more pairs",
        note="Beyond the last pair it becomes the last.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The plane of one pair: an arrow at position 0, the same arrow turned counter-clockwise to a position, and "
            "dots where it pointed at the positions before; beside it the matrix that turns it and its two coordinates "
            "as waves; below, a small dial for each pair, from the fastest to the slowest."
        )

    @traitlets.validate("pair")
    def _valid_pair(self, proposal: dict) -> int:
        return pair_within(self.dim, proposal["value"])

    @traitlets.observe("dim")
    def _fit_pair(self, _: dict) -> None:
        self.pair = min(self.pair, self.dim // 2 - 1)


def pair_within(dim: int, pair: int) -> int:
    """``pair``, if a vector of length ``dim`` has it; else ``TraitError``."""
    if pair >= dim // 2:
        raise traitlets.TraitError(
            f"pair must be an integer >= 0 and <= {dim // 2 - 1}, for dim is {dim}, got {pair}"
        )
    return pair
