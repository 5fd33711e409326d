"""The explorer of chapter *Distance* that puts the curves of many bases side by side."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook import decay
from ropebook.explorers import Even, Explorer, Real, Whole, still
from ropebook.sinusoidal import angles, distance_kernel

MOST_DIMS = 512
MOST_LENGTH = 4096
NEAR = 128
"""Of every base the curve is computed at all distances below this one, and at 64 in each octave beyond."""


class Sweep(Explorer):
    """K(Δ)/K(0), the score of q = k = (1, …, 1) as a share of its peak: for ten bases from 1 to 10⁷, and for one of choice.

    ``base``: the one of choice, 1 to 10⁷. ``dim``: even, 2 to 512. ``length``: the distances are those below it, 16 to 4096.
    Bad values raise ``TraitError``.

    >>> figure = Sweep(base=10_000, dim=128)
    >>> data = figure.compute(figure.dials())
    >>> data["belowHalf"], data["firstNegative"]
    (46, 1707)
    """

    script = "sweep.js"

    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all pairs would stand still",
        note="Pair i turns by θᵢ = b^(−2i/d) radians per position.",
    )
    dim = Even(
        128,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="wider heads show nothing new",
        note="The same for all curves.",
    )
    length = Whole(
        4096,
        min=16,
        max=MOST_LENGTH,
        log=True,
        label="Length L",
        below="fewer distances show no curve",
        above="more would take too long to add up",
        note="Distances 0 to L − 1. The axis begins at 1; at 0 every curve is 1.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The score of equal vectors against their distance, on a logarithmic axis, once for each of ten bases from 1 "
            "to ten million, and large for one base of choice. The larger the base, the farther to the right the curve "
            "falls below half of its peak; small bases fall at once and then swing about zero; at base 1 nothing falls."
        )

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """The chosen base's curve at every distance below the length (``values``), with its ``mean``, ``least`` value,
        ``leastAt``, number of local ``maxima``, and the first distances at which it is ``belowHalf`` and negative
        (``firstNegative``), −1 if there is none. The ten ``curves`` at some ``distances`` (`sampled_distances`), and of
        each the first of all distances at which it is below ½ (``halves``, −1 if none)."""
        base, dim, length = dials["base"], dials["dim"], dials["length"]
        [row] = decay.sweep(length, [base], [dim])
        distances = sampled_distances(length)
        curves = [share(distances, dim, other) for other in decay.BASES]
        return {
            "distances": distances.tolist(),
            "curves": [curve.tolist() for curve in curves],
            "halves": [first_half(dim, other, length) for other in decay.BASES],
            "values": share(torch.arange(length), dim, base).tolist(),
            "belowHalf": -1 if row.below_half is None else row.below_half,
            "firstNegative": -1
            if row.summary.first_negative is None
            else row.summary.first_negative,
            "least": row.summary.least,
            "leastAt": row.summary.least_at,
            "maxima": row.summary.local_maxima,
            "mean": row.summary.mean,
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A value is a mean of cosines; distances and counts must be equal."""
        base, dim, length = dials["base"], dials["dim"], dials["length"]
        distances = sampled_distances(length)
        values = sizes(torch.arange(length), dim, base)
        data = Sweep.compute(dials)
        return {
            **dict.fromkeys(data, 0.0),
            "curves": [
                sizes(distances, dim, other).tolist() for other in decay.BASES
            ],
            "values": values.tolist(),
            "least": values[data["leastAt"]].item(),
            "mean": values.mean().item(),
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The chosen curve; under it ten small panels, each with its own curve in blue and the chosen one in grey."""
        data = self.compute(self.dials())
        values, distances = np.array(data["values"]), np.array(data["distances"])
        note = f"K(Δ)/K(0), d = {self.dim}, against Δ. First below ½: orange, below 0: violet"
        main = Panel(46, 60, 684, 190, self.length)
        parts = [
            still.text(
                0, 14, f"The chosen base: {power(self.base)}", style=still.BOLD
            ),
            still.text(0, 34, note, fill="muted"),
            *main.frame(),
            *main.marks(data["belowHalf"], data["firstNegative"]),
            *main.curve(np.arange(self.length), values, "1"),
        ]
        for level in (-1, 0, 0.5, 1):
            name = {-1: "−1", 0: "0", 0.5: "½", 1: "1"}[level]
            parts.append(still.text(38, main.y(level) + 4, name, "end", "muted"))
        for place in ticks(self.length):
            parts.append(
                still.text(main.x(place), 268, f"{place}", "middle", "muted")
            )
        parts += [
            still.text(0, 306, "Ten bases", style=still.BOLD),
            still.text(
                0,
                326,
                "Blue: this base; grey: the chosen one; orange line: first below ½",
                fill="muted",
            ),
        ]
        for k, base in enumerate(decay.BASES):
            panel = Panel(
                146 * (k % 5) + 2, 362 + 122 * (k // 5), 138, 84, self.length
            )
            own = base == self.base
            parts += [
                still.text(
                    panel.left,
                    panel.top - 8,
                    power(base),
                    fill="1" if own else "ink",
                    style=still.BOLD if own else "",
                ),
                *panel.frame(),
                *panel.marks(data["halves"][k]),
            ]
            if not own:
                parts += panel.curve(np.arange(self.length), values, "grid")
            parts += panel.curve(distances, np.array(data["curves"][k]), "1")
        return 740, 580, parts


class Panel:
    """A small coordinate system: distances from 1 to length − 1 by equal ratios, values from −1 to 1."""

    def __init__(
        self, left: float, top: float, width: float, height: float, length: int
    ) -> None:
        self.left, self.top, self.width, self.height = left, top, width, height
        self.last = length - 1

    def x(self, distance: float) -> float:
        share = math.log(max(1, distance)) / math.log(self.last)
        return self.left + share * self.width

    def y(self, value: float) -> float:
        return self.top + (1 - value) / 2 * self.height

    def frame(self) -> list[str]:
        ends = (self.left, self.left + self.width)
        return [
            still.line([(end, self.y(level)) for end in ends], stroke)
            for level, stroke in ((1, "grid"), (0, "muted"), (-1, "grid"))
        ]

    def marks(self, half: int, negative: int = -1) -> list[str]:
        """Upright lines where the curve is first below ½ and below 0."""
        return [
            still.line(
                [
                    (self.x(place), self.y(level)),
                    (self.x(place), self.top + self.height),
                ],
                colour,
                1.5,
            )
            for place, level, colour in ((half, 0.5, "2"), (negative, 0, "4"))
            if place >= 0
        ]

    def curve(
        self, distances: np.ndarray, values: np.ndarray, colour: str
    ) -> list[str]:
        """The band from the least to the greatest value in each two pixels, from distance 1 on."""
        places = np.array([self.x(distance) for distance in distances[1:]])
        columns = np.flatnonzero(np.diff(places // 2, prepend=-1))
        x = [part.mean() for part in np.split(places, columns[1:])]
        parts = np.split(values[1:], columns[1:])
        there = [(a, self.y(part.max())) for a, part in zip(x, parts, strict=True)]
        back = [(a, self.y(part.min())) for a, part in zip(x, parts, strict=True)]
        return [band([*there, *back[::-1]], colour)]


def band(points: list[tuple[float, float]], colour: str) -> str:
    """The outline of a band with its area; where the band is thin, a line."""
    outline = "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    paint = still.colour(colour)
    look = f"fill:{paint};fill-opacity:0.5;stroke:{paint};stroke-width:1.25;stroke-linejoin:round"
    return f'<path d="M{outline}" style="{look}"/>'


def sampled_distances(length: int) -> torch.Tensor:
    """The distances below ``length`` at which the ten curves are computed: all below 128, then 64 in each octave, twice
    those of the octave before.

    >>> sampled_distances(264)[-6:].tolist()
    [248, 250, 252, 254, 256, 260]
    """
    octave = torch.arange(NEAR // 2, NEAR)
    parts = [torch.arange(NEAR)]
    while 2 * octave[0] < length:
        octave = 2 * octave
        parts.append(octave)
    distances = torch.cat(parts)
    return distances[distances < length]


def share(distances: torch.Tensor, dim: int, base: float) -> torch.Tensor:
    """K(Δ)/K(0), float64, the shape of the distances."""
    return distance_kernel(distances, dim, base) / (dim // 2)


def sizes(distances: torch.Tensor, dim: int, base: float) -> torch.Tensor:
    """The mean of |cos Δθ_i|."""
    return angles(distances, dim, base).cos().abs().mean(-1)


def first_half(dim: int, base: float, length: int) -> int:
    """The first distance at which K(Δ)/K(0) is below ½, −1 if there is none below ``length``."""
    found = decay.first_below(partial(share, dim=dim, base=base), 0.5, length)
    return -1 if found is None else found


def power(base: float) -> str:
    """A base as a heading.

    >>> power(1.0), power(500.0), power(1e4)
    ('b = 1', 'b = 500', 'b = 10⁴')
    """
    exponent = round(math.log10(base))
    if exponent >= 3 and base == 10.0**exponent:
        return f"b = 10{raised(exponent)}"
    return f"b = {base:.10g}"


def raised(number: int) -> str:
    """A number as an exponent.

    >>> "10" + raised(12)
    '10¹²'
    """
    return str(number).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))


def ticks(length: int) -> list[int]:
    """Powers of ten below the length.

    >>> ticks(4096)
    [1, 10, 100, 1000]
    """
    return [10**k for k in range(4) if 10**k < length]
