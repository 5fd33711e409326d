"""Import the book's extensions and benchmarks, which don't belong to a package. Each becomes a separate module."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tools.paths import BOOK, ROOT


def extension(name: str) -> ModuleType:
    """Import one of the book's Sphinx extensions."""
    return _loaded(BOOK / "_ext" / f"{name}.py", name)


def benchmark(name: str) -> ModuleType:
    """Import a script from benchmarks/."""
    return _loaded(ROOT / "benchmarks" / f"{name}.py", f"{name}_script")


def _loaded(path: Path, name: str) -> ModuleType:
    """Run the file as a module that can import its neighbours, and undo its changes to ``sys.path``."""
    before = list(sys.path)
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(found)
    finally:
        sys.path[:] = before
    return found
