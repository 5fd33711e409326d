"""Exercises that are worked out by hand. Each has a right answer, known mistakes, and feedback on each of them.

These exercises are defined only here. `check` marks answers with this table, and the site's pages receive it as data.
"""

from __future__ import annotations

import math
from math import cos, pi, sin

from ropebook.exercises.answers import Field, Numbers
from ropebook.exercises.marking import HALF_EXPONENT, Chosen


def _each(*numbers: float) -> list[tuple[float]]:
    return [(number,) for number in numbers]


def _softmax(*powers: float) -> list[tuple[float]]:
    return _each(*(power / sum(powers) for power in powers))


def _fields(labels: list[str], right: list, within: float = 0.005) -> list[Field]:
    return [
        Field(label, tuple(values), within)
        for label, values in zip(labels, right, strict=True)
    ]


ATTENTION = {
    "attention: without the scale": Numbers(
        _fields(["weight of dog", "weight of bites", "weight of man"], _softmax(4**2, 1, 4), 0.06),
        {
            "scaled": (_softmax(4, 1, 2), "these are the weights with the scale: leave out the division by √d."),
            "exponentials": (_each(4**2, 1, 4), "these are the exponentials: divide each by their sum."),
            "base_e": (
                _softmax(math.exp(2), 1, math.e),
                "these are powers of e: the products are multiples of ln 4, so take powers of 4.",
            ),
            "divided_by_d": (_softmax(2, 1, 2**0.5), "here the products are divided by d: leave out the division."),
            "products": (_softmax(2, 0, 1), "this normalises the products themselves: exponentiate them first."),
        },
        "dog gets more weight. It had the largest score before, and without the scale its lead is twice as large.",
    ),
    "attention: where the square wins": Numbers(
        [Field("T for D = 4,096", (8192,))],
        {
            "as_wide": (_each(4096), "T = D would be right if the projections cost 4 T D². They cost 8 T D²."),
            "half": (_each(2048), "this is D/2: solve 4 T² D = 8 T D² for T once more."),
        },
        "T is 2D. In shorter texts, the projections cost more than the scores and the mixing.",
    ),
    "attention: empty rows": Chosen(
        "padding on the left, causal mask",
        {
            "padding on the left, causal mask": "the first query sees only the first key, which is padding.",
            "padding on the right, causal mask": "a causal mask lets every query see the first token, which is a real token here.",
            "padding on the left, no causal mask": "without a causal mask every query sees the real tokens on the right.",
            "padding on the right, no causal mask": "every query sees the real tokens on the left.",
        },
    ),
    "attention: hide the scale": Chosen(
        "divide the queries' matrix and bias by √d",
        {
            "divide the queries' matrix and bias by √d": "then the query is divided by √d, and so is each score.",
            "divide the queries' matrix by √d, not the bias": "the bias is part of the query. It has to be divided, too.",
            "divide the matrices and biases of queries and keys by √d": "then scores are divided by √d twice, which is d.",
            "divide the values' matrix and bias by √d": "the values don't enter the scores.",
        },
    ),
}  # fmt: skip

SINUSOIDAL = {
    "sinusoidal: three apart": Numbers(
        [Field("the product", (cos(3) + cos(0.03),), 0.06)],
        {
            "half_exponent": (_each(cos(3) + cos(0.3)), HALF_EXPONENT),
            "mean": (_each((cos(3) + cos(0.03)) / 2), "this is the mean of the two cosines: the product is their sum."),
            "degrees": (_each(cos(3 * pi / 180) + cos(0.03 * pi / 180)), "here the angles are treated as degrees."),
            "first_pair": (_each(cos(3)), "this is only the first pair."),
            "sines": (_each(sin(3) + sin(0.03)), "sin·sin + cos·cos is the cosine of the difference, not its sine."),
        },
        "it is cos 3 + cos 0.03: only the distance counts, and the distance is 3.",
    ),
    "sinusoidal: an hour hand": Numbers(
        [Field("base b, to three digits", ((4096 / (2 * pi)) ** (64 / 62),))],
        {
            "half_exponent": (_each((4096 / (2 * pi)) ** (64 / 31)), HALF_EXPONENT),
            "exponent_1": (
                _each(4096 / (2 * pi)),
                "the last exponent is (d − 2)/d, a little less than 1, because pairs are counted from 0.",
            ),
            "radian": (_each(4096 ** (64 / 62)), "this hand rotates by one radian in 4,096 positions, but a turn is 2π."),
            "upside_down": (_each((4096 / (2 * pi)) ** (62 / 64)), "the exponent is upside down: it should be d/(d − 2)."),
        },
        "with any base, the fastest hand is never back where it started at a whole position.",
    ),
}  # fmt: skip

DERIVATION = {
    "derivation: where it looks": Numbers(
        [
            Field("Δ of the largest score", (1,)),
            Field("the largest score", (1,)),
            Field("second, with Δ above 0", (45,)),
            Field("second, with Δ below 0", (-43,)),
        ],
        {
            "other_side": ([(-1,), None, None, None], "Δ is m − n. The query must be rotated by 1 radian more than the key, so it comes one token later."),
            "around_0": ([None, None, (44,), (-44,)], "44 is nearly 7 turns, but it's 1 − Δ that has to be nearly a whole number of turns."),
            "exchanged": ([None, None, (43,), (-45,)], "the angle is 1 − Δ, not 1 + Δ."),
            "one_turn": ([None, None, (7,), None], "1 − 7 is −6, which misses a turn by 0.28. Some multiples of 2π are nearer to a whole number."),
        },
        "the score is cos(1 − Δ), and 44 is nearly 7 turns.",
    ),
    "derivation: faster than fast": Numbers(
        [
            Field("2π + 0.01 acts like θ =", (0.01,)),
            Field("2π − 1 acts like θ =", (-1,)),
        ],
        {
            "sign": ([(0.01,), (1,)], "2π − 1 is one radian less than a turn, so the hand seems to run backwards."),
            "unchanged": ([(2 * pi + 0.01,), (2 * pi - 1,)], "these are the original angles. Which angle between −π and π looks the same at whole positions?"),
        },
        "at whole positions, you can't see whole turns.",
    ),
}  # fmt: skip

COMPLEX_PLANE = {
    "complex plane: a pure sine": Numbers(
        [Field("Δ where S is highest", (8,))],
        {
            "first_crest": (_each(2), "2 misses its crest at π/2 by 0.43. Another whole number is nearer to a crest."),
            "lowest": (_each(5), "S is lowest there: b is q₁k₂ − q₂k₁, which is +1."),
            "cosine": (_each(6), "that is near the crest of a cosine, but a is 0, so S(Δ) is a sine."),
        },
        "8 is 0.15 after the crest at 5π/2.",
    ),
    "complex plane: exchanged": Chosen(
        "S(Δ) becomes S(−Δ)",
        {
            "S(Δ) becomes S(−Δ)": "a stays the same, and b changes sign.",
            "S(Δ) becomes −S(Δ)": "a would have to change sign as well, but q₁k₁ + q₂k₂ stays the same if q and k change places.",
            "S(Δ) stays": "a stays the same, but b = q₁k₂ − q₂k₁ doesn't.",
            "S(Δ) becomes 0": "the product is replaced by its conjugate, which has the same length.",
        },
    ),
}  # fmt: skip

_2, _02 = (cos(2), sin(2)), (cos(0.02), sin(0.02))

EFFICIENT = {
    "efficient: halves by hand": Numbers(
        [
            Field("the quarter turn", (-3, -4, 1, 2)),
            Field(
                "the result",
                (
                    _2[0] - 3 * _2[1],
                    2 * _02[0] - 4 * _02[1],
                    3 * _2[0] + _2[1],
                    4 * _02[0] + 2 * _02[1],
                ),
            ),
            Field("q for interleaved", (1, 3, 2, 4)),
        ],
        {
            "interleaved": ([(-2, 1, -4, 3), None, None], "this is the quarter turn of neighbours: in the half-split layout 1 goes with 3."),
            "no_minus": ([(3, 4, 1, 2), None, None], "the halves have changed places, but a quarter turn also needs a minus sign."),
            "clockwise": ([(3, 4, -1, -2), None, None], "this rotates clockwise: (x, y) should go to (−y, x)."),
            "half_exponent": (
                [
                    None,
                    (_2[0] - 3 * _2[1], 2 * cos(0.2) - 4 * sin(0.2), 3 * _2[0] + _2[1], 4 * cos(0.2) + 2 * sin(0.2)),
                    None,
                ],
                HALF_EXPONENT,
            ),
            "one_position": (
                [
                    None,
                    (cos(1) - 3 * sin(1), 2 * cos(0.01) - 4 * sin(0.01), 3 * cos(1) + sin(1), 4 * cos(0.01) + 2 * sin(0.01)),
                    None,
                ],
                "these are the angles at position 1, but m is 2.",
            ),
            "unordered": ([None, None, (1, 2, 3, 4)], "in this order, 1 and 2 would be a pair. Which number goes with 1?"),
        },
        "pairs (1, 3) and (2, 4), rotated by 2 and by 0.02 radians.",
    ),
    "efficient: wrong heads": Chosen(
        "an error with 8 heads of 64, none with 8 of 16",
        {
            "an error with 8 heads of 64, none with 8 of 16": "8 heads of 64 need 512 rows, and there are 128. But 8 heads of 16 need just 128.",
            "an error both times": "8 heads of 16 have 128 rows, and so has the projection: nothing looks wrong.",
            "no error at all": "8 heads of 64 would have 512 rows, and there are 128.",
            "no error with 8 heads of 64, one with 8 of 16": "count the rows: there are only 2 · 64.",
        },
    ),
    "efficient: what a token costs": Numbers(
        _fields(
            ["bytes per layer", "bytes in the model", "ms for 8,192 tokens"],
            _each(2 * 40 * 128 * 2, 32 * 2 * 40 * 128 * 2, 1e3 * 8192 * 32 * 2 * 40 * 128 * 2 / 3.35e12),
            0.03,
        ),
        {
            "twice": ([(40 * 128 * 2,), None, None], "each entry is read and written, and each has 2 bytes: one of these factors of 2 is missing."),
            "float32": ([(2 * 40 * 128 * 4,), None, None], "these entries have 4 bytes, but in bfloat16 they have 2."),
            "queries": ([(2 * 32 * 128 * 2,), None, None], "the keys are rotated, too: there are 8 heads of them."),
            "all_keys": ([(2 * 64 * 128 * 2,), None, None], "there are 8 key heads, not 32."),
            "values": ([(2 * 48 * 128 * 2,), None, None], "values aren't rotated."),
            "one_token": ([None, None, (1e3 * 32 * 2 * 40 * 128 * 2 / 3.35e12,)], "this is the time for one token."),
            "seconds": ([None, None, (8192 * 32 * 2 * 40 * 128 * 2 / 3.35e12,)], "this is the time in seconds: give it in milliseconds."),
        },
        "for the prompt, one pass over q and k hardly matters.",
    ),
}  # fmt: skip

DECAY = {
    "decay: two pairs": Numbers(
        [
            Field("θ₀", (1,)),
            Field("θ₁", (1 / 4,)),
            Field("first distance with a negative score", (3,)),
        ],
        {
            "half_exponent": ([None, (1 / 2,), None], HALF_EXPONENT),
            "from_1": ([(1 / 4,), (1 / 16,), None], "pairs are counted from 0: the first frequency is b⁰."),
            "growing": ([None, (4,), None], "frequencies should fall: the minus sign in the exponent is missing."),
            "first_pair": ([(1,), (1 / 4,), (2,)], "at distance 2 the first pair is negative, but the second outweighs it: 2 cos 2 + 2 cos 0.5 is 0.92."),
        },
        "and the score is exactly 4 only at distance 0, because the period is 8π, and no multiple of 8π is a whole number.",
    ),
}  # fmt: skip

_RATIO = 16383 / 4095


def _share(radians: float) -> float:
    """Return γ for a pair that rotates by this many radians within L tokens, with α = 1 and β = 32."""
    return (radians / (2 * pi) - 1) / 31


def _stretched(radians: float) -> float:
    return 1 / ((1 - _share(radians)) / 2 + _share(radians))


EXTRAPOLATION = {
    "extrapolation: how large": Numbers(
        [
            Field("the pair that decides", (46,), 0.0),
            Field("the smallest factor", (_RATIO ** (63 / 46),)),
        ],
        {
            "as_much": ([None, (4,)], "with s = 4 only the last pair is stretched by 4, and the pairs before it are stretched less."),
            "last_pair": ([(63,), None], "the last pair is stretched most. The pair that decides is stretched least among those that have to be stretched."),
            "turned": ([(45,), None], "pair 45 has completed a turn, so it has been at every angle."),
            "exponent": ([None, (_RATIO ** (64 / 46),)], "pair i is stretched by s to the power 2i/(d − 2), and d − 2 is 126."),
            "root": ([None, (_RATIO ** (46 / 63),)], "the exponent is upside down: s^(46/63) has to be 4."),
        },
        "the last pair is then stretched by this factor.",
    ),
    "extrapolation: by parts": Numbers(
        [Field("stretch of the four pairs", (1, 1, _stretched(2.048 * 10), 2), 0.01)],
        {
            "turned_round": ([(2, 2, 1 / (1 - _share(2.048 * 10) / 2), 1)], "the ramp is the wrong way round: fast pairs are kept, and slow ones interpolated."),
            "frequencies": ([(1, 1, 1 / _stretched(2.048 * 10), 1 / 2)], "by these factors the frequencies are multiplied: the stretch is one over each of them."),
            "all": ([(2, 2, 2, 2)], "this is interpolation: by-parts keeps pairs that make more than 32 turns."),
            "wavelengths": ([(1, 1, 2 - _share(2.048 * 10), 2)], "here wavelengths are mixed, but by-parts mixes frequencies."),
            "radians": ([(1, 1, _stretched(2.048 * 10 * 2 * pi), _stretched(2.048 * 2 * pi))], "radians are treated as turns: a factor of 2π is missing."),
        },
        "the third pair lies between kept and interpolated, but close to interpolated.",
    ),
    "extrapolation: a stale cache": Chosen(
        "a fast pair, after a few dozen tokens",
        {
            "a fast pair, after a few dozen tokens": "such a pair is hardly stretched, but even a small share of a thousand radians is a radian.",
            "a slow pair, after a few dozen tokens": "a slow pair changes by a larger share, but of a smaller angle: multiply the two.",
            "a fast pair, after thousands of tokens": "at position 4,095, even a small change of the frequency soon changes the angle by a radian.",
            "a slow pair, after thousands of tokens": "which pair has the largest product of its angle and the share by which it changes?",
        },
    ),
    "extrapolation: which base": Numbers(
        [
            Field("the pair that sets the limit", (46,), 0.0),
            Field("longest text (tokens)", (1 + 4095 * 1000 ** (46 / 64),), 0.02),
        ],
        {
            "turned": ([(45,), None], "pair 45 completed a turn in training, so no angle is new to it."),
            "last_pair": ([(63,), None], "the last pair is slowed down most. The first that didn't complete a turn sets the limit."),
            "whole": ([None, (4096 * 1000,)], "only a pair with 2i/d = 1 would be a thousand times slower, and this pair isn't."),
            "half_exponent": ([None, (1 + 4095 * 1000 ** (46 / 128),)], HALF_EXPONENT),
        },
        "that pair is slower by a factor of 10³ to the power 2i/d.",
    ),
}  # fmt: skip

BY_HAND = {
    **ATTENTION,
    **SINUSOIDAL,
    **DERIVATION,
    **COMPLEX_PLANE,
    **EFFICIENT,
    **DECAY,
    **EXTRAPOLATION,
}
"""All exercises by hand whose answers can be checked, by "chapter: name"."""
