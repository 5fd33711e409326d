"""The first experiment's text: how it was divided, and its retrieval task.

A file is held out if the hash of its relative path says so. What is wrong with that is measured on the page of the second one: neighbours
share much of their text.
"""

from __future__ import annotations

import hashlib
import platform
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab.data import KEYS, QUERY, RECORD, VALUES, as_text, python_files
from ropebook.shapes import Int

SCHEMES = (
    "learned",
    "sinusoidal",
    "rope-100",
    "rope-10000",
    "rope-500000",
    "alibi",
    "none",
)
PLANTED = 3
"""Bytes of a record, its query and the answer."""
HELD_OUT = 26
"""Files whose path's SHA-256 begins with a byte below this are held out: one in ten."""


@dataclass(frozen=True)
class Corpus:
    """``train``: all training files in one, uint8. ``held_out``: the other files, by relative path. ``sha256``: of all
    of it, names and bytes. ``python``: the version that read it."""

    train: np.ndarray
    held_out: dict[str, np.ndarray]
    sha256: str
    python: str

    def summary(self) -> dict[str, object]:
        """What results say of the text that they were measured on."""
        return {
            "sha256": self.sha256,
            "python": self.python,
            "train_bytes": len(self.train),
            "held_out_files": len(self.held_out),
            "held_out_bytes": sum(map(len, self.held_out.values())),
        }


def load(root: Path | str | None = None) -> Corpus:
    """The text under ``root``, by default the standard library of the Python that runs this.

    ``FileNotFoundError`` if there is no such folder, or not one ``.py`` file to train on and one to hold out (a Python
    whose library is packed in an archive has none).
    """
    root = Path(sysconfig.get_paths()["stdlib"] if root is None else root)
    whole = hashlib.sha256()
    train, held_out = [], {}
    for name, content in python_files(root):
        if {"test", "tests"} & set(name.split("/")[:-1]):
            continue
        text = as_text(content)
        whole.update(name.encode() + b"\0" + text.tobytes())
        if hashlib.sha256(name.encode()).digest()[0] < HELD_OUT:
            held_out[name] = text
        else:
            train.append(text)
    if not train or not held_out:
        raise FileNotFoundError(
            "root must hold .py files to train on and others to hold out, "
            f"got {len(train)} and {len(held_out)} in {root}"
        )
    return Corpus(
        np.concatenate(train),
        held_out,
        whole.hexdigest(),
        platform.python_version(),
    )


def most_records(length: int) -> int:
    """How many records with their queries a text of this length has room and keys for.

    >>> most_records(257), most_records(13)
    (8, 4)
    """
    return min(KEYS, checks.integer("length", length, minimum=0) // PLANTED)


def plant(
    text: np.ndarray, records: int, draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """``text`` with ``records`` records and their queries at random places, and where the answers stand.

    As many bytes come out as go in: the end of the text makes room. Each query comes somewhere after its record; no
    key occurs twice. ``text``: uint8, (length,). ``ValueError`` if it has no room for so many.

    >>> dots = np.full(20, ord("."), np.uint8)
    >>> text, answers = plant(dots, 2, np.random.default_rng(0))
    >>> len(text), bool((text[answers] >= RECORD).all())
    (20, True)
    """
    if text.ndim != 1 or text.dtype != np.uint8:
        raise ValueError(
            f"text must be uint8 of shape (length,), got {text.dtype} of shape {text.shape}"
        )
    checks.integer("records", records, minimum=0, maximum=most_records(len(text)))
    kept = text[: len(text) - PLANTED * records]
    keys = draws.permutation(KEYS)[:records]
    values = draws.integers(0, VALUES, records)
    cuts = np.sort(draws.integers(0, len(kept) + 1, 2 * records))
    order = draws.permutation(np.repeat(np.arange(records), 2))
    known: set[int] = set()
    pieces, answers, start, length = [], [], 0, 0
    for cut, which in zip(cuts, order, strict=True):
        planted = [RECORD + VALUES * keys[which] + values[which]]
        if which in known:
            planted.insert(0, QUERY + keys[which])
        pieces += [kept[start:cut], np.array(planted, text.dtype)]
        length += cut - start + len(planted)
        start = cut
        if which in known:
            answers.append(length - 1)
        known.add(which)
    return np.concatenate([*pieces, kept[start:]]), np.array(answers, int)


def batch(
    corpus: Corpus,
    seed: int,
    step: int,
    rows: int,
    length: int,
    share: float = 0.5,
) -> Int[Tensor, "rows bytes"]:
    """The training batch of a step: int64 (rows, length + 1), inputs and, one to the right, targets.

    Each row is a window of the training text from a random place; a ``share`` of them holds as many records as there are
    keys, or fit in. All of it follows from ``seed`` and ``step``, so that training can stop and go on anywhere.
    ``ValueError`` if the training text is shorter than a row.

    >>> corpus = Corpus(np.full(99, ord("."), np.uint8), {}, "", "")
    >>> rows = batch(corpus, seed=0, step=0, rows=2, length=32, share=1.0)
    >>> rows.shape, (rows >= RECORD).sum(1)  # each record once, and once as an answer
    (torch.Size([2, 33]), tensor([16, 16]))
    """
    checks.integer("seed", seed, minimum=0)
    checks.integer("step", step, minimum=0)
    checks.integer("rows", rows, minimum=1)
    checks.integer("length", length, minimum=1)
    checks.number("share", share, minimum=0, maximum=1)
    if len(corpus.train) <= length:
        raise ValueError(
            f"corpus must have more than length = {length} bytes to train on, got {len(corpus.train)}"
        )
    draws = np.random.default_rng([seed, step])
    windows = []
    for start in draws.integers(0, len(corpus.train) - length, rows):
        window = corpus.train[start : start + length + 1]
        if draws.random() < share:
            window, _ = plant(window, most_records(length + 1), draws)
        windows.append(window)
    return torch.from_numpy(np.stack(windows).astype(np.int64))
