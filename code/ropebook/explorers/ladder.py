"""Explorer for the *Context extension* chapter. It shows which pairs never completed a turn in training, and what each
method does to them."""

from __future__ import annotations

import traitlets

from ropebook import extrapolation
from ropebook.colours import meaning
from ropebook.explorers import Explorer, Switch
from ropebook.explorers.kit import dials

LEAST_BASE = 500
"""The smallest base that can be chosen. With a smaller one, other dials could make the ramp of YaRN's code run
backwards, and then the ramp is undefined."""
SHORTEST = 5
"""The start of the wavelength axis. (The fastest pair has a wavelength of 2π positions.)"""
_LOOKS = [
    ("ink", 2, ""),
    ("muted", 2, ""),
    ("ink", 1.75, "7 4"),
    ("muted", 2, "7 4"),
    ("ink", 2, "0 4"),
    ("muted", 2, "0 4"),
    ("ink", 1.75, "9 3 2 3"),
]
_OFFERED = {
    name: method
    for name, method in extrapolation.METHODS.items()
    if "ladder" in method.explorers
}
METHODS = {
    name: {"title": method.title, "look": _LOOKS[place]}
    for place, (name, method) in enumerate(_OFFERED.items())
}
"""The methods that the figure can show, each with its title and its look: colour, line width and dashes."""


class Ladder(Explorer):
    """The wavelengths λ_i = 2π/θ_i of all pairs, compared with the trained length L. The figure also shows how much
    each method stretches the wavelengths to reach L′ = s·L.

    Invalid values raise ``TraitError``. For each method in `METHODS`, a switch such as ``linear`` or ``yarn`` says
    whether the method is shown.

    Args:
        base: 500 to 10⁷.
        dim: an even number from 4 to 512.
        trained_length: L, 16 to 131,072.
        factor: s, 1 to 64.
        alpha, beta: the ends of the ramp of NTK-by-parts and YaRN, 0.25 to 2 and 2.5 to 64.
    """

    script = "ladder.js"
    colours = meaning(
        blue="pairs that complete a turn in training",
        orange="new: a longer text brings the pair to angles that training did not have",
    )

    base = dials.base(
        min=LEAST_BASE,
        below="YaRN’s ramp can run backwards there, and at base 1 no pair is slower than another",
        above="no model has a larger base",
        note="Pair i has the wavelength λᵢ = 2π b^(2i/d).",
    )
    dim = dials.dimension(
        128,
        min=4,
        below="NTK’s exponent d/(d − 2) has no value at 2",
        note="A head has d/2 pairs.",
    )
    trained_length = dials.trained_length(4096)
    factor = dials.factor(4.0)
    alpha = dials.slow_end()
    beta = dials.fast_end()
    # This adds a switch for each method.
    locals().update(
        {
            name: Switch(
                False,
                label=method.title[0].upper() + method.title[1:],
                note=method.explorers["ladder"],
                more=True,
            )
            for name, method in _OFFERED.items()
        }
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The wavelengths of all pairs on a logarithmic scale rise from pair to pair, starting at about 6 "
            "positions per turn. Lines mark the trained length L and the target length L′, and pairs above the line "
            "at L never completed a turn in training. With a method switched on, its wavelengths appear too, and a "
            "curve underneath shows how much it stretches each pair."
        )
