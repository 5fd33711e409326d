"""The explorer of chapter *Sinusoidal positions* that puts binary digits, clock hands and sinusoids side by side."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook.explorers import Even, Explorer, Real, Whole, still
from ropebook.sinusoidal import (
    binary_digits,
    binary_waves,
    encoding,
    turns,
    wavelengths,
)

MOST_DIMS = 512
MOST_POSITION = 4096
MOST_SPAN = 4096
BITS = 13
"""Binary digits; 4096 has so many."""
MOST_WAVES = BITS
"""As many sinusoids as digits are drawn, the others only as hands."""
FINE_SAMPLES = 512
"""In short windows curves are sampled between the positions too, with about so many samples."""


class Clocks(Explorer):
    """A position in three writings: binary digits, the hands of clocks that turn by θ_i per position, and sinusoids.

    ``position``: 0 to 4096. ``base``: 1 to 10⁷. ``dim``: even, 2 to 512; there are dim/2 hands. ``span``: how many
    positions around ``position`` the waves show, 8 to 4096. Bad values raise ``TraitError``.

    >>> figure = Clocks(position=6)
    >>> figure.compute(figure.dials())["digits"][:4]
    [0, 1, 1, 0]
    """

    script = "clocks.js"

    position = Whole(
        100,
        min=0,
        max=MOST_POSITION,
        label="Position m",
        below="positions are counted from 0",
        above="one more digit would be needed soon",
        note="An arrow key is one position.",
    )
    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all hands would stand still",
        note="With b = 2^(d/2) each hand is half as fast as the one before, as digits are.",
    )
    dim = Even(
        16,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="the clocks would be too small",
        note="One hand for each pair of entries.",
    )
    span = Whole(
        64,
        min=8,
        max=MOST_SPAN,
        log=True,
        label="Positions shown",
        below="fewer show no wave",
        above="more show only bands",
        note="Around the position, from 0 at the earliest.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The binary digits of the positions around one position as square waves of periods 2, 4, 8 and so on, each "
            "with the sinusoid inside it; beside them the sinusoids of the encoding, from fast to slow; below, a clock "
            "hand for each pair, with a ring that shows how far it has turned since position 0."
        )

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """Digits and pairs at ``position``: ``digits``, ``turns`` of each hand since position 0, ``encoding``, how many
        hands are ``young`` (no full turn yet), ``wavelengths``. And around it, in the ``span`` positions from ``start``
        on: the digits of each position (``squares``); the sinusoids inside them (``bitWaves``) and those of the pairs
        ``shown`` (``waves``), with ``fine`` samples to a position."""
        position, base, dim, span = (
            dials[name] for name in ("position", "base", "dim", "span")
        )
        turned = turns(position, dim, base)
        start, fine, shown = window(dials)
        bits, waves = curves(dials)
        whole = torch.arange(start, start + span)
        return {
            "start": start,
            "fine": fine,
            "shown": shown,
            "digits": binary_digits(position, BITS).tolist(),
            "squares": binary_digits(whole, BITS).T.tolist(),
            "bitWaves": bits.tolist(),
            "waves": waves.tolist(),
            "turns": turned.tolist(),
            "encoding": encoding(position, dim, base, torch.float64).tolist(),
            "young": int((turned < 1).sum()),
            "wavelengths": wavelengths(dim, base).tolist(),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """Every number is one term, its own; whole numbers must be equal."""
        data = Clocks.compute(dials)
        exact = ("start", "fine", "shown", "digits", "squares", "young")
        return {
            name: 0.0 if name in exact else np.abs(value).tolist()
            for name, value in data.items()
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """Digits and their waves, the waves of the pairs beside them, the hands below."""
        data = self.compute(self.dials())
        start, shown = data["start"], data["shown"]
        colours = ["2" if turn < 1 else "1" for turn in data["turns"]]
        heads = (
            f"Binary digits: {self.position:b}",
            "Square waves, and the sinusoid inside each",
        )
        left = Panel(0, start, self.span, BITS, *heads)
        for j, digit in enumerate(data["digits"]):
            left.name(j, f"{2 ** (j + 1)}", f"{digit}", "ink" if digit else "muted")
            left.squares(j, np.array(data["squares"][j]))
            left.curve(
                j, 2.0 ** (j + 1), lambda at, j=j: binary_waves(at, BITS)[:, j], "1"
            )
        which = (
            "Every pair"
            if len(shown) == len(colours)
            else f"{len(shown)} of {len(colours)} pairs"
        )
        right = Panel(
            390,
            start,
            self.span,
            len(shown),
            "Sinusoids: sin mθᵢ",
            f"{which}; orange: no full turn yet",
        )
        for k, i in enumerate(shown):
            length, value = data["wavelengths"][i], data["encoding"][2 * i]
            right.name(
                k, short(length), f"{value:.2f}".replace("-", "−"), colours[i]
            )
            right.curve(k, length, lambda at, i=i: self.pair(at, i), colours[i])
        marked = "Every hand has made a full turn since position 0"
        if data["young"]:
            marked = f"Orange: less than one turn since position 0 ({data['young']} of {len(colours)})"
        hands = zip(
            data["turns"],
            data["encoding"][0::2],
            data["encoding"][1::2],
            colours,
            strict=True,
        )
        parts = [
            *left.parts,
            *right.parts,
            *(
                part
                for panel in (left, right)
                for part in panel.marker(self.position)
            ),
            still.text(0, 380, "Clock hands: tips at (sin, cos)", style=still.BOLD),
            still.text(0, 399, marked, fill="muted"),
            *clock_faces(list(hands), 0, 412, 730, 110),
        ]
        return 740, 530, parts

    def pair(self, at: torch.Tensor, i: int) -> torch.Tensor:
        """The sines of pair i at the positions ``at``."""
        return encoding(at, self.dim, self.base, torch.float64)[..., 2 * i]


def window(dials: dict[str, Any]) -> tuple[int, int, list[int]]:
    """The first position shown, the samples per position, and the pairs that are drawn as waves: all, or 13 spread
    evenly from the first to the last."""
    start = max(0, dials["position"] - dials["span"] // 2)
    pairs = dials["dim"] // 2
    few = (
        range(pairs)
        if pairs <= MOST_WAVES
        else (k * (pairs - 1) // (MOST_WAVES - 1) for k in range(MOST_WAVES))
    )
    fine = 1 << (
        max(1, FINE_SAMPLES // dials["span"]).bit_length() - 1
    )  # a power of 2: places are not rounded
    return start, fine, list(few)


def curves(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The sinusoids inside the digits, (13, samples), and those of the pairs shown, (pairs shown, samples); float64.

    The samples lie in the middles of ``fine`` equal parts of each position, from half a position before it to half a
    position after: with one part, at the position.
    """
    start, fine, shown = window(dials)
    at = (
        start
        - 0.5
        + (torch.arange(dials["span"] * fine, dtype=torch.float64) + 0.5) / fine
    )
    sines = encoding(at, dials["dim"], dials["base"], torch.float64)[:, 0::2]
    return binary_waves(at, BITS).T, sines[:, shown].T


class Panel:
    """Rows of waves in the still figure: names on the left, values on the right; collects the SVG in ``parts``."""

    top, floor = 62, 316

    def __init__(
        self, left: float, start: int, span: int, rows: int, title: str, note: str
    ) -> None:
        self.left, self.right = left + 54, left + 290
        self.start, self.span = start, span
        self.pitch = (self.floor - self.top) / rows
        self.parts = [
            still.text(left, 14, title, style=still.BOLD),
            still.text(left, 33, note, fill="muted"),
        ]

    def x(self, position: float) -> float:
        return self.left + (position - self.start + 0.5) / self.span * (
            self.right - self.left
        )

    def y(self, row: int, value: float) -> float:
        return (
            self.top
            + (row + 0.5) * self.pitch
            - value * (min(30, self.pitch) / 2 - 2.5)
        )

    def name(self, row: int, name: str, value: str, fill: str) -> None:
        self.parts.append(
            still.text(
                self.left - 8, self.y(row, 0) + 4, name, anchor="end", fill="muted"
            )
        )
        self.parts.append(
            still.text(self.right + 8, self.y(row, 0) + 4, value, fill=fill)
        )

    def squares(self, row: int, digits: np.ndarray) -> None:
        """A block for each run of ones; where there are more than 100, a paler one for all."""
        runs = np.flatnonzero(np.diff(digits, prepend=0, append=0)).reshape(-1, 2)
        many = len(runs) > 100
        runs = np.array([[0, len(digits)]]) if many else runs
        low, high = self.y(row, -1), self.y(row, 1)
        edges = [
            (self.x(self.start + first - 0.5), self.x(self.start + end - 0.5))
            for first, end in runs
        ]
        blocks = "".join(
            f"M{a:.1f},{low:.1f}V{high:.1f}H{b:.1f}V{low:.1f}Z" for a, b in edges
        )
        if blocks:
            self.parts.append(
                still.path(blocks, "muted", opacity=0.15 if many else 0.3)
            )

    def curve(
        self,
        row: int,
        period: float,
        wave: Callable[[torch.Tensor], torch.Tensor],
        colour: str,
    ) -> None:
        """A curve with ten points to a period; where that makes more than 330, the band from the least to the greatest
        value at whole positions, in 60 parts."""
        points = max(3, math.ceil(10 * self.span / period) + 1)
        if points <= 330:
            at = (
                self.start
                - 0.5
                + torch.linspace(0, self.span, points, dtype=torch.float64)
            )
            outline = list(zip(at.tolist(), wave(at).tolist(), strict=True))
        else:
            at = torch.arange(self.start, self.start + self.span)
            parts = list(
                zip(
                    np.array_split(at.numpy(), 60),
                    np.array_split(wave(at).numpy(), 60),
                    strict=True,
                )
            )
            outline = [(p.mean(), v.max()) for p, v in parts] + [
                (p.mean(), v.min()) for p, v in parts[::-1]
            ]
        points = "L".join(
            f"{self.x(position):.1f},{self.y(row, value):.1f}"
            for position, value in outline
        )
        self.parts.append(still.path(f"M{points}", colour, width=1.5))

    def marker(self, position: int) -> list[str]:
        x = self.x(position)
        words = still.text(
            x,
            self.floor + 22,
            f"position {position}",
            anchor="middle",
            fill="muted",
        )
        return [
            still.line([(x, self.top - 4), (x, self.floor + 4)], "ink", 1.5),
            words,
        ]


def clock_faces(
    hands: list[tuple], x: float, y: float, width: float, height: float
) -> list[str]:
    """Clocks in rows, as large as fit; for each hand its turns, the sine and cosine where it points, and its colour."""
    size = 96
    while math.ceil(len(hands) / (width // size)) * size > height:
        size -= 1
    radius, per_row = 0.42 * size, int(width // size)
    rings, lines = (
        dict.fromkeys(("grid", "1", "2"), ""),
        dict.fromkeys(("1", "2"), ""),
    )
    for i, (turn, sin, cos, colour) in enumerate(hands):
        cx, cy = x + (i % per_row + 0.5) * size, y + (i // per_row + 0.5) * size
        top, arc = f"M{cx:.1f},{cy - radius:.1f}", f"a{radius:.1f},{radius:.1f} 0"
        rings["grid" if turn < 1 else colour] += (
            f"{top}{arc} 1 1 0,{2 * radius:.1f}{arc} 1 1 0,{-2 * radius:.1f}"
        )
        if turn < 1:
            rings[colour] += (
                f"{top}{arc} {int(turn > 0.5)} 1 {radius * sin:.1f},{radius * (1 - cos):.1f}"
            )
        lines[colour] += (
            f"M{cx:.1f},{cy:.1f}l{0.84 * radius * sin:.1f},{-0.84 * radius * cos:.1f}"
        )
    parts = [still.path(d, colour, width=1.5) for colour, d in rings.items() if d]
    return parts + [
        still.path(d, colour, width=max(1.0, radius / 16))
        for colour, d in lines.items()
        if d
    ]


def short(length: float) -> str:
    """A length of 6 positions or more in few characters.

    >>> short(6.2832), short(62.832), short(628.32), short(62832.0), short(628320.0)
    ('6.28', '62.8', '628', '62832', '6.3e5')
    """
    if length >= 1e5:
        return f"{length:.1e}".replace("e+0", "e")
    return f"{length:.{2 if length < 10 else 1 if length < 100 else 0}f}"
