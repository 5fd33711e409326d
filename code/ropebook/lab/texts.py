"""Held-out texts for the small models: windows of files, int64 (files, length + 1), and texts with records to find.

A window holds inputs and, one to the right, targets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab.bits import logits
from ropebook.lab.data import KEYS, QUERY, RECORD, VALUES
from ropebook.lab.first_text import Corpus
from ropebook.lab.model import LanguageModel
from ropebook.shapes import Int

LENGTH, TEXT = 256, 4096
"""L, in which the models were trained, and the bytes of the texts they are tried on."""

# bytes of a query with its answer
_QUERY = 2


def held_out_windows(
    corpus: Corpus, length: int = TEXT, files: int | None = None
) -> tuple[list[str], Int[Tensor, "files bytes"]]:
    """Names, and one window of every held-out file that is long enough: int64 (files, length + 1).

    A hash of the name says where in its file a window begins and, where only so many ``files`` are wanted, which ones
    these are. ``ValueError`` if there are too few.
    """
    checks.integer("length", length, minimum=1)
    names = _long_enough(corpus, length)
    if files is not None:
        checks.integer("files", files, minimum=1, maximum=len(names))
        names = sorted(sorted(names, key=_hash)[:files])
    windows = []
    for name in names:
        text = corpus.held_out[name]
        start = _hash(name) % (len(text) - length)
        windows.append(text[start : start + length + 1])
    return names, torch.from_numpy(np.stack(windows).astype(np.int64))


class RetrievalTexts(NamedTuple):
    """What `retrieval_texts` makes; n queries in each text."""

    tokens: Int[Tensor, "contexts length"]
    # where the records stand that must come again
    answers: Int[Tensor, "contexts n"]
    # from each record to its query
    distances: Int[Tensor, "contexts n"]


def retrieval_texts(
    corpus: Corpus, length: int, distances: Sequence[int], contexts: int, seed: int
) -> RetrievalTexts:
    """Held-out text with one record for each of ``distances``; at its end the queries, each with its answer behind it.

    A record (`ropebook.lab.data.RECORD`) and its query are exactly the distance apart; a distance may be given several
    times. Keys, values and the order of the queries are random. No key occurs twice. ``ValueError`` if the distances do
    not fit into the length, or no file is long enough.
    """
    checks.integer("length", length, minimum=1)
    checks.integer("contexts", contexts, minimum=1)
    n = checks.integer("number of distances", len(distances), 1, KEYS)
    for distance in distances:
        checks.integer("distances", distance, _QUERY * n, length - _QUERY * n)
    names = _long_enough(corpus, length)
    draws = np.random.default_rng([checks.integer("seed", seed, minimum=0), length])
    rows = []
    for _ in range(contexts):
        text = corpus.held_out[names[draws.integers(len(names))]]
        rows.append(_planted(text, length, np.asarray(distances), draws))
    columns = map(np.stack, zip(*rows, strict=True))
    return RetrievalTexts(*map(torch.from_numpy, columns))


@torch.no_grad()
def retrieval(
    model: LanguageModel, texts: RetrievalTexts, batch: int = 1
) -> dict[int, float]:
    """For each distance, the share of records given back: after the query, the record is the likeliest of all 256 bytes."""
    checks.integer("batch", batch, minimum=1)
    found = []
    batches = texts.tokens.split(batch), texts.answers.split(batch)
    for tokens, answers in zip(*batches, strict=True):
        tokens = tokens.to(model.embedding.weight.device)
        likeliest = logits(model, tokens[:, :-1]).argmax(-1).cpu()
        wanted = tokens.cpu().gather(1, answers)
        found.append(likeliest.gather(1, answers - 1) == wanted)
    right = torch.cat(found)
    return {
        distance: right[texts.distances == distance].float().mean().item()
        for distance in texts.distances.unique().tolist()
    }


def _planted(
    text: np.ndarray, length: int, distances: np.ndarray, draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = len(distances)
    queries = length - _QUERY * np.arange(n, 0, -1)
    records = queries
    while len(np.unique(records)) < n or (records >= queries[0]).any():
        distances = draws.permutation(distances)
        records = queries - distances
    keys = draws.permutation(KEYS)[:n]
    answers = RECORD + VALUES * keys + draws.integers(0, VALUES, n)
    start = draws.integers(len(text) - length)
    planted = np.zeros(length, np.int64)
    planted[records] = planted[queries + 1] = answers
    planted[queries] = QUERY + keys
    free = planted == 0
    planted[free] = text[start : start + free.sum()]
    return planted, queries + 1, distances


def _long_enough(corpus: Corpus, length: int) -> list[str]:
    names = [name for name, text in corpus.held_out.items() if len(text) > length]
    if not names:
        raise ValueError(
            f"corpus must have a held-out file of more than length = {length} bytes"
        )
    return names


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
