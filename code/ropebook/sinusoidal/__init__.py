"""Sinusoidal positions: where they come from, what a model can infer from them, and the effect of adding them to words.

Notation: position m (of the query) and n (of the key), distance Δ = m − n, dimension d (even), pair index
i = 0 … d/2 − 1, base b, frequency θ_i = b^(−2i/d) in radians per position. The encoding of position m is the vector

    PE_m = (sin mθ_0, cos mθ_0, sin mθ_1, cos mθ_1, …),  d numbers,

as in Vaswani et al., "Attention Is All You Need" (2017), section 3.5.

Angles are computed in float64, and only the finished sine or cosine is cast to a smaller type. For a device without
float64 (mps), the angles are computed on the CPU.

- `vectors`: the encoding, and the effect of rounding.
- `codes`: counting, fractions, binary digits.
- `distances`: a step as a matrix, and the product of two encodings.
- `uniqueness`: how close the code comes to repeating itself.
- `adding`: a score in four terms, and the order of the entries.
- `heads`: the scores that one head can compute from positions alone.
- `modules`: layers that add positions.
- `drawings`: the pictures for the pages.

Frequencies and angles are those of `ropebook.rope`.
"""

from ropebook.rope import (
    LARGEST_POSITION,
    Positions,
    angles,
    concatenated_order,
    inv_freq,
    turns,
    wavelengths,
)
from ropebook.sinusoidal.adding import (
    FourTerms,
    absorb_order,
    four_terms,
    pair_order,
    slide,
    term_sizes,
)
from ropebook.sinusoidal.codes import (
    CodeSummary,
    binary_digits,
    binary_periods,
    binary_waves,
    collisions,
    counting,
    describe_codes,
    fractions,
)
from ropebook.sinusoidal.distances import (
    chord,
    distance_kernel,
    relative_positions,
    shift_matrix,
)
from ropebook.sinusoidal.drawings import (
    draw_binary_waves,
    draw_kernel,
    draw_terms,
    draw_turns,
    draw_wavelengths,
)
from ropebook.sinusoidal.heads import head_matrix
from ropebook.sinusoidal.modules import LearnedPositions, SinusoidalEncoding
from ropebook.sinusoidal.uniqueness import (
    ClosestReturn,
    ClosestValues,
    closest_return,
    closest_values,
    exact_period,
)
from ropebook.sinusoidal.vectors import (
    RoundingError,
    encoding,
    encoding_all_in,
    interleave,
    rounding_error,
    unseen_angles,
)

__all__ = [
    "LARGEST_POSITION",
    "ClosestReturn",
    "ClosestValues",
    "CodeSummary",
    "FourTerms",
    "LearnedPositions",
    "Positions",
    "RoundingError",
    "SinusoidalEncoding",
    "absorb_order",
    "angles",
    "binary_digits",
    "binary_periods",
    "binary_waves",
    "chord",
    "closest_return",
    "closest_values",
    "collisions",
    "concatenated_order",
    "counting",
    "describe_codes",
    "distance_kernel",
    "draw_binary_waves",
    "draw_kernel",
    "draw_terms",
    "draw_turns",
    "draw_wavelengths",
    "encoding",
    "encoding_all_in",
    "exact_period",
    "four_terms",
    "fractions",
    "head_matrix",
    "interleave",
    "inv_freq",
    "pair_order",
    "relative_positions",
    "rounding_error",
    "shift_matrix",
    "slide",
    "term_sizes",
    "turns",
    "unseen_angles",
    "wavelengths",
]
