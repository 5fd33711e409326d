"""Draw the still figures: each explorer's own drawing as SVG, made by Node from the widgets' states, in one run for the
whole book.

    python -m tools.stills

This draws every explorer's opening picture into the package, ``ropebook/explorers/stills``, for notebooks on machines
without Node. Stills of other states are kept in ``_build/stills``; the file name is a hash of everything on which the
still depends.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from nbformat import NotebookNode

from tools import assets
from tools.paths import BUILD, ROOT, write_whole

EXPLORERS = ROOT / "code" / "ropebook" / "explorers"
OPENING = EXPLORERS / "stills"
KEPT = BUILD / "stills"
PROGRAM = Path(__file__).parent
STATE = "application/vnd.jupyter.widget-state+json"
VIEW = "application/vnd.jupyter.widget-view+json"


class StillError(Exception):
    """Raised if an explorer could not be drawn."""


def draw(states: list[dict], then: list[dict] | None = None) -> list[str]:
    """Draw each widget state as SVG, all in one run of Node. A state maps trait names to values, and contains the
    script as ``_esm``. With ``then``, each figure is opened at its state, the traits in ``then`` are changed, and the
    result is drawn."""
    jobs = [{"script": state["_esm"], "state": _own(state)} for state in states]
    for job, changed in zip(jobs, then or [], strict=bool(then)):
        job["then"] = changed
    command = [assets.node(), str(PROGRAM / "still.mjs")]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise StillError(f"a still could not be drawn:\n{done.stderr}")
    return json.loads(done.stdout)


def of(states: Iterable[dict]) -> list[str]:
    """Return the SVG of each widget state. This works like `draw`, but draws only states that have not been drawn
    before."""
    states = list(states)
    places = [KEPT / f"{_key(state)}.svg" for state in states]
    new = {place: state for place, state in zip(places, states, strict=True) if not place.exists()}
    if new:
        for place, picture in zip(new, draw(list(new.values())), strict=True):
            write_whole(place, picture)
    return [place.read_text(encoding="utf-8") for place in places]


def put_into(notebook: NotebookNode) -> None:
    """Give every explorer in the notebook's outputs the still for its state."""
    from ropebook.explorers.kit.stills import with_ids

    shown = _shown(notebook)
    for (output, model, _), picture in zip(shown, of(state for _, _, state in shown), strict=True):
        output["data"]["text/html"] = with_ids(picture, model)


def ensure(notebooks: Iterable[NotebookNode]) -> None:
    """Draw all explorers that the book's notebooks show, in one run."""
    of(state for notebook in notebooks for _, _, state in _shown(notebook))


def opening_states() -> dict[str, dict]:
    """Return the state in which each explorer opens, keyed by name."""
    states = {}
    for path in sorted(EXPLORERS.glob("*.js")):
        module = importlib.import_module(f"ropebook.explorers.{path.stem}")
        kind = next(k for k in vars(module).values() if isinstance(k, type) and k.__dict__.get("script") == path.name)
        states[path.stem] = kind().get_state()
    return states


def write_opening() -> bool:
    """Update the package's stills, and return whether any of them changed. Sources are compared first, because
    importing the explorers takes longer."""
    stamp = KEPT / "opening"
    # The explorers import colours, and what the chapters compute, from the rest of the package.
    sources = [*(path for path in EXPLORERS.rglob("*.*") if path.suffix != ".pyc"), *PROGRAM.glob("*.mjs")]
    sources += EXPLORERS.parent.rglob("*.py")
    sources += (ROOT / "results").glob("measured.json")
    if stamp.exists() and stamp.read_text() == _hash_files(sources):
        return False
    states = opening_states()
    changed = False
    for name, picture in zip(states, of(states.values()), strict=True):
        place = OPENING / f"{name}.svg"
        if not place.exists() or place.read_text(encoding="utf-8") != picture:
            write_whole(place, picture)
            changed = True
    write_whole(stamp, _hash_files([*sources, *OPENING.glob("*.svg")]))
    return changed


def _own(state: dict) -> dict:
    return {name: value for name, value in state.items() if not name.startswith("_")}


@cache
def _program() -> bytes:
    return b"".join(path.read_bytes() for path in sorted(PROGRAM.glob("*.mjs")))


def _key(state: dict) -> str:
    told = json.dumps([state["_esm"], {name: value for name, value in _own(state).items() if name != "layout"}])
    return hashlib.sha256(_program() + told.encode()).hexdigest()[:20]


def _hash_files(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(set(paths)):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


def _shown(notebook: NotebookNode) -> list[tuple[dict, str, dict]]:
    """Return every output that is an explorer, with its model id and its state."""
    models = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    found = []
    for output in outputs:
        model = output.get("data", {}).get(VIEW, {}).get("model_id")
        state = models.get(model, {}).get("state", {})
        if "_esm" in state:
            found.append((output, model, state))
    return found
