"""The second rule, a draft: how questions at random distances will be judged. Nothing has been judged by it.

It takes force when `DATE` is set and `digest` is printed beside it, before any context of it is scored. Until then every number
of `ropebook.lab.asking` is an exploration. What is asked here was suggested by that exploration, on other contexts.

**Contexts.** Layouts as in `ropebook.lab.asking`, drawn from `STREAM`. The text between the records is from held-out files of which the
first rule scored no window (`closed`). Seeds 0 to 4 of each scheme; where fewer are trained, the comparison is not asked.

**Scores.** Retrieval: the share of right answers. Order: right − other record, over both kinds of questions, so that a coin and a
preference for far records have 0. Nothing is left out because a model is weak within L: the claim about it then fails or stays undecided,
and its level within L is shown beside it. A record that a cut text does not hold counts 0.

**Comparisons.** A mean over seeds and contexts that are crossed (`ropebook.lab.intervals`), of the difference in the same contexts, or of a
score to a level. Margins: ±0.10 of a share, ±0.20 of an order score, which is the same number of answers. Outcomes and words as
in the first rule, with one change: a claim is the word of all its comparisons or of one; no two texts are counted together, so that no word
is a tie between them. Benjamini and Hochberg's procedure at 0.05 over all comparisons, for differences and for nulls.
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
from ropebook.lab.asking import LAYOUTS, by_context
from ropebook.lab.claims import LONGER, TITLES
from ropebook.lab.intervals import Interval
from ropebook.lab.rule import EXPECTED, FALSE, NOT_ASKED, outcome, word

FOLDER = Path(__file__).parent
DATE: str | None = None
"""Set when the rule takes force."""
SEEDS = (0, 1, 2, 3, 4)
STREAM = 20_261_125
"""What its contexts are drawn from; the exploration draws from another."""
MARGINS = {"retrieval": 0.10, "order": 0.20}
PAIRS: Mapping[str, int] = {LONGER: 8, "rope-500000": 6}
"""By model, the pair that `ropebook.lab.causal.half_turn_pair` predicts and the exploration's maps name, asked of every seed."""
HALVED = 0.5

Letters = Mapping[str, Mapping[int, Mapping[str, Sequence[str]]]]
"""By cell (`Answers.cell`) and seed, the letters of each layout."""


@dataclass(frozen=True)
class Answers:
    """The answers of a model in a layout: as it was trained, with an ``extension``, or with the frequency of one ``pair`` times
    ``factor``."""

    id: str
    layout: str
    extension: str = ""
    pair: int | None = None
    factor: float = HALVED

    def __post_init__(self) -> None:
        checks.choice("layout", self.layout, LAYOUTS)
        if self.extension and self.pair is not None:
            raise ValueError(
                f"pair must be None with an extension, got {self.pair}"
            )

    @property
    def task(self) -> str:
        return self.layout.split()[0]

    @property
    def cell(self) -> str:
        """
        >>> Answers("rope-100", "order", pair=14).cell, Answers("none", "order").cell
        ('rope-100/pair 14 times 0.5', 'none')
        """
        change = (
            "" if self.pair is None else f"pair {self.pair} times {self.factor}"
        )
        return "/".join(part for part in (self.id, self.extension, change) if part)

    def of(self, letters: Letters, seed: int) -> np.ndarray:
        """A score for each context. ``ValueError`` that names the cell if it is missing."""
        if seed not in letters.get(self.cell, {}):
            raise ValueError(
                f"letters must have the cell {self.cell!r} of seed {seed}, which is missing"
            )
        return by_context(letters[self.cell][seed][self.layout], self.task)


@dataclass(frozen=True)
class Comparison:
    """That ``a`` is higher or lower than ``b``, or the same; ``b`` may be a level."""

    a: Answers
    b: Answers | float
    expected: str

    def __post_init__(self) -> None:
        checks.choice("expected", self.expected, EXPECTED)
        if isinstance(self.b, Answers) and self.b.task != self.a.task:
            raise ValueError(
                f"b must be of the task of a, {self.a.task!r}, got {self.b.task!r}"
            )

    @property
    def is_paired(self) -> bool:
        """Whether both sides were asked in the same contexts."""
        return isinstance(self.b, Answers) and self.b.layout == self.a.layout

    def table(self, letters: Letters, seeds: Sequence[int] = SEEDS) -> Tensor:
        """a − b, (seeds, contexts), float64; of other contexts, a less b's mean over them, seed by seed."""
        rows = []
        for seed in seeds:
            a, b = self.a.of(letters, seed), self.b
            if isinstance(b, Answers):
                b = b.of(letters, seed)
                if not self.is_paired:
                    b = b.mean()
                elif len(b) != len(a):
                    # slow methods are asked in the first contexts only
                    a, b = a[: len(b)], b[: len(a)]
            rows.append(a - b)
        return torch.from_numpy(np.stack(rows))


@dataclass(frozen=True)
class Claim:
    """What is said, and the comparisons that decide it."""

    id: str
    text: str
    comparisons: tuple[Comparison, ...]


class Verdict(NamedTuple):
    """A claim, the interval and outcome of each comparison, and the word."""

    claim: Claim
    found: tuple[tuple[Interval | None, str], ...]
    word: str


STRETCHED = ("linear/8", "ntk/8", "ntk_by_parts_chosen/8", "yarn_chosen/8")
"""The methods of one table of scores, for 8 L."""


def claims() -> list[Claim]:
    """All that the rule asks."""
    found = [
        Claim(
            f"coin {id}",
            f"{id}: as it was trained, the order of records beyond L is a coin",
            (Comparison(Answers(id, "order"), 0.0, "same"),),
        )
        for id in ("rope-100", LONGER, "rope-500000")
    ]
    for id, pair in PAIRS.items():
        plain = Answers(id, "order")
        found.append(
            Claim(
                f"pair {id}",
                f"{id}: with the frequency of pair {pair} halved, more is right of order beyond L",
                (Comparison(Answers(id, "order", pair=pair), plain, "higher"),),
            )
        )
        found.append(
            Claim(
                f"pair within {id}",
                f"{id}: order depends on pair {pair}: doubled, it costs order within L",
                (
                    Comparison(
                        Answers(id, "order within", pair=pair, factor=2.0),
                        Answers(id, "order within"),
                        "lower",
                    ),
                ),
            )
        )
    for extension in (*STRETCHED, "self_extend/8"):
        title = TITLES[extension.partition("/")[0]]
        for layout, what in (
            ("retrieval", "records beyond L"),
            ("order", "order beyond L"),
        ):
            pair = Answers(LONGER, layout, extension), Answers(LONGER, layout)
            found.append(
                Claim(
                    f"{layout} {extension}",
                    f"{title} brings back {what}",
                    (Comparison(*pair, "higher"),),
                )
            )
        short = "order short"
        found.append(
            Claim(
                f"short {extension}",
                f"{title} costs order at short distances within L",
                (
                    Comparison(
                        Answers(LONGER, short, extension),
                        Answers(LONGER, short),
                        "lower",
                    ),
                ),
            )
        )
    for id in ("none", "sinusoidal", "rope-500000", "alibi"):
        found.append(
            Claim(
                f"kept {id}",
                f"{id}: as many records are found beyond L as within",
                (
                    Comparison(
                        Answers(id, "retrieval"),
                        Answers(id, "retrieval within"),
                        "same",
                    ),
                ),
            )
        )
    return found


def judge(
    claims: Iterable[Claim], letters: Letters, seeds: Sequence[int] = SEEDS
) -> list[Verdict]:
    """All claims at once, since the correction is over all of their comparisons; not asked is what lacks a cell."""
    claims = list(claims)
    looks = dict.fromkeys(c for claim in claims for c in claim.comparisons)
    tables = {
        look: look.table(letters, seeds)
        for look in looks
        if _there(look, letters, seeds)
    }
    found = {look: intervals.crossed(table) for look, table in tables.items()}
    different, null = (
        dict(zip(found, intervals.discoveries(p_values, FALSE), strict=True))
        for p_values in (
            [intervals.p_different(one) for one in found.values()],
            [
                intervals.p_equivalent(one, MARGINS[look.a.task])
                for look, one in found.items()
            ],
        )
    )
    verdicts = []
    for claim in claims:
        mine = tuple(
            (
                found[look],
                outcome(
                    look.expected, found[look].mean, different[look], null[look]
                ),
            )
            if look in found
            else (None, NOT_ASKED)
            for look in claim.comparisons
        )
        verdicts.append(Verdict(claim, mine, word([one for _, one in mine])))
    return verdicts


def _there(look: Comparison, letters: Letters, seeds: Sequence[int]) -> bool:
    sides = [side for side in (look.a, look.b) if isinstance(side, Answers)]
    return all(set(seeds) <= set(letters.get(side.cell, ())) for side in sides)


def closed(
    held_out: Mapping[str, np.ndarray], opened: Collection[str]
) -> dict[str, np.ndarray]:
    """The held-out files of which the first rule scored no window. ``ValueError`` if none is left.

    >>> sorted(closed({"a.py": None, "b.py": None}, ["a.py"]))
    ['b.py']
    """
    left = {name: text for name, text in held_out.items() if name not in opened}
    if not left:
        raise ValueError(
            "held_out must have a file that was not opened, got none left"
        )
    return left


DECIDING = (
    "rule_two",
    "rule",
    "asking",
    "causal",
    "intervals",
    "frequencies",
    "longer",
    "model",
)
"""The files of this package on which an outcome depends."""


def digest() -> str:
    """A hash of these files, to be printed with `DATE`."""
    whole = hashlib.sha256()
    for name in DECIDING:
        whole.update((FOLDER / f"{name}.py").read_bytes())
    return whole.hexdigest()
