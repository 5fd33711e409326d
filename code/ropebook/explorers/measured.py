"""The explorer of chapter *Measured*: what each method did to the small models, at every position and distance."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook import extrapolation, results
from ropebook.explorers import Choice, Explorer, Switch, Whole, still
from ropebook.explorers.ladder import stroked
from ropebook.lab.data import VALUES
from ropebook.lab.evaluation import over_files

MOST_TEXT = 4096
"""Bytes of the longest text."""
PER_OCTAVE = 4
"""Bins to each doubling of the position."""
RUNS = ("rope-10000-0", "rope-10000-1")
METHODS = {
    "none": "no method",
    **{
        name: extrapolation.METHODS[name].title
        for name in ("linear", "ntk", "dynamic_ntk")
    },
    "dynamic_ntk_cached": "dynamic NTK, cached keys",
    "dynamic_ntk_anew": "dynamic NTK, keys anew",
    **{
        name: extrapolation.METHODS[name].title
        for name in ("ntk_by_parts", "yarn", "log_n", "rerope", "self_extend")
    },
}
"""What can be done to a trained model, and its name on the page."""
FACTORS = ("2", "4", "8", "16")
SCHEMES = {
    "rope-10000": ("RoPE, base 10⁴", ("ink", 2.25, "")),
    "rope-100": ("RoPE, base 100", ("1", 2, "0 4")),
    "rope-500000": ("RoPE, base 5·10⁵", ("1", 1.75, "")),
    "sinusoidal": ("sinusoidal", ("3", 1.75, "")),
    "alibi": ("ALiBi", ("4", 1.75, "")),
    "learned": ("learned", ("3", 2.25, "7 4")),
    "none": ("no positions", ("muted", 1.75, "7 4")),
}
"""The position schemes that were trained, the first the one that the others are compared with: name and look of each."""
CHOSEN = ("ink", 2.25, "")
PLAIN = ("muted", 1.75, "")
WINDOW = ("2", 2, "5 4")
"""The look of the chosen method, of the model as trained, and of the model that sees its last L bytes only."""


class Measured(Explorer):
    """The measured grid: bits per byte at each position, or what is found again at each distance, of the small models.

    ``show``: "loss" or "retrieval". ``run``: "rope-10000-0" or "rope-10000-1", the two seeds, or "schemes", all schemes as
    they were trained. ``method``: one of `METHODS`. ``factor``: s, "2", "4", "8" or "16"; a method without one ignores it.
    ``tuned``: whether the model was trained a little further with the method; where it was not, the figure shows it
    without. ``position``: 1 to 4096, where the figure is read, in retrieval the distance. Bad values raise ``TraitError``.

    The numbers are those of ``results/evaluation.json`` and ``evaluation.safetensors``; ``FileNotFoundError`` if they have
    not been made. Others of the same form can be given: ``results``, and ``curves``, bits at each position by cell.
    """

    script = "measured.js"

    show = Choice(
        {"loss": "loss by position", "retrieval": "retrieval by distance"},
        label="Show",
        note="Bits per byte of real text, or a planted value that is asked for.",
    )
    run = Choice(
        {
            "rope-10000-0": "RoPE, seed 0",
            "rope-10000-1": "RoPE, seed 1",
            "schemes": "all schemes",
        },
        label="Model",
        note="RoPE with base 10⁴ was trained twice; the others are shown as trained.",
        more=True,
    )
    method = Choice(
        METHODS,
        "yarn",
        label="Method",
        note="What is done to the trained model.",
    )
    factor = Choice(
        FACTORS,
        "4",
        label="Factor s",
        note="For texts of up to s·L bytes, s times the trained length.",
    )
    tuned = Switch(
        False,
        label="Fine-tuned",
        note="Trained a little further with the method, on longer texts.",
        more=True,
    )
    position = Whole(
        1024,
        min=1,
        max=MOST_TEXT,
        log=True,
        label="Position or distance",
        below="bytes are counted from 1",
        above="the texts end there",
        note="Where the figure is read.",
        more=True,
    )
    measured = traitlets.Dict(help="the numbers, see compact").tag(sync=True)

    def __init__(
        self,
        results: Mapping[str, Any] | None = None,
        curves: Mapping[str, np.ndarray] | None = None,
        **kwargs: Any,
    ) -> None:
        if (results is None) != (curves is None):
            raise TypeError("results and curves go together: give both or neither")
        if results is None:
            results, curves = load()
        super().__init__(measured=compact(results, curves), **kwargs)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Bits per byte at each position of long texts, for a small model that was trained on short ones: as it is, with "
            "the chosen method, and where it sees only as much text as in training, with lines at the trained length and at "
            "the wanted one. Below, the difference to the model as it is, band by band, with two standard errors."
        )

    def dials(self) -> dict[str, Any]:
        """The dials as they stand, and ``measured``, the numbers that they choose from."""
        return {**super().dials(), "measured": self.measured}

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """The keys of the ``lines`` to draw, the chosen one first, and of the one that they are compared with (``against``);
        the ``factor`` of the chosen one, 0 without, whether it is ``tuned``, and which dials have no effect (``idle``).

        For each line, at the middle of the bins ``at``, ``curves``, bits per byte; its value ``here``, in the bin ``bytes``
        (from, to); the share of values given back whole at each distance, in the long texts (``far``) with its standard
        error (``farError``), and in those of the trained length (``near``). ``spread``: of the first line, the standard
        error over files of each band. ``hereApart``: for each line but ``against``, its value here less that one's;
        ``apart``: so for each band, paired over files; ``apartError``, its standard error; ``decided``, whether it exceeds
        two of them with the same sign in both seeds. ``window``: bits in each band of the model that sees its last L bytes
        only; ``windowApart``, less those of ``against``. ``band`` and ``distance``: which of them the position is in or next
        to. None where nothing was measured.
        """
        data, position = dials["measured"], dials["position"]
        cells = data["cells"]
        schemes = dials["run"] == "schemes"
        run = RUNS[0] if schemes else dials["run"]
        against = f"{run}/none"
        chosen = against if schemes else chosen_key(dials)
        lines = (
            [key for scheme in SCHEMES if (key := f"{scheme}-0/none") in cells]
            if schemes
            else list(dict.fromkeys([chosen, against]))
        )
        parts = chosen.split("/")
        factor = int(parts[2]) if len(parts) > 2 else 0
        tuned = parts[-1] == "tuned"
        idle = [
            name
            for name, effect in (
                ("method", not schemes and parts[1] == dials["method"]),
                ("factor", factor > 0),
                ("tuned", not schemes and tuned == dials["tuned"]),
            )
            if not effect
        ]
        edges, distances = data["edges"], data["distances"]
        k = bisect_left(edges, position) - 1
        shown = [cells[key] for key in lines]
        others = [cells[key] for key in lines if key != against]
        here = [cell["bits"][k] for cell in shown]
        base = cells[against]["bits"][k]
        return {
            "lines": lines,
            "against": against,
            "factor": factor,
            "tuned": tuned,
            "idle": idle,
            "at": [
                math.sqrt((start + 1) * stop) for start, stop in pairwise(edges)
            ],
            "curves": [cell["bits"] for cell in shown],
            "here": here,
            "bytes": [edges[k] + 1, edges[k + 1]],
            "hereApart": [
                None if value is None else value - base
                for key, value in zip(lines, here, strict=True)
                if key != against
            ],
            "spread": shown[0]["error"],
            "apart": [cell["apart"] for cell in others],
            "apartError": [cell["apartError"] for cell in others],
            "decided": [cell["decided"] for cell in others],
            "window": data["windowed"][run]["bits"],
            "windowApart": data["windowed"][run]["apart"],
            "band": next(
                b for b, (_, stop) in enumerate(data["bands"]) if position <= stop
            ),
            "far": [cell["far"] for cell in shown],
            "farError": [
                [
                    None if share is None else math.sqrt(share * (1 - share) / n)
                    for share, n in zip(cell["far"], data["asked"], strict=True)
                ]
                for cell in shown
            ],
            "near": [cell["near"] for cell in shown],
            "distance": min(
                range(len(distances)),
                key=lambda d: max(distances[d] / position, position / distances[d]),
            ),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """Only the bins' middles are computed; all other entries are measured numbers, and must be the same."""
        return {"at": Measured.compute(dials)["at"]}

    def draw_still(self) -> tuple[float, float, list[str]]:
        """Loss at each position and, below, the differences; or what is found again at each distance."""
        dials, data = self.dials(), self.compute(self.dials())
        looks = {key: look_of(dials, data, key) for key in data["lines"]}
        retrieval = self.show == "retrieval"
        top, floor = 112, 362
        items = [(name_of(dials, data, key), look) for key, look in looks.items()]
        if retrieval:
            items.append(("guessing", ("2", 2, "5 4")))
        else:
            items.append((f"last {self.measured['length']} bytes only", WINDOW))
        parts = [
            still.text(0, 14, TITLES[self.show][0], style=still.BOLD),
            still.text(0, 33, TITLES[self.show][1], fill="muted"),
            *legend(items),
        ]
        draw = draw_retrieval if retrieval else draw_loss
        parts += draw(self.measured, data, looks, top, floor)
        if retrieval:
            return 740, floor + 44, parts
        parts += draw_apart(self.measured, data, looks, floor + 116, floor + 226)
        return 740, floor + 274, parts


# ---- The numbers ----


def load() -> tuple[dict, dict[str, np.ndarray]]:
    """The results of the evaluation, and bits at each position by cell. ``FileNotFoundError`` if they are not there."""
    from safetensors.numpy import load

    path = results.find("evaluation").with_suffix(".safetensors")
    if not path.is_file():
        raise FileNotFoundError(
            "evaluation.json has no evaluation.safetensors beside it"
        )
    return results.load("evaluation"), load(path.read_bytes())


def compact(
    results: Mapping[str, Any], curves: Mapping[str, Any]
) -> dict[str, Any]:
    """What a page carries of the results, numbers rounded to three decimals.

    By ``cells``, under keys such as "rope-10000-0/yarn/4/tuned": ``bits`` in each of the bins of positions that end at
    ``edges``, ``error`` over files of each band, ``apart``, ``apartError`` and ``decided`` against the model as trained
    (of a scheme: against RoPE with base 10⁴), ``far`` and ``near``, the shares found again at each of the ``distances``.
    ``ValueError`` if a text, a run or a curve is missing.
    """
    if results["text"] != MOST_TEXT:
        raise ValueError(
            f"results must be of texts of {MOST_TEXT} bytes, got {results['text']}"
        )
    cells = {cell_key(cell): cell for cell in results["cells"]}
    missing = [f"cell {run}/none" for run in RUNS if f"{run}/none" not in cells]
    missing += [f"windowed {run}" for run in RUNS if run not in results["windowed"]]
    missing += [f"curve {c['id']}" for c in cells.values() if c["id"] not in curves]
    if missing:
        raise ValueError(f"results and curves must hold {missing[0]}")
    length = results["length"]
    edges = bin_edges(MOST_TEXT)
    apart = {}
    for key, cell in cells.items():
        run = (
            cell["run"] if cell["run"] in RUNS else f"rope-10000-{cell['run'][-1]}"
        )
        if key not in {f"{run}/none" for run in RUNS}:
            apart[key] = difference(cell, cells[f"{run}/none"])
    nothing = [None] * len(results["bands"])
    return {
        "length": length,
        "edges": edges,
        "bands": [list(band) for band in results["bands"]],
        "distances": list(results["distances"]),
        "asked": results["cells"][0]["asked"][str(MOST_TEXT)],
        "chance": 1 / VALUES,
        "cells": {
            key: {
                "bits": binned(curves[cell["id"]], edges),
                "error": rounded(cell["error"]),
                "apart": rounded(apart[key][0]) if key in apart else nothing,
                "apartError": rounded(apart[key][1]) if key in apart else nothing,
                "decided": decided(key, apart, len(nothing)),
                "far": rounded(cell["retrieval"][str(MOST_TEXT)]),
                "near": rounded(cell["retrieval"][str(length)]),
            }
            for key, cell in cells.items()
        },
        "windowed": {
            run: {
                "bits": rounded(results["windowed"][run]["bits"]),
                "apart": rounded(
                    np.subtract(
                        results["windowed"][run]["bits"],
                        cells[f"{run}/none"]["bits"],
                    )
                ),
            }
            for run in RUNS
        },
    }


def cell_key(cell: Mapping[str, Any]) -> str:
    """The name of a cell in `compact`'s result.

    >>> cell_key({"run": "rope-10000-0", "method": "yarn", "factor": 4, "tuned": True, "cache": None})
    'rope-10000-0/yarn/4/tuned'
    >>> cell_key({"run": "rope-10000-1", "method": "dynamic_ntk", "factor": None, "tuned": False, "cache": False})
    'rope-10000-1/dynamic_ntk_anew'
    """
    kind = {None: "", True: "_cached", False: "_anew"}[cell["cache"]]
    return key_of(cell["run"], cell["method"] + kind, cell["factor"], cell["tuned"])


def key_of(
    run: str, method: str, factor: object = None, tuned: bool = False
) -> str:
    """
    >>> key_of("rope-10000-0", "yarn", 4)
    'rope-10000-0/yarn/4'
    """
    parts = [run, method, str(factor or ""), "tuned" if tuned else ""]
    return "/".join(filter(None, parts))


def chosen_key(dials: Mapping[str, Any]) -> str:
    """The cell that the dials ask for; if there is none, that without fine-tuning, without the factor, or without the
    method."""
    run, method, factor = dials["run"], dials["method"], dials["factor"]
    keys = [key_of(run, method, factor, True)] if dials["tuned"] else []
    keys += [
        key_of(run, method, factor),
        key_of(run, method),
        key_of(run, "none"),
    ]
    return next(key for key in keys if key in dials["measured"]["cells"])


def bin_edges(text: int) -> list[int]:
    """Where the bins of positions end, the first after 0: four to each doubling, from 8 on. Bin k holds the bytes after
    ``edges[k]`` up to ``edges[k + 1]``, both counted from 1.

    >>> bin_edges(16)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16]
    """
    steps = round(math.log2(text) * PER_OCTAVE)
    return sorted({0, *(round(2 ** (k / PER_OCTAVE)) for k in range(steps + 1))})


def binned(curve: Any, edges: list[int]) -> list[float | None]:
    """The mean of a curve in each bin, over the bytes that were measured, rounded; None where none was."""
    whole = np.full(edges[-1], math.nan)
    whole[: len(curve)] = curve
    known = ~np.isnan(whole)
    counts = np.add.reduceat(known.astype(float), edges[:-1])
    sums = np.add.reduceat(np.where(known, whole, 0), edges[:-1])
    return rounded(sums / np.where(counts, counts, math.nan))


def rounded(values: Any) -> list[float | None]:
    """To three decimals; None stays, and NaN becomes None.

    >>> rounded([0.12345, None, float("nan")])
    [0.123, None, None]
    """
    return [
        None if value is None or math.isnan(value) else round(float(value), 3)
        for value in values
    ]


def difference(cell: Mapping, plain: Mapping) -> tuple[np.ndarray, np.ndarray]:
    """Bits of a cell less those of the plain one: mean over files and its standard error, both (bands,), NaN where the
    cell was not measured. Decoding without a cache was measured at some bytes only: there the plain one is taken at the
    same bytes."""

    def apart(one: Mapping, other: Mapping) -> np.ndarray:
        return np.array(one["files"], dtype=float) - np.array(
            other["files"], dtype=float
        )

    found = apart(cell, plain)
    if cell["cache"] is False:
        found = np.where(
            np.isnan(found), apart(cell["sampled"], plain["sampled"]), found
        )
    mean, error = over_files(torch.from_numpy(found))
    return mean.numpy(), error.numpy()


def decided(
    key: str, apart: Mapping[str, tuple[np.ndarray, np.ndarray]], bands: int
) -> list[bool]:
    """For each band, whether the difference exceeds two standard errors, with the same sign, in both seeds.

    >>> one, other = (np.array([-0.3, 0.3]), np.array([0.1, 0.1])), (np.array([-0.4, -0.3]), np.array([0.1, 0.1]))
    >>> decided("alibi-0/none", {"alibi-0/none": one, "alibi-1/none": other}, 2)
    [True, False]
    """
    run, _, rest = key.partition("/")
    seeds = [apart.get(f"{run[:-1]}{seed}/{rest}") for seed in (0, 1)]
    if any(one is None for one in seeds):
        return [False] * bands
    signs = [np.where(np.abs(d) > 2 * e, np.sign(d), 0) for d, e in seeds]
    return [bool(a and a == b) for a, b in zip(*signs, strict=True)]


# ---- The still figure ----

LEFT, RIGHT = 56, 722


def name_of(dials: Mapping[str, Any], data: Mapping[str, Any], key: str) -> str:
    """What a line is called."""
    run, method = key.split("/")[:2]
    if dials["run"] == "schemes":
        return SCHEMES[run[:-2]][0]
    if key == data["against"]:
        return "as trained"
    factor = f", s = {data['factor']}" if data["factor"] else ""
    return f"{METHODS[method]}{factor}{', fine-tuned' if data['tuned'] else ''}"


def look_of(
    dials: Mapping[str, Any], data: Mapping[str, Any], key: str
) -> tuple[str, float, str]:
    """Colour, width and dashes of a line."""
    if dials["run"] == "schemes":
        return SCHEMES[key.split("/")[0][:-2]][1]
    return CHOSEN if key == data["lines"][0] else PLAIN


def legend(items: list[tuple[str, tuple[str, float, str]]]) -> list[str]:
    """A short line in each look and its name, side by side, in as many rows as it takes."""
    parts, left, height = [], 0.0, 58
    for name, look in items:
        wide = 62 + 6.8 * len(name)
        if left + wide > RIGHT + 22:
            left, height = 0.0, height + 20
        parts += [
            stroked([(left + 2, height - 4), (left + 30, height - 4)], *look),
            still.text(left + 38, height, name),
        ]
        left += wide
    return parts


def across(least: float) -> Any:
    """Position → place, from ``least`` to 4096 by equal ratios."""
    octaves = math.log2(MOST_TEXT / least)

    def x(position: float) -> float:
        return LEFT + math.log2(position / least) / octaves * (RIGHT - LEFT)

    return x


def frame(
    measured: dict, data: dict, least: int, words: str, top: float, floor: float
) -> list[str]:
    """The axis of positions with its name, and lines at L and s·L."""
    x, length = across(least), measured["length"]
    powers = range(round(math.log2(least)), round(math.log2(MOST_TEXT)) + 1)
    lengths = [("L", length, ())]
    if data["factor"]:
        lengths.append((f"{data['factor']} L", data["factor"] * length, ("6 4",)))
    return [
        still.line([(LEFT, floor), (RIGHT, floor)], "muted"),
        *(
            still.text(x(2**k), floor + 18, str(2**k), "middle", "muted")
            for k in powers
        ),
        still.text((LEFT + RIGHT) / 2, floor + 38, words, "middle", "muted"),
        *(
            mark
            for name, place, dashes in lengths
            for mark in (
                stroked([(x(place), top), (x(place), floor)], "muted", 1.5, *dashes),
                still.text(
                    x(place) - 4, top - 2, f"{name} = {place}", "end"
                ),
            )
        ),
    ]  # fmt: skip


def levels(
    ticks: list[float], names: list[str], y: Any, right: float = RIGHT
) -> list[str]:
    """Lines across at the ticks, and their names."""
    return [
        part
        for tick, name in zip(ticks, names, strict=True)
        for part in (
            still.line([(LEFT, y(tick)), (right, y(tick))], "grid"),
            still.text(LEFT - 8, y(tick) + 4, name, "end", "muted"),
        )
    ]


def up(low: float, high: float, top: float, floor: float) -> Any:
    """Value → height."""

    def y(value: float) -> float:
        return floor - (value - low) / (high - low) * (floor - top)

    return y


def draw_loss(
    measured: dict, data: dict, looks: dict, top: float, floor: float
) -> list[str]:
    """Bits at each position: all lines, the spread of the first, and the model with a window."""
    known = [v for line in data["curves"] for v in line if v is not None]
    low, high = whole_range([*known, *data["window"]])
    x, y = across(1), up(low, high, top, floor)
    step = math.ceil((high - low) / 8)
    ticks = list(range(low, high + 1, step))
    parts = levels(ticks, [str(tick) for tick in ticks], y)
    parts += frame(measured, data, 1, "position in the text, bytes", top, floor)
    points = [
        (x(at), y(value + side * spread))
        for side in (1, -1)
        for at, value, spread in spread_of(measured, data)[::side]
    ]
    shade = "M" + "L".join(f"{a:.1f},{b:.1f}" for a, b in points) + "Z"
    parts.append(still.path(shade, "ink", opacity=0.15))
    for (start, stop), bits in zip(measured["bands"], data["window"], strict=True):
        if start >= measured["length"]:  # before, it is the model as trained
            parts.append(
                stroked([(x(start), y(bits)), (x(stop), y(bits))], *WINDOW)
            )
    for key, curve in reversed(
        list(zip(data["lines"], data["curves"], strict=True))
    ):
        ends = [
            (x(at), y(value))
            for at, value in zip(data["at"], curve, strict=True)
            if value is not None
        ]
        parts.append(stroked(ends, *looks[key]))
    return parts


def whole_range(values: list[float]) -> tuple[int, int]:
    """Whole numbers around all values."""
    return math.floor(min(values)), math.ceil(max(values))


def spread_of(measured: dict, data: dict) -> list[tuple[float, float, float]]:
    """Of the first line: place, value and standard error (of its band) where both are known."""
    found = []
    stops = [stop for _, stop in measured["bands"]]
    for at, value in zip(data["at"], data["curves"][0], strict=True):
        error = data["spread"][bisect_left(stops, at)]
        if value is not None and error is not None:
            found.append((at, value, error))
    return found


def draw_apart(
    measured: dict, data: dict, looks: dict, top: float, floor: float
) -> list[str]:
    """The differences band by band, with two standard errors; filled where both seeds say the same."""
    bands, keys = (
        measured["bands"],
        [k for k in data["lines"] if k != data["against"]],
    )
    known = [0.0, *data["windowApart"]]
    for ones, errors in zip(data["apart"], data["apartError"], strict=True):
        for one, error in zip(ones, errors, strict=True):
            known += [] if one is None else [one - 2 * error, one + 2 * error]
    step = nice_step(max(known) - min(known), 4)
    low = math.floor(min(known) / step)
    high = max(low + 1, math.ceil(max(known) / step))
    y = up(low * step, high * step, top, floor)
    ticks = [k * step for k in range(low, high + 1)]
    column = (RIGHT - LEFT) / len(bands)
    title = "Difference to the model as trained, in bits per byte"
    if len(keys) > 1:  # all schemes
        title = "Difference to RoPE with base 10⁴, in bits per byte"
    parts = [
        still.text(0, top - 40, title, style=still.BOLD),
        still.text(
            0, top - 21, "± two standard errors over files. Filled: more than that, with the same sign, in both seeds",
            fill="muted",
        ),
        *levels(ticks, [signed(tick) for tick in ticks], y),
        still.line([(LEFT, y(0)), (RIGHT, y(0))], "muted"),
    ]  # fmt: skip
    for b, (start, stop) in enumerate(bands):
        middle = LEFT + (b + 0.5) * column
        words = f"{start + 1} to {stop}"
        parts.append(still.text(middle, floor + 18, words, "middle", "muted"))
        if start >= measured["length"]:
            height = y(data["windowApart"][b])
            reach = 0.4 * column
            ends = [(middle - reach, height), (middle + reach, height)]
            parts.append(stroked(ends, *WINDOW))
        for k, key in enumerate(keys):
            one, error = data["apart"][k][b], data["apartError"][k][b]
            if one is None:
                continue
            if len(keys) == 1:
                bold = still.BOLD if data["decided"][k][b] else ""
                sign = "+" if one > 0 else ""
                words = f"{sign}{still.exact(one)} ± {2 * error:.3f}"
                parts.append(
                    still.text(middle, floor + 38, words, "middle", style=bold)
                )
            place = middle + ((k + 0.5) / len(keys) - 0.5) * 0.7 * column
            colour = looks[key][0]
            ends = [(place, y(one - 2 * error)), (place, y(one + 2 * error))]
            parts += [
                stroked(ends, colour, 1.5),
                ring(place, y(one), colour, data["decided"][k][b]),
            ]
    return parts


def draw_retrieval(
    measured: dict, data: dict, looks: dict, top: float, floor: float
) -> list[str]:
    """Shares given back at each distance: in the long texts as lines, in those of the trained length as rings."""
    x, y = across(16), up(0, 1, top, floor)
    ticks = [0.0, 0.25, 0.5, 0.75, 1.0]
    parts = levels(ticks, [f"{tick:.0%}" for tick in ticks], y)
    parts += frame(measured, data, 16, "distance, bytes", top, floor)
    height = y(measured["chance"])
    parts.append(stroked([(LEFT, height), (RIGHT, height)], *WINDOW))
    for k, key in reversed(list(enumerate(data["lines"]))):
        places = [x(distance) for distance in measured["distances"]]
        far = [
            (place, y(share), share, error)
            for place, share, error in zip(
                places, data["far"][k], data["farError"][k], strict=True
            )
            if share is not None
        ]
        colour = looks[key][0]
        if far:
            parts.append(stroked([one[:2] for one in far], *looks[key]))
        for place, height, share, error in far:
            ends = [min(1, share + 2 * error), max(0, share - 2 * error)]
            parts += [
                stroked([(place, y(end)) for end in ends], colour, 1.5),
                ring(place, height, colour, filled=True),
            ]
        parts += [
            ring(place, y(share), colour, filled=False)
            for place, share in zip(places, data["near"][k], strict=True)
            if share is not None
        ]
    return parts


def ring(x: float, y: float, colour: str, filled: bool) -> str:
    """A disc, or a circle with the paper in it."""
    paint = still.colour(colour)
    inside = paint if filled else "var(--fig-zero, #ffffff)"
    look = f"fill:{inside};stroke:{paint};stroke-width:2"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" style="{look}"/>'


def signed(value: float) -> str:
    """
    >>> signed(0.5), signed(-2.0), signed(0)
    ('+0.5', '−2', '0')
    """
    return f"{value:+.10g}".replace("-", "−") if value else "0"


def nice_step(size: float, most: int) -> float:
    """1, 2 or 5 times a power of ten, so that at most about ``most`` steps fill ``size``.

    >>> nice_step(0.9, 4), nice_step(7, 4)
    (0.5, 2.0)
    """
    power = 10.0 ** math.floor(math.log10(max(size, 0.02) / most))
    return next(m * power for m in (1, 2, 5, 10) if m * power * most >= size)


TITLES = {
    "loss": (
        "Bits per byte at each position",
        "Lower is better. Shaded: ± one standard error over files, by band",
    ),
    "retrieval": (
        "Planted values given back, against their distance",
        "Filled: in long texts, ± two standard errors. Hollow: in texts of the trained length",
    ),
}
"""Title of the picture and what it shows."""
