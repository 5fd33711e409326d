"""Two tasks in a text: to find a record, and to tell which of two records came first.

A *record* is one byte that stands for a key and a value (`ropebook.lab.data`). *Retrieval*: every key has one record, the query
names a key, and its record must come again. The records of the other keys distract, and some have the same value. Whoever looks for
the key finds the record wherever it stands: nothing need be known about places.

*Order*: every key has two records with different values, and there are two kinds of queries: one asks for the *first* of the two,
the other for the *last*. Both fit by content. Without an order one of the two is a guess, so that one in two is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab.bits import logits
from ropebook.lab.data import KEYS, QUERY, RECORD, VALUES
from ropebook.lab.model import LanguageModel
from ropebook.shapes import Bool, Int

FIRST = 14
"""FIRST + key asks for the first record of a key; `ropebook.lab.data.QUERY` + key for the last, or the only one."""
TASKS = ("retrieval", "order")
_QUERY = 2  # bytes of a query with its answer


def planted_bytes(task: str) -> int:
    """Bytes that a key takes: its records, its query, the answer.

    >>> planted_bytes("retrieval"), planted_bytes("order")
    (3, 4)
    """
    return 3 + (checks.choice("task", task, TASKS) == "order")


def plant(
    text: np.ndarray, task: str, draws: np.random.Generator, keys: int = KEYS
) -> tuple[np.ndarray, np.ndarray]:
    """``text`` with the records and queries of some ``keys`` at random places, for training; and where the answers stand.

    As many bytes come out as go in: the end of the text makes room. A key's query comes after its records. ``text``: uint8, (length,).
    ``ValueError`` if it has no room for so many keys.

    >>> dots = np.full(24, ord("."), np.uint8)
    >>> text, answers = plant(dots, "order", np.random.default_rng(0), keys=2)
    >>> len(text), bool((text[answers] >= RECORD).all())
    (24, True)
    """
    if text.ndim != 1 or text.dtype != np.uint8:
        raise ValueError(
            f"text must be uint8 of shape (length,), got {text.dtype} of shape {text.shape}"
        )
    each = planted_bytes(task)
    checks.integer("keys", keys, minimum=1, maximum=min(KEYS, len(text) // each))
    kept = text[: len(text) - each * keys]
    chosen = draws.permutation(KEYS)[:keys]
    records = each - _QUERY
    values = np.stack([draws.permutation(VALUES)[:records] for _ in chosen])
    asks_first = draws.random(keys) < (task == "order") / 2
    events = records + 1
    cuts = np.sort(draws.integers(0, len(kept) + 1, events * keys))
    order = draws.permutation(np.repeat(np.arange(keys), events))
    seen = np.zeros(keys, int)
    pieces, answers, start, length = [], [], 0, 0
    for cut, which in zip(cuts, order, strict=True):
        row, key = RECORD + VALUES * chosen[which] + values[which], chosen[which]
        if seen[which] < records:
            planted = [row[seen[which]]]
        else:
            planted = _asked(key, row, asks_first[which])
        seen[which] += 1
        pieces += [kept[start:cut], np.array(planted, text.dtype)]
        length += cut - start + len(planted)
        start = cut
        if len(planted) == _QUERY:
            answers.append(length - 1)
    return np.concatenate([*pieces, kept[start:]]), np.array(answers, int)


class Questions(NamedTuple):
    """Texts with queries at their end, n in each."""

    tokens: Int[Tensor, "contexts length"]
    # where the records stand that must come again
    answers: Int[Tensor, "contexts n"]
    # from the record farther back to the query
    distances: Int[Tensor, "contexts n"]
    # the same key's other record, or −1
    others: Int[Tensor, "contexts n"]


def questions(
    files: Mapping[str, np.ndarray],
    task: str,
    length: int,
    distances: Sequence[int],
    contexts: int,
    seed: int,
) -> Questions:
    """Text from ``files`` with records at exactly these distances before their queries, which stand at the text's end.

    With "order", a key's first record is as far back as its distance says and the last half as far; the queries ask for the one or
    the other at random. Keys that are left over have records too, at random places, and are not asked for. A distance may be given
    several times. ``ValueError`` if the distances do not fit into the length, or no file is long enough.
    """
    checks.integer("length", length, minimum=1)
    checks.integer("contexts", contexts, minimum=1)
    n = checks.integer("number of distances", len(distances), 1, KEYS)
    nearest = _QUERY * n * (1 + (checks.choice("task", task, TASKS) == "order"))
    for distance in distances:
        checks.integer("distances", distance, nearest, length - _QUERY * n)
    names = [name for name, text in files.items() if len(text) > length]
    if not names:
        raise ValueError(
            f"files must have one of more than length = {length} bytes"
        )
    draws = np.random.default_rng(
        [checks.integer("seed", seed, minimum=0), length, TASKS.index(task)]
    )
    rows = []
    for _ in range(contexts):
        text = files[names[draws.integers(len(names))]]
        start = draws.integers(len(text) - length)
        rows.append(
            _asking(
                text[start : start + length], task, np.asarray(distances), draws
            )
        )
    return Questions(
        *(torch.from_numpy(np.stack(column)) for column in zip(*rows, strict=True))
    )


def _asking(
    text: np.ndarray, task: str, distances: np.ndarray, draws: np.random.Generator
) -> tuple[np.ndarray, ...]:
    length, n = len(text), len(distances)
    queries = length - _QUERY * np.arange(n, 0, -1)
    records = 1 + (task == "order")
    left = KEYS - n
    while True:
        distances = draws.permutation(distances)
        back = np.stack([distances // (i + 1) for i in range(records)], 1)
        places = queries[:, None] - back
        more = np.sort(draws.integers(0, queries[0], (left, records)), 1)
        every = np.concatenate((places.ravel(), more.ravel()))
        if len(np.unique(every)) == len(every) and (every < queries[0]).all():
            break
    keys = draws.permutation(KEYS)
    values = np.stack([draws.permutation(VALUES)[:records] for _ in keys])
    rows = RECORD + VALUES * keys[:, None] + values
    planted = np.zeros(length, np.int64)
    planted[places], planted[more] = rows[:n], rows[n:]
    asks_first = draws.random(n) < (task == "order") / 2
    asked = [
        _asked(*each) for each in zip(keys[:n], rows[:n], asks_first, strict=True)
    ]
    planted[queries[0] :] = np.concatenate(asked)
    free = planted == 0
    planted[free] = text[: free.sum()]
    others = (
        np.where(asks_first, rows[:n, -1], rows[:n, 0])
        if records > 1
        else np.full(n, -1)
    )
    return planted, queries + 1, distances, others


def _asked(key: int, records: np.ndarray, first: bool) -> list[int]:
    """A query and its answer."""
    return [FIRST + key, records[0]] if first else [QUERY + key, records[-1]]


@torch.no_grad()
def answered(
    model: LanguageModel, asked: Questions, batch: int = 8
) -> tuple[Bool[Tensor, "contexts n"], Bool[Tensor, "contexts n"]]:
    """Which answers are right, and which are the same key's other record: bool (contexts, n) each.

    An answer is the likeliest of all 256 bytes after the query.
    """
    checks.integer("batch", batch, minimum=1)
    right, other = [], []
    columns = (asked.tokens, asked.answers, asked.others)
    batches = (column.split(batch) for column in columns)
    for tokens, answers, others in zip(*batches, strict=True):
        told = logits(model, tokens[:, :-1]).argmax(-1).cpu().gather(1, answers - 1)
        right.append(told == tokens.gather(1, answers))
        other.append(told == others)
    return torch.cat(right), torch.cat(other)
