"""Interactive figures: ipywidgets that do their arithmetic in the browser, so they work on a page without a kernel.

An explorer consists of two files with the same name: a Python file with a subclass of :class:`Explorer`, and a
JavaScript file that computes and draws. The explorer's traits are its dials. You can set them from Python or on the
page, and observe them from Python: ``explorer.observe(print, "dim")``.

    >>> from ropebook.explorers.saturation import Saturation
    >>> figure = Saturation(dim=128)
    >>> figure.n_keys = 16
    >>> figure.dials()
    {'dim': 128, 'n_keys': 16, 'draw': 0, 'scaled': True}
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
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
    Within,
    declare,
)
from ropebook.explorers.kit.joining import join
from ropebook.explorers.kit.stills import in_words, opening

__all__ = [
    "Choice",
    "Even",
    "Explorer",
    "Numbers",
    "Real",
    "Switch",
    "Text",
    "Whole",
    "Within",
]

LEAST_ALT = 20
"""The minimum length of an alternative text, in characters. (A mere file name or a single word would describe
nothing.)"""


class Explorer(anywidget.AnyWidget):
    """Base class of all interactive figures.

    A subclass defines:

    - ``script``, the name of its JavaScript file;
    - ``colours``, the meaning of each colour in the figure (see :func:`ropebook.colours.meaning`);
    - a trait from :mod:`ropebook.explorers.kit.dials` for each dial;
    - a default for ``alt``, which describes the figure for readers who cannot see it. Fewer than 20 characters raise
      ``TraitError``.

    From the Python file, the script can import ``dials`` and the constants above the class. It receives them as data.
    """

    script: ClassVar[str] = ""
    colours: ClassVar[Mapping[str, str]] = {}

    alt = traitlets.Unicode(help="what the figure shows, in a sentence").tag(
        sync=True
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # subclasses that traitlets creates on its own have no script
        if "script" in cls.__dict__:
            constants = vars(sys.modules[cls.__module__])
            declared = {**constants, "dials": declare(cls.dial_traits())}
            cls._esm = join(cls.script, declared)
            for name, dial in cls.dial_traits().items():
                if dial.within:
                    _keep_within(cls, name, dial.within)
        super().__init_subclass__(**kwargs)

    def __init__(self, **kwargs: Any) -> None:
        unknown = sorted(set(kwargs) - set(self.trait_names()))
        if unknown:  # without this, ipywidgets would only warn
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
        """Return the traits that are dials, as a mapping from name to trait, in the order in which they are defined."""
        return {
            name: trait
            for owner in reversed(cls.__mro__)
            for name, trait in vars(owner).items()
            if isinstance(trait, Dial)
        }

    def dials(self) -> dict[str, Any]:
        """Return the current values of the dials by name. The script computes the figure from them."""
        return {name: getattr(self, name) for name in self.dial_traits()}

    def still(self) -> str:
        """Return the figure's opening state as an inline SVG in the page's colours, for print and wherever scripts
        don't run.

        The book's pages don't show this still. There, each figure is drawn in its own state when the book is built.
        """
        found = opening(self.script, self.model_id or "still")
        return in_words(self.alt) if found is None else found

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict, dict]:
        data, metadata = super()._repr_mimebundle_(**kwargs)
        return {**data, "text/html": self.still()}, metadata


def _keep_within(kind: type[Explorer], name: str, within: Within) -> None:
    """Tie the dial ``name`` of the class ``kind`` to the limit ``within``. The class then rejects values above the
    limit, and lowers the dial whenever the limit drops below the dial's current value."""

    def most(figure: Explorer) -> int:
        return within.most(getattr(figure, within.dial))

    def valid(figure: Explorer, proposal: dict) -> int:
        value = proposal["value"]
        if value > most(figure):
            allowed = f"an integer >= {proposal['trait'].min} and <= {most(figure)}"
            raise traitlets.TraitError(
                f"{name} must be {allowed}, for {within.dial} is {getattr(figure, within.dial)}, got {value}"
            )
        return value

    def give_way(figure: Explorer, _: dict) -> None:
        setattr(figure, name, min(getattr(figure, name), most(figure)))

    # traitlets does the same with handlers that are defined in a class.
    for handler, of in [
        (traitlets.validate(name)(valid), f"_valid_{name}"),
        (traitlets.observe(within.dial)(give_way), f"_fit_{name}"),
    ]:
        handler.class_init(kind, of)
        setattr(kind, of, handler)
