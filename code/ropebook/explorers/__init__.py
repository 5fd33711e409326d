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

import re
from collections.abc import Iterable
from importlib import resources
from typing import Any, ClassVar

import anywidget
import traitlets

from ropebook import checks

SHARED = ("rope.js", "style.js", "figure.js")
"""The parts that every explorer's script begins with: arithmetic, look, dials and drawing."""

LEAST_ALT = 20
"""How long an alternative text must be, in characters: no file name and no single word says what is to be seen."""

_PART = re.compile(r"^//# part: (\S+)\n", re.MULTILINE)


def join_parts(names: Iterable[str]) -> str:
    """The script made of the files ``names`` (beside this one), each under a line ``//# part: name``.

    A module that the page loads from a blob cannot import its neighbours, so the parts become one module; only the
    last may have an ``export``.
    """
    folder = resources.files(__package__)
    return "".join(
        f"//# part: {name}\n{(folder / name).read_text(encoding='utf-8')}"
        for name in names
    )


def split_parts(script: str) -> dict[str, str]:
    """The inverse of :func:`join_parts`: name to text, in order. Text without part lines raises ``ValueError``.

    >>> split_parts("//# part: a.js\\nlet a;\\n//# part: b.js\\nlet b;\\n")
    {'a.js': 'let a;\\n', 'b.js': 'let b;\\n'}
    """
    start, *rest = _PART.split(script)
    if start or not rest:
        raise ValueError(
            f"script must begin with a line '//# part: name', got {script[:40]!r}"
        )
    return dict(zip(rest[::2], rest[1::2], strict=True))


class Whole(traitlets.Int):
    """A trait for a whole number from ``min`` to ``max``; anything else raises ``TraitError`` and says why."""

    def validate(self, obj: Any, value: object) -> int:
        """The value as ``int`` (NumPy's integers pass, booleans do not)."""
        try:
            return checks.integer(
                self.name, value, minimum=self.min, maximum=self.max
            )
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(str(error)) from None


class Even(Whole):
    """A trait for an even number from ``min`` to ``max``; anything else raises ``TraitError``."""

    def validate(self, obj: Any, value: object) -> int:
        """The value as ``int`` (NumPy's integers pass, booleans do not)."""
        value = super().validate(obj, value)
        if value % 2:
            allowed = f"an even integer >= {self.min} and <= {self.max}"
            raise traitlets.TraitError(
                f"{self.name} must be {allowed}, got {value}"
            )
        return value


class Real(traitlets.Float):
    """A trait for a finite number from ``min`` to ``max``; anything else raises ``TraitError``."""

    def validate(self, obj: Any, value: object) -> float:
        """The value as ``float`` (integers pass, booleans do not)."""
        try:
            return checks.number(
                self.name, value, minimum=self.min, maximum=self.max
            )
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(str(error)) from None


class Choice(traitlets.Enum):
    """A trait for one of a few texts, ``Choice(["interleaved", "half"], "half")``; anything else raises ``TraitError``.

    Without a second argument the first text is the default.
    """

    def __init__(self, values: Iterable[str], default: str | None = None) -> None:
        values = tuple(values)
        super().__init__(values, values[0] if default is None else default)

    def validate(self, obj: Any, value: object) -> str:
        """The value, if it is one of ``values``."""
        try:
            return checks.choice(self.name, value, self.values)
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None


class Switch(traitlets.Bool):
    """A trait for True or False; anything else, 1 and 0 too, raises ``TraitError``."""

    def validate(self, obj: Any, value: object) -> bool:
        """The value, if it is a ``bool``."""
        if not isinstance(value, bool):
            raise traitlets.TraitError(
                f"{self.name} must be True or False, got {value!r}"
            )
        return value


class Explorer(anywidget.AnyWidget):
    """The base of all interactive figures.

    A subclass has: ``script``, the name of its JavaScript file; one trait tagged ``sync=True, dial=True`` for each
    dial; ``alt``'s default; ``compute`` and ``terms``; ``draw_still``. ``alt`` says what is to be seen, for readers who
    do not see it; fewer than 20 characters raise ``TraitError``.
    """

    script: ClassVar[str]

    alt = traitlets.Unicode(help="what is to be seen, in a sentence").tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if (
            "script" in cls.__dict__
        ):  # traitlets makes further subclasses of its own
            cls._esm = join_parts([*SHARED, cls.script])
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
    def dial_traits(cls) -> dict[str, traitlets.TraitType]:
        """The traits that are dials, name to trait, in the order of their definition."""
        dials = cls.class_traits(dial=True)  # in alphabetical order
        return {
            name: dials[name]
            for owner in reversed(cls.__mro__)
            for name in vars(owner)
            if name in dials
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
