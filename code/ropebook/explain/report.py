"""Explain a configuration: turn a string or dictionary into sentences, findings,
frequencies and snippets."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from ropebook import checks
from ropebook.explain import doubts, words
from ropebook.explain.frequencies import frequencies, pairs
from ropebook.explain.language import compiled, filled, short
from ropebook.explain.parsing import Unreadable, parsed
from ropebook.explain.reading import read
from ropebook.explain.snippets import snippets
from ropebook.explain.values import Reading

_DOUBTS = {
    of: [(compiled(one["when"]), one) for one in doubts.DOUBTS if one["of"] == of]
    for of in ("file", "table")
}
_OF_FILE, _OF_TABLE = (
    [(subject, compiled(when), sentence) for subject, when, sentence in one]
    for one in (words.OF_FILE, words.OF_TABLE)
)

LEVELS = ["wrong", "suspicious", "unknown"]
"""The levels of findings, in the order in which the report lists them."""
LONGEST = 10**9
"""The maximum ``length`` that `explain` accepts, in tokens."""


@dataclass(frozen=True)
class Table:
    """The frequencies of all layers, or of one type of layer.

    ``facts`` contains the facts about these layers, by name. ``plain``, ``short`` and ``long`` contain θ for each pair:
    before scaling, within the trained length, and at the target length. They are empty if the file does not determine
    them. Cosines and sines are multiplied by ``on_cos``.

    ``turned`` says whether each pair completes a turn within the trained length.
    ``beyond`` says by how many radians each pair exceeds its training angles. Both are empty if a length is unknown.
    """

    name: str
    facts: Mapping[str, object]
    words: list[list[str]]
    plain: list[float] = field(default_factory=list)
    short: list[float] = field(default_factory=list)
    long: list[float] = field(default_factory=list)
    on_cos: float | None = None
    turned: list[bool] = field(default_factory=list)
    beyond: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Report:
    """What a configuration says about positions. ``print`` shows the whole report.

    ``error`` says why the configuration could not be read; otherwise it is "".
    ``words`` describes the file, subject by subject. ``tables`` contains a `Table` for each kind of layer.
    Each of the ``findings`` consists of a level ("wrong", "suspicious" or "unknown"), a name and a sentence. Each of
    the ``snippets`` has a title, code, a note, and a statement of what it was checked against.
    """

    error: str = ""
    words: list[list[str]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    findings: list[list[str]] = field(default_factory=list)
    snippets: list[dict[str, str]] = field(default_factory=list)

    def names(self, level: str | None = None) -> list[str]:
        """Return the names of all findings, or only those at one level."""
        return [name for one, name, _ in self.findings if level in (None, one)]

    def __str__(self) -> str:
        if self.error:
            return self.error
        lines = _told(self.words)
        for table in self.tables:
            lines += ["", f"== {table.name} ==", *_told(table.words)]
        lines += [
            "",
            "== Findings =="
            if self.findings
            else "Nothing wrong or suspicious was found.",
        ]
        lines += [
            _wrapped(f"{level}: ", f"{said} [{name}]")
            for level, name, said in self.findings
        ]
        for one in self.snippets:
            lines += ["", f"== {one['title']} =="]
            lines += [one["code"]] if one["code"] else []
            lines += [_wrapped("", one["note"])] if one["note"] else []
            lines += [f"({one['checked']})"]
        return "\n".join(lines)


def _told(said: list[list[str]]) -> list[str]:
    return [
        _wrapped(f"{subject + ':':12} ", sentence) for subject, sentence in said
    ]


def _wrapped(begin: str, text: str) -> str:
    return textwrap.fill(
        begin + text, 96, subsequent_indent=" " * len(begin), break_long_words=False
    )


def explain(
    config: str | Mapping[str, object], length: int | None = None
) -> Report:
    """Explain what a ``config.json`` says about positions.

    ``config`` is the content of the file, as a string or a dictionary.

    ``length`` is the length of the input to be read, in tokens; None means the length given in the file. Bad content
    never raises an error. If the content cannot be read, the report has an ``error``; anything the file leaves
    open is reported as unknown. Only invalid arguments raise ``TypeError`` or ``ValueError``.

    >>> report = explain('{"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32, '
    ...                  '"max_position_embeddings": 4096, "rope_scaling": {"type": "yarn", "factor": 4.0}}')
    >>> report.names("wrong")
    ['factor-without-original']
    >>> report.tables[0].facts["base"], len(report.tables[0].long)
    (10000.0, 64)
    >>> explain("<b>no</b>").error
    'not-json: the text is not JSON, which begins with {'
    """
    if length is not None:
        length = checks.integer("length", length, minimum=2, maximum=LONGEST)
    if isinstance(config, Mapping):
        given = config
    elif isinstance(config, str):
        try:
            given = parsed(config)
        except Unreadable as error:
            return Report(error=str(error))
    else:
        raise TypeError(
            f"config must be a text or a dictionary, got {type(config).__name__}"
        )
    reading = read(given)
    _doubt(reading, reading.facts, "file")
    said = _sentences(_OF_FILE, reading.facts)
    # A mistake in any one dictionary prevents the whole model from loading.
    stopped = (
        any([_completed(reading, one, length) for one in reading.tables])
        or reading.stopped
    )
    tables = [_table(one, stopped) for one in reading.tables]
    return Report(
        words=said,
        tables=tables,
        findings=sorted(reading.findings, key=lambda one: LEVELS.index(one[0])),
        snippets=snippets(tables[0].facts) if tables else [],
    )


def _doubt(reading: Reading, facts: dict, of: str) -> bool:
    """Report the doubts that these facts raise. Return whether any of the doubts stops the computation."""
    stops = False
    for when, doubt in _DOUBTS[of]:
        if when(facts):
            stops |= doubt["stops"]
            said = [doubt["level"], doubt["name"], filled(doubt["says"], facts)]
            if said not in reading.findings:
                reading.findings.append(said)
    if of == "file":
        reading.stopped |= stops
    return stops


def _sentences(table: list, facts: Mapping) -> list[list[str]]:
    said: dict[str, list[str]] = {}
    for subject, when, sentence in table:
        if when(facts):
            said.setdefault(subject, []).append(filled(sentence, facts))
    return [[subject, " ".join(sentences)] for subject, sentences in said.items()]


def _completed(reading: Reading, facts: dict, length: int | None) -> bool:
    """Complete a table with facts from outside its dictionary, and report the doubts that the table raises.

    Returns whether any of the doubts stops the computation.
    """
    layer_type, layers = facts["layer_type"], facts["layers"]
    windowed = layer_type == "sliding_attention" or (
        layer_type is None
        and layers is not None
        and facts["windowed_layers"] == layers
    )
    facts["reach_window"] = facts["window"] if windowed else None
    facts["asked"] = length
    if length is not None:
        facts["target"] = length
    return _doubt(reading, facts, "table")


def _table(facts: dict, stopped: bool) -> Table:
    facts["stopped"] = stopped
    found: dict[str, object] = {}
    if not stopped:
        found = frequencies(facts)
        states = pairs(facts, found)
        facts |= {
            name: one
            for name, one in states.items()
            if name not in ("turned", "beyond", "new")
        }
        facts["on_cos"] = found["on_cos"]
        found |= {"turned": states["turned"], "beyond": states["beyond"]}
    layer_type = facts["layer_type"]
    name = (
        "All layers"
        if layer_type is None
        else f"Layers of type {short(layer_type)}"
    )
    return Table(name, facts, _sentences(_OF_TABLE, facts), **found)
