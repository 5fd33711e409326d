"""Compare plain RoPE with models that were trained for longer inputs, or that rotate a different share of each head.

These are the numbers for a page, from the development part.

``found`` is the content of results/trained.json, and ``order`` that of results/order.json.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ropebook import results
from ropebook.figures import BLUE, MUTED, display_figure, figure, name_line
from ropebook.lab import scores, variants
from ropebook.lab.claims import LONGER
from ropebook.lab.model import SCHEMES
from ropebook.lab.order import id_of
from ropebook.lab.rule import TEXTS
from ropebook.lab.trials import EXTENDED, SEEDS, Trial
from ropebook.lab.trials import LONGER as PLAIN

BASE = SCHEMES[EXTENDED].base
BASES = {BASE: "10⁴", variants.RAISED: "5·10⁵"}
"""How tables write the bases."""
LINES: Mapping[str, str] = {
    LONGER: "plain RoPE",
    f"{LONGER}-gaps": "random gaps",
    f"{LONGER}-2048": "rows of 2,048 bytes",
    f"{LONGER}-half": "half of each head rotates",
    f"{LONGER}-quarter": "a quarter of each head rotates",
}
"""The titles of the models that were trained from the start, by the name without the seed."""
FURTHER: Mapping[str, tuple[int, float]] = {
    LONGER: (0, BASE),
    id_of(variants.untrained(PLAIN[0]))[0]: (0, variants.RAISED),
    **{
        id_of(of(PLAIN[0], steps).name)[0]: (steps, base)
        for steps in variants.RAISED_STEPS
        for of, base in ((variants.kept, BASE), (variants.raised, variants.RAISED))
    },
}
"""How many steps a finished model was trained further on sequences of 2,048 bytes, and with which base, by the name
without the seed. With 0 steps, it is the plain model."""
T5 = (
    *(Trial("t5", seed) for seed in SEEDS),
    *dict.fromkeys((*variants.T5_CANDIDATES, *variants.t5(variants.T5_RATE))),
)
"""Models with T5's buckets: those of the chapter, one seed for each learning rate of
the table, and more seeds for the best rate."""
RUNS = (*PLAIN, *variants.VARIANTS, *variants.every_further(PLAIN))
CONTROL = EXTENDED
CONTROLS = tuple(Trial(EXTENDED, seed) for seed in (*SEEDS, *variants.MORE_SEEDS))
"""Plain models with half the steps, some of which were trained on a CPU and some on a
GPU."""
Columns = dict[str, list]


def gathered(folder: Path) -> dict[str, object]:
    """Gather the data for the page from the training runs in ``folder`` (results/trials).

    Runs that are missing are left out. Some of the control runs have no curves.
    """
    lines: dict[str, list[dict]] = {id: [] for id in LINES}
    names = [run.name for run in (*RUNS, *CONTROLS, *T5)]
    names += [variants.untrained(parent) for parent in PLAIN]
    names += [variants.last(run) for run in variants.read_last(PLAIN)]
    for name in names:
        path = folder / f"{name}.json"
        if not path.exists():
            continue
        told = json.loads(path.read_text(encoding="utf-8"))
        found = told["development"]
        id, seed = id_of(name)
        lines.setdefault(id, []).append(
            {
                "seed": seed,
                "device": told["provenance"]["device"],
                "bits": {
                    text: [
                        round(float(value), 4) for value in np.mean(found[text], 0)
                    ]
                    for text in TEXTS
                },
                "curves": found.get("curves"),
            }
        )
    return {
        "length": scores.LENGTH,
        "bands": [list(band) for band in scores.BANDS],
        "edges": scores.edges(scores.TEXT),
        "lines": lines,
    }


def bits(found: Mapping, id: str, text: str) -> np.ndarray:
    """Return the losses in bits per byte, by seed and band: (seeds, bands)."""
    return np.array([one["bits"][text] for one in found["lines"][id]])


def answers(order: Mapping, id: str, layout: str) -> np.ndarray:
    """Return the scores of the page's seeds for one layout of `ropebook.lab.asking`: (seeds,).

    A plain model with a larger base is stored there as a model with a method.
    """
    untrained = FURTHER.get(id) == (0, variants.RAISED)
    cell = order["cells"][f"{LONGER}/raised_base" if untrained else id]
    return np.array(
        [
            one[layout]["score"]
            for seed, one in zip(cell["seeds"], cell["each"], strict=True)
            if seed in SEEDS
        ]
    )


def table(found: Mapping, order: Mapping) -> Columns:
    """Tabulate the models that were trained from the start, with the columns of `measures`."""
    return {
        "model": list(LINES.values()),
        **measures(found, order, LINES),
    }


def further(found: Mapping, order: Mapping) -> Columns:
    """Tabulate the models that were trained further, with the columns of `measures`, and the order at short distances."""
    steps, bases = zip(*FURTHER.values(), strict=True)
    return {
        "more steps": list(steps),
        "base": [BASES[base] for base in bases],
        **measures(found, order, FURTHER),
        "order, short": [
            answers(order, id, "order short").mean() for id in FURTHER
        ],
    }


def measures(found: Mapping, order: Mapping, ids: Iterable[str]) -> Columns:
    """Return columns with means over the seeds of each model.

    They contain the loss on Python within L and from 4 L to 8 L, and the answers about records and their order, within
    and beyond L.
    """
    columns: Columns = {}
    for head, band in (("loss within L", 0), ("loss, 4 L to 8 L", -1)):
        columns[head] = [bits(found, id, "python")[:, band].mean() for id in ids]
    for head, layout in (
        ("found within L", "retrieval within"),
        ("found beyond L", "retrieval"),
        ("order within L", "order within"),
        ("order beyond L", "order"),
    ):
        columns[head] = [answers(order, id, layout).mean() for id in ids]
    return columns


class Line(NamedTuple):
    """A model's line in `by_position`. ``offset`` says how far its name is from the line, in pixels, at the position
    ``at``. A line without a title shares the name of the line beside it."""

    title: str
    at: int
    offset: tuple[int, int]
    colour: str = MUTED
    style: str = "-"


FROM_THE_START = {
    LONGER: Line(LINES[LONGER], 500, (12, -4)),
    f"{LONGER}-gaps": Line(LINES[f"{LONGER}-gaps"], 1000, (0, -14), BLUE),
    f"{LONGER}-2048": Line("rows of\n2,048 bytes", 1000, (0, 24)),
    f"{LONGER}-half": Line("", 380, (0, 0)),
    f"{LONGER}-quarter": Line(
        "a quarter or half\nof each head rotates", 333, (-32, 56)
    ),
}
_BY_TRAINING = {trained: id for id, trained in FURTHER.items()}
_FEW = variants.RAISED_STEPS[0]
AFTERWARDS = {
    LONGER: Line("as trained", 600, (8, -8)),
    _BY_TRAINING[_FEW, BASE]: Line("60 more steps", 700, (10, -14), style="--"),
    _BY_TRAINING[_FEW, variants.RAISED]: Line(
        f"60 more steps,\nbase {BASES[variants.RAISED]}", 600, (8, 34), BLUE
    ),
}
"""The lines of the page's two figures."""


def by_position(
    found: Mapping, lines: Mapping[str, Line], alt: str, caption: str
) -> None:
    """Draw the loss on Python against position, with one line per model, averaged over seeds."""
    edges = np.array(found["edges"])
    middles = (edges[:-1] + edges[1:]) / 2
    fig, ax = figure(480, 330)
    for id, one in lines.items():
        mean = np.mean([seed["curves"]["python"] for seed in found["lines"][id]], 0)
        width = 1.4 if one.colour == MUTED else 2.2
        (line,) = ax.plot(
            middles, mean, one.style, color=one.colour, linewidth=width
        )
        if one.title:
            at = int(np.abs(middles - one.at).argmin())
            name_line(line, one.title, at=at, offset=one.offset)
    ax.axvline(found["length"], color=MUTED, linewidth=1, linestyle="--")
    ax.set(
        xscale="log",
        xlim=(12, edges[-1]),
        xlabel="position",
        ylabel="bits per byte",
    )
    ax.set_xticks([16, 64, 256, 1024], ["16", "64", "256", "1,024"])
    ax.minorticks_off()
    display_figure(fig, alt, f"{caption} {results.caption(found)}")
