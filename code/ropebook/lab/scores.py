"""What a trained model reaches on one part of the text: bits per byte, and the share of answers that are right.

The same numbers for the development part, on which everything is chosen, and for the held-out part, from which everything is
reported. They are kept by file, by text and by question, so that intervals can be computed from them later.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab import language, tasks
from ropebook.lab.bits import (
    SAMPLED,
    position_bits,
    sampled_bits,
    sampled_lengths,
    windowed_bits,
)
from ropebook.lab.longer import with_method
from ropebook.lab.means import band_means
from ropebook.lab.model import LanguageModel
from ropebook.lab.parts import Parts
from ropebook.shapes import Float, Int

LENGTH, TEXT = 256, 2048
"""L, in which the models were trained, and the bytes of the texts that they are tried on."""
BANDS = ((0, 256), (256, 512), (512, 1024), (1024, 2048))
"""Positions from and to, the last not included, over which bits are averaged."""
DISTANCES = (32, 64, 128, 192, 384, 768, 1536)
"""Bytes from a record to its query."""
CONTEXTS = 96
"""Texts of each task and length: with three seeds a share has a standard error of 0.03 at most."""
LANGUAGES = 48
"""Texts of the generated language."""
PER_FOLDER = 6
"""Files of one top-level folder, at most: neighbours are written alike."""
PER_OCTAVE = 4
"""Windows of positions to each doubling, in the curves."""
STEP = 32
"""Bytes that are told from one window of the last L: so a byte is told from L − 31 to L bytes."""
STREAMS = {"development": 1, "held_out": 20_261_123}
"""What the generated texts and the questions of a part are drawn from; no training draws from the same."""


@dataclass(frozen=True)
class Materials:
    """What a part is tried with. ``names`` of the files, ``python`` (files, T + 1), ``language`` (texts, T + 1), int64;
    ``questions``: by task and length of the text."""

    part: str
    names: tuple[str, ...]
    python: Tensor
    language: Tensor
    questions: Mapping[tuple[str, int], tasks.Questions]


def materials(
    parts: Parts, part: str, text: int = TEXT, contexts: int = CONTEXTS
) -> Materials:
    """For "development" or "held_out"; each has questions and generated texts of its own. ``text``: T, more than `LENGTH`."""
    files = parts.files(part)
    seed = STREAMS[part]
    names, python = windows(files, text)
    draws = np.random.default_rng([seed, text])
    generated = [language.text(text + 1, draws) for _ in range(LANGUAGES)]
    questions = {}
    for task in tasks.TASKS:
        for length in (LENGTH, text):
            fit = [distance for distance in DISTANCES if distance <= length - 64]
            questions[task, length] = tasks.questions(
                files, task, length, fit, contexts, seed
            )
    return Materials(
        part,
        tuple(names),
        python,
        torch.from_numpy(np.stack(generated).astype(np.int64)),
        questions,
    )


def windows(
    files: Mapping[str, np.ndarray], length: int, most: int = PER_FOLDER
) -> tuple[list[str], Int[Tensor, "files bytes"]]:
    """Names, and one window of each file that is long enough, of ``most`` files of a folder: int64 (files, length + 1).

    A hash of the name says which files these are, and where in its file a window begins. ``ValueError`` if there is none.
    """
    checks.integer("length", length, minimum=1)
    checks.integer("most", most, minimum=1)
    taken: dict[str, list[str]] = {}
    for name in sorted(files, key=_hash):
        folder = name.partition("/")[0]
        if len(files[name]) > length and len(taken.setdefault(folder, [])) < most:
            taken[folder].append(name)
    names = sorted(name for some in taken.values() for name in some)
    if not names:
        raise ValueError(
            f"files must have one of more than length = {length} bytes"
        )
    rows = []
    for name in names:
        start = _hash(name) % (len(files[name]) - length)
        rows.append(files[name][start : start + length + 1])
    return names, torch.from_numpy(np.stack(rows).astype(np.int64))


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def measure(
    model: LanguageModel,
    given: Materials,
    bands: tuple[tuple[int, int], ...] = BANDS,
) -> dict[str, object]:
    """The model's numbers, for JSON. A learned scheme goes as far as its length; what it does not reach is None.

    "python", "language": bits per byte by file or text, (files, bands); "curves": of both, see `curve`. "retrieval", "order": by length of
    the text and by distance, a letter for each context: "1" right, "o" the same key's other record, "0" anything else.
    """
    reach = model.length if model.scheme == "learned" else given.python.shape[1] - 1
    found: dict[str, object] = {"curves": {}}
    for name in ("python", "language"):
        rows = getattr(given, name)[:, : reach + 1]
        bits = position_bits(model, rows, batch=8 if reach <= 512 else 1)
        found[name] = _plain(band_means(bits, bands))
        found["curves"][name] = curve(bits)
    for (task, length), asked in given.questions.items():
        table = found.setdefault(task, {})
        table[str(length)] = answers(model, asked) if length <= reach else None
    return found


def answers(model: LanguageModel, asked: tasks.Questions) -> dict[str, str]:
    """By distance, a letter for each context, see `measure`; where a distance is asked twice in a context, both in a row."""
    batch = 8 if asked.tokens.shape[1] <= 512 else 1
    right, other = tasks.answered(model, asked, batch)
    letters = np.where(right.numpy(), "1", np.where(other.numpy(), "o", "0"))
    distances = asked.distances.numpy()
    return {
        str(distance): "".join(letters[distances == distance])
        for distance in np.unique(distances).tolist()
    }


def measure_windowed(
    model: LanguageModel, given: Materials, window: int, bands=BANDS
) -> dict[str, object]:
    """Bits of the model that always sees the last ``window`` bytes only, or at most `STEP` − 1 fewer (`ropebook.lab.bits.windowed_bits`); and
    their "curves"."""
    found: dict[str, object] = {"curves": {}}
    step = math.gcd(STEP, window)
    for name in ("python", "language"):
        bits = windowed_bits(model, getattr(given, name), window, step)
        found[name] = _plain(band_means(bits, bands))
        found["curves"][name] = curve(bits)
    return found


def measure_ended(
    model: LanguageModel,
    given: Materials,
    bands: tuple[tuple[int, int], ...] = BANDS,
) -> dict[str, object]:
    """Bits in each band, of texts that end with it: for a method that follows the length of the text, (files, bands) by kind of text."""
    found = {}
    for name in ("python", "language"):
        rows = getattr(given, name)
        columns = [
            position_bits(model, rows[:, : stop + 1])[:, start:].mean(1)
            for start, stop in bands
        ]
        found[name] = _plain(torch.stack(columns, 1))
    return found


def curve(bits: Float[Tensor, "files bytes"]) -> list[float]:
    """Means of (files, T) over all files and over each of the windows between `edges`, for JSON."""
    return [
        round(bits[:, start:stop].mean().item(), 4)
        for start, stop in itertools.pairwise(edges(bits.shape[1]))
    ]


def edges(length: int) -> list[int]:
    """Where the windows of a curve begin and end: `PER_OCTAVE` to each doubling, all even, as far as they fit into ``length``.

    Even, for in the generated language every second byte is a verb: a window has as many of these as of nouns.

    >>> edges(33)
    [0, 4, 6, 8, 10, 12, 14, 16, 20, 22, 26, 32]
    """
    checks.integer("length", length, minimum=4)
    found, step = {0}, 2 * PER_OCTAVE
    while (edge := 2 * round(2 ** (step / PER_OCTAVE - 1))) <= length:
        found.add(edge)
        step += 1
    return sorted(found)


def headroom(model: LanguageModel, given: Materials) -> dict[str, object]:
    """Whether a longer context helps within L: bits on the bytes after L/2, with all before them and with the last L/2 only.

    By file and text, (files, 2): full, half. "language_floor": the same of a reader who knows the language; with half, one that
    sees as many bytes of each byte's past as the model does.
    """
    length = model.length
    half = length // 2
    found: dict[str, object] = {}
    for name in ("python", "language"):
        rows = getattr(given, name)[:, : length + 1]
        full = position_bits(model, rows, batch=8)[:, half:]
        less = windowed_bits(model, rows, half)[:, half:]
        found[name] = _plain(torch.stack((full.mean(1), less.mean(1)), 1))
    seen = [half // 2 + 1 + at % (half // 2) for at in range(half, length)]
    floors = []
    for row in given.language[:, : length + 1].numpy().astype(np.uint8):
        by_context = {context: language.bits(row, context) for context in set(seen)}
        less = [by_context[seen[at - half]][at + 1] for at in range(half, length)]
        floors.append([language.bits(row)[half + 1 :].mean(), np.mean(less)])
    found["language_floor"] = _plain(torch.tensor(floors))
    return found


def measure_cached(
    model: LanguageModel,
    given: Materials,
    options: Mapping[str, object],
    reach: int,
) -> dict[str, list[float]]:
    """Dynamic NTK from L to ``reach``, on the Python text: bits of the last bytes at sampled lengths, a mean for each file.

    "cached": keys as they were rotated when they came. "anew": at each of the lengths all is computed with its frequencies.
    """
    lengths = sampled_lengths(model.length, reach)
    rows, last = given.python[:, : reach + 1], SAMPLED
    with_keys, without = (
        with_method(model, "dynamic_ntk", options, arrival=arrival)
        for arrival in (True, False)
    )
    bits = position_bits(with_keys, rows)
    cached = torch.stack([bits[:, n - last : n] for n in lengths], 1)
    anew = sampled_bits(without, rows, lengths, last)
    return {
        name: [round(x, 4) for x in found.mean((1, 2)).tolist()]
        for name, found in (("cached", cached), ("anew", anew))
    }


def stored(folder: Path) -> dict[str, dict]:
    """By cell, what `benchmarks/trials.py` stored in a folder. ``ValueError`` if not all are of the same text."""
    cells = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    ]
    texts = {cell["corpus"]["sha256"] for cell in cells}
    if len(texts) > 1:
        raise ValueError(
            f"folder must have numbers of one text, got {len(texts)} in {folder}"
        )
    return {cell["cell"]: cell for cell in cells}


def share(letters: str) -> float:
    """Of right answers.

    >>> share("110o")
    0.5
    """
    return letters.count("1") / len(letters)


def _plain(values: Tensor) -> list:
    """Numbers for JSON, four digits behind the point, None for NaN."""
    return [
        [None if math.isnan(v) else round(v, 4) for v in row]
        for row in values.tolist()
    ]
