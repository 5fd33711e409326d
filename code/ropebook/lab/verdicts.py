"""What popular texts claim about models beyond their length, each judged from `results/evaluation.json` by one rule.

The rule: a difference counts if it is more than two standard errors from 0, with the same sign in both seeds. If it does not count, and
both seeds' intervals lie within `MARGIN` of 0, there is no difference; else it is undecided. A claim's word follows how many of its
comparisons say so. Differences of bits are paired: file by held-out file, the same bytes on both sides; their errors leave out what
another training seed would change. A verdict is about the small models that were measured, and one kind of text: "here".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.extrapolation import METHODS
from ropebook.lab.evaluation import BANDS, DISTANCES, FACTORS, LENGTH, Cell, paired

SEEDS = (0, 1)
"""Of the runs that are compared."""
ERRORS = 2.0
"""How many standard errors a difference must be from 0."""
ROUNDING = 1e-5
"""Results have five digits behind the point: what differs by less is the same."""
MARGIN = 0.02
"""Bits per byte: a difference that is surely smaller is none. About one per cent of the loss within L; it was set after the results were
known, so "no difference" is a description and not a test that was fixed beforehand."""
OUTCOMES = ("holds", "fails", "no difference", "undecided")
"""Of a comparison."""
EXPECTED = ("lower", "higher", "same")
"""What a claim may expect of a against b."""

Band = tuple[int, int]


# --- What is compared -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bits:
    """Bits per byte of a cell in a band of positions, a number for each held-out file.

    ``cell``: its id, "{seed}" standing for the seed, or "<run>/windowed" for the model that sees the last L bytes only. ``band``: one of
    the results' bands. ``over``: another band, whose bits are taken off, file by file. ``sampled``: of the bytes at the sampled lengths.
    """

    cell: str
    band: Band
    over: Band | None = None
    sampled: bool = False

    def of(self, results: Mapping, seed: int) -> Tensor:
        """(files,), float64; NaN for a text that does not fill the band."""
        name = self.cell.format(seed=seed)
        cell = _cell(results, name)
        if self.sampled:
            if "sampled" not in cell:
                raise ValueError(
                    f"results must have sampled bytes of the cell {name!r}"
                )
            cell = cell["sampled"]
        files = torch.tensor(
            [[math.nan if x is None else x for x in row] for row in cell["files"]],
            dtype=torch.float64,
        )
        bits = files[:, _band(results, self.band)]
        if self.over is not None:
            bits = bits - files[:, _band(results, self.over)]
        return bits

    def __str__(self) -> str:
        parts = [_short(self.cell), _range(self.band)]
        if self.over is not None:
            parts.append(f"over {_range(self.over)}")
        if self.sampled:
            parts.append("sampled")
        return ", ".join(parts)


@dataclass(frozen=True)
class Recall:
    """Retrieval of a cell: how many of the records that stood ``distance`` bytes back were given back, in texts of ``length`` bytes."""

    cell: str
    length: int
    distance: int

    def of(self, results: Mapping, seed: int) -> tuple[int, int]:
        """(right, asked)."""
        name = self.cell.format(seed=seed)
        cell = _cell(results, name)
        at = results["distances"].index(
            checks.choice("distance", self.distance, results["distances"])
        )
        share = cell["retrieval"].get(str(self.length), [None] * (at + 1))[at]
        if share is None:
            raise ValueError(
                f"results must have retrieval of the cell {name!r} at distance {self.distance} "
                f"in texts of {self.length} bytes"
            )
        asked = cell["asked"][str(self.length)][at]
        return round(share * asked), asked

    def __str__(self) -> str:
        return f"{_short(self.cell)}, retrieval at {self.distance} of {self.length}"


# --- Differences ----------------------------------------------------------------------------------------------------


class Difference(NamedTuple):
    """Mean of a − b, its standard error, and over how many: files, or records asked of the smaller side."""

    mean: float
    error: float
    count: int

    @property
    def sign(self) -> int:
        """1 or −1 if it is more than `ERRORS` standard errors from 0, else 0.

        >>> Difference(-0.3, 0.1, 20).sign, Difference(0.1, 0.1, 20).sign
        (-1, 0)
        """
        if abs(self.mean) <= ERRORS * self.error or abs(self.mean) < ROUNDING:
            return 0
        return 1 if self.mean > 0 else -1


def difference(a: Tensor, b: Tensor) -> Difference:
    """Of (files,) each, paired; files that have NaN on a side are left out. ``ValueError`` if fewer than two are left.

    >>> difference(torch.tensor([2.0, 4.0, math.nan]), torch.tensor([1.0, 1.0, 1.0]))
    Difference(mean=2.0, error=1.0, count=2)
    """
    both = ~(a.isnan() | b.isnan())
    mean, error = paired(a[both], b[both])
    return Difference(mean.item(), error.item(), int(both.sum()))


def difference_of_shares(
    a: tuple[int, int], b: tuple[int, int] | float
) -> Difference:
    """Of two shares (right, asked), or of one and a level. Draws are taken to be independent.

    Each share gets a right and a wrong answer more, or against a level two of each, so that 64 of 64 has an error too: Agresti and Caffo
    2000, Agresti and Coull 1998.

    >>> difference_of_shares((64, 64), 0.5).sign
    1
    """
    if isinstance(b, tuple):
        (p, p_asked), (q, q_asked) = (_share(x, 1) for x in (a, b))
        variance = p * (1 - p) / p_asked + q * (1 - q) / q_asked
        return Difference(p - q, math.sqrt(variance), min(a[1], b[1]))
    p, asked = _share(a, 2)
    level = checks.number("level", b, minimum=0, maximum=1)
    return Difference(p - level, math.sqrt(p * (1 - p) / asked), a[1])


def _share(counted: tuple[int, int], more: int) -> tuple[float, int]:
    asked = checks.integer("asked", counted[1], minimum=1)
    right = checks.integer("right", counted[0], minimum=0, maximum=asked)
    return (right + more) / (asked + 2 * more), asked + 2 * more


# --- Comparisons, claims, verdicts ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expectation:
    """One thing that a claim expects: that ``a`` is "lower" or "higher" than ``b``, or the "same". For retrieval, ``b`` may be a level."""

    a: Bits | Recall
    b: Bits | Recall | float
    expected: str

    def __post_init__(self) -> None:
        checks.choice("expected", self.expected, EXPECTED)
        allowed = Bits if isinstance(self.a, Bits) else (Recall, float)
        if not isinstance(self.b, allowed):
            raise TypeError(
                f"b must be of a's kind, or a level of retrieval, got {self.b!r}"
            )


class Comparison(NamedTuple):
    """What was expected and what was found: a difference for each seed."""

    expectation: Expectation
    seeds: tuple[Difference, ...]

    @property
    def sign(self) -> int:
        """Of a − b: 1 or −1 if every seed says so by the rule, else 0."""
        signs = {difference.sign for difference in self.seeds}
        return signs.pop() if len(signs) == 1 else 0

    @property
    def outcome(self) -> str:
        """One of `OUTCOMES`. What is expected to be the same holds if no seed's mean or error is above the rounding.

        Retrieval has no margin: its shares are not bits.
        """
        if self.expectation.expected == "same":
            if all(max(abs(d.mean), d.error) < ROUNDING for d in self.seeds):
                return "holds"
            if self.sign:
                return "fails"
        elif self.sign:
            wanted = -1 if self.expectation.expected == "lower" else 1
            return "holds" if self.sign == wanted else "fails"
        null = isinstance(self.expectation.a, Bits) and all(
            abs(d.mean) + ERRORS * d.error <= MARGIN for d in self.seeds
        )
        return "no difference" if null else "undecided"

    def __str__(self) -> str:
        b = self.expectation.b
        found = ", ".join(f"{d.mean:+.3f} ± {d.error:.3f}" for d in self.seeds)
        return f"{self.expectation.a} against {b}: {found}: {self.outcome}"


def compare(
    results: Mapping, expectation: Expectation, seeds: Sequence[int] = SEEDS
) -> Comparison:
    """a − b in the results, for each seed. ``ValueError`` that names what the results lack.

    A cell whose id has no "{seed}" is the same on every seed's side.
    """
    differences = []
    for seed in seeds:
        a = expectation.a.of(results, seed)
        if isinstance(a, Tensor):
            found = _paired(expectation, a, expectation.b.of(results, seed))
        else:
            b = expectation.b
            if isinstance(b, Recall):
                b = b.of(results, seed)
            found = difference_of_shares(a, b)
        differences.append(found)
    return Comparison(expectation, tuple(differences))


def _paired(expectation: Expectation, a: Tensor, b: Tensor) -> Difference:
    try:
        return difference(a, b)
    except ValueError as error:
        raise ValueError(
            f"{expectation.a} and {expectation.b} must have two files or more in common: {error}"
        ) from error


@dataclass(frozen=True)
class Claim:
    """What a text says, and all that must then be so. ``source``: a key of the book's references, or "popular"."""

    id: str
    text: str
    source: str
    expects: tuple[Expectation, ...]
    note: str = ""


class Verdict(NamedTuple):
    """A claim, what was found, and the word."""

    claim: Claim
    comparisons: tuple[Comparison, ...]
    word: str

    def count(self, outcome: str) -> int:
        """How many comparisons came out so."""
        return sum(found.outcome == outcome for found in self.comparisons)


WORDS = (
    "holds here",
    "mostly holds here",
    "mixed here",
    "mostly fails here",
    "does not hold here",
    "no difference here",
    "undecided here",
)


def word_of(outcomes: Sequence[str]) -> str:
    """Follows the counts: all comparisons hold, more than half do, more than half fail, none holds and some fail, or none of these.

    If none holds and none fails: "no difference here" if that is so of all, else "undecided here". ``outcomes``: of `OUTCOMES`.

    >>> word_of(["holds"] + 8 * ["fails"] + ["undecided"])
    'mostly fails here'
    """
    holds, fails = outcomes.count("holds"), outcomes.count("fails")
    all_so, most, mixed, against, not_so, same, undecided = WORDS
    if not holds and not fails:
        return same if set(outcomes) == {"no difference"} else undecided
    if not holds:
        return not_so
    if holds == len(outcomes):
        return all_so
    if 2 * max(holds, fails) > len(outcomes):
        return most if holds > fails else against
    return mixed


def judge(claim: Claim, results: Mapping) -> Verdict:
    """The claim's comparisons, and the word that `word_of` has for them."""
    found = tuple(compare(results, expected) for expected in claim.expects)
    return Verdict(claim, found, word_of([each.outcome for each in found]))


def table(
    results: Mapping, claims: Iterable[Claim] | None = None
) -> list[dict[str, str]]:
    """A row of text for each claim, by default all of `CLAIMS`, to be printed on a page."""
    return [
        _row(judge(claim, results))
        for claim in (CLAIMS.values() if claims is None else claims)
    ]


def _row(verdict: Verdict) -> dict[str, str]:
    means = [d.mean for found in verdict.comparisons for d in found.seeds]
    errors = [d.error for found in verdict.comparisons for d in found.seeds]
    titles = ("for", "against", "no difference", "undecided")
    counts = ", ".join(
        f"{verdict.count(outcome)} {title}"
        for outcome, title in zip(OUTCOMES, titles, strict=True)
        if verdict.count(outcome)
    )
    return {
        "id": verdict.claim.id,
        "claim": verdict.claim.text,
        "source": verdict.claim.source,
        "verdict": verdict.word,
        "comparisons": f"{counts} of {len(verdict.comparisons)}",
        "differences": f"{min(means):+.3f} to {max(means):+.3f}, errors up to {max(errors):.3f}",
        "note": verdict.claim.note,
    }


# --- Small parts ----------------------------------------------------------------------------------------------------


def _cell(results: Mapping, name: str) -> Mapping:
    run, _, last = name.rpartition("/")
    if last == "windowed":
        found = results["windowed"].get(run)
    else:
        found = next(
            (cell for cell in results["cells"] if cell["id"] == name), None
        )
    if found is None:
        raise ValueError(f"results must have the cell {name!r}, which is missing")
    return found


def _band(results: Mapping, band: Band) -> int:
    bands = [tuple(known) for known in results["bands"]]
    return bands.index(checks.choice("band", band, bands))


def _title(method: str) -> str:
    title = "RoPE as it is" if method == "none" else METHODS[method].title
    return title[0].upper() + title[1:]


def _short(cell: str) -> str:
    return cell.replace("-{seed}", "")


def _range(band: Band) -> str:
    return f"{band[0]}–{band[1]}"


# --- The claims -----------------------------------------------------------------------------------------------------

WITHIN = BANDS[0]
BEYOND = BANDS[1:]
STRETCHED = ("linear", "ntk", "ntk_by_parts", "yarn", "self_extend")
"""Methods with a factor; the others reach as far as the text."""
_ROPE = "rope-10000-{seed}"
_PLAIN = Cell(_ROPE).id
_WINDOWED = f"{_ROPE}/windowed"
_ALIBI = Cell("alibi-{seed}").id
_SINUSOIDAL = Cell("sinusoidal-0").id
_AT_ITS_LENGTH = (
    "dynamic NTK: the whole text at once, with the frequencies of its length"
)
_FAR = DISTANCES[2:4]  # the farthest within L


def _cells(method: str) -> list[tuple[str, list[Band]]]:
    """The cells of a method without a fine-tuning or a cache, each with the bands beyond L that it is made for."""
    if method not in STRETCHED:
        return [(Cell(_ROPE, method).id, list(BEYOND))]
    return [
        (
            Cell(_ROPE, method, factor).id,
            [band for band in BEYOND if band[1] <= factor * LENGTH],
        )
        for factor in FACTORS
    ]


def _against(methods: Iterable[str], other: str) -> tuple[Expectation, ...]:
    """Lower bits than the ``other`` cell in every band that a cell of the methods is made for."""
    return tuple(
        Expectation(Bits(cell, band), Bits(other, band), "lower")
        for method in methods
        for cell, bands in _cells(method)
        for band in bands
    )


def _worse_within(methods: Iterable[str]) -> tuple[Expectation, ...]:
    return tuple(
        Expectation(Bits(cell, WITHIN), Bits(_PLAIN, WITHIN), "higher")
        for method in methods
        for cell, _ in _cells(method)
    )


def _unchanged_within(*cells: str) -> tuple[Expectation, ...]:
    return tuple(
        Expectation(Bits(cell, WITHIN), Bits(_PLAIN, WITHIN), "same")
        for cell in cells
    )


def _no_worse_than_within(
    cell: str, bands: Iterable[Band]
) -> tuple[Expectation, ...]:
    return tuple(
        Expectation(Bits(cell, band), Bits(cell, WITHIN), "lower") for band in bands
    )


def _claims() -> Iterable[Claim]:
    dynamic = Cell(_ROPE, "dynamic_ntk").id
    cached = Cell(_ROPE, "dynamic_ntk", cache=True).id
    uncached = Cell(_ROPE, "dynamic_ntk", cache=False).id

    yield Claim(
        "S2.9a",
        "Interpolation, NTK-aware and dynamic NTK scaling all beat the plain model beyond L",
        "popular",
        _against(("linear", "ntk", "dynamic_ntk"), _PLAIN),
        _AT_ITS_LENGTH,
    )
    for method in (*STRETCHED, "dynamic_ntk", "log_n", "rerope"):
        yield Claim(
            f"S2.9a {method}",
            f"{_title(method)} beats the plain model beyond L",
            METHODS[method].source,
            _against((method,), _PLAIN),
            _AT_ITS_LENGTH if method == "dynamic_ntk" else "",
        )
    yield Claim(
        "S2.9b",
        "Within L, interpolation and NTK-aware scaling are worse than the plain model",
        "popular",
        _worse_within(("linear", "ntk")),
    )
    for method in (*STRETCHED, "rerope"):
        yield Claim(
            f"S2.9b {method}",
            f"{_title(method)} is worse than the plain model within L",
            METHODS[method].source,
            _worse_within((method,)),
        )
    yield Claim(
        "S2.8a",
        "Dynamic NTK changes nothing for texts up to L",
        "popular",
        _unchanged_within(uncached, cached),
    )
    yield Claim(
        "S2.8b",
        "Dynamic NTK changes nothing for the first L bytes of a longer text that is read at once",
        "popular",
        _unchanged_within(dynamic),
    )
    yield Claim(
        "S3.6a",
        "With a cache, rotated keys need no second rotation: with dynamic NTK",
        "popular",
        tuple(
            Expectation(
                Bits(cached, band, sampled=True),
                Bits(uncached, band, sampled=True),
                "same",
            )
            for band in BEYOND[:1]
        ),
        "in the band where the method works: farther out it is broken, with and without a cache; "
        "for frequencies that stay, it is a theorem",
    )
    yield Claim(
        "S3.6b",
        "With NTK-aware scaling or YaRN, bytes beyond L cost no more than those within L",
        "popular",
        tuple(
            expected
            for method in ("ntk", "yarn")
            for cell, bands in _cells(method)
            for expected in _no_worse_than_within(cell, bands[-1:])
        ),
    )
    yield Claim(
        "S3.6c",
        "With NTK-aware scaling or YaRN, a longer text helps more than the last L bytes of it",
        "popular",
        _against(("ntk", "yarn"), _WINDOWED),
    )
    for method in (
        "none",
        "linear",
        "ntk",
        "ntk_by_parts",
        "yarn",
        "self_extend",
        "dynamic_ntk",
        "log_n",
        "rerope",
    ):
        yield Claim(
            f"S3.6c {method}",
            f"{_title(method)}: a longer text helps more than the last L bytes of it",
            "popular",
            _against((method,), _WINDOWED),
            _AT_ITS_LENGTH if method == "dynamic_ntk" else "",
        )
    one_run = (
        "one run of the sinusoidal scheme, against which both of RoPE stand; of loss "
        "alone: it finds far records that RoPE does not find"
    )
    yield Claim(
        "S4.7a",
        "Beyond L, RoPE has a lower loss than sinusoidal encoding",
        "popular",
        tuple(
            Expectation(Bits(_PLAIN, band), Bits(_SINUSOIDAL, band), "lower")
            for band in BEYOND
        ),
        one_run,
    )
    yield Claim(
        "S4.7b",
        "Beyond L, RoPE's loss rises less above what it is within L than sinusoidal encoding's",
        "popular",
        tuple(
            Expectation(
                Bits(_PLAIN, band, over=WITHIN),
                Bits(_SINUSOIDAL, band, over=WITHIN),
                "lower",
            )
            for band in BEYOND
        ),
        one_run,
    )
    yield Claim(
        "ALiBi a",
        "Beyond L, ALiBi has a lower loss than RoPE as it is",
        "press2022",
        tuple(
            Expectation(Bits(_ALIBI, band), Bits(_PLAIN, band), "lower")
            for band in BEYOND
        ),
    )
    yield Claim(
        "ALiBi b",
        "With ALiBi, bytes beyond L cost no more than those within L",
        "press2022",
        _no_worse_than_within(_ALIBI, BEYOND),
    )
    yield Claim(
        "ALiBi c",
        "With ALiBi, a longer text helps more than the last L bytes of it",
        "press2022",
        tuple(
            Expectation(
                Bits(_ALIBI, band), Bits("alibi-{seed}/windowed", band), "lower"
            )
            for band in BEYOND
        ),
    )
    by_content = "a record can be found by its key: this says nothing about order"
    yield Claim(
        "S0.12a",
        "Far positions are hard to tell apart: even within L, fewer than half of the far records are found",
        "popular",
        tuple(
            Expectation(Recall(_PLAIN, LENGTH, distance), 0.5, "lower")
            for distance in _FAR
        ),
        by_content,
    )
    yield Claim(
        "S0.12b",
        "Far positions are hard to tell apart: within L, far records are found less often than near ones",
        "popular",
        tuple(
            Expectation(
                Recall(_PLAIN, LENGTH, distance),
                Recall(_PLAIN, LENGTH, DISTANCES[0]),
                "lower",
            )
            for distance in _FAR
        ),
        by_content,
    )
    yield Claim(
        "S0.12c",
        "Decay is why length fails, not unseen angles: to stretch the slow pairs alone (NTK-by-parts) leaves "
        "the loss beyond L as high or higher",
        "popular",
        tuple(
            Expectation(better.a, better.b, "higher")
            for better in _against(("ntk_by_parts",), _PLAIN)
        ),
    )


CLAIMS: Mapping[str, Claim] = MappingProxyType(
    {claim.id: claim for claim in _claims()}
)
"""All claims, by id."""
