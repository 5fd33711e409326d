"""Read and compare numerical answers to exercises that are worked out by hand.

On the site, `book/_static/answers.js` does this in the browser, using the rules that `Numbers.rules` exports. The tests
run the same cases through both implementations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ropebook.exercises.marking import Feedback

# Numbers such as 12, 1,024, .5, 1e6, π and 2π, and products and quotients of such numbers. A percent sign may follow,
# as in 16/21 %.
_DIGITS = r"(?:[0-9]+(?:[, \u00a0\u202f_][0-9]{3})*(?:\.[0-9]+)?|\.[0-9]+)(?:e[+\-−]?[0-9]+)?"
_FACTOR = rf"(?:{_DIGITS}\s*(?:π|pi)?|π|pi)"
_NUMBER = re.compile(
    rf"\s*([-−+]?)\s*({_FACTOR}(?:\s*[*·×/]\s*{_FACTOR})*)\s*(%?)\s*", re.I
)
_EACH = re.compile(rf"([*·×/]?)\s*({_FACTOR})", re.I)

WORDS = {
    "missing": "“{label}” is empty.",
    "unreadable": "“{text}” can't be read as a number. Write it like 0.57, −3, 4/7, 1e6 or 2π.",
    "count": "“{label}” asks for {wanted} numbers, and “{text}” has {found}.",
    "one": "{text} isn't right, and it's none of the usual mistakes.",
    "field": "the first that differs is “{label}”: {text} isn't right, and it's none of the usual mistakes.",
    "entry": "the first that differs is number {place} of “{label}”: {text} isn't right, and it's none of the usual mistakes.",
}
"""Feedback on an answer that is neither right nor a known mistake."""


class _Refused(Exception):
    """Raised if an answer can't be compared.

    The arguments are a key of `WORDS`, and the values to insert in that sentence.
    """


@dataclass(frozen=True)
class Field:
    """A field of an exercise. It asks for one number, or for a list of numbers.

    Args:
        label: a name for the numbers.
        values: the right answer.
        within: the tolerance, as a fraction of the right answer. If the right answer is 0, the tolerance is absolute.
    """

    label: str
    values: tuple[float, ...]
    within: float = 0.005

    def matches(
        self, found: Sequence[float], values: Sequence[float] | None
    ) -> bool:
        """Return whether the numbers in an answer are close enough to ``values``. None accepts any answer."""
        if values is None:
            return True
        pairs = zip(found, values, strict=True)
        return all(self.close(one, other) for one, other in pairs)

    def close(self, found: float, value: float) -> bool:
        """Return whether a number is within the tolerance of ``value``."""
        return abs(found - value) <= self.within * (abs(value) or 1) + 1e-12


@dataclass(frozen=True)
class Numbers:
    """An exercise whose answer consists of one or more numbers.

    ``mistakes`` maps the name of each mistake to the wrong values and the feedback. There is one list of values per
    field, or None if the field may contain any values.
    """

    fields: Sequence[Field]
    mistakes: Mapping[str, tuple[Sequence[Sequence[float] | None], str]]
    praise: str

    def check(self, answer: object) -> Feedback:
        """Give feedback on an answer, which has one number or string per field.

        If there are several fields, the answer is a list or a tuple.

        >>> half = Numbers([Field("one half", (0.5,))], {"twice": ([(2,)], "upside down.")}, "so it is.")
        >>> half.check("1/2"), half.check([2]), half.check(0.3)
        (Right: so it is., Not yet: upside down., Not yet: 0.3 isn't right, and it's none of the usual mistakes.)
        """
        labels = ", ".join(f"“{field.label}”" for field in self.fields)
        if answer is None or answer is ...:
            return Feedback("nothing", f"the answer has {labels}.")
        given = list(answer) if isinstance(answer, (list, tuple)) else [answer]
        if len(given) != len(self.fields):
            said = f"the answer has {labels}, and this has {len(given)} of {len(self.fields)}."
            return Feedback("count", said)
        try:
            found = [
                _values(text, field)
                for text, field in zip(given, self.fields, strict=True)
            ]
        except _Refused as refused:
            kind, parts = refused.args
            return Feedback(kind, WORDS[kind].format(**parts))
        if self._is(found, [field.values for field in self.fields]):
            return Feedback(None, self.praise)
        for name, (values, said) in self.mistakes.items():
            if self._is(found, values):
                return Feedback(name, said)
        return Feedback("other", self._shown(given, found))

    def _is(
        self,
        found: list[list[float]],
        values: Sequence[Sequence[float] | None],
    ) -> bool:
        return all(
            field.matches(one, other)
            for field, one, other in zip(self.fields, found, values, strict=True)
        )

    def _shown(self, given: list, found: list[list[float]]) -> str:
        """Return feedback that quotes the first wrong number the way it was written."""
        for text, field, values in zip(given, self.fields, found, strict=True):
            for place, (one, other) in enumerate(
                zip(values, field.values, strict=True)
            ):
                if not field.close(one, other):
                    several = len(values) > 1
                    kind = "one" if len(self.fields) == 1 else "field"
                    parts = _parts(text) if several else [str(text).strip()]
                    return WORDS["entry" if several else kind].format(
                        label=field.label, place=place + 1, text=parts[place]
                    )
        raise AssertionError("no number is wrong")

    def rules(self) -> dict:
        """Return the right answers, mistakes and messages as data for the page's script.

        >>> Numbers([Field("one", (1,))], {}, "so it is.").rules()["fields"]
        [{'label': 'one', 'values': [1], 'within': 0.005}]
        """
        return {
            "fields": [
                {
                    "label": field.label,
                    "values": list(field.values),
                    "within": field.within,
                }
                for field in self.fields
            ],
            "mistakes": [
                {
                    "values": [one if one is None else list(one) for one in values],
                    "said": said,
                }
                for values, said in self.mistakes.values()
            ],
            "praise": self.praise,
            "words": WORDS,
        }


def read(text: str) -> float | None:
    """Convert a string to a number. Return None if it can't be read as a number.

    >>> [read(text) for text in ("4/7", "−43", "8,192", "50 %", "a", "")]
    [0.5714285714285714, -43.0, 8192.0, 0.5, None, None]
    """
    found = _NUMBER.fullmatch(text)
    if not found:
        return None
    sign, product, percent = found.groups()
    value = -1.0 if sign in ("-", "−") and sign else 1.0
    for operator, factor in _EACH.findall(product):
        number = _factor(factor)
        if operator == "/" and number == 0:
            return None
        value = value / number if operator == "/" else value * number
    return value / 100 if percent else value


def _factor(text: str) -> float:
    digits = re.sub(r"π|pi|[\s,_]", "", text, flags=re.I)
    number = float(digits.replace("−", "-")) if digits else 1.0
    return number * math.pi if re.search("π|pi", text, re.I) else number


def _parts(text: object) -> list[str]:
    """Split the answer to a field with several numbers into strings, one per number."""
    if not isinstance(text, str):
        return [str(one) for one in text]
    return [part for part in re.split(r"[\s,;()\[\]]+", text) if part]


def _values(given: object, field: Field) -> list[float]:
    """Convert the content of a field to numbers. Raises `_Refused` if that is impossible."""
    if isinstance(given, str) and not given.strip():
        raise _Refused("missing", {"label": field.label})
    several = len(field.values) > 1
    if several and not isinstance(given, (str, list, tuple)):
        given = [given]
    parts = _parts(given) if several else [str(given)]
    if len(parts) != len(field.values):
        told = {
            "label": field.label,
            "wanted": len(field.values),
            "text": str(given).strip(),
            "found": len(parts),
        }
        raise _Refused("count", told)
    numbers = [read(part) for part in parts]
    for part, number in zip(parts, numbers, strict=True):
        if number is None or not math.isfinite(number):
            raise _Refused("unreadable", {"text": part.strip()})
    return numbers
