"""What popular texts claim about models beyond their length, each judged from `results/evaluation.json` by one rule.

The rule is that of `differences`; a claim's word follows how many of its comparisons say so. The claims are those of `grid_claims`. A verdict
is about the small models that were measured, and one kind of text: "here".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ropebook.lab.differences import (
    ERRORS,
    EXPECTED,
    MARGIN,
    OUTCOMES,
    ROUNDING,
    SEEDS,
    Band,
    Bits,
    Comparison,
    Difference,
    Expectation,
    Recall,
    compare,
    difference,
    difference_of_shares,
)
from ropebook.lab.grid_claims import BEYOND, CLAIMS, STRETCHED, WITHIN, Claim

__all__ = [
    "BEYOND",
    "CLAIMS",
    "ERRORS",
    "EXPECTED",
    "MARGIN",
    "OUTCOMES",
    "ROUNDING",
    "SEEDS",
    "STRETCHED",
    "WITHIN",
    "WORDS",
    "Band",
    "Bits",
    "Claim",
    "Comparison",
    "Difference",
    "Expectation",
    "Recall",
    "Verdict",
    "compare",
    "difference",
    "difference_of_shares",
    "judge",
    "table",
    "word_of",
]


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
