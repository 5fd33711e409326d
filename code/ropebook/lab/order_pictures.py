"""Figures and tables about the pair that tells the model the order of two records. The
functions that take ``found`` expect the contents of results/order.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from ropebook import checks, results
from ropebook.figures import (
    BLUE,
    MUTED,
    NARROW,
    ORANGE,
    display_figure,
    figure,
    heatmap,
    name_line,
)
from ropebook.lab.asking import KINDS
from ropebook.lab.causal import WAYS, at_length, periods
from ropebook.lab.claims import TITLES
from ropebook.lab.extensions import Extension
from ropebook.lab.folding import curve
from ropebook.lab.longer import with_method
from ropebook.lab.model import SCHEMES, LanguageModel
from ropebook.lab.order import id_of
from ropebook.lab.scores import LENGTH, TEXT

EXTENDED_ID = "rope-10000-3200"
_TITLES = {EXTENDED_ID: "RoPE, base 10⁴, 3,200 steps"}
Columns = dict[str, list]


def title(id: str) -> str:
    """Return the name that pages use for a model, with or without a context-extension method.

    >>> title("rope-100"), title("rope-10000-3200/yarn_chosen/8")
    ('RoPE, base 100', 'YaRN (chosen β)')
    """
    name, _, extension = id.partition("/")
    if extension:
        return TITLES[extension.partition("/")[0]]
    return _TITLES.get(name) or SCHEMES[name].title


# --- Maps -------------------------------------------------------------------------------------------------------------


def mapped(found: Mapping, id: str) -> list[Mapping]:
    """Return the maps of a model, one per seed and sorted by seed. Raises ``ValueError`` if the model has no map."""
    checks.choice("id", id, {id_of(name)[0] for name in found["maps"]})
    return [
        found["maps"][name]
        for name in sorted(found["maps"])
        if id_of(name)[0] == id
    ]


def change(maps: Sequence[Mapping], way: str, layout: str) -> np.ndarray:
    """Return how much changing each pair, one at a time, adds to the score: (seeds, pairs)."""
    checks.choice("way", way, WAYS)
    return np.stack(
        [np.array(one["pairs"][way][layout]) - one["plain"][layout] for one in maps]
    )


def causal_map(
    found: Mapping,
    ids: Sequence[str],
    way: str,
    layout: str,
    alt: str,
    caption: str,
) -> None:
    """Draw how far the score moves, in hundredths, when only one pair is changed.

    There is a row for each pair, and a column for each seed of each model. A bar marks the lower edge of the last pair
    that completes a turn within L.
    """
    models = {id: mapped(found, id) for id in ids}
    maps = [one for of_model in models.values() for one in of_model]
    values = 100 * change(maps, way, layout).T
    fig, ax = figure(NARROW, 86 + 21 * len(values))
    heatmap(
        ax,
        values,
        rows=[str(pair) for pair in range(len(values))],
        columns=[str(id_of(one["model"])[1]) for one in maps],
        form="{:z.0f}",
        limit=100.0,
    ).set(aspect="auto", ylabel="pair, from the fastest")
    ax.set_xlabel("seed", labelpad=9)
    start = 0
    for id, of_model in models.items():
        title = SCHEMES[id.removesuffix("-3200")].title
        middle = start + len(of_model) / 2
        ax.annotate(
            title,
            (middle, 0),
            xytext=(0, 46),
            textcoords="offset points",
            ha="center",
            annotation_clip=False,
        )
        start += len(of_model)
    for column, one in enumerate(maps):
        turned = sum(period <= LENGTH for period in one["periods"])
        ax.plot([column, column + 1], [turned] * 2, color=ORANGE, linewidth=2.5)
    display_figure(fig, alt, f"{caption} {results.caption(found)}")


def contrast(one: Mapping, layer: int, head: int) -> Tensor:
    """Return how much one head's products in a map differ, "first" minus "last": complex128 (pairs,)."""
    first, last = (
        torch.view_as_complex(
            torch.tensor(one["products"][kind], dtype=torch.float64)
        )
        for kind in ("first", "last")
    )
    return (first - last)[layer, head]


def telling_head(one: Mapping, pair: int) -> tuple[int, int]:
    """Return the layer and head with the largest contrast in this pair."""
    layers, heads = len(one["products"]["first"]), len(one["products"]["first"][0])
    size = {
        (layer, head): contrast(one, layer, head)[pair].abs().item()
        for layer in range(layers)
        for head in range(heads)
    }
    return max(size, key=size.get)


def folding(found: Mapping, model: str, pair: int, alt: str, caption: str) -> None:
    """Draw how much higher the decisive head scores a record when the question asks for the first record, not the last.

    The x axis is the distance of the record.
    """
    one = found["maps"][model]
    theta = torch.tensor(one["theta"], dtype=torch.float64)
    product = contrast(one, *telling_head(one, pair))
    slowed = theta.clone()
    slowed[pair] /= 2
    distances = torch.arange(8, 4 * LENGTH, 2, dtype=torch.float64)
    beyond = int((distances <= LENGTH).sum())
    fig, axes = figure(640, 300, columns=2, sharey=True)
    only = slice(pair, pair + 1)
    panels = (
        ("all pairs of the head", slice(None)),
        (f"pair {pair} alone", only),
    )
    looks = (
        ("as trained", theta, MUTED, torch.argmin, (0, -10)),
        (f"pair {pair} halved", slowed, BLUE, torch.argmax, (12, 5)),
    )
    for ax, (heading, which) in zip(axes, panels, strict=True):
        for label, frequencies, colour, extreme, offset in looks:
            line = curve(product[which], frequencies[which], distances)
            [drawn] = ax.plot(distances, line, color=colour)
            if ax is axes[0]:
                at = beyond + int(extreme(line[beyond:]))
                name_line(drawn, label, at=at, offset=offset)
        ax.axvline(LENGTH, color=MUTED, linestyle="--", linewidth=1)
        ax.set(title=heading, xlabel="distance Δ (bytes)")
        ax.xaxis.set_major_formatter("{x:,.0f}")
    axes[0].set(ylabel="score: first minus last")
    display_figure(fig, alt, f"{caption} {results.caption(found)}")


def of_bands(found: Mapping, id: str) -> Columns:
    """Tabulate how well a model answers in the order task when the frequencies of one band at a time are changed.

    For contexts from L to 2 L, the band's frequencies are halved. For contexts within L, they are set to 0. The columns
    show the order score, and the share of answers that name either record ("records"). The numbers are means over the
    seeds that have a map.
    """
    maps = mapped(found, id)
    names = list(maps[0]["of_bands"]["halved"])

    def over(way: str, layout: str) -> list[float]:
        plain = [one["plain"][layout] for one in maps]
        bands = [
            [one["of_bands"][way][band][layout] for one in maps] for band in names
        ]
        return [float(np.mean(row)) for row in (plain, *bands)]

    return {
        "pairs": ["as trained"]
        + [
            f"{band}: {maps[0]['bands'][band][0]} to {maps[0]['bands'][band][-1]}"
            for band in names
        ],
        "order, halved": over("halved", "order"),
        "records, halved": over("halved", "found order"),
        "order, still": over("still", "order within"),
        "records, still": over("still", "found order within"),
    }


# --- Tables -----------------------------------------------------------------------------------------------------------


def mean(found: Mapping, id: str, layout: str, *keys: str | int) -> float | None:
    """Return one of a cell's numbers, averaged over seeds. The numbers come from `ropebook.lab.order`.

    The mean is None if a model cannot read that far.
    """
    values = []
    for one in found["cells"][id]["each"]:
        value = one.get(layout)
        for key in keys:
            value = None if value is None else value[key]
        values.append(value)
    return None if None in values else float(np.mean(values))


def schemes(found: Mapping, ids: Sequence[str]) -> Columns:
    """Tabulate the models as they were trained: retrieval and order within L and beyond."""
    return {
        "scheme": _schemes(ids),
        "order beyond L": [mean(found, id, "order", "score") for id in ids],
        "order within L": [mean(found, id, "order within", "score") for id in ids],
        "found beyond L": [mean(found, id, "retrieval", "score") for id in ids],
        "found within L": [
            mean(found, id, "retrieval within", "score") for id in ids
        ],
    }


def questions(found: Mapping, ids: Sequence[str]) -> Columns:
    """Tabulate the order scores beyond L of the models as they were trained, for each kind of question."""
    return {"scheme": _schemes(ids)} | {
        f"which was {kind}?": [_kind(found, id, "order", kind) for id in ids]
        for kind in KINDS
    }


def _schemes(ids: Sequence[str]) -> list[str]:
    """Return titles that don't mention the number of steps."""
    return [title(id).removesuffix(", 3,200 steps") for id in ids]


def _kind(found: Mapping, id: str, layout: str, kind: str) -> float | None:
    """Return the share of right answers minus the share that name the other record, for one kind of question."""
    right = mean(found, id, layout, "kinds", kind, 0)
    return (
        None if right is None else right - mean(found, id, layout, "kinds", kind, 1)
    )


def methods(
    found: Mapping, ids: Sequence[str], every: Mapping[str, Extension], pair: int
) -> Columns:
    """Tabulate models with context-extension methods: the period of ``pair``, the scores beyond L, and the order score
    at short distances.

    ``every`` maps ids to extensions.
    """
    extensions = [id.partition("/")[2] for id in ids]
    return {
        "method": [TITLES[one.partition("/")[0]] for one in extensions],
        "period": [period_with(every.get(one), pair) for one in extensions],
        "order": [mean(found, id, "order", "score") for id in ids],
        "records": [mean(found, id, "retrieval", "score") for id in ids],
        "order, short": [mean(found, id, "order short", "score") for id in ids],
    }


def gained(found: Mapping, id: str, layout: str) -> float | None:
    """Return how much a method adds to a score, with the same contexts and seeds.

    Returns None for a model without a method.
    """
    row = found["cells"][id]["less plain"].get(layout)
    return None if row is None else row[0]


def period_with(extension: Extension | None, pair: int) -> float | None:
    """Return a pair's period under an extension, with a context of 8 L.

    Without an extension, returns the period that the pair had in training. Returns None if the method changes distances
    instead of frequencies.
    """
    model = LanguageModel("rope-10000", LENGTH, dim=32, n_layers=1, n_heads=1)
    if extension is not None:
        model = with_method(model, extension.method, extension.options)
        if model.layers[0].attention.method.distances is not None:
            return None
    rotary = at_length(model, TEXT + 1).layers[0].attention.rotary
    theta = rotary.inv_freq
    if rotary.scaling is not None:
        theta = rotary.scaling(theta, TEXT + 1)[0]
    return periods(theta)[pair]
