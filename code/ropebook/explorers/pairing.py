"""The explorer of chapter *An efficient rotation* that reorders the channels of q and k: interleaved, or in two halves."""

from __future__ import annotations

from typing import Any

import torch
import traitlets

from ropebook.derivation import pairs, rotate
from ropebook.efficient import interleaved_to_half
from ropebook.explorers import Choice, Even, Explorer, Switch, Whole, still
from ropebook.explorers.draws import normals

LEAST_DIMS = 4
MOST_DIMS = 32
MOST_POSITION = 64
BASE = 10_000.0


class Pairing(Explorer):
    """The channels of a query and a key, stored interleaved or half-split, and rotated in one of the two layouts.

    ``dim``: even, 4 to 32. ``m``, ``n``: the positions of query and key, 0 to 64. ``permute_q``, ``permute_k``: store
    the channels in the half-split order. ``pairing``: which channels the rotation takes for a pair, "interleaved" or
    "half". Bad values raise ``TraitError``.

    >>> figure = Pairing(permute_q=True, permute_k=True, pairing="half")
    >>> data = figure.compute(figure.dials())
    >>> abs(data["score"] - data["reference"]) < 1e-12
    True
    """

    script = "pairing.js"

    permute_q = Switch(
        True,
        label="Permute q",
        note="Stores q’s channels 0, 2, 4, … first, then 1, 3, 5, …",
        more=True,
    )
    permute_k = Switch(
        False,
        label="Permute k",
        note="Stores k’s channels in the same order.",
    )
    pairing = Choice(
        {"interleaved": "interleaved", "half": "half-split"},
        "half",
        label="Pairs of the rotation",
        note="Places 2i and 2i + 1, or places i and i + d/2.",
    )
    dim = Even(
        8,
        min=LEAST_DIMS,
        max=MOST_DIMS,
        label="Dimension d",
        below="one pair can be stored in one way only",
        above="the cells would be too narrow",
        note="Two channels for each pair.",
    )
    m = Whole(
        40,
        min=0,
        max=MOST_POSITION,
        label="Position m of q",
        below="positions are counted from 0",
        above="the curve ends there",
        note="The rotations cancel where n = m.",
        more=True,
    )
    n = Whole(
        32,
        min=0,
        max=MOST_POSITION,
        label="Position n of k",
        below="positions are counted from 0",
        above="the curve ends there",
        note="The upright line in the curves.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The channels of a query and of a key as two rows of cells, the two channels of a pair in one colour. Arcs "
            "join the cells that the rotation takes for a pair: where both have one colour, they belong together. Lines "
            "between the rows join the cells that are multiplied. Below, the score at every position of the key, in the "
            "reference layout and as stored now: the curves agree only if q, k and the rotation use the same order."
        )

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """Which channel stands in each place of q and of k, and its number; the places that the rotation takes for
        pairs; the score, and its reference (everything interleaved), for the key at every position from 0 to 64 and
        for the key at n."""
        q, k = vectors(dials["dim"])
        places = [places_of(dials, name) for name in ("permute_q", "permute_k")]
        stored = [
            vector[order] for vector, order in zip((q, k), places, strict=True)
        ]
        scores = scores_of(*stored, dials["m"], dials["pairing"])
        references = scores_of(q, k, dials["m"], "interleaved")
        return {
            "qChannels": places[0].tolist(),
            "kChannels": places[1].tolist(),
            "q": stored[0].tolist(),
            "k": stored[1].tolist(),
            "links": pairs(dials["dim"], dials["pairing"]).tolist(),
            "scores": scores.tolist(),
            "references": references.tolist(),
            "score": scores[dials["n"]].item(),
            "reference": references[dials["n"]].item(),
            "difference": (scores - references).abs().max().item(),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A score has dim terms, no larger together than |q| |k|."""
        q, k = vectors(dials["dim"])
        data = Pairing.compute(dials)
        largest = (q.norm() * k.norm()).item()
        exact = ("qChannels", "kChannels", "links")
        vectors_ = {name: [abs(one) for one in data[name]] for name in "qk"}
        return {
            name: 0.0 if name in exact else vectors_.get(name, largest)
            for name in data
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The two rows of cells on the left, the curves on the right."""
        data = self.compute(self.dials())
        left, q_top, k_top, tall = 26, 100, 184, 34
        cell = min(44, (400 - left) // self.dim)

        def x(place: int) -> float:
            return left + (place + 0.5) * cell

        half = "half-split" if self.pairing == "half" else "interleaved"
        parts = [
            still.text(
                0, 14, "Channels as stored, pairs as rotated", style=still.BOLD
            ),
            still.text(0, 34, f"Arcs: pairs of the {half} rotation", fill="muted"),
        ]
        rows = [("q", data["qChannels"], q_top), ("k", data["kChannels"], k_top)]
        for name, channels, top in rows:
            start, away = (top, -1) if name == "q" else (top + tall, 1)
            for one, other in data["links"]:
                rise = away * min(58, 12 + 0.35 * cell * (other - one))
                bow = f"M{x(one):g},{start}C{x(one):g},{start + rise:g} "
                bow += f"{x(other):g},{start + rise:g} {x(other):g},{start}"
                whole = channels[one] // 2 == channels[other] // 2
                parts.append(still.path(bow, *look(whole, channels[one])))
        for place, channel in enumerate(data["qChannels"]):
            down = f"M{x(place):g},{q_top + tall}V{k_top}"
            whole = channel == data["kChannels"][place]
            parts.append(still.path(down, *look(whole, channel)))
        for name, channels, top in rows:
            parts.append(still.text(0, top + tall / 2 + 5, name, style=still.BOLD))
            for place, channel in enumerate(channels):
                fill, share = colour_of(channel)
                corner = x(place) - cell / 2 + 1
                parts.append(still.rect(corner, top, cell - 2, tall, fill, share))
                if cell >= 18:
                    middle = top + tall / 2 + 5
                    parts.append(
                        still.text(x(place), middle, f"{channel}", "middle")
                    )
        parts += self.draw_curves(data, 470, 720, 80, 260)
        return 730, 304, parts

    def draw_curves(
        self, data: dict[str, Any], left: int, right: int, top: int, bottom: int
    ) -> list[str]:
        """The scores at every position of the key: broad and grey the reference, on it the score as stored now."""
        curves = (data["references"], data["scores"])
        reach = max(abs(score) for curve in curves for score in curve)

        def x(position: int) -> float:
            return left + position / MOST_POSITION * (right - left)

        def y(score: float) -> float:
            return (top + bottom) / 2 - score / reach * (bottom - top) / 2

        def path(curve: list[float]) -> str:
            return "M" + "L".join(
                f"{x(n):.1f},{y(one):.1f}" for n, one in enumerate(curve)
            )

        now, then = (
            f"{data[name]:.2f}".replace("-", "−") for name in ("score", "reference")
        )
        words = f"At n = {self.n}: {now}, all interleaved {then}"
        parts = [
            still.text(
                left, 14, f"Score of q at {self.m} and k at n", style=still.BOLD
            ),
            still.text(left, 34, "Grey: all interleaved. Blue: now", fill="muted"),
            still.text(left, 54, words, fill="muted"),
            still.line([(left, y(0)), (right, y(0))], "grid"),
            still.line([(x(self.n), top), (x(self.n), bottom)], "ink", 1.5),
            still.path(path(data["references"]), "grid", 7),
            still.path(path(data["scores"]), "1", 2),
            still.dot(x(self.n), y(data["reference"]), 4.5, "muted"),
            still.dot(x(self.n), y(data["score"]), 4.5, "1"),
        ]
        for place in (0, 16, 32, 48, 64):
            parts.append(
                still.text(x(place), bottom + 18, f"{place}", "middle", "muted")
            )
        words = "position n of the key"
        middle = (left + right) / 2
        return [*parts, still.text(middle, bottom + 36, words, "middle", "muted")]


def colour_of(channel: int) -> tuple[str, float]:
    """The colour of a channel's pair, and how strong it is: four colours, paler ones for the pairs beyond."""
    pair = channel // 2
    return f"{1 + pair % 4}", (0.55, 0.36, 0.2, 0.1)[pair // 4]


def look(whole: bool, channel: int) -> tuple[str, float]:
    """Colour and width of a link: the pair's colour where it belongs together, else thin and grey."""
    return (colour_of(channel)[0], 2.5) if whole else ("muted", 0.75)


def vectors(dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The query and the key, interleaved: (dim,) each, float64."""
    return tuple(torch.from_numpy(normals(f"pairing {name}", dim)) for name in "qk")


def places_of(dials: dict[str, Any], permute: str) -> torch.Tensor:
    """The channel in each place of the vector that the switch ``permute`` is for."""
    if dials[permute]:
        return interleaved_to_half(dials["dim"])
    return torch.arange(dials["dim"])


def scores_of(
    q: torch.Tensor, k: torch.Tensor, m: int, layout: str
) -> torch.Tensor:
    """The scores of q at position m and k at each position 0 … 64: (65,)."""
    keys = rotate(k, torch.arange(MOST_POSITION + 1), BASE, layout)
    return keys @ rotate(q, m, BASE, layout)
