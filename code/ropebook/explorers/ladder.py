"""The explorer of chapter *Longer texts* that shows which pairs never turned in training, and what each method does to them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import traitlets

from ropebook import extrapolation
from ropebook.explorers import Even, Explorer, Real, Switch, Whole, still
from ropebook.sinusoidal import inv_freq, wavelengths

MOST_DIMS = 512
MOST_LENGTH = 131_072
MOST_FACTOR = 64
LEAST_BASE = 500
"""Below, with these limits of the other dials, the ramp of YaRN's code could run backwards: then it has no value."""
MOST_ALPHA = 2
LEAST_BETA = 2.5
"""α ends where β has not begun, so that α < β."""
LEAST_ALPHA = 0.25
MOST_BETA = 64
SHORTEST = 5
"""The axis of wavelengths begins here; the fastest pair needs 2π positions."""
METHODS = {
    name: {"title": extrapolation.METHODS[name].title, "look": look}
    for name, look in {
        "linear": ("3", 2, ""),
        "ntk": ("4", 2, ""),
        "ntk_by_parts": ("ink", 1.75, "7 4"),
        "yarn": ("ink", 1.75, ""),
        "llama3": ("ink", 2, "0 4"),
    }.items()
}
"""The methods that can be laid over the ladder: the name of each, and its colour, width and dashes."""


class Ladder(Explorer):
    """The wavelengths λ_i = 2π/θ_i of all pairs against the trained length L, and methods that stretch them for L′ = s·L.

    ``base``: 500 to 10⁷. ``dim``: even, 4 to 512. ``trained_length``: L, 16 to 131072. ``factor``: s, 1 to 64.
    ``alpha``: 0.25 to 2, and ``beta``: 2.5 to 64, the ends of the ramp of NTK-by-parts and YaRN. ``linear``, ``ntk``,
    ``ntk_by_parts``, ``yarn``, ``llama3``: whether this method of :data:`ropebook.extrapolation.METHODS` is shown. Bad
    values raise ``TraitError``.

    >>> figure = Ladder(ntk=False)  # Llama 2, stretched four times
    >>> data = figure.compute(figure.dials())
    >>> data["turned"], data["shown"], round(data["beyond"], 1), [round(left, 3) for left in data["left"]]
    (46, ['linear', 'yarn'], 16.4, [0.001, 0.001])
    """

    script = "ladder.js"

    base = Real(
        10_000.0,
        min=LEAST_BASE,
        max=1e7,
        log=True,
        label="Base b",
        below="YaRN’s ramp can run backwards there, and at base 1 no pair is slower than another",
        above="no model goes further",
        note="Pair i has the wavelength λᵢ = 2π b^(2i/d).",
    )
    dim = Even(
        128,
        min=4,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="NTK’s exponent d/(d − 2) has no value at 2",
        above="wider heads show nothing new",
        note="Of a head: d/2 pairs.",
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
    factor = Real(
        4.0,
        min=1.0,
        max=MOST_FACTOR,
        log=True,
        label="Factor s",
        below="L′ would be shorter than L",
        above="no method is used so far out",
        note="The wanted length is L′ = s·L, rounded down.",
    )
    alpha = Real(
        1.0,
        min=LEAST_ALPHA,
        max=MOST_ALPHA,
        log=True,
        label="Slow end α",
        below="no pair would be slow enough",
        above=f"α must be less than β, which begins at {LEAST_BETA}",
        note="NTK-by-parts and YaRN: pairs with fewer turns within L are interpolated.",
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
        note="NTK-by-parts and YaRN: pairs with more turns within L are kept.",
        more=True,
    )
    linear = Switch(
        True,
        label="Position interpolation",
        note="Every wavelength becomes s times as long.",
        more=True,
    )
    ntk = Switch(
        True,
        label="NTK-aware",
        note="The first is kept, the last takes s times as long.",
        more=True,
    )
    ntk_by_parts = Switch(
        False,
        label="NTK-by-parts",
        note="Fast ones kept, slow ones interpolated, a ramp between.",
        more=True,
    )
    yarn = Switch(
        True,
        label="YaRN",
        note="The same, with the ramp that its published code has.",
        more=True,
    )
    llama3 = Switch(
        False,
        label="Llama 3.1",
        note="NTK-by-parts with α = 1 and β = 4.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The wavelength of each pair on a logarithmic scale, rising from 6 positions a turn like a ladder, with lines "
            "at the trained length L and the wanted length L′: the pairs above L never completed a turn in training. Over "
            "it the wavelengths that each method makes of them; below, by how much each method stretches each pair."
        )

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """L′ as a whole number (``target``); the ``wavelengths`` of the pairs; how many pairs have ``turned`` within L;
        the largest angle ``beyond`` the trained ones at L′ without a method, in radians. Of the methods ``shown``: by
        how much each stretches each pair's wavelength (``stretch``), and the largest angle beyond that is ``left``."""
        theta = inv_freq(dials["dim"], dials["base"])
        length, target = dials["trained_length"], target_length(dials)
        shown = methods(dials)
        return {
            "target": target,
            "wavelengths": wavelengths(dials["dim"], dials["base"]).tolist(),
            "turned": int(extrapolation.turned(theta, length).sum()),
            "beyond": extrapolation.overshoot(theta, length, target, theta)
            .max()
            .item(),
            "shown": list(shown),
            "stretch": [
                extrapolation.stretch(method, theta).tolist()
                for method in shown.values()
            ],
            "left": [
                extrapolation.overshoot(theta, length, target, method(theta)[0])
                .max()
                .item()
                for method in shown.values()
            ],
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """An angle beyond is the difference of two, at most as large as that of the first pair that has not turned."""
        data = Ladder.compute(dials)
        slow = data["wavelengths"][data["turned"] :]
        largest = data["target"] * 2 * math.pi / slow[0] if slow else 0.0
        return {
            "target": 0.0,
            "wavelengths": data["wavelengths"],
            "turned": 0.0,
            "beyond": largest,
            "stretch": data["stretch"],
            "left": [largest] * len(data["left"]),
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The ladder, with the methods over it; the stretch of each below."""
        data = self.compute(self.dials())
        waves, turned = data["wavelengths"], data["turned"]
        pairs, length, target = len(waves), self.trained_length, data["target"]
        left, right, top, floor, low_top, low_floor = 56, 730, 74, 344, 420, 510
        longest = 1.5 * max(target, waves[-1] * self.factor)

        def x(pair: float) -> float:
            return left + (pair + 0.5) / pairs * (right - left)

        def y(wave: float) -> float:
            share = math.log(wave / SHORTEST) / math.log(longest / SHORTEST)
            return floor - share * (floor - top)

        def below(factor: float) -> float:
            share = math.log(factor) / math.log(max(self.factor, 1.25))
            return low_floor - share * (low_floor - low_top)

        young = pairs - turned
        note = (
            f"Orange: no full turn within L, {young} of {pairs} pairs"
            if young
            else f"Every one of {pairs} pairs completes a turn within L"
        )
        parts = [
            still.text(0, 14, "Wavelength of each pair", style=still.BOLD),
            still.text(0, 33, note, fill="muted"),
            *legend(data["shown"], 0, 56),
            *(
                still.rect(
                    x(turned - 0.5), upper, right - x(turned - 0.5), down - upper,
                    "2", 0.08, 0,
                )
                for upper, down in ((top, floor), (low_top - 6, low_floor))
                if young
            ),
        ]  # fmt: skip
        for power in range(1, math.ceil(math.log10(longest))):
            height = y(10**power)
            parts += [
                still.line([(left, height), (right, height)], "grid"),
                still.text(
                    left - 8, height + 4, power_of_ten(power), "end", "muted"
                ),
            ]
        for name, place, dashes in (("L′", target, "6 4"), ("L", length, "")):
            height = y(place)
            parts.append(
                stroked([(left, height), (right, height)], "muted", 1.5, dashes)
            )
            if name == "L" or y(length) - height > 18:
                words = f"{name} = {place}"
                parts.append(still.text(left + 6, height - 5, words))
        for name, stretch in zip(data["shown"], data["stretch"], strict=True):
            above = [(x(i), y(waves[i] * by)) for i, by in enumerate(stretch)]
            under = [(x(i), below(by)) for i, by in enumerate(stretch)]
            parts += [
                stroked(points, *METHODS[name]["look"]) for points in (above, under)
            ]
        size = dot_size(pairs)
        for colour, some in (("1", range(turned)), ("2", range(turned, pairs))):
            if some:
                parts.append(
                    dots([(x(i), y(waves[i])) for i in some], colour, size)
                )
        parts.append(still.text(0, low_top - 24, "Stretch λ′/λ", style=still.BOLD))
        ends = {1.0: "1", self.factor: f"{self.factor:g}"}
        for factor, name in ends.items():
            height = below(factor)
            parts += [
                still.line([(left, height), (right, height)], "grid"),
                still.text(left - 8, height + 4, name, "end", "muted"),
            ]
        parts += pair_axis(pairs, x, low_floor)
        return 740, low_floor + 44, parts


def target_length(dials: dict[str, Any]) -> int:
    """L′ = s·L, rounded down.

    >>> target_length({"trained_length": 4096, "factor": 2.5})
    10240
    """
    return math.floor(dials["trained_length"] * dials["factor"])


def methods(dials: dict[str, Any]) -> dict[str, extrapolation.Frequencies]:
    """The methods switched on, name to method, in the order of `METHODS`."""
    factor = {"factor": dials["factor"]}
    trained = {**factor, "trained_length": dials["trained_length"]}
    ramp = {**trained, "alpha": dials["alpha"], "beta": dials["beta"]}
    options = {
        "linear": factor,
        "ntk": factor,
        "ntk_by_parts": ramp,
        "yarn": ramp,
        "llama3": trained,
    }
    return {
        name: extrapolation.make(name, **options[name])
        for name in METHODS
        if dials[name]
    }


def power_of_ten(power: int) -> str:
    """10, 100, 1000, 10⁴, 10⁵, …

    >>> power_of_ten(2), power_of_ten(5)
    ('100', '10⁵')
    """
    return str(10**power) if power < 4 else "10" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[power]


def stroked(
    points: Iterable[tuple[float, float]],
    colour: str,
    width: float,
    dashes: str = "",
) -> str:
    """A line with round ends through the points, dashed if so said."""
    d = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    more = f";stroke-dasharray:{dashes}" if dashes else ""
    style = f"fill:none;stroke:{still.colour(colour)};stroke-width:{width:g}"
    return f'<path d="{d}" style="{style};stroke-linecap:round;stroke-linejoin:round{more}"/>'


def dots(points: Iterable[tuple[float, float]], colour: str, width: float) -> str:
    """Filled circles of this width, in one path: lines of no length with round ends."""
    d = "".join(f"M{x:.1f},{y:.1f}h0" for x, y in points)
    style = f"fill:none;stroke:{still.colour(colour)};stroke-width:{width:g}"
    return f'<path d="{d}" style="{style};stroke-linecap:round"/>'


def dot_size(pairs: int) -> float:
    """How wide the dot of one of so many pairs is."""
    return max(3.0, min(8.0, 450 / pairs))


def legend(shown: list[str], left: float, top: float) -> list[str]:
    """A short line in the look of each method and its name, side by side."""
    parts = []
    for name in shown:
        title = extrapolation.METHODS[name].title
        parts += [
            stroked(
                [(left + 2, top - 4), (left + 30, top - 4)], *METHODS[name]["look"]
            ),
            still.text(left + 38, top, title),
        ]
        left += 62 + 6.8 * len(title)
    return parts


def pair_axis(pairs: int, x: Any, floor: float) -> list[str]:
    """The axis of the pairs: about eight whole numbers, and a name."""
    step = next(
        step
        for power in (1, 10, 100)
        for step in (power, 2 * power, 5 * power)
        if 8 * step >= pairs - 1
    )
    middle = x((pairs - 1) / 2)
    return [
        still.line([(x(-0.5), floor), (x(pairs - 0.5), floor)], "muted"),
        *(
            still.text(x(pair), floor + 18, f"{pair}", "middle", "muted")
            for pair in range(0, pairs, step)
        ),
        still.text(middle, floor + 36, "pair i", "middle", "muted"),
    ]
