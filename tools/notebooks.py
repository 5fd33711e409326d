"""Write the chapters as notebooks: with outputs for download, or without outputs as copies to work on in JupyterLab.

This module has two Sphinx builders. They take the prose from the page after its references have been resolved
(`tools.markdown`), and the code cells from the chapter itself.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path, PurePosixPath

import nbformat
from docutils import nodes
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_markdown_cell, new_notebook
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.config import Config

from tools import execute
from tools.first_cell import first_cells
from tools.markdown import NotebookError, Writer, fenced, folded
from tools.paths import write_whole
from tools.pictures import as_images

WRITTEN = ".written.json"  # in the folder of copies: file name -> hash of the text that was written there
CODE_HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
OUTPUT_HIDDEN = {"hide-output", "hide-cell", "remove-output", "remove-cell"}
STATE = "application/vnd.jupyter.widget-state+json"
# Output formats that only the site reads; the second one holds numbers for the prose, which a notebook has as text.
OURS = ("application/vnd.ropebook", "application/papermill.record/")


class NotebookBuilder(Builder):
    """Builder that writes every chapter, with its outputs, as a notebook that runs on its own. If one chapter fails,
    nothing is written."""

    name, format = "notebooks", "ipynb"

    def get_outdated_docs(self) -> list[str]:
        return sorted(docname for docname in self.env.found_docs if self.has_notebook(docname))

    def has_notebook(self, docname: str) -> bool:
        """Return whether a page has a notebook. This requires that the page has code, and that it is either numbered or
        a chapter before the reference part."""
        is_chapter = self.env.toc_secnumbers.get(docname) or Path(self.env.doc2path(docname)) in execute.chapters()
        return "kernelspec" in self.env.metadata[docname] and bool(is_chapter)

    def get_target_uri(self, docname: str, typ: str | None = None) -> str:
        return f"{PurePosixPath(docname).name}.ipynb"  # all notebooks are in one folder

    def get_relative_uri(self, from_: str, to: str, typ: str | None = None) -> str:
        return self.get_target_uri(to)

    def prepare_writing(self, docnames: set[str]) -> None:
        self.texts: dict[str, str] = {}
        self.citations: dict[str, nodes.citation] = {}
        for docname in {key.docname for key in self.env.get_domain("cite").bibliographies}:
            page = self.env.get_and_resolve_doctree(docname, self)
            self.citations |= {name: entry for entry in page.findall(nodes.citation) for name in entry["ids"]}

    def write_doc(self, docname: str, doctree: nodes.document) -> None:
        if self.has_notebook(docname):
            try:
                notebook = self.notebook(docname, doctree)
                nbformat.validate(notebook)
            except nbformat.ValidationError as error:
                raise NotebookError(f"{docname}: {error}") from error
            self.texts[PurePosixPath(docname).name] = nbformat.writes(notebook) + "\n"

    def finish(self) -> None:
        for name, text in self.texts.items():
            write_whole(Path(self.outdir) / f"{name}.ipynb", text)

    def notebook(self, docname: str, doctree: nodes.document) -> NotebookNode:
        """Return the notebook of a chapter. Raises NotebookError."""
        chapter = self.chapter(docname)
        waiting = {index: cell for index, cell in enumerate(chapter.cells) if cell.cell_type == "code"}

        def code_cells(index: int, shown: str | None) -> list[NotebookNode]:
            """Return the code cell with that index, preceded by any cells that the page does not show at all."""
            cell = waiting.get(index)
            if cell is None or shown not in (None, cell.source.rstrip("\n")):
                raise NotebookError(f"{docname}: its cell {index} is another one than on the page: {shown}")
            return [waiting.pop(before) for before in sorted(waiting) if before <= index]

        cells = Writer(self.env, docname, code_cells, self.has_notebook, self.citations).page(doctree)
        cells += [waiting[index] for index in sorted(waiting)]
        cells = [self.closed(cell) for cell in cells]
        for number, cell in enumerate((cell for cell in cells if cell.cell_type == "code"), start=1):
            try:
                self.finish_cell(cell)
            except ValueError as error:
                raise NotebookError(f"{docname}, code cell {number}: {error}") from error
        cells = self.first_cells(docname) + cells
        for i, cell in enumerate(cells):
            cell.id = f"cell-{i}"  # nbformat's own ids would be random
        title = self.env.titles[docname].astext()
        notebook = new_notebook(cells=cells, metadata={**_metadata(chapter.metadata), "title": title})
        notebook.nbformat_minor = 5
        return notebook

    def chapter(self, docname: str) -> NotebookNode:
        """Return the chapter with its outputs."""
        return execute.executed(Path(self.env.doc2path(docname)))

    def first_cells(self, docname: str) -> list[NotebookNode]:
        """Return the cells that introduce the notebook and make `ropebook` importable."""
        return first_cells(self.env.titles[docname].astext())

    def closed(self, cell: NotebookNode) -> NotebookNode:
        """Return a solution as text in a closed box, and any other cell as it is. Not every program that opens
        notebooks can fold a code cell, and an open solution would spoil the exercise."""
        title = cell.metadata.get("mystnb", {}).get("code_prompt_show", "")
        if not re.search(r"\b(solution|answer)\b", title):
            return cell
        found = [output.get("text") or output.data.get("text/plain", "") for output in cell.outputs]
        texts = [fenced(cell.source, "python"), *(fenced(text, "text") for text in found if text)]
        return new_markdown_cell(folded(title, "\n\n".join(texts)))

    def finish_cell(self, cell: NotebookNode) -> None:
        """Fold code and outputs that the page hides, convert drawings to images, and remove outputs that only the site
        needs."""
        tags = cell.metadata.get("tags", [])
        metadata = {"tags": tags} if tags else {}
        folds = {}
        if CODE_HIDDEN & set(tags):
            folds["source_hidden"] = True
            metadata["cellView"] = "form"  # Colab's way to fold a cell
        if OUTPUT_HIDDEN & set(tags):
            folds["outputs_hidden"] = True
        if folds:
            metadata["jupyter"] = folds
        cell.metadata = from_dict(metadata)
        for output in cell.outputs:
            for kind in [kind for kind in output.get("data", {}) if kind.startswith(OURS)]:
                del output.data[kind]
            if "text/html" in output.get("data", {}):
                output.data["text/html"] = as_images(output.data["text/html"])
        cell.outputs = [output for output in cell.outputs if output.get("data") != {}]


class LabBuilder(NotebookBuilder):
    """Builder that writes copies of the chapters for JupyterLab, without outputs. It executes nothing."""

    name = "lab"

    def chapter(self, docname: str) -> NotebookNode:
        return execute.read_chapter(Path(self.env.doc2path(docname)))

    def first_cells(self, docname: str) -> list[NotebookNode]:
        return []

    def closed(self, cell: NotebookNode) -> NotebookNode:
        return cell  # JupyterLab folds code

    def finish(self) -> None:
        put_copies(self.texts, Path(self.outdir))


def write_beside(app: Sphinx, out: Path) -> None:
    """Write the notebooks into `out` at the end of another build, using the pages that the other build has already
    read. Notebooks of pages that no longer exist are removed from `out`."""
    other = app.builder
    app.builder = builder = NotebookBuilder(app, app.env)  # references are resolved for this builder
    try:
        builder.outdir = out
        builder.prepare_writing(set())
        for docname in builder.get_outdated_docs():
            builder.write_doc(docname, app.env.get_and_resolve_doctree(docname, builder))
        builder.finish()
        for path in out.glob("*.ipynb"):
            if path.stem not in builder.texts:
                path.unlink()
    finally:
        app.builder = other


def put_copies(texts: dict[str, str], out: Path) -> list[Path]:
    """Write a copy of each chapter, and return the paths of the copies that have the book's current text.

    A copy that the reader has changed is left alone. If the chapter has changed too, its new copy is written next to
    the old one as `<chapter>-2.ipynb`, and a message is printed.
    """
    record_path = out / WRITTEN
    record = json.loads(record_path.read_text()) if record_path.exists() else {}
    paths = []
    for name, text in texts.items():
        paths.append(_put(name, text, out, record))
        write_whole(record_path, json.dumps(record, indent=1))
    return paths


def _put(name: str, text: str, out: Path, record: dict[str, str]) -> Path:
    """Write a copy to the first path where it doesn't overwrite the reader's work. If the reader already has this text,
    write nothing."""
    number, path = 1, out / f"{name}.ipynb"
    while path.exists():
        written, now = record.get(path.name), _hash(path.read_text(encoding="utf-8"))
        if _hash(text) in (written, now):
            return path  # the reader already has this text, with or without changes
        if written == now:
            break  # an older text that the reader has not changed
        number += 1
        path = out / f"{name}-{number}.ipynb"
    if number > 1:
        print(f"{name}.ipynb holds changes of yours and is left alone; the chapter's new text is in {path.name}")
    write_whole(path, text)
    record[path.name] = _hash(text)
    return path


def _metadata(metadata: NotebookNode) -> NotebookNode:
    kept = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    kept["language_info"] = metadata.get("language_info", {"name": "python"})
    widgets = metadata.get("widgets", {}).get(STATE)
    if widgets is not None:
        # Without the key `state`, GitHub refuses to show the notebook at all.
        state = widgets if "state" in widgets else {"version_major": 2, "version_minor": 0, "state": widgets}
        kept["widgets"] = {STATE: state}
    return from_dict(kept)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _outputs(app: Sphinx, config: Config) -> None:
    """Register all output formats with MyST-NB. Otherwise it would warn about every format that it can't show in these
    builders. Here all outputs are simply copied."""
    shown = [(builder.name, kind, k) for builder in BUILDERS for k, kind in enumerate(("text/html", "text/plain"))]
    config.nb_mime_priority_overrides = [*config.nb_mime_priority_overrides, *shown]


BUILDERS = (NotebookBuilder, LabBuilder)


def setup(app: Sphinx) -> dict:
    for builder in BUILDERS:
        app.add_builder(builder)
    app.connect("config-inited", _outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
