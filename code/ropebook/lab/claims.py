"""The claims that the second experiment judges, and the comparisons that decide each. Part of the rule (`ropebook.lab.rule`): its date holds.

Bands and factors go together: a method with s = 2, 4, 8 is asked in the band that ends at s·L, the farthest that it is made for. A method
without a factor is asked in all three bands beyond L. Every comparison of bits is made on both texts, the Python and the generated one.
Records are asked for in texts of 8 L, so with s = 8. Where RoPE's records are compared with another scheme's, RoPE has been trained
twice as long: with the planned steps it does not find them within L. That favours it, which the claim's text says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from ropebook.lab.extensions import FACTORS, PUBLISHED_BETA
from ropebook.lab.rule import CONTROL, TEXTS, Bits, Cached, Claim, Comparison, Share
from ropebook.lab.scores import BANDS, DISTANCES, LENGTH, TEXT
from ropebook.lab.trials import EXTENDED, FURTHER, STEPS

ROPE = EXTENDED
LONGER = f"{EXTENDED}-{2 * STEPS}"
"""The models that methods are put into; ROPE are those that are compared with other schemes."""
WITHIN, BEYOND = BANDS[0], BANDS[1:]
NEAR, FAR_WITHIN = DISTANCES[0], DISTANCES[2:4]
FAR_BEYOND = DISTANCES[4:]
FAR_ORDER = DISTANCES[5:]
"""So far back that the later one of a key's two records, half as far, lies beyond L as well."""
STRETCHED = (
    "linear",
    "ntk",
    "ntk_by_parts",
    "ntk_by_parts_chosen",
    "yarn",
    "yarn_chosen",
    "self_extend",
)
LENGTHWISE = ("dynamic_ntk", "log_n", "rerope")
TITLES = {
    "": "RoPE as it is",
    "linear": "Position interpolation",
    "ntk": "NTK-aware scaling",
    "ntk_by_parts": "NTK-by-parts (published β)",
    "ntk_by_parts_chosen": "NTK-by-parts (chosen β)",
    "yarn": "YaRN (published β)",
    "yarn_chosen": "YaRN (chosen β)",
    "self_extend": "Self-Extend",
    "dynamic_ntk": "Dynamic NTK",
    "log_n": "log-n scaling",
    "rerope": "ReRoPE",
}


def cells(method: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The extensions of a method, each with the band that it is asked in."""
    if method in STRETCHED:
        yield from (
            (f"{method}/{s}", band) for s, band in zip(FACTORS, BEYOND, strict=True)
        )
    else:
        yield from ((method, band) for band in BEYOND)


def _against_plain(*methods: str) -> tuple[Comparison, ...]:
    return tuple(
        Comparison(
            Bits(LONGER, cell, text, band), Bits(LONGER, "", text, band), "lower"
        )
        for method in methods
        for cell, band in cells(method)
        for text in TEXTS
    )


def _within(expected: str, *methods: str) -> tuple[Comparison, ...]:
    return tuple(
        Comparison(
            Bits(LONGER, cell, text, WITHIN),
            Bits(LONGER, "", text, WITHIN),
            expected,
        )
        for method in methods
        for cell in dict.fromkeys(cell for cell, _ in cells(method))
        for text in TEXTS
    )


def _against_last(
    scheme: str, *methods: str, tuned: bool = False
) -> tuple[Comparison, ...]:
    return tuple(
        Comparison(
            Bits(scheme, f"{cell}/tuned" if tuned else cell, text, band),
            Bits(scheme, f"{cell}/tuned" if tuned else "", text, band, last=True),
            "lower",
        )
        for method in methods
        for cell, band in cells(method)
        for text in TEXTS
    )


def _beyond(
    scheme: str, other: str, expected: str = "lower"
) -> tuple[Comparison, ...]:
    return tuple(
        Comparison(
            Bits(scheme, "", text, band), Bits(other, "", text, band), expected
        )
        for band in BEYOND
        for text in TEXTS
    )


def _records(
    task: str, scheme: str, other: str, cell: str = "", expected: str = "higher"
) -> tuple[Comparison, ...]:
    return tuple(
        Comparison(
            Share(scheme, cell, task, TEXT, far),
            Share(other, "", task, TEXT, far),
            expected,
        )
        for far in (FAR_ORDER if task == "order" else FAR_BEYOND)
    )


def _claims() -> Iterable[Claim]:
    popular = ("linear", "ntk", "dynamic_ntk")
    yield Claim(
        "S2.9a",
        "Interpolation, NTK-aware and dynamic NTK scaling all beat the plain model beyond L",
        "popular",
        _against_plain(*popular),
    )
    for method in (*STRETCHED, *LENGTHWISE):
        yield Claim(
            f"S2.9a {method}",
            f"{TITLES[method]} beats the plain model beyond L",
            "popular",
            _against_plain(method),
        )
    yield Claim(
        "S2.9b",
        "Within L, interpolation and NTK-aware scaling are worse than the plain model",
        "popular",
        _within("higher", "linear", "ntk"),
    )
    for method in (*STRETCHED, "rerope"):
        yield Claim(
            f"S2.9b {method}",
            f"{TITLES[method]} is worse than the plain model within L",
            "popular",
            _within("higher", method),
        )
    yield Claim(
        "S2.8",
        "Dynamic NTK changes nothing for the first L bytes of a longer text that is read at once",
        "popular",
        _within("same", "dynamic_ntk"),
    )
    yield Claim(
        "S2.8 shipped",
        "Dynamic NTK as shipped, with s = 2 or 4 in its formula, beats s = 1 beyond L",
        "popular",
        tuple(
            Comparison(
                Bits(LONGER, f"dynamic_ntk_{s}", text, band),
                Bits(LONGER, "dynamic_ntk", text, band),
                "lower",
            )
            for s in (2, 4)
            for band in BEYOND
            for text in TEXTS
        ),
    )
    yield Claim(
        "S3.6a",
        "With dynamic NTK, rotated keys in a cache need no second rotation: from L to 2 L, where the method works",
        "popular",
        (
            Comparison(
                Cached(LONGER, anew=False), Cached(LONGER, anew=True), "same"
            ),
        ),
    )
    yield Claim(
        "S3.6b",
        "With NTK-aware scaling or YaRN, records far beyond L are found again: more than half of them",
        "popular",
        tuple(
            Comparison(
                Share(LONGER, f"{method}/8", "retrieval", TEXT, far), 0.5, "higher"
            )
            for method in ("ntk", "yarn", "yarn_chosen")
            for far in FAR_BEYOND
        ),
    )
    yield Claim(
        "S3.6c",
        "With NTK-aware scaling or YaRN, a longer text helps more than its last L bytes",
        "popular",
        _against_last(LONGER, "ntk", "yarn"),
    )
    for method in ("", *STRETCHED, *LENGTHWISE):
        yield Claim(
            f"S3.6c {method or 'none'}",
            f"{TITLES[method]}: a longer text helps more than its last L bytes",
            "popular",
            _against_last(LONGER, method),
        )
    yield Claim(
        "S4.7 loss",
        "Beyond L, RoPE has a lower loss than sinusoidal encoding",
        "popular",
        _beyond(ROPE, "sinusoidal"),
    )
    yield Claim(
        "S4.7 retrieval",
        "Far beyond L, RoPE, trained twice as long, finds more records than sinusoidal encoding",
        "popular",
        _records("retrieval", LONGER, "sinusoidal"),
    )
    yield Claim(
        "S4.7",
        "RoPE extrapolates better than sinusoidal encoding: in loss; and, trained twice as long, in retrieval and in order",
        "popular",
        _beyond(ROPE, "sinusoidal")
        + _records("retrieval", LONGER, "sinusoidal")
        + _records("order", LONGER, "sinusoidal"),
    )
    yield Claim(
        "ALiBi a",
        "Beyond L, ALiBi has a lower loss than RoPE as it is",
        "press2022",
        _beyond("alibi", ROPE),
    )
    yield Claim(
        "ALiBi b",
        "With ALiBi, a longer text costs no more than its last L bytes",
        "press2022",
        tuple(
            Comparison(c.a, c.b, "not higher") for c in _against_last("alibi", "")
        ),
    )
    yield Claim(
        "ALiBi c",
        "With ALiBi, a longer text helps more than its last L bytes",
        "press2022",
        _against_last("alibi", ""),
    )
    yield Claim(
        "ALiBi d",
        "ALiBi cannot find what stands far beyond L: fewer than half of the records",
        "popular",
        tuple(
            Comparison(Share("alibi", "", "retrieval", TEXT, far), 0.5, "lower")
            for far in FAR_BEYOND
        ),
    )
    yield Claim(
        "T5",
        "Beyond L, T5's buckets have a lower loss than RoPE as it is",
        "press2022",
        _beyond("t5", ROPE),
    )
    yield Claim(
        "none",
        "Without positions a model extrapolates better than with RoPE: in loss; and in retrieval, though RoPE is trained twice as long",
        "kazemnejad2023",
        _beyond("none", ROPE) + _records("retrieval", "none", LONGER),
    )
    yield Claim(
        "alternate",
        "RoPE in every other layer extrapolates better than RoPE in all: in loss; and in retrieval, though RoPE in all is trained "
        "twice as long",
        "popular",
        _beyond("alternate", ROPE) + _records("retrieval", "alternate", LONGER),
    )
    yield Claim(
        "base beyond",
        "A larger base has a lower loss beyond L, without any further training",
        "popular",
        _beyond("rope-500000", ROPE) + _beyond(ROPE, "rope-100"),
    )
    yield Claim(
        "base within",
        "A larger base lowers the quality within L",
        "popular",
        tuple(
            Comparison(
                Bits(one, "", text, WITHIN), Bits(other, "", text, WITHIN), "higher"
            )
            for one, other in (("rope-500000", ROPE), (ROPE, "rope-100"))
            for text in TEXTS
        ),
    )
    yield Claim(
        "control order",
        "Without positions, order is a guess: one of the two records, at random",
        CONTROL,
        (Comparison(Share("none", "", "order", LENGTH), 0.5, "same"),),
    )
    yield Claim(
        "S0.12a",
        "Far positions are hard to tell apart: even within L, the order of far records is a guess",
        "popular",
        tuple(
            Comparison(Share(LONGER, "", "order", LENGTH, far), 0.5, "not higher")
            for far in FAR_WITHIN
        ),
    )
    yield Claim(
        "S0.12b",
        "Far positions are hard to tell apart: within L, the order of far records is told less well than that of near ones",
        "popular",
        tuple(
            Comparison(
                Share(LONGER, "", "order", LENGTH, far),
                Share(LONGER, "", "order", LENGTH, NEAR),
                "lower",
            )
            for far in FAR_WITHIN
        ),
    )
    yield Claim(
        "S0.12c",
        "Decay is why length fails, not unseen angles: to stretch the slow pairs alone leaves the loss beyond L as high or higher",
        "popular",
        tuple(
            Comparison(c.b, c.a, "not higher")
            for c in _against_plain("ntk_by_parts_chosen")
        ),
    )
    yield Claim(
        "YaRN β",
        "At so short an L, YaRN with the published β is worse than with the one that was chosen",
        "popular",
        tuple(
            Comparison(
                Bits(LONGER, f"yarn/{s}", text, band),
                Bits(LONGER, f"yarn_chosen/{s}", text, band),
                "higher",
            )
            for s, beyond in zip(FACTORS, BEYOND, strict=True)
            for band in (WITHIN, beyond)
            for text in TEXTS
        ),
    )
    yield Claim(
        "YaRN factor",
        "YaRN's factor on the scores helps a model that is not trained further",
        "peng2024",
        tuple(
            Comparison(
                Bits(LONGER, f"yarn_chosen/{s}", text, band),
                Bits(LONGER, f"yarn_chosen_unscaled/{s}", text, band),
                "lower",
            )
            for s, band in zip(FACTORS, BEYOND, strict=True)
            for text in TEXTS
        ),
    )
    for method in ("linear", "yarn_chosen"):
        yield Claim(
            f"tuned {method}",
            f"{TITLES[method]}, trained {FURTHER} steps more, beats the model that was trained as many without a method",
            "popular",
            tuple(
                Comparison(
                    Bits(LONGER, f"{method}/{s}/tuned", text, band),
                    Bits(LONGER, f"none/{s}/tuned", text, band),
                    "lower",
                )
                for s, band in zip(FACTORS, BEYOND, strict=True)
                for text in TEXTS
            ),
        )
        yield Claim(
            f"tuned {method} last",
            f"{TITLES[method]}, trained {FURTHER} steps more: a longer text helps more than its last L bytes",
            "popular",
            _against_last(LONGER, method, tuned=True),
        )


CLAIMS: Mapping[str, Claim] = MappingProxyType(
    {claim.id: claim for claim in _claims()}
)
"""All claims, by id."""


def asked(chosen: Mapping[str, int]) -> list[Claim]:
    """The claims that make sense with the parameters that were chosen: where the published β was, it is not compared with itself."""
    same = chosen["yarn"] == PUBLISHED_BETA
    return [claim for id, claim in CLAIMS.items() if not (same and id == "YaRN β")]
