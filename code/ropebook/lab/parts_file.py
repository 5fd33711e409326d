"""Store the text of the second experiment in a file, for a machine with a different version of Python.

`ropebook.lab.parts.load` reads the standard library of the Python that runs it, so different versions of Python produce
different texts. The file makes the text of one version available to another, for example on a machine with a GPU.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ropebook import results
from ropebook.lab.parts import PARTS, Parts


def write(text: Parts, path: Path | str) -> None:
    """Write the text to a compressed NumPy file, atomically."""
    about = {key: value for key, value in asdict(text).items() if key not in PARTS}
    arrays = {
        f"{part}/{name}": content
        for part in PARTS[1:]
        for name, content in text.files(part).items()
    }
    with results.writing(Path(path)) as file:
        np.savez_compressed(
            file, train=text.train, about=np.array(json.dumps(about)), **arrays
        )


def read(path: Path | str) -> Parts:
    """Read a text written by `write`. Its files keep their order, because the random contexts depend on it.

    Raises ``FileNotFoundError`` if there is no such file.
    """
    with np.load(Path(path)) as stored:
        about = json.loads(str(stored["about"]))
        files = {
            part: {
                name.removeprefix(f"{part}/"): stored[name]
                for name in stored.files
                if name.startswith(f"{part}/")
            }
            for part in PARTS[1:]
        }
        return Parts(
            train=stored["train"],
            **files,
            **about | {"left_out": tuple(about["left_out"])},
        )
