"""The explorer of chapter *Longer texts* that shows which pairs never turned in training, and what each method does to them."""

from __future__ import annotations

import traitlets

from ropebook import extrapolation
from ropebook.explorers import Even, Explorer, Real, Switch, Whole

MOST_DIMS = 512
MOST_LENGTH = 131_072
MOST_FACTOR = 64
LEAST_BASE = 500
"""Below, with these limits of the other dials, the ramp of YaRN's code could run backwards: then it has no value."""
MOST_ALPHA = 2
LEAST_BETA = 2.5
"""α ends where β has not begun, so that α < β."""
LEAST_ALPHA = 0.25
MOST_BETA = 64
SHORTEST = 5
"""The axis of wavelengths begins here; the fastest pair needs 2π positions."""
METHODS = {
    name: {"title": extrapolation.METHODS[name].title, "look": look}
    for name, look in {
        "linear": ("3", 2, ""),
        "ntk": ("4", 2, ""),
        "ntk_by_parts": ("ink", 1.75, "7 4"),
        "yarn": ("ink", 1.75, ""),
        "llama3": ("ink", 2, "0 4"),
    }.items()
}
"""The methods that can be laid over the ladder: the name of each, and its colour, width and dashes."""


class Ladder(Explorer):
    """The wavelengths λ_i = 2π/θ_i of all pairs against the trained length L, and methods that stretch them for L′ = s·L.

    ``base``: 500 to 10⁷. ``dim``: even, 4 to 512. ``trained_length``: L, 16 to 131072. ``factor``: s, 1 to 64.
    ``alpha``: 0.25 to 2, and ``beta``: 2.5 to 64, the ends of the ramp of NTK-by-parts and YaRN. ``linear``, ``ntk``,
    ``ntk_by_parts``, ``yarn``, ``llama3``: whether this method of :data:`ropebook.extrapolation.METHODS` is shown. Bad
    values raise ``TraitError``.
    """

    script = "ladder.js"

    base = Real(
        10_000.0,
        min=LEAST_BASE,
        max=1e7,
        log=True,
        label="Base b",
        below="YaRN’s ramp can run backwards there, and at base 1 no pair is slower than another",
        above="no model goes further",
        note="Pair i has the wavelength λᵢ = 2π b^(2i/d).",
    )
    dim = Even(
        128,
        min=4,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="NTK’s exponent d/(d − 2) has no value at 2",
        above="wider heads show nothing new",
        note="Of a head: d/2 pairs.",
    )
    trained_length = Whole(
        4096,
        min=16,
        max=MOST_LENGTH,
        log=True,
        label="Trained length L",
        below="too short for a pair to turn",
        above="few models see more in training",
        note="Tokens in the longest text of training.",
        more=True,
    )
    factor = Real(
        4.0,
        min=1.0,
        max=MOST_FACTOR,
        log=True,
        label="Factor s",
        below="L′ would be shorter than L",
        above="no method is used so far out",
        note="The wanted length is L′ = s·L, rounded down.",
    )
    alpha = Real(
        1.0,
        min=LEAST_ALPHA,
        max=MOST_ALPHA,
        log=True,
        label="Slow end α",
        below="no pair would be slow enough",
        above=f"α must be less than β, which begins at {LEAST_BETA}",
        note="NTK-by-parts and YaRN: pairs with fewer turns within L are interpolated.",
        more=True,
    )
    beta = Real(
        32.0,
        min=LEAST_BETA,
        max=MOST_BETA,
        log=True,
        label="Fast end β",
        below=f"β must be more than α, which ends at {MOST_ALPHA}",
        above="hardly a pair would be kept",
        note="NTK-by-parts and YaRN: pairs with more turns within L are kept.",
        more=True,
    )
    linear = Switch(
        True,
        label="Position interpolation",
        note="Every wavelength becomes s times as long.",
        more=True,
    )
    ntk = Switch(
        True,
        label="NTK-aware",
        note="The first is kept, the last takes s times as long.",
        more=True,
    )
    ntk_by_parts = Switch(
        False,
        label="NTK-by-parts",
        note="Fast ones kept, slow ones interpolated, a ramp between.",
        more=True,
    )
    yarn = Switch(
        True,
        label="YaRN",
        note="The same, with the ramp that its published code has.",
        more=True,
    )
    llama3 = Switch(
        False,
        label="Llama 3.1",
        note="NTK-by-parts with α = 1 and β = 4.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The wavelength of each pair on a logarithmic scale, rising from 6 positions a turn like a ladder, with lines "
            "at the trained length L and the wanted length L′: the pairs above L never completed a turn in training. Over "
            "it the wavelengths that each method makes of them; below, by how much each method stretches each pair."
        )
