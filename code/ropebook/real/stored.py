"""The results in results/real as arrays, for the figures on the page about the
published model.

Each file was written by ``benchmarks/real.py``. If a file is missing,
`ropebook.results.load` raises ``FileNotFoundError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, results
from ropebook.lab.tables import signed, with_interval
from ropebook.real import published, rule
from ropebook.real.bias import at
from ropebook.real.heads import HeadMap
from ropebook.real.rule import LENGTH, band_mean
from ropebook.shapes import Float

WEIGHTS = published.STORED.partition(" (")[0]
"""What captions say about the weights, "4-bit weights"."""


def losses(text: str, change: str) -> Float[Tensor, " thousands"]:
    """Return the mean loss, in nats, of each block of 1,024 tokens in a text, float64.

    >>> losses("code", "as-is").shape
    torch.Size([12])
    """
    found = torch.tensor(_stretches(text, change), dtype=torch.float64)
    return found.view(LENGTH // 1024, -1).mean(1)


def loss_in(text: str, change: str, band: tuple[int, int]) -> float:
    """Return the mean loss, in nats, over the tokens in a band of positions, as in
    `ropebook.real.rule.band_mean`.

    >>> round(loss_in("code", "as-is", (8192, 9216)), 2)
    0.81
    """
    return band_mean(_stretches(text, change), band)


def _stretches(text: str, change: str) -> list[float]:
    return results.load(f"loss-{text}-{change}")["loss"]


def checked_rows() -> dict[tuple[str, str], dict]:
    """Return those rows of the rule (`ropebook.real.rule.ROWS`) that have been stored so far, by text and change.

    Raises:
        ValueError: a row was made under another rule, or from another version of its
            text or of the model; or its contents do not match its name.
    """
    found = {}
    for text, change in rule.ROWS:
        name = rule.row(text, change)
        try:
            stored = results.load(name)
        except FileNotFoundError:
            continue
        others = [row for at, row in found.items() if at[0] == text]
        for key, expected in {
            "row": name,
            "rule": rule.digest(),
            "exploration": False,
            "file_sha256": published.FILE_SHA256,
            "text_sha256": (others or [stored])[0]["text_sha256"],
            "tokens": LENGTH,
        }.items():
            if stored.get(key) != expected:
                raise ValueError(
                    f"{key} in the result {name!r} must be {expected!r}, got {stored.get(key)!r}"
                )
        found[text, change] = stored
    return found


def numbers() -> dict[str, dict[str, list[float]]] | None:
    """Return the losses that the rule judges, by text and change. The result is None until all rows of the rule are
    stored, because the claims are judged only once.

    Raises ``ValueError`` as `checked_rows` does.
    """
    rows = checked_rows()
    if len(rows) < len(rule.ROWS):
        return None
    return {
        text.name: {
            change: rows[text.name, change]["loss"] for change in rule.CHANGES
        }
        for text in rule.HELD_OUT
    }


def verdicts() -> dict[str, tuple[rule.Found, ...]] | None:
    """Return the rule's verdict on each claim, by the claim's id. Returns None as long as `numbers` does."""
    losses = numbers()
    return losses and rule.judge(rule.CLAIMS, losses)


class Decided(NamedTuple):
    """The number of rows measured so far, the number of rows that the rule requires, and the columns of a table of
    outcomes. There are no columns until all rows are stored."""

    measured: int
    rows: int
    columns: dict[str, list[str]]


def decided(names: Mapping[str, str]) -> Decided:
    """Return the outcome on the held-out texts, as stored by ``benchmarks/real.py decide``. ``names`` maps each change
    to its name in the table. A row compares losses beyond L unless it says "within L". The differences are in nats."""
    found = results.load("decided")
    columns: dict[str, list[str]] = {}
    within = list(rule.WITHIN)
    for one in (each for of_claim in found["claims"].values() for each in of_claim):
        kinds = one["kinds"].values()
        for head, cell in {
            "compared": f"{names[one['a']]}, against {names[one['b']]}"
            + ", within L" * (list(one["band"]) == within),
            "claim": one["expected"],
            "found": one["outcome"],
            "mean": with_interval(one),
            "by kind": f"{signed(min(kinds))} to {signed(max(kinds))}",
        }.items():
            columns.setdefault(head, []).append(cell)
    return Decided(found["measured"], found["rows"], columns)


def devices(result: dict) -> str:
    """Return how many of the rows behind a result each device measured, in words, the most rows first.

    >>> devices({"devices": {"a CPU": 3, "a GPU": 20}})
    '20 rows on a GPU and 3 on a CPU'
    """
    rows = sorted(result["devices"].items(), key=lambda one: -one[1])
    counts = [
        f"{count}{' rows' * (at == 0)} on {device}"
        for at, (device, count) in enumerate(rows)
    ]
    *most, last = counts
    return " and ".join(filter(None, (", ".join(most), last)))


def caption(result: dict) -> str:
    """Describe for a caption how a result was measured, as `ropebook.results.caption` does, and name the weights.

    >>> caption(results.load("bias")).startswith("Measured with 4-bit weights on ")
    True
    """
    measured = results.caption(result)
    return measured.replace("Measured", f"Measured with {WEIGHTS}", 1)


def told(result: dict) -> str:
    """Describe for a caption how a result was measured that ``benchmarks/real.py`` gathered from several rows.

    >>> told({"devices": {"a GPU": 20}, "dates": ["2026-11-24", "2026-11-25"]})
    'Measured with 4-bit weights by python benchmarks/real.py from 2026-11-24 to 2026-11-25: 20 rows on a GPU.'
    """
    first, last = result["dates"]
    when = f"on {last}" if first == last else f"from {first} to {last}"
    return f"Measured with {WEIGHTS} by python benchmarks/real.py {when}: {devices(result)}."


def difference(a: str, b: str, band: tuple[int, int]) -> list[float]:
    """Return the mean loss with change ``a`` minus that with change ``b``, in nats, for each held-out text. The means
    are over the tokens in a band of positions.

    >>> len(difference("held-22-26", "as-is", rule.BEYOND))
    8
    """
    texts = results.load("decided")["losses"].values()
    return [
        band_mean(losses[a], band) - band_mean(losses[b], band) for losses in texts
    ]


def over_texts(change: str) -> Float[Tensor, " thousands"]:
    """Return the mean loss of each block of 1,024 tokens, in nats, averaged over the held-out texts: float64.

    >>> over_texts("held-22-26").shape
    torch.Size([12])
    """
    texts = results.load("decided")["losses"].values()
    found = torch.tensor([losses[change] for losses in texts], dtype=torch.float64)
    return found.view(len(texts), LENGTH // 1024, -1).mean((0, 2))


def heads(text: str, change: str = "") -> HeadMap:
    """Return the map of all heads, measured on short pieces of a text: float64. With a ``change``, such as "stop-0-15",
    it is the map of the changed model.

    >>> heads("code").previous.shape
    torch.Size([30, 9])
    """
    found = results.load("-".join(filter(None, ("heads", text, change))))
    numbers = {
        name: torch.tensor(found[name], dtype=torch.float64)
        for name in HeadMap.__annotations__
        if name != "edges"
    }
    return HeadMap(edges=found["edges"], **numbers)


def shares(text: str) -> Float[Tensor, "layers heads pairs"]:
    """Return each pair's share of the sum of |q_i||k_i| over the pairs of its head, measured on short pieces of a text:
    float64.

    >>> shares("code").shape
    torch.Size([30, 9, 32])
    """
    return heads(text).share()


class Concentrated(NamedTuple):
    """Counts of heads: all heads, the heads in which one pair's share exceeds a threshold, and those among them in
    which that pair belongs to a band."""

    heads: int
    found: int
    in_band: int


def concentrated(
    share: Float[Tensor, "layers heads pairs"], above: float, band: tuple[int, ...]
) -> Concentrated:
    """Count the heads in which the largest share exceeds ``above``. Also count those of them in which this share
    belongs to a pair in ``band``.

    >>> concentrated(torch.tensor([[[0.9, 0.1], [0.45, 0.55], [0.5, 0.5]]]), 0.5, (0,))
    Concentrated(heads=3, found=2, in_band=1)
    """
    largest, pair = share.flatten(0, -2).max(-1)
    many = pair[largest > checks.number("above", above, minimum=0, maximum=1)]
    return Concentrated(
        len(largest), len(many), sum(one in band for one in many.tolist())
    )


class Bias(NamedTuple):
    """The effect of distance alone on the scores of all heads, and the frequencies, as
    stored by `benchmarks/real.py`."""

    # The amplitudes for the keys of ordinary tokens, complex128.
    amplitudes: Tensor
    inv_freq: Float[Tensor, " pairs"]

    def mean(
        self,
        distances: Float[Tensor, " distances"],
        pairs: slice | list[int] = slice(None),
    ) -> Float[Tensor, " distances"]:
        """Return the mean score over all heads at each distance, float64, summed over
        some of the pairs (all of them by default)."""
        return at(self.amplitudes, self.inv_freq, distances, pairs).mean((0, 1))


def bias() -> Bias:
    """Load the effect of distance on the scores, measured on texts of 1,024 tokens.

    >>> bias().mean(torch.tensor([0.0])).shape
    torch.Size([1])
    """
    found = results.load("bias")
    parts = (
        torch.tensor(found[f"others_{part}"], dtype=torch.float64)
        for part in ("real", "imag")
    )
    return Bias(
        torch.complex(*parts), torch.tensor(found["inv_freq"], dtype=torch.float64)
    )


class Looked(NamedTuple):
    """Means over all heads for one long text, by the distance between query and key;
    float64."""

    # The edges of the bins, which are distances.
    edges: list[int]
    # The share of the weight in each bin, leaving out the first token.
    weights: Float[Tensor, " bins"]
    # The mean score in each bin. It is NaN if no key is that far away.
    scores: Float[Tensor, " bins"]


def looked(text: str, change: str, where: str) -> Looked:
    """Return where queries look. ``where`` selects the queries: "within" for those at
    the end of the trained length, "beyond" for those beyond it.

    >>> looked("code", "as-is", "within").weights.shape
    torch.Size([30])
    """
    found = results.load(f"lookback-{text}-{change}")
    part = found[checks.choice("where", where, ("within", "beyond"))]
    weights, scores = (
        torch.tensor(part[name], dtype=torch.float64).mean((0, 1))
        for name in ("weights", "scores")
    )
    empty = torch.tensor(found["edges"][:-1]) >= max(part["queries"])
    return Looked(found["edges"], weights, scores.masked_fill(empty, torch.nan))


class Recalled(NamedTuple):
    """What the model recalled in all texts after one change to its frequencies. The loss
    on the filler is in nats per token, a mean over the texts."""

    within: float
    beyond: float
    # For each group of questions: how many there are, how many were answered, and the
    # mean surprise at a code of four digits, in nats.
    asked: dict[str, int]
    answered: dict[str, int]
    nats: dict[str, float]
    # For each group, among names with two records: how many there are, and for how many
    # the model prefers the nearest.
    doubled: dict[str, int]
    nearest: dict[str, int]


GROUPS = ("within", "near", "far")
"""Groups of questions: those asked within the trained length, and those asked beyond it
about a record at most, or more than, the trained length back."""


def recalled(change: str, texts: Sequence[str] = ("story", "manual")) -> Recalled:
    """Return what the model recalled with this change, in all of these texts together.

    Raises ``KeyError`` for a change that was not tried in one of the texts.

    >>> recalled("as-is").asked
    {'within': 48, 'near': 47, 'far': 49}
    """
    stored = results.load("recall")
    groups: dict[str, list[tuple[bool, float, float | None]]] = {
        group: [] for group in GROUPS
    }
    losses = []
    for text in texts:
        questions, found = stored["questions"][text], stored["found"][text][change]
        losses.append((found["within"], found["beyond"]))
        rows = (found[key] for key in ("recalled", "nats", "prefers"))
        for block, distance, *row in zip(
            questions["block"], questions["distance"], *rows, strict=True
        ):
            far = distance > rule.WITHIN[1]
            group = GROUPS[0] if block == 0 else GROUPS[1 + far]
            groups[group].append(tuple(row))
    prefers = {
        group: [row[2] for row in rows if row[2] is not None]
        for group, rows in groups.items()
    }
    within, beyond = (sum(one) / len(losses) for one in zip(*losses, strict=True))
    return Recalled(
        within,
        beyond,
        {group: len(rows) for group, rows in groups.items()},
        {group: sum(row[0] for row in rows) for group, rows in groups.items()},
        {
            group: sum(row[1] for row in rows) / len(rows)
            for group, rows in groups.items()
        },
        {group: len(rows) for group, rows in prefers.items()},
        {group: sum(row > 0 for row in rows) for group, rows in prefers.items()},
    )
