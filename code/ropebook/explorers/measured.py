"""Explorer for the *Measured* chapter. It shows the effect of each method on the small models, at every position and
distance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import traitlets

from ropebook import extrapolation, results
from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Switch, Whole
from ropebook.lab import model
from ropebook.lab.claims import LONGER, ROPE
from ropebook.lab.data import VALUES
from ropebook.lab.extensions import FACTORS
from ropebook.lab.rule import FOLLOWING, TEXTS
from ropebook.lab.scores import TEXT
from ropebook.lab.tables import mean
from ropebook.lab.tasks import TASKS

__all__ = ["FOLLOWING", "LONGER", "ROPE", "Measured", "compact", "load", "unpacked"]

MOST_TEXT = TEXT
"""The number of bytes in the longest text."""
START = 16
"""The first position on the axes. Earlier bytes have little context, and cost so many bits that they would hide
everything else."""
_TITLES = {name: kind.title for name, kind in extrapolation.METHODS.items()}
METHODS = {
    "none": "no method",
    "linear": _TITLES["linear"],
    "ntk": _TITLES["ntk"],
    "ntk_by_parts": f"{_TITLES['ntk_by_parts']} (published β)",
    "ntk_by_parts_chosen": f"{_TITLES['ntk_by_parts']} (chosen β)",
    "yarn": f"{_TITLES['yarn']} (published β)",
    "yarn_chosen": f"{_TITLES['yarn']} (chosen β)",
    "yarn_chosen_unscaled": f"{_TITLES['yarn']} (chosen β), scores unscaled",
    "self_extend": _TITLES["self_extend"],
    "dynamic_ntk": _TITLES["dynamic_ntk"],
    "dynamic_ntk_2": f"{_TITLES['dynamic_ntk']}, with 2 in its formula",
    "dynamic_ntk_4": f"{_TITLES['dynamic_ntk']}, with 4 in its formula",
    "log_n": _TITLES["log_n"],
    "rerope": _TITLES["rerope"],
}
"""The methods for a trained model, each with its name on the page. YaRN with unscaled scores is shown only with the
chosen β."""
_LOOKS = {
    ROPE: ("1", 2.5, ""),
    "rope-100": ("1", 2, "0 4"),
    "rope-500000": ("1", 1.25, ""),
    "alternate": ("1", 1.75, "7 4"),
    "alibi": ("muted", 1.75, ""),
    "t5": ("muted", 1.75, "7 4"),
    "sinusoidal": ("ink", 1.25, ""),
    "learned": ("ink", 1.75, "7 4"),
    "none": ("muted", 2, "0 4"),
}
SCHEMES = {
    name: ("no positions" if name == "none" else model.SCHEMES[name].title, look)
    for name, look in _LOOKS.items()
}
"""The position schemes that models were trained with, each with its name and style. The first scheme is RoPE, and all
others are compared with it."""
CHOSEN = ("1", 2.25, "")
PLAIN = ("muted", 1.75, "")
LAST = ("muted", 2, "5 4")
"""The style of the last curve: a model that sees only the last L bytes. `CHOSEN` is the style of the chosen method, and
`PLAIN` that of the model as trained."""
DIGITS = 3
"""The number of digits in which `packed` writes each number."""


class Measured(Explorer):
    """The second experiment with the small models. The figure shows bits per byte at each position, or how well the
    models retrieve at each distance.

    The numbers come from ``results/measured.json``, or from ``results`` in the same format. ``FileNotFoundError`` is
    raised if there is no such file, and ``ValueError`` if the models have not been tested on the held-out part yet.
    Invalid values of the dials raise ``TraitError``.

    Args:
        show: "loss", "retrieval" or "order".
        text: the text for the loss, "python" or "language".
        run: "rope-10000-3200" for the models to which methods are applied, or "schemes" for all schemes as trained.
        method: one of `METHODS`.
        factor: s, "2", "4" or "8". Methods without a factor ignore it.
        tuned: whether to show the model that was trained a little further with the method. If there is no such model,
            the one without further training is shown.
        position: the position whose values the figure shows, 17 to 2,048. In the tasks, it is a distance.
    """

    script = "measured.js"
    colours = meaning(
        blue="the chosen method, or RoPE among the schemes",
    )

    show = Choice(
        {
            "loss": "loss by position",
            "retrieval": "retrieval by distance",
            "order": "order by distance",
        },
        label="Show",
        note="Bits per byte, finding a planted record, or telling which of two records came first.",
    )
    text = Choice(
        {"python": "Python", "language": "generated language"},
        label="Text",
        note="What the models read. The generated language has long-range rules.",
        more=True,
    )
    run = Choice(
        {LONGER: "RoPE, base 10⁴", "schemes": "all schemes"},
        label="Model",
        note="The model that methods are applied to (trained twice as long), or all schemes.",
        more=True,
    )
    method = Choice(
        METHODS,
        "yarn_chosen",
        label="Method",
        note="What is done to the trained model.",
    )
    factor = Choice(
        [str(s) for s in FACTORS],
        "4",
        label="Factor s",
        note="For texts of up to s·L bytes, s times the trained length.",
    )
    tuned = Switch(
        False,
        label="Fine-tuned",
        note="Trains the model a little further with the method, on longer texts.",
        more=True,
    )
    position = Whole(
        1024,
        min=START + 1,
        max=MOST_TEXT,
        log=True,
        label="Position or distance",
        below="the picture begins there",
        above="the texts end there",
        note="The values are read here.",
        unit="bytes",
        more=True,
    )
    measured = traitlets.Dict(help="the numbers, see compact").tag(sync=True)

    def __init__(
        self, results: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        given = load() if results is None else results
        super().__init__(measured=compact(given), **kwargs)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Curves of bits per byte against position in long texts, for small models that were trained on short "
            "texts. The models are shown as trained, with the chosen method, and with only as much text in view as in "
            "training, with a faint line for each of three seeds and vertical lines at the trained length and at the "
            "length that the method is set for. Below is the difference from the models as trained, with an interval "
            "for each band of positions."
        )

    def dials(self) -> dict[str, Any]:
        """Return the current values of the dials. The entry ``measured`` contains all numbers that dials can select."""
        return {**super().dials(), "measured": self.measured}


def load() -> dict:
    """Load the results of the second experiment. ``FileNotFoundError`` is raised if there are none."""
    return results.load("measured")


def compact(results: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the results that a page contains, with numbers rounded to three decimals.

    ``cells`` maps an id such as "rope-10000-3200/yarn/4" to a cell. For each text, a cell has the bits in each of the
    windows that end at ``edges``. For each task, it has the fraction of correct answers at each of the ``distances``:
    "far" in long texts, and "near" in texts of the trained length. These numbers are given for each seed, and are
    `packed`.

    A cell's ``apart`` compares it with the model as trained: it contains the mean difference and its interval, for each
    text and band. In the cell of a scheme, ``apart`` contains the difference from RoPE for each seed instead.

    ``last`` contains means over seeds for the model that sees only its last L bytes. For each text it has the bits,
    which are `packed`. Its ``apart`` has the difference between these bits and those of the model as trained.

    ``ValueError`` is raised if the models have not been tested on the held-out part, or if a text or cell is missing.
    """
    if results["opened"] is None:
        raise ValueError(
            "results have no numbers of the held-out part, which has not been tried yet"
        )
    if results["text"] != MOST_TEXT:
        raise ValueError(
            f"results must be of texts of {MOST_TEXT} bytes, got {results['text']}"
        )
    cells, plainly = (results["opened"][key] for key in ("cells", "differences"))
    missing = [id for id in (*SCHEMES, LONGER) if id not in cells]
    missing += [f"{LONGER}/{name}" for name in METHODS if not _tried(name, cells)]
    if missing:
        raise ValueError(f"results must hold the cell {missing[0]}")
    within, beyond = str(results["length"]), str(MOST_TEXT)
    first = results["edges"].index(START)
    count = len(results["edges"]) - 1 - first
    far = len(results["distances"])
    apart = {id: rows for id, rows in plainly["plain"].items() if _shown(id)}
    apart |= {id: _against_rope(cells, id) for id in SCHEMES if id != ROPE}
    return {
        "length": results["length"],
        "edges": results["edges"][first:],
        "bands": [list(band) for band in results["bands"]],
        "distances": list(results["distances"]),
        "chance": {"retrieval": 1 / VALUES, "order": 1 / 2},
        "device": results["provenance"]["device"],
        "date": str(results["provenance"]["date"])[:10],
        "cells": {
            id: {
                **{
                    text: packed(
                        (row[first:] for row in cell["curves"][text]), count
                    )
                    for text in TEXTS
                },
                **{
                    task: {
                        "far": packed(cell[task][beyond], far),
                        "near": packed(cell[task][within], far),
                    }
                    for task in TASKS
                },
                **({"apart": _rounded(apart[id])} if id in apart else {}),
            }
            for id, cell in cells.items()
            if _shown(id)
        },
        "last": {
            id: _last(cell, cells[LONGER], first)
            for id, cell in cells.items()
            if "last" in cell and (id == LONGER or id.endswith("/tuned"))
        },
    }


def _shown(id: str) -> bool:
    """Return whether the dials can select a cell."""
    scheme, _, extension = id.partition("/")
    return id in SCHEMES or (
        scheme == LONGER and extension.partition("/")[0] in ("", *METHODS)
    )


def _tried(method: str, cells: Iterable[str]) -> bool:
    return any(id.split("/")[:2] == [LONGER, method] for id in cells)


def _against_rope(cells: Mapping, id: str) -> dict[str, list]:
    """Subtract RoPE's bits from those of a scheme. For each text and band, return a list with the difference for each
    seed, or None if any of the bits are missing."""
    return {
        text: [
            None
            if None in (*ones, *others)
            else [one - other for one, other in zip(ones, others, strict=True)]
            for ones, others in zip(
                zip(*cells[id]["bits"][text], strict=True),
                zip(*cells[ROPE]["bits"][text], strict=True),
                strict=True,
            )
        ]
        for text in TEXTS
    }


def _last(cell: Mapping, plain: Mapping, first: int) -> dict[str, Any]:
    """Return means over seeds for the model that sees only its last L bytes: its bits for each text, and the difference
    from the bits of the plain model."""
    last = cell["last"]
    return {
        **{
            text: packed([means := mean(last["curves"][text])[first:]], len(means))
            for text in TEXTS
        },
        "apart": {
            text: rounded(
                np.subtract(mean(last["bits"][text]), mean(plain["bits"][text]))
            )
            for text in TEXTS
        },
    }


def _rounded(rows: Mapping[str, Sequence]) -> dict[str, list]:
    return {
        text: [None if row is None else rounded(row) for row in rows[text]]
        for text in TEXTS
    }


def rounded(values: Iterable[float]) -> list[float]:
    """Round numbers to three decimals.

    >>> rounded([0.12345, -2.0])
    [0.123, -2.0]
    """
    return [round(float(value), 3) for value in values]


def packed(rows: Iterable[Sequence[float] | None], count: int) -> str:
    """Write rows of numbers from 0 to 46.655 as a single string, with ``count`` numbers per row.

    Each number is written in thousandths, with three digits in base 36. A missing number is written as "---". A page
    contains thousands of numbers, and this format takes less than half the space.

    >>> packed([[2.5, 0.125], None], 3)
    '1xg03h------------'
    """
    return "".join(
        "---" if value is None else _digits(round(1000 * value))
        for row in rows
        for value in [*(row or []), *[None] * (count - len(row or []))]
    )


def _digits(number: int) -> str:
    text = np.base_repr(number, 36).lower().rjust(DIGITS, "0")
    if number < 0 or len(text) > DIGITS:
        raise ValueError(f"number must be from 0 to 46655, got {number}")
    return text


def unpacked(text: str, count: int) -> list[list[float | None]]:
    """Return the rows of numbers that `packed` has written to a string, with ``count`` numbers per row.

    >>> unpacked("1xg03h------------", 3)
    [[2.5, 0.125, None], [None, None, None]]
    """
    found = [
        None if text[at] == "-" else int(text[at : at + DIGITS], 36) / 1000
        for at in range(0, len(text), DIGITS)
    ]
    return [found[at : at + count] for at in range(0, len(found), count)]
