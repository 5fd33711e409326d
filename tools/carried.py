"""What of the package travels with a notebook: what its cells import or open, what that imports or opens, and so on."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.paths import ROOT

MODULE = re.compile(r"ropebook(\.\w+)+")
LABEL = re.compile(r"eq(-[a-z0-9]+)+")
SCRIPT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+\.js)";$', re.MULTILINE)
RESULT = re.compile(r'\bresults\.(?:load|find)\("([^"]+)"')


def contents(root: Path = ROOT, code_text: str = "") -> dict[str, bytes]:
    """What travels, name in the archive -> bytes: sources and stills of the package, and `results/` as
    `ropebook/_results`.

    Args:
        root: the repository.
        code_text: the notebook's own cells. They say what is needed: modules by importing them, equations whose checks
            they show and results by their names as strings.

    Raises:
        SyntaxError: `code_text` is not Python.
    """
    code, results = root / "code", root / "results"
    strings = set(_strings(code_text))
    labels = {f'"{text}"' for text in strings if LABEL.fullmatch(text)}
    first = _imported(code, code_text) | {
        path
        for path in (code / "ropebook" / "proofs").glob("*.py")
        if any(label in path.read_text(encoding="utf-8") for label in labels)
    }
    sources = _closed(code, first)
    stills = {path.parent / "stills" / f"{path.stem}.svg" for path in first}
    opened = strings.union(*(RESULT.findall(path.read_text(encoding="utf-8")) for path in sources))
    carried = sources | {still for still in stills if still.is_file()}
    found = {path.relative_to(code).as_posix(): path for path in carried}
    for path in results.glob("*"):
        if path.is_file() and not path.name.startswith(".") and {path.stem, path.name} & opened:
            found[f"ropebook/_results/{path.name}"] = path
    return {name: path.read_bytes() for name, path in sorted(found.items())}


def _closed(code: Path, first: set[Path]) -> set[Path]:
    """These sources with all that they import, and each explorer with its script."""
    found: set[Path] = set()
    waiting = set(first)
    while waiting:
        path = waiting.pop()
        found.add(path)
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".js":
            needed = {(path.parent / name).resolve() for name in SCRIPT.findall(text)}
        else:
            needed = _imported(code, text) | {script for script in [path.with_suffix(".js")] if script.is_file()}
        waiting |= needed - found
    return found


def _imported(code: Path, text: str) -> set[Path]:
    """The package's files that a Python text imports, or names as a string, as the checks of definitions do."""
    names = {string for string in _strings(text) if MODULE.fullmatch(string)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {path for name in names for path in _files(code, name)}


def _files(code: Path, name: str) -> Iterator[Path]:
    """The files of a dotted name: its module's, those of the packages around it."""
    parts = name.split(".")
    if parts[0] != "ropebook":
        return
    for length in range(1, len(parts) + 1):
        place = code.joinpath(*parts[:length])
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                yield path


def _strings(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
