"""The cost of each scheme, counted in learned numbers, operations and memory."""

from __future__ import annotations

from typing import NamedTuple

from ropebook import checks


class Cost(NamedTuple):
    """The cost that a scheme adds to attention without positions, for a layer with H heads of width d and T tokens.

    ``learned``: the number of learned values. ``flops``: operations per score of a head. ``per_token``: operations per
    token of a head. ``held``: how many numbers plain code keeps in memory. ``fused``: how many numbers a fused kernel
    reads if it computes the bias of each score from the head and the two positions. This is None if the bias also
    depends on the content.
    """

    learned: int
    flops: float
    per_token: float
    held: int
    fused: int | None


def cost(name: str, n_heads: int, dim: int, length: int) -> Cost:
    """Return the `Cost` of a scheme, given its name in `ropebook.relatives.FACTS`.

    Transformer-XL's R is as wide as all heads together, FIRE's network has a width of 32, and CoPE has 64 places. A
    model has only one table of learned absolute positions, and only one T5 table; every layer has its own copy of
    everything else. For alternating layers, the cost is the mean over both kinds of layer.

    >>> cost("alibi", 8, 64, 1024).held, cost("alibi", 8, 64, 1024).fused
    (8388608, 8)
    """
    H = checks.integer("n_heads", n_heads, minimum=1)
    d = checks.integer("dim", dim, minimum=1)
    T = checks.integer("length", length, minimum=1)
    D = H * d
    square = H * T * T
    # Each distance is projected, and each query is multiplied by each distance's projection.
    both = (2 * T - 1) / T
    # a network with one input, 32 hidden units and one output per head
    network = 2 * 32 + 32 + 2 * 32 * H
    costs = {
        "nothing": Cost(0, 0, 0, 0, 0),
        "absolute": Cost(T * D, 0, d, 0, 0),
        "rope": Cost(0, 0, 6 * d, T * d, T * d),
        "in_turn": Cost(0, 0, 3 * d, T * d, T * d),
        "xpos": Cost(0, 0, 8 * d, 2 * T * d, 2 * T * d),
        "alibi": Cost(0, 2, 0, square, H),
        "t5": Cost(32 * H, 1, 0, square, 32 * H),
        # There is one row of sums, and each head divides it by a number of its own.
        "sandwich": Cost(0, 1, 0, square, 2 * T - 1),
        "kerple": Cost(2 * H, 1, 0, square, 2 * H),
        "transformer_xl": Cost(
            D * D + 2 * D,
            2 * d * both + 1,
            2 * D * d * both + 2 * d,
            2 * square,
            None,
        ),
        "fire": Cost(
            2 + 64 + 33 * H,
            network / H + 4,
            0,
            square + 32 * T * T,
            2 + 64 + 33 * H,
        ),
        "cope": Cost(64 * d, 9, 2 * 64 * d, 2 * square, None),
    }
    return costs[checks.choice("name", name, costs)]
