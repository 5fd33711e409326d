"""Explorer for the *Attention* chapter. Readers shuffle the words of a sentence, and watch how self-attention
responds."""

from __future__ import annotations

import re

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Explorer, Numbers, Switch, Text

WIDTH = 16
"""The number of entries in a word's vector."""
BASE = 10_000.0
MOST_WORDS = 8
LONGEST_WORD = 12


def split_words(text: str) -> list[str]:
    """Split ``text`` into words at spaces, tabs and line breaks. (JavaScript and Python disagree about other white
    space.)

    >>> split_words(" the  dog ")
    ['the', 'dog']
    """
    return [word for word in re.split(r"[ \t\r\n]+", text) if word]


OPENING = "the dog bit the man", (0, 4, 2, 3, 1)
"""A sentence, and an order of its words that makes a different sentence."""


class Shuffle(Explorer):
    """Attention weights and outputs for a sentence whose words can be reordered.

    The default sentence is shown as "the man bit the dog" at first. Invalid values raise ``TraitError``.

    Args:
        words: a sentence of 1 to 8 words.
        order: a permutation of 0 … n − 1. Index r shows the word that was typed at index ``order[r]``. The order is
            reset when the number of words changes.
        position: whether to add a sinusoidal vector to each word.
        causal: whether each word sees only itself and the words before it.
    """

    script = "shuffle.js"
    colours = meaning(
        blue="attention weights, and outputs above zero",
        orange="below zero: outputs",
    )

    words = Text(
        OPENING[0],
        label="Sentence",
        note=f"1 to {MOST_WORDS} words of at most {LONGEST_WORD} characters, so that the matrix stays readable.",
    )
    order = Numbers(
        label="Order",
        note="The places in the typed sentence, each once, in their new order, such as 4,2,3,0,1.",
        more=True,
    )
    position = Switch(
        False,
        label="Position signal",
        note="Adds the sinusoidal vector of its place to each word.",
    )
    causal = Switch(
        False,
        label="Causal mask",
        note="A word sees only itself and the words before it.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A matrix of shaded cells for the attention weights of the words in a sentence, with a row for each "
            "word that attends. Next to it, each word has two strips of colours. The upper strip is the word's "
            "output vector now, and the lower one is its output vector in the sentence as typed."
        )

    @traitlets.default("order")
    def _default_order(self) -> list[int]:
        sentence, order = OPENING
        return list(
            order if self.words == sentence else range(len(split_words(self.words)))
        )

    @traitlets.validate("words")
    def _valid_words(self, proposal: dict) -> str:
        words = split_words(proposal["value"])
        if not 1 <= len(words) <= MOST_WORDS or max(map(len, words)) > LONGEST_WORD:
            raise traitlets.TraitError(
                f"words must be 1 to {MOST_WORDS} words of at most {LONGEST_WORD} characters, got {proposal['value']!r}"
            )
        return " ".join(words)

    @traitlets.validate("order")
    def _valid_order(self, proposal: dict) -> list[int]:
        order, last = proposal["value"], len(split_words(self.words)) - 1
        truths = any(isinstance(place, bool) for place in order)
        if truths or sorted(order) != list(range(last + 1)):
            allowed = f"each of 0 to {last} once"
            raise traitlets.TraitError(f"order must hold {allowed}, got {order!r}")
        return order

    @traitlets.observe("words")
    def _fit_order(self, _: dict) -> None:
        places = list(range(len(split_words(self.words))))
        if sorted(self.order) != places:
            self.order = places
