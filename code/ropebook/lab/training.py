"""Training the small models: settings, steps, checkpoints that are written atomically, and resuming.

Everything in a run follows from its `Run`: the initial weights, the batch of every step, the learning rate. A `Trainer`
goes through it step by step, on one process or, under ``torchrun``, on several, each with its share of the rows.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from ropebook import checks, results
from ropebook.lab.model import SCHEMES, LanguageModel
from ropebook.shapes import Int


class Corpus(Protocol):
    """A text to train on, such as `ropebook.lab.parts.Parts`. ``train``: uint8; ``sha256``: the hash of the
    whole text."""

    train: np.ndarray
    sha256: str


@dataclass(frozen=True)
class Run(ABC):
    """One training run: what to build, what to train on, and for how long. A subclass says what to train on: see
    `ropebook.lab.trials.Trial`.

    ``length``: L, in bytes; ``rows``: windows per step over all processes; ``warmup``: steps until the learning rates reach
    ``lr`` (AdamW, for the bytes' vectors and the norms) and ``matrix_lr`` (Muon, for all other matrices), from where
    they fall linearly to 0. ``seed`` determines the weights and the order of the text; ``half``: compute the
    model's products in bfloat16.
    """

    scheme: str
    seed: int = 0
    length: int = 256
    dim: int = 128
    hidden_dim: int = 352
    n_layers: int = 4
    n_heads: int = 4
    rows: int = 16
    steps: int = 1200
    warmup: int = 50
    lr: float = 2e-3
    matrix_lr: float = 0.02
    half: bool = False

    def __post_init__(self) -> None:
        checks.choice("scheme", self.scheme, SCHEMES)
        checks.integer("seed", self.seed, minimum=0)
        for name in (
            "length",
            "dim",
            "hidden_dim",
            "n_layers",
            "n_heads",
            "rows",
            "steps",
        ):
            checks.integer(name, getattr(self, name), minimum=1)
        checks.integer("warmup", self.warmup, minimum=1, maximum=self.steps)
        checks.number("lr", self.lr, above=0)
        checks.number("matrix_lr", self.matrix_lr, above=0)
        if not isinstance(self.half, bool):
            raise TypeError(f"half must be True or False, got {self.half!r}")

    @property
    def name(self) -> str:
        """The scheme and the seed."""
        return f"{self.scheme}-{self.seed}"

    @abstractmethod
    def batch(self, corpus: Corpus, step: int) -> Int[Tensor, "rows bytes"]:
        """The rows of a step, int64 (rows, length + 1): inputs and, one to the right, targets. They depend only on seed
        and step."""

    def positions(self, step: int) -> Int[Tensor, "rows bytes"] | None:
        """The positions of the bytes in a step's rows, int64 (rows, length); None means that they count from 0,
        as in a text."""
        return None

    def peak(self, name: str) -> float:
        """The peak learning rate of a parameter that AdamW trains."""
        return self.lr

    def build(self, **like: object) -> LanguageModel:
        """The untrained model. ``like``: further options of `LanguageModel`, such as ``device`` and ``dtype``."""
        names = ("dim", "hidden_dim", "n_layers", "n_heads", "seed")
        sizes = {name: getattr(self, name) for name in names}
        return LanguageModel(self.scheme, self.length, **sizes, **like)

    def rate(self, step: int) -> float:
        """The share of the learning rates at a step: up to 1 in ``warmup`` steps, then linearly down to 0 at the end.

        >>> from ropebook.lab.trials import Trial
        >>> run = Trial("none", steps=100, warmup=50)
        >>> run.rate(0), run.rate(49), run.rate(75)
        (0.02, 1.0, 0.5)
        """
        return min(
            (step + 1) / self.warmup,
            (self.steps - step) / max(1, self.steps - self.warmup),
        )


class Trainer:
    """A run in progress: ``model``, ``step`` (how many are done), ``losses`` (bits per byte at each
    step).

    ``folder``: where the checkpoint ``<name>.pt`` is kept; if there is one, the run resumes from it. ``ValueError`` if
    it belongs to another run, another text or another number of threads, which would round sums differently. ``device``
    and ``dtype`` are the model's. ``model``: one to train further instead of a new one. ``compiled``: steps use
    ``torch.compile``, and products of float32 matrices go through bfloat16 if the processor has units for it; about
    twice as fast, after a C++ compiler has run for a minute.

    On the same machine, a run that was stopped and resumed ends with exactly the same bits as one that was not: the
    checkpoint has the parameters, the optimizers' states, the step (from which the data follow), the states of all
    random generators.
    """

    def __init__(
        self,
        run: Run,
        corpus: Corpus,
        folder: Path | str,
        *,
        model: LanguageModel | None = None,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        compiled: bool = False,
    ):
        self.run, self.corpus = run, corpus
        self.compiled = compiled
        self.path = Path(folder) / f"{run.name}.pt"
        self.device = torch.device(device)
        self.model = model or run.build(device=device, dtype=dtype)
        self.rank, self.world = (
            (dist.get_rank(), dist.get_world_size())
            if dist.is_initialized()
            else (0, 1)
        )
        if run.rows % self.world:
            raise ValueError(
                f"rows must be a multiple of the {self.world} processes, got {run.rows}"
            )
        self.step = 0
        self.losses: list[float] = []
        self.seconds = 0.0
        matrices = [
            w for name, w in self.model.named_parameters() if _is_matrix(name, w)
        ]
        others: dict[float, list[nn.Parameter]] = {}
        for name, w in self.model.named_parameters():
            if not _is_matrix(name, w):
                others.setdefault(run.peak(name), []).append(w)
        groups = [{"params": some, "lr": lr} for lr, some in others.items()]
        self.optimizers = [
            torch.optim.Muon(matrices, lr=run.matrix_lr, weight_decay=0.0),
            torch.optim.AdamW(groups, betas=(0.9, 0.95), weight_decay=0.0),
        ]
        self._peaks = [[run.matrix_lr], list(others)]
        if self.path.exists():
            self._resume()
        self._parallel = (
            DistributedDataParallel(self.model) if self.world > 1 else self.model
        )
        if compiled:
            self._parallel = torch.compile(self._parallel)

    def advance(self) -> float:
        """One step; returns the loss of its batch over all processes, in bits per byte. ``ValueError`` when all are
        done."""
        with _products_in("medium" if self.compiled else "highest"):
            return self._advance()

    def _advance(self) -> float:
        start = time.perf_counter()
        run = self.run
        if self.step >= run.steps:
            raise ValueError(f"all {run.steps} steps of {run.name} are done")
        for optimizer, peaks in zip(self.optimizers, self._peaks, strict=True):
            for group, lr in zip(optimizer.param_groups, peaks, strict=True):
                group["lr"] = lr * run.rate(self.step)
            optimizer.zero_grad()
        mine = slice(self.rank, None, self.world)
        rows = run.batch(self.corpus, self.step)[mine].to(self.device)
        positions = run.positions(self.step)
        if positions is not None:
            positions = positions[mine].to(self.device)
        half = (
            torch.autocast(self.device.type, torch.bfloat16)
            if run.half
            else contextlib.nullcontext()
        )
        with half:
            logits = self._parallel(rows[:, :-1], positions)
        loss = nn.functional.cross_entropy(
            _wide(logits).flatten(0, 1), rows[:, 1:].flatten()
        )
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
        mean = loss.detach()
        if self.world > 1:
            dist.all_reduce(mean)
            mean = mean / self.world
        self.step += 1
        self.losses.append(mean.item() / math.log(2))
        self.seconds += time.perf_counter() - start
        return self.losses[-1]

    def train(self, every: int = 100) -> Iterator[float]:
        """Runs the remaining steps, yielding one loss at a time, with a checkpoint every ``every`` steps and
        at the end."""
        checks.integer("every", every, minimum=1)
        while self.step < self.run.steps:
            loss = self.advance()
            if self.step % every == 0 or self.step == self.run.steps:
                self.save()
            yield loss

    def save(self) -> None:
        """Write the checkpoint atomically: into a temporary file, which then replaces the old one.

        With several processes, the first one writes and the others wait for it.
        """
        if self.rank == 0:
            self._write()
        if self.world > 1:
            dist.barrier()

    def _write(self) -> None:
        state = {
            "run": dataclasses.asdict(self.run),
            "sha256": self.corpus.sha256,
            "threads": torch.get_num_threads(),
            "compiled": self.compiled,
            "step": self.step,
            "losses": self.losses,
            "seconds": self.seconds,
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "random": _random_states(),
        }
        with results.writing(self.path) as file:
            torch.save(state, file)

    def _resume(self) -> None:
        state = read_checkpoint(self.path)
        mine = {
            "run": dataclasses.asdict(self.run),
            "sha256": self.corpus.sha256,
            "threads": torch.get_num_threads(),
            "compiled": self.compiled,
        }
        for key, value in mine.items():
            # old checkpoints without this entry are not compiled
            found = state.get(key, False)
            if found != value:
                raise ValueError(
                    f"the checkpoint {self.path} must have {key} {value}, got {found}: "
                    "go on as it was begun, or remove it"
                )
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(
            self.optimizers, state["optimizers"], strict=True
        ):
            optimizer.load_state_dict(saved)
        self.step, self.losses = state["step"], state["losses"]
        self.seconds = state["seconds"]
        _set_random_states(state["random"])


def read_checkpoint(path: Path | str) -> dict[str, object]:
    """What `Trainer.save` wrote, loaded onto the CPU: run, sha256, threads, compiled, step, losses, seconds, model,
    optimizers, random.

    ``pickle.UnpicklingError`` for a file that holds anything else that could run code.
    """
    with torch.serialization.safe_globals(_NUMPY):
        return torch.load(path, map_location="cpu", weights_only=True)


@contextlib.contextmanager
def _products_in(precision: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _is_matrix(name: str, weight: Tensor) -> bool:
    return weight.dim() == 2 and not name.startswith(
        ("embedding", "places", "buckets", "lm_head")
    )


def _wide(logits: Tensor) -> Tensor:
    return logits if logits.dtype == torch.float64 else logits.float()


_NUMPY = [
    np.empty(0).__reduce__()[0],
    np.ndarray,
    np.dtype,
    type(np.dtype(np.uint32)),
]
"""The functions with which NumPy's random state is pickled."""


def _random_states() -> dict[str, object]:
    states = {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def _set_random_states(states: dict[str, object]) -> None:
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    if "cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(states["cuda"])
