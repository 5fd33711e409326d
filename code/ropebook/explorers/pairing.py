"""Explorer for the *Implementing RoPE* chapter. It compares two ways to store the channels of q and k: interleaved, or
in two halves."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Choice, Even, Explorer, Switch, Whole

LEAST_DIMS = 4
MOST_DIMS = 32
MOST_POSITION = 64
BASE = 10_000.0


class Pairing(Explorer):
    """The channels of a query and a key, stored interleaved or half-split, and rotated in one of these two layouts.

    Invalid values raise ``TraitError``.

    Args:
        dim: an even number from 4 to 32.
        m, n: the positions of the query and the key, 0 to 64.
        permute_q, permute_k: whether the channels of q, or of k, are stored in half-split order.
        pairing: which channels the rotation treats as pairs, "interleaved" or "half".
    """

    script = "pairing.js"
    colours = meaning(
        blue="pairs that stay together, and the score as stored",
        orange="broken: cells are joined that don't belong together",
    )

    permute_q = Switch(
        True,
        label="Permute q",
        note="Stores q’s channels 0, 2, 4, … first, then 1, 3, 5, …",
    )
    permute_k = Switch(
        False,
        label="Permute k",
        note="Stores k’s channels in the same order.",
    )
    pairing = Choice(
        {"interleaved": "interleaved", "half": "half-split"},
        "half",
        label="Layout of the rotation",
        note="Interleaved pairs are channels 2i and 2i + 1. Half-split pairs are channels i and i + d/2.",
    )
    dim = Even(
        8,
        min=LEAST_DIMS,
        max=MOST_DIMS,
        label="Dimension d",
        below="a single pair can be stored in only one way",
        above="the cells would be too narrow",
        note="Two channels for each pair.",
        more=True,
    )
    m = Whole(
        40,
        min=0,
        max=MOST_POSITION,
        label="Position m of q",
        below="positions are counted from 0",
        above="the curve ends there",
        note="The rotations cancel where n = m.",
        unit="tokens",
        more=True,
    )
    n = Whole(
        32,
        min=0,
        max=MOST_POSITION,
        label="Position n of k",
        below="positions are counted from 0",
        above="the curve ends there",
        note="The vertical line through the curves is here.",
        unit="tokens",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Two rows of cells for the channels of a query and of a key, in which the two channels of a pair have "
            "the same shade. Arcs join the cells that the rotation treats as a pair, and lines between the rows "
            "join the cells that are multiplied. Below are two curves of the score at every position of the key, in "
            "the reference layout and as stored now, which agree only if q, k and the rotation use the same order."
        )
