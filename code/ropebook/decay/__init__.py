"""How the score depends on distance: a bound that falls, a score that oscillates, and the base that a context needs.

- `curves`: statistics of a curve over many distances.
- `scores`: the score for q = k, for chosen vectors and for random ones.
- `bound`: RoFormer's bound on the score.
- `sweeps`: the effect of base and dimension.
- `models`: the settings of published models.
- `bases`: the base that a context needs.
- `pictures`: the figures for the chapter's pages. It needs matplotlib, so you have to import it explicitly.

Notation: distance Δ = m − n, dimension d (even), base b, frequency θ_i = b^(−2i/d), i = 0 … d/2 − 1.
"""

from ropebook.decay.bases import (
    PUBLISHED_BASES,
    Comparison,
    Run,
    compare,
    reach,
    runs,
    significant_grid,
    smallest_base,
    tokens,
)
from ropebook.decay.bound import (
    Bounds,
    bounds,
    mean_partial_sum,
    partial_sum_floor,
    partial_sums,
    random_walk_level,
    running_sums,
)
from ropebook.decay.curves import (
    CHUNK,
    Curve,
    Summary,
    Windows,
    first_below,
    first_return,
    summarize,
    trend,
    windows,
)
from ropebook.decay.models import (
    LONG_MODELS,
    MODELS,
    LongModel,
    Model,
    turned_pairs,
)
from ropebook.decay.scores import (
    FIGURES,
    Estimate,
    Figure,
    Spread,
    diagonal_weight,
    random_scores,
    score_curve,
)
from ropebook.decay.sweeps import (
    BASES,
    DIMS,
    SweepRow,
    share,
    sweep,
)
from ropebook.sinusoidal import distance_kernel

__all__ = [
    "BASES",
    "CHUNK",
    "DIMS",
    "FIGURES",
    "LONG_MODELS",
    "MODELS",
    "PUBLISHED_BASES",
    "Bounds",
    "Comparison",
    "Curve",
    "Estimate",
    "Figure",
    "LongModel",
    "Model",
    "Run",
    "Spread",
    "Summary",
    "SweepRow",
    "Windows",
    "bounds",
    "compare",
    "diagonal_weight",
    "distance_kernel",
    "first_below",
    "first_return",
    "mean_partial_sum",
    "partial_sum_floor",
    "partial_sums",
    "random_scores",
    "random_walk_level",
    "reach",
    "running_sums",
    "runs",
    "score_curve",
    "share",
    "significant_grid",
    "smallest_base",
    "summarize",
    "sweep",
    "tokens",
    "trend",
    "turned_pairs",
    "windows",
]
