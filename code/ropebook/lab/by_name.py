"""The text as the first experiment split it, by a hash of each file's name; kept to show what is wrong with that."""

from __future__ import annotations

import hashlib
import sysconfig
from pathlib import Path

import numpy as np

from ropebook.lab.data import as_text, python_files

HELD_OUT = 26
"""Files whose path's SHA-256 begins with a byte below this were held out: one in ten."""


def load(
    root: Path | str | None = None,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """All training files joined, uint8, and the held-out ones by relative path. ``root``: the folder to read, by
    default the standard library of the Python that runs this. Tests (in folders named test or tests) are left out.

    ``FileNotFoundError`` if there is no such folder, or no ``.py`` file to train on or to hold out.
    """
    root = Path(sysconfig.get_paths()["stdlib"] if root is None else root)
    train, held_out = [], {}
    for name, content in python_files(root):
        if {"test", "tests"} & set(name.split("/")[:-1]):
            continue
        if hashlib.sha256(name.encode()).digest()[0] < HELD_OUT:
            held_out[name] = as_text(content)
        else:
            train.append(as_text(content))
    if not train or not held_out:
        raise FileNotFoundError(
            "root must hold .py files to train on and others to hold out, "
            f"got {len(train)} and {len(held_out)} in {root}"
        )
    return np.concatenate(train), held_out
