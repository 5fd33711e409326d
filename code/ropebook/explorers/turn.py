"""The explorer of chapter *The rotation, derived* that turns a vector through its positions, pair by pair."""

from __future__ import annotations

import math
from typing import Any

import torch
import traitlets

from ropebook.derivation import rotate, rotation
from ropebook.explorers import Even, Explorer, Real, Whole, still
from ropebook.sinusoidal import angles

MOST_DIMS = 512
MOST_POSITION = 4096
TRAIL = 16
"""As many of the last positions are marked on the circle."""
SPAN = 48
"""As many positions the curves of the coordinates show."""
FINE = 8
"""Samples of a curve per position; a power of 2."""


class Turn(Explorer):
    """The vector q = (1, 2, 3, …, d) turned to a position: one pair in its plane, and all pairs as small dials.

    ``position``: 0 to 4096. ``base``: 1 to 10⁷. ``dim``: even, 2 to 512. ``pair``: 0 to dim/2 − 1 (a ``dim`` that
    becomes too small takes it along). With base 16/π² = 1.62114 and dim 4, pair 1 turns by π/4 per position. Bad values
    raise ``TraitError``.

    >>> figure = Turn(dim=4, position=2, pair=0)  # the chapter's example by hand
    >>> [round(x, 4) for x in figure.compute(figure.dials())["turned"]]
    [-2.2347, 0.077, 2.9194, 4.0592]
    """

    script = "turn.js"

    position = Whole(
        5,
        min=0,
        max=MOST_POSITION,
        log=True,
        label="Position m",
        below="positions are counted from 0",
        above="by then the figure has shown everything",
        note="Pair i turns by mθᵢ radians.",
    )
    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all pairs would stand still",
        note="θᵢ = b^(−2i/d) radians per position.",
    )
    dim = Even(
        16,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="the dials would be too small",
        note="The vector has d/2 pairs.",
    )
    pair = Whole(
        1,
        min=0,
        max=MOST_DIMS // 2 - 1,
        label="Pair i",
        below="pairs are counted from 0",
        above="the longest vector has no more pairs",
        note="Beyond the last pair it becomes the last.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The plane of one pair: an arrow at position 0, the same arrow turned counter-clockwise to a position, and "
            "dots where it pointed at the positions before; beside it the matrix that turns it and its two coordinates "
            "as waves; below, a small dial for each pair, from the fastest to the slowest."
        )

    @traitlets.validate("pair")
    def _valid_pair(self, proposal: dict) -> int:
        return pair_within(self.dim, proposal["value"])

    @traitlets.observe("dim")
    def _fit_pair(self, _: dict) -> None:
        self.pair = min(self.pair, self.dim // 2 - 1)

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """``angles`` of all pairs at ``position``; the vector at position 0 (``start``) and ``turned``. Of the pair
        chosen: the ``matrix`` (row by row), ``before`` and ``after``, its length at both; where it pointed at the last
        positions, from ``trailStart`` on (``trail``: x, y, x, y, …); both coordinates around the position, from
        ``first`` on, with 8 samples to a position (``waves``). How many pairs are ``young`` (no full turn yet)."""
        position, base, dim, pair = (
            dials[name] for name in ("position", "base", "dim", "pair")
        )
        start = vector(dim)
        turned = rotate(start, position, base)
        radians = angles(position, dim, base)
        both = slice(2 * pair, 2 * pair + 2)
        first, at = window(position)
        trail_start = max(0, position - TRAIL + 1)
        return {
            "angles": radians.tolist(),
            "young": int((radians < 2 * math.pi).sum()),
            "start": start.tolist(),
            "turned": turned.tolist(),
            "matrix": rotation(radians[pair]).flatten().tolist(),
            "before": start[both].norm().item(),
            "after": turned[both].norm().item(),
            "trailStart": trail_start,
            "trail": rotate(start, torch.arange(trail_start, position + 1), base)[
                :, both
            ]
            .flatten()
            .tolist(),
            "first": first,
            "waves": rotate(start, at, base)[:, both].T.tolist(),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A turned coordinate has two terms, each at most as long as the pair; whole numbers must be equal."""
        data = Turn.compute(dials)
        length = data["before"]
        exact = dict.fromkeys(("young", "trailStart", "first"), 0.0)
        pairs = vector(dials["dim"]).view(-1, 2).norm(dim=-1)
        return {
            "angles": data["angles"],
            "start": data["start"],
            "turned": pairs.repeat_interleave(2).tolist(),
            "matrix": [1.0] * 4,
            "before": length,
            "after": length,
            "trail": length,
            "waves": length,
            **exact,
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The plane, beside it the product and the coordinates, the small dials below."""
        data = self.compute(self.dials())
        pairs = self.dim // 2
        which = ["The only pair", "Both pairs"][pairs - 1 :][:1] or [
            f"All {pairs} pairs"
        ]
        marked = (
            f"Orange: no full turn yet ({data['young']} of {pairs})"
            if data["young"]
            else "Every pair has made a full turn"
        )
        parts = [
            *plane(self, data),
            *product(self, data, 390),
            *coordinates(self, data, 390, 160),
            still.text(
                0, 380, f"{which[0]} at position {self.position}", style=still.BOLD
            ),
            still.text(0, 399, marked, fill="muted"),
            *small_dials(self, data, 414, 730, 100),
        ]
        return 740, 520, parts


def pair_within(dim: int, pair: int) -> int:
    """``pair``, if a vector of length ``dim`` has it; else ``TraitError``."""
    if pair >= dim // 2:
        raise traitlets.TraitError(
            f"pair must be an integer >= 0 and <= {dim // 2 - 1}, for dim is {dim}, got {pair}"
        )
    return pair


def vector(dim: int) -> torch.Tensor:
    """The vector that is turned, q = (1, 2, 3, …, dim), float64.

    >>> vector(4)
    tensor([1., 2., 3., 4.], dtype=torch.float64)
    """
    return torch.arange(1, dim + 1, dtype=torch.float64)


def window(position: int) -> tuple[int, torch.Tensor]:
    """The first position that the curves show, and all their samples (SPAN · FINE + 1), float64.

    >>> window(100)[0], window(100)[1][[0, -1]].tolist()
    (76, [76.0, 124.0])
    """
    first = max(0, position - SPAN // 2)
    return first, first + torch.arange(SPAN * FINE + 1, dtype=torch.float64) / FINE


def plane(figure: Turn, data: dict[str, Any]) -> list[str]:
    """The plane of the pair, 300 square under its title: where it pointed, and where it points."""
    pair, centre, radius = figure.pair, (160.0, 204.0), 128.0
    length, angle = data["before"], data["angles"][pair]

    def place(x: float, y: float, share: float = 1.0) -> tuple[float, float]:
        return (
            centre[0] + share * x / length * radius,
            centre[1] - share * y / length * radius,
        )

    start, tip = (
        data[name][2 * pair : 2 * pair + 2] for name in ("start", "turned")
    )
    began, ends = place(*start, 0.36), place(*tip, 0.36)
    bow, large = 0.36 * radius, int(angle % (2 * math.pi) > math.pi)
    arc = f"M{began[0]:.2f},{began[1]:.2f}A{bow:.2f},{bow:.2f} 0 {large} 0 {ends[0]:.2f},{ends[1]:.2f}"
    whole = still.ring(centre, bow) if angle >= 2 * math.pi else ""
    parts = [
        still.text(
            0,
            14,
            f"Pair {pair}: entries {2 * pair} and {2 * pair + 1}",
            style=still.BOLD,
        ),
        still.text(
            0,
            33,
            f"Turned by {figure.position}θ{still.lowered(pair)} = {angle:.4g} rad = {math.degrees(angle):.1f}°",
            fill="muted",
        ),
        still.line(
            [place(-1.1 * length, 0), place(1.1 * length, 0)],
            "grid",
        ),
        still.line([place(0, -1.1 * length), place(0, 1.1 * length)], "grid"),
        still.path(still.ring(centre, radius), "grid", 1.5),
        still.path(f"{arc}L{centre[0]:g},{centre[1]:g}Z", "1", opacity=0.12),
        still.path(whole + arc, "1", 1.5),
        still.arrow(centre, place(*start), "muted", 2),
        still.arrow(centre, place(*tip), "1", 3, 13),
    ]
    points = [
        (data["trailStart"] + k, *place(*xy), *place(*xy, 1 + 15 / radius))
        for k, xy in enumerate(
            zip(data["trail"][0::2], data["trail"][1::2], strict=True)
        )
    ]
    parts += [still.dot(x, y, 4, "1") for _, x, y, _, _ in points]
    named: list[tuple[float, float]] = []
    for number, _, _, x, y in reversed(
        points
    ):  # the newest first, and only where there is room
        if all(math.hypot(x - a, y - b) >= 24 for a, b in named):
            newest = number == figure.position
            look = (
                {"fill": "1", "style": still.BOLD} if newest else {"fill": "muted"}
            )
            parts.append(still.text(x, y + 4, f"{number}", anchor="middle", **look))
            named.append((x, y))
    return parts


def product(figure: Turn, data: dict[str, Any], left: float) -> list[str]:
    """The matrix times the pair at position 0 is the pair at m."""
    both = slice(2 * figure.pair, 2 * figure.pair + 2)
    a, b, c, d = map(still.exact, data["matrix"])
    decimals = 3 if data["before"] < 100 else 1
    turned = [still.exact(value, decimals) for value in data["turned"][both]]
    columns = [
        (66, (a, c), ("ink", "ink")),
        (131, (b, d), ("ink", "ink")),
        (192, [f"{value:g}" for value in data["start"][both]], ("ink", "ink")),
        (302, turned, ("3", "4")),
    ]
    parts = [
        still.text(
            left,
            14,
            f"From position 0 to position {figure.position}",
            style=still.BOLD,
        ),
        still.text(left + 218, 78, "=", anchor="middle", style="font-size:16px"),
    ]
    for right, values, fills in columns:
        for row, (value, fill) in enumerate(zip(values, fills, strict=True)):
            parts.append(
                still.text(
                    left + right,
                    62 + 30 * row,
                    value,
                    anchor="end",
                    fill=fill,
                    style="font-size:16px",
                )
            )
    for first, last in ((0, 140), (152, 202), (234, 312)):
        for edge, inner in ((left + first, 5), (left + last, -5)):
            parts.append(
                still.line(
                    [
                        (edge + inner, 42),
                        (edge, 42),
                        (edge, 100),
                        (edge + inner, 100),
                    ],
                    "muted",
                    1.25,
                )
            )
    return parts


def coordinates(
    figure: Turn, data: dict[str, Any], left: float, top: float
) -> list[str]:
    """Both coordinates against the position, and where they are now."""
    first, length, pair = data["first"], data["before"], figure.pair
    decimals = 0 if length.is_integer() or length > 100 else 2
    width, high, low = 330.0, top + 46, top + 156

    def place(position: float, value: float) -> tuple[float, float]:
        return (
            round(left + 40 + (position - first) / SPAN * (width - 40), 1),
            round((high + low) / 2 - value / length * (low - high) / 2, 1),
        )

    parts = [
        still.text(
            left, top, "Its two coordinates at each position", style=still.BOLD
        ),
        still.text(left, top + 20, f"entry {2 * pair}", fill="3"),
        still.text(left + 80, top + 20, f"entry {2 * pair + 1}", fill="4"),
    ]
    for level in (-length, 0.0, length):
        y = place(first, level)[1]
        parts.append(still.line([(left + 40, y), (left + width, y)], "grid"))
        parts.append(
            still.text(
                left + 32,
                y + 4,
                still.exact(level, decimals if level else 0),
                anchor="end",
                fill="muted",
            )
        )
    for colour, curve in zip("34", data["waves"], strict=True):
        points = [
            place(first + at / FINE, value)
            for at, value in enumerate(curve)
            if at % 2 == 0
        ]
        parts.append(still.line(points, colour, 2))
    x = place(figure.position, 0)[0]
    parts.append(still.line([(x, high - 4), (x, low + 4)], "ink", 1.5))
    for colour, value in zip(
        "34", data["turned"][2 * pair : 2 * pair + 2], strict=True
    ):
        parts.append(still.dot(*place(figure.position, value), 4.5, colour))
    for number in sorted({first, figure.position, first + SPAN}):
        if (
            number == figure.position or abs(number - figure.position) > 4
        ):  # else the numbers would overlap
            parts.append(
                still.text(
                    place(number, 0)[0],
                    low + 20,
                    f"{number}",
                    anchor="middle",
                    fill="muted",
                )
            )
    return parts


def small_dials(
    figure: Turn, data: dict[str, Any], top: float, width: float, height: float
) -> list[str]:
    """A dial for each pair, as large as fit: where it began, where it points, and how far it has come."""
    pairs = figure.dim // 2
    size = 90
    while math.ceil(pairs / (width // size)) * size > height:
        size -= 1
    columns, radius = int(width // size), 0.42 * size
    rings = dict.fromkeys(("grid", "1", "2"), "")
    hands = dict.fromkeys(("muted", "1", "2"), "")
    for i, angle in enumerate(data["angles"]):
        x, y = (i % columns + 0.5) * size, top + (i // columns + 0.5) * size
        length = math.hypot(*data["start"][2 * i : 2 * i + 2])
        (x0, y0), (x1, y1) = (
            [value * radius / length for value in data[name][2 * i : 2 * i + 2]]
            for name in ("start", "turned")
        )
        old = angle >= 2 * math.pi
        rings["1" if old else "grid"] += still.ring((x, y), radius)
        if not old:
            arc = f"A{radius:.1f},{radius:.1f} 0 {int(angle > math.pi)} 0 {x + x1:.1f},{y - y1:.1f}"
            rings["2"] += f"M{x + x0:.1f},{y - y0:.1f}{arc}"
        hands["muted"] += f"M{x:.1f},{y:.1f}l{0.84 * x0:.1f},{-0.84 * y0:.1f}"
        hands["1" if old else "2"] += (
            f"M{x:.1f},{y:.1f}l{0.84 * x1:.1f},{-0.84 * y1:.1f}"
        )
    chosen = (
        (figure.pair % columns + 0.5) * size,
        top + (figure.pair // columns + 0.5) * size,
    )
    return [
        *(still.path(d, name, 1.5) for name, d in rings.items() if d),
        *(
            still.path(d, name, 1 if name == "muted" else max(1.25, radius / 12))
            for name, d in hands.items()
            if d
        ),
        still.path(still.ring(chosen, radius + 3), "ink", 2),
    ]
