"""The explorer of chapter *Distance*: the score of one query with every key, against the key's position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import traitlets

from ropebook.complex_plane import amplitudes, score_at
from ropebook.explorers import Choice, Even, Explorer, Real, Whole, still
from ropebook.explorers.draws import normals
from ropebook.explorers.sweep import band

MOST_DIMS = 512
MOST_LENGTH = 1_000_000
MOST_DRAWS = 20
MOST_SAMPLES = 4096
"""Up to so many keys all scores are computed."""
NEAR = 3072
"""Of longer texts, those of so many keys nearest to the query, and some in each column of the picture."""
MOST_COLUMNS = 512
CLOSE = (0, 2, 4)
"""Where a column is sampled, in positions: of the fastest wave, 2π long, these show both sides."""
SPOTS = (0.18, 0.37, 0.55, 0.76, 0.93)
"""And as shares of its width: unevenly, so that no wave hides between the samples."""
VECTORS = ("ones", "same", "random", "slow")


class Distance(Explorer):
    """The score of a query at one position with the same key at every position of a text.

    ``base``: 1 to 10⁷. ``dim``: even, 2 to 512. ``query``: the query's position, 0 to length − 1 (a length that becomes too
    short takes it along). ``length``: how many positions, 2 to 10⁶; beyond 4096 the distant ones are sampled. ``vectors``:
    "ones", q = k = (1, …, 1); "same", q = k random; "random", q and k random and independent; "slow", q = k = 1 in the
    slower half of the pairs and 0 in the others. ``draw``: which random vectors, 1 to 20. Bad values raise ``TraitError``.

    >>> figure = Distance(dim=256, query=0, length=512)
    >>> data = figure.compute(figure.dials())
    >>> round(data["least"], 1), data["leastAt"], data["negativeAt"]
    (49.7, 509, -1)
    """

    script = "distance.js"

    base = Real(
        10_000.0,
        min=1.0,
        max=1e7,
        log=True,
        label="Base b",
        below="a smaller base would make later pairs turn faster",
        above="nearly all pairs would stand still",
        note="Pair i turns by θᵢ = b^(−2i/d) radians per position.",
    )
    dim = Even(
        256,
        min=2,
        max=MOST_DIMS,
        log=True,
        label="Dimension d",
        below="one pair needs two numbers",
        above="wider heads show nothing new",
        note="Of query and key: d/2 pairs.",
    )
    query = Whole(
        256,
        min=0,
        max=MOST_LENGTH - 1,
        log=True,
        label="Query position m",
        below="positions are counted from 0",
        above="the longest text ends there",
        note="Beyond the length it becomes the last position.",
    )
    length = Whole(
        512,
        min=2,
        max=MOST_LENGTH,
        log=True,
        label="Length L",
        below="one key alone is no curve",
        above="longer texts show only bands",
        note=f"Keys at 0 to L − 1. Beyond {MOST_SAMPLES} the distant ones are sampled.",
        more=True,
    )
    vectors = Choice(
        {
            "ones": "ones",
            "same": "q = k",
            "random": "q and k",
            "slow": "slow pairs",
        },
        label="Query and key",
        note="All ones; random and equal; random and different; ones in the slower half of the pairs, 0 in the others.",
        more=True,
    )
    draw = Whole(
        1,
        min=1,
        max=MOST_DRAWS,
        label="Random draw",
        below="draws are counted from 1",
        above="no more were drawn",
        note="Another draw, another query and key.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The score of one query with the same key at every position of a text, as a curve over the positions. For "
            "q = k it has its peak at the query, falls on both sides in swings, alike to the left and to the right, and "
            "does not settle: far away it swings about zero, or about what the slowest pairs still add."
        )

    @traitlets.validate("query")
    def _valid_query(self, proposal: dict) -> int:
        if proposal["value"] >= self.length:
            raise traitlets.TraitError(
                f"query must be an integer >= 0 and <= {self.length - 1}, for length is {self.length}, "
                f"got {proposal['value']}"
            )
        return proposal["value"]

    @traitlets.observe("length")
    def _fit_query(self, _: dict) -> None:
        self.query = min(self.query, self.length - 1)

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """The least and the greatest score in each column (``low``, ``high``) of ``per`` keys; with ``per`` 1 every score
        is there, else those of the `sampled_keys`: all that are nearer to the query than ``reach``, and some of the others.

        Of these scores: the ``least`` and its key ``leastAt`` (of equals the nearest to the query); the key nearest to the
        query whose score is below 0, ``negativeAt``, −1 if there is none; how many are local ``maxima``, −1 where scores
        are sampled. ``home`` is the score at the query's own position, ``swing`` √(½ Σ|h_i|²): the root mean square of
        the score where the angles of all pairs are as good as random.
        """
        a, b = waves_of(dials)
        query, length = dials["query"], dials["length"]
        keys, per, reach = sampled_keys(query, length)
        scores = score_at(query - keys, a, b, dials["base"])
        columns = torch.full(
            (math.ceil(length / per),), math.nan, dtype=torch.float64
        )
        low, high = (
            columns.scatter_reduce(0, keys // per, scores, kind, include_self=False)
            for kind in ("amin", "amax")
        )
        size = torch.hypot(a, b)
        lowest = scores <= scores.min() + 1e-9 * size.sum()
        rises = low.diff() > 0
        return {
            "per": per,
            "reach": reach,
            "low": low.tolist(),
            "high": high.tolist(),
            "home": a.sum().item(),
            "least": scores.min().item(),
            "leastAt": nearest(keys[lowest], query),
            "negativeAt": nearest(keys[scores < 0], query),
            "maxima": int((rises[:-1] & ~rises[1:]).sum()) if per == 1 else -1,
            "swing": (size.square().sum() / 2).sqrt().item(),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A score is a sum of d/2 waves of the heights |h_i|; positions and numbers of maxima must be equal."""
        data = Distance.compute(dials)
        size = torch.hypot(*waves_of(dials)).sum().item()
        sums = {
            name: np.full(np.shape(data[name]), size).tolist()
            for name in ("low", "high", "home", "least")
        }
        return {**dict.fromkeys(data, 0.0), **sums, "swing": data["swing"]}

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The curve or, where several keys share a place, the band from the least to the greatest score."""
        data = self.compute(self.dials())
        left, right, top, floor = 58, 706, 66, 330
        last = self.length - 1
        # Parts of equal length: a line through parts of one and of two values would change its width.
        size = math.ceil(len(data["low"]) / (right - left))
        starts = np.arange(0, len(data["low"]), size)
        low, high = (
            pick.reduceat(data[name], starts)
            for pick, name in ((np.minimum, "low"), (np.maximum, "high"))
        )
        bottom, ceiling = min(0.0, *data["low"]), max(0.0, *data["high"])

        def x(key: float) -> float:
            return left + key / last * (right - left)

        def y(score: float) -> float:
            return floor - (score - bottom) / (ceiling - bottom) * (floor - top)

        middles = starts * data["per"] + (size * data["per"] - 1) / 2
        places = [x(min(middle, last)) for middle in middles]
        there, back = (
            [(at, y(value)) for at, value in zip(places, values, strict=True)]
            for values in (high, low)
        )
        parts = [
            still.text(0, 14, heading(self.dials()), style=still.BOLD),
            still.text(0, 34, sampling(data["per"]), fill="muted"),
            still.line([(x(self.query), top - 6), (x(self.query), floor)], "muted"),
            still.line([(left, y(0)), (right, y(0))], "muted"),
        ]
        for level in (-data["swing"], data["swing"]):
            if bottom <= level <= ceiling:
                parts.append(
                    still.line([(left, y(level)), (right, y(level))], "grid")
                )
        parts += [
            band([*there, *back[::-1]], "1"),
            still.dot(x(data["leastAt"]), y(data["least"]), 4.5, "neg"),
        ]
        levels: list[float] = []
        for level in (0.0, ceiling, bottom):
            if all(abs(y(level) - y(other)) > 14 for other in levels):
                levels.append(level)
                number = still.exact(level, 1 if 0 < abs(level) < 10 else 0)
                parts.append(
                    still.text(left - 8, y(level) + 4, number, "end", "muted")
                )
        words = "position n of the key"
        parts += [
            *numbers([self.query, 0, last], x, floor + 20),
            still.text((left + right) / 2, floor + 40, words, "middle", "muted"),
            still.text(0, floor + 66, in_words(data, self.query)),
        ]
        return 740, floor + 76, parts


def vectors_of(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Query and key, each (dim,) float64."""
    dim, draw = dials["dim"], dials["draw"]
    if dials["vectors"] in ("same", "random"):
        q, k = (
            torch.from_numpy(normals(f"distance {name} {draw}", dim))
            for name in ("query", "key")
        )
        return q, q if dials["vectors"] == "same" else k
    q = torch.ones(dim, dtype=torch.float64)
    if dials["vectors"] == "slow":
        q[: dim // 4 * 2] = 0
    return q, q


def waves_of(dials: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The amplitudes a_i and b_i of the score, each (dim/2,) float64."""
    return amplitudes(*vectors_of(dials))


def sampled_keys(query: int, length: int) -> tuple[torch.Tensor, int, int]:
    """Positions of keys, (samples,) int64; how many positions a column of the picture stands for; and the distance below
    which no key of the text is left out.

    Up to 4096 all of them; in longer texts the 3072 nearest to the query, and eight in each column, at `CLOSE` and `SPOTS`.

    >>> keys, per, reach = sampled_keys(0, 65536)
    >>> per, reach, keys[3072:3075].tolist()
    (128, 3072, [0, 2, 4])
    """
    if length <= MOST_SAMPLES:
        return torch.arange(length), 1, length
    first = min(max(0, query - NEAR // 2), length - NEAR)
    near = torch.arange(first, first + NEAR)
    left = query - first + 1 if first > 0 else length
    right = first + NEAR - query if first + NEAR < length else length
    per = math.ceil(length / MOST_COLUMNS)
    offsets = torch.tensor([*CLOSE, *(math.floor(per * spot) for spot in SPOTS)])
    far = (torch.arange(0, length, per)[:, None] + offsets).ravel()
    return torch.cat((near, far[far < length])), per, min(left, right)


def nearest(keys: torch.Tensor, query: int) -> int:
    """The key nearest to the query, of two the earlier; −1 if there are none.

    >>> nearest(torch.tensor([9, 1, 20]), 5)
    1
    """
    if not len(keys):
        return -1
    return min(keys.tolist(), key=lambda key: (abs(key - query), key))


def heading(dials: dict[str, Any]) -> str:
    """What is drawn: whose scores."""
    which = {
        "ones": "q = k = (1, …, 1)",
        "same": f"q = k random, draw {dials['draw']}",
        "random": f"q and k random, draw {dials['draw']}",
        "slow": "q = k = 1 in the slower half of the pairs",
    }[dials["vectors"]]
    return (
        f"A query at {dials['query']}, keys at 0 to {dials['length'] - 1}: {which}"
    )


def sampling(per: int) -> str:
    """How the curve was made."""
    if per == 1:
        return "The score with every key. Grey: ± the swing of pairs out of step"
    return f"Sampled: {len(CLOSE + SPOTS)} of every {per} keys. Grey: ± the swing of pairs out of step"


def in_words(data: dict[str, Any], query: int) -> str:
    """Where it is negative and least."""
    some = "" if data["per"] == 1 else " (of the samples)"
    first = f"Nowhere below 0{some}"
    if data["negativeAt"] >= 0:
        distance = abs(query - data["negativeAt"])
        sure = "" if distance < data["reach"] else some
        first = f"Below 0 first at distance {distance}{sure}"
    least = still.exact(data["least"], 2)
    return (
        f"{first}; least {least} at distance {abs(query - data['leastAt'])}{some}"
    )


def numbers(places: list[int], x: Any, y: float) -> list[str]:
    """The positions along the axis, the first of any two that would overlap."""
    kept: list[int] = []
    for place in places:
        if all(abs(x(place) - x(other)) >= 56 for other in kept):
            kept.append(place)
    return [
        still.text(x(place), y, f"{place}", "middle", "muted") for place in kept
    ]
