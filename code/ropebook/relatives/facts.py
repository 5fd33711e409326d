"""Facts about each scheme, for the chapter's table."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Facts(NamedTuple):
    """Facts about a scheme. ``enters``: how it enters the model (it is added to tokens, added to scores, or
    multiplied into queries and keys). ``sees``: whether it uses the position or the distance. ``learned``: what is
    trained. ``beyond``: what happens beyond the trained length L. ``used_by``: models that use it. ``source``: a key
    in the bibliography."""

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
            "position",
            "a vector per position",
            "no vector",
            "BERT, GPT-2",
            "devlin2019",
        ),
        "nothing": Facts(
            "none, causal mask",
            "not at all",
            "what came before",
            "nothing",
            "the weight is spread over more keys",
            "some layers of Llama 4",
            "haviv2022",
        ),
        "transformer_xl": Facts(
            "Transformer-XL",
            "added to scores",
            "distance, content",
            "u, v and a matrix",
            "new sinusoids",
            "Transformer-XL, XLNet",
            "dai2019",
        ),
        "t5": Facts(
            "T5 buckets",
            "added to scores",
            "distance",
            "32 numbers per head",
            "the last bucket",
            "T5",
            "raffel2020",
        ),
        "alibi": Facts(
            "ALiBi",
            "added to scores",
            "distance",
            "nothing",
            "larger penalties",
            "BLOOM",
            "press2022",
        ),
        "sandwich": Facts(
            "Sandwich",
            "added to scores",
            "distance",
            "nothing",
            "larger penalties, with swings",
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
            "RoPE and none in turn",
            "multiplied",
            "distance, or what came before",
            "nothing",
            "new angles in some layers",
            "Llama 4",
            "yang2025",
        ),
        "kerple": Facts(
            "KERPLE",
            "added to scores",
            "distance",
            "p and a in each head",
            "slowly growing penalties",
            "–",
            "chi2022",
        ),
        "fire": Facts(
            "FIRE",
            "added to scores",
            "distance, query's position",
            "a small network",
            "the same range of inputs",
            "–",
            "li2024",
        ),
        "cope": Facts(
            "CoPE",
            "added to scores",
            "the content in between",
            "a vector per count",
            "the last count",
            "–",
            "golovneva2024",
        ),
    }
)
"""The facts about each scheme, by name. The schemes that the chapter explains come first, followed by those that it
only lists."""


def facts_table() -> dict[str, list[str]]:
    """Return the facts as columns of a table, by heading."""
    heads = {
        "scheme": "title",
        "what it depends on": "sees",
        "what happens beyond L": "beyond",
        "how it enters the model": "enters",
        "what is learned": "learned",
        "models that use it": "used_by",
    }
    return {
        head: [getattr(row, fact) for row in FACTS.values()]
        for head, fact in heads.items()
    }
