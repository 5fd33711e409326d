"""A small language for rules. Python and JavaScript interpret its conditions and sentences in the same way.

A condition is a number, the name of a fact, or a list that begins with a keyword:
``[">", "original", "maximum"]``. A comparison with a missing fact is false. If a fact is missing from a computation,
the result is missing too. A sentence contains the names of facts in braces: ``"{factor}"`` inserts the value as readers
see it, and ``"{factor:code}"`` inserts it in the form that code needs.
"""

from __future__ import annotations

import math
import operator
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal

Facts = Mapping[str, object]

LONGEST = 60
"""A sentence quotes at most this many characters of a string from the file."""
MOST_ITEMS = 8
"""A sentence quotes at most this many items of a list from the file."""
UNKNOWN = "unknown"

_COMPARED = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "near": lambda one, other: abs(one - other) <= 1e-6 * abs(other),
}
_COMPUTED = {"*": operator.mul, "/": operator.truediv, "%": operator.mod}
_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"}
_HOLE = re.compile(r"\{(\w+)(:code)?\}")


def holds(condition: object, facts: Facts) -> bool:
    """Return whether a condition is true for the given facts.

    >>> holds(["and", ["given", "factor"], ["<", "factor", 1]], {"factor": 0.5})
    True
    >>> holds(["<", "factor", 1], {})
    False
    """
    return compiled(condition)(facts)


def compiled(condition: object) -> Callable[[Facts], bool]:
    """Compile a condition into a function of the facts, for conditions that are evaluated often.

    >>> compiled(["given", "factor"])({"factor": 2})
    True
    """
    if isinstance(condition, bool):
        return lambda facts: condition
    if isinstance(condition, str):
        return lambda facts: facts.get(condition) is True
    word, *rest = condition
    if word in ("and", "or", "not"):
        inner = [compiled(one) for one in rest]
        if word == "not":
            return lambda facts: not inner[0](facts)
        if word == "and":
            return lambda facts: all(one(facts) for one in inner)
        return lambda facts: any(one(facts) for one in inner)
    if word == "given":
        return lambda facts: all(facts.get(one) is not None for one in rest)
    if word == "missing":
        return lambda facts: all(facts.get(one) is None for one in rest)
    if word == "among":
        return lambda facts: facts.get(rest[0]) in rest[1]
    return _comparison(word, *rest)


def _comparison(word: str, one: object, other: object) -> Callable[[Facts], bool]:
    compare = _COMPARED[word]

    def comparison(facts: Facts) -> bool:
        left = value(one, facts)
        right = None if left is None else value(other, facts)
        return right is not None and compare(left, right)

    return comparison


def value(expression: object, facts: Facts) -> float | None:
    """Evaluate an expression with the given facts.

    Return None if it can't be evaluated.

    >>> value(["/", 1, "factor"], {"factor": 4.0}), value(["sum", "sections"], {"sections": [16, 24, 24]})
    (0.25, 64)
    """
    if isinstance(expression, str):
        found = facts.get(expression)
        return None if isinstance(found, (str, list, bool)) else found
    if not isinstance(expression, list):
        return expression
    word, *rest = expression
    if word in ("sum", "count"):
        items = facts.get(rest[0])
        if not isinstance(items, list):
            return None
        return sum(items) if word == "sum" else len(items)
    left, right = (value(one, facts) for one in rest)
    if left is None or right is None or (word in ("/", "%") and right == 0):
        return None
    return _COMPUTED[word](left, right)


def filled(sentence: str, facts: Facts) -> str:
    """Insert facts into a sentence.

    Numbers are formatted for readers. Strings from the file are shortened, and unprintable characters are replaced with
    spaces.

    >>> filled("{length} tokens, {name}", {"length": 131072, "name": "<b>" * 30})[:22]
    '131,072 tokens, <b><b>'
    >>> filled("--rope-freq-scale {scale:code}", {"scale": 0.125})
    '--rope-freq-scale 0.125'
    """
    return _HOLE.sub(
        lambda hole: (coded if hole[2] else shown)(facts.get(hole[1])), sentence
    )


def shown(found: object) -> str:
    """Format a fact for readers.

    >>> shown(500000.0), shown(1.23456), shown([1, 2]), shown(None)
    ('500,000', '1.235', '1, 2', 'unknown')
    """
    if isinstance(found, (bool, str)) or found is None:
        return coded(found)
    if isinstance(found, Sequence):
        items = ", ".join(shown(one) for one in found[:MOST_ITEMS])
        return items + (", …" if len(found) > MOST_ITEMS else "")
    return number(found, 4, commas=True)


def coded(found: object) -> str:
    """Format a fact for a line of code.

    >>> coded(500000.0), coded(1 / 3), coded(True)
    ('500000', '0.333333', 'true')
    """
    if found is None:
        return UNKNOWN
    if isinstance(found, bool):
        return "true" if found else "false"
    if isinstance(found, str):
        return short(found)
    if isinstance(found, Sequence):
        return ", ".join(coded(one) for one in found)
    return number(found, 6)


def short(text: str) -> str:
    """Make a string from the file printable.

    If it has more than `LONGEST` characters, the rest is replaced with an ellipsis.

    >>> short("a\\nb" + "c" * 90)[:6], len(short("c" * 90))
    ('a bccc', 61)
    """
    plain = "".join(
        " " if unicodedata.category(one) in _UNSEEN else one
        for one in text[:LONGEST]
    )
    return plain + ("…" if len(text) > LONGEST else "")


def number(found: float, digits: int, commas: bool = False) -> str:
    """Format a number with this many significant digits.

    Whole numbers below 10¹⁵ are not rounded. Python and JavaScript produce the same string.

    >>> number(131072, 4, commas=True), number(0.00001234, 4), number(2.5e20, 4), number(12.125, 4)
    ('131,072', '1.234e-5', '2.5e20', '12.13')
    """
    size = abs(found)
    if size < 1e15 and found == int(found):
        return f"{int(found):,}" if commas else str(int(found))
    power = int(f"{found:e}".split("e")[1])
    if power < -4 or power >= 15:
        mantissa, power = _rounded(found, digits - 1 - power).split("e")
        return f"{_bare(mantissa)}e{int(power)}"
    fixed = Decimal(found).quantize(
        Decimal(1).scaleb(-max(0, digits - 1 - power)), rounding=ROUND_HALF_UP
    )
    return _bare(f"{fixed:,f}" if commas else f"{fixed:f}")


def _rounded(found: float, decimals: int) -> str:
    exact = Decimal(found).quantize(
        Decimal(1).scaleb(-decimals), rounding=ROUND_HALF_UP
    )
    return f"{exact:E}".replace("E", "e") if exact else "0e0"


def _bare(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def finite(found: object) -> bool:
    """Return whether a value can be used in computations.

    It must be a number that is finite and not too large for a float, and it can't be a boolean.

    >>> finite(4096), finite(True), finite("4096"), finite(10**400)
    (True, False, False, False)
    """
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return False
    try:
        return math.isfinite(float(found))
    except OverflowError:
        return False
