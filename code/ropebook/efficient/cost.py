"""The cost of each form of the rotation: operations and bytes, counted by hand."""

from __future__ import annotations

from dataclasses import dataclass

from ropebook import checks
from ropebook.efficient.forms import FORMS


@dataclass(frozen=True)
class RotationCost:
    """The cost of rotating the heads of one token, as returned by :func:`rotation_cost`.

    Operations are additions, multiplications and sign changes of real numbers. Bytes include everything that each step
    reads and writes, as if nothing stayed in a cache from one step to the next.
    """

    flops: int
    # bytes of the heads, and of intermediate results
    data_bytes: int
    # bytes of cosines and sines, counted each time they are read
    table_bytes: int

    @property
    def bytes(self) -> int:
        """All bytes: ``data_bytes + table_bytes``."""
        return self.data_bytes + self.table_bytes

    @property
    def intensity(self) -> float:
        """Operations per byte. If a processor can do more operations than this in the time that it takes to move one
        byte, memory limits the speed of the rotation."""
        return self.flops / self.bytes


# The cost of each form: operations per entry of a head, numbers read and written per entry of a head, and numbers read
# from the table per entry of a single head. For "dense", the operations and the table's numbers must be multiplied by
# d.
_COSTS = {
    ("dense", "interleaved"): (2, 2, 1),
    ("dense", "half"): (2, 2, 1),
    ("blocks", "interleaved"): (4, 6, 2),
    ("blocks", "half"): (4, 6, 2),
    ("sparse", "interleaved"): (3.5, 10, 2),
    ("sparse", "half"): (3.5, 10, 2),
    ("by_pairs", "interleaved"): (3, 9, 2),
    ("by_pairs", "half"): (3, 9, 2),
    ("complex", "interleaved"): (3, 2, 1),
    ("complex", "half"): (3, 6, 1),
    ("eager", "interleaved"): (3, 2, 1),
    ("eager", "half"): (3, 5, 2),
    ("in_place", "interleaved"): (3, 2, 1),
    ("in_place", "half"): (3, 6, 2),
    ("compiled", "interleaved"): (3, 2, 1),
    ("compiled", "half"): (3, 2, 1),
}


def rotation_cost(
    form: str,
    head_dim: int,
    n_heads: int = 1,
    layout: str = "interleaved",
    bytes_per_element: int = 4,
) -> RotationCost:
    """Return the cost of ``form`` per token, as counted by hand, for ``n_heads`` heads of d = ``head_dim`` entries.

    H is ``n_heads``. Each number of the data, the tables and the temporaries takes ``bytes_per_element`` bytes:

    - "dense": 2d²·H operations, 2d·H numbers, a table of d²
    - "blocks": 4d·H operations (2·2·2 for each 2 × 2 product), 6d·H numbers (pairs gathered, product, result
      scattered), a table of 2d
    - "sparse" (`rotate_interleaved`, `rotate_halves`): 3.5d·H operations, 10d·H numbers (sign d, swap 2d, two products
      2d each, sum 3d), a table of 2d
    - "by_pairs" run step by step: 3d·H operations, 9d·H numbers, a table of 2d
    - "complex": 3d·H operations (4 products and 2 sums per pair), 2d·H numbers, a table of d; half-split 6d·H numbers
    - "eager": for interleaved pairs the same as "complex"; for half-split pairs 5d·H numbers and a table of 2d, in
      chunks, so that most of the data stays in the cache (for few tokens 7d·H numbers, with one step fewer)
    - "in_place": for interleaved pairs 2d·H numbers; for half-split pairs 6d·H numbers and the table of 2d for every
      head, one head at a time, so that most of the data stays in the cache
    - "compiled", and the Triton kernel: 3d·H operations, 2d·H numbers, a table of d, which is the minimum

    >>> rotation_cost("compiled", head_dim=128, n_heads=40).data_bytes == 2 * 128 * 40 * 4
    True
    """
    checks.choice("form", form, FORMS)
    checks.layout(layout)
    dim = checks.even("head_dim", head_dim)
    n_heads = checks.integer("n_heads", n_heads, minimum=1)
    size = checks.integer("bytes_per_element", bytes_per_element, minimum=1)
    flops, moved, table = _COSTS[form, layout]
    whole = dim if form == "dense" else 1
    passes = n_heads if (form, layout) == ("in_place", "half") else 1
    return RotationCost(
        flops=int(flops * dim) * whole * n_heads,
        data_bytes=moved * dim * n_heads * size,
        table_bytes=table * dim * whole * passes * size,
    )
