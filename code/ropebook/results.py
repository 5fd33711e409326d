"""Stored measurements: JSON files with their provenance, written by benchmarks and read by the chapters."""

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
# Folders that contain many files each: "trials" for the trained models and their results, "real" for the measurements
# of a published model.
_MODELS, _PUBLISHED = "trials", "real"
# the folder in which downloadable notebooks keep their copy of the results
_INSIDE_THE_PACKAGE = Path(__file__).resolve().parent / "_results"

_PROVENANCE = ("device", "torch", "date", "seed", "command")


def load(name: str) -> dict:
    """Load the result `name` as it was saved, which is a dictionary whose keys include "provenance".

    Args:
        name: the name of the file in `results/`, without its extension.

    Raises:
        ValueError: the name contains characters other than letters, digits, `_` and `-`.
        FileNotFoundError: there is no such result. The message lists the results that exist.
    """
    return json.loads(find(name).read_text(encoding="utf-8"))


def find(name: str, kind: str = "json") -> Path:
    """Return the path of the result `name`. ``kind`` is the file's extension, such as "json" or "safetensors". Raises
    the same errors as `load`."""
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
    """Write `data` with its provenance to `results/<name>.json`, and return the path. The file is written completely or
    not at all.

    Args:
        name: letters, digits, `_` and `-`.
        data: the measurements, which consist of finite numbers, strings, lists and dictionaries.
        provenance: a dictionary as returned by `ropebook.device.provenance`.
        folder: "" for `results/` itself, or the name of one of its folders, "trials" or "real". To load the result,
            you need only the name.

    Raises:
        ValueError: the name is invalid, the folder is not one of these, a number is not finite, the data already have
            a "provenance" key, or the provenance lacks device, torch, date, seed or command.
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
    """Context manager that yields a temporary file to write to. On success the file is moved to `path`; on failure it
    is deleted."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The temporary file is in the target's folder, so that it can replace the target in one step and nobody can read
    # half a file.
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
    """Describe in one line where a result comes from, for the caption of its figure or table.

    >>> where = {"device": "CPU", "torch": "2.6.0", "date": "2026-01-31", "seed": 0, "command": "make bench"}
    >>> caption({"provenance": where | {"threads": 2}})
    'Measured on CPU, 2 threads, with torch 2.6.0 on 2026-01-31, seed 0, by: make bench.'

    Raises:
        ValueError: the result's provenance is missing or incomplete.
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
