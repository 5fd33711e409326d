"""Departures from plain RoPE in published models.

There is a small function for each departure, and a measurement of whether scores still depend only on relative
positions.

The tests compare each function with the corresponding module of transformers (5.23). Vectors are (…, heads, seq, dim),
in the half-split layout, as in most of those modules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.beyond.values import Vectors, change, turned_by
from ropebook.rope import LARGEST_POSITION, Positions, as_positions
from ropebook.shapes import Float

Weight = Float[Tensor, " dim"]


def turned(x: Vectors, places: Positions, base: float = 10000.0) -> Vectors:
    """Apply plain RoPE in the half-split layout."""
    return turned_by(x, places, base, layout="half")


# --- Lengths --------------------------------------------------------------------------------------------------------


def rms(x: Vectors, weight: Weight | None = None, eps: float = 1e-6) -> Vectors:
    """Divide each vector by the root of its mean square, and multiply each entry by its weight."""
    checks.number("eps", eps, minimum=0)
    found = x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()
    return found if weight is None else found * weight


def normed_before(x: Vectors, places: Positions, weight: Weight) -> Vectors:
    """Normalise, then rotate (Qwen3). A different vector is rotated, but otherwise nothing changes."""
    return turned(rms(x, weight), places)


def normed_after(
    x: Vectors, places: Positions, weight: Weight | None = None
) -> Vectors:
    """Rotate, then normalise.

    Without weights (Llama 4), normalisation changes only the length, so the order of the two steps makes no difference.
    With weights (HunYuan), the two entries of a pair are stretched differently *after* the rotation, so the score
    depends on the position.
    """
    return rms(turned(x, places), weight)


def tempered(
    q: Vectors, places: Positions, *, every: float = 8192, scale: float = 0.1
) -> Vectors:
    """Scale up queries with the logarithm of their position, which sharpens the softmax.

    Llama 4 does this in its layers without rotation.

    ``every``: the number of tokens after which the scale grows again. ``scale``: the factor by which the logarithm is
    multiplied. Raises ``ValueError`` for positions below 0, and if ``every`` is not above 0.
    """
    checks.number("every", every, above=0)
    checks.number("scale", scale)
    places = checks.entries(
        "places", as_positions("places", places), 0, LARGEST_POSITION
    )
    steps = ((places.double() + 1) / every).floor()
    return q * (1 + scale * steps.log1p()).to(q)[:, None]


# --- Which vectors are rotated, and where
# ----------------------------------------------------------------------------------


def projected_after(
    x: Float[Tensor, "*batch seq width"],
    places: Positions,
    projection: Float[Tensor, "width width"],
    n_heads: int,
) -> Vectors:
    """Rotate the tokens head by head, and only *then* project them (Wav2Vec2-Conformer): W R_m x instead of R_m W x."""
    parts = turned(x.unflatten(-1, (n_heads, -1)).transpose(-2, -3), places)
    found = parts.transpose(-2, -3).flatten(-2) @ projection.mT
    return found.unflatten(-1, (n_heads, -1)).transpose(-2, -3)


def partly(
    x: Vectors, places: Positions, rotary_dim: int, base: float = 10000.0
) -> Vectors:
    """Rotate the first ``rotary_dim`` entries of each vector, with the frequencies of a head of that size
    (GPT-NeoX)."""
    checks.rotary_dim(x.shape[-1], rotary_dim)
    turning, still = x[..., :rotary_dim], x[..., rotary_dim:]
    return torch.cat((turned(turning, places, base), still), -1)


def partly_exempt(k: Vectors, places: Positions, exempt: int) -> Vectors:
    """Rotate all keys except the last ``exempt`` ones, which have no position (pointers to objects, in SAM 2)."""
    checks.integer("exempt", exempt, minimum=0, maximum=k.shape[-2])
    turning = k.shape[-2] - exempt
    places = as_positions("places", places)[:turning]
    return torch.cat((turned(k[..., :turning, :], places), k[..., turning:, :]), -2)


def layers_that_turn(n_layers: int, every: int = 4) -> list[bool]:
    """Return for each layer whether it rotates.

    The last layer in each group of ``every`` layers does not (SmolLM3, Llama 4).

    >>> layers_that_turn(5, every=4)
    [True, True, True, False, True]
    """
    checks.integer("n_layers", n_layers, minimum=1)
    checks.integer("every", every, minimum=1)
    return [layer % every != every - 1 for layer in range(n_layers)]


# --- Caches ---------------------------------------------------------------------------------------------------------


def donors(kinds: Sequence[str], shared: int) -> list[int]:
    """Return for each layer the index of the layer whose keys it reads.

    Most layers read their own keys. Each of the last ``shared`` layers reads the keys of the last unshared layer of its
    own kind (Gemma 3n).

    >>> donors(["near", "far", "near", "far", "near"], shared=2)
    [0, 1, 2, 1, 2]
    """
    own = len(kinds) - checks.integer("shared", shared, 0, len(kinds) - 1)
    last = {kind: layer for layer, kind in enumerate(kinds[:own])}
    missing = sorted(set(kinds[own:]) - set(last))
    if missing:
        raise ValueError(
            f"shared must leave a layer of each kind, got {shared}, which leaves none of {missing}"
        )
    return [*range(own), *(last[kind] for kind in kinds[own:])]


def trimmed(k: Vectors, window: int) -> Float[Tensor, "*heads kept dim"]:
    """Return the keys that the cache of a layer with a window of ``window`` tokens keeps for the next step.

    These are the last window − 1 keys.
    """
    checks.integer("window", window, minimum=2)
    return k[..., 1 - window :, :]


def moved(k: Vectors, by: int, base: float = 10000.0) -> Vectors:
    """Move rotated keys by ``by`` positions. This takes only one more rotation, and no new projection."""
    return turned(k, torch.full((k.shape[-2],), by), base)


def evicted(
    k: Vectors, start: int, stop: int, base: float = 10000.0
) -> Float[Tensor, "*heads kept dim"]:
    """Evict the rotated keys of the tokens ``start`` to ``stop`` − 1, and move the later keys down to close the gap.

    The results are identical to the keys of the shorter text only in the first layer. In the layers above it, a later
    token's key still depends on the evicted tokens to which that token attended.
    """
    checks.integer("stop", stop, minimum=0, maximum=k.shape[-2])
    checks.integer("start", start, minimum=0, maximum=stop)
    later = moved(k[..., stop:, :], start - stop, base)
    return torch.cat((k[..., :start, :], later), -2)


# --- Places ---------------------------------------------------------------------------------------------------------


def centred(rows: int, columns: int) -> Float[Tensor, "patches 2"]:
    """Return the centres of an image's patches, multiplied by 2π.

    On both axes, the image extends from −1 to 1, however many patches there are (DINOv3).

    >>> centred(1, 2) / torch.pi
    tensor([[ 0., -1.],
            [ 0.,  1.]], dtype=torch.float64)
    """
    for name, size in (("rows", rows), ("columns", columns)):
        checks.integer(name, size, minimum=1)
    one, two = (
        (2 * torch.arange(size, dtype=torch.float64) + 1) / size - 1
        for size in (rows, columns)
    )
    return 2 * math.pi * torch.cartesian_prod(one, two)


# --- Measured -------------------------------------------------------------------------------------------------------

Scores = Callable[[Tensor, Tensor, Tensor], Tensor]


class Departure(NamedTuple):
    """A departure from plain RoPE: a title, the models that use it, and a function that computes scores.

    The function takes the queries and keys of one text and their places.
    """

    title: str
    who: str
    scores: Scores


def departures(dim: int) -> list[Departure]:
    """List the departures whose scores can be compared on one text. Random weights are drawn with a fixed seed."""
    generator = torch.Generator().manual_seed(1)
    draw = torch.randn(4, dim, dim, generator=generator, dtype=torch.float64)
    one, two = 1 + draw[0, :2].abs()
    w_q, w_k = draw[2:] / dim**0.5

    def plain(a: Vectors, b: Vectors) -> Tensor:
        return a @ b.mT / math.sqrt(dim)

    def heads(x: Vectors, m: Tensor, w: Tensor) -> Tensor:
        return projected_after(x[..., 0, :, :], m, w, 1)

    return [
        Departure(
            "plain RoPE", "Llama", lambda q, k, m: plain(turned(q, m), turned(k, m))
        ),
        Departure(
            "normalised, then rotated",
            "Qwen3",
            lambda q, k, m: plain(
                normed_before(q, m, one), normed_before(k, m, two)
            ),
        ),
        Departure(
            "rotated, then normalised",
            "Llama 4",
            lambda q, k, m: plain(normed_after(q, m), normed_after(k, m)),
        ),
        Departure(
            "rotated, then normalised with weights",
            "HunYuan",
            lambda q, k, m: plain(normed_after(q, m, one), normed_after(k, m, two)),
        ),
        Departure(
            "queries that grow with their position",
            "Llama 4",
            lambda q, k, m: plain(tempered(q, m, every=64), k),
        ),
        Departure(
            "rotated, then projected",
            "Wav2Vec2-Conformer",
            lambda q, k, m: plain(heads(q, m, w_q), heads(k, m, w_k)),
        ),
        Departure(
            "some keys without rotation",
            "SAM 2",
            lambda q, k, m: plain(
                turned(q, m), partly_exempt(k, m, k.shape[-2] // 4)
            ),
        ),
        Departure(
            "no rotation",
            "SmolLM3, every fourth layer",
            lambda q, k, m: plain(q, k),
        ),
        Departure(
            "a quarter of the entries rotate",
            "GPT-NeoX",
            lambda q, k, m: plain(partly(q, m, dim // 4), partly(k, m, dim // 4)),
        ),
        Departure(
            "query and key with two bases",
            "a slip with Gemma 3",
            lambda q, k, m: plain(turned(q, m, 10000.0), turned(k, m, 1e6)),
        ),
    ]


def kept(by: int, *, dim: int = 32, length: int = 32) -> dict[str, float]:
    """Return for each departure, by title, how much the scores change when all positions move by ``by``.

    The change is given as a share of the largest score.
    """
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, length, dim, generator=generator, dtype=torch.float64)
    here = torch.arange(length)
    return {
        one.title: change(one.scores(q, k, here + by), one.scores(q, k, here))
        for one in departures(dim)
    }
