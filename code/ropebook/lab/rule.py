"""The rule by which the second experiment is judged. Written on 2026-11-22, before any number of the held-out part was looked at.

Changed on 2026-11-23, and still nothing of the held-out part was looked at: methods are asked of models that were trained twice as long
(`ropebook.lab.trials.LONGER`), and compared with these. On the development part it had turned out that after the planned steps the
models that were meant for it did not yet find records within L. Schemes are compared after equal steps, as before.

**Comparisons.** Each claim of `ropebook.lab.claims` names the comparisons that decide it. A comparison is a mean difference on the
held-out part, of bits per byte or of shares of right answers, between models of one seed, on the same files, texts or contexts.

**Intervals** are of a mean over seeds and files that are crossed (`ropebook.lab.intervals`): they contain the spread between the three
seeds as well as that between files. They are wide where the seeds disagree, and that is meant.

**Margins.** A difference is *none* if it is within ±0.02 bits per byte, about one per cent of what a byte costs, or ±0.10 of a share. A
precise null is then a finding and not a failure to find: it is tested (two one-sided tests), and if it passes, the outcome is *no
difference*, even if the mean is surely not 0. Else, if the difference from 0 passes, the comparison holds or fails by its sign. Else it is
*undecided*.

**The number of looks.** About three hundred comparisons are made, and a verdict is a count of them ("8 of 10"). What has to be kept
small is therefore the share of false ones among those that are called: Benjamini and Hochberg's procedure at 0.05, over all comparisons
of all claims at once, each counted once, for differences and for nulls separately. It allows for comparisons that go together, as these
do. Bonferroni's procedure would make a single false one among three hundred unlikely, and with three seeds leave most undecided; without
any correction about fifteen would be called for nothing.

**The word** follows the counts: see `ropebook.lab.verdicts.word_of`.

**Not in the rule**: what was chosen on the development part (steps, parameters of methods, margins) stays as it was chosen. A claim that
was thought of after the held-out part was opened, or a comparison that was changed, is marked as such wherever it is shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab import intervals
from ropebook.lab.intervals import Interval
from ropebook.lab.model import MORE_SCHEMES
from ropebook.lab.scores import BANDS, DISTANCES, LENGTH, TEXT
from ropebook.lab.tasks import TASKS
from ropebook.lab.trials import SEEDS
from ropebook.lab.verdicts import OUTCOMES, word_of

DATE = "2026-11-22"
CHANGED = "2026-11-23"
FALSE = 0.05
"""Of the outcomes that are called, the share that may be false."""
MARGIN_BITS, MARGIN_SHARE = 0.02, 0.10
TEXTS = ("python", "language")
EXPECTED = ("lower", "higher", "same", "not higher")
"""What a claim may expect of a against b."""

Numbers = Mapping[str, Mapping]
"""By cell ("rope-10000-0-3200/yarn/4"; without a method "none-0"): what `benchmarks/trials.py evaluate` stores."""


@dataclass(frozen=True)
class Bits:
    """Bits per byte of a scheme, with an extension or as it was trained, in a band of positions. ``last``: with its last L bytes only."""

    scheme: str
    extension: str
    text: str
    band: tuple[int, int]
    last: bool = False

    def __post_init__(self) -> None:
        checks.choice("text", self.text, TEXTS)
        checks.choice("band", self.band, BANDS)

    def of(self, numbers: Numbers, seed: int) -> list[float]:
        """A number for each file or text, NaN where there is none."""
        cell = _cell(numbers, self.scheme, seed, self.extension)
        rows = cell["last" if self.last else "numbers"][self.text]
        column = [row[BANDS.index(self.band)] for row in rows]
        return [float("nan") if x is None else x for x in column]


@dataclass(frozen=True)
class Cached:
    """Bits of the sampled bytes up to 2 L with dynamic NTK: with keys as they were rotated on arrival, or all computed ``anew``."""

    scheme: str
    anew: bool

    def of(self, numbers: Numbers, seed: int) -> list[float]:
        """A number for each file."""
        cell = _cell(numbers, self.scheme, seed, "dynamic_ntk")
        return cell["sampled"]["anew" if self.anew else "cached"]


@dataclass(frozen=True)
class Share:
    """Right answers at a distance, in texts of ``length`` bytes."""

    scheme: str
    extension: str
    task: str
    length: int
    distance: int

    def __post_init__(self) -> None:
        checks.choice("task", self.task, TASKS)
        checks.choice("length", self.length, (LENGTH, TEXT))
        checks.choice("distance", self.distance, DISTANCES)

    def of(self, numbers: Numbers, seed: int) -> list[float]:
        """1 or 0 for each context."""
        cell = _cell(numbers, self.scheme, seed, self.extension)
        letters = cell["numbers"][self.task][str(self.length)][str(self.distance)]
        return [float(letter == "1") for letter in letters]


@dataclass(frozen=True)
class Comparison:
    """That ``a`` is lower or higher than ``b``, the same, or not higher; of a share, ``b`` may be a level."""

    a: Bits | Cached | Share
    b: Bits | Cached | Share | float
    expected: str

    def __post_init__(self) -> None:
        checks.choice("expected", self.expected, EXPECTED)
        if not isinstance(self.b, type(self.a)) and not (
            isinstance(self.a, Share) and isinstance(self.b, float)
        ):
            raise TypeError(
                f"b must be of a's kind, or a level of a share, got {self.b!r}"
            )

    @property
    def margin(self) -> float:
        """Within which a difference is none."""
        return MARGIN_SHARE if isinstance(self.a, Share) else MARGIN_BITS

    def table(self, numbers: Numbers, seeds: Sequence[int] = SEEDS) -> Tensor:
        """a − b, (seeds, files or contexts), float64. ``ValueError`` that names a cell that is missing."""
        rows = []
        for seed in seeds:
            a = np.array(self.a.of(numbers, seed))
            b = self.b if isinstance(self.b, float) else self.b.of(numbers, seed)
            rows.append(a - np.array(b))
        return torch.from_numpy(np.stack(rows))


@dataclass(frozen=True)
class Claim:
    """What is said, by whom (a key of the book's references, or "popular"), and the comparisons that decide it."""

    id: str
    text: str
    source: str
    comparisons: tuple[Comparison, ...]


class Found(NamedTuple):
    """A comparison, its interval at 95 % without any correction, and its outcome by the rule."""

    comparison: Comparison
    interval: Interval
    outcome: str


class Verdict(NamedTuple):
    """A claim, what was found, and the word."""

    claim: Claim
    found: tuple[Found, ...]
    word: str

    @property
    def counts(self) -> dict[str, int]:
        """How many comparisons came out so."""
        outcomes = [each.outcome for each in self.found]
        return {outcome: outcomes.count(outcome) for outcome in OUTCOMES}


def judge(claims: Iterable[Claim], numbers: Numbers) -> list[Verdict]:
    """All claims at once, since the correction is over all of their comparisons."""
    claims = list(claims)
    looks = list(dict.fromkeys(c for claim in claims for c in claim.comparisons))
    found = [intervals.crossed(look.table(numbers)) for look in looks]
    different = intervals.discoveries(
        [intervals.p_different(each) for each in found], FALSE
    )
    null = intervals.discoveries(
        [
            intervals.p_equivalent(each, look.margin)
            for each, look in zip(found, looks, strict=True)
        ],
        FALSE,
    )
    by_look = {
        look: Found(look, interval, outcome(look.expected, interval.mean, *passed))
        for look, interval, *passed in zip(
            looks, found, different, null, strict=True
        )
    }
    verdicts = []
    for claim in claims:
        mine = tuple(by_look[look] for look in claim.comparisons)
        verdicts.append(Verdict(claim, mine, word_of([f.outcome for f in mine])))
    return verdicts


def outcome(expected: str, mean: float, different: bool, null: bool) -> str:
    """Of a comparison, by what passed.

    >>> outcome("lower", -0.5, True, False), outcome("lower", -0.01, True, True)
    ('holds', 'no difference')
    """
    checks.choice("expected", expected, EXPECTED)
    if null:
        return "holds" if expected in ("same", "not higher") else "no difference"
    if not different:
        return "undecided"
    if expected == "same":
        return "fails"
    return (
        "holds" if (mean < 0) == (expected in ("lower", "not higher")) else "fails"
    )


def digest() -> str:
    """A hash of the rule and the claims, as they stand in their files: results that were judged by them name it."""
    from ropebook.lab import claims

    whole = hashlib.sha256()
    for path in (__file__, claims.__file__):
        whole.update(Path(path).read_bytes())
    return whole.hexdigest()


def cell_name(scheme: str, seed: int, extension: str = "") -> str:
    """What `benchmarks/trials.py` calls a cell. A scheme with a number of steps is a training with so many.

    >>> cell_name("none", 2), cell_name("rope-10000-3200", 0, "yarn/4")
    ('none-2', 'rope-10000-0-3200/yarn/4')
    """
    name = f"{scheme}-{seed}"
    if scheme not in MORE_SCHEMES:
        plain, _, steps = scheme.rpartition("-")
        name = f"{plain}-{seed}-{steps}"
    return name + (f"/{extension}" if extension else "")


def _cell(numbers: Numbers, scheme: str, seed: int, extension: str) -> Mapping:
    name = cell_name(scheme, seed, extension)
    if name not in numbers:
        raise ValueError(f"numbers must have the cell {name!r}, which is missing")
    return numbers[name]
