"""What popular texts claim about models beyond their length, as comparisons of cells of the grid (`ropebook.lab.evaluation`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ropebook.extrapolation import METHODS
from ropebook.lab.differences import Band, Bits, Expectation, Recall
from ropebook.lab.evaluation import BANDS, DISTANCES, FACTORS, LENGTH, Cell


@dataclass(frozen=True)
class Claim:
    """What a text says, and all that must then be so. ``source``: a key of the book's references, or "popular"."""

    id: str
    text: str
    source: str
    expects: tuple[Expectation, ...]
    note: str = ""


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


def _title(method: str) -> str:
    title = "RoPE as it is" if method == "none" else METHODS[method].title
    return title[0].upper() + title[1:]


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
