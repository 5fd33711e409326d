"""The explorer of chapter *Measured*: what each method did to the small models, at every position and distance."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook import extrapolation, results
from ropebook.explorers import Choice, Explorer, Switch, Whole
from ropebook.lab.data import VALUES
from ropebook.lab.evaluation import over_files
from ropebook.lab.verdicts import MARGIN

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
        "margin": MARGIN,
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
