"""The explorer of chapter *Attention* that shows what dividing by √d is for."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import torch
import traitlets
from torch import Tensor

from ropebook.attention import attention_weights, softmax_gradient_norm
from ropebook.explorers import Explorer, Switch, Whole, still
from ropebook.explorers.draws import normals

MOST_DIMS = 512
MOST_KEYS = 32
DRAWS = 16
MEAN_DIMS = sorted({round(2 ** (k / 3)) for k in range(28)})
"""Where the mean over all draws is taken."""


@cache
def vectors() -> tuple[Tensor, Tensor]:
    """Queries (16, 512) and keys (16, 32, 512) of every draw: standard normal, float64; shorter vectors are their
    beginnings."""
    queries = [normals(f"query {draw}", MOST_DIMS) for draw in range(DRAWS)]
    keys = [
        [normals(f"key {draw} {n}", MOST_DIMS) for n in range(MOST_KEYS)]
        for draw in range(DRAWS)
    ]
    return torch.from_numpy(np.array(queries)), torch.from_numpy(np.array(keys))


def weights(n_keys: int, draws: list[int], dims: list[int], scaled: bool) -> Tensor:
    """Softmax weights (draws, dims, n_keys): query and keys cut to their first d numbers, for each d in ``dims``."""
    query, keys = (table[draws] for table in vectors())
    within = torch.arange(MOST_DIMS) < torch.tensor(dims).unsqueeze(-1)
    queries = query.unsqueeze(-2) * within  # zeros beyond d: (draws, dims, 512)
    if scaled:
        queries = queries / torch.tensor(dims, dtype=torch.float64).sqrt()[:, None]
    return attention_weights(queries, keys[:, :n_keys], scale=1.0)


class Saturation(Explorer):
    """The softmax weights of random keys, their entropy, and the size of the softmax's gradient.

    ``dim``: the length of query and keys, 1 to 512. ``n_keys``: 2 to 32. ``draw``: which random numbers, 0 to 15.
    ``scaled``: divide the scores by √dim. Bad values raise ``TraitError``.

    >>> Saturation(dim=1000)
    Traceback (most recent call last):
        ...
    traitlets.traitlets.TraitError: dim must be an integer >= 1 and <= 512, got 1000
    """

    script = "saturation.js"

    dim = Whole(
        64,
        min=1,
        max=MOST_DIMS,
        log=True,
        label="Head dimension d",
        below="a vector holds at least one number",
        above="wider heads show nothing new",
        note="Real heads have 64 to 256.",
    )
    n_keys = Whole(
        8,
        min=2,
        max=MOST_KEYS,
        label="Number of keys",
        below="one key always gets the whole weight",
        above="the bars would be too thin to see",
        note="One key would always get all.",
    )
    draw = Whole(
        0,
        min=0,
        max=DRAWS - 1,
        label="Random draw",
        below="draws are counted from 0",
        above="no more were drawn",
        note="Another draw, other vectors.",
        more=True,
    )
    scaled = Switch(
        True,
        label="Divide by √d",
        note="The scores before the softmax: q·k/√d, or q·k.",
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Softmax weights of random keys as bars. Beside them, against the head dimension d, the weights as a map "
            "and the size of the softmax gradient: divided by √d it stays level, undivided it falls towards zero."
        )

    @staticmethod
    def compute(dials: dict[str, Any]) -> dict[str, Any]:
        """Scores, weights, gradient norm and entropy at ``dim``; weights and gradient norm of this draw at every dim;
        the gradient norm's mean over all draws."""
        dim, n_keys = dials["dim"], dials["n_keys"]
        draw, scaled = dials["draw"], dials["scaled"]
        query, keys = (table[draw] for table in vectors())
        scores = keys[:n_keys, :dim] @ query[:dim]
        every = weights(n_keys, [draw], list(range(1, MOST_DIMS + 1)), scaled)[0]
        gradient = softmax_gradient_norm(every)
        draws = list(range(DRAWS))
        mean = {
            on: softmax_gradient_norm(weights(n_keys, draws, MEAN_DIMS, on)).mean(0)
            for on in (True, False)
        }
        return {
            "scores": (scores / math.sqrt(dim) if scaled else scores).tolist(),
            "weights": every[dim - 1].tolist(),
            "gradient": gradient[dim - 1].item(),
            "entropy": torch.special.entr(every[dim - 1]).sum().item(),
            "everyDim": every.tolist(),
            "everyGradient": gradient.tolist(),
            "meanDims": MEAN_DIMS,
            "meanScaled": mean[True].tolist(),
            "meanRaw": mean[False].tolist(),
        }

    @staticmethod
    def terms(dials: dict[str, Any]) -> dict[str, Any]:
        """A score is a sum of products; weights are shares of 1; the gradient's norm and the entropy are compared with
        their greatest values."""
        dim, draw = dials["dim"], dials["draw"]
        query, keys = (table[draw, ..., :dim] for table in vectors())
        products = (keys[: dials["n_keys"]] * query).abs().sum(-1)
        scale = 1 / math.sqrt(dim) if dials["scaled"] else 1.0
        return {
            "scores": (products * scale).tolist(),
            "weights": 1.0,
            "gradient": 0.5,
            "entropy": math.log(dials["n_keys"]),
            "everyDim": 1.0,
            "everyGradient": 0.5,
            "meanDims": 0.0,
            "meanScaled": 0.5,
            "meanRaw": 0.5,
        }

    def draw_still(self) -> tuple[float, float, list[str]]:
        """The bars, and beside them the two curves of the gradient's norm."""
        data = self.compute(self.dials())
        left, top, floor, width, right = 34, 50, 270, 270, 390
        end, bold, used = 730, "font-weight:600", "1" if self.scaled else "2"
        pitch = width / self.n_keys

        def height(share: float, most: float) -> float:
            return floor - share / most * (floor - top)

        def across(dim: int) -> float:
            return right + math.log(dim) / math.log(MOST_DIMS) * (end - right)

        bars = f"Softmax weights of {self.n_keys} keys, d = {self.dim}"
        size = "Size of the softmax gradient against d"
        parts = [
            still.text(0, 14, bars, style=bold),
            still.text(right - left, 14, size, style=bold),
            still.text(right - left, 32, f"mean of {DRAWS} draws", fill="muted"),
        ]
        for start, stop, most in ((left, left + width, 1.0), (right, end, 0.5)):
            for tick in (0, most / 2, most):
                x, y = start - 8, height(tick, most)
                stroke = "grid" if tick else "muted"
                parts.append(still.line([(start, y), (stop, y)], stroke))
                parts.append(still.text(x, y + 4, f"{tick:g}", "end", "muted"))
        for n, weight in enumerate(data["weights"]):
            x, y = left + (n + 0.1) * pitch, height(weight, 1.0)
            radius = min(3, pitch / 6)
            bar = still.rect(x, y, 0.8 * pitch, floor - y, used, radius=radius)
            parts.append(bar)
        for dim in (1, 4, 16, 64, 256):
            x = across(dim)
            parts.append(still.text(x, floor + 18, str(dim), "middle", "muted"))
        for name, fill, label, x in (
            ("meanScaled", "1", "with 1/√d", 488),
            ("meanRaw", "2", "without", 566),
        ):
            parts.append(still.text(x, 32, label, fill=fill, style=bold))
            for dim, gradient in zip(MEAN_DIMS, data[name], strict=True):
                y = height(gradient, 0.5)
                parts.append(still.dot(across(dim), y, 3.2, fill))
        x = across(self.dim)
        parts.append(still.line([(x, top), (x, floor)], "ink"))
        parts.append(still.dot(x, height(data["gradient"], 0.5), 6, used))
        return end + 8, floor + 26, parts
