"""Dials: traits with a name, limits, and the reasons for these limits.

A dial is declared once, as a trait of an :class:`~ropebook.explorers.Explorer`. The explorer's script gets the
declaration as data.

    >>> class Figure(traitlets.HasTraits):
    ...     dim = Even(64, min=2, max=512, log=True, label="Dimension d", note="Of query and key: d/2 pairs.",
    ...                below="one pair needs two numbers", above="wider heads show nothing new")
    >>> Figure().dim
    64
    >>> Figure.dim.declared()["step"]
    2
    >>> Figure(dim=7)
    Traceback (most recent call last):
        ...
    traitlets.traitlets.TraitError: dim must be an even integer >= 2 and <= 512, got 7
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple

import traitlets

from ropebook import checks


class Within(NamedTuple):
    """A limit that depends on another dial: at most ``times`` · that dial's value + ``plus``, rounded down.

    A value beyond the limit is refused. If the other dial shrinks and the limit falls below the current value, the
    value is lowered. The script gets the limit too, and does the same.

    >>> Within("dim", times=0.5, plus=-1).most(16)
    7
    """

    dial: str
    times: float = 1
    plus: int = 0

    def most(self, value: int) -> int:
        """The limit when the other dial is set to ``value``."""
        return math.floor(self.times * value + self.plus)


class Dial(traitlets.TraitType):
    """The base of all dials: a trait that a page shows.

    ``label`` is its name and ``note`` a sentence on what it does; both are for readers. ``more``: whether it is among
    the "More dials", because the figure's story does not need it.
    """

    kind: ClassVar[str]
    within: Within | None = None

    def __init__(
        self,
        *args: Any,
        label: str,
        note: str,
        more: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.tag(sync=True, dial=True)
        self._says = {"label": label, "note": note, "more": more}

    def declared(self) -> dict[str, Any]:
        """The description of the dial that the script gets, except for the dial's name."""
        return {"kind": self.kind, **self._says}


class _Number(Dial):
    """A number from ``min`` to ``max``. ``below`` and ``above`` explain these limits. ``log``: whether its slider is
    logarithmic. ``within``: a limit that is set by another dial."""

    kind = "number"
    step: ClassVar[int | None] = None

    def __init__(
        self,
        default: float,
        *,
        min: float,
        max: float,
        below: str,
        above: str,
        log: bool = False,
        within: Within | None = None,
        **says: Any,
    ) -> None:
        super().__init__(default, min=min, max=max, **says)
        self.within = within
        self._says |= {"log": log, "below": below, "above": above}

    def declared(self) -> dict[str, Any]:
        step = {} if self.step is None else {"whole": True, "step": self.step}
        within = {} if self.within is None else {"within": self.within._asdict()}
        return {
            **super().declared(),
            "min": self.min,
            "max": self.max,
            **step,
            **within,
        }


class Whole(_Number, traitlets.Int):
    """A dial for a whole number from ``min`` to ``max``; anything else raises ``TraitError``, which says why."""

    step = 1

    def validate(self, obj: Any, value: object) -> int:
        """Returns the value as ``int``. NumPy's integers are accepted, booleans are not."""
        try:
            return checks.integer(
                self.name, value, minimum=self.min, maximum=self.max
            )
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(str(error)) from None


class Even(Whole):
    """A dial for an even number from ``min`` to ``max``; anything else raises ``TraitError``."""

    step = 2

    def validate(self, obj: Any, value: object) -> int:
        """Returns the value as ``int``. NumPy's integers are accepted, booleans are not."""
        value = super().validate(obj, value)
        if value % 2:
            allowed = f"an even integer >= {self.min} and <= {self.max}"
            raise traitlets.TraitError(
                f"{self.name} must be {allowed}, got {value}"
            )
        return value

    def declared(self) -> dict[str, Any]:
        return {**super().declared(), "between": "entries come in pairs"}


class Real(_Number, traitlets.Float):
    """A dial for a finite number from ``min`` to ``max``; anything else raises ``TraitError``."""

    def validate(self, obj: Any, value: object) -> float:
        """Returns the value as ``float``. Integers are accepted, booleans are not."""
        try:
            return checks.number(
                self.name, value, minimum=self.min, maximum=self.max
            )
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(str(error)) from None


class Choice(Dial, traitlets.Enum):
    """A dial for one of a few texts; anything else raises ``TraitError``.

    ``values``: the texts, or a mapping from each text to its name on the page. ``default``: by default the first text.
    """

    kind = "choice"

    def __init__(
        self,
        values: Iterable[str] | Mapping[str, str],
        default: str | None = None,
        **says: Any,
    ) -> None:
        names = list(values.values()) if isinstance(values, Mapping) else None
        values = tuple(values)
        super().__init__(values, values[0] if default is None else default, **says)
        self._says |= {"names": names}

    def validate(self, obj: Any, value: object) -> str:
        """Returns the value if it is one of ``values``."""
        try:
            return checks.choice(self.name, value, self.values)
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None

    def declared(self) -> dict[str, Any]:
        return {**super().declared(), "options": list(self.values)}


class Switch(Dial, traitlets.Bool):
    """A dial for True or False; anything else, even 1 and 0, raises ``TraitError``."""

    kind = "switch"

    def validate(self, obj: Any, value: object) -> bool:
        """Returns the value if it is a ``bool``."""
        if not isinstance(value, bool):
            raise traitlets.TraitError(
                f"{self.name} must be True or False, got {value!r}"
            )
        return value


class Text(Dial, traitlets.Unicode):
    """A dial for typed text; the script decides how to read it. ``lines``: whether it may have several lines."""

    kind = "text"

    def __init__(self, *args: Any, lines: bool = False, **says: Any) -> None:
        super().__init__(*args, **says)
        self._says |= {"lines": lines}


class Numbers(Dial, traitlets.List):
    """A dial for a typed list of whole numbers; the script decides how to read it."""

    kind = "text"

    def __init__(self, **says: Any) -> None:
        super().__init__(traitlets.Int(), **says)


def declare(dials: Mapping[str, Dial]) -> list[dict[str, Any]]:
    """Describes dials, given as a mapping from name to trait, for a script. Properties that are false or missing are
    left out."""
    told = [{"trait": name, **dial.declared()} for name, dial in dials.items()]
    return [
        {
            key: value
            for key, value in dial.items()
            if value is not None and value is not False
        }
        for dial in told
    ]


# ---- Dials that several figures share ----


def base(default: float = 10_000.0, *, min: float = 1.0, **says: Any) -> Real:
    """A dial for the base b, up to 10⁷."""
    return Real(
        default,
        min=min,
        max=1e7,
        log=True,
        **{
            "label": "Base b",
            "below": "a smaller base would make later pairs turn faster",
            "above": "nearly all pairs would hardly turn at all",
            "note": "Pair i rotates by θᵢ = b^(−2i/d) radians per position.",
            **says,
        },
    )


def dimension(default: int, *, min: int = 2, max: int = 512, **says: Any) -> Even:
    """A dial for the dimension d of a head."""
    return Even(
        default,
        min=min,
        max=max,
        log=True,
        **{
            "label": "Dimension d",
            "below": "one pair needs two numbers",
            "above": "wider heads show nothing new",
            "note": "Of query and key: d/2 pairs.",
            **says,
        },
    )


def pair(default: int, *, dims: int = 512, **says: Any) -> Whole:
    """A dial for the number i of a pair. The head's dimension is the dial ``dim``, which goes up to ``dims``."""
    return Whole(
        default,
        min=0,
        max=dims // 2 - 1,
        within=Within("dim", times=0.5, plus=-1),
        **{
            "label": "Pair i",
            "below": "pairs are counted from 0",
            "above": "the longest vector has no more pairs",
            "note": "From 0, the fastest, to d/2 − 1, the slowest.",
            "more": True,
            **says,
        },
    )


def draw(default: int, count: int) -> Whole:
    """A dial that chooses one of ``count`` random draws."""
    return Whole(
        default,
        min=0,
        max=count - 1,
        label="Random draw",
        below="draws are counted from 0",
        above="there are no more draws",
        note="Each draw has a different query and keys.",
        more=True,
    )


def trained_length(default: int, *, max: int = 131_072, **says: Any) -> Whole:
    """A dial for the trained length L."""
    return Whole(
        default,
        min=16,
        max=max,
        log=True,
        **{
            "label": "Trained length L",
            "below": "too short for a pair to turn",
            "above": "few models see more in training",
            "note": "Tokens in the longest training text.",
            "more": True,
            **says,
        },
    )


def factor(default: float, *, max: float = 64, **says: Any) -> Real:
    """A dial for the factor s by which a method extends the trained length."""
    return Real(
        default,
        min=1.0,
        max=max,
        log=True,
        **{
            "label": "Factor s",
            "below": "L′ would be shorter than L",
            "above": "no method is used with factors this large",
            "note": "The wanted length is L′ = s·L, rounded down.",
            **says,
        },
    )


MOST_ALPHA = 2
LEAST_BETA = 2.5
"""The smallest β, which is above the largest α, so that always α < β."""
LEAST_ALPHA = 0.25
MOST_BETA = 64


def slow_end() -> Real:
    """A dial for α, the number of turns within L at the slow end of a ramp."""
    return Real(
        1.0,
        min=LEAST_ALPHA,
        max=MOST_ALPHA,
        log=True,
        label="Slow end α",
        below="no pair would be slow enough",
        above=f"α must be less than β, which begins at {LEAST_BETA}",
        note="Turns within L; pairs with fewer are interpolated.",
        more=True,
    )


def fast_end() -> Real:
    """A dial for β, the number of turns within L at the fast end of a ramp."""
    return Real(
        32.0,
        min=LEAST_BETA,
        max=MOST_BETA,
        log=True,
        label="Fast end β",
        below=f"β must be more than α, which ends at {MOST_ALPHA}",
        above="hardly any pair would be kept",
        note="Turns within L; pairs with more are kept.",
        more=True,
    )
