"""Fast rotation: several ways to compute the same product, and a module for use in models.

- `forms`: every way to compute it, from the paper's matrix to a single loop over the data.
- `rotary`: `RotaryEmbedding` and `apply_rotary`, for use in models.
- `layouts`: conversion between interleaved and half-split pairs.
- `checkpoints`: conversion between Meta's checkpoints and those of transformers.
- `cost`: operations and bytes of each form.

Cosines, sines and pairs come from `ropebook.rope`.
"""

from ropebook.efficient.checkpoints import (
    meta_to_transformers,
    transformers_to_meta,
)
from ropebook.efficient.cost import RotationCost, rotation_cost
from ropebook.efficient.forms import (
    FORMS,
    InPlace,
    overwrite,
    rotate_blocks,
    rotate_by_pairs,
    rotate_compiled,
    rotate_complex,
    rotate_dense,
    rotate_eager,
    rotate_every_two,
    rotate_half,
    rotate_halves,
    rotate_in_place,
    rotate_interleaved,
    rotate_sparse,
)
from ropebook.efficient.layouts import (
    convert_weight,
    half_to_interleaved,
    interleaved_to_half,
)
from ropebook.efficient.rotary import (
    BACKENDS,
    RotaryEmbedding,
    Scaling,
    apply_rotary,
    apply_rotary_qk,
)
from ropebook.rope import check_positions, cos_sin, join_pairs, split_pairs

__all__ = [
    "BACKENDS",
    "FORMS",
    "InPlace",
    "RotaryEmbedding",
    "RotationCost",
    "Scaling",
    "apply_rotary",
    "apply_rotary_qk",
    "check_positions",
    "convert_weight",
    "cos_sin",
    "half_to_interleaved",
    "interleaved_to_half",
    "join_pairs",
    "meta_to_transformers",
    "overwrite",
    "rotate_blocks",
    "rotate_by_pairs",
    "rotate_compiled",
    "rotate_complex",
    "rotate_dense",
    "rotate_eager",
    "rotate_every_two",
    "rotate_half",
    "rotate_halves",
    "rotate_in_place",
    "rotate_interleaved",
    "rotate_sparse",
    "rotation_cost",
    "split_pairs",
    "transformers_to_meta",
]
