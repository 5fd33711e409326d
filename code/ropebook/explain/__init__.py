"""Explain a model's configuration: what a ``config.json`` says about positions, what it leaves open, and what is odd.

- `report`: `explain`, from the text or dictionary to a report.
- `parsing`, `reading`: from the text to a dictionary, then to facts; `values`, `following` and `tables` help with it.
- `frequencies`: from facts to every pair's θ.
- `language`: how rules are written; `facts`, `families`, `doubts`, `words`, `snippets`: the rules as data, which the
  page's script also reads.

From a shell: ``python -m ropebook.explain config.json``.
"""

from ropebook.explain.report import Report, Table, explain
from ropebook.explain.rules import RULES

__all__ = ["RULES", "Report", "Table", "explain"]
