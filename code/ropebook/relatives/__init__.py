"""Relatives of RoPE: other ways to encode position, all with the same interface, ``scheme.score(q, k, m, n)``.

Notation: query q at position m, key k at position n, distance Δ = m − n, d entries in a head, H heads, h = 1 … H.
Tensors have shape (…, heads, seq, dim). A score is q·k/√d, modified by the scheme, before the mask and the
softmax are applied.

- `scheme`: the interface of all schemes, and the scheme without positions.
- `absolute`: a table that is added to the tokens.
- `slopes`, `buckets`, `curves`: biases that depend on the distance. These are ALiBi (`slopes`), T5 (`buckets`),
  and Sandwich, KERPLE and FIRE (`curves`).
- `transformer_xl`, `counted`: biases that also depend on the content, for Transformer-XL and CoPE.
- `turned`: multiplication instead of a bias, for RoPE, xPos, and RoPE in every other layer.
- `attending`: attention with any of these schemes, in plain code and with fused functions.
- `direction`: a test of whether a scheme can tell left from right.
- `cost`, `facts`: the cost of each scheme, and the models that use it.
- `pictures`: the figures on the pages.
"""

from ropebook.relatives.absolute import Absolute
from ropebook.relatives.attending import (
    attend,
    attend_flex,
    attend_fused,
    by_distance,
)
from ropebook.relatives.buckets import (
    BUCKETS,
    FARTHEST,
    T5Buckets,
    imitated,
    t5_bias,
    t5_bucket,
)
from ropebook.relatives.cost import Cost, cost
from ropebook.relatives.counted import CoPE
from ropebook.relatives.curves import Fire, Kerple, Sandwich
from ropebook.relatives.direction import future_share, reversal
from ropebook.relatives.facts import (
    FACTS,
    Facts,
    facts_table,
)
from ropebook.relatives.scheme import (
    Bias,
    Nothing,
    Parts,
    Scheme,
    distances,
    first_share,
)
from ropebook.relatives.slopes import ALiBi, alibi_slopes
from ropebook.relatives.transformer_xl import TransformerXL, shifted
from ropebook.relatives.turned import Rope, XPos, in_turn

__all__ = [
    "BUCKETS",
    "FACTS",
    "FARTHEST",
    "ALiBi",
    "Absolute",
    "Bias",
    "CoPE",
    "Cost",
    "Facts",
    "Fire",
    "Kerple",
    "Nothing",
    "Parts",
    "Rope",
    "Sandwich",
    "Scheme",
    "T5Buckets",
    "TransformerXL",
    "XPos",
    "alibi_slopes",
    "attend",
    "attend_flex",
    "attend_fused",
    "by_distance",
    "cost",
    "distances",
    "facts_table",
    "first_share",
    "future_share",
    "imitated",
    "in_turn",
    "reversal",
    "shifted",
    "t5_bias",
    "t5_bucket",
]
