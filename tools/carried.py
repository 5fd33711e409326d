"""The parts of the package that travel with a notebook: what its cells import or open, what those parts import or open,
and so on."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tools.imports import imported, strings
from tools.paths import ROOT

LABEL = re.compile(r"eq(-[a-z0-9]+)+")
SCRIPT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+\.js)";$', re.MULTILINE)
RESULT = re.compile(r'\b(?:results\.(?:load|find)|pretrained)\("([^"]+)"')


def in_int8(weights: bytes) -> bytes:
    """Trained weights, rounded: `ropebook.lab.model.pretrained` reads both."""
    # imported here because only notebooks that carry such a file need it
    from safetensors.torch import load, save

    from ropebook.lab.int8 import rounded

    return save(rounded(load(weights)))


def buckets_alone(weights: bytes) -> bytes:
    """Of a trained model's weights only T5's table, because pages read nothing else of these models."""
    from safetensors.torch import load, save  # here: as above

    return save({"buckets": load(weights)["buckets"]})


LIGHTER: dict[str, Callable[[bytes], bytes]] = {
    "rope-10000-0-3200.safetensors": in_int8,
    **{f"t5-{seed}.safetensors": buckets_alone for seed in range(3)},
}
"""How to shrink a heavy result into a form that the same code can read."""


def contents(root: Path = ROOT, code_text: str = "") -> dict[str, bytes]:
    """What travels, as name in the archive -> bytes: sources and stills of the package, and `results/`
    as `ropebook/_results`, with heavy ones made `LIGHTER`.

    Args:
        root: the repository.
        code_text: the notebook's own cells. They show what is needed: modules by importing them, and results and the
        checks of equations by their names in strings.

    Raises:
        SyntaxError: `code_text` is not Python.
    """
    code, results = root / "code", root / "results"
    said = strings(code_text)
    labels = {f'"{text}"' for text in said if LABEL.fullmatch(text)}
    first = imported(code, code_text) | {
        path
        for path in (code / "ropebook" / "proofs").glob("*.py")
        if any(label in path.read_text(encoding="utf-8") for label in labels)
    }
    sources = _closed(code, first)
    stills = {path.parent / "stills" / f"{path.stem}.svg" for path in first}
    called = set(RESULT.findall(code_text)).union(
        *(RESULT.findall(path.read_text(encoding="utf-8")) for path in sources)
    )
    carried = sources | {still for still in stills if still.is_file()}
    found = {path.relative_to(code).as_posix(): path for path in carried}
    # many places mention a trained model's name, but few open it
    for folder, names in ((results, said | called), (results / "trials", called)):
        for path in folder.glob("*"):
            if path.is_file() and {path.stem, path.name} & names:
                found[f"ropebook/_results/{path.name}"] = path
    return {name: LIGHTER.get(path.name, bytes)(path.read_bytes()) for name, path in sorted(found.items())}


def _closed(code: Path, first: set[Path]) -> set[Path]:
    """These sources with everything that they import, and each explorer with its script."""
    found: set[Path] = set()
    waiting = set(first)
    while waiting:
        path = waiting.pop()
        found.add(path)
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".js":
            needed = {(path.parent / name).resolve() for name in SCRIPT.findall(text)}
        else:
            needed = imported(code, text) | {script for script in [path.with_suffix(".js")] if script.is_file()}
        waiting |= needed - found
    return found
