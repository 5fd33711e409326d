"""`{methods}`: a reference of all context-extension methods.

It begins with a statement that imports them all. Then come each method's class and a link to the section that explains
it, in the order of the registry.
"""

from __future__ import annotations

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from ropebook.extrapolation import METHODS, registry


def lines() -> list[str]:
    """Return the lines of the reference in MyST Markdown."""
    forms = [(method.form.__name__, method.section) for method in METHODS.values()]
    found = ["```python", "from ropebook.extrapolation import (", *(f"    {name}," for name, _ in forms), ")", "```"]
    for name, section in forms:
        found += ["", "```{eval-rst}", f".. autoclass:: ropebook.extrapolation.{name}", "```"]
        found += ["", f"Explained under [](./{section})."]
    return found


class Methods(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        self.env.note_dependency(registry.__file__)
        container = nodes.Element()
        self.state.nested_parse(StringList(lines(), "methods"), self.content_offset, container)
        return container.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("methods", Methods)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
