"""The second experiment: nine schemes, three seeds each, trained on two kinds of text and two tasks.

A step's rows are of four kinds, as many of each: Python, Python with the retrieval task, Python with the order task, and the
generated language. All follows from seed and step.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab import language, tasks
from ropebook.lab.model import SCHEMES
from ropebook.lab.parts import Parts
from ropebook.lab.training import Run
from ropebook.shapes import Int

STEPS = 1600
"""Of a training; with so many all 27 take two and a half hours on two threads. Of a scheme with which retrieval has not emerged by
then, the seed that finds fewest records is trained with twice as many; of `EXTENDED`, all seeds."""
EMERGED = 0.75
"""The share of records within L that must be given back: three in four, where whoever guesses a value is right once in eight."""
LEAST = 0.5
"""What no seed may be below, where a scheme's seeds give back `EMERGED` on average."""
EXTENDED = "rope-10000"
"""The scheme that is tried with methods. After `STEPS` retrieval had not emerged in any of its seeds (0.66, 0.67, 0.61 of the records): a
model that does not find a record within L says nothing of a method that should find it beyond. So methods are put into models
that were trained twice as long (`LONGER`)."""
KINDS = ("python", "retrieval", "order", "language")


@dataclass(frozen=True)
class Trial(Run):
    """A `Run` on `ropebook.lab.parts`: every fourth row is of one of the `KINDS`."""

    n_layers: int = 3
    steps: int = STEPS
    warmup: int = 100
    half: bool = True

    @property
    def name(self) -> str:
        """The scheme and the seed, and the steps where they are not `STEPS`.

        >>> Trial("none", 2).name, twice(Trial("none", 2)).name
        ('none-2', 'none-2-3200')
        """
        return super().name + (f"-{self.steps}" if self.steps != STEPS else "")

    def batch(self, corpus: Parts, step: int) -> Int[Tensor, "rows bytes"]:
        """The rows of a step, int64 (rows, length + 1); ``ValueError`` if the training text is shorter than a row."""
        length = self.length + 1
        if len(corpus.train) < length:
            raise ValueError(
                f"corpus must have {length} bytes or more to train on, got {len(corpus.train)}"
            )
        draws = np.random.default_rng([self.seed, step])
        # counted through all steps, for a step may have fewer rows than there are kinds
        rows = [
            row(KINDS[at % len(KINDS)], corpus.train, length, draws)
            for at in range(step * self.rows, (step + 1) * self.rows)
        ]
        return torch.from_numpy(np.stack(rows).astype(np.int64))


def row(
    kind: str, text: np.ndarray, length: int, draws: np.random.Generator
) -> np.ndarray:
    """A row of one of the `KINDS`, uint8 (length,); a window of ``text`` from a random place where the kind needs it."""
    if kind == "language":
        return language.text(length, draws)
    start = draws.integers(0, len(text) - length + 1)
    window = text[start : start + length]
    if kind == "python":
        return window
    keys = min(tasks.KEYS, length // tasks.planted_bytes(kind))
    return tasks.plant(window, kind, draws, keys)[0]


def twice(trial: Trial) -> Trial:
    """The same training with twice as many steps, from the start: the learning rate's course depends on their number."""
    return dataclasses.replace(trial, steps=2 * trial.steps)


@dataclass(frozen=True)
class Further(Trial):
    """A training that begins with another's weights, with ``method`` (an extension's name) in the layers, for texts ``factor`` times as long."""

    parent: str = ""
    method: str = "none"
    factor: int = 1

    @property
    def name(self) -> str:
        """
        >>> further(twice(Trial("rope-10000")), "linear", 4).name
        'rope-10000-0-3200-linear-4'
        """
        return f"{self.parent}-{self.method}-{self.factor}"


FURTHER = 60
"""Steps that a model is trained more, with a method in it."""


def further(
    trial: Trial, method: str, factor: int, steps: int = FURTHER
) -> Further:
    """As many bytes a step as the trial has, in texts ``factor`` times as long, at a fifth of its learning rates.

    ``ValueError`` if ``factor`` does not divide the rows of a step.
    """
    if trial.rows % checks.integer("factor", factor, minimum=1):
        raise ValueError(
            f"factor must divide the {trial.rows} rows of a step, got {factor}"
        )
    return Further(
        **dataclasses.asdict(trial)
        | {
            "length": trial.length * factor,
            "rows": trial.rows // factor,
            "steps": checks.integer("steps", steps, minimum=1),
            "warmup": min(5, steps),
            "lr": trial.lr / 5,
            "matrix_lr": trial.matrix_lr / 5,
        },
        parent=trial.name,
        method=method,
        factor=factor,
    )


SEEDS = (0, 1, 2)
TRIALS = tuple(Trial(scheme, seed) for seed in SEEDS for scheme in SCHEMES)
"""Every scheme with every seed."""
LONGER = tuple(twice(trial) for trial in TRIALS if trial.scheme == EXTENDED)
"""The models that methods are put into."""
