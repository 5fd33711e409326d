"""Beyond the line: positions with several coordinates, and variants of rotation and attention.

The chapter covers rotated values, linear attention, latent attention, and variants of RoPE in models.

Notation: a place is a vector m of ``axes`` numbers, such as row and column, or time, row and column. Each pair i of a
head has a *wave* w_i, a vector of the same length, and the pair's angle at m is w_i · m. Plain RoPE has one axis, and
w_i = θ_i.

- `axes`: waves (axial, mixed, in blocks), and rotation by them.
- `generators`: which matrices can generate such rotations.
- `mrope`: sections for time, row and column, and the places of tokens in text with images and videos.
- `values`: rotated values, and rotating the output back.
- `linear`: attention without softmax, with rotations.
- `latent`: keys and values from one short vector, with a decoupled rotation.
- `departures`: how published models depart from plain RoPE, with a function for each departure.
- `shifts`: how precisely a score is preserved when both places move.
- `pictures`: the figures on the pages.
"""

from ropebook.beyond.axes import angles, axial, in_blocks, mixed, score, turned
from ropebook.beyond.generators import (
    commutator,
    operator,
    shift_error,
    spins,
)
from ropebook.beyond.latent import (
    Cached,
    LatentAttention,
    between,
    numbers_cached,
)
from ropebook.beyond.linear import (
    feature,
    features,
    linear_attention,
    linear_weights,
    turning_state,
)
from ropebook.beyond.mrope import (
    SPLITS,
    Grid,
    axis_of_pair,
    mrope,
    position_ids,
    rope_delta,
)
from ropebook.beyond.shifts import shift_errors
from ropebook.beyond.values import WAYS, attend, change, shift_change, turned_by

__all__ = [
    "SPLITS",
    "WAYS",
    "Cached",
    "Grid",
    "LatentAttention",
    "angles",
    "attend",
    "axial",
    "axis_of_pair",
    "between",
    "change",
    "commutator",
    "feature",
    "features",
    "in_blocks",
    "linear_attention",
    "linear_weights",
    "mixed",
    "mrope",
    "numbers_cached",
    "operator",
    "position_ids",
    "rope_delta",
    "score",
    "shift_change",
    "shift_error",
    "shift_errors",
    "spins",
    "turned",
    "turned_by",
    "turning_state",
]
