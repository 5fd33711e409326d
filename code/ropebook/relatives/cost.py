"""What each scheme costs, by count: learned numbers, operations, and memory."""

from __future__ import annotations

from typing import NamedTuple

from ropebook import checks


class Cost(NamedTuple):
    """For one layer of H heads of width d and a text of T tokens, beyond attention without positions.

    ``learned``: numbers. ``flops``: operations for each score of a head; ``per_token``: for each token of a head.
    ``held``: numbers that plain code keeps in memory; ``fused``: numbers that a fused kernel reads if it computes the
    bias of each score from the head and the two positions; None where the bias depends on the content as well.
    """

    learned: int
    flops: float
    per_token: float
    held: int
    fused: int | None


def cost(name: str, n_heads: int, dim: int, length: int) -> Cost:
    """The `Cost` of a scheme by its name in `ropebook.relatives.FACTS`.

    Transformer-XL's R is as wide as all heads together; FIRE's network has a width of 32, and CoPE 64 places. Learned
    absolute positions and T5's table exist once per model, everything else in each layer. For alternating layers, the
    mean of both kinds.

    >>> cost("alibi", 8, 64, 1024).held, cost("alibi", 8, 64, 1024).fused
    (8388608, 8)
    """
    H = checks.integer("n_heads", n_heads, minimum=1)
    d = checks.integer("dim", dim, minimum=1)
    T = checks.integer("length", length, minimum=1)
    D = H * d
    square = H * T * T
    # each distance is projected, and each query meets each distance
    both = (2 * T - 1) / T
    # a network of one number, 32 hidden ones, and one for each head
    network = 2 * 32 + 32 + 2 * 32 * H
    costs = {
        "nothing": Cost(0, 0, 0, 0, 0),
        "absolute": Cost(T * D, 0, d, 0, 0),
        "rope": Cost(0, 0, 6 * d, T * d, T * d),
        "in_turn": Cost(0, 0, 3 * d, T * d, T * d),
        "xpos": Cost(0, 0, 8 * d, 2 * T * d, 2 * T * d),
        "alibi": Cost(0, 2, 0, square, H),
        "t5": Cost(32 * H, 1, 0, square, 32 * H),
        # one row of sums, which each head divides by its number
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
