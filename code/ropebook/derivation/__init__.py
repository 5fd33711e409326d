"""The rotation, derived from our requirement for a score.

Notation: the query is at position m and the key at n, with distance Δ = m − n. The head dimension d is even. Pair i = 0
… d/2 − 1 has frequency θ_i = base^(−2i/d) in radians per position. R_m rotates pair i counter-clockwise by mθ_i:

    [cos mθ_i   −sin mθ_i]
    [sin mθ_i    cos mθ_i]

The score of a query at m and a key at n is ⟨R_m q, R_n k⟩ = qᵀ R_{n−m} k, as in Su et al., "RoFormer" (2021), section
3.

- `matrices`: the matrix, rotated vectors, scores.
- `algebra`: the derivation in the plane, step by step, with sympy.
- `families`: other families of matrices that meet the requirement, in any dimension, and why pairs are enough.
- `drawings`: a picture of rotations and powers of a reflection.

The layout says which entries form pair i: "interleaved" (2i with 2i + 1, as in the paper) or "half" (i with i + d/2).
All matrices and angles are float64. For tensors on mps, which has no float64, they are computed on the CPU. sympy and
matplotlib are imported only when they are needed.
"""

from ropebook.derivation.algebra import (
    Phase,
    Polar,
    angle_at,
    length_at,
    phase,
    polar_form,
    rotate_exactly,
    turned_vector,
)
from ropebook.derivation.drawings import draw_families
from ropebook.derivation.families import (
    NormalForm,
    breach,
    normal_form,
    reflection,
)
from ropebook.derivation.matrices import (
    generator,
    pairs,
    rotate,
    rotation,
    rotation_matrix,
    score,
)

__all__ = [
    "NormalForm",
    "Phase",
    "Polar",
    "angle_at",
    "breach",
    "draw_families",
    "generator",
    "length_at",
    "normal_form",
    "pairs",
    "phase",
    "polar_form",
    "reflection",
    "rotate",
    "rotate_exactly",
    "rotation",
    "rotation_matrix",
    "score",
    "turned_vector",
]
