"""Execute the chapters, and reuse their outputs for as long as they are up to date.

A chapter's outputs depend on more than its text: on the modules that it imports, the results that it reads, and the
installed versions. So the kernel itself reports which of the repository's files it opened. Outputs are reused only
while the code cells, those files, the constraints, the installed versions and Python are all unchanged.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from copy import deepcopy
from functools import cache
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from tools import nursery, stills
from tools.paths import EXECUTED, ROOT, pages, write_whole

KEY = "ropebook_key"
VERSIONS_OF = ("torch", "numpy", "matplotlib", "sympy", "anywidget", "ipywidgets")
NOT_SOURCES = {".git", ".venv", "_build", "node_modules", "__pycache__", "stills"}  # stills are redrawn

# These two programs run in a chapter's kernel, before its first cell and after its last cell.
START_TRACE = """
import os as _os, sys as _sys
_ropebook_opened = set()
def _ropebook_note(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, _os.PathLike)):
        _ropebook_opened.add(_os.path.abspath(arguments[0]))
_sys.addaudithook(_ropebook_note)
"""
END_TRACE = """
import json as _json
_ropebook_files = _ropebook_opened | {_os.path.abspath(_module.__file__) for _module in list(_sys.modules.values())
                                      if getattr(_module, "__file__", None)}
print(_json.dumps(sorted(_ropebook_files)))
"""


class ChapterError(Exception):
    """Raised if a cell of a chapter fails."""


def read_chapter(path: Path) -> NotebookNode:
    """Return the chapter as a notebook without outputs."""
    return deepcopy(_parsed(path.read_text(encoding="utf-8")))


@cache
def _parsed(text: str) -> NotebookNode:
    return jupytext.reads(text, fmt="md:myst")


@cache
def has_code(path: Path) -> bool:
    """Return whether the page has code cells."""
    text = path.read_text(encoding="utf-8")
    return text.startswith("---") and "\n```{code-cell}" in text


def runnable() -> list[Path]:
    """Return all pages with code, in the order of the book."""
    return [page for page in pages() if has_code(page)]


def chapters() -> list[Path]:
    """Return the pages with code that readers may want as notebooks. Reference pages are left out."""
    return [page for page in pages(reference=False) if has_code(page)]


def executed(chapter: Path, report: Callable[[str], None] | None = None) -> NotebookNode:
    """Return the chapter with its outputs: cached ones if they are up to date, otherwise new ones.

    If a cell fails, this raises ChapterError, which names the chapter and the cell. Nothing is cached then.
    """
    notebook = read_chapter(chapter)
    store = EXECUTED / f"{chapter.stem}.ipynb"
    kept = _kept(store)
    if kept is not None and kept.metadata[KEY] == _key(notebook, list(kept.metadata[KEY]["files"])):
        return copy_outputs(notebook, kept)
    return _run(chapter, notebook, store, report or (lambda text: None))


def is_current(chapter: Path) -> bool:
    """Return whether the chapter's cached outputs are up to date."""
    kept = _kept(EXECUTED / f"{chapter.stem}.ipynb")
    return kept is not None and kept.metadata[KEY] == _key(read_chapter(chapter), list(kept.metadata[KEY]["files"]))


def execute_all(report: Callable[[str], None]) -> list[str]:
    """Update the outputs of every page with code, running several pages at a time. Return the names of the pages that
    had to run."""
    # The page that runs every proof takes longest, and it is the last page. If it also started last, it would be left
    # running alone.
    stale = [chapter for chapter in reversed(runnable()) if not is_current(chapter)]

    def run(count: int) -> None:
        executed(stale[count], lambda text: report(f"[{count + 1}/{len(stale)}] {text}"))

    # Use one more worker than there are processors, because a kernel that is starting or ending mostly waits for
    # messages.
    with ThreadPoolExecutor(max_workers=min(4, (os.cpu_count() or 1) + 1)) as pool:
        running = [pool.submit(run, count) for count in range(len(stale))]
        try:
            for each in as_completed(running):
                each.result()
        finally:
            pool.shutdown(cancel_futures=True)
    stills.ensure(filter(None, (_kept(EXECUTED / f"{chapter.stem}.ipynb") for chapter in runnable())))
    return [chapter.stem for chapter in stale]


def _kept(store: Path) -> NotebookNode | None:
    if not store.exists():
        return None
    notebook = nbformat.read(store, as_version=4)
    return notebook if KEY in notebook.metadata else None


def _key(notebook: NotebookNode, files: list[str]) -> dict:
    """Return everything that the outputs depend on, in a form that can be stored in the notebook as JSON and
    compared."""
    cells = [[cell.source, cell.metadata.get("tags", [])] for cell in notebook.cells if cell.cell_type == "code"]
    results = ROOT / "results"
    return {
        "cells": _hash(json.dumps(cells).encode()),
        "constraints": _hash_file("constraints.txt"),
        "files": {name: _hash_file(name) for name in files},
        "python": platform.python_version(),
        # A chapter may only check whether a result exists, so file names matter even if no file was opened.
        "results": sorted(path.name for path in results.glob("*")) if results.exists() else [],
        "versions": {name: _version(name) for name in VERSIONS_OF},
    }


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _hash_file(name: str) -> str:
    path = ROOT / name
    return _hash(path.read_bytes()) if path.is_file() else "missing"


@cache
def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def copy_outputs(notebook: NotebookNode, source: NotebookNode) -> NotebookNode:
    """Copy the outputs of `source`, a notebook with the same code cells, into `notebook`, and return `notebook`. Each
    explorer gets the still picture for its state."""
    ran = [cell for cell in source.cells if cell.cell_type == "code"]
    for cell, other in zip((c for c in notebook.cells if c.cell_type == "code"), ran, strict=True):
        cell.outputs, cell.execution_count = other.outputs, other.execution_count
    for name in ("widgets", "language_info", KEY):
        if name in source.metadata:
            notebook.metadata[name] = source.metadata[name]
    stills.put_into(notebook)
    return notebook


def _run(chapter: Path, notebook: NotebookNode, store: Path, report: Callable[[str], None]) -> NotebookNode:
    total = sum(cell.cell_type == "code" for cell in notebook.cells)
    start, done = time.monotonic(), 0

    def progress(cell: NotebookNode, **_: object) -> None:
        nonlocal done
        if cell.cell_type == "code" and "ropebook" not in cell.metadata:
            done += 1
            report(f"{chapter.stem}: cell {done} of {total}, {time.monotonic() - start:.0f} s")

    traced = nbformat.from_dict(notebook)
    marks = {"metadata": {"ropebook": "trace"}}
    traced.cells.insert(0, nbformat.v4.new_code_cell(START_TRACE, **marks))
    traced.cells.append(nbformat.v4.new_code_cell(END_TRACE, **marks))
    paths = [str(ROOT / "code"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
    report(f"{chapter.stem}: starting a kernel for {total} cells")
    client = NotebookClient(
        traced,
        timeout=600,
        kernel_name="python3",
        kernel_manager_class=nursery.Kernels,
        store_widget_state=True,
        on_cell_start=progress,
        resources={"metadata": {"path": str(ROOT)}},
    )
    try:
        # This drops the kernel's own log. Output that a chapter writes to stderr still gets into its notebook.
        client.execute(env=environment, stderr=subprocess.DEVNULL)
    except CellExecutionError as error:
        raise ChapterError(f"{chapter.relative_to(ROOT)}, cell {done} of {total}, failed:\n{error}") from error
    last = traced.cells.pop()
    traced.cells.pop(0)
    opened = json.loads("".join(output.text for output in last.outputs if output.output_type == "stream"))
    count = 0
    for cell in traced.cells:
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count
            cell.metadata.pop("execution", None)  # timestamps would differ from run to run
            for output in cell.outputs:
                if output.output_type == "execute_result":
                    output.execution_count = count
    traced.metadata[KEY] = _key(notebook, _sources(opened))
    write_whole(store, nbformat.writes(traced))
    return copy_outputs(notebook, traced)


def _sources(opened: list[str]) -> list[str]:
    """Return the repository's files that a kernel opened, as names relative to the root."""
    names = set()
    for name in opened:
        path = Path(name)
        if path.is_relative_to(ROOT) and path.is_file():
            relative = path.relative_to(ROOT)
            if not NOT_SOURCES & set(relative.parts):
                names.add(relative.as_posix())
    return sorted(names)
