"""The explorer of chapter *The rotation, derived* that slides a query and a key through a text, a fixed distance apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook.derivation import rotate, score
from ropebook.explorers import Even, Explorer, Real, Whole, draws, still
from ropebook.explorers.turn import pair_within
from ropebook.sinusoidal import encoding

MOST_DIMS = 512
MOST_POSITION = 4096
SHIFTS = 256
"""The curves show the shifts 0 … 255."""
DRAWS = 16


class Lock(Explorer):
    """Relative lock: a query at m + shift and a key at n + shift, with RoPE and with an added sinusoidal encoding.

    RoPE's score ⟨R_m q, R_n k⟩ stands still under ``shift``, the score ⟨q + PE_m, k + PE_n⟩ does not. ``m``, ``n``: 0 to
    4096, before the shift. ``shift``: 0 to 255. ``base``: 1 to 10⁷. ``dim``: even, 2 to 512. ``pair``: 0 to dim/2 − 1,
    the pair whose plane is drawn (a ``dim`` that becomes too small takes it along). ``draw``: 0 to 15, which random q
    and k. Bad values raise ``TraitError``.

    >>> figure = Lock(m=7, n=3)
    >>> before = figure.compute(figure.dials())["rope"]
    >>> figure.shift = 100
    >>> abs(figure.compute(figure.dials())["rope"] - before) < 1e-12
    True
    """

    script = "lock.js"

    m = Whole(
        20,
        min=0,
        max=MOST_POSITION,
        log=True,
        label="Query position m",
        below="positions are counted from 0",
        above="use the shift to go further",
        note="Before the shift.",
        more=True,
    )
    n = Whole(
        4,
        min=0,
        max=MOST_POSITION,
        log=True,
        label="Key position n",
        below="positions are counted from 0",
        above="use the shift to go further",
        note="Before the shift.",
        more=True,
    )
    shift = Whole(
        20,
        min=0,
        max=SHIFTS - 1,
        label="Shift t",
        below="the text begins at position 0",
        above="the curves end there",
        note="Added to m and to n.",
    )
    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all pairs would stand still",
        note="θᵢ = b^(−2i/d), in both encodings.",
    )
    dim = Even(
        16,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="longer vectors show nothing new",
        note="Of query and key: d/2 pairs.",
    )
    pair = Whole(
        2,
        min=0,
        max=MOST_DIMS // 2 - 1,
        label="Pair i",
        below="pairs are counted from 0",
        above="the longest vector has no more pairs",
        note="Whose plane is drawn. Beyond the last pair it becomes the last.",
        more=True,
    )
    draw = Whole(
        2,
        min=0,
        max=DRAWS - 1,
        label="Random draw",
        below="draws are counted from 0",
        above="no more were drawn",
        note="Another draw, another query and key.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Query and key as two arrows in the plane of one pair, twice: turned by RoPE, and with a sinusoidal "
            "encoding added. Below, both scores over all pairs against a shift that moves query and key alike: RoPE's "
            "is a level line, the sinusoidal one goes up and down."
        )

    @traitlets.validate("pair")
    def _valid_pair(self, proposal: dict) -> int:
        return pair_within(self.dim, proposal["value"])

    @traitlets.observe("dim")
    def _fit_pair(self, _: dict) -> None:
        self.pair = min(self.pair, self.dim // 2 - 1)

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """Both scores at the shift (``rope``, ``added``) and without it (``ropeHome``, ``addedHome``), over all pairs;
        ``ropeCurve`` and ``addedCurve`` at every shift. Of the pair chosen, as x, y of the query, then x, y of the key: ``bare``, ``turned`` and ``summed`` (with the encoding),
        and what it gives to each score (``turnedProduct``, ``summedProduct``)."""
        m, n, shift, base, dim, pair = (
            dials[name] for name in ("m", "n", "shift", "base", "dim", "pair")
        )
        q, k = vectors(dials)
        shifts = torch.arange(SHIFTS)
        rope = score(q, k, m + shifts, n + shifts, base)
        at_m, at_n = (
            encoding(position + shifts, dim, base, torch.float64)
            for position in (m, n)
        )
        added = ((q + at_m) * (k + at_n)).sum(-1)
        both = slice(2 * pair, 2 * pair + 2)
        turned = [
            rotate(q, m + shift, base)[both],
            rotate(k, n + shift, base)[both],
        ]
        summed = [(q + at_m[shift])[both], (k + at_n[shift])[both]]
        return {
            "rope": rope[shift].item(),
            "ropeHome": rope[0].item(),
            "added": added[shift].item(),
            "addedHome": added[0].item(),
            "ropeCurve": rope.tolist(),
            "addedCurve": added.tolist(),
            "bare": [*q[both].tolist(), *k[both].tolist()],
            "turned": torch.cat(turned).tolist(),
            "summed": torch.cat(summed).tolist(),
            "turnedProduct": torch.dot(*turned).item(),
            "summedProduct": torch.dot(*summed).item(),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A score has four products per pair, each at most as large as the product of the vectors' lengths there."""
        q, k = (x.view(-1, 2).norm(dim=-1) for x in vectors(dials))
        pair = dials["pair"]
        rope, added = q * k, (q + 1) * (k + 1)  # a pair of PE has length 1
        longest = max(q[pair], k[pair]).item() + 1
        return {
            **dict.fromkeys(("rope", "ropeHome", "ropeCurve"), rope.sum().item()),
            **dict.fromkeys(
                ("added", "addedHome", "addedCurve"), added.sum().item()
            ),
            **dict.fromkeys(("bare", "turned", "summed"), longest),
            "turnedProduct": rope[pair].item(),
            "summedProduct": added[pair].item(),
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The plane of the pair twice, the scores over all pairs below."""
        data = self.compute(self.dials())
        bare = np.reshape(data["bare"], (2, 2))
        farthest = np.linalg.norm(bare, axis=1).max() + 1
        at_m, at_n = (
            still.lowered(position + self.shift) for position in (self.m, self.n)
        )
        parts = []
        for left, colour, title, note, name in (
            (0, "1", "RoPE", f"R{at_m}q and R{at_n}k", "turned"),
            (
                390,
                "2",
                "Sinusoidal",
                f"q + PE{at_m} and k + PE{at_n}",
                "summed",
            ),
        ):
            now = np.reshape(data[name], (2, 2))
            product = f"product {still.exact(data[f'{name}Product'], 4)}"
            words = f"{title}, pair {self.pair}"
            parts += [
                still.text(left, 14, words, fill=colour, style=still.BOLD),
                still.text(left, 33, note, fill="muted"),
                *plane(left, farthest, bare, now, circled=name == "summed"),
                still.text(left, 316, product, fill="muted"),
            ]
        which = "the only pair" if self.dim == 2 else f"all {self.dim // 2} pairs"
        parts += [
            still.text(0, 356, f"Score over {which}", style=still.BOLD),
            still.text(0, 375, f"RoPE {still.exact(data['rope'], 4)}", fill="1"),
            still.text(
                130, 375, f"sinusoidal {still.exact(data['added'], 4)}", fill="2"
            ),
            *scores(data, self.shift, 390, 150),
        ]
        return 740, 590, parts


def vectors(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The query and the key of a draw: standard normal numbers, (dim,) each, float64."""
    return tuple(
        torch.from_numpy(
            draws.normals(f"lock {name} {dials['draw']}", dials["dim"])
        )
        for name in ("query", "key")
    )


def plane(
    left: float, farthest: float, bare: np.ndarray, now: np.ndarray, circled: bool
) -> list[str]:
    """Query and key of the pair, (2, 2) each: as they are, over what they were without a position. Circles show where
    the tips can be: around the bare tips where the encoding is added (``circled``), else around the origin."""
    centre, unit = np.array([left + 150.0, 170.0]), 118 / farthest
    tips, bares = (centre + both * unit * [1, -1] for both in (now, bare))
    circles = (
        [(tip, unit) for tip in bares]
        if circled
        else [(centre, math.hypot(*vector) * unit) for vector in now]
    )
    parts = [
        still.line([(centre[0] - 118, 170), (centre[0] + 118, 170)], "grid"),
        still.line([(centre[0], 52), (centre[0], 288)], "grid"),
        still.path("".join(still.ring(*circle) for circle in circles), "grid", 1.5),
    ]
    for name, colour, tip, tail in zip("qk", "34", tips, bares, strict=True):
        parts.append(still.arrow(centre, tail, colour, 1))
        if circled:
            parts.append(still.line([tail, tip], "muted", 1.5))
        parts.append(still.arrow(centre, tip, colour, 3, 12))
        x, y = tip + (tip - centre) * 12 / max(np.linalg.norm(tip - centre), 1)
        parts.append(
            still.text(
                x, y + 5, name, anchor="middle", fill=colour, style=still.BOLD
            )
        )
    return parts


def scores(
    data: dict[str, Any], shift: int, top: float, height: float
) -> list[str]:
    """Both scores against the shift, and where they stand."""
    values = [*data["ropeCurve"], *data["addedCurve"], 0.0]
    least, most = min(values), max(values)
    spread = (most - least) or 1.0

    def place(t: int, value: float) -> tuple[float, float]:
        return (
            round(52 + t / (SHIFTS - 1) * 664, 1),
            round(top + (most - value) / spread * height, 1),
        )

    parts = []
    for level in (least, 0.0, most):
        y = place(0, level)[1]
        parts.append(still.line([(52, y), (716, y)], "grid"))
        if level == 0 or abs(y - place(0, 0)[1]) > 16:  # else they would overlap
            name = still.exact(level, 1 if level else 0)
            parts.append(still.text(44, y + 4, name, anchor="end", fill="muted"))
    for colour, width, name in (("2", 1.5, "addedCurve"), ("1", 2.5, "ropeCurve")):
        points = [place(t, value) for t, value in enumerate(data[name])]
        parts.append(still.line(points, colour, width))
    x = place(shift, 0)[0]
    parts.append(still.line([(x, top - 4), (x, top + height + 4)], "ink", 1.5))
    parts.append(still.dot(*place(shift, data["rope"]), 5, "1"))
    parts.append(still.dot(*place(shift, data["added"]), 5, "2"))
    for t in sorted({0, shift, SHIFTS - 1}):
        if t == shift or abs(t - shift) > 20:
            name = f"shift {t}" if t == shift else f"{t}"
            parts.append(
                still.text(
                    min(place(t, 0)[0], 706),
                    top + height + 24,
                    name,
                    anchor="middle",
                    fill="muted",
                )
            )
    return parts
