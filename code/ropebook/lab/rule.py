"""The rule by which the second experiment is judged. Written on 2026-11-22, and last changed on 2026-11-23, before it was applied.

What was changed on 2026-11-23, after a referee had read it and before any comparison of a claim was computed on the held-out part:
methods are asked of models that were trained twice as long, for after the planned steps the models meant for it did not find records
within L; a method that follows the length is asked in texts that end with the band; the reference sees nearly L bytes and not half of
them at times; a model that was trained further is compared with its own last L bytes; intervals no longer leave out seeds that seem to
agree; records are asked of models that find them within L; the control is judged by itself; a few votes make no word. One thing of the
held-out part had been seen by then: what RoPE as it is pays within and beyond L with some of its pairs at a standstill, two seeds. No
change rests on it.

**Comparisons.** Each claim of `ropebook.lab.claims` names the comparisons that decide it. A comparison is a mean difference on the
held-out part, of bits per byte or of shares of right answers, between models of one seed, on the same files, texts or contexts. A
comparison of records is *not asked* unless the models in it find the records within L, on the development part: three in four on
average over the seeds, and half of them with each (`ropebook.lab.measured.able`). A model that has not learned to find them says nothing
of how far it does.

**Intervals** are of a mean over seeds and files that are crossed (`ropebook.lab.intervals`): they contain the spread between the three
seeds as well as that between files. They are wide where the seeds disagree, and that is meant.

**Margins.** A difference is *none* if it is within ±0.02 bits per byte, about one per cent of what a byte costs, or ±0.10 of a share. A
precise null is then a finding and not a failure to find: it is tested (two one-sided tests), and if it passes, the outcome is *no
difference*, even if the mean is surely not 0. Else, if the difference from 0 passes, the comparison holds or fails by its sign. Else it is
*undecided*.

**The number of looks.** About three hundred comparisons are made, and a verdict is a count of them ("8 of 10"). What has to be kept
small is therefore the share of false ones among those that are called: Benjamini and Hochberg's procedure at 0.05, over all comparisons
of all claims at once, each pair counted once, for differences and for nulls separately. It is proved for independent tests and for some
that go together; for these it is the usual choice and not a theorem. Bonferroni's procedure would make a single false one among three
hundred unlikely, and with three seeds leave most undecided; without any correction about fifteen would be called for nothing. The
control is one comparison, judged by itself at 0.05: it asks whether the task works, and not what is so.

**The word** follows the counts, see `word`.

**Not in the rule**: what was chosen on the development part (steps, parameters of methods, margins) stays as it was chosen. A claim that
was thought of after the held-out part was opened, or a comparison that was changed, is marked as such wherever it is shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab import intervals
from ropebook.lab.intervals import Interval
from ropebook.lab.model import SCHEMES
from ropebook.lab.scores import BANDS, DISTANCES, LENGTH, TEXT
from ropebook.lab.tasks import TASKS
from ropebook.lab.trials import SEEDS

FOLDER = Path(__file__).parent
DATE = "2026-11-22"
CHANGED = "2026-11-23"
FALSE = 0.05
"""Of the outcomes that are called, the share that may be false."""
MARGIN_BITS, MARGIN_SHARE = 0.02, 0.10
TEXTS = ("python", "language")
EXPECTED = ("lower", "higher", "same", "not higher")
"""What a claim may expect of a against b."""

CONTROL = "control"
"""The source of a claim that asks whether the tasks work."""
FOLLOWING = "dynamic_ntk"
"""Extensions that begin so follow the length of the text."""
OUTCOMES = ("holds", "fails", "no difference", "undecided")
"""Of a comparison."""
NOT_ASKED = "not asked"
WORDS = (
    "holds here",
    "mostly holds here",
    "mixed here",
    "mostly fails here",
    "does not hold here",
    "no difference here",
    "undecided here",
)
"""Of a claim. "Here": said of these models and these texts."""
Numbers = Mapping[str, Mapping]
"""By cell ("rope-10000-0-3200/yarn/4"; without a method "none-0"): what `benchmarks/trials.py evaluate` stores."""


@dataclass(frozen=True)
class Bits:
    """Bits per byte of a scheme, with an extension or as it was trained, in a band of positions. ``last``: with its last L bytes only.

    With a method that follows the length of the text, beyond L: of texts that end with the band.
    """

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
        follows = self.extension.startswith(FOLLOWING) and self.band != BANDS[0]
        table = "last" if self.last else "ended" if follows else "numbers"
        rows = cell[table][self.text]
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
    """Right answers at a distance, in texts of ``length`` bytes; without a ``distance`` the mean over all."""

    scheme: str
    extension: str
    task: str
    length: int
    distance: int | None = None

    def __post_init__(self) -> None:
        checks.choice("task", self.task, TASKS)
        checks.choice("length", self.length, (LENGTH, TEXT))
        if self.distance is not None:
            checks.choice("distance", self.distance, DISTANCES)

    def of(self, numbers: Numbers, seed: int) -> list[float]:
        """1 or 0 for each context; without a distance a mean of these."""
        cell = _cell(numbers, self.scheme, seed, self.extension)
        by_distance = cell["numbers"][self.task][str(self.length)]
        asked = (
            by_distance.values()
            if self.distance is None
            else [by_distance[str(self.distance)]]
        )
        return [
            sum(letter == "1" for letter in letters) / len(letters)
            for letters in zip(*asked, strict=True)
        ]


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

    @property
    def pair(self) -> frozenset:
        """What is compared, whichever way round."""
        return frozenset((self.a, self.b))

    def asked(self, able: Collection[str]) -> bool:
        """Whether the models in it are ``able`` to answer: bits all are, records those that find them within L."""
        sides = [side for side in (self.a, self.b) if isinstance(side, Share)]
        return all(side.scheme in able for side in sides)

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
        return {one: outcomes.count(one) for one in (*OUTCOMES, NOT_ASKED)}


def judge(
    claims: Iterable[Claim], numbers: Numbers, able: Collection[str]
) -> list[Verdict]:
    """All claims at once, since the correction is over all of their comparisons.

    ``able``: schemes that find records within L, on the development part (`ropebook.lab.measured.able`); of others no records are asked.
    """
    claims = list(claims)
    control = [claim for claim in claims if claim.source == CONTROL]
    by_look = _found(
        [c for claim in claims if claim not in control for c in claim.comparisons],
        numbers,
        able,
    )
    for claim in control:
        by_look |= _found(claim.comparisons, numbers, SCHEMES)
    verdicts = []
    for claim in claims:
        mine = tuple(by_look[look] for look in claim.comparisons)
        verdicts.append(Verdict(claim, mine, word([f.outcome for f in mine])))
    return verdicts


def _found(
    comparisons: Iterable[Comparison], numbers: Numbers, able: Collection[str]
) -> dict[Comparison, Found]:
    looks = list(dict.fromkeys(comparisons))
    found = {look: intervals.crossed(look.table(numbers)) for look in looks}
    # a pair of which two things are expected is one look
    by_pair = {look.pair: look for look in looks if look.asked(able)}
    different, null = (
        dict(zip(by_pair, intervals.discoveries(p_values, FALSE), strict=True))
        for p_values in (
            [intervals.p_different(found[look]) for look in by_pair.values()],
            [
                intervals.p_equivalent(found[look], look.margin)
                for look in by_pair.values()
            ],
        )
    )
    return {
        look: Found(
            look,
            interval,
            outcome(
                look.expected, interval.mean, different[look.pair], null[look.pair]
            )
            if look.asked(able)
            else NOT_ASKED,
        )
        for look, interval in found.items()
    }


def word(outcomes: Sequence[str]) -> str:
    """What a claim's comparisons come to, those left out that were not asked.

    It *holds* if all hold, *mostly holds* if more than half do; it *does not hold* if more than half fail and none holds, else *mostly
    fails*. *No difference* if that is so of more than half and the others are undecided. If none of the three has more than half, or no
    difference has and others hold or fail, it is *mixed*; and *undecided* if half of them or more are.

    >>> word(["holds"] + 8 * ["fails"] + ["undecided"]), word(["fails"] + 8 * ["undecided"])
    ('mostly fails here', 'undecided here')
    """
    all_so, most, mixed, against, not_so, same, undecided = WORDS
    asked = [each for each in outcomes if each != NOT_ASKED]
    if not asked:
        return f"{NOT_ASKED} here"
    holds, fails, null = map(asked.count, ("holds", "fails", "no difference"))
    half = len(asked) / 2
    if holds > half:
        return all_so if holds == len(asked) else most
    if fails > half:
        return against if holds else not_so
    if null > half and not holds and not fails:
        return same
    return mixed if holds + fails + null > half else undecided


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


DECIDING = (
    *(
        "rule",
        "claims",
        "intervals",
        "scores",
        "bits",
        "means",
        "tasks",
        "language",
    ),
    *("parts", "data", "extensions", "trials", "longer", "model"),
)
"""The files of this package on which an outcome depends."""


def digest() -> str:
    """A hash of these files: results that were judged by them name it."""
    whole = hashlib.sha256()
    for name in DECIDING:
        whole.update((FOLDER / f"{name}.py").read_bytes())
    return whole.hexdigest()


def cell_name(scheme: str, seed: int, extension: str = "") -> str:
    """What `benchmarks/trials.py` calls a cell. A scheme with a number of steps is a training with so many.

    >>> cell_name("none", 2), cell_name("rope-10000-3200", 0, "yarn/4")
    ('none-2', 'rope-10000-0-3200/yarn/4')
    """
    name = f"{scheme}-{seed}"
    if scheme not in SCHEMES:
        plain, _, steps = scheme.rpartition("-")
        name = f"{plain}-{seed}-{steps}"
    return name + (f"/{extension}" if extension else "")


def _cell(numbers: Numbers, scheme: str, seed: int, extension: str) -> Mapping:
    name = cell_name(scheme, seed, extension)
    if name not in numbers:
        raise ValueError(f"numbers must have the cell {name!r}, which is missing")
    return numbers[name]
