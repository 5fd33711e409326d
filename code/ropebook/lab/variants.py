"""Training runs for questions that the second experiment left open: more seeds, and
models with one thing changed.

Each variant changes one thing in a `Trial`: the learning rate of T5's table, the share of a head that rotates, the
positions that a model sees, or the length of its training sequences. To choose among variants, we compare them on the
development part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.efficient import RotaryEmbedding
from ropebook.lab import model
from ropebook.lab.frequencies import with_frequencies
from ropebook.lab.model import SCHEMES, LanguageModel
from ropebook.lab.rule import TEXTS
from ropebook.lab.trials import (
    EXTENDED,
    FURTHER,
    SEEDS,
    STEPS,
    Further,
    Trial,
    further,
    twice,
)
from ropebook.rope import inv_freq
from ropebook.shapes import Int

MORE_SEEDS = (3, 4)
"""Seeds in addition to those of the second experiment. With three seeds, a
difference must exceed 4.5 standard deviations between seeds to count; with five
seeds, 1.8 are enough."""
REACH = 2048
"""The range of positions with random gaps. The models that give an upper limit are
trained on sequences of this length."""
BIAS_RATES = (0.02, 0.05, 0.1, 0.2)
"""Candidates for the learning rate of T5's table. Even the smallest of them allows
an entry to move by 16, and an entry of 10 changes a weight 22,000-fold."""


@dataclass(frozen=True)
class Variant(Trial):
    """A `Trial` with one thing changed. ``variant`` is the part of the run's name
    that identifies the change.

    ``bias_lr``: the peak learning rate of T5's table, which replaces ``lr``.
    ``rotary_dim``: the number of entries in each head that rotate. ``reach``: positions are drawn from 0 … reach − 1 by
    adding a gap at a random index, while rows keep their length (Zhu et al. 2023, PoSE, with two chunks).

    >>> Variant("t5", 1, variant="bias-0.1", bias_lr=0.1).name
    't5-1-bias-0.1'
    """

    variant: str = ""
    bias_lr: float | None = None
    rotary_dim: int | None = None
    reach: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bias_lr is not None:
            checks.choice("scheme of a bias_lr", self.scheme, ("t5",))
            checks.number("bias_lr", self.bias_lr, above=0)
        if self.reach is not None:
            rotating = [name for name, one in SCHEMES.items() if one.base]
            checks.choice("scheme of a reach", self.scheme, rotating)
            checks.integer("reach", self.reach, minimum=self.length)

    @property
    def name(self) -> str:
        return f"{super().name}-{self.variant}"

    def peak(self, name: str) -> float:
        """Return the peak learning rate of a parameter. T5's table has a rate of its own."""
        own = name == "buckets" and self.bias_lr is not None
        return self.bias_lr if own else super().peak(name)

    def build(self, **like: object) -> LanguageModel:
        """Build the model, using ``rotary_dim`` if it is set."""
        return with_rotary_dim(super().build(**like), self.rotary_dim)

    def positions(self, step: int) -> Int[Tensor, "rows bytes"] | None:
        """Return the positions in each row of a training step, int64 (rows, length).

        They count up from 0, with one gap. Returns None unless ``reach`` is set.

        The index of the gap is uniformly distributed over the row, and its size over 0 … reach − length. Gaps are drawn
        from a separate random generator, so the rows contain the same bytes with and without gaps.

        >>> Variant("rope-10000", length=6, rows=2, reach=12).positions(3)
        tensor([[ 0,  1,  3,  4,  5,  6],
                [ 0,  1,  8,  9, 10, 11]])
        """
        if self.reach is None:
            return None
        draws = np.random.default_rng([self.seed, step, self.reach])
        places = np.tile(np.arange(self.length), (self.rows, 1))
        begins = draws.integers(1, self.length, (self.rows, 1))
        gaps = draws.integers(0, self.reach - self.length + 1, (self.rows, 1))
        return torch.from_numpy(places + gaps * (places >= begins))


def with_rotary_dim(whole: LanguageModel, rotary_dim: int | None) -> LanguageModel:
    """Change the model so that only ``rotary_dim`` entries of each head rotate, and return it.

    None leaves the model unchanged.

    Raises ``ValueError`` for a model that does not rotate. (This function is not in the model's own file because that
    file must not change: a rule that has already been applied depends on it.)

    >>> model = with_rotary_dim(LanguageModel("rope-10000", 8, dim=16, n_heads=2), 4)
    >>> model.layers[0].attention.rotary.rotary_dim
    4
    """
    if rotary_dim is None:
        return whole
    old = whole.layers[0].attention.rotary
    if not isinstance(old, RotaryEmbedding):
        raise ValueError(
            f"rotary_dim must be None for the scheme {whole.scheme!r}, which rotates nothing, got {rotary_dim}"
        )
    how = {"base": old.base, "layout": old.layout, "table_length": old.table_length}
    rotary = RotaryEmbedding(old.dim, rotary_dim=rotary_dim, **how)
    for layer in whole.layers:
        if isinstance(layer.attention.rotary, RotaryEmbedding):
            layer.attention.rotary = rotary
    return whole


def of_weights(weights: bytes, run: Mapping[str, object]) -> LanguageModel:
    """Load a model as `ropebook.lab.model.of_weights` does, with support for `Variant`.

    The model rotates the same share of each head as in training, and it has the base with which it was `raised`.
    """
    loaded = with_rotary_dim(model.of_weights(weights, run), run.get("rotary_dim"))
    return with_raised_base(loaded) if is_raised(run) else loaded


def with_raised_base(plain: LanguageModel) -> LanguageModel:
    """Return a model with the same weights and the base `RAISED` instead of 10⁴.

    >>> low = LanguageModel("rope-10000", 8, dim=16, n_heads=2)
    >>> with_raised_base(low).layers[0].attention.rotary.cos_sin(torch.tensor([5]))[1][:, :2]
    tensor([[-0.9589,  0.1869]])
    """
    theta = inv_freq(plain.layers[0].attention.head_dim, RAISED)
    return with_frequencies(plain, theta)


MORE = tuple(
    one
    for seed in MORE_SEEDS
    for one in (
        twice(Trial(EXTENDED, seed)),
        *(Trial(scheme, seed) for scheme in SCHEMES if scheme != "t5"),
    )
)
"""More seeds of every scheme except T5 (which is retrained with all its seeds), and
of the models that methods are applied to."""
T5_RATE = 0.02
"""The best of the `BIAS_RATES`, by `choose_rate` (tests check that it is)."""
T5_CANDIDATES = tuple(
    Variant("t5", 0, variant=f"bias-{rate}", bias_lr=rate) for rate in BIAS_RATES
)
"""One seed with each of the `BIAS_RATES`."""


def t5(rate: float) -> tuple[Variant, ...]:
    """Return the T5 variants with the chosen rate, for all seeds. Raises
    ``ValueError`` if the rate is not a candidate."""
    checks.choice("rate", rate, BIAS_RATES)
    return tuple(
        Variant("t5", seed, variant=f"bias-{rate}", bias_lr=rate)
        for seed in (*SEEDS, *MORE_SEEDS)
    )


def within_bits(development: Mapping[str, list]) -> float:
    """Return the mean bits of a training run within L on the development part.

    Python and the generated language are given equal weight.

    ``development`` is the part of the run's result with that name.

    >>> within_bits({"python": [[1.0, 9.0], [2.0, 9.0]], "language": [[3.0, 9.0]]})
    2.25
    """
    means = [
        sum(row[0] for row in development[text]) / len(development[text])
        for text in TEXTS
    ]
    return sum(means) / len(means)


def choose_rate(losses: dict[float, float]) -> float:
    """Choose the rate with the lowest mean bits within L on the development part.

    ``losses`` maps each rate to its mean bits, with equal weight given to Python and the generated language. Raises
    ``ValueError`` if a candidate is missing.

    >>> choose_rate({0.02: 2.3, 0.05: 2.2, 0.1: 2.1, 0.2: 2.4})
    0.1
    """
    if set(losses) != set(BIAS_RATES):
        raise ValueError(f"losses must be of {BIAS_RATES}, got {tuple(losses)}")
    return min(losses, key=losses.get)


def _of_extended(variant: str, **changes: object) -> tuple[Variant, ...]:
    longer = twice(Trial(EXTENDED))
    return tuple(
        Variant(
            EXTENDED, seed, **{"steps": longer.steps, **changes}, variant=variant
        )
        for seed in SEEDS
    )


CEILING = _of_extended(str(REACH), length=REACH, rows=16 * 256 // REACH)
"""Models trained on sequences of 2,048 bytes, with as many bytes per step as the
others. They show how much a longer context is worth to a model that has learned to
use it."""
GAPS = _of_extended("gaps", reach=REACH)
PARTIAL = _of_extended("half", rotary_dim=16) + _of_extended(
    "quarter", rotary_dim=8
)
"""Models in which half or a quarter of each head rotates, d = 32."""
VARIANTS = (*CEILING, *GAPS, *PARTIAL)


RAISED = 500_000.0
"""The base used when models trained with base 10⁴ are trained further."""
RAISED_STEPS = (FURTHER, 4 * FURTHER, STEPS)
"""How many steps a finished model is trained further, on sequences of `REACH` bytes.
After the longest of these runs, it should have learned to use such sequences."""


def raised_factor(dim: int) -> float:
    """Return the factor by which NTK-aware scaling changes the base from 10⁴ to
    `RAISED`: (RAISED / 10⁴)^((d − 2)/d).

    >>> round(10_000 * raised_factor(32) ** (32 / 30))
    500000
    """
    return (RAISED / SCHEMES[EXTENDED].base) ** ((dim - 2) / dim)


def raised(parent: Trial, steps: int) -> Further:
    """Return a short further training run for a finished model, with the base
    `RAISED` and sequences of `REACH` bytes.

    >>> raised(twice(Trial(EXTENDED)), 60).name
    'rope-10000-0-3200-raised_base_60-8'
    """
    return further(parent, f"raised_base_{steps}", REACH // parent.length, steps)


def every_further(parents: Sequence[Trial]) -> tuple[Further, ...]:
    """Return all runs that train these models further: `raised` and `kept`, with each of the `RAISED_STEPS`."""
    return tuple(
        of(parent, steps)
        for steps in RAISED_STEPS
        for parent in parents
        for of in (raised, kept)
    )


def read_last(parents: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return the models that are also measured while they read only the last L bytes: these models as they are, and
    after the longest further training with the base `RAISED`."""
    return (*parents, *(raised(parent, RAISED_STEPS[-1]) for parent in parents))


def is_raised(run: Mapping[str, object]) -> bool:
    """Return whether a training run, as stored with its results, is one of `raised`."""
    return str(run.get("method", "")).startswith("raised_base")


def is_further(run: Mapping[str, object]) -> bool:
    """Return whether a training run, as stored with its results, is one of `raised` or `kept`.

    >>> is_further(vars(kept(twice(Trial(EXTENDED)), 60))), is_further({"scheme": "none"})
    (True, False)
    """
    return "_base_" in str(run.get("method", ""))


def untrained(parent: Trial) -> str:
    """Return the name under which a finished model is measured with the base `RAISED` and without further training.

    >>> untrained(twice(Trial(EXTENDED)))
    'rope-10000-0-3200-raised_base_0-8'
    """
    return raised(parent, 1).name.replace("_1-", "_0-")


def last(run: Trial) -> str:
    """Return the name under which a model is measured while it reads only the last L bytes."""
    return f"{run.name}-last"


def kept(parent: Trial, steps: int) -> Further:
    """Return the same further training run as `raised`, but with the base of
    ``parent``. Only the difference between the two shows what the base does.

    >>> kept(twice(Trial(EXTENDED)), 60).name
    'rope-10000-0-3200-kept_base_60-8'
    """
    return further(parent, f"kept_base_{steps}", REACH // parent.length, steps)
