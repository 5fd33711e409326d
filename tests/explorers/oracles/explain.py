"""What the explorer Explain shows, by `ropebook.explain`."""

from __future__ import annotations

from typing import Any

from ropebook.explain import explain
from ropebook.explorers.explain import EXAMPLES


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """The ``error`` of a text that cannot be read; ``words``, of the file and of one table of frequencies; ``findings``
    and ``snippets``; how many ``kinds`` of layers there are, and the ``name`` of this one; θ before scaling (``plain``)
    and at the target length (``long``); which pairs have ``turned``, how far each goes ``beyond``, and how many are
    ``fresh`` at some angle; the lengths that count, ``near`` and ``far``.

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
    """Frequencies count with their own size; an angle beyond the trained ones is a difference of two."""
    data = compute(dials)
    reach = (data["near"] or 0) + (data["far"] or 0)
    return {
        "plain": data["plain"],
        "long": data["long"],
        "beyond": [reach * one for one in data["plain"]] if data["beyond"] else [],
    }
