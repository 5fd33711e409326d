"""Read the file of checkpoints as objects, and check that every row contains only
allowed values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ropebook import checks

FILE = Path(__file__).with_name("checkpoints.json")

UNKNOWN = "?"
"""Marks a value that nobody could verify."""

COLUMNS = {
    "layout": "pairs",
    "base": "base",
    "head_dim": "head dimension",
    "rotates": "rotates",
    "trained": "trained length",
    "shipped": "shipped length",
    "scaling": "scaling",
    "unturned": "layers without positions",
    "window": "window",
    "axes": "numbers in a position",
    "qk_norm": "QK-norm",
    "sinks": "sinks",
}
"""The columns of the guide, with the names that readers see."""

ENOUGH = 2 / 3
"""A row counts if at least this fraction of its values have a source."""

LAYOUTS = (*checks.LAYOUTS, "none")
KINDS = (
    "text",
    "text and images",
    "text, images, video",
    "audio and text",
    "encoder",
    "vision",
    "video",
)
SCALINGS = ("linear", "dynamic", "llama3", "yarn", "longrope")
MONTH = re.compile(r"202[1-6](-(0[1-9]|1[0-2]))?")
DAY = re.compile(r"20\d\d-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?")


class Source(NamedTuple):
    """The source of one or more values. ``dated`` says what happened on the date: the
    source was published, committed or read."""

    title: str
    address: str
    date: str
    dated: str


class Value(NamedTuple):
    """A value, the key of its source, and a note if one is needed."""

    value: object
    source: str
    note: str = ""


class Difference(NamedTuple):
    """A value that another source gives for a column, and an explanation of how the two
    values fit together."""

    column: str
    value: object
    source: str
    says: str


class Checkpoint(NamedTuple):
    """A published set of weights. ``values`` has a `Value` or `UNKNOWN` for each
    column in `COLUMNS`."""

    name: str
    maker: str
    kind: str
    published: Value | str
    values: Mapping[str, Value | str]
    note: str = ""
    disagreements: tuple[Difference, ...] = ()

    def of(self, column: str) -> object:
        """Return the value in a column without its source, or `UNKNOWN`."""
        entry = self.values[column]
        return UNKNOWN if entry == UNKNOWN else entry.value

    @property
    def sourced(self) -> int:
        """Count the values that have a source."""
        return sum(entry != UNKNOWN for entry in self.values.values())

    @property
    def counts(self) -> bool:
        """Return whether at least `ENOUGH` of the values have a source."""
        return self.sourced >= ENOUGH * len(COLUMNS)

    @property
    def share(self) -> float | str:
        """Return the fraction of a head that rotates, from 0 to 1, or `UNKNOWN`."""
        if UNKNOWN in (self.of("rotates"), self.of("head_dim")):
            return UNKNOWN
        return self.of("rotates") / self.of("head_dim")

    @property
    def origins(self) -> dict[str, list[str]]:
        """Map the key of each source in this row to the columns whose values come from
        that source."""
        found: dict[str, list[str]] = {}
        for column, entry in self.values.items():
            if entry != UNKNOWN:
                found.setdefault(entry.source, []).append(column)
        return found


@cache
def _all() -> tuple[tuple[Checkpoint, ...], dict[str, Source]]:
    return read(json.loads(FILE.read_text(encoding="utf-8")))


def checkpoints() -> tuple[Checkpoint, ...]:
    """Return the guide's rows, in the order of the file.

    >>> llama = next(one for one in checkpoints() if one.name == "Llama-3.1-8B")
    >>> llama.of("base"), llama.of("layout"), llama.share
    (500000, 'half', 1.0)
    """
    return _all()[0]


def sources() -> dict[str, Source]:
    """Return every source that the rows refer to, by its key.

    >>> sources()["deepseek-v2-report"].date
    '2024-05'
    """
    return _all()[1]


def read(
    data: Mapping,
) -> tuple[tuple[Checkpoint, ...], dict[str, Source]]:
    """Check data in the file's format, and return its rows and sources.

    Raises:
        ValueError: a row or a source cannot be right. The message names the row, the
            column and the value.
        KeyError: a required key is missing.
    """
    known = {key: _source(key, one) for key, one in data["sources"].items()}
    rows = tuple(_row(one, known) for one in data["checkpoints"])
    names = [row.name for row in rows]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"checkpoints must differ in name, got {name!r} twice")
    unused = known.keys() - {key for row in rows for key in _named(row)}
    if unused:
        raise ValueError(f"sources must all be used, got {sorted(unused)} unused")
    return rows, known


def _named(row: Checkpoint) -> set[str]:
    """Return the keys of all sources that a row refers to."""
    entries = [row.published, *row.values.values(), *row.disagreements]
    return {entry.source for entry in entries if entry != UNKNOWN}


def _source(key: str, one: Mapping) -> Source:
    source = Source(**one)
    _ask(f"the title of source {key!r}", source.title, bool(source.title), "text")
    secure = source.address.startswith("https://")
    _ask(f"the address of source {key!r}", source.address, secure, "https://…")
    dated = DAY.fullmatch(source.date) is not None
    _ask(f"the date of source {key!r}", source.date, dated, "YYYY-MM or YYYY-MM-DD")
    checks.choice(
        f"dated of source {key!r}", source.dated, ("published", "commit", "read")
    )
    return source


def _row(one: Mapping, known: Mapping[str, Source]) -> Checkpoint:
    name = one["name"]

    def entry(column: str, given: object) -> Value | str:
        if given == UNKNOWN:
            return UNKNOWN
        value = Value(**given)
        here = value.source in known
        _ask(f"{name}: the source of {column}", value.source, here, "a known key")
        return value

    checks.choice(f"{name}: kind", one["kind"], KINDS)
    if one["values"].keys() != COLUMNS.keys():
        raise ValueError(
            f"{name}: values must be {list(COLUMNS)}, got {list(one['values'])}"
        )
    published = entry("published", one["published"])
    if published != UNKNOWN:
        fits = MONTH.fullmatch(published.value) is not None
        _ask(
            f"{name}: published",
            published.value,
            fits,
            "YYYY or YYYY-MM of 2021 to 2026",
        )
    values = {
        column: entry(column, given) for column, given in one["values"].items()
    }
    apart = tuple(Difference(**other) for other in one.get("disagreements", ()))
    row = Checkpoint(
        name,
        one["maker"],
        one["kind"],
        published,
        values,
        one.get("note", ""),
        apart,
    )
    for other in apart:
        entry(other.column, {"value": other.value, "source": other.source})
        own = row.of(other.column)
        _ask(
            f"{name}: disagreement on {other.column}",
            other.value,
            other.value != own,
            f"other than {own!r}",
        )
    for column, value in values.items():
        if value != UNKNOWN:
            _asked(f"{name}: {column}", column, value.value)
    _arithmetic(row)
    return row


def _asked(name: str, column: str, value: object) -> None:
    """Check that a value is allowed in its column."""
    if column == "layout":
        checks.choice(name, value, LAYOUTS)
    elif column == "base":
        fits = value == "none" or (_is_number(value) and value > 1)
        _ask(name, value, fits, "a number > 1 or 'none'")
    elif column == "head_dim":
        checks.even(name, value)
    elif column in ("trained", "shipped"):
        checks.integer(name, value, minimum=2)
    elif column in ("rotates", "window"):
        checks.integer(name, value, minimum=0)
    elif column == "axes":
        checks.integer(name, value, minimum=1, maximum=3)
    elif column == "unturned":
        if value != "all":
            checks.integer(name, value, minimum=0)
    elif column == "scaling":
        if value != "none":
            _scaling(name, value)
    else:
        _ask(name, value, isinstance(value, bool), "True or False")


def _scaling(name: str, value: object) -> None:
    _ask(
        name, value, isinstance(value, dict) and "type" in value, "'none' or a type"
    )
    checks.choice(f"{name}, type", value["type"], SCALINGS)
    extra = value.keys() - {"type", "factor", "original"}
    _ask(name, value, not extra, "type, factor and original")
    if "factor" in value:
        fits = _is_number(value["factor"]) and value["factor"] >= 1
        _ask(f"{name}, factor", value["factor"], fits, "a number >= 1")
    if "original" in value:
        checks.integer(f"{name}, original", value["original"], minimum=2)


def _arithmetic(row: Checkpoint) -> None:
    """Check that a row's values are consistent with each other."""
    rotates, head = row.of("rotates"), row.of("head_dim")
    turns = row.of("layout") != "none"
    if rotates != UNKNOWN:
        fits = rotates % 2 == 0 and (rotates > 0) == turns
        _ask(
            f"{row.name}: rotates",
            rotates,
            fits,
            "even, and 0 where nothing rotates",
        )
        whole = head == UNKNOWN or rotates <= head
        _ask(f"{row.name}: rotates", rotates, whole, f"at most head_dim = {head}")
    scaling, shipped = row.of("scaling"), row.of("shipped")
    if not isinstance(scaling, dict) or shipped == UNKNOWN:
        return
    if row.values["scaling"].note:
        return
    if scaling["type"] == "yarn":
        reach = scaling["factor"] * scaling["original"]
        text = f"factor · original = {reach:g} if the scaling has no note"
        _ask(f"{row.name}: shipped", shipped, reach == shipped, text)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ask(name: str, value: object, fits: bool, allowed: str) -> None:
    if not fits:
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
