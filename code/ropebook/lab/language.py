"""A generated language in which the far past is worth a known number of bits.

A text is a row of pairs, a *noun* and its *verb*, a byte each. Nouns are drawn independently, some often and some seldom: noun i
of 64 with a probability in proportion to 1/(i + 1). In every text each noun has one verb of 16, drawn afresh for each text. So a noun
that has been there tells its verb; of a new one nothing can be known. The fewer of the past bytes a reader sees, the more
nouns are new to it. What that costs follows from the text alone: with whole pairs in sight, on average no model does better than `bits`.

What the language does not have is order: a noun's verb is the same wherever it stood.
"""

from __future__ import annotations

import math

import numpy as np

from ropebook import checks

NOUNS, VERBS = 64, 16
NOUN, VERB = 192, ord("a")
"""NOUN + i and VERB + j are the bytes of noun i and verb j. No Python text of `ropebook.lab.data` has the former."""
SHARE = 1 / np.arange(1, NOUNS + 1)
SHARE /= SHARE.sum()
"""The probability of each noun."""
PAIR = 2


def text(length: int, draws: np.random.Generator) -> np.ndarray:
    """A new text, uint8 (length,), which begins with a noun.

    >>> text(4, np.random.default_rng(0)) >= NOUN
    array([ True, False,  True, False])
    """
    checks.integer("length", length, minimum=1)
    verbs = draws.integers(0, VERBS, NOUNS)
    nouns = draws.choice(NOUNS, math.ceil(length / PAIR), p=SHARE)
    pairs = np.stack((NOUN + nouns, VERB + verbs[nouns]), 1)
    return pairs.astype(np.uint8).ravel()[:length]


def bits(written: np.ndarray, context: int | None = None) -> np.ndarray:
    """What the bytes of a text cost whoever knows the language, float64 (length,): −log₂ of their probabilities.

    ``context``: how many bytes before it are seen of each byte, by default all. A noun costs −log₂ of its share, whatever was seen.
    A verb costs nothing if its noun stands, with its verb, among the bytes that are seen, else log₂ 16 = 4. The verb's own noun must be
    seen: ``context`` is 1 at least. An even one cuts a pair in two; what a verb without its noun would tell is left out.

    >>> a, b = [NOUN, VERB + 3], [NOUN + 9, VERB]
    >>> written = np.array(a + b + a, np.uint8)
    >>> bits(written)[1::2].tolist(), bits(written, 4)[1::2].tolist()
    ([4.0, 4.0, 0.0], [4.0, 4.0, 4.0])
    """
    if context is not None:
        checks.integer("context", context, minimum=1)
    nouns = written[::PAIR].astype(int) - NOUN
    if written.ndim != 1 or nouns.min(initial=0) < 0:
        raise ValueError(
            "written must be a text of this language, (length,), that begins with a noun"
        )
    found = np.empty(len(written))
    found[::PAIR] = -np.log2(SHARE[nouns])
    last = np.full(NOUNS, -(10**9))
    for at, noun in enumerate(nouns[: len(written) // PAIR]):
        # its verb is at 2·at + 1; the verb that tells it stood at 2·last + 1, the noun before that
        back = PAIR * (at - last[noun]) + 1
        known = back <= (len(written) if context is None else context)
        found[PAIR * at + 1] = 0 if known else math.log2(VERBS)
        last[noun] = at
    return found


def expected_verb_bits(context: int) -> float:
    """The mean cost of a verb of whose past ``context`` bytes are seen, if there are so many: log₂ 16 · Σ p (1 − p)ⁿ.

    n is the number of whole pairs before the verb's own noun that are seen.

    >>> round(expected_verb_bits(1), 3), round(expected_verb_bits(257), 2), round(expected_verb_bits(2049), 2)
    (4.0, 0.56, 0.01)
    """
    checks.integer("context", context, minimum=1)
    pairs = (context - 1) // PAIR
    return math.log2(VERBS) * float((SHARE * (1 - SHARE) ** pairs).sum())
