"""The explorer of chapter *Longer texts* that shows a cache of keys under a base that grows with the text."""

from __future__ import annotations

import math
from typing import Any

import torch
import traitlets

from ropebook.explorers import Even, Explorer, Real, Whole, still
from ropebook.explorers.ladder import LEAST_BASE, MOST_DIMS, stroked
from ropebook.extrapolation import DynamicNTK, ntk_base
from ropebook.sinusoidal import inv_freq

MOST_LENGTH = 4096
MOST_FACTOR = 16
MOST_KEYS = 256
"""Keys whose error is computed; of longer texts as many, evenly spaced."""
TOP_ERROR = 1.7
"""Where the axis of the errors ends: a little above √2, round which they stay where nothing is left of the scores."""
COLUMNS = 32
"""Tokens in a row of the still figure."""


class Timelapse(Explorer):
    """The keys of a text in a cache, each as it was rotated when it came, while dynamic NTK raises the base with the text.

    ``length``: how long the text is now, 1 to ``room``. ``room``: how many tokens the figure has place for, 64 to 4096 (one
    that becomes too small takes the length along). ``trained_length``: L, 16 to 2048. ``factor``: s, 1 to 16. ``base``: 500
    to 10⁷. ``dim``: even, 4 to 512. Bad values raise ``TraitError``.

    >>> figure = Timelapse(length=64, trained_length=64)
    >>> max(figure.compute(figure.dials())["errors"])
    0.0
    >>> figure.length = 160
    >>> round(figure.compute(figure.dials())["scale"], 2)
    2.5
    """

    script = "timelapse.js"

    length = Whole(
        160,
        min=1,
        max=MOST_LENGTH,
        log=True,
        label="Length now n",
        below="a text has a token",
        above="there is room for no more",
        note="Tokens so far; the last is the query. Not beyond the room.",
    )
    room = Whole(
        256,
        min=64,
        max=MOST_LENGTH,
        log=True,
        label="Room",
        below="fewer show no growth",
        above="more cells would be too small to see",
        note="Tokens that the figure has cells for.",
        more=True,
    )
    trained_length = Whole(
        64,
        min=16,
        max=2048,
        log=True,
        label="Trained length L",
        below="too short for a text",
        above="the text would never outgrow it",
        note="Up to here the base is b; then it grows.",
        more=True,
    )
    factor = Real(
        1.0,
        min=1.0,
        max=MOST_FACTOR,
        log=True,
        label="Factor s",
        below="the base would fall",
        above="the base would leap",
        note="Dynamic NTK’s: the scale is s·n/L − (s − 1). Plain: 1.",
        more=True,
    )
    base = Real(
        10_000.0,
        min=LEAST_BASE,
        max=1e7,
        log=True,
        label="Base b",
        below="no model goes lower",
        above="no model goes further",
        note="Up to the trained length.",
    )
    dim = Even(
        64,
        min=4,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="NTK’s exponent d/(d − 2) has no value at 2",
        above="wider heads show nothing new",
        note="Of a head: d/2 pairs.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The tokens of a text as cells in rows, each in the colour of the base that its key was rotated with when it "
            "came: one colour up to the trained length, then a new one with every token; the last cell is the new query, "
            "with the newest base. Below, how far its score with each cached key is off."
        )

    @traitlets.validate("length")
    def _valid_length(self, proposal: dict) -> int:
        if proposal["value"] > self.room:
            raise traitlets.TraitError(
                f"length must be an integer >= 1 and <= {self.room}, for room is {self.room}, got {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.observe("room")
    def _fit_length(self, _: dict) -> None:
        self.length = min(self.length, self.room)

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """The effective ``scale`` that dynamic NTK has at ``length``; the ``bases`` that the tokens were rotated with, one
        for each. Of the ``keys`` chosen, by position: the root mean square of the score's error with the query at the
        end, in units of the score's own spread, for random q and k (``errors``, 0 to 2; unrelated scores have √2); their
        root mean square, ``error``."""
        base, dim, length = dials["base"], dials["dim"], dials["length"]
        method = DynamicNTK(dials["trained_length"], dials["factor"])
        scales = [method.effective_scale(n) for n in range(1, length + 1)]
        keys = sampled_keys(length)
        errors = 2 * (angle_errors(keys, dials) / 2).sin()
        errors = errors.square().mean(-1).sqrt()
        return {
            "scale": scales[-1],
            "bases": [ntk_base(base, dim, scale) for scale in scales],
            "keys": keys,
            "errors": errors.tolist(),
            "error": errors.square().mean().sqrt().item(),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A score has the spread 1, and so have both terms of an error."""
        data = Timelapse.compute(dials)
        return {
            "scale": data["scale"],
            "bases": data["bases"],
            "keys": 0.0,
            "errors": [1.0] * len(data["errors"]),
            "error": 1.0,
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The tokens in rows, the colours' bases, the errors below."""
        data = self.compute(self.dials())
        bases, length = data["bases"], self.length
        new = f"{bases[-1]:,.0f}".replace(",", " ")
        parts = [
            still.text(
                0, 14, f"Cached keys of a text of {length} tokens", style=still.BOLD
            ),
            still.text(
                0, 33, f"The query, outlined, has base {new}",
                fill="muted",
            ),
        ]  # fmt: skip
        columns = COLUMNS if self.room <= 512 else 4 * COLUMNS
        rows = math.ceil(self.room / columns)
        pitch = 730 / columns
        top, gap = 48, pitch / 6
        for colour, opacity, d in cells(self, bases, columns, top, pitch, gap):
            parts.append(still.path(d, colour, opacity=opacity))
        x, y = (length - 1) % columns * pitch, top + (length - 1) // columns * pitch
        side = pitch - gap
        outline = [
            (x, y),
            (x + side, y),
            (x + side, y + side),
            (x, y + side),
            (x, y),
        ]
        parts.append(still.line(outline, "ink", 2))
        title = top + rows * pitch + 26
        floor = title + 140
        left, right, high = 56, 730, title + 44

        def across(key: float) -> float:
            return left + key / max(1, self.room - 1) * (right - left)

        def height(error: float) -> float:
            return floor - error / TOP_ERROR * (floor - high)

        parts += [
            still.text(0, title, "Error of the query’s score", style=still.BOLD),
            still.text(
                0, title + 19, "In units of the scores’ spread. √2: unrelated",
                fill="muted",
            ),
        ]  # fmt: skip
        for error, name in ((0, "0"), (1, "1"), (math.sqrt(2), "√2")):
            parts += [
                still.line([(left, height(error)), (right, height(error))], "grid"),
                still.text(left - 8, height(error) + 4, name, "end", "muted"),
            ]
        trained = min(self.trained_length, self.room - 1)
        parts.append(
            stroked([(across(trained), high), (across(trained), floor)], "muted", 1.25, "2 4")
        )  # fmt: skip
        points = [
            (across(key), height(error))
            for key, error in zip(data["keys"], data["errors"], strict=True)
        ]
        parts += [
            stroked(points, "2", 2),
            still.line([(left, floor), (right, floor)], "muted"),
            still.text(across(0), floor + 18, "0", "middle", "muted"),
            still.text(across(self.room - 1), floor + 18, f"{self.room - 1}", "end", "muted"),
            still.text(across((self.room - 1) / 2), floor + 36, "position of the key", "middle", "muted"),
        ]  # fmt: skip
        if 30 < across(trained) - left < right - left - 60:
            parts.append(
                still.text(across(trained), floor + 18, f"L = {trained}", "middle", "muted")
            )  # fmt: skip
        return 740, floor + 44, parts


def cells(
    figure: Timelapse,
    bases: list[float],
    columns: int,
    top: float,
    pitch: float,
    gap: float,
) -> list[tuple[str, float, str]]:
    """The tokens in rows as (colour, opacity, path), a path for each shade: blue for the trained base, the deeper orange
    the larger it is, grey where none is yet. Neighbours of one shade become one block where they are many."""
    method = DynamicNTK(figure.trained_length, figure.factor)
    highest = ntk_base(figure.base, figure.dim, method.effective_scale(figure.room))
    few = figure.room <= 512
    paths: dict[tuple[str, float], str] = {}
    looks = [look(base, figure.base, highest) for base in bases]
    looks += [("grid", 0.35)] * (figure.room - len(bases))
    for row in range(0, figure.room, columns):
        at = row
        while at < min(row + columns, figure.room):
            same = at + 1
            while (
                not few and looks[same : same + 1] == [looks[at]] and same % columns
            ):
                same += 1
            x, y = (at - row) * pitch, top + row // columns * pitch
            wide, high = (same - at) * pitch - gap, pitch - gap
            cell = f"M{x:.1f},{y:.1f}h{wide:.1f}v{high:.1f}h-{wide:.1f}Z"
            paths[looks[at]] = paths.get(looks[at], "") + cell
            at = same
    return [(*shade, d) for shade, d in paths.items()]


def look(base: float, lowest: float, highest: float) -> tuple[str, float]:
    """The colour and opacity of a base.

    >>> look(10.0, 10.0, 1000.0), look(1000.0, 10.0, 1000.0)
    (('1', 0.7), ('2', 1.0))
    """
    if base == lowest:
        return "1", 0.7
    return "2", 0.3 + 0.7 * round(20 * level(base, lowest, highest)) / 20


def sampled_keys(length: int) -> list[int]:
    """The positions 0 … length − 1, or 256 of them from the first to the last.

    >>> sampled_keys(3), sampled_keys(511)[:3], len(sampled_keys(511)), sampled_keys(511)[-1]
    ([0, 1, 2], [0, 2, 4], 256, 510)
    """
    count = min(length, MOST_KEYS)
    return [k * (length - 1) // max(1, count - 1) for k in range(count)]


def angle_errors(keys: list[int], dials: dict[str, Any]) -> torch.Tensor:
    """n(θ_i(n) − θ_i(now)): how far each pair of each cached key is turned too far, (keys, dim/2), float64, radians."""
    theta = inv_freq(dials["dim"], dials["base"])
    method = DynamicNTK(dials["trained_length"], dials["factor"])
    now, _ = method(theta, dials["length"])
    came = torch.stack([method(theta, key + 1)[0] for key in keys])
    return torch.tensor(keys, dtype=torch.float64)[:, None] * (came - now)


def level(base: float, lowest: float, highest: float) -> float:
    """Where a base stands between two others by equal ratios, 0 to 1.

    >>> level(100.0, 10.0, 1000.0)
    0.5
    """
    return math.log(base / lowest) / math.log(highest / lowest)
