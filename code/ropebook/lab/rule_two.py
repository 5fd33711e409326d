"""The second rule: how questions at random distances, and losses on texts that no model
has been scored on, are judged with five seeds.

It was drafted on 2026-11-24 and made final on `DATE`, before the additional seeds were
trained and before any model was asked or scored on its contexts and texts. `digest`
covers all the files on which an outcome depends; results that were judged by this rule
name it. The draft's claims come from an exploration (`ropebook.lab.asking`) on other
contexts.

**Contexts.** The layouts are those of `ropebook.lab.asking` with `MORE` times as many
contexts, drawn from `STREAM`. The text between the records comes from held-out files of
which the first rule scored no window (`closed`), and so do the texts whose loss is
measured. New texts of the generated language are drawn from `STREAM` as well.

**Seeds** 0 to 4 of each scheme. If one is missing, the comparison is not asked. Seeds 0
to 2 were trained before this rule was written and seeds 3 and 4 were added because too
much was undecided, so every result is also reported for the new seeds alone. The first
seeds were trained on a CPU; most of the new ones on a GPU, with the same settings.

**Scores.** Retrieval: the share of right answers. Order: right − other record, over both
kinds of questions, so that a coin and a preference for far records score 0. Nothing is
left out because a model is weak within L: the claim about it then fails or stays
undecided, and its level within L is shown beside it. A record that a cut text doesn't
hold counts 0. Loss: bits per byte within L, or from L to 8 L.

**The gate for the generated language.** A comparison of losses on it is asked only if
both models learned it: in each seed, the loss within L must be at least `MARGINS` below
the lowest loss of any seed without positions.

**Comparisons.** A comparison is a mean over seeds and contexts (or texts) that are
crossed (`ropebook.lab.intervals`), of the difference in the same contexts, or of a score
and a level. Margins: ±0.10 of a share, ±0.20 of an order score, which is the same number
of answers, and the first rule's margin for bits. Outcomes and words are those of the
first rule, with one change: each text has a claim of its own, so no word is a tie
between two texts. Benjamini and Hochberg's procedure at 0.05 is applied to all
comparisons together, once for differences and once for nulls.

**Changed from the draft**, all before anything was measured: more contexts, because the
GPU had time for them; dynamic NTK; T5 with the learning rate of its table that the
development part chooses; RoPE against sinusoidal positions (S4.7); and the losses, for
which the draft left the first rule's three seeds as they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab import asking, intervals, language
from ropebook.lab.asking import by_context
from ropebook.lab.claims import LONGER, TITLES
from ropebook.lab.intervals import Interval
from ropebook.lab.rule import (
    EXPECTED,
    FALSE,
    MARGIN_BITS,
    NOT_ASKED,
    outcome,
    word,
)
from ropebook.lab.scores import LENGTH, TEXT, windows
from ropebook.shapes import Int

FOLDER = Path(__file__).parent
DATE = "2026-11-26"
"""The date on which the rule was made final. Since then this file must not change."""
SEEDS = (0, 1, 2, 3, 4)
NEW = (3, 4)
"""The seeds that were added."""
STREAM = 20_261_126
"""What its contexts are drawn from. The exploration draws from another stream."""
MORE = 4
"""How many times as many contexts there are as in the exploration."""
LAYOUTS = {
    name: replace(layout, contexts=MORE * layout.contexts)
    for name, layout in asking.LAYOUTS.items()
}
GENERATED = 48
"""The number of texts of the generated language."""
BANDS = {"within": (0, LENGTH), "beyond": (LENGTH, TEXT)}
"""The bands of positions whose loss is compared."""
MARGINS = {
    "retrieval": 0.10,
    "order": 0.20,
    "python": MARGIN_BITS,
    "language": MARGIN_BITS,
}
PAIRS: Mapping[str, int] = {LONGER: 8, "rope-500000": 6}
"""By model, the pair that `ropebook.lab.causal.half_turn_pair` predicts and the
exploration's maps name; every seed is asked about it."""
HALVED = 0.5
LAST = "last"
"""In place of an extension: the plain model, which sees the last L bytes only."""

Told = Mapping[str, Mapping[int, Mapping[str, Sequence]]]
"""By cell (`Answers.cell`) and seed: the letters of each layout, and the losses of each
text by band ("python beyond")."""


@dataclass(frozen=True)
class Answers:
    """The answers of a model in a layout: as it was trained, with an ``extension``, or
    with the frequency of one ``pair`` times ``factor``."""

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

    def of(self, told: Told, seed: int) -> np.ndarray:
        """Return a score for each context. Raises ``ValueError`` that names the cell if
        it is missing."""
        return by_context(_of(told, self.cell, seed)[self.layout], self.task)


@dataclass(frozen=True)
class Bits:
    """The loss of a model on a text, "python" or "language", in one of the `BANDS`: as
    it was trained, with an ``extension``, or seeing the `LAST` L bytes only."""

    id: str
    task: str
    band: str
    extension: str = ""

    def __post_init__(self) -> None:
        checks.choice("task", self.task, asking.TEXTS)
        checks.choice("band", self.band, BANDS)

    @property
    def layout(self) -> str:
        """The key of its losses in `Told`."""
        return f"{self.task} {self.band}"

    @property
    def cell(self) -> str:
        """
        >>> Bits("none", "python", "beyond", LAST).cell
        'none/last'
        """
        return "/".join(part for part in (self.id, self.extension) if part)

    def of(self, told: Told, seed: int) -> np.ndarray:
        """Return the loss of each text. Raises ``ValueError`` as `Answers.of` does."""
        return np.array(_of(told, self.cell, seed)[self.layout])


Side = Answers | Bits


def _of(told: Told, cell: str, seed: int) -> Mapping[str, Sequence]:
    if seed not in told.get(cell, {}):
        raise ValueError(
            f"told must have the cell {cell!r} of seed {seed}, which is missing"
        )
    return told[cell][seed]


@dataclass(frozen=True)
class Comparison:
    """The statement that ``a`` is higher or lower than ``b``, or the same; ``b`` may be a
    level."""

    a: Side
    b: Side | float
    expected: str

    def __post_init__(self) -> None:
        checks.choice("expected", self.expected, EXPECTED)
        if not isinstance(self.b, float) and self.b.task != self.a.task:
            raise ValueError(
                f"b must be of the task of a, {self.a.task!r}, got {self.b.task!r}"
            )

    @property
    def is_paired(self) -> bool:
        """Whether both sides were measured in the same contexts."""
        return not isinstance(self.b, float) and self.b.layout == self.a.layout

    @property
    def sides(self) -> list[Side]:
        """The sides that are measured, without a level."""
        return [side for side in (self.a, self.b) if not isinstance(side, float)]

    def table(self, told: Told, seeds: Sequence[int] = SEEDS) -> Tensor:
        """Return a − b, (seeds, contexts), float64. If the contexts differ, b's mean over
        its own contexts is subtracted, seed by seed."""
        rows = []
        for seed in seeds:
            a, b = self.a.of(told, seed), self.b
            if not isinstance(b, float):
                b = b.of(told, seed)
                b = b if self.is_paired else b.mean()
            rows.append(a - b)
        return torch.from_numpy(np.stack(rows))


@dataclass(frozen=True)
class Claim:
    """A statement, and the comparisons that decide it. ``source`` is the statement's
    number among the claims of the popular texts, if it is one of those."""

    id: str
    text: str
    comparisons: tuple[Comparison, ...]
    source: str = ""


class Verdict(NamedTuple):
    """A claim, the interval and outcome of each comparison, and the word."""

    claim: Claim
    found: tuple[tuple[Interval | None, str], ...]
    word: str


METHODS = (
    "linear/8",
    "ntk/8",
    "ntk_by_parts_chosen/8",
    "yarn_chosen/8",
    "self_extend/8",
    "dynamic_ntk",
)
"""The methods, for 8 L; dynamic NTK follows the length."""


def claims() -> list[Claim]:
    """Everything that the rule asks."""
    return [
        *_of_order(),
        *(claim for extension in METHODS for claim in _of_method(extension)),
        *_of_schemes(),
    ]


def _of_order() -> list[Claim]:
    found = [
        Claim(
            f"coin {id}",
            f"{id}: as it was trained, the order of records beyond L is a coin",
            (Comparison(Answers(id, "order"), 0.0, "same"),),
        )
        for id in ("rope-100", LONGER, "rope-500000")
    ]
    for id, pair in PAIRS.items():
        plain, within = Answers(id, "order"), Answers(id, "order within")
        found += [
            Claim(
                f"pair {id}",
                f"{id}: with the frequency of pair {pair} halved, more is right of order beyond L",
                (Comparison(replace(plain, pair=pair), plain, "higher"),),
            ),
            Claim(
                f"pair within {id}",
                f"{id}: order depends on pair {pair}: doubled, it costs order within L",
                (
                    Comparison(
                        replace(within, pair=pair, factor=2.0), within, "lower"
                    ),
                ),
            ),
        ]
    return found


def _of_method(extension: str) -> list[Claim]:
    title = TITLES[extension.partition("/")[0]]

    def both(kind: type, *where: str) -> tuple[Side, Side]:
        return kind(LONGER, *where, extension), kind(LONGER, *where)

    found = [
        Claim(
            f"{layout} {extension}",
            f"{title} {what}",
            (Comparison(*both(Answers, layout), expected),),
        )
        for layout, what, expected in (
            ("retrieval", "brings back records beyond L", "higher"),
            ("order", "brings back order beyond L", "higher"),
            ("order short", "costs order at short distances within L", "lower"),
        )
    ]
    for text in asking.TEXTS:
        cost = "same" if extension == "dynamic_ntk" else "higher"
        longer, last = (
            both(Bits, text, "beyond")[0],
            Bits(LONGER, text, "beyond", LAST),
        )
        found += [
            Claim(
                f"beats plain {extension} {text}",
                f"{title}: a lower loss beyond L than without a method, {text}",
                (Comparison(*both(Bits, text, "beyond"), "lower"),),
                "S2.9",
            ),
            Claim(
                f"cost {extension} {text}",
                f"{title}: {'the same' if cost == 'same' else 'a higher'} loss within L, {text}",
                (Comparison(*both(Bits, text, "within"), cost),),
                "S2.9",
            ),
            Claim(
                f"worth {extension} {text}",
                f"{title}: a lower loss beyond L than of whoever keeps the last L bytes, {text}",
                (Comparison(longer, last, "lower"),),
                "S3.6",
            ),
        ]
    return found


def _of_schemes() -> list[Claim]:
    found = [
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
        for id in ("none", "sinusoidal", "rope-500000", "alibi", "t5")
    ]
    found += [
        Claim(
            f"RoPE extrapolates better {text}",
            f"RoPE has a lower loss beyond L than sinusoidal positions, {text}",
            (
                Comparison(
                    Bits("rope-10000", text, "beyond"),
                    Bits("sinusoidal", text, "beyond"),
                    "lower",
                ),
            ),
            "S4.7",
        )
        for text in asking.TEXTS
    ]
    found.append(
        Claim(
            "RoPE extrapolates better retrieval",
            "RoPE finds more records beyond L than sinusoidal positions",
            (
                Comparison(
                    Answers("rope-10000", "retrieval"),
                    Answers("sinusoidal", "retrieval"),
                    "higher",
                ),
            ),
            "S4.7",
        )
    )
    return found


def cells() -> dict[str, list[Side]]:
    """Return what has to be measured, by cell. The `gate` needs the losses of the models
    as they were trained."""
    found: dict[str, list[Side]] = {}
    asked = [
        side for claim in claims() for c in claim.comparisons for side in c.sides
    ]
    ids = dict.fromkeys(side.id for side in asked if isinstance(side, Bits))
    gated = [Bits(id, "language", "within") for id in ("none", *ids)]
    for side in dict.fromkeys([*asked, *gated]):
        found.setdefault(side.cell, []).append(side)
    return found


def gate(told: Told, seeds: Sequence[int] = SEEDS) -> set[str]:
    """Return the models that learned the generated language, by the loss within L of the
    models as they were trained. Models that are missing did not."""

    def means(id: str) -> list[float]:
        side = Bits(id, "language", "within")
        key = side.layout
        there = [told.get(id, {}).get(seed, {}).get(key) for seed in seeds]
        return [float(np.mean(one)) for one in there] if all(there) else []

    floor = min(means("none"), default=-np.inf) - MARGINS["language"]
    ids = {cell.partition("/")[0] for cell in told}
    return {id for id in ids if (found := means(id)) and max(found) <= floor}


def judge(
    claims: Iterable[Claim], told: Told, seeds: Sequence[int] = SEEDS
) -> list[Verdict]:
    """Judge all claims at once, because the correction covers all of their comparisons. A
    comparison is not asked if a cell is missing, or if the `gate` is closed."""
    claims = list(claims)
    learned = gate(told, seeds)
    looks = dict.fromkeys(c for claim in claims for c in claim.comparisons)
    tables = {
        look: look.table(told, seeds)
        for look in looks
        if _there(look, told, seeds) and _open(look, learned)
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


def _there(look: Comparison, told: Told, seeds: Sequence[int]) -> bool:
    return all(
        side.layout in told.get(side.cell, {}).get(seed, ())
        for side in look.sides
        for seed in seeds
    )


def _open(look: Comparison, learned: Collection[str]) -> bool:
    return all(
        side.id in learned
        for side in look.sides
        if isinstance(side, Bits) and side.task == "language"
    )


def texts(
    files: Mapping[str, np.ndarray], per_folder: int
) -> dict[str, Int[Tensor, "texts bytes"]]:
    """Return the texts whose loss is measured, int64 (texts, `TEXT` + 1): windows of the
    files, at most ``per_folder`` of a folder, and `GENERATED` ones."""
    draws = np.random.default_rng([STREAM, TEXT])
    generated = [language.text(TEXT + 1, draws) for _ in range(GENERATED)]
    return {
        "python": windows(files, TEXT, per_folder)[1],
        "language": torch.from_numpy(np.stack(generated).astype(np.int64)),
    }


def closed(
    held_out: Mapping[str, np.ndarray], opened: Collection[str]
) -> dict[str, np.ndarray]:
    """Return the held-out files of which the first rule scored no window. Raises
    ``ValueError`` if none is left.

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
    "language",
    "scores",
    "bits",
)
"""The files of this folder on which an outcome depends."""


def digest() -> str:
    """Return a hash of these files. Results that were judged by this rule name it."""
    whole = hashlib.sha256()
    for name in DECIDING:
        whole.update((FOLDER / f"{name}.py").read_bytes())
    return whole.hexdigest()
