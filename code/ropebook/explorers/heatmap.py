"""The explorer of chapter *Sinusoidal positions* that shows the encoding as a picture, with the distance kernel."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook.explorers import Even, Explorer, Real, Switch, Whole, still
from ropebook.sinusoidal import (
    angles,
    concatenated_order,
    distance_kernel,
    encoding,
    turns,
    wavelengths,
)

MOST_DIMS = 512
MOST_LENGTH = 4096
MOST_COLUMNS = 640
"""Of the picture; where there are more positions, a column blends several."""


class Heatmap(Explorer):
    """The encoding of the positions 0 … length − 1 as a heatmap, and the distance kernel from a reference position.

    ``base``: 1 to 10⁷. ``dim``: even, 2 to 512. ``length``: 1 to 4096. ``reference``: 0 to length − 1 (a length that
    becomes too short takes it along). ``interleaved``: the rows in the vector's order, sine and cosine of each pair in
    turn; if not, all sines and then all cosines. Bad values raise ``TraitError``.

    >>> figure = Heatmap(length=100, reference=50)
    >>> round(figure.compute(figure.dials())["kernel"][50], 12)
    1.0
    >>> Heatmap(dim=7)
    Traceback (most recent call last):
        ...
    traitlets.traitlets.TraitError: dim must be an even integer >= 2 and <= 512, got 7
    """

    script = "heatmap.js"

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
        64,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="more rows than the picture has",
        note="Even: one sine and one cosine per pair.",
    )
    length = Whole(
        256,
        min=1,
        max=MOST_LENGTH,
        log=True,
        label="Length",
        below="a text has at least one position",
        above="longer pictures show only means",
        note="Positions 0 to length − 1.",
        more=True,
    )
    reference = Whole(
        128,
        min=0,
        max=MOST_LENGTH - 1,
        label="Reference position",
        below="positions are counted from 0",
        above="the longest text ends there",
        note="Beyond the length it becomes the last position.",
    )
    interleaved = Switch(
        False,
        label="Interleaved",
        note="Rows in the vector’s order, sine and cosine of each pair in turn; or all sines first. The same numbers.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The sinusoidal encoding as a picture, one column per position and one row per entry: fast waves in the "
            "first rows, slower and slower ones below. Under it the similarity of each position to a reference "
            "position: a peak there, and ripples that die away on both sides."
        )

    @traitlets.validate("reference")
    def _valid_reference(self, proposal: dict) -> int:
        if proposal["value"] >= self.length:
            raise traitlets.TraitError(
                f"reference must be an integer >= 0 and <= {self.length - 1}, for length is {self.length}, "
                f"got {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.observe("length")
    def _fit_reference(self, _: dict) -> None:
        self.reference = min(self.reference, self.length - 1)

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """The picture's cells row by row (rows · columns numbers; a column stands for ``per`` positions, see
        :func:`blends`); K(m − reference)/(d/2) for each position m; the wavelengths of the pairs; how many pairs make a
        full turn by the last position."""
        base, dim, length = dials["base"], dials["dim"], dials["length"]
        cells, per = blends(dials)
        return {
            "cells": cells.ravel().tolist(),
            "rows": dim,
            "columns": cells.shape[1],
            "per": per,
            "kernel": (
                distance_kernel(distances(dials), dim, base) / (dim / 2)
            ).tolist(),
            "wavelengths": wavelengths(dim, base).tolist(),
            "turned": int((turns(length - 1, dim, base) >= 1).sum()),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A cell is a weighted mean of sines or cosines, the kernel a mean of cosines; a wavelength is one term."""
        cosines = angles(distances(dials), dials["dim"], dials["base"]).cos()
        return {
            "cells": blends(dials, size=True)[0].ravel().tolist(),
            "rows": 0.0,
            "columns": 0.0,
            "per": 0.0,
            "kernel": cosines.abs().mean(-1).tolist(),
            "wavelengths": wavelengths(dials["dim"], dials["base"]).tolist(),
            "turned": 0.0,
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The picture, under it the curve, with one axis of positions."""
        left, top, width, tall, curve_top, curve = 46, 52, 680, 224, 338, 110
        bold, floor = "font-weight:600", curve_top + curve
        data = self.compute(self.dials())
        cells = np.reshape(data["cells"], (data["rows"], data["columns"]))
        per = data["per"]
        columns = (
            f"blends of {4 * per - per % 2} positions" if per > 1 else "positions"
        )
        order = "entries in turn" if self.interleaved else "sines, then cosines"
        formula = (
            f"Σ cos θᵢΔ over d/2 = {self.dim // 2}, where Δ = m − {self.reference}"
        )
        parts = [
            still.text(0, 14, "The encoding", style=bold),
            still.text(
                0,
                34,
                f"Columns: {columns}. Rows: {order}. Blue above 0, orange below.",
                fill="muted",
            ),
            *picture_of(cells, left, top, width, tall),
            still.text(
                0,
                curve_top - 36,
                f"Similarity to position {self.reference}",
                style=bold,
            ),
            still.text(0, curve_top - 16, formula, fill="muted"),
        ]
        named = (
            [(0.5, "entry")]
            if self.interleaved
            else [(0.25, "sines"), (0.75, "cosines")]
        )
        for share, name in named:
            x, y = left - 14, top + share * tall
            turned = f"transform:rotate(-90deg);transform-origin:{x:g}px {y:g}px"
            parts.append(
                still.text(x, y, name, anchor="middle", fill="muted", style=turned)
            )
        for level in (-1, 0, 1):
            y = curve_top + (1 - level) / 2 * curve
            parts.append(
                still.line(
                    [(left, y), (left + width, y)], "grid" if level else "muted"
                )
            )
            parts.append(
                still.text(
                    left - 8,
                    y + 4,
                    f"{level}".replace("-", "−"),
                    anchor="end",
                    fill="muted",
                )
            )
        buckets = np.array_split(
            np.array(data["kernel"]), min(self.length, width // 2)
        )
        edges = np.cumsum([0, *map(len, buckets)])
        places = left + (edges[:-1] + edges[1:]) / 2 * width / self.length
        above, below = (
            [floor - (pick(bucket) + 1) / 2 * curve for bucket in buckets]
            for pick in (np.max, np.min)
        )
        band = [
            *zip(places, above, strict=True),
            *zip(places[::-1], below[::-1], strict=True),
        ]
        parts.append(still.line(band, "1", 1.5))
        places = {
            m: left + (m + 0.5) / self.length * width
            for m in (self.reference, 0, self.length - 1)
        }
        for m, x in places.items():
            if (
                m == self.reference or abs(x - places[self.reference]) > 40
            ):  # else the numbers would overlap
                parts.append(
                    still.text(x, floor + 20, str(m), anchor="middle", fill="muted")
                )
        return left + width + 24, floor + 28, parts


def distances(dials: dict[str, Any]) -> torch.Tensor:
    """Δ = m − reference for every position m."""
    return torch.arange(dials["length"]) - dials["reference"]


def blends(dials: dict[str, Any], size: bool = False) -> tuple[np.ndarray, int]:
    """The picture, (dim, columns) in float64, rows in its order, and ``per``, the number of positions of a column.

    Up to 640 positions have a column each. More than that are blended: a column with its middle at c is the mean of all
    positions m with |m − c| < 2·per, also those before 0 and after the last, with the weights cos²(π(m − c)/(4·per))
    (Hann's window), so that waves too short for the columns vanish instead of turning up as slower ones. ``size``: of
    the encoding's absolute values.
    """
    dim, length = dials["dim"], dials["length"]
    per = math.ceil(length / MOST_COLUMNS)
    middles = (
        torch.arange(math.ceil(length / per), dtype=torch.float64) * per
        + (per - 1) / 2
    )
    reach = 2 * per if per > 1 else 1
    # To reach whole positions, offsets are whole where the middles are, else halves.
    offsets = (
        np.arange(1 - reach, reach) if per % 2 else np.arange(0.5 - reach, reach)
    )
    weights = np.cos(np.pi * offsets / (2 * reach)) ** 2
    total = np.zeros((len(middles), dim))
    for offset, weight in zip(
        offsets.tolist(), weights / weights.sum(), strict=True
    ):
        values = encoding(
            middles + offset, dim, dials["base"], torch.float64
        ).numpy()
        total += weight * (np.abs(values) if size else values)
    order = (
        np.arange(dim) if dials["interleaved"] else concatenated_order(dim).numpy()
    )
    return total.T[order], per


def picture_of(
    cells: np.ndarray, x: float, y: float, width: float, height: float
) -> list[str]:
    """Cells between −1 and 1 as two layers of the page's colours, each under a mask: a raster image, yet in the theme's
    colours. Large pictures are reduced to 128 rows and 320 columns, by means."""
    for axis, most in ((0, 128), (1, 320)):
        size = cells.shape[axis]
        starts = np.arange(0, size, -(-size // most))
        counts = np.expand_dims(np.diff([*starts, size]), 1 - axis)
        cells = np.add.reduceat(cells, starts, axis=axis) / counts
    parts = []
    for name, layer in (("pos", cells), ("neg", -cells)):
        png = grey_png(np.clip(layer, 0, 1))
        box = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
        mask = f"mask-{zlib.crc32(png + box.encode()):08x}"
        image = f'href="data:image/png;base64,{base64.b64encode(png).decode()}" preserveAspectRatio="none"'
        parts.append(
            f'<g style="fill:{still.colour(name)}"><mask id="{mask}" maskUnits="userSpaceOnUse" {box}>'
            f'<image {box} {image} style="image-rendering:pixelated"/></mask><rect {box} mask="url(#{mask})"/></g>'
        )
    return parts


def grey_png(levels: np.ndarray) -> bytes:
    """A PNG of grey levels 0 … 1, (rows, columns), in 16 steps: small, and fine enough for a still picture."""
    rows, columns = levels.shape
    steps = np.rint(levels * 15).astype(np.uint8)
    steps = np.pad(steps, ((0, 0), (0, columns % 2)))
    packed = steps[:, 0::2] << 4 | steps[:, 1::2]
    lines = np.pad(
        packed, ((0, 0), (1, 0))
    ).tobytes()  # each line begins with its filter: 0, none

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data))
            + kind
            + data
            + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", columns, rows, 4, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )
