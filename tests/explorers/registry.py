"""Registry of all explorers. Each entry lists the explorer's corners: settings at which it is tested in addition to
random ones."""

from __future__ import annotations

import itertools
import json
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from ropebook.explorers import Explorer, Switch, measured
from ropebook.explorers.advice import CASES, Advice
from ropebook.explorers.alive import METHODS as ALIVE_METHODS
from ropebook.explorers.alive import TEXTS, Alive
from ropebook.explorers.arrows import Arrows
from ropebook.explorers.bank import Bank
from ropebook.explorers.clocks import Clocks
from ropebook.explorers.distance import Distance
from ropebook.explorers.explain import EXAMPLES, Explain
from ropebook.explorers.fourier import Fourier
from ropebook.explorers.heads import MEASURES, Heads
from ropebook.explorers.heatmap import Heatmap
from ropebook.explorers.ladder import METHODS, Ladder
from ropebook.explorers.lock import Lock
from ropebook.explorers.pairing import Pairing
from ropebook.explorers.patches import FORMS, Patches
from ropebook.explorers.penalty import Penalty
from ropebook.explorers.precision import Precision
from ropebook.explorers.ramp import Ramp
from ropebook.explorers.rivals import SCHEMES, Rivals
from ropebook.explorers.saturation import Saturation
from ropebook.explorers.shuffle import Shuffle
from ropebook.explorers.sweep import Sweep
from ropebook.explorers.timelapse import Timelapse
from ropebook.explorers.turn import Turn
from ropebook.lab.tasks import TASKS
from tests.explain_cases import GEMMA3, LLAMA
from tests.explorers import js
from tests.explorers.made_up import Measured


@dataclass(frozen=True)
class Entry:
    """An explorer (``kind``), and settings and limits for its tests.

    ``corners`` are settings that the tests always include; dials that they don't name keep their initial values.
    ``most`` limits random integers whose own limits would make a test too slow. On a page, the explorer must keep its
    initial height at all ``extremes``, unless ``grows`` is true. Labels must not touch one another, unless
    ``texts_touch`` is true, and no label may extend more than ``over_the_edge`` pixels beyond the figure. ``heaviest``
    are the settings at which moving a dial takes the most work.
    """

    kind: type[Explorer]
    corners: list[dict[str, Any]]
    most: dict[str, int] = field(default_factory=dict)
    extremes: list[dict[str, Any]] = field(default_factory=list)
    heaviest: dict[str, Any] = field(default_factory=dict)
    grows: bool = False
    texts_touch: bool = False
    over_the_edge: int = 2

    @property
    def name(self) -> str:
        return self.kind.script.removesuffix(".js")

    def figures(self, samples: int, seed: int = 5) -> list[Explorer]:
        """Return instances of the explorer: in its initial state, at its corners, and at random settings."""
        source = random.Random(seed)
        drawn = [js.sample(self.kind, source, **self.most) for _ in range(samples)]
        return [self.kind(**dials) for dials in [{}, *self.corners]] + drawn


def ends_of_all_dials(explorer: type[Explorer], *names: str) -> list[dict[str, Any]]:
    """Return settings for every combination of these dials' lower and upper limits."""
    traits = explorer.dial_traits()
    limits = [(False, True) if isinstance(traits[n], Switch) else (traits[n].min, traits[n].max) for n in names]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*limits)]


LADDER_TOPS = {"base": 1e7, "dim": 512, "trained_length": 131072, "factor": 64.0, "alpha": 2.0, "beta": 64.0}
LADDER_LOWS = {"base": 500.0, "dim": 4, "trained_length": 16, "factor": 1.0, "alpha": 0.25, "beta": 2.5}

ALL = [
    Entry(
        Advice,
        ends_of_all_dials(Advice, "trained_length", "target_length", "base", "dim")
        + [{"may": may, "target_length": target} for may in CASES for target in (4096, 4097, 100_000)],
        extremes=[
            {"trained_length": 16, "target_length": 2**20, "base": 1e7, "dim": 512, "may": "base"},
            {"trained_length": 131_072, "target_length": 2**20, "base": 1e7, "may": "tables"},
            {"trained_length": 131_072, "target_length": 16, "dim": 4},
            {"target_length": 4096, "base": 1.0},
        ],
        heaviest={"trained_length": 16, "target_length": 2**20, "dim": 512},
    ),
    Entry(
        Alive,
        [
            {"method": method, "factor": factor, "base": base, "text": text, "length": length, "byte": byte}
            for method, factor, base, text, (length, byte) in zip(
                ALIVE_METHODS,
                itertools.cycle([1.0, 16.0, 3.7]),
                itertools.cycle([10_000.0, 500.0, 1e7, 2e4]),
                itertools.cycle(TEXTS),
                itertools.cycle([(64, 64), (257, 1), (256, 200), (300, 299)]),
                strict=False,
            )
        ]
        + [{"own": own} for own in ("é", "x", "naïve 犬\n\tback", "ab")],
        {"length": 400, "byte": 300},
        extremes=[
            {"length": 1024, "byte": 1024, "layer": 3, "head": 4, "method": "self_extend"},
            {"length": 64, "byte": 1, "method": "none"},
            {"own": "ab"},
        ],
        heaviest={"length": 1024, "method": "self_extend"},
    ),
    Entry(
        Arrows,
        [
            {"m": 0, "n": 0},
            {"m": 23, "n": 23, "pair": 0},
            {"m": 0, "n": 23, "base": 1.0},
            {"m": 23, "n": 0, "base": 1e7, "dim": 128, "pair": 63},
            {"dim": 2, "pair": 0},
            {"m": 14, "n": 9},
        ],
        extremes=[{"m": 23, "n": 0, "pair": 0}, {"m": 3, "n": 3}, {"m": 0, "n": 1, "base": 1e7, "pair": 7}],
        heaviest={"pair": 0},
    ),
    Entry(
        Bank,
        [
            {"position": 0, "base": 1.0, "dim": 2, "length": 2},
            {"position": 1_000_000, "base": 1e7, "dim": 512, "length": 1_000_000},
            {"position": 4095},
            {"position": 4096},
        ],
        extremes=[
            {"dim": 512, "length": 1_000_000, "position": 1_000_000, "base": 1e7},
            {"dim": 32, "length": 2, "position": 7},
            {"dim": 32, "base": 1.0, "position": 1_000_000},
        ],
        heaviest={"dim": 512},
    ),
    Entry(
        Clocks,
        [
            {"position": 4096, "dim": 512, "span": 4096},
            {"position": 0, "base": 1.0, "dim": 2, "span": 8},
            {"position": 31, "base": 1e7, "dim": 26, "span": 64},
            {"position": 32, "base": 8192.0, "dim": 28, "span": 65},
            {"position": 700, "base": 50.0, "dim": 6, "span": 513},
        ],
        {"span": 1000},
        extremes=[{"dim": 512, "span": 4096, "position": 4096}, {"dim": 32, "base": 1e7}],
        heaviest={"dim": 512, "span": 4096, "position": 2000},
        texts_touch=True,
    ),
    Entry(
        Distance,
        [
            {"dim": 512, "query": 0, "length": 4096, "vectors": "random", "draw": 20},
            {"query": 0, "length": 65536, "vectors": "ones"},
            {"dim": 8, "query": 4096, "length": 4097, "vectors": "random"},
            {"base": 1e7, "dim": 512, "query": 500_000, "length": 1_000_000, "vectors": "same", "draw": 3},
            {"base": 1.0, "dim": 2, "query": 1, "length": 2, "vectors": "slow"},
            {"base": 1.0, "dim": 6, "query": 999_999, "length": 1_000_000, "vectors": "slow"},
            {"base": 500.0, "dim": 16, "length": 513, "vectors": "same", "draw": 2},
        ],
        extremes=[
            {"length": 1_000_000, "query": 999_999, "dim": 512, "vectors": "random"},
            {"length": 2, "query": 1, "dim": 2, "vectors": "slow"},
        ],
        heaviest={"dim": 512, "length": 1_000_000, "query": 500_000, "vectors": "random"},
    ),
    Entry(
        Explain,
        [{"example": example, "length": length} for example in EXAMPLES for length in (0, 1, 2, 4096, 2**24)]
        + [{"config": json.dumps(GEMMA3), "second": second} for second in (False, True)]
        + [{"config": config} for config in ("{}", "<b>", " ", json.dumps(LLAMA | {"head_dim": 2}))],
        extremes=[
            {"config": "<script>"},
            {"config": json.dumps(LLAMA | {"head_dim": 512}), "length": 2**24},
            {"config": json.dumps(LLAMA | {"head_dim": 2})},
        ],
        heaviest={"config": json.dumps(LLAMA | {"head_dim": 512}), "length": 10**6},
        grows=True,
    ),
    Entry(
        Fourier,
        [
            {"dim": 512, "span": 4096, "peak": 4096, "distance": 0, "draw": 20},
            {"dim": 2, "span": 16, "peak": 0, "distance": 16, "base": 1.0, "summed": 1},
            {"dim": 34, "span": 512, "peak": 77, "distance": 300, "summed": 16, "draw": 1},  # the sum is sampled finely
            {"dim": 36, "span": 513, "peak": 500, "distance": 513, "summed": 18, "draw": 2},
        ],
        {"dim": 128, "span": 1500},
        extremes=[{"dim": 512, "span": 4096, "peak": 4096, "distance": 4096, "draw": 9, "base": 1e7}],
        heaviest={"dim": 512, "span": 4096, "peak": 2000, "distance": 1000, "draw": 1},
    ),
    Entry(
        Heads,
        [
            {"measure": measure, "layer": layer, "head": head}
            for measure in MEASURES
            for layer, head in ((1, 1), (30, 9), (17, 1), (19, 9))
        ],
        extremes=[{"layer": 1, "head": 1}, {"measure": "entropy", "layer": 30, "head": 9}, {"layer": 19, "head": 9}],
        heaviest={"measure": "entropy", "layer": 30},
    ),
    Entry(
        Heatmap,
        [
            {"dim": 512, "length": 4096, "reference": 1234, "interleaved": False},
            {"base": 1.0, "dim": 2, "length": 1, "reference": 0, "interleaved": True},
            {"base": 1e7, "dim": 64, "length": 640, "reference": 639, "interleaved": True},
            {"base": 1e7, "dim": 62, "length": 641, "reference": 640},  # two positions per column
            # four per column, with one left over
            {"base": 1e3, "dim": 10, "length": 1921, "reference": 3, "interleaved": True},
            # the second pair falls just short of a turn
            {"dim": 8, "length": 63, "reference": 62, "interleaved": True},
            {"dim": 8, "length": 64, "reference": 0, "interleaved": True},  # the second pair just completes a turn
        ],
        {"dim": 128, "length": 2000},
        extremes=[{"dim": 512, "length": 4096, "reference": 4000}],
        heaviest={"dim": 512, "length": 4096, "reference": 2000},
    ),
    Entry(
        Ladder,
        [dict.fromkeys(METHODS, False)]
        + [
            {**dials, **dict.fromkeys(METHODS, True)}
            for dials in ends_of_all_dials(Ladder, "base", "dim", "trained_length", "factor")
        ],
        extremes=[{**LADDER_TOPS, **dict.fromkeys(METHODS, True)}, {**LADDER_LOWS, **dict.fromkeys(METHODS, False)}],
        heaviest={"dim": 512, **dict.fromkeys(METHODS, True)},
    ),
    Entry(
        Lock,
        [
            {"m": 4096, "n": 4096, "shift": 255, "dim": 512, "pair": 255, "draw": 15},
            {"m": 0, "n": 0, "shift": 0, "base": 1.0, "dim": 2, "pair": 0, "draw": 0},
            {"m": 0, "n": 4096, "shift": 1, "base": 1e7, "dim": 128, "pair": 0, "draw": 7},
        ],
        extremes=[{"m": 4096, "n": 4095, "shift": 255, "dim": 512, "pair": 255, "draw": 1}],
        heaviest={"dim": 512, "m": 3000},
    ),
    Entry(
        Measured,
        [
            {"method": method, "factor": factor, "tuned": tuned, "position": position, "text": text}
            for (method, factor), tuned, position, text in zip(
                itertools.product(measured.METHODS, ("2", "8")),
                itertools.cycle((True, False, True)),
                itertools.cycle((17, 32, 256, 257, 1500, 2048, 30)),
                itertools.cycle(("python", "language")),
                strict=False,
            )
        ]
        + [{"run": "schemes", "tuned": True, "position": n} for n in (17, 256, 257, 2048)]
        + [{"show": show, "run": run, "position": 700} for show in TASKS for run in (measured.LONGER, "schemes")],
        extremes=[
            {"method": "linear", "factor": "8", "tuned": True, "position": 2048},
            {"method": "none", "position": 17},
            {"method": "dynamic_ntk_4", "text": "language"},
            {"show": "retrieval", "method": "linear", "factor": "2"},
            {"show": "order", "method": "yarn_chosen_unscaled", "position": 2048},
        ],
        heaviest={"run": "schemes"},
        over_the_edge=8,
    ),
    Entry(
        Pairing,
        [
            {"dim": 4, "permute_q": True, "permute_k": True, "pairing": "half", "m": 64, "n": 0},
            {"dim": 32, "permute_q": False, "permute_k": True, "pairing": "half", "m": 64, "n": 0},
            {"dim": 10, "permute_q": True, "permute_k": False, "pairing": "interleaved", "m": 64, "n": 0},
        ],
        extremes=[{"dim": 32, "permute_k": True, "m": 0, "n": 64}],
        heaviest={"dim": 32},
    ),
    Entry(
        Patches,
        [
            {"form": form, "dim": rows, "dim_columns": columns, "base": base, "row": row, "column": 15 - row}
            for form, (rows, columns), base, row in zip(
                [*FORMS, *FORMS],
                itertools.cycle([(2, 2), (128, 128), (8, 32), (32, 8)]),
                itertools.cycle([1.0, 1e7, 100.0]),
                itertools.cycle([0, 15, 4]),
                strict=False,
            )
        ],
        extremes=[
            {"form": "interleaved", "dim": 128, "dim_columns": 128, "row": 15, "column": 15},
            {"form": "line", "dim": 2, "dim_columns": 2, "row": 0, "column": 0},
        ],
        heaviest={"dim": 128, "dim_columns": 128},
    ),
    Entry(
        Penalty,
        ends_of_all_dials(Penalty, "first", "last", "factor", "distance")
        + [{"first": 12, "last": 21, "distance": 6400}],
        extremes=[{"first": 0, "last": 31, "factor": 8.0}, {"first": 31, "last": 31, "distance": 0}],
        heaviest={"first": 0, "factor": 8.0},
    ),
    Entry(
        Precision,
        [
            {"dtype": dtype, "rounded": rounded, "first": first, "dim": 22, "count": 40}
            for dtype in ("float64", "float32", "bfloat16", "float16")
            for rounded in ("result", "frequencies", "positions", "everything")
            for first in (250, 65_500, 9_999_999)
        ]
        + [{"dim": 512, "count": 128, "base": 1e7}, {"dtype": "float16", "rounded": "positions", "first": 70_000}],
        {"dim": 128, "count": 64},
        extremes=[
            {"dim": 512, "count": 128, "first": 10**7},
            {"dtype": "float16", "first": 65_500, "rounded": "positions"},
        ],
        heaviest={"dim": 512, "count": 128, "first": 10**6},
    ),
    Entry(
        Ramp,
        ends_of_all_dials(Ramp, "alpha", "beta", "trained_length", "base", "dim", "factor", "truncate")[::5],
        extremes=[LADDER_TOPS, {**LADDER_LOWS, "truncate": False}],
        heaviest={"dim": 512},
    ),
    Entry(
        Rivals,
        [
            {"first": first, "second": second, "heads": heads, "head": head, "offset": offset, "dim": dim, "base": base}
            for first, second, (heads, head), offset, dim, base in zip(
                SCHEMES,
                reversed(SCHEMES),
                itertools.cycle([(1, 1), (16, 16), (12, 9), (3, 2)]),
                itertools.cycle([-256, 256, 0, 91]),
                itertools.cycle([2, 512, 64]),
                itertools.cycle([1.0, 1e7, 1e4, 500.0]),
                strict=False,
            )
        ],
        {"dim": 128},
        extremes=[
            {"first": "signed", "second": "sandwich", "heads": 16, "head": 1, "dim": 512, "offset": 256},
            {"first": "none", "second": "none", "offset": -256},
        ],
        heaviest={"first": "xpos", "second": "sandwich", "heads": 16, "dim": 512},
    ),
    Entry(
        Saturation,
        [
            {"dim": 1, "n_keys": 2, "draw": 15, "scaled": False},
            {"dim": 512, "n_keys": 32, "scaled": False},
            {"dim": 512, "n_keys": 32, "draw": 15},
        ],
        extremes=[{"n_keys": 32, "dim": 512}, {"n_keys": 2, "dim": 1, "scaled": False}],
        heaviest={"n_keys": 32},
    ),
    Entry(
        Shuffle,
        [
            {"words": "a"},
            {"words": "abcdefghijkl " * 8, "order": [7, 6, 5, 4, 3, 2, 1, 0], "position": True, "causal": True},
        ],
        extremes=[{"words": "embeddings " * 8}],
        grows=True,
        over_the_edge=30,  # leaves room for the row labels on the left
        texts_touch=True,
    ),
    Entry(
        Sweep,
        [
            {"base": 1.0, "dim": 2, "length": 16},
            {"base": 1e7, "dim": 512, "length": 4096},
            {"base": 37.5, "dim": 6, "length": 129},
            {"base": 1e4, "dim": 128, "length": 128},
        ],
        extremes=[{"base": 9_999_999.5, "dim": 2, "length": 16}],
        heaviest={"dim": 512},
    ),
    Entry(
        Timelapse,
        [
            {"length": 4096, "room": 4096, "trained_length": 16, "factor": 16.0, "base": 1e7, "dim": 512},
            {"length": 4096, "room": 4096, "trained_length": 2048, "factor": 1.0, "base": 500.0, "dim": 4},
            {"length": 1, "room": 64, "trained_length": 16, "dim": 4},
            {"length": 257, "room": 300, "trained_length": 256, "factor": 3.0},
        ],
        extremes=[
            {"room": 4096, "length": 4096, "trained_length": 16, "factor": 16.0, "base": 1e7, "dim": 512},
            {"room": 64, "length": 1, "trained_length": 2048, "dim": 4},
            {"room": 257, "length": 257, "trained_length": 255},
        ],
        heaviest={"room": 4096, "length": 4000, "trained_length": 512, "factor": 2.0, "dim": 512},
    ),
    Entry(
        Turn,
        [
            {"position": 4096, "dim": 512, "pair": 255},
            {"position": 0, "base": 1.0, "dim": 2, "pair": 0},
            {"position": 15, "base": 1e7, "dim": 64, "pair": 31},
            {"position": 16, "base": 1.0, "dim": 8, "pair": 3},
            {"position": 1, "dim": 4, "base": 1.62114, "pair": 1},
        ],
        extremes=[
            {"position": 4096, "dim": 512, "pair": 255},
            {"dim": 2, "pair": 0, "position": 0},
            {"position": 1, "base": 1e7, "pair": 7},
            {"position": 4096, "base": 1.0, "dim": 512, "pair": 255},
        ],
        heaviest={"dim": 512, "position": 2000},
    ),
]

every = pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.name)
"""Decorator that runs a test once for every explorer, with its entry as the argument ``entry``."""
