"""M-RoPE: divide a head's pairs among time, row and column, and assign places to tokens of text, images and videos.

Sources: Wang et al. 2024, *Qwen2-VL* (sections); Bai et al. 2025, *Qwen3-VL* (interleaved sections). The ids follow
transformers' code.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.beyond.axes import Waves
from ropebook.rope import inv_freq
from ropebook.shapes import Int


class Grid(NamedTuple):
    """An image or a video: the numbers of frames, rows and columns of tokens.

    From one frame to the next, the time id increases by ``step``.
    """

    frames: int
    rows: int
    columns: int
    step: float = 1


SPLITS = {
    "Qwen2-VL": {"sections": (16, 24, 24), "base": 1e6, "interleaved": False},
    "Qwen3-VL": {"sections": (24, 20, 20), "base": 5e6, "interleaved": True},
}
"""Arguments for `mrope` from published config.json files: Qwen/Qwen2-VL-7B-Instruct (2024; Qwen2.5-VL kept these
values) and Qwen/Qwen3-VL-8B-Instruct (2025). Both have 64 pairs per head."""


def axis_of_pair(
    sections: Sequence[int], *, interleaved: bool = False
) -> Int[Tensor, " pairs"]:
    """Return the axis of each pair: 0 for time, 1 for the row, 2 for the column.

    ``sections`` contains the number of pairs for each axis. By default, all pairs of one axis come before those of the
    next, as in Qwen2-VL. With ``interleaved``, the axes alternate from the first pair on, as in Qwen3-VL, until row and
    column have all their pairs. The remaining pairs belong to time.

    Raises ``ValueError`` if the alternation would reach the last pair before row and column have all their pairs.
    (transformers silently gives such an axis fewer pairs, and time more.)

    >>> axis_of_pair([2, 3, 3])
    tensor([0, 0, 1, 1, 1, 2, 2, 2])
    >>> axis_of_pair([4, 2, 2], interleaved=True)
    tensor([0, 1, 2, 0, 1, 2, 0, 0])
    """
    sections = _checked(sections)
    n_axes, pairs = len(sections), sum(sections)
    if not interleaved:
        return torch.arange(n_axes).repeat_interleave(torch.tensor(sections))
    found = torch.zeros(pairs, dtype=torch.int64)
    for axis, section in enumerate(sections[1:], start=1):
        room = len(range(axis, pairs, n_axes))
        if section > room:
            raise ValueError(
                f"sections must leave room to interleave: axis {axis} can have {room} of {pairs} pairs in turn, "
                f"got {section} in {sections}"
            )
        found[axis : n_axes * section : n_axes] = axis
    return found


def _checked(sections: Sequence[int]) -> list[int]:
    found = [
        checks.integer("every section", section, minimum=0)
        for section in checks.listed("sections", sections, "a list of integers")
    ]
    if not sum(found):
        raise ValueError(f"sections must hold at least one pair, got {found}")
    return found


def mrope(
    sections: Sequence[int], base: float = 10000.0, *, interleaved: bool = False
) -> Waves:
    """Return the waves of M-RoPE. Pair i has the same frequency θ_i as in plain RoPE, but follows a single axis.

    >>> mrope([1, 1, 1], base=1000)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.0000, 0.1000, 0.0000],
            [0.0000, 0.0000, 0.0100]], dtype=torch.float64)
    """
    axis = axis_of_pair(sections, interleaved=interleaved)
    follows = torch.nn.functional.one_hot(axis, len(sections)).T
    return follows * inv_freq(2 * len(axis), base)


def position_ids(
    parts: Sequence[int | Grid], *, follow: str = "grid"
) -> Int[Tensor, "tokens 3"]:
    """Return the time, row and column of every token of a prompt with images and videos.

    ``parts``: an integer stands for that many text tokens, and a `Grid` for an image or a video. All three ids of a
    text token are equal. On each axis, a grid starts at the id that the next text token would have had. With
    ``follow="grid"`` (the Qwen-VL models in transformers 5.23), the text after a grid starts N ids later, where N is
    the grid's number of rows or of columns, whichever is larger. With ``"largest"`` (the paper, and transformers 4), it
    starts after the largest id so far. The two rules differ for videos with more frames than rows and columns. Under
    either rule, the tokens that the model *writes* continue from the largest id (see `rope_delta`).

    >>> position_ids([2, Grid(1, 2, 2), 1]).tolist()
    [[0, 0, 0], [1, 1, 1], [2, 2, 2], [2, 2, 3], [2, 3, 2], [2, 3, 3], [4, 4, 4]]
    """
    checks.choice("follow", follow, ("grid", "largest"))
    start, found = 0, [torch.zeros(0, 3, dtype=torch.int64)]
    for part in checks.listed("parts", parts, "a list of numbers and grids"):
        if isinstance(part, Grid):
            ids = start + _of_grid(part)
            start += max(part.rows, part.columns)
            if follow == "largest":
                start = int(ids.max()) + 1
        else:
            tokens = checks.integer("tokens of text", part, minimum=0)
            ids = torch.arange(start, start + tokens)[:, None].expand(-1, 3)
            start += tokens
        found.append(ids)
    return torch.cat(found)


def rope_delta(ids: Int[Tensor, "tokens 3"]) -> int:
    """Return the id of the next token that the model writes, minus the number of tokens so far.

    The first token that the model writes gets the largest id in the prompt plus one, even if the prompt's last token
    has a smaller id. The result is negative if images use fewer ids than they contain tokens. transformers stores it as
    ``rope_deltas``.

    >>> ids = position_ids([2, Grid(1, 2, 2), 1])
    >>> rope_delta(ids), len(ids) + rope_delta(ids)
    (-2, 5)
    """
    if not len(ids):
        raise ValueError("ids must have at least one token, got none")
    return int(ids.max()) + 1 - len(ids)


def _of_grid(grid: Grid) -> Tensor:
    for name in ("frames", "rows", "columns"):
        checks.integer(name, getattr(grid, name), minimum=1)
    checks.number("step", grid.step, minimum=0)
    time = (torch.arange(grid.frames) * grid.step).long()
    return torch.cartesian_prod(
        time, torch.arange(grid.rows), torch.arange(grid.columns)
    )
