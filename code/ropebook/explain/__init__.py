"""Explain a model's configuration: what a ``config.json`` says about positions,
what it leaves open, and what looks odd.

- `report`: `explain` turns the text or dictionary into a report.
- `parsing` and `reading` turn the text into a dictionary, and the dictionary into
  facts; `values`, `following` and `tables` help with that.
- `frequencies` computes every pair's θ from the facts.
- `language` defines how rules are written. `facts`, `families`, `doubts`, `words`
  and `snippets` contain the rules as data, which the page's script reads too.

From a shell: ``python -m ropebook.explain config.json``.
"""

from ropebook.explain.report import Report, Table, explain
from ropebook.explain.rules import RULES

__all__ = ["RULES", "Report", "Table", "explain"]
