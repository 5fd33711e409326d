"""What was measured elsewhere: JSON files with their provenance, written whole and read by the chapters."""

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ropebook import checks

_BESIDE_THE_CODE = Path(__file__).resolve().parents[2] / "results"
# "trials": the trained models and their numbers; "real": measurements of a published model, one file each
_MODELS, _PUBLISHED = "trials", "real"
# where downloadable notebooks carry them
_INSIDE_THE_PACKAGE = Path(__file__).resolve().parent / "_results"

_PROVENANCE = ("device", "torch", "date", "seed", "command")


def load(name: str) -> dict:
    """The result `name` as it was saved: a dictionary whose keys include "provenance".

    Args:
        name: the file's name in `results/` without its ending.

    Raises:
        ValueError: a name with other characters than letters, digits, `_` and `-`.
        FileNotFoundError: no such result; the message lists the ones that exist.
    """
    return json.loads(find(name).read_text(encoding="utf-8"))


def find(name: str, kind: str = "json") -> Path:
    """The path of the result `name`, a file of this kind, such as "json" or "safetensors". Raises as `load`
    does."""
    _checked(name)
    folders = (
        _BESIDE_THE_CODE,
        _BESIDE_THE_CODE / _MODELS,
        _BESIDE_THE_CODE / _PUBLISHED,
        _INSIDE_THE_PACKAGE,
    )
    for folder in folders:
        path = folder / f"{name}.{kind}"
        if path.is_file():
            return path
    stems = {path.stem for folder in folders for path in folder.glob(f"*.{kind}")}
    known = ", ".join(sorted(stems)) or "none"
    raise FileNotFoundError(f"no result named {name!r}; there are: {known}")


def save(name: str, data: dict, provenance: dict, folder: str = "") -> Path:
    """Write `data` with its provenance to `results/<name>.json`, whole or not at all; returns the path.

    Args:
        name: letters, digits, `_` and `-`.
        data: what was measured; finite numbers, strings, lists, dictionaries.
        provenance: as `ropebook.device.provenance` gives it.
        folder: "" for `results/` itself, or one of the folders in it: "trials", "real". `load` finds it by its name alone.

    Raises:
        ValueError: a bad name, another folder, a number that is not finite, data that already holds "provenance", or a provenance
            without device, torch, date, seed and command.
    """
    _checked(name)
    if "provenance" in data:
        raise ValueError(
            'data must not hold the key "provenance": it is an argument of its own'
        )
    _complete(provenance)
    text = (
        json.dumps(
            {"provenance": provenance, **data},
            indent=1,
            ensure_ascii=False,
            allow_nan=False,
        )
        + "\n"
    )
    checks.choice("folder", folder, ("", _MODELS, _PUBLISHED))
    path = _BESIDE_THE_CODE / folder / f"{name}.json"
    with writing(path) as file:
        file.write(text.encode())
    return path


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which is moved to `path` once everything is written; if writing fails, nothing is
    left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, so that the replacement is one step: a reader never meets half a file.
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def caption(result: dict) -> str:
    """One line on where a result comes from, for the caption of its figure or table.

    >>> where = {"device": "CPU", "torch": "2.6.0", "date": "2026-01-31", "seed": 0, "command": "make bench"}
    >>> caption({"provenance": where | {"threads": 2}})
    'Measured on CPU, 2 threads, with torch 2.6.0 on 2026-01-31, seed 0, by: make bench.'

    Raises:
        ValueError: the result has no provenance, or an incomplete one.
    """
    provenance = result.get("provenance", {})
    _complete(provenance)
    device, torch, date = (provenance[key] for key in ("device", "torch", "date"))
    if threads := provenance.get("threads"):
        device += f", {threads} thread{'s' * (threads > 1)},"
    parts = [f"Measured on {device} with torch {torch} on {str(date)[:10]}"]
    if provenance["seed"] is not None:
        parts.append(f"seed {provenance['seed']}")
    if provenance["command"]:
        parts.append(f"by: {provenance['command']}")
    return ", ".join(parts) + "."


def _checked(name: str) -> None:
    if not (isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_-]+", name)):
        raise ValueError(
            f"name must be letters, digits, _ and - only, got {name!r}"
        )


def _complete(provenance: dict) -> None:
    missing = [key for key in _PROVENANCE if key not in provenance]
    if missing:
        raise ValueError(
            f"provenance must hold {', '.join(_PROVENANCE)}; missing: {', '.join(missing)}"
        )
