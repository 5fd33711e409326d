"""Interactive figures: ipywidgets that do their arithmetic in the browser, and so live on a page without a kernel.

An explorer is a subclass of :class:`Explorer` in a Python file and a JavaScript file of the same name. Its traits are
the dials: set them from Python or by hand, observe them from Python, ``explorer.observe(print, "dim")``. The JavaScript
and the Python compute the same thing from the same traits, and a test holds them together.

    >>> from ropebook.explorers.saturation import Saturation
    >>> figure = Saturation(dim=128)
    >>> figure.n_keys = 16
    >>> round(sum(figure.compute(figure.dials())["weights"]), 12)
    1.0
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import anywidget
import traitlets

from ropebook.explorers.kit.dials import (
    Choice,
    Dial,
    Even,
    Numbers,
    Real,
    Switch,
    Text,
    Whole,
    declare,
)
from ropebook.explorers.kit.joining import join

__all__ = [
    "Choice",
    "Even",
    "Explorer",
    "Numbers",
    "Real",
    "Switch",
    "Text",
    "Whole",
]

LEAST_ALT = 20
"""How long an alternative text must be, in characters: no file name and no single word says what is to be seen."""


class Explorer(anywidget.AnyWidget):
    """The base of all interactive figures.

    A subclass has: ``script``, the name of its JavaScript file; a trait of :mod:`ropebook.explorers.kit.dials` for each
    dial; ``alt``'s default; ``compute`` and ``terms``; ``draw_still``. ``alt`` says what is to be seen, for readers who
    do not see it; fewer than 20 characters raise ``TraitError``.

    Its script imports from the Python file, as data, ``dials`` and the constants that stand above the class.
    """

    script: ClassVar[str]

    alt = traitlets.Unicode(help="what is to be seen, in a sentence").tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if (
            "script" in cls.__dict__
        ):  # traitlets makes further subclasses of its own
            constants = vars(sys.modules[cls.__module__])
            declared = {**constants, "dials": declare(cls.dial_traits())}
            cls._esm = join(cls.script, declared)
        super().__init_subclass__(**kwargs)

    def __init__(self, **kwargs: Any) -> None:
        unknown = sorted(set(kwargs) - set(self.trait_names()))
        if unknown:  # ipywidgets would only warn
            allowed = ", ".join([*self.dial_traits(), "alt"])
            raise TypeError(
                f"{type(self).__name__} takes {allowed}; got {unknown[0]}"
            )
        super().__init__(**kwargs)
        self._check_alt(self.alt)

    @traitlets.validate("alt")
    def _valid_alt(self, proposal: dict) -> str:
        return self._check_alt(proposal["value"])

    def _check_alt(self, alt: str) -> str:
        if len(alt.strip()) < LEAST_ALT:
            allowed = f"at least {LEAST_ALT} characters that say what is to be seen"
            raise traitlets.TraitError(f"alt must be {allowed}, got {alt!r}")
        return alt

    @classmethod
    def dial_traits(cls) -> dict[str, Dial]:
        """The traits that are dials, name to trait, in the order of their definition."""
        return {
            name: trait
            for owner in reversed(cls.__mro__)
            for name, trait in vars(owner).items()
            if isinstance(trait, Dial)
        }

    def dials(self) -> dict[str, Any]:
        """The dials as they stand, name to value: what ``compute`` takes."""
        return {name: getattr(self, name) for name in self.dial_traits()}

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """What the figure shows, from the dials alone: numbers, strings, and lists of them, under the names that the
        JavaScript's ``compute`` uses. The numbers come from the book's modules, in float64."""
        raise NotImplementedError

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """For each entry of numbers in ``compute``'s result: the sum of the absolute values of the terms that make
        it, as a number or in the entry's shape. JavaScript may differ from Python by 1e-6 of that."""
        raise NotImplementedError

    def draw_still(self) -> tuple[float, float, list[str]]:
        """Width, height and the SVG elements of the still figure."""
        raise NotImplementedError

    def still(self) -> str:
        """The figure at the dials' present values as one inline SVG, for print and for pages without JavaScript. Its
        colours are the page's, by CSS variables."""
        from ropebook.explorers.still import picture

        return picture(*self.draw_still(), alt=self.alt)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/html": self.still()}, metadata
