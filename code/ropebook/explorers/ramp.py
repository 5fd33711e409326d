"""Explorer for the *Context extension* chapter. It compares two versions of YaRN's ramp: the one in the paper and the
one in the authors' code."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Switch
from ropebook.explorers.kit import dials
from ropebook.explorers.ladder import LEAST_BASE


class Ramp(Explorer):
    """How much YaRN interpolates each pair, according to the paper and to the code. The paper's ramp is linear in the
    number of turns of a pair, and the code's ramp is linear in the pair's index. The figure also shows the difference.

    Invalid values raise ``TraitError``.

    Args:
        alpha, beta: the number of turns within L at the slow and the fast end of the ramp, 0.25 to 2 and 2.5 to 64.
        trained_length: L, 16 to 131,072.
        base: 500 to 10⁷.
        dim: an even number from 4 to 512.
        factor: s, 1 to 64.
        truncate: whether the code rounds the ends of its ramp outwards to whole pairs, as it usually does.
    """

    script = "ramp.js"
    colours = meaning(
        blue="the ramp that the paper describes",
    )

    alpha = dials.slow_end()
    beta = dials.fast_end()
    trained_length = dials.trained_length(4096)
    base = dials.base(
        min=LEAST_BASE,
        below="the code’s ramp can run backwards there, and at base 1 it has no value",
        above="no model has a larger base",
    )
    dim = dials.dimension(
        128, min=4, below="a ramp needs two pairs", note="A head has d/2 pairs."
    )
    factor = dials.factor(
        16.0, note="Interpolated pairs are slowed down by this factor."
    )
    truncate = Switch(
        True,
        label="Round the ends",
        note="The code’s ramp begins and ends at whole pairs, rounded outwards.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A curve of how much of each pair is interpolated, from nothing for the fast pairs to everything for "
            "the slow ones. In YaRN's paper the curve rises steeply and then flattens out; in its code it is a "
            "straight ramp between the same ends. Below is the factor between the two resulting frequencies, pair "
            "by pair."
        )
