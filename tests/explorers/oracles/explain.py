"""Reference values for the Explain explorer, computed with `ropebook.explain`."""

from __future__ import annotations

from typing import Any

from ropebook.explain import explain
from ropebook.explorers.explain import EXAMPLES


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's numbers and strings, keyed by name.

    ``error`` is the message shown when the file can't be parsed. ``words`` describe the file and one table of
    frequencies; ``findings`` and ``snippets`` come from the report. ``kinds`` is the number of kinds of layers, and
    ``name`` is the kind shown. θ is given before scaling (``plain``) and at the target length (``long``). ``turned``
    says which pairs complete a turn, ``beyond`` says how far each pair exceeds its trained angles, and ``fresh`` says
    how many pairs reach a new angle. ``near`` and ``far`` are the two lengths that are compared.

    >>> from ropebook.explorers.explain import Explain
    >>> data = compute(Explain().dials())
    >>> data["fresh"], data["near"], data["far"], data["findings"]
    (29, 8192, 131072, [])
    """
    text = dials["config"] if dials["config"].strip() else EXAMPLES[dials["example"]]
    report = explain(text, None if dials["length"] < 2 else dials["length"])
    shared = {
        "error": report.error,
        "words": report.words,
        "findings": report.findings,
        "snippets": report.snippets,
        "kinds": len(report.tables),
    }
    if not report.tables:
        empty = {"plain": [], "long": [], "turned": [], "beyond": []}
        return {**shared, "name": "", **empty, "fresh": None, "near": None, "far": None}
    table = report.tables[1 if dials["second"] and len(report.tables) > 1 else 0]
    return {
        **shared,
        "words": report.words + table.words,
        "name": table.name,
        "plain": table.plain,
        "long": table.long,
        "turned": table.turned,
        "beyond": table.beyond,
        "fresh": table.facts.get("new_pairs"),
        "near": table.facts.get("near"),
        "far": table.facts.get("far"),
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    Frequencies are compared relative to their own size. An angle beyond the trained range is the difference between two
    angles.
    """
    data = compute(dials)
    reach = (data["near"] or 0) + (data["far"] or 0)
    return {
        "plain": data["plain"],
        "long": data["long"],
        "beyond": [reach * one for one in data["plain"]] if data["beyond"] else [],
    }
