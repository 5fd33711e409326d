"""The text of the second experiment in three parts that share as good as nothing: training, development, held out.

As in `ropebook.lab.data` the text is the standard library of the reader's own Python, read as bytes. What differs is how it
is divided. A whole top-level folder goes to one part, and a file that lies in no folder goes alone: neighbours in a folder are
written alike. Then every file of the development part that shares more than `SHARED` of its strings of `GRAM` bytes with the
training text is left out, and every held-out file that does with the training or the development text. So a model that
learned the training text by heart gains nothing on the rest, whatever Python it is.

Training is for weights. Whatever is chosen (steps, a method's parameters) is chosen on the development part. The held-out part
is for the numbers that are reported.
"""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ropebook import checks
from ropebook.lab.data import as_text, python_files

GRAM = 48
"""Bytes of the strings that are compared."""
SHARED = 0.05
"""The largest share of a file's strings that another part may hold."""
PARTS = ("train", "development", "held_out")

_OUT_OF_16 = {"held_out": 3, "development": 2}
_TABLES = ("encodings", "pydoc_data", "html/entities.py")


@dataclass(frozen=True)
class Parts:
    """``train``: all training files in one, uint8. ``development``, ``held_out``: files by relative path. ``left_out``:
    names of the files that share too much. ``sha256``: of names, bytes and parts. ``python``: the version that read it."""

    train: np.ndarray
    development: dict[str, np.ndarray]
    held_out: dict[str, np.ndarray]
    left_out: tuple[str, ...]
    sha256: str
    python: str

    def files(self, part: str) -> dict[str, np.ndarray]:
        """The files of "development" or "held_out"."""
        return getattr(self, checks.choice("part", part, PARTS[1:]))

    def summary(self) -> dict[str, object]:
        """What results say of the text that they were measured on."""
        return {
            "sha256": self.sha256,
            "python": self.python,
            "train_bytes": len(self.train),
            "development_files": len(self.development),
            "held_out_files": len(self.held_out),
            "left_out": len(self.left_out),
        }


def load(root: Path | str | None = None) -> Parts:
    """The text under ``root``, by default the standard library of the Python that runs this, in its three parts.

    Left out besides: tests (in folders named test, tests, …_test or test_…, and files test_….py), and what is a table and no
    program: `encodings`, `pydoc_data`, `html/entities.py`. ``FileNotFoundError`` if there is no such folder, or a part is empty.
    """
    root = Path(sysconfig.get_paths()["stdlib"] if root is None else root)
    files = {
        name: as_text(content)
        for name, content in python_files(root)
        if not is_test(name) and not name.startswith(_TABLES)
    }
    by_part: dict[str, dict[str, np.ndarray]] = {part: {} for part in PARTS}
    for name, text in files.items():
        by_part[part_of(name)][name] = text
    left_out = []
    known = (
        [grams(np.concatenate(list(by_part["train"].values())))]
        if by_part["train"]
        else []
    )
    for part in PARTS[1:]:
        too_much = [
            name
            for name, share in shares(by_part[part], known).items()
            if share > SHARED
        ]
        for name in too_much:
            del by_part[part][name]
        left_out += too_much
        known += [grams(text) for text in by_part[part].values()]
    empty = [part for part in PARTS if not by_part[part]]
    if empty:
        raise FileNotFoundError(
            f"root must hold .py files for every part, got none for {', '.join(empty)} in {root}"
        )
    whole = hashlib.sha256()
    for part in PARTS:
        for name, text in by_part[part].items():
            whole.update(f"{part}\0{name}\0".encode() + text.tobytes())
    return Parts(
        np.concatenate(list(by_part["train"].values())),
        by_part["development"],
        by_part["held_out"],
        tuple(left_out),
        whole.hexdigest(),
        platform.python_version(),
    )


def is_test(name: str) -> bool:
    """Whether a relative path is a test's, or lies in a folder of tests.

    >>> is_test("idlelib/idle_test/htest.py"), is_test("unittest/case.py")
    (True, False)
    """
    *folders, file = name.split("/")
    return file.startswith("test_") or any(
        folder in ("test", "tests")
        or folder.endswith("_test")
        or folder.startswith("test_")
        for folder in folders
    )


def part_of(name: str) -> str:
    """The part of a relative path, by a hash of its first folder, or of the file's own name where it lies in none.

    >>> part_of("json/decoder.py") == part_of("json/scanner.py")
    True
    """
    unit = name.partition("/")[0]
    draw = hashlib.sha256(f"parts/{unit}".encode()).digest()[0] % 16
    for part, sixteenths in _OUT_OF_16.items():
        if draw < sixteenths:
            return part
        draw -= sixteenths
    return "train"


def grams(text: np.ndarray, length: int = GRAM) -> np.ndarray:
    """Hashes of all different strings of ``length`` bytes in a text, uint8 (bytes,) to sorted uint64; none of a shorter text.

    Two strings with one hash are all but impossible: 64 bits.

    >>> len(grams(np.frombuffer(b"ababab", np.uint8), 2))
    2
    """
    if text.ndim != 1 or text.dtype != np.uint8:
        raise ValueError(
            f"text must be uint8 of shape (length,), got {text.dtype} of shape {text.shape}"
        )
    checks.integer("length", length, minimum=1)
    if len(text) < length:
        return np.empty(0, np.uint64)
    # strings of n bytes side by side make those of 2 n, so that a few steps lead to any length
    single = _mixed(text.astype(np.uint64) + np.uint64(1))
    whole, done = None, 0
    power, size = single, 1
    left = length
    while left:
        if left & 1:
            whole = power if whole is None else _joined(whole, power[done:], size)
            done += size
        left >>= 1
        if left:
            power, size = _joined(power, power[size:], size), 2 * size
    # numpy's unique takes several times as long
    found = np.sort(whole[: len(text) - length + 1])
    return found[np.diff(found, prepend=found[:1] - np.uint64(1)) != 0]


def _joined(left: np.ndarray, right: np.ndarray, size: int) -> np.ndarray:
    """Hashes of strings that begin with ``left`` and end with ``right``."""
    both = min(len(left), len(right))
    with np.errstate(over="ignore"):
        return _mixed(left[:both] * np.uint64(2 * size + 1) + right[:both])


def _mixed(x: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every bit of the input moves every bit of the output."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def shares(
    files: Mapping[str, np.ndarray], known: Iterable[np.ndarray]
) -> dict[str, float]:
    """By name, the share of a file's different strings that are among the ``known`` hashes (`grams`); 0 for a short file."""
    everything = np.sort(np.concatenate([np.empty(0, np.uint64), *known]))
    found = {}
    for name, text in files.items():
        mine = grams(text)
        at = np.searchsorted(everything, mine)
        inside = at < len(everything)
        both = (everything[at[inside]] == mine[inside]).sum()
        found[name] = float(both / len(mine)) if len(mine) else 0.0
    return found
