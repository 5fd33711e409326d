"""Reference values for the Rivals explorer, computed in float64 with the book's modules."""

from __future__ import annotations

import math
from typing import Any

import torch

from ropebook import relatives
from ropebook.explorers.rivals import BY_HEAD, SPAN
from ropebook.relatives.pictures import given


def compute(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the figure's data, keyed by name.

    ``first`` and ``second`` are the curves of the two schemes at n − m = −256 … 256: one curve per head, or a single
    curve if all heads share it. ``here`` has both schemes' values for the chosen head at the chosen offset, and
    ``mirrored`` has the values at the opposite offset.

    >>> from ropebook.explorers.rivals import Rivals
    >>> compute(Rivals(second="kerple").dials())["here"]
    [-6.25, -4.61512051684126]
    """
    rows = [curves(name, dials) for name in (dials["first"], dials["second"])]
    chosen = [row[0 if len(row) == 1 else dials["head"] - 1] for row in rows]
    return {
        "first": rows[0].tolist(),
        "second": rows[1].tolist(),
        "here": [curve[dials["offset"] + SPAN].item() for curve in chosen],
        "mirrored": [curve[SPAN - dials["offset"]].item() for curve in chosen],
    }


def terms(dials: dict[str, Any]) -> dict[str, Any]:
    """Return the scale of the tolerance for each entry.

    A wave is a sum of d/2 cosines, which is no larger than the sum of their amplitudes. All other curves are single
    terms.
    """
    most = max(2 * math.sqrt(dials["dim"]), dials["dim"] * dials["heads"] / 8)
    data = compute(dials)

    def sizes(rows: list) -> list:
        return (torch.tensor(rows).abs() + most).tolist()

    return {name: sizes(rows) for name, rows in data.items()}


def curves(name: str, dials: dict[str, Any]) -> torch.Tensor:
    """Return the scheme's curves: (heads or 1, 513) in float64."""
    apart = -torch.arange(-SPAN, SPAN + 1).double()
    dim, heads = dials["dim"], dials["heads"] if name in BY_HEAD else 1
    if name == "xl":
        scheme = relatives.TransformerXL(1, dim, dim, dials["base"]).double()
        with torch.no_grad():
            scheme.w_r.copy_(torch.eye(dim))
            scheme.v.fill_(1.0)
        nothing = torch.zeros(1, 2 * SPAN + 1, dim, dtype=torch.float64)
        found = scheme.score(nothing[:, :1], nothing, [0], -apart)[:, 0].detach()
        return found - found[:, SPAN : SPAN + 1]
    scheme = {
        "none": lambda: relatives.Nothing(),
        "alibi": lambda: relatives.ALiBi(heads),
        "signed": lambda: relatives.ALiBi(heads, signed=True),
        "t5": lambda: relatives.imitated(relatives.ALiBi(heads)),
        "sandwich": lambda: relatives.Sandwich(heads, dim, dials["base"]),
        "kerple": lambda: relatives.Kerple(1),
        "rope": lambda: relatives.Rope(dim, dials["base"]),
        "xpos": lambda: relatives.XPos(dim, dials["base"]),
    }[name]()
    return given(scheme, apart, dim, heads)
