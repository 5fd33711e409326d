"""Explorer for the page on choosing a method. It shows settings that reach the length you want, computed from your own
numbers."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Whole, bank
from ropebook.explorers.kit import dials
from ropebook.extrapolation import choices

MODELS = bank.MODELS
NAMES = {
    "cached": "YaRN",
    "tables": "Self-Extend",
    "short": "Dynamic NTK",
    "base": "Larger base",
    "trained": "YaRN",
}
"""The method that `choices` recommends in each case."""
CASES = {
    name: choice.when
    for name, choice in zip(NAMES, choices(4096, 16384), strict=True)
}
"""A description of each case: what you can do to the model."""
MOST_BASE = max(base for _, _, base, _ in MODELS)
"""The largest base among the models in the book."""


class Advice(Explorer):
    """The methods of :func:`ropebook.extrapolation.choices`, for a model that was trained on L tokens and should read
    L′ tokens. The figure shows how far each method reaches.

    Invalid values raise ``TraitError``.

    Args:
        trained_length: L, 16 to 131,072.
        target_length: L′, 16 to 1,048,576.
        base: 1 to 10⁷.
        dim: an even number from 4 to 512.
        may: what you are able to do to the model, one of `CASES`.
    """

    script = "advice.js"
    colours = meaning(
        blue="the method that is advised",
        orange="broken: lengths that the unchanged model can't read",
    )

    trained_length = dials.trained_length(4096)
    target_length = Whole(
        16_384,
        min=16,
        max=2**20,
        log=True,
        label="Target length L′",
        below="shorter than any trained length here",
        above="no method is used for texts that long",
        note="How many tokens the model has to read.",
        unit="tokens",
    )
    base = dials.base()
    dim = dials.dimension(
        128,
        min=4,
        below="NTK’s exponent d/(d − 2) has no value at 2",
    )
    may = Choice(
        CASES,
        label="What you can do to the model",
        note="The row that fits is marked.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Six rows of bars, in which the row of the chosen case is marked, on a logarithmic axis of positions "
            "with lines at the trained length L and the target length L′. The first row is the model with no method, "
            "which reaches L. The other five each give a method and its settings: YaRN, Self-Extend and a larger "
            "base reach L′, while the bar of dynamic NTK is dotted beyond L because its base depends on the text."
        )
