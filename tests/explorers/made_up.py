"""Results of the evaluation's form, made up: what the explorer of the measured grid shows in the tests."""

from __future__ import annotations

import copy
import functools
import itertools
import json
import math
import random

import numpy as np
import torch

from ropebook.explorers import measured
from ropebook.lab import evaluation

LENGTH, TEXT, FILES = 256, 4096, 9
BANDS = ((0, 256), (256, 512), (512, 1024), (1024, 2048), (2048, 4096))
DISTANCES = (24, 64, 128, 192, 384, 768, 1536, 3072)


def curve_of(cell: evaluation.Cell, seed: random.Random) -> np.ndarray:
    """Bits per byte (files, bytes)."""
    scheme, learned = cell.run[:-2], cell.run.startswith("learned")
    n = np.arange(1, (LENGTH if learned else TEXT) + 1)
    noise = np.random.default_rng(seed.randrange(2**32))
    files = np.random.default_rng(7).normal(0, 0.15, FILES)[:, None]
    reach = math.log2(cell.factor) if cell.factor else 1.5
    own = {"linear": 0.02 if cell.tuned else 0.35 * reach, "ntk": 0.06 * reach}.get(cell.method, 0.01)
    if cell.method == "none" and not cell.tuned:
        reach = {"alibi": 5.0, "none": 0.3, "sinusoidal": 0.0}.get(scheme, 0.2)
    beyond = np.maximum(0, np.log2(n / LENGTH) - reach)
    plain = 1.9 + 3.6 * n**-0.45 + 0.04 * len(scheme) / 10 + own + 1.1 * beyond * (n > LENGTH)
    own_files = noise.normal(0, 0.03, FILES)[:, None]
    bits = plain + files + own_files + noise.normal(0, 0.9, (FILES, len(n)))
    if cell.cache is False:
        keep = n <= LENGTH
        for end in evaluation.sampled_lengths(LENGTH, TEXT):
            keep[end - 16 : end] = True
        bits[:, ~keep] = np.nan
    return bits


def plain(values: np.ndarray) -> list:
    return evaluation.for_json(torch.from_numpy(np.asarray(values, dtype=float)))


def measured_cell(cell: evaluation.Cell, seed: random.Random) -> tuple[dict, np.ndarray]:
    """A cell of results/evaluation.json, and its curve."""
    bits = torch.from_numpy(curve_of(cell, seed))
    text = bits.shape[1]
    means = evaluation.band_means(bits, BANDS)
    mean, error = evaluation.over_files(means)
    made = {
        "id": cell.id,
        "run": cell.run,
        "method": cell.method,
        "factor": cell.factor,
        "options": dict(cell.options),
        "tuned": cell.tuned,
        "cache": cell.cache,
        "text": text,
        "files": plain(means),
        "bits": plain(mean),
        "error": plain(error),
        "asked": {"256": [64] * 4 + [0] * 4, "4096": [64] * 8},
        "seconds": 1.0,
    }
    if text > LENGTH and (cell.method in ("none", "dynamic_ntk")):
        ends = evaluation.sampled_lengths(LENGTH, TEXT)
        some = torch.stack([bits[:, n - 16 : n] for n in ends], 1)
        made["sampled"] = {"lengths": ends, "files": plain(evaluation.sampled_bands(some, ends, BANDS))}
    far = [round(max(0.02, 0.98 - 0.25 * seed.random() * k), 5) for k in range(8)]
    made["retrieval"] = {
        "256": [1.0, 0.984375, 0.953125, 0.90625] + [None] * 4,
        "4096": [None] * 8 if text == LENGTH or cell.cache is False else far,
    }
    return made, bits.mean(0).half().numpy()


@functools.cache
def synthetic() -> tuple[dict, dict]:
    """``results/evaluation.json`` and ``evaluation.safetensors``, as `benchmarks/evaluate.py` writes them."""
    runs = ["learned", "sinusoidal", "rope-100", "rope-10000", "rope-500000", "alibi", "none"]
    names = [f"{scheme}-0" for scheme in runs] + ["rope-10000-1", "alibi-1"]
    grid = evaluation.grid(names, measured.RUNS)
    for run, method, factor in itertools.product(measured.RUNS, ("linear", "yarn", "none"), evaluation.FACTORS):
        grid.append(evaluation.Cell(run, method, factor, tuned=True))
    source = random.Random(1)
    made = [measured_cell(cell, source) for cell in grid]
    found = {
        "provenance": {"device": "CPU", "torch": "2", "date": "2026-01-01", "seed": 0, "command": "x"},
        "corpus": {},
        "length": LENGTH,
        "text": TEXT,
        "files": [f"{k}.py" for k in range(FILES)],
        "bands": [list(band) for band in BANDS],
        "distances": list(DISTANCES),
        "cells": [cell for cell, _ in made],
        "windowed": {
            run: {"files": [[2.4] * 5] * FILES, "bits": [2.41, 2.3, 2.25, 2.2, 2.21], "error": [0.05] * 5}
            for run in names
        },
        "seconds": 80.0,
    }  # fmt: skip
    json.dumps(found, allow_nan=False)
    return found, {cell["id"]: curve for cell, curve in made}


@functools.cache
def compacted():
    return measured.compact(*synthetic())


class Measured(measured.Measured):
    """The explorer, of made-up results that are its own: a test may change them."""

    def __init__(self, **dials):
        super(measured.Measured, self).__init__(measured=copy.deepcopy(compacted()), **dials)
