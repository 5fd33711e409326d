"""Compare new measurements of the published model with the stored ones, for benchmarks/real.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from ropebook.real import rule
from ropebook.real.heads import pair_shares

TOLERANCE = 0.01
"""The largest difference that still counts as the same number, in nats or in shares of 1.

The table on the page has two decimals, and the rule ignores differences below 0.05 nats. Another kind of processor
changes a mean loss by much less: over the first 1,024 tokens of the text, 2.35921 nats instead of 2.35922."""

PAIRS_SHARE, WEIGHTS = "pairs", ("first", "own", "previous", "by_distance")


@dataclass(frozen=True)
class Compared:
    """A stored measurement and a new one.

    For a row of the table, ``stored`` and ``new`` are mean losses from position 9,216 on, in nats. For a map of heads,
    they are the shares of pairs 22 to 26, averaged over the heads. ``largest`` is the largest difference between any
    two numbers of the measurements: mean losses over 256 tokens, or shares. ``same_text`` says whether both read the
    same text, which may differ between versions of Python and torch.
    """

    name: str
    stored: float
    new: float
    largest: float
    same_text: bool

    @property
    def differs(self) -> bool:
        return self.same_text and self.largest > TOLERANCE

    def __str__(self) -> str:
        other = "" if self.same_text else " (on another version of the text)"
        return (
            f"{self.name}: stored {self.stored:.4f}, new {self.new:.4f}, largest difference {self.largest:.5f}{other}"
        )


def compare(name: str, stored: Mapping, new: Mapping) -> Compared:
    """Compare two results of one measurement. Raises ``ValueError`` if numbers with the same key have different shapes,
    and ``KeyError`` if a key is missing from the new result."""
    before, after = numbers_of(stored), numbers_of(new)
    for key, numbers in before.items():
        if numbers.shape != after[key].shape:
            raise ValueError(f"{key} must have the shape {tuple(numbers.shape)}, got {tuple(after[key].shape)}")
    largest = max((numbers - after[key]).abs().max().item() for key, numbers in before.items())
    same_text = stored["text_sha256"] == new["text_sha256"]
    return Compared(name, main_number(before), main_number(after), largest, same_text)


def numbers_of(result: Mapping) -> dict[str, torch.Tensor]:
    """Return the losses of a row of the table, in nats, or the shares in a map of heads."""
    if "loss" in result:
        return {"loss": torch.tensor(result["loss"], dtype=torch.float64)}
    q, k, *weights = (torch.tensor(result[key], dtype=torch.float64) for key in ("q", "k", *WEIGHTS))
    return {PAIRS_SHARE: pair_shares(q, k), **dict(zip(WEIGHTS, weights, strict=True))}


def main_number(numbers: Mapping[str, torch.Tensor]) -> float:
    if "loss" in numbers:
        return rule.band_mean(numbers["loss"].tolist(), rule.BEYOND)
    return numbers[PAIRS_SHARE][..., list(rule.BAND)].sum(-1).mean().item()


def table(every: Sequence[Compared]) -> str:
    width = max(len(one.name) for one in every)
    lines = [f"{'':{width}}    stored       new  largest difference"]
    for one in every:
        other = "" if one.same_text else "  (on another version of the text)"
        lines.append(f"{one.name:{width}}  {one.stored:8.4f}  {one.new:8.4f}  {one.largest:18.5f}{other}")
    return "\n".join(lines)


def verdict(what: str, every: Sequence[Compared], unit: str) -> str:
    """Say in one or two sentences whether these measurements were reproduced."""
    wrong = [one.name for one in every if one.differs]
    others = [one.name for one in every if not one.same_text]
    if wrong:
        return (
            f"{what} was NOT reproduced: {len(wrong)} of {len(every)} measurements differ from the stored ones by more "
            f"than {TOLERANCE} {unit}: {', '.join(wrong)}."
        )
    if others:
        return (
            f"{what} can't be checked completely, because these read another version of the text: {', '.join(others)}."
        )
    largest = max(one.largest for one in every)
    return (
        f"{what} was reproduced: no number differs from the stored one by more than {largest:.5f} {unit}, "
        f"and {TOLERANCE} was allowed."
    )


def savings(rows: Sequence[Compared]) -> str:
    """Compare what each row saves against the first one, which is the unchanged model. With another text, only these
    differences can be compared."""
    plain, *changed = rows
    found = (f"{one.name} {plain.new - one.new:.2f} (stored: {plain.stored - one.stored:.2f})" for one in changed)
    return f"Saved beyond position 9,216, in nats: {', '.join(found)}."
