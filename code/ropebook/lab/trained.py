"""Compare plain RoPE with models that were trained for longer inputs, or that rotate a different share of each head.

These are the numbers for a page, from the development part.

``found`` is the content of results/trained.json, and ``order`` that of results/order.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ropebook import results
from ropebook.figures import BLUE, MUTED, display_figure, figure, name_line
from ropebook.lab import scores, variants
from ropebook.lab.claims import LONGER
from ropebook.lab.order import id_of
from ropebook.lab.rule import TEXTS
from ropebook.lab.trials import EXTENDED, SEEDS, Trial
from ropebook.lab.trials import LONGER as PLAIN

LINES: Mapping[str, str] = {
    LONGER: "plain RoPE",
    f"{LONGER}-gaps": "random gaps",
    f"{LONGER}-2048": "rows of 2048 bytes",
    f"{LONGER}-half": "half of each head rotates",
    f"{LONGER}-quarter": "a quarter of each head rotates",
}
"""The titles of the models, by the name without the seed."""
T5 = (*(Trial("t5", seed) for seed in SEEDS), *variants.T5_CANDIDATES)
"""Models with T5's buckets: those of the chapter, and one seed for each learning rate of
the table."""
_NAMES = {
    "": (340, -8, 4),
    "-gaps": (1000, 0, 14),
    "-2048": (1000, 0, -14),
    "-half": (380, -8, 4),
    "-quarter": (380, -8, 12),
}
"""Where each line's name stands: at which position, and how far from the line in
pixels."""
RUNS = (*PLAIN, *variants.VARIANTS)
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
    for run in (*RUNS, *CONTROLS, *T5):
        path = folder / f"{run.name}.json"
        if not path.exists():
            continue
        told = json.loads(path.read_text(encoding="utf-8"))
        found = told["development"]
        lines.setdefault(id_of(run.name)[0], []).append(
            {
                "seed": run.seed,
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
    """Return the scores of the page's seeds for one layout of `ropebook.lab.asking`: (seeds,)."""
    cell = order["cells"][id]
    return np.array(
        [
            one[layout]["score"]
            for seed, one in zip(cell["seeds"], cell["each"], strict=True)
            if seed in SEEDS
        ]
    )


def table(found: Mapping, order: Mapping) -> Columns:
    """Tabulate the models, averaged over seeds.

    The columns contain the loss on Python within L and from 4 L to 8 L, and the answers about records and their order,
    within and beyond L.
    """
    columns: Columns = {
        "trained with": list(LINES.values()),
        "seeds": [len(found["lines"][id]) for id in LINES],
    }
    for head, band in (("loss within L", 0), ("loss, 4 L to 8 L", -1)):
        columns[head] = [bits(found, id, "python")[:, band].mean() for id in LINES]
    for head, layout in (
        ("records within L", "retrieval within"),
        ("records beyond L", "retrieval"),
        ("order within L", "order within"),
        ("order beyond L", "order"),
    ):
        columns[head] = [answers(order, id, layout).mean() for id in LINES]
    return columns


def by_position(found: Mapping, alt: str, caption: str) -> None:
    """Draw the loss on Python against position, with one line per model, averaged over seeds.

    Models trained with random gaps are blue, and the others grey.
    """
    edges = np.array(found["edges"])
    middles = (edges[:-1] + edges[1:]) / 2
    fig, ax = figure(480, 330)
    for id, title in LINES.items():
        mean = np.mean([one["curves"]["python"] for one in found["lines"][id]], 0)
        own = id.endswith("-gaps")
        (line,) = ax.plot(
            middles,
            mean,
            color=BLUE if own else MUTED,
            linewidth=2.2 if own else 1.4,
        )
        place, *offset = _NAMES[id.removeprefix(LONGER)]
        at = int(np.abs(middles - place).argmin())
        name_line(line, title, at=at, offset=tuple(offset))
    ax.axvline(found["length"], color=MUTED, linewidth=1, linestyle="--")
    ax.set(
        xscale="log",
        xlim=(12, edges[-1]),
        xlabel="position",
        ylabel="bits per byte",
    )
    ax.set_xticks([16, 64, 256, 1024], ["16", "64", "256", "1024"])
    ax.minorticks_off()
    display_figure(fig, alt, f"{caption} {results.caption(found)}")
