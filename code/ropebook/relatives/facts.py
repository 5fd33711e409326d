"""What is known of each scheme: the table of the chapter."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Facts(NamedTuple):
    """``enters``: added to tokens, to scores, or multiplied into queries and keys. ``sees``: the place, or the distance.
    ``learned``: what training moves. ``beyond``: what there is beyond the trained length L. ``used_by``: models. ``source``:
    a key of the bibliography."""

    title: str
    enters: str
    sees: str
    learned: str
    beyond: str
    used_by: str
    source: str


FACTS: Mapping[str, Facts] = MappingProxyType(
    {
        "absolute": Facts(
            "learned absolute",
            "added to tokens",
            "place",
            "a vector a place",
            "no vector",
            "BERT, GPT-2",
            "devlin2019",
        ),
        "nothing": Facts(
            "none, causal mask",
            "not at all",
            "what is visible",
            "nothing",
            "more keys to share among",
            "some layers of Llama 4",
            "haviv2022",
        ),
        "transformer_xl": Facts(
            "Transformer-XL",
            "added to scores",
            "distance, content",
            "u, v, W_R",
            "new sinusoids",
            "Transformer-XL, XLNet",
            "dai2019",
        ),
        "t5": Facts(
            "T5 buckets",
            "added to scores",
            "distance",
            "32 numbers a head",
            "the last bucket",
            "T5",
            "raffel2020",
        ),
        "alibi": Facts(
            "ALiBi",
            "added to scores",
            "distance",
            "nothing",
            "larger losses",
            "BLOOM",
            "press2022",
        ),
        "sandwich": Facts(
            "Sandwich",
            "added to scores",
            "distance",
            "nothing",
            "larger losses, in swings",
            "–",
            "chi2023",
        ),
        "rope": Facts(
            "RoPE",
            "multiplied",
            "distance",
            "nothing",
            "new angles",
            "Llama, Qwen, Gemma",
            "su2021",
        ),
        "xpos": Facts(
            "xPos",
            "multiplied",
            "distance",
            "nothing",
            "new angles, weaker",
            "–",
            "sun2023",
        ),
        "in_turn": Facts(
            "RoPE, none in turn",
            "multiplied",
            "distance, or visible",
            "nothing",
            "new angles in some layers",
            "Llama 4",
            "yang2025",
        ),
        "kerple": Facts(
            "KERPLE",
            "added to scores",
            "distance",
            "p, a in each head",
            "slowly larger losses",
            "–",
            "chi2022",
        ),
        "fire": Facts(
            "FIRE",
            "added to scores",
            "distance, query's place",
            "a small network",
            "the same range of inputs",
            "–",
            "li2024",
        ),
        "cope": Facts(
            "CoPE",
            "added to scores",
            "content in between",
            "a vector a count",
            "the last count",
            "–",
            "golovneva2024",
        ),
    }
)
"""By name: first those that the chapter explains, then those that it lists."""


def facts_table() -> dict[str, list[str]]:
    """The facts as columns of a table, by their heads."""
    heads = ("scheme", "enters", "sees", "learned", "beyond L", "used by")
    return dict(
        zip(
            heads,
            map(list, zip(*(row[:6] for row in FACTS.values()), strict=True)),
            strict=True,
        )
    )


_TRAINED = {
    "learned": "learned absolute",
    "sinusoidal": "sinusoidal",
    "none": "none, causal mask",
    "t5": "T5 buckets",
    "alibi": "ALiBi",
    "rope-10000": "RoPE, base 10⁴",
    "alternate": "RoPE, none in turn",
}


def beyond_table(evaluation: dict) -> dict[str, list]:
    """What the small models of the measured experiment do beyond L, of those that are there: columns of a table.

    ``evaluation``: the result of that name. Bits per byte within L and in the last band of positions; the share of records
    that are found again, near and far.
    """
    cells = {cell["id"]: cell for cell in evaluation["cells"]}
    rows = []
    first, last = evaluation["bands"][0], evaluation["bands"][-1]
    near, far = 3, -2
    text = str(evaluation["text"])
    for name, title in _TRAINED.items():
        cell = cells.get(f"{name}-0/none")
        if cell is not None:
            found = cell["retrieval"][text]
            bits = cell["bits"]
            rows.append((title, bits[0], bits[-1], found[near], found[far]))
    heads = (
        "scheme",
        f"bits, {first[0]}–{first[1]}",
        f"bits, {last[0]}–{last[1]}",
        f"found {evaluation['distances'][near]} back",
        f"found {evaluation['distances'][far]} back",
    )
    return dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))
