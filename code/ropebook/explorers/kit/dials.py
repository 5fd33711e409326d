"""Dials: traits that have a name, limits, and a reason for each limit.

A dial is declared once, as a trait of an :class:`~ropebook.explorers.Explorer`. The explorer's script receives the
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
    """A limit that depends on another dial: at most ``times`` times that dial's value, plus ``plus``, rounded down.

    Values beyond the limit are rejected. If the other dial is lowered and the limit falls below the current value, the
    value is lowered too. The script receives the limit, and behaves in the same way. With ``follows``, the page also
    raises the value when the limit rises, if the value was at the limit.

    >>> Within("dim", times=0.5, plus=-1).most(16)
    7
    """

    dial: str
    times: float = 1
    plus: int = 0
    follows: bool = False

    def most(self, value: int) -> int:
        """Return the limit when the other dial is set to ``value``."""
        return math.floor(self.times * value + self.plus)


class Dial(traitlets.TraitType):
    """Base class of all dials: a trait that is shown on the page.

    ``label`` is the dial's name and ``note`` is a sentence about its effect; readers see both. ``unit`` is the unit of
    its values, if they have one. ``more`` says whether the dial is listed under "More dials" because the figure's story
    does not need it.
    """

    kind: ClassVar[str]
    within: Within | None = None

    def __init__(
        self,
        *args: Any,
        label: str,
        note: str,
        unit: str | None = None,
        more: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.tag(sync=True, dial=True)
        self._says = {"label": label, "note": note, "unit": unit, "more": more}

    def declared(self) -> dict[str, Any]:
        """Describe the dial for the script. The dial's name is not included."""
        return {"kind": self.kind, **self._says}


class _Number(Dial):
    """A number from ``min`` to ``max``.

    ``below`` and ``above`` give the reasons for these limits. ``log`` says whether the slider is logarithmic.
    ``within`` is a limit set by another dial. ``stops`` are values that the slider marks and, when it is dragged close to
    one, takes.
    """

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
        stops: Iterable[float] = (),
        **says: Any,
    ) -> None:
        super().__init__(default, min=min, max=max, **says)
        self.within = within
        self._says |= {"log": log, "below": below, "above": above}
        self._says |= {"stops": list(stops) or None}

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
    """A dial for an integer from ``min`` to ``max``. Any other value raises ``TraitError``, and the message gives the
    reason."""

    step = 1

    def validate(self, obj: Any, value: object) -> int:
        """Return the value as an ``int``. NumPy integers are accepted, booleans are not."""
        try:
            return checks.integer(
                self.name, value, minimum=self.min, maximum=self.max
            )
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(str(error)) from None


class Even(Whole):
    """A dial for an even integer from ``min`` to ``max``. Any other value raises ``TraitError``."""

    step = 2

    def validate(self, obj: Any, value: object) -> int:
        """Return the value as an ``int``. NumPy integers are accepted, booleans are not."""
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
    """A dial for a finite number from ``min`` to ``max``. Any other value raises ``TraitError``."""

    def validate(self, obj: Any, value: object) -> float:
        """Return the value as a ``float``. Integers are accepted, booleans are not."""
        try:
            return checks.number(
                self.name, value, minimum=self.min, maximum=self.max
            )
        except (TypeError, ValueError) as error:
            raise traitlets.TraitError(str(error)) from None


class Choice(Dial, traitlets.Enum):
    """A dial that offers a few strings to choose from. Any other value raises ``TraitError``.

    ``values`` lists the strings, or maps each string to its name on the page. ``default`` is the string chosen at
    first, by default the first one in ``values``.
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
        """Return the value if it is one of ``values``."""
        try:
            return checks.choice(self.name, value, self.values)
        except ValueError as error:
            raise traitlets.TraitError(str(error)) from None

    def declared(self) -> dict[str, Any]:
        return {**super().declared(), "options": list(self.values)}


class Switch(Dial, traitlets.Bool):
    """A dial that is True or False. Any other value, even 1 or 0, raises ``TraitError``."""

    kind = "switch"

    def validate(self, obj: Any, value: object) -> bool:
        """Return the value if it is a ``bool``."""
        if not isinstance(value, bool):
            raise traitlets.TraitError(
                f"{self.name} must be True or False, got {value!r}"
            )
        return value


class Text(Dial, traitlets.Unicode):
    """A dial for text typed by the reader. The explorer's script interprets it. ``lines`` says whether the text may
    have several lines."""

    kind = "text"

    def __init__(self, *args: Any, lines: bool = False, **says: Any) -> None:
        super().__init__(*args, **says)
        self._says |= {"lines": lines}


class Numbers(Dial, traitlets.List):
    """A dial for a list of integers typed by the reader. The explorer's script interprets it."""

    kind = "text"

    def __init__(self, **says: Any) -> None:
        super().__init__(traitlets.Int(), **says)


def declare(dials: Mapping[str, Dial]) -> list[dict[str, Any]]:
    """Describe dials for a script. ``dials`` maps names to traits. Properties that are false or None are left out."""
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
    """Return a dial for the base b, up to 10⁷."""
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
    """Return a dial for the dimension d of a head."""
    return Even(
        default,
        min=min,
        max=max,
        log=True,
        **{
            "label": "Dimension d",
            "below": "one pair needs two numbers",
            "above": "wider heads show nothing new",
            "note": "The query and the key have d entries, or d/2 pairs.",
            **says,
        },
    )


def pair(default: int, *, dims: int = 512, **says: Any) -> Whole:
    """Return a dial for the index i of a pair. The head's dimension is set by the dial ``dim``, whose maximum is
    ``dims``."""
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
    """Return a dial that selects one of ``count`` random draws."""
    return Whole(
        default,
        min=0,
        max=count - 1,
        label="Random draw",
        below="draws are counted from 0",
        above="there are no more draws",
        note="Each draw has a different query and different keys.",
        more=True,
    )


def trained_length(default: int, *, max: int = 131_072, **says: Any) -> Whole:
    """Return a dial for the trained length L."""
    return Whole(
        default,
        min=16,
        max=max,
        log=True,
        **{
            "label": "Trained length L",
            "below": "too short for a pair to turn",
            "above": "few models see longer texts in training",
            "note": "Tokens in the longest training text.",
            "unit": "tokens",
            "more": True,
            **says,
        },
    )


def factor(default: float, *, max: float = 64, **says: Any) -> Real:
    """Return a dial for s, the factor by which a method extends the trained length."""
    return Real(
        default,
        min=1.0,
        max=max,
        log=True,
        **{
            "label": "Factor s",
            "below": "L′ would be shorter than L",
            "above": "no method is used with factors this large",
            "note": "The target length is L′ = s·L, rounded down.",
            **says,
        },
    )


MOST_ALPHA = 2
LEAST_BETA = 2.5
"""The smallest β. It is above the largest α, so α < β holds for all settings."""
LEAST_ALPHA = 0.25
MOST_BETA = 64


def slow_end() -> Real:
    """Return a dial for α, the number of turns within L at the slow end of a ramp."""
    return Real(
        1.0,
        min=LEAST_ALPHA,
        max=MOST_ALPHA,
        log=True,
        label="Slow end α",
        below="no pair would be slow enough",
        above=f"α must be less than β, which begins at {LEAST_BETA}",
        note="Turns within L. Pairs with fewer turns are interpolated.",
        unit="turns",
        more=True,
    )


def fast_end() -> Real:
    """Return a dial for β, the number of turns within L at the fast end of a ramp."""
    return Real(
        32.0,
        min=LEAST_BETA,
        max=MOST_BETA,
        log=True,
        label="Fast end β",
        below=f"β must be more than α, which ends at {MOST_ALPHA}",
        above="hardly any pair would be kept",
        note="Turns within L. Pairs with more turns are kept.",
        unit="turns",
        more=True,
    )
