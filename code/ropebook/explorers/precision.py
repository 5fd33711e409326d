"""The explorer of chapter *An efficient rotation* that shows tables of cosines and sines which were rounded on the way."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook.explorers import Choice, Even, Explorer, Real, Whole, still
from ropebook.explorers.heatmap import picture_of
from ropebook.sinusoidal import inv_freq

MOST_DIMS = 512
MOST_COUNT = 128
MOST_FIRST = 10_000_000
DTYPES = ("float64", "float32", "bfloat16", "float16")
STAGES = ("result", "frequencies", "positions", "everything")


class Precision(Explorer):
    """The cosines and sines of neighbouring positions: exact, and rounded to a type on the way.

    ``dtype``: float64, float32, bfloat16 or float16. ``rounded``: what is rounded to it besides the result: nothing
    ("result"), "frequencies", "positions", or "everything": these two and the angles too. ``first``: the first
    position, 0 to 10⁷. ``count``: how many positions, 8 to 128. ``dim``: even, 2 to 512. ``base``: 1 to 10⁷. Bad values
    raise ``TraitError``.

    >>> figure = Precision(dtype="bfloat16", rounded="positions", first=256, count=64)
    >>> figure.compute(figure.dials())["different"]
    33
    """

    script = "precision.js"

    dtype = Choice(
        DTYPES,
        "bfloat16",
        label="Type",
        note="With 53, 24, 8 and 11 binary digits.",
    )
    rounded = Choice(
        STAGES,
        "everything",
        label="What is rounded",
        note="Only the result; or the frequencies θᵢ too; or the positions too; or both of them and the angles.",
        more=True,
    )
    first = Whole(
        1000,
        min=0,
        max=MOST_FIRST,
        log=True,
        label="First position",
        below="positions are counted from 0",
        above="float32 would soon merge positions too",
        note="An arrow key is one position, a page key twice as far.",
        more=True,
    )
    count = Whole(
        64,
        min=8,
        max=MOST_COUNT,
        log=True,
        label="Positions shown",
        below="fewer show no pattern",
        above="rows would be thinner than a pixel",
        note="One row for each.",
        more=True,
    )
    dim = Even(
        32,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="columns would be thinner than a pixel",
        note="A cosine and a sine for each pair.",
    )
    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all columns would be flat",
        note="Pair i turns by θᵢ = b^(−2i/d) radians per position.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Two tables of cosines and sines as pictures, one row for each of many neighbouring positions: exact on the "
            "left, rounded on the right, where neighbouring rows merge into bands. Beside them, for each position, the "
            "largest error of any cosine."
        )

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """The tables ``exact`` and ``cells`` (count · dim numbers, position by position: cosines, then sines); the
        positions as they were ``used``; for each, the largest error of any cosine, and whether its row is ``fresh``,
        not equal to the one before; how many are; how many positions are ``lost``, for their angle is not finite
        (their numbers are 0 here); the largest error of all."""
        exact = tables(dials, "float64")
        used, cells = positions_of(dials), tables(dials, dials["dtype"])
        lost = int((~used.isfinite()).sum())
        kept = dials["count"] - lost  # what is lost comes last
        used[kept:] = 0
        cells[kept:] = 0
        half = dials["dim"] // 2
        errors = (cells - exact).abs()[:, :half].amax(-1)
        errors[kept:] = 0
        fresh = torch.ones(dials["count"], dtype=torch.int64)
        fresh[1:] = (cells[1:] != cells[:-1]).any(-1)
        return {
            "exact": exact.flatten().tolist(),
            "cells": cells.flatten().tolist(),
            "used": used.tolist(),
            "errors": errors.tolist(),
            "fresh": fresh.tolist(),
            "different": int(fresh.sum()),
            "lost": lost,
            "error": errors.max().item(),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A cosine is at most 1; positions, and what is counted, must be equal."""
        one = ("exact", "cells", "errors", "error")
        return {
            name: 1.0 if name in one else 0.0 for name in Precision.compute(dials)
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The two tables, and the largest error of each row beside them."""
        data = self.compute(self.dials())
        lefts, top, width, tall = (70, 372), 72, 220, 260
        start, end = 622, 730  # of the errors
        kept = self.count - data["lost"]

        def y(row: float) -> float:
            return top + row / self.count * tall

        def x(error: float) -> float:
            return start + max(0.0, math.log(error / 1e-9) / math.log(2e9)) * (
                end - start
            )

        rows = data["different"] - (data["lost"] > 0)
        heads = [
            (lefts[0], "Exact", "Blue above 0, orange below"),
            (lefts[1], self.dtype, f"{rows} different rows of {self.count}"),
            (start, "Error of cosines", f"at most {data['error']:.2g}"),
        ]
        parts = []
        for left, title, note in heads:
            parts.append(still.text(left, 14, title, style=still.BOLD))
            parts.append(still.text(left, 34, note, fill="muted"))
        parts.append(
            still.text(lefts[1], 52, f"rounded: {self.rounded}", fill="muted")
        )
        for left, name, shown in zip(
            lefts, ("exact", "cells"), (self.count, kept), strict=True
        ):
            cells = np.reshape(data[name], (self.count, self.dim))[:shown]
            if shown:
                parts += picture_of(cells, left, top, width, y(shown) - top)
            for word, share in (("cos", 0.25), ("sin", 0.75)):
                middle = left + share * width
                parts.append(
                    still.text(middle, top + tall + 18, word, "middle", "muted")
                )
        if kept < self.count:
            parts.append(
                still.rect(
                    lefts[1], y(kept), width, y(self.count) - y(kept), "grid"
                )
            )
            middle = lefts[1] + width / 2
            parts.append(
                still.text(
                    middle, (y(kept) + top + tall) / 2 + 5, "not a number", "middle"
                )
            )
        parts.append(still.text(lefts[0] - 8, 52, "position", "end", "muted"))
        parts.append(still.text(lefts[1] - 8, 52, "as used", "end", "muted"))
        free = 0.0  # below the last number
        for row, position in enumerate(data["used"][:kept]):
            middle = y(row + 0.5) + 4
            if data["fresh"][row] and middle >= free:
                numbers = (self.first + row, int(position))
                for left, number in zip(lefts, numbers, strict=True):
                    parts.append(
                        still.text(left - 8, middle, f"{number}", "end", "muted")
                    )
                free = middle + 16
        edge = "".join(
            f"V{y(row):.1f}H{x(max(error, 1e-9)):.1f}V{y(row + 1):.1f}"
            for row, error in enumerate(data["errors"][:kept])
        )
        parts.append(
            still.path(f"M{start},{top}{edge}H{start}Z", "neg", opacity=0.55)
        )
        for level, words in ((1e-8, "10⁻⁸"), (1e-4, "10⁻⁴"), (1.0, "1")):
            parts.append(
                still.line([(x(level), top), (x(level), top + tall)], "grid")
            )
            parts.append(
                still.text(x(level), top + tall + 18, words, "middle", "muted")
            )
        return 740, top + tall + 26, parts


def positions_of(dials: dict[str, Any]) -> torch.Tensor:
    """The positions as the angles see them: (count,) float64, those that float16 cannot hold infinite."""
    positions = dials["first"] + torch.arange(dials["count"], dtype=torch.float64)
    if dials["rounded"] in ("positions", "everything"):
        positions = positions.to(getattr(torch, dials["dtype"])).double()
    return positions


def tables(dials: dict[str, Any], dtype: str) -> torch.Tensor:
    """Cosines and sines side by side, (count, dim) float64, rounded to ``dtype`` wherever the dials say so.

    Cosine and sine themselves are computed in float64 and rounded once: what is left is the error of the angles.
    """
    as_dtype, stage = getattr(torch, dtype), dials["rounded"]
    frequencies = inv_freq(dials["dim"], dials["base"])
    positions = positions_of({**dials, "dtype": dtype})
    if stage in ("frequencies", "everything"):
        frequencies = frequencies.to(as_dtype).double()
    angles = positions[:, None] * frequencies
    if stage == "everything":  # one rounding: the product of two rounded numbers
        angles = (
            positions.to(as_dtype)[:, None] * frequencies.to(as_dtype)
        ).double()
    return torch.cat([angles.cos(), angles.sin()], -1).to(as_dtype).double()
