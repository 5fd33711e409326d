"""Update the diagram of the import graph in ARCHITECTURE.md: python -m tools.architecture."""

from __future__ import annotations

from pathlib import Path

import networkx

from tools import imports
from tools.paths import ROOT, write_whole

PAGE = ROOT / "ARCHITECTURE.md"
BEGIN, END = "<!-- drawn from the imports by python -m tools.architecture -->\n", "<!-- end of the drawing -->\n"


def arrows(code: Path = ROOT / "code") -> networkx.DiGraph:
    """Return the import graph. Its nodes are the package's top-level modules and folders. An edge leads from each node
    to every node that it imports."""
    found = networkx.DiGraph()
    for path in sorted((code / "ropebook").rglob("*.py")):
        own = path.relative_to(code / "ropebook").parts[0].removesuffix(".py")
        if own == "__init__":
            continue
        found.add_node(own)
        for name in imports.names(path.read_text(encoding="utf-8")):
            top, other = (name.split(".") + [""])[:2]
            if top == "ropebook" and other not in ("", own):
                found.add_edge(own, other)
    return found


def drawing(graph: networkx.DiGraph) -> str:
    """Return the transitive reduction of the graph as a Mermaid diagram. Raises ``ValueError`` if the graph has a
    cycle."""
    if not networkx.is_directed_acyclic_graph(graph):
        circle = " → ".join(edge[0] for edge in networkx.find_cycle(graph))
        raise ValueError(f"imports must run one way, got the cycle {circle}")
    edges = networkx.transitive_reduction(graph).edges
    lines = [f"  {one} --> {other}" for one, other in sorted(edges)]
    alone = [f"  {node}" for node in sorted(networkx.isolates(graph))]
    return "\n".join(["```mermaid", "graph TD", *alone, *lines, "```", ""])


def drawn(text: str) -> str:
    """Return the page's text with the current import graph in it."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + drawing(arrows()) + END + after


if __name__ == "__main__":
    write_whole(PAGE, drawn(PAGE.read_text(encoding="utf-8")))
