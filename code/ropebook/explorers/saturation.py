"""Explorer for the *Attention* chapter. It shows why scores are divided by √d."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Switch, Whole
from ropebook.explorers.kit import dials

MOST_DIMS = 512
MOST_KEYS = 32
DRAWS = 16
MEDIAN_DIMS = sorted({round(2 ** (k / 3)) for k in range(28)})
"""The dimensions for which the median over all draws is computed."""


class Saturation(Explorer):
    """The softmax weights of random keys, and the size of the weights' gradient with respect to the dot products q·k.

    Invalid values raise ``TraitError``.

    Args:
        dim: the number of entries of the query and of each key, 1 to 512.
        n_keys: the number of keys, 2 to 32.
        draw: which random numbers to use, 0 to 15.
        scaled: whether the scores are divided by √dim.

    >>> Saturation(dim=1000)
    Traceback (most recent call last):
        ...
    traitlets.traitlets.TraitError: dim must be an integer >= 1 and <= 512, got 1000
    """

    script = "saturation.js"
    colours = meaning(
        blue="weights and gradients with scaled scores",
        orange="broken: without scaling, gradients vanish",
    )

    dim = Whole(
        64,
        min=1,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="a vector holds at least one number",
        above="wider heads show nothing new",
        note="Real heads have 64 to 256.",
    )
    n_keys = Whole(
        8,
        min=2,
        max=MOST_KEYS,
        label="Number of keys",
        below="a single key always gets all the weight",
        above="the bars would be too thin to see",
        note="A single key would always get all the weight.",
    )
    draw = dials.draw(0, DRAWS)
    scaled = Switch(
        True,
        label="Divide by √d",
        note="The scores before the softmax: q·k/√d, or q·k.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Bars for the softmax weights of random keys at one head dimension d, and dots for the size of the gradient "
            "with respect to q·k, against d. With division by √d, the gradient falls slowly; without it, it is larger at "
            "first and then drops steeply."
        )
