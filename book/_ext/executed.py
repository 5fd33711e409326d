"""Let Sphinx read each chapter together with the outputs that `tools.execute` has stored for it.

MyST-NB's own cache depends only on a notebook's text, so its execution is switched off. Instead, this extension reads
each page with its outputs and tells Sphinx which pages have new outputs. It also includes each explorer's script only
once per page.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from myst_nb.core.read import read_myst_markdown_notebook
from nbformat import NotebookNode
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]

import plumbing  # noqa: E402  (the path must be set first)
import seals  # noqa: E402

from tools import execute  # noqa: E402

LOGGER = logging.getLogger(__name__)
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"
PART = "//# part: "
GLUED = re.compile(r"\{glue:\w*\}`[^`]+`")

_app: Sphinx | None = None


def read_page(text: str) -> NotebookNode:
    """Read a page for MyST-NB. Returns a notebook that contains the page's outputs."""
    env = _app.env
    path = Path(env.doc2path(env.docname))
    runs = execute.has_code(path)
    if runs and _app.builder.name == "lab" and not execute.is_current(path):
        # the copies for JupyterLab are not executed, so there are no numbers yet
        runs, text = False, GLUED.sub("…", text)
    notebook = read_myst_markdown_notebook(text, env.myst_config, add_source_map=True, path=str(path))
    if runs:
        ran = execute.executed(path, LOGGER.info)
        env.note_dependency(str(execute.EXECUTED / f"{path.stem}.ipynb"))
        execute.copy_outputs(notebook, ran)
        seals.take(env, notebook)
        if _app.builder.format == "html":
            plumbing.fold(notebook)
        _share_scripts(notebook)
    return notebook


def _share_scripts(notebook: NotebookNode) -> None:
    """Replace each explorer's script with the names of its parts, and each widget view with HTML.

    Each part can then be included just once per page. The HTML contains the explorer's still figure.
    """
    state = notebook.metadata.get("widgets", {}).get(STATE)
    if state is None:
        return
    parts: dict[str, str] = {}
    models = state["state"]
    for model in models.values():
        script = model["state"].get("_esm", "")
        if PART in script:
            names = []
            for chunk in script.split(PART)[1:]:
                name, _, source = chunk.partition("\n")
                names.append(name.strip())
                if parts.setdefault(names[-1], source) != source:
                    raise ValueError(f"two different scripts are named {name!r} on one page")
            model["state"]["_esm"] = {"parts": names}
    state["parts"] = parts
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if VIEW in data:
                model = models[data[VIEW]["model_id"]]["state"]
                output["data"] = {"text/html": _view(model, data)}


def _view(model: dict, data: dict) -> str:
    """Return the HTML for an explorer.

    It contains a still figure, the description that is printed on paper, and the data that the explorer's script needs
    to make the figure interactive.
    """
    name = Path(model["_esm"]["parts"][-1]).stem if isinstance(model["_esm"], dict) else "explorer"
    view = json.dumps(data[VIEW]).replace("<", "\\u003c")
    return (
        f'<div class="explorer full-width" data-explorer="{name}"><div class="explorer-still">{data["text/html"]}'
        f'<p class="on-paper explorer-told">{_told(data["text/html"])}</p></div>'
        f'<script type="{VIEW}">{view}</script></div>'
    )


def _told(still: str) -> str:
    """Return the caption that is printed below a still figure.

    It says where to find the interactive figure, and describes what the still figure shows.

    >>> _told('<svg role="img" aria-label="A line &amp; a dot."></svg>').endswith("A line &amp; a dot.")
    True
    """
    shown = re.search(r'aria-label="([^"]*)"', still)
    page = f"{_app.env.docname}.html" if _app else ""
    return f"This is the figure in its initial state. An interactive version is at {page}. {shown[1] if shown else ''}"


def pages_with_new_outputs(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """Return the pages whose outputs are out of date.

    A page's outputs may be out of date even though its text hasn't changed, because a module that it imports has
    changed.
    """
    if app.builder.name == "lab":
        return []
    stale = {str(path) for path in execute.runnable() if not execute.is_current(path)}
    return [name for name in env.found_docs if str(env.doc2path(name)) in stale]


def remember_app(app: Sphinx) -> None:
    global _app
    _app = app


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", remember_app)
    app.connect("env-get-outdated", pages_with_new_outputs)
    return {"parallel_read_safe": False, "parallel_write_safe": True}
