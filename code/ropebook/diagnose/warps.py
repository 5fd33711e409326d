"""Misread positions, and the rule that describes which positions are used instead."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook.diagnose.calling import SIZES
from ropebook.diagnose.differences import numbered

# The number of tokens in the very first call (made to find out how to call the function).
FIRST = SIZES["seq"]


class Warp(NamedTuple):
    """How positions are misread: the mistake's name, a sentence, and a map to the positions used instead, if known."""

    name: str
    said: str
    at: Callable[[Tensor], Tensor] | None


def _begun_again(at: Tensor, period: int) -> Tensor:
    return at % period


def warp(places: tuple[int, ...]) -> Warp:
    """Find the rule behind the positions by which tokens at 0, 1, 2, … are really rotated.

    >>> warp((0, 1, 2, 3, 0, 1, 2, 3, 0)).said
    'position 4 is turned like 0: positions begin again, every 4'
    >>> warp((0, 0, 0, 1, 1, 1, 2, 2, 2)).at(torch.tensor([30.0])).item()
    10.0
    """
    seen = torch.tensor(places)
    m = torch.arange(len(seen))
    again = (seen[1:] == 0).nonzero().flatten() + 1
    step = int((seen != 0).nonzero()[0]) if seen.any() else len(seen)
    if torch.equal(seen[:-1], m[:-1]):
        said = f"the last token of a text is turned like position {places[-1]}"
        return Warp("other_positions", said, None)
    for period in again.tolist():
        if torch.equal(seen, m % period) and period > 1:
            said = f"position {period} is turned like 0: positions begin again, every {period}"
            return Warp(
                "wrapped", said, functools.partial(_begun_again, period=period)
            )
    end = int(seen.max())
    if torch.equal(seen, m.clamp(max=end)):
        said = f"from position {end} on all are turned like {end}: the table ends there, and is read at its end"
        if end == FIRST - 1:
            said += f". As long as that was the first call of all, of {FIRST} tokens: its table is kept for later ones"
        return Warp("clamped", said, lambda at: at.clamp(max=end))
    if torch.equal(seen, torch.where(m <= end, m, 0)):
        said = f"from position {end + 1} on nothing is turned: the table ends there"
        return Warp("clamped", said, lambda at: at * (at <= end))
    if step > 1 and torch.equal(seen, m // step):
        said = f"positions come in steps of {step}: the first {step} are turned alike, and the next {step}"
        return Warp("other_positions", said, lambda at: at // step)
    some = ", ".join(str(place) for place in places[:12])
    stay = (seen == 0) & (m > 0)
    if torch.equal(seen, torch.where(stay, 0, m)):
        which = numbered("tokens", stay)
        said = (
            f"positions 0, 1, 2, … are turned as if they were {some}, …: {which} of a call of {len(seen)} are not rotated at "
            "all, and the others are right"
        )
        return Warp("other_positions", said, None)
    order = reordered(seen)
    if order is not None:
        return Warp("other_positions", order, None)
    said = f"positions 0, 1, 2, … are turned as if they were {some}, …"
    return Warp("other_positions", said, None)


def _orders(seq: int) -> Iterator[tuple[str, Tensor]]:
    """Yield known reorderings of positions: a sentence, and for each token the index of the position that it gets."""
    token = torch.arange(seq)
    yield "each token has the position of the next one", token.roll(-1)
    yield "each token has the position of the one before", token.roll(1)
    yield (
        "even ones come first, then odd ones (striped)",
        torch.cat((token[::2], token[1::2])),
    )
    for size in (2, 4, 8, 16, 32):
        whole = seq // size * size
        swapped = token.clone()
        swapped[:whole] = token[:whole].unflatten(0, (-1, size)).flip(1).flatten()
        yield f"within every {size} tokens the order is reversed", swapped
    for parts in (2, 3, 4, 6, 8, 16):
        if seq % parts == 0:
            said = f"as if {parts} rows and {seq // parts} columns were exchanged (transposed, or reshaped in another order)"
            yield said, token.unflatten(0, (parts, -1)).T.flatten()
    half = seq // 2
    yield (
        "the two halves of the call have changed places",
        torch.cat((token[half:], token[:half])),
    )


def reordered(seen: Tensor) -> str | None:
    """Describe a reordering of a call's positions. ``seen`` contains the index of the position that each token gets.

    Returns None if the order is right, or if it is not a permutation.

    >>> reordered(torch.tensor([3, 1, 0, 2]))
    "tokens get each other's positions: those of the call are in another order (permuted, shuffled)"
    >>> reordered(torch.tensor([0, 1, 1])) is None
    True
    """
    token = torch.arange(len(seen))
    if torch.equal(seen, token) or not torch.equal(seen.sort()[0], token):
        return None
    said = "tokens get each other's positions: those of the call are in another order (permuted, shuffled)"
    for how, index in _orders(len(seen)):
        if torch.equal(seen, index):
            return f"{said}: {how}"
    jumps = (seen.diff() != 1).nonzero().flatten() + 1
    if len(jumps) <= 7 and len(seen) > 2 * len(jumps) + 2:
        starts = [0, *jumps.tolist(), len(seen)]
        blocks = [
            f"{int(seen[start])} to {int(seen[stop - 1])}"
            for start, stop in itertools.pairwise(starts)
        ]
        said += f": blocks (chunks) of the call have changed places, as in a zigzag. Tokens have, in turn, those numbered {', '.join(blocks)}"
    return said


def alike(matrices: Tensor) -> Tensor | None:
    """Find the rule that says which positions have equal matrices. The first axis of ``matrices`` is the position.

    The matrices need not be rotations. Returns the position that is really used for each of 0, 1, 2, …, or None if no
    rule fits.

    >>> alike(torch.arange(12.0)[:, None] // 2)
    tensor([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5])
    """
    flat = matrices.flatten(1)
    # a few random sums are enough to tell different matrices apart
    generator = torch.Generator().manual_seed(7)
    sums = torch.randn(flat.shape[1], 8, dtype=flat.dtype, generator=generator)
    flat = flat @ sums
    apart = (flat[:, None] - flat).abs().amax(-1)
    first = (apart < 1e-9).double().argmax(1)
    seen = first.unique()
    m = torch.arange(len(first))
    if len(seen) == len(first) or len(seen) < 6:
        return None
    for step in range(2, 9):
        if torch.equal(first, m // step * step):
            return m // step
    for rule in (m % len(seen), m.clamp(max=len(seen) - 1)):
        if torch.equal(first, rule):
            return rule
    return None
