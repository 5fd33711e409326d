"""The explorer of chapter *Attention*: shuffle the words of a sentence and see what self-attention makes of it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook.attention import scaled_dot_product_attention
from ropebook.explorers import Explorer, Numbers, Switch, Text, still
from ropebook.explorers.draws import weight_matrix, word_vector
from ropebook.sinusoidal import encoding

WIDTH = 16
"""Numbers per word."""
BASE = 10_000.0
MOST_WORDS = 8
LONGEST_WORD = 12


def split_words(text: str) -> list[str]:
    """The words of ``text``, cut at blanks, tabs and line ends (about other space JavaScript and Python disagree).

    >>> split_words(" the  dog ")
    ['the', 'dog']
    """
    return [word for word in re.split(r"[ \t\r\n]+", text) if word]


def attend(words: list[str], position: bool, causal: bool) -> tuple:
    """One head of self-attention: weights (n, n) and outputs (n, 16) of n words, each in its place; float64.

    Words are the vectors of ``draws.word_vector``, plus the sinusoidal vector of their place if ``position``.
    """
    x = torch.from_numpy(np.stack([word_vector(word, WIDTH) for word in words]))
    if position:
        x = x + encoding(range(len(words)), WIDTH, BASE, dtype=torch.float64)
    q, k, v = (x @ torch.from_numpy(weight_matrix(name, WIDTH)) for name in "qkv")
    outputs, weights = scaled_dot_product_attention(
        q, k, v, is_causal=causal, return_weights=True
    )
    return weights.numpy(), outputs.numpy()


class Shuffle(Explorer):
    """Attention weights and outputs of a sentence whose words the reader reorders.

    ``words``: a sentence of 1 to 8 words. ``order``: place r shows the word typed at place ``order[r]``; a permutation
    of 0 … n − 1 (a new number of words sets it back). ``position``: add a sinusoidal vector to each word. ``causal``:
    a word sees itself and the words before it. Bad values raise ``TraitError``.

    >>> Shuffle(words="dog bites man", order=[2, 1, 0]).compute({"words": "dog bites man", "order": [2, 1, 0],
    ...     "position": False, "causal": False})["words"]
    ['man', 'bites', 'dog']
    """

    script = "shuffle.js"

    words = Text(
        "the dog bit the man",
        label="Sentence",
        note=f"1 to {MOST_WORDS} words of at most {LONGEST_WORD} characters, so that the matrix stays readable.",
    )
    order = Numbers(
        label="Order",
        note="The places of the typed sentence in their new order, each once: 4,2,3,0,1.",
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
        note="A word sees itself and the words before it, no others.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Attention weights of the words of a sentence as a matrix of shaded cells, one row for each word that "
            "attends, and beside it the output vector of each word as a strip of colours, above the strip of the same "
            "word in the sentence as typed."
        )

    @traitlets.default("order")
    def _default_order(self) -> list[int]:
        return list(range(len(split_words(self.words))))

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

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """Weights (n, n) and outputs (n, 16) in the order shown, the outputs as typed, and how much changed."""
        typed, order = split_words(dials["words"]), dials["order"]
        now = [typed[place] for place in order]
        weights_before, before = attend(typed, dials["position"], dials["causal"])
        weights, outputs = attend(now, dials["position"], dials["causal"])
        changes = np.abs(outputs - before[order]).max(axis=-1)
        moved = weights_before[np.ix_(order, order)]
        return {
            "words": now,
            "weights": weights.tolist(),
            "outputs": outputs.tolist(),
            "typedOutputs": before.tolist(),
            "changes": changes.tolist(),
            "change": float(changes.max()),
            "weightChange": float(np.abs(weights - moved).max()),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """Weights are shares of 1. An output is Σ w v with Σ w = 1; at most, its terms are as large as the largest |v|,
        which the largest |output| bounds from below; so that is what is taken."""
        largest = float(np.abs(Shuffle.compute(dials)["typedOutputs"]).max())
        return {
            "weights": 1.0,
            "outputs": largest,
            "typedOutputs": largest,
            "changes": largest,
            "change": largest,
            "weightChange": 1.0,
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The matrix, and beside it two strips per word."""
        data = self.compute(self.dials())
        words, n = data["words"], len(data["words"])
        cell, label, top, square, bar = 52, 104, 52, 15, 17
        left = label + n * cell + 44  # of the strips
        end = left + WIDTH * square + 12  # of the strips, and a gap
        strongest = np.abs(data["typedOutputs"]).max()
        bold = "font-weight:600"
        parts = [
            still.text(0, 14, "Who attends to whom", style=bold),
            still.text(left, 14, "Output now, and as typed", style=bold),
            still.text(end, top - 8, "change", fill="muted"),
        ]
        for column, word in enumerate(words):
            x, y = label + (column + 0.5) * cell, top - 8
            anchor, lean = "middle", ""
            if max(map(len, words)) > 6:
                anchor = "start"
                lean = f"transform:rotate(-30deg);transform-origin:{x:g}px {y}px"
            parts.append(still.text(x, y, word, anchor=anchor, style=lean))
        for row, word in enumerate(words):
            y = top + row * cell
            middle = y + cell / 2 + 4
            parts.append(still.text(label - 10, middle, word, anchor="end"))
            for column, weight in enumerate(data["weights"][row]):
                x = label + column * cell
                hidden = self.causal and column > row
                fill, opacity = ("grid", 0.3) if hidden else ("pos", 0.55 * weight)
                number = "–" if hidden else f"{weight:.2f}"
                parts.append(still.rect(x, y, cell - 2, cell - 2, fill, opacity))
                x += cell / 2 - 1
                parts.append(still.text(x, middle, number, anchor="middle"))
            strips = (data["outputs"][row], data["typedOutputs"][self.order[row]])
            for i, pair in enumerate(zip(*strips, strict=True)):
                for j, value in enumerate(pair):
                    x, above = left + i * square, y + 7 + j * (bar + 2)
                    fill = "pos" if value > 0 else "neg"
                    size = min(1.0, abs(value) / strongest)
                    parts.append(
                        still.rect(x, above, square - 1, bar, fill, size, 2)
                    )
            change = data["changes"][row]
            parts.append(
                still.text(end, middle, f"{change:.1e}" if change else "0")
            )
        return end + 72, top + n * cell + 4, parts
