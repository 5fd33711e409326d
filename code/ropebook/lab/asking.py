"""Questions at random distances: contexts, answers and scores that no single distance can decide.

A pair whose frequency is θ makes the same angle at every distance Δ, Δ + 2π/θ, Δ + 4π/θ, … A test that asks at three fixed distances
may hit these by chance, and then measures the chance. Here every record is somewhere at random, of two records the later one
as well, and every key is asked for both its first and its last record, so that a model that prefers far or near records
gains on one kind of question what it loses on the other.

A question is one byte after the whole text, and each is asked alone: no answer is ever shown to the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab import language
from ropebook.lab.data import KEYS, QUERY, RECORD, VALUES
from ropebook.lab.model import LanguageModel
from ropebook.lab.scores import LENGTH, TEXT
from ropebook.lab.tasks import FIRST, TASKS
from ropebook.shapes import Int

KINDS = ("first", "last")
"""What a question of the order task asks for."""
NEAREST = 8
"""The least distance of a later record, in bytes."""
TEXTS = ("python", "language")
EXPLORATION = 20_261_124
"""What contexts of an exploration are drawn from; neither a training nor a part of the first rule draws from it."""
RIGHT, OTHER, WRONG = "1", "o", "0"
"""The letters of an answer: right, the same key's other record, anything else."""

# bytes at a time, where the scores of a whole text would not fit
_PIECE = 256
_BATCH = 8


@dataclass(frozen=True)
class Layout:
    """How contexts are made. ``length``: bytes before the question, T. The earlier record of an asked key is ``low`` to ``high``
    bytes before the question, uniformly; with "order" the later one anywhere between it and `NEAREST`. ``asked`` keys are
    asked for, and ``beside`` more have records at random places. ``text``: one of `TEXTS`.

    ``ValueError`` for distances that do not fit into the text, or more than eight keys.
    """

    task: str
    length: int
    low: int
    high: int
    contexts: int
    asked: int = KEYS
    beside: int = 0
    text: str = "python"

    def __post_init__(self) -> None:
        checks.choice("task", self.task, TASKS)
        checks.choice("text", self.text, TEXTS)
        checks.integer("length", self.length, minimum=2 * NEAREST)
        checks.integer("high", self.high, minimum=2 * NEAREST, maximum=self.length)
        checks.integer("low", self.low, minimum=2 * NEAREST, maximum=self.high)
        checks.integer("contexts", self.contexts, minimum=1)
        checks.integer("asked", self.asked, minimum=1, maximum=KEYS)
        checks.integer("beside", self.beside, minimum=0, maximum=KEYS - self.asked)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of questions: the first and the last record, or the only one."""
        return KINDS if self.task == "order" else KINDS[1:]


LAYOUTS: Mapping[str, Layout] = {
    "retrieval": Layout("retrieval", TEXT, LENGTH, TEXT, 8),
    "order": Layout("order", TEXT, LENGTH, TEXT, 12),
    "retrieval within": Layout("retrieval", LENGTH - 1, 16, LENGTH - 1, 16),
    "order within": Layout("order", LENGTH - 1, 16, LENGTH - 1, 16),
    "order short": Layout("order", LENGTH - 1, 16, 48, 32, asked=2, beside=6),
}
"""What every cell is asked. With three seeds a share has a standard error of 0.036 at most, for each kind of question."""


class Asked(NamedTuple):
    """Contexts with n questions each; int64 but ``first``, bool."""

    # the texts, without any question
    tokens: Int[Tensor, "contexts length"]
    # the byte that asks
    queries: Int[Tensor, "contexts n"]
    # the record that must come, and the same key's other one, or −1
    answers: Int[Tensor, "contexts n"]
    others: Int[Tensor, "contexts n"]
    # from the key's earlier and its later record to the question; the same where there is one
    far: Int[Tensor, "contexts n"]
    near: Int[Tensor, "contexts n"]
    # whether the question asks for the earlier of two
    first: Tensor


def contexts(
    layout: Layout, files: Mapping[str, np.ndarray], seed: int = EXPLORATION
) -> Asked:
    """The contexts of a layout: keys, values and places follow from ``seed`` alone, the text between them from ``files`` as well.

    With "order" a context has its questions for the first records before those for the last ones, by the same keys. ``files``: text by
    name, uint8. ``ValueError`` if none is long enough.

    >>> dots = {"a.py": np.full(400, ord("."), np.uint8)}
    >>> asked = contexts(Layout("order", 300, 256, 300, contexts=2), dots)
    >>> asked.tokens.shape, asked.queries.shape, bool((asked.far > asked.near).all())
    (torch.Size([2, 300]), torch.Size([2, 16]), True)
    """
    identity = [
        checks.integer("seed", seed, minimum=0),
        TASKS.index(layout.task),
        *(layout.length, layout.low, layout.high, layout.asked, layout.beside),
    ]
    draws, of_text = (np.random.default_rng([*identity, at]) for at in range(2))
    long = [name for name, text in files.items() if len(text) > layout.length]
    if layout.text == "python" and not long:
        raise ValueError(
            f"files must have one of more than length = {layout.length} bytes"
        )
    rows = []
    for _ in range(layout.contexts):
        if layout.text == "language":
            text = language.text(layout.length, of_text)
        else:
            whole = files[long[of_text.integers(len(long))]]
            start = of_text.integers(len(whole) - layout.length)
            text = whole[start : start + layout.length]
        rows.append(_context(layout, text, draws))
    return Asked(
        *(torch.from_numpy(np.stack(column)) for column in zip(*rows, strict=True))
    )


def _context(
    layout: Layout, text: np.ndarray, draws: np.random.Generator
) -> tuple[np.ndarray, ...]:
    n, records = layout.asked, 1 + (layout.task == "order")
    back = _distances(layout, draws)
    keys = draws.permutation(KEYS)[: n + layout.beside]
    values = np.stack([draws.permutation(VALUES)[:records] for _ in keys])
    rows = RECORD + VALUES * keys[:, None] + values
    planted = np.zeros(layout.length, np.int64)
    planted[layout.length - back] = rows
    free = planted == 0
    planted[free] = text[: free.sum()]
    # by kind of question: which record it wants, and which it does not
    first, last = rows[:n, 0], rows[:n, -1]
    asks = {"first": (FIRST, first, last), "last": (QUERY, last, first)}
    chosen = [asks[kind] for kind in layout.kinds]
    none = np.full(n, -1)
    return (
        planted,
        np.concatenate([byte + keys[:n] for byte, *_ in chosen]),
        np.concatenate([wanted for _, wanted, _ in chosen]),
        np.concatenate([other if records > 1 else none for *_, other in chosen]),
        np.tile(back[:n, 0], len(chosen)),
        np.tile(back[:n, -1], len(chosen)),
        np.repeat([kind == "first" for kind in layout.kinds], n),
    )


def _distances(layout: Layout, draws: np.random.Generator) -> np.ndarray:
    """Of each key's records, from far to near: (keys, records). No two records have one place."""
    n = layout.asked
    while True:
        far = draws.integers(layout.low, layout.high + 1, n)
        anywhere = draws.integers(2 * NEAREST, layout.length + 1, layout.beside)
        back = np.concatenate((far, anywhere))[:, None]
        if layout.task == "order":
            back = np.concatenate((back, draws.integers(NEAREST, back)), 1)
        if len(np.unique(back)) == back.size:
            return back


# --- What a model answers -------------------------------------------------------------------------------------------


@torch.no_grad()
def likeliest(
    model: LanguageModel, asked: Asked, batch: int = _BATCH
) -> Int[Tensor, "contexts n"]:
    """The likeliest of all bytes after each question: int64 (contexts, n).

    The text is read once, and each question then with the keys and values of the text from a cache. So a method whose frequencies follow
    the length must be set to the whole length before (`ropebook.lab.causal.at_length`).
    """
    checks.integer("batch", batch, minimum=1)
    told = []
    for tokens, queries in zip(
        asked.tokens.split(batch), asked.queries.split(batch), strict=True
    ):
        length = tokens.shape[1]
        caches = model.new_caches(length + 1)
        _read(model, tokens, caches)
        column = []
        for query in queries.split(1, 1):
            column.append(model(query, caches=caches)[:, -1].argmax(-1))
            for cache in caches:
                cache.crop(length)
        told.append(torch.stack(column, 1))
    return torch.cat(told)


def _read(model: LanguageModel, tokens: Tensor, caches: Sequence) -> None:
    """Fills the caches. Of the last layer nothing but keys and values is needed, so nothing else is computed."""
    attention = model.layers[-1].attention
    if model.has_bias or getattr(attention, "keep", "rotated") != "rotated":
        for piece in tokens.split(_PIECE, 1):
            model(piece, caches=caches)
        return
    x = model.embed(tokens, None, 0)
    for layer, cache in zip(model.layers[:-1], caches[:-1], strict=True):
        x = layer(x, cache=cache)
    _, k, v = attention.project(model.layers[-1].attention_norm(x))
    caches[-1].append(k, v)


def letters(asked: Asked, told: Int[Tensor, "contexts n"]) -> list[str]:
    """For each context a letter for each question. ``ValueError`` for ``told`` of another shape.

    >>> dots = {"a.py": np.full(400, ord("."), np.uint8)}
    >>> asked = contexts(Layout("order", 300, 256, 300, contexts=1, asked=2), dots)
    >>> letters(asked, asked.answers), letters(asked, asked.others)
    (['1111'], ['oooo'])
    """
    if told.shape != asked.answers.shape:
        raise ValueError(
            f"told must be of shape {tuple(asked.answers.shape)}, got {tuple(told.shape)}"
        )
    right, other = told == asked.answers, told == asked.others
    found = np.where(right, RIGHT, np.where(other, OTHER, WRONG))
    return ["".join(row) for row in found.tolist()]


def ask(
    asked: Asked, reader: LanguageModel | Callable[[Asked], Tensor] | None
) -> list[str]:
    """The `letters` of a model, or of any other function of the contexts; None answers nothing.

    Whoever reads the last L bytes only (`cut`) does not see a record beyond them: that is 0, and not unknown.
    """
    if reader is None:
        return letters(asked, torch.full_like(asked.answers, -1 - VALUES))
    if isinstance(reader, LanguageModel):
        return letters(asked, likeliest(reader, asked))
    return letters(asked, reader(asked))


def cut(asked: Asked, length: int = LENGTH) -> Asked:
    """The contexts of whoever keeps ``length`` bytes with the question: the same questions after the last ``length`` − 1 bytes of the text.

    ``ValueError`` if the text is shorter.
    """
    kept = checks.integer("length", length, 2, asked.tokens.shape[1] + 1) - 1
    return asked._replace(tokens=asked.tokens[:, -kept:])


# --- Scores -----------------------------------------------------------------------------------------------------------


def share(rows: Sequence[str], letter: str = RIGHT) -> float:
    """Of all answers.

    >>> share(["1o", "10"])
    0.5
    """
    joined = "".join(rows)
    return joined.count(letter) / len(joined)


def by_context(
    rows: Sequence[str], task: str, only: Sequence[Sequence[bool]] | None = None
) -> np.ndarray:
    """A score for each context, float64 (contexts,): "retrieval": the share of right answers. "order": right − other, so that whoever
    knows nothing of order has 0, whether it finds the records or not.

    ``only``: which questions count, (contexts, n); NaN for a context of which none does.

    >>> by_context(["11", "1o", "00"], "order").tolist()
    [1.0, 0.0, 0.0]
    """
    checks.choice("task", task, TASKS)
    table = np.array([list(row) for row in rows])
    points = (table == RIGHT).astype(float)
    if task == "order":
        points -= table == OTHER
    counts = np.ones_like(points, bool) if only is None else np.asarray(only, bool)
    if counts.shape != points.shape:
        raise ValueError(
            f"only must be of shape {points.shape}, got {counts.shape}"
        )
    asked = counts.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(asked, (points * counts).sum(1) / asked, np.nan)


def paired(
    a: Sequence[Sequence[str]],
    b: Sequence[Sequence[str]],
    task: str,
    only: Sequence[Sequence[bool]] | None = None,
) -> Tensor:
    """a − b, context by context, (seeds, contexts), float64, for `ropebook.lab.intervals.crossed`; ``a`` and ``b``: rows of each seed.

    ``ValueError`` if they are not of as many seeds and contexts.
    """
    both = [np.stack([by_context(rows, task, only) for rows in x]) for x in (a, b)]
    if both[0].shape != both[1].shape:
        raise ValueError(
            f"a and b must be of the same seeds and contexts, got {both[0].shape} and {both[1].shape}"
        )
    return torch.from_numpy(both[0] - both[1])


def fewer(layout: Layout, contexts: int) -> Layout:
    """The layout with its first contexts only: they are the same ones.

    >>> fewer(LAYOUTS["order"], 4).contexts
    4
    """
    checks.integer("contexts", contexts, minimum=1, maximum=layout.contexts)
    return replace(layout, contexts=contexts)
