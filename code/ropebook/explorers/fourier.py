"""The explorer of chapter *The complex plane*: the score as a function of distance is a Fourier sum, one wave per pair."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook.complex_plane import amplitudes, key_for, score_at
from ropebook.explorers import Even, Explorer, Real, Whole, still
from ropebook.explorers.clocks import short
from ropebook.explorers.draws import normals
from ropebook.sinusoidal import angles, wavelengths

MOST_DIMS = 512
MOST_DISTANCE = 4096
MOST_DRAWS = 20
MOST_ROWS = 16
"""Waves that are drawn."""
COLUMNS = 720
"""The waves are computed at the ends of so many columns, from distance 0 to the longest."""
FINE_SAMPLES = 512
"""In short ranges the sum is sampled between the whole distances too, with at most so many samples."""


class Fourier(Explorer):
    """The score of a query and the key k = R_peak q at every distance: a sum of one wave per pair, all in phase at ``peak``.

    ``peak``: the distance that scores highest, 0 to ``span``. ``distance``: where the products of the pairs are added up,
    0 to ``span`` (a span that becomes too short takes both along). ``span``: the longest distance shown, 16 to 4096.
    ``base``: 1 to 10⁷. ``dim``: even, 2 to 512. ``summed``: how many pairs are added, from the fastest on, 1 to 256; from
    dim/2 on all. ``draw``: the query, 0 for ones, 1 to 20 for random numbers. Bad values raise ``TraitError``.

    >>> figure = Fourier(peak=77, distance=77)
    >>> data = figure.compute(figure.dials())
    >>> round(data["score"], 9) == round(data["highest"], 9) == figure.dim
    True
    """

    script = "fourier.js"

    peak = Whole(
        100,
        min=0,
        max=MOST_DISTANCE,
        log=True,
        label="Peak at Δ",
        below="distances are counted from 0 here",
        above="the longest range ends there",
        note="The key is the query turned by so many places. Not beyond the longest Δ.",
    )
    distance = Whole(
        60,
        min=0,
        max=MOST_DISTANCE,
        log=True,
        label="Distance Δ",
        below="distances are counted from 0 here",
        above="the longest range ends there",
        note="Where the products are added up. An arrow key is one step.",
        more=True,
    )
    span = Whole(
        200,
        min=16,
        max=MOST_DISTANCE,
        log=True,
        label="Longest Δ shown",
        below="fewer show no wave",
        above="more show only bands",
        note="From 0 to this one. Peak and Δ stay within it.",
        more=True,
    )
    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all waves would be flat",
        note="Pair i turns by θᵢ = b^(−2i/d) radians per position.",
    )
    dim = Even(
        32,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="wider heads show nothing new",
        note="One wave for each pair of entries.",
    )
    summed = Whole(
        MOST_DIMS // 2,
        min=1,
        max=MOST_DIMS // 2,
        log=True,
        label="Pairs summed",
        below="a sum needs one pair",
        above="the widest head has so many",
        note="From the fastest on. From d/2 on, all of them.",
        more=True,
    )
    draw = Whole(
        0,
        min=0,
        max=MOST_DRAWS,
        label="Query",
        below="0 stands for ones",
        above="that many queries are ready",
        note="0: all entries are 1, and the waves of one height. 1, 2, …: random entries.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The score of a query and a key against their distance, as a sum of waves: above, one wave for each pair of "
            "dimensions, from fast to slow, all with their crest at one distance; below, their sum, which is highest "
            "there; beside them, the products of the pairs at another distance, bar by bar, adding up to the score."
        )

    @traitlets.validate("peak", "distance")
    def _valid_distance(self, proposal: dict) -> int:
        name, value = proposal["trait"].name, proposal["value"]
        if value > self.span:
            raise traitlets.TraitError(
                f"{name} must be an integer >= 0 and <= {self.span}, for span is {self.span}, got {value}"
            )
        return value

    @traitlets.observe("span")
    def _fit_distances(self, _: dict) -> None:
        self.peak = min(self.peak, self.span)
        self.distance = min(self.distance, self.span)

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """Of every pair: its ``size`` |q_i|², the height of its wave; its product at ``distance``; its wavelength. The
        ``score`` there, and the ``highest`` anywhere, of the first ``summed`` pairs. And as curves, from distance 0 to
        ``span``: the ``waves`` of the pairs ``shown`` at the ends of 720 columns; and the ``total``, with ``fine``
        samples to a step."""
        base, distance = dials["base"], dials["distance"]
        a, b = waves_of(dials)
        within = torch.arange(len(a)) < dials["summed"]
        at, fine = samples(dials)
        shown = rows(len(a))
        products = products_at(distance, a, b, dials)
        size = torch.hypot(a, b)
        return {
            "shown": shown,
            "size": size.tolist(),
            "wavelengths": wavelengths(dials["dim"], base).tolist(),
            "products": products.tolist(),
            "score": (products * within).sum().item(),
            "highest": (size * within).sum().item(),
            "waves": products_at(columns(dials), a, b, dials)[:, shown].T.tolist(),
            "fine": fine,
            "total": score_at(at, a * within, b * within, base).tolist(),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A product has two terms, |a cos Δθ| and |b sin Δθ|; sums have those of all pairs."""
        a, b = waves_of(dials)
        data = Fourier.compute(dials)
        within = torch.arange(len(a)) < dials["summed"]
        at, _ = samples(dials)
        here, ends, all_ = (
            products_at(place, a, b, dials, size=True)
            for place in (dials["distance"], columns(dials), at)
        )
        return {
            "fine": 0.0,
            "shown": 0.0,
            "size": data["size"],
            "wavelengths": data["wavelengths"],
            "products": here.tolist(),
            "score": (here * within).sum().item(),
            "highest": data["highest"],
            "waves": ends[:, data["shown"]].T.tolist(),
            "total": (all_ * within).sum(-1).tolist(),
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The waves, their sum below, the products beside them."""
        data = self.compute(self.dials())
        pairs, shown = len(data["size"]), data["shown"]
        used = data["products"][: self.summed]
        left, right, bars, end = 54, 470, 510, 730
        waves = products_at(
            samples(self.dials())[0], *waves_of(self.dials()), self.dials()
        )[:, shown].T.numpy()
        top, floor, sum_top, sum_floor = 64, 352, 404, 510
        pitch = (floor - top) / len(shown)
        some = "" if len(shown) == pairs else f"{len(shown)} of {pairs} pairs. "
        parts = [
            still.text(
                0, 14, "One wave for each pair of dimensions", style=still.BOLD
            ),
            still.text(
                0, 34, f"{some}Every crest at Δ = {self.peak}", fill="muted"
            ),
            still.text(
                bars, 14, f"The products at Δ = {self.distance}", style=still.BOLD
            ),
            still.text(bars, 34, "Blue adds, orange takes away", fill="muted"),
            still.text(left - 8, top - 8, "λ", anchor="end", fill="muted"),
            still.text(
                0,
                floor + 32,
                f"The score: the sum of {len(used)} of {pairs}",
                style=still.BOLD,
            ),
        ]

        def x(distance: float) -> float:
            return left + distance / self.span * (right - left)

        marks = [(self.peak, "muted"), (self.distance, "ink")]
        for upper, lower in ((top - 4, floor), (sum_top - 6, sum_floor)):
            for place, stroke in marks:
                parts.append(
                    still.line([(x(place), upper), (x(place), lower)], stroke, 1.5)
                )
        tallest = max(data["size"][i] for i in shown)
        for k, (i, wave) in enumerate(zip(shown, waves, strict=True)):
            middle = top + (k + 0.5) * pitch
            reach = (pitch / 2 - 2) / tallest
            length = data["wavelengths"][i]
            points, closed = outline(wave, length * data["fine"])
            places = [
                (x(place / data["fine"]), middle - reach * value)
                for place, value in points
            ]
            colour = "1" if i < self.summed else "grid"
            product = data["products"][i]
            parts += [
                still.line([(left, middle), (right, middle)], "grid"),
                *drawn(places, closed, colour),
                still.text(
                    left - 8,
                    middle + 4,
                    short(length),
                    anchor="end",
                    fill="muted",
                ),
            ]
            if i < self.summed:
                here = (x(self.distance), middle - reach * product)
                parts.append(still.dot(*here, 3, sign(product)))

        whole = sum(data["size"])
        steps = np.cumsum([0.0, *used])
        low = min(min(data["total"]), steps.min(), -whole / 4)

        def y(score: float) -> float:
            return sum_floor - (score - low) / (whole - low) * (sum_floor - sum_top)

        def across(score: float) -> float:
            return bars + (score - low) / (whole - low) * (end - bars)

        fastest = data["wavelengths"][0] * data["fine"]
        points, closed = outline(np.array(data["total"]), fastest)
        curve = [(x(place / data["fine"]), y(value)) for place, value in points]
        zero = [(left, y(0)), (right, y(0))]
        parts += [
            still.line(zero, "grid"),
            *drawn(curve, closed, "1"),
            still.dot(x(self.distance), y(data["score"]), 4, sign(data["score"])),
            still.line([(across(0), top - 4), (across(0), floor)], "muted"),
        ]
        pitch = (floor - top) / pairs
        for i, product in enumerate(used):
            start, stop = sorted((across(steps[i]), across(steps[i + 1])))
            upper = top + (i + 0.2) * pitch
            fill = sign(product)
            parts.append(
                still.rect(start, upper, stop - start, 0.6 * pitch, fill, radius=0)
            )
        score = f"= {data['score']:.2f}".replace("-", "−")
        place = min(across(data["score"]), end - 24)
        parts.append(
            still.text(place, floor + 16, score, "middle", style=still.BOLD)
        )
        at_peak = f"of {data['highest']:.2f} at the peak"
        parts.append(still.text(bars, sum_top + 20, at_peak, fill="muted"))
        numbers: list[int] = []
        for place in (self.distance, self.peak, 0, self.span):
            if all(abs(x(place) - x(other)) >= 34 for other in numbers):
                numbers.append(place)
                where = (x(place), sum_floor + 18)
                parts.append(still.text(*where, f"{place}", "middle", "muted"))
        middle = (left + right) / 2
        words = "distance Δ = m − n"
        parts.append(still.text(middle, sum_floor + 36, words, "middle", "muted"))
        return 740, sum_floor + 44, parts


def query(draw: int, dim: int) -> torch.Tensor:
    """Ones for draw 0, else standard normal numbers: (dim,) float64."""
    if draw == 0:
        return torch.ones(dim, dtype=torch.float64)
    return torch.from_numpy(normals(f"fourier {draw}", dim))


def waves_of(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The amplitudes a_i and b_i, each (dim/2,), of the query and the key that scores highest at ``peak``."""
    q = query(dials["draw"], dials["dim"])
    return amplitudes(q, key_for(q, dials["peak"], dials["base"]))


def products_at(
    distances: Any,
    a: torch.Tensor,
    b: torch.Tensor,
    dials: dict[str, Any],
    size: bool = False,
) -> torch.Tensor:
    """a_i cos Δθ_i + b_i sin Δθ_i for every pair: distances.shape + (dim/2,); ``size``: of the absolute values."""
    turned = angles(distances, dials["dim"], dials["base"])
    parts = (a * turned.cos(), b * turned.sin())
    return sum(part.abs() if size else part for part in parts)


def columns(dials: dict[str, Any]) -> torch.Tensor:
    """The distances at the ends of the columns: (721,) float64."""
    return torch.arange(COLUMNS + 1, dtype=torch.float64) * (
        dials["span"] / COLUMNS
    )


def samples(dials: dict[str, Any]) -> tuple[torch.Tensor, int]:
    """The distances where the sum is sampled, 0 to ``span``, and how many samples there are to a step."""
    span = dials["span"]
    # a power of 2: places are not rounded
    fine = 1 << (max(1, FINE_SAMPLES // span).bit_length() - 1)
    return torch.arange(span * fine + 1, dtype=torch.float64) / fine, fine


def rows(pairs: int) -> list[int]:
    """The pairs that are drawn as waves: all, or the middle one of each of 16 parts of the same length."""
    count = min(pairs, MOST_ROWS)
    return [(2 * k + 1) * pairs // (2 * count) for k in range(count)]


def sign(value: float) -> str:
    """The colour of what adds, or takes away."""
    return "neg" if value < 0 else "pos"


def outline(
    values: np.ndarray, period: float
) -> tuple[list[tuple[float, float]], bool]:
    """(place, value) along a curve, ten to a period; or, where that makes more than 330, around the band from the least to
    the greatest value in each of 60 parts, and True. ``period`` counts samples."""
    places = np.arange(len(values))
    points = max(3, math.ceil(10 * len(values) / period))
    if points <= 330:
        few = np.unique(np.linspace(0, len(values) - 1, points).round().astype(int))
        return list(zip(few.tolist(), values[few].tolist(), strict=True)), False
    middles = [part.mean() for part in np.array_split(places, 60)]
    parts = np.array_split(values, 60)
    there, back = (
        list(zip(middles, (pick(part) for part in parts), strict=True))
        for pick in (np.max, np.min)
    )
    return [*there, *back[::-1]], True


def drawn(
    points: list[tuple[float, float]], closed: bool, colour: str
) -> list[str]:
    """The line through the points, in tenths; with the area inside it if it is ``closed``."""
    path = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
    area = [still.path(path, colour, opacity=0.4)] if closed else []
    return [*area, still.path(path, colour, 1.5)]
