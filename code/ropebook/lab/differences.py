"""Two numbers of `results/evaluation.json` compared, seed by seed, by one rule.

The rule: a difference counts if it is more than two standard errors from 0, with the same sign in both seeds. If it does not count, and
both seeds' intervals lie within `MARGIN` of 0, there is no difference; else it is undecided. Differences of bits are paired: file by
held-out file, the same bytes on both sides; their errors leave out what another training seed would change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.lab.means import paired
from ropebook.shapes import Float

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

    def of(self, results: Mapping, seed: int) -> Float[Tensor, " files"]:
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


def difference(
    a: Float[Tensor, " files"], b: Float[Tensor, " files"]
) -> Difference:
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


# --- Comparisons ----------------------------------------------------------------------------------------------------


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


def _short(cell: str) -> str:
    return cell.replace("-{seed}", "")


def _range(band: Band) -> str:
    return f"{band[0]}–{band[1]}"
