"""Synthetic results in the format of the second experiment, for testing the Measured explorer."""

from __future__ import annotations

import copy
import functools
import json

import numpy as np

from ropebook.explorers import measured
from ropebook.lab import measured as lab
from ropebook.lab import rule, scores, trials
from tests.lab_worlds import change, ending, world

BANDS, DISTANCES, LENGTH, TEXT = scores.BANDS, scores.DISTANCES, scores.LENGTH, scores.TEXT
CELLS = {
    # bits per byte within L, bits per byte beyond L, share of correct answers
    "": (2.0, 5.0, 0.2),
    "/linear": (2.6, 2.4, 0.7),
    "/linear/8/tuned": (2.05, 2.0, 0.8),
    "/yarn_chosen": (2.1, 2.2, 0.8),
    "/self_extend": (2.01, 1.98, 0.9),
    "/log_n": (2.0, 5.0, 0.2),
}


@functools.cache
def numbers() -> dict[str, dict]:
    """Return the numbers that `benchmarks/trials.py evaluate` would store for each cell."""
    made = world(seed_spread=0.08, beyond=4.0)
    for extension, (within, beyond, share) in CELLS.items():
        names = tuple(f"{measured.ROPE}-{seed}-3200{extension}" for seed in trials.SEEDS)
        options = {"within": within, "beyond": beyond, "share": share, "seed_spread": 0.08, "last": 2.2}
        if extension:
            made = change(made, names, **options)
        else:
            changed = change(made, names, **options)
            made |= {name: changed[name] for name in names}
    for at, scheme in enumerate(measured.SCHEMES):
        names = tuple(f"{scheme}-{seed}" for seed in trials.SEEDS)
        changed = change(made, names, within=2 + 0.05 * at, beyond=3 + at / 3, share=0.9 - at / 12, seed_spread=0.1)
        made |= {name: changed[name] for name in names}
    made |= change({name: made[name] for name in made if name[:-2] == "alibi"}, ("alibi",), beyond=2.0)
    # If a model breaks, its bits per byte rise only beyond L.
    for cell in made.values():
        told = cell["numbers"]
        last = cell["last"]["curves"]
        for text, curve in told["curves"].items():
            last[text] = beginning([*curve[:-1], curve[0] + 0.1])
            told["curves"][text] = beginning(curve)
    ending(made)
    for name, cell in made.items():
        scheme, _, extension = lab.id_of(name)[0].partition("/")
        if not extension.startswith(rule.FOLLOWING):
            del cell["ended"], cell["sampled"]
        if not extension.endswith("tuned") and (extension or scheme not in ("alibi", measured.LONGER)):
            del cell["last"]
    return made


def beginning(curve: list[float]) -> list[float]:
    """Return a curve that starts at the first value of ``curve``, ends at its last value, and rises only beyond L. As
    in measured curves, the values for the first few bytes are higher."""
    edges = np.array(scores.edges(TEXT)[1:])
    share = np.clip(np.log2(edges / LENGTH) / 3, 0, 1)
    rise = curve[0] + (curve[-1] - curve[0]) * share + 6 / edges**0.6
    return [round(float(x), 4) for x in rise]


@functools.cache
def synthetic() -> dict:
    """Return the contents of ``results/measured.json`` as `benchmarks/trials.py gather` would write them."""
    found = {
        "corpus": {},
        "rule": {"date": rule.DATE, "changed": rule.CHANGED, "sha256": rule.digest()},
        "length": LENGTH,
        "text": TEXT,
        "bands": [list(band) for band in BANDS],
        "edges": scores.edges(TEXT),
        "distances": list(DISTANCES),
        "contexts": scores.CONTEXTS,
        "emerged": trials.EMERGED,
        "trainings": [],
        "chosen": {"ntk_by_parts": 4, "yarn": 4, "self_extend": 64, "rerope": 128},
        "opened": {
            "files": [],
            "cells": lab.cells(numbers()),
            "differences": lab.differences(numbers()),
            "verdicts": [],
        },
        "provenance": {"device": "A CPU", "torch": "2", "date": "2026-01-31T00:00", "seed": None, "command": "x"},
    }
    json.dumps(found, allow_nan=False)
    return found


@functools.cache
def compacted() -> dict:
    return measured.compact(synthetic())


class Measured(measured.Measured):
    """The Measured explorer with its own copy of the synthetic results, which a test may change."""

    def __init__(self, **dials):
        super(measured.Measured, self).__init__(measured=copy.deepcopy(compacted()), **dials)
