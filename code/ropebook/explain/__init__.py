"""Explain what a model's ``config.json`` says about positions, and report what it leaves open and what looks wrong.

- `report`: `explain` turns a string or a dictionary into a report.
- `parsing` turns the string into a dictionary, and `reading` turns the dictionary
  into facts. Both rely on `values`, `following` and `tables`.
- `frequencies` computes every pair's θ from the facts.
- `language` defines how rules are written. The rules themselves are data that the page's script also reads: `facts`,
  `families`, `doubts`, `words` and `snippets`.

From a shell: ``python -m ropebook.explain config.json``.
"""

from ropebook.explain.report import Report, Table, explain
from ropebook.explain.rules import RULES

__all__ = ["RULES", "Report", "Table", "explain"]
