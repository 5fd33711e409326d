"""Relatives of RoPE: the other ways to tell a place, behind one interface, ``scheme.score(q, k, m, n)``.

Notation: query q at position m, key k at position n, distance Δ = m − n, d entries of a head, H heads, h = 1 … H. Tensors are
(…, heads, seq, dim). A score is q·k/√d and what the scheme makes of it, before mask and softmax.

- `scheme`: what all have in common; none at all.
- `absolute`: a table added to the tokens.
- `slopes`, `buckets`, `curves`: a bias of the distance: ALiBi; T5; Sandwich, KERPLE, FIRE.
- `transformer_xl`, `counted`: what is added depends on the content: Transformer-XL, CoPE.
- `turned`: what multiplies: RoPE, xPos, and RoPE in every other layer.
- `attending`: attention with any of them, by plain code and fused.
- `direction`: left and right.
- `cost`, `facts`: what each costs, and who uses it.
- `pictures`: the figures of the pages.
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
