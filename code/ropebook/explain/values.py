"""Check the values in a file: decide which are valid, and report the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ropebook.explain import doubts, facts
from ropebook.explain.language import coded, filled, finite, short

Config = Mapping[str, object]


@dataclass
class Reading:
    """The facts of a file and of each table of frequencies, and the findings about
    them.

    ``stopped`` says whether any finding stops the computation.
    """

    facts: dict[str, object]
    tables: list[dict[str, object]]
    findings: list[list[str]] = field(default_factory=list)
    stopped: bool = False

    def say(self, name: str, **told: object) -> None:
        """Add the finding with this name from `doubts.ALWAYS`."""
        level, sentence = doubts.ALWAYS[name]
        self.findings.append([level, name, filled(sentence, told)])


def take(
    reading: Reading,
    given: Config,
    wanted: Mapping,
    names: Mapping,
    into: dict,
    strict: Sequence = (),
) -> None:
    """Copy the wanted facts into ``into``. Facts that are missing or invalid in the file become None."""
    for fact, how in wanted.items():
        key = names.get(fact, how["key"])
        found = given.get(key)
        if found is None:
            refused = key in given and (not how["null"] or fact in strict)
        else:
            refused = not fits(found, how)
        if refused:
            allowed = filled(doubts.KINDS_OF_VALUES[how["is"]], how)
            reading.say("bad-value", key=key, allowed=allowed, got=got(found))
            reading.stopped = True
            found = None
        into[fact] = found


def fits(found: object, how: Mapping[str, object]) -> bool:
    """Return whether a value is allowed for its fact.

    >>> fits(4096, {"is": "whole", "least": 1, "most": 1e12}), fits("4096", {"is": "whole", "least": 1, "most": 1e12})
    (True, False)
    """
    kind = how["is"]
    if kind == "whole":
        return (
            finite(found)
            and found == int(found)
            and how["least"] <= found <= how["most"]
        )
    if kind == "number":
        return finite(found) and how["least"] < found <= how["most"]
    if kind == "switch":
        return isinstance(found, bool)
    if kind == "text":
        return isinstance(found, str)
    if not isinstance(found, list) or len(found) > facts.WIDEST:
        return False
    if kind == "texts":
        return all(isinstance(one, str) for one in found)
    if kind == "numbers":
        return all(finite(one) for one in found)
    return all(
        finite(one) and one == int(one) and 0 <= one <= facts.LARGEST
        for one in found
    )


def got(found: object) -> str:
    """Describe a rejected value in a few words."""
    if isinstance(found, str):
        return f"the text “{short(found)}”"
    if isinstance(found, dict):
        return "a dictionary"
    if isinstance(found, list):
        return f"a list of {len(found)}"
    if found is None:
        return "null"
    if isinstance(found, bool):
        return coded(found)
    return coded(found) if finite(found) else "a number that is too large"


def first(*found: object) -> object:
    """Return the first value that is not None, or None if there is none.

    >>> first(None, 0, 1)
    0
    """
    return next((one for one in found if one is not None), None)
