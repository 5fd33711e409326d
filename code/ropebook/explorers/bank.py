"""The explorer of chapter *Distance* with a clock hand for each pair: which of them turn once within a context."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import traitlets

from ropebook.decay import turned_pairs
from ropebook.explorers import Even, Explorer, Real, Whole, still
from ropebook.explorers.sweep import raised
from ropebook.sinusoidal import angles, turns, wavelengths

MOST_DIMS = 512
MOST_LENGTH = 1_000_000


class Bank(Explorer):
    """A clock hand for each of the dim/2 pairs, turned by mθ_i, and which of them make a full turn within a context.

    ``position``: m, 0 to 10⁶, also beyond the context. ``base``: 1 to 10⁷. ``dim``: even, 2 to 512. ``length``: the context L,
    2 to 10⁶: positions 0 to L − 1. Bad values raise ``TraitError``.

    >>> figure = Bank(base=10_000, dim=128, length=4096)
    >>> figure.compute(figure.dials())["turned"]
    46
    """

    script = "bank.js"

    position = Whole(
        1000,
        min=0,
        max=MOST_LENGTH,
        log=True,
        label="Position m",
        below="positions are counted from 0",
        above="no text here is longer",
        note="It may lie beyond the context.",
        more=True,
    )
    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all hands would stand still",
        note="Pair i turns by θᵢ = b^(−2i/d) radians per position.",
    )
    dim = Even(
        128,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="the clocks would be too small",
        note="One hand for each pair of entries.",
    )
    length = Whole(
        4096,
        min=2,
        max=MOST_LENGTH,
        log=True,
        label="Context L",
        below="one position alone turns nothing",
        above="no model here reads more",
        note="Positions 0 to L − 1.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A clock for each pair of dimensions, from fast to slow. The hands of the fast ones have turned many times; "
            "those of the slow ones, in orange, do not make one turn within the context, and a sector shows how far they "
            "come. Below, the wavelengths on a logarithmic strip: orange beyond the line of the context."
        )

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """Of every pair: its ``turns`` at the position and its turns by the ``last`` position of the context, its hand's
        ``tips`` (cosine and sine in turn) and ``wavelengths``. How many have ``turned`` within the context, and how many
        hands stand at an ``unseen`` angle: one that no position of the context gives them."""
        position, base, dim, length = (
            dials[name] for name in ("position", "base", "dim", "length")
        )
        radians = angles(position, dim, base)
        now, last = turns(position, dim, base), turns(length - 1, dim, base)
        unseen = (last < 1) & (now % 1 > last)
        return {
            "turns": now.tolist(),
            "last": last.tolist(),
            "tips": [
                value
                for tip in zip(
                    radians.cos().tolist(), radians.sin().tolist(), strict=True
                )
                for value in tip
            ],
            "wavelengths": wavelengths(dim, base).tolist(),
            "turned": turned_pairs(length, dim, base),
            "unseen": int(unseen.sum()),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """Every number is one term, its own; a tip lies on a circle of radius 1; counts must be equal."""
        data = Bank.compute(dials)
        return {
            **data,
            "tips": np.ones_like(data["tips"]).tolist(),
            "turned": 0.0,
            "unseen": 0.0,
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The clocks, and under them the strip of wavelengths."""
        data = self.compute(self.dials())
        pairs = self.dim // 2
        slow = pairs - data["turned"]
        note = f"Every hand makes a full turn within L = {self.length}"
        if slow:
            note = f"Orange: no full turn within L = {self.length} ({slow} of {pairs}); sectors: as far as they come"
        if data["unseen"]:
            note = note.partition(";")[0] + "; violet: now at a new angle"
        title = f"The hands at position {self.position}"
        clocks, bottom = faces(data, 0, 48, 730, 300)
        parts = [
            still.text(0, 14, title, style=still.BOLD),
            still.text(0, 34, note, fill="muted"),
            *clocks,
            still.text(0, bottom + 36, "Wavelengths", style=still.BOLD),
            *strip(data, self.length, 20, 710, bottom + 84),
        ]
        return 740, bottom + 148, parts


def faces(
    data: dict[str, Any], left: float, top: float, width: float, height: float
) -> tuple[list[str], float]:
    """Clocks in rows of equal length, as large as fit, and where they end. A hand that never completes a turn has a grey
    circle with a sector as far as it comes."""
    pairs = len(data["turns"])
    size = 96
    while math.ceil(pairs / (width // size)) * size > height:
        size -= 1
    rows = math.ceil(pairs / (width // size))
    per_row, radius = math.ceil(pairs / rows), 0.42 * size
    rings, hands = dict.fromkeys(("grid", "1"), ""), dict.fromkeys("124", "")
    sectors = ""
    for i, (turn, last) in enumerate(zip(data["turns"], data["last"], strict=True)):
        x = left + (i % per_row + 0.5) * size
        y = top + (i // per_row + 0.5) * size
        rings["1" if last >= 1 else "grid"] += still.ring((x, y), radius)
        if last < 1:
            across, up = (
                radius * part(2 * math.pi * last) for part in (math.cos, math.sin)
            )
            sectors += (
                f"M{x:.1f},{y:.1f}h{radius:.1f}A{radius:.1f},{radius:.1f} 0 {int(last > 0.5)} 0 "
                f"{x + across:.1f},{y - up:.1f}Z"
            )
        cos, sin = data["tips"][2 * i : 2 * i + 2]
        colour = "1" if last >= 1 else "4" if turn % 1 > last else "2"
        hands[colour] += (
            f"M{x:.1f},{y:.1f}l{0.9 * radius * cos:.1f},{-0.9 * radius * sin:.1f}"
        )
    thick = max(1.25, radius / 12)
    return [
        *(still.path(d, name, 1.25) for name, d in rings.items() if d),
        *([still.path(sectors, "2", opacity=0.3)] if sectors else []),
        *(still.path(d, name, thick) for name, d in hands.items() if d),
    ], top + rows * size


def strip(
    data: dict[str, Any], length: int, left: float, right: float, y: float
) -> list[str]:
    """The wavelengths along a line, by equal ratios, with a mark at the last position of the context."""
    low, high = 4.0, 1.25 * max(data["wavelengths"][-1], length, 64)

    def x(value: float) -> float:
        return left + math.log(value / low) / math.log(high / low) * (right - left)

    parts = [still.line([(left, y + 14), (right, y + 14)], "muted")]
    for name in ("1", "2"):
        marks = "".join(
            f"M{x(one):.1f},{y - 12:.1f}v24"
            for one, last in zip(data["wavelengths"], data["last"], strict=True)
            if (last >= 1) == (name == "1")
        )
        if marks:
            parts.append(still.path(marks, name, 1.5))
    at = x(max(length - 1, low))
    middle = min(max(at, left + 40), right - 40)
    parts += [
        still.line([(at, y - 22), (at, y + 20)], "ink", 2),
        still.text(middle, y - 28, f"L = {length}", "middle"),
    ]
    for power in range(1, 8):
        if 10**power < high:
            words = f"10{raised(power)}" if power > 2 else f"{10**power}"
            where = (x(10**power), y + 34)
            parts.append(still.text(*where, words, "middle", "muted"))
    words = "positions for one turn, by equal ratios"
    parts.append(still.text((left + right) / 2, y + 56, words, "middle", "muted"))
    return parts
