"""Methods for sequences longer than those the model was trained on: what each method keeps, what it stretches, and what
it costs.

Notation: trained length L, target length L′, factor s = L′/L, current length n; frequencies θ_i = b^(−2i/d), i = 0 …
d/2 − 1. In training, pair i rotated by up to (L − 1)θ_i radians. If that is a full turn or more, the pair has been at
every angle. A slower pair meets new angles as soon as the sequence is longer than L. The methods deal with this in
different ways:

- `Frequencies` change θ. When called with (inv_freq, length), they return (inv_freq, attention_factor), so they can
  serve as the ``scaling`` of :class:`ropebook.efficient.RotaryEmbedding`. The factor multiplies cos and sin, and
  therefore both q and k, so it enters the scores twice.
- `Distances` leave θ alone and change the distance m − n at which a query sees a key.
- `LogN` does not change positions; it lengthens the queries.

The facts about each method are attached to its class (`methods.known_as`). `make` creates any method from its name and
options, `METHODS` is the registry, and `methods_table` lists it. All options are checked when a method is created: the
wrong type raises ``TypeError``, and a value out of range raises ``ValueError``.
"""

from ropebook.extrapolation import distances, dynamic, frequencies, queries, trained
from ropebook.extrapolation.choice import Choice, choices
from ropebook.extrapolation.distances import *  # noqa: F403
from ropebook.extrapolation.dynamic import *  # noqa: F403
from ropebook.extrapolation.frequencies import *  # noqa: F403
from ropebook.extrapolation.hugging_face import install
from ropebook.extrapolation.interop import (
    Configured,
    from_transformers,
    rotary_options,
    to_transformers,
)
from ropebook.extrapolation.layer import ExtendedAttention
from ropebook.extrapolation.measures import (
    CacheError,
    PaperAndCode,
    arrival_lengths,
    cache_error,
    least_ntk_factor,
    overshoot,
    paper_against_code,
    stretch,
    turned,
)
from ropebook.extrapolation.methods import Extension, Method
from ropebook.extrapolation.parts import (
    length_factor,
    mix,
    ntk_base,
    ntk_exponent,
    ramp_in_pairs,
    ramp_in_turns,
    ramp_range,
    softmax_scale,
    yarn_factor,
)
from ropebook.extrapolation.queries import *  # noqa: F403
from ropebook.extrapolation.registry import METHODS, make, methods_table
from ropebook.extrapolation.search import Search, search_factors
from ropebook.extrapolation.trained import *  # noqa: F403

# The modules that define methods have their own lists of public names, which are added here.
__all__ = [
    "METHODS",
    "CacheError",
    "Choice",
    "Configured",
    "ExtendedAttention",
    "Extension",
    "Method",
    "PaperAndCode",
    "Search",
    "arrival_lengths",
    "cache_error",
    "choices",
    "from_transformers",
    "install",
    "least_ntk_factor",
    "length_factor",
    "make",
    "methods_table",
    "mix",
    "ntk_base",
    "ntk_exponent",
    "overshoot",
    "paper_against_code",
    "ramp_in_pairs",
    "ramp_in_turns",
    "ramp_range",
    "rotary_options",
    "search_factors",
    "softmax_scale",
    "stretch",
    "to_transformers",
    "turned",
    "yarn_factor",
]
__all__ += frequencies.__all__
__all__ += dynamic.__all__
__all__ += distances.__all__
__all__ += queries.__all__
__all__ += trained.__all__
