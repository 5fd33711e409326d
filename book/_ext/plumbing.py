"""Fold code that doesn't teach anything: cells that only import, lay out a table or a picture, or run checks.

The rules look at a cell's source and outputs, so nobody has to tag such cells by hand. The site folds them behind an
unobtrusive line of text. In notebooks they stay as they are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nbformat import NotebookNode

# Tags that override the rules. In particular, `teaches` keeps a cell visible even though the rules would fold it.
DECIDED = {"hide-cell", "hide-output", "remove-input", "remove-cell", "seal", "teaches"}
IMPORTS, FIGURE, TABLE, NUMBERS, CHECK = (
    "The imports",
    "Code for this figure",
    "Code for this table",
    "Code for these numbers",
    "Code for this check",
)
FOLDED = "hide-input"
NOTHING = ""  # no line at all, because the cell's output is itself code
# Cells in which readers of a notebook answer an exercise. The page has a form instead (`answers.py`).
UNANSWERED = re.compile(r'exercises\.check\("[^"]+", \.\.\.\)')
CODE, PRINTED = "code", "printed"
DEFINES = (ast.FunctionDef, ast.ClassDef)
IMPORTING = (ast.Import, ast.ImportFrom)


def fold(notebook: NotebookNode) -> None:
    """Tag every cell that teaches nothing, so that the page folds the cell or leaves it out."""
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        if cell.cell_type != "code" or DECIDED & set(tags):
            continue
        if UNANSWERED.fullmatch(cell.source.strip()):
            cell.metadata["tags"] = [*tags, "remove-cell"]
            continue
        words = plumbing(cell.source, cell.outputs)
        if FOLDED in tags:
            words = words or "The code"
        elif words is not None:
            cell.metadata["tags"] = [*tags, FOLDED if words else "remove-input"]
        if words:
            prompts = {"code_prompt_show": words, "code_prompt_hide": words}
            cell.metadata["mystnb"] = prompts | cell.metadata.get("mystnb", {})


def plumbing(source: str, outputs: list[NotebookNode]) -> str | None:
    """Return the text of the line behind which a cell is folded, or None if the cell teaches something.

    >>> plumbing("import math\\nfrom ropebook.show import show", [])
    'The imports'
    >>> plumbing("x = 1\\nprint(x)", [NotebookNode(output_type="stream", text="1")]) is None
    True
    """
    body = ast.parse(source).body
    called = {name for statement in body for name in _called(statement)}
    kinds = {_kind(output) for output in outputs if not _is_record(output)}
    if "check" in called and "print" not in called and not _is_value(body[-1]):
        kinds.discard(PRINTED)  # these are only the checks' messages
    defines = any(isinstance(statement, DEFINES) for statement in body)
    if kinds == {CODE} and all(_calls_show(statement) for statement in body):
        return NOTHING
    if not kinds and _only_prepares(body, defines):
        return IMPORTS
    if kinds & {FIGURE, TABLE} and PRINTED not in kinds:
        return TABLE if TABLE in kinds else FIGURE
    if defines or PRINTED in kinds:
        return None
    if "check" in called:
        return CHECK
    return NUMBERS if len(body) > 1 and not any(isinstance(one, IMPORTING) for one in body) else None


def _only_prepares(body: list[ast.stmt], defines: bool) -> bool:
    """Return whether at least half of a cell's statements are imports.

    If the cell also defines something, one of the imports must be from the book's package, because readers copy
    functions together with the `import torch` above them.
    """
    imports = [one for one in body if isinstance(one, IMPORTING)]
    ours = any(isinstance(one, ast.ImportFrom) and (one.module or "").startswith("ropebook") for one in imports)
    return bool(imports) and 2 * len(imports) >= len(body) and (ours or not defines)


def _is_value(statement: ast.stmt) -> bool:
    """Return whether this last statement of a cell is an expression whose value is displayed."""
    return isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call)


def _calls_show(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and list(_called(statement))[:1] == ["show"]


def _called(statement: ast.stmt) -> Iterator[str]:
    """Yield the names of the functions that a statement calls by plain name."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


def _is_record(output: NotebookNode) -> bool:
    """Return whether an output only records a number for use in the prose."""
    return any(name.startswith("application/papermill.record/") for name in output.get("data", {}))


def _kind(output: NotebookNode) -> str:
    data = output.get("data", {})
    if "text/markdown" in data:
        return CODE
    if "text/html" in data:
        return TABLE if "<table" in data["text/html"] else FIGURE
    return FIGURE if any(name.startswith("image/") for name in data) else PRINTED
