"""The explorer of chapter *Longer texts* that sets YaRN's ramp as its paper writes it beside the ramp of its code."""

from __future__ import annotations

import math
from typing import Any

import traitlets

from ropebook import extrapolation
from ropebook.explorers import Even, Explorer, Real, Switch, Whole, still
from ropebook.explorers.ladder import (
    LEAST_ALPHA,
    LEAST_BASE,
    LEAST_BETA,
    MOST_ALPHA,
    MOST_BETA,
    MOST_DIMS,
    MOST_FACTOR,
    MOST_LENGTH,
    dot_size,
    dots,
    pair_axis,
    stroked,
)
from ropebook.sinusoidal import inv_freq


class Ramp(Explorer):
    """How much of each pair YaRN interpolates: linear in the pair's turns (paper) or in its index (code), and what differs.

    ``alpha``: 0.25 to 2, and ``beta``: 2.5 to 64, turns within L at the ramp's ends. ``trained_length``: L, 16 to 131072.
    ``base``: 500 to 10⁷. ``dim``: even, 4 to 512. ``factor``: s, 1 to 64. ``truncate``: whether the code rounds the ends
    of its ramp outwards to whole pairs, as is usual. Bad values raise ``TraitError``.

    >>> figure = Ramp()  # Llama 2's numbers, stretched 16 times
    >>> data = figure.compute(figure.dials())
    >>> data["low"], data["high"], round(data["largest"], 2), data["pair"]
    (20.0, 46.0, 3.04, 38)
    """

    script = "ramp.js"

    alpha = Real(
        1.0,
        min=LEAST_ALPHA,
        max=MOST_ALPHA,
        log=True,
        label="Slow end α",
        below="no pair would be slow enough",
        above=f"α must be less than β, which begins at {LEAST_BETA}",
        note="Turns within L. Pairs with fewer are interpolated.",
        more=True,
    )
    beta = Real(
        32.0,
        min=LEAST_BETA,
        max=MOST_BETA,
        log=True,
        label="Fast end β",
        below=f"β must be more than α, which ends at {MOST_ALPHA}",
        above="hardly a pair would be kept",
        note="Turns within L. Pairs with more are kept.",
        more=True,
    )
    trained_length = Whole(
        4096,
        min=16,
        max=MOST_LENGTH,
        log=True,
        label="Trained length L",
        below="too short for a pair to turn",
        above="few models see more in training",
        note="Tokens in the longest text of training.",
        more=True,
    )
    base = Real(
        10_000.0,
        min=LEAST_BASE,
        max=1e7,
        log=True,
        label="Base b",
        below="the code’s ramp can run backwards there, and at base 1 it has no value",
        above="no model goes further",
        note="Pair i turns by θᵢ = b^(−2i/d) radians per position.",
    )
    dim = Even(
        128,
        min=4,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="a ramp needs two pairs",
        above="wider heads show nothing new",
        note="Of a head: d/2 pairs.",
    )
    factor = Real(
        16.0,
        min=1.0,
        max=MOST_FACTOR,
        log=True,
        label="Factor s",
        below="L′ would be shorter than L",
        above="no method is used so far out",
        note="Interpolated pairs are slowed down by it.",
    )
    truncate = Switch(
        True,
        label="Round the ends",
        note="The code’s ramp begins and ends at whole pairs, rounded outwards.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "How much of each pair is interpolated, from none for the fast pairs to all for the slow ones: as YaRN's paper "
            "writes it, a curve that rises steeply and then creeps to the end, and as its code does it, a straight ramp "
            "between the same ends; below, the factor between the frequencies that the two make, pair by pair."
        )

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """The share of interpolation of each pair, 0 to 1, in the ``paper`` and in the ``code``; the pair indices at which
        the code's ramp begins and ends, ``low`` and ``high``; how many pairs each of the two mixes (``paperMixes``,
        ``codeMixes``). The code's frequencies over the paper's, ``ratio``; the ``largest`` factor between them, either
        way, and the ``pair`` where it is reached."""
        theta = inv_freq(dials["dim"], dials["base"])
        ends = (dials["trained_length"], dials["alpha"], dials["beta"])
        truncate = dials["truncate"]
        paper = 1 - extrapolation.ramp_in_turns(theta, *ends)
        code = 1 - extrapolation.ramp_in_pairs(theta, *ends, truncate=truncate)
        low, high = extrapolation.ramp_range(theta, *ends, truncate=truncate)
        differ = extrapolation.paper_against_code(
            theta, dials["factor"], *ends, truncate=truncate
        )
        return {
            "paper": paper.tolist(),
            "code": code.tolist(),
            "low": low.item(),
            "high": high.item(),
            "paperMixes": int(((paper > 0) & (paper < 1)).sum()),
            "codeMixes": int(((code > 0) & (code < 1)).sum()),
            "ratio": (1 / differ.ratio).tolist(),
            "largest": differ.largest,
            "pair": differ.pair,
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A share is 1 minus a quotient of differences; the ends of the code's ramp are pair indices."""
        data = Ramp.compute(dials)
        pairs = dials["dim"] // 2
        alpha, beta = dials["alpha"], dials["beta"]
        index = (data["low"] + data["high"]) / (data["high"] - data["low"])
        whole = ("paperMixes", "codeMixes", "pair")
        return {
            "paper": [1 + (alpha + beta) / (beta - alpha)] * pairs,
            "code": [1 + index] * pairs,
            "low": pairs,
            "high": pairs,
            "ratio": data["ratio"],
            "largest": data["largest"],
            **dict.fromkeys(whole, 0.0),
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """Both ramps, and the factor between the frequencies below."""
        data = self.compute(self.dials())
        pairs = self.dim // 2
        left, right, top, floor, low_top, low_floor = 56, 730, 84, 284, 366, 486
        most, least = largest_tick(max(data["ratio"])), min(data["ratio"])
        ticks = [most, 1.0]
        if least < 0.9:  # else the axis ends a little below 1, without a number
            ticks.append(1 / largest_tick(1 / least))
        least = min(0.9, ticks[-1])

        def x(pair: float) -> float:
            return left + (pair + 0.5) / pairs * (right - left)

        def y(share: float) -> float:
            return floor - share * (floor - top)

        def below(ratio: float) -> float:
            share = math.log(ratio / least) / math.log(most / least)
            return low_floor - share * (low_floor - low_top)

        parts = [
            still.text(0, 14, "Share of interpolation", style=still.BOLD),
            still.text(0, 33, "the paper’s ramp, in turns", fill="1"),
            still.text(190, 33, "the code’s ramp, in pairs", fill="2"),
        ]
        ends = [
            x(min(max(pair_at(turns, self.dials()), -0.5), pairs - 0.5))
            for turns in (self.beta, self.alpha)
        ]
        names = (f"β = {self.beta:g}", f"α = {self.alpha:g}")
        for end, name, middle in zip(ends, names, apart(*ends), strict=True):
            parts += [
                stroked([(end, top - 8), (end, floor)], "muted", 1.25, "2 4"),
                still.text(middle, top - 14, name, "middle", "muted"),
            ]
        for share in (0, 0.5, 1):
            height = y(share)
            parts += [
                still.line([(left, height), (right, height)], "grid"),
                still.text(left - 8, height + 4, f"{share:g}", "end", "muted"),
            ]
        for name, colour in (("code", "2"), ("paper", "1")):
            points = [(x(i), y(share)) for i, share in enumerate(data[name])]
            parts.append(stroked(points, colour, 2))
            parts.append(dots(points, colour, dot_size(pairs)))
        worst = data["pair"]
        largest = f"largest: {data['largest']:.2f}, at pair {worst}"
        parts += [
            still.text(
                0, low_top - 38, "The code’s frequencies over the paper’s",
                style=still.BOLD,
            ),
            still.text(0, low_top - 19, largest, fill="muted"),
        ]  # fmt: skip
        for ratio in ticks:
            height = below(ratio)
            parts += [
                still.line([(left, height), (right, height)], "grid"),
                still.text(left - 8, height + 4, f"{ratio:.3g}", "end", "muted"),
            ]
        points = [(x(i), below(ratio)) for i, ratio in enumerate(data["ratio"])]
        parts.append(stroked(points, "ink", 2))
        parts.append(still.dot(*points[worst], 5, "ink"))
        parts += pair_axis(pairs, x, low_floor)
        return 740, low_floor + 44, parts


def pair_at(turns: float, dials: dict[str, Any]) -> float:
    """The pair index, a fraction, at which a pair turns so often in L: c(r) = d ln(L/2πr)/(2 ln b).

    >>> round(pair_at(1, {"dim": 128, "base": 1e4, "trained_length": 4096}), 2)
    45.03
    """
    reach = math.log(dials["trained_length"] / (2 * math.pi * turns))
    return dials["dim"] * reach / (2 * math.log(dials["base"]))


def apart(first: float, second: float) -> tuple[float, float]:
    """Two places from left to right, moved so that their names do not overlap and stay within the figure.

    >>> apart(56, 60), apart(700, 710)
    ((56, 116), (640, 700))
    """
    second = min(700, max(second, first + 60))
    return min(first, second - 60), second


def largest_tick(largest: float) -> float:
    """The first of 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, … that is not less.

    >>> largest_tick(1.0), largest_tick(3.04), largest_tick(23.9)
    (1.25, 4.0, 24.0)
    """
    ticks = [1.25, 1.5] + [
        float(part * 2**power) for power in range(1, 8) for part in (1, 1.5)
    ]
    return next(tick for tick in ticks if tick >= largest)
