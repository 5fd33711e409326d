"""Positions and masks for several sequences packed into one row, and for sequences that are padded on the left."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.attention import padding_mask


def packed_positions(segment_ids: Tensor) -> Tensor:
    """Return positions that restart from 0 in each sequence of a row: (…, seq), int64.

    ``segment_ids``: integers; a run of equal ids is one sequence.

    >>> packed_positions(torch.tensor([7, 7, 7, 8, 8]))
    tensor([0, 1, 2, 0, 1])
    """
    runs = _runs(segment_ids)
    places = torch.arange(runs.shape[-1], device=runs.device).expand_as(runs)
    starts = runs.diff(dim=-1, prepend=runs[..., :1] - 1).bool()
    return places - (places * starts).cummax(-1).values


def packed_mask(segment_ids: Tensor, q_len: int | None = None) -> Tensor:
    """Return a boolean mask (…, 1, q_len, seq): True where query and key belong to the same sequence. The axis of size
    1 is for the heads.

    ``segment_ids`` (…, seq): as in :func:`packed_positions`. The queries are the last ``q_len`` tokens of the row
    (default: all tokens), as in decoding with a cache. The mask does not hide later tokens of the same sequence; use
    the layer's ``is_causal`` for that.

    >>> packed_mask(torch.tensor([7, 7, 8])).int().squeeze()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """
    runs = _runs(segment_ids)
    seq_len = runs.shape[-1]
    q_len = seq_len if q_len is None else checks.integer("q_len", q_len, 1, seq_len)
    queries = runs[..., seq_len - q_len :]
    return (queries[..., :, None] == runs[..., None, :]).unsqueeze(-3)


def left_padded(
    lengths: Sequence[int] | Tensor,
    seq_len: int,
    device: torch.device | str | None = None,
) -> Tensor:
    """Return segment ids (batch, seq_len) for sequences that are padded on the left: 0 for the padding, 1 for the
    tokens.

    Padding is treated as a separate sequence in the row. So it does not affect the real tokens, and its own queries
    still have something to attend to.

    >>> segments = left_padded([1, 3], 3)
    >>> segments
    tensor([[0, 0, 1],
            [1, 1, 1]])
    >>> packed_positions(segments)
    tensor([[0, 1, 0],
            [0, 1, 2]])
    """
    return padding_mask(lengths, seq_len, device)[:, 0, 0].flip(-1).long()


def _runs(segment_ids: Tensor) -> Tensor:
    """Number the runs of equal ids, and return the number of the run to which each entry belongs. Equal ids in
    different runs belong to different sequences."""
    if (
        not isinstance(segment_ids, Tensor)
        or segment_ids.is_floating_point()
        or segment_ids.dtype == torch.bool
    ):
        found = (
            segment_ids.dtype
            if isinstance(segment_ids, Tensor)
            else type(segment_ids).__name__
        )
        raise TypeError(f"segment_ids must be a tensor of integers, got {found}")
    if segment_ids.dim() == 0 or segment_ids.shape[-1] == 0:
        raise ValueError(
            f"segment_ids must be (…, seq) with seq >= 1, got {tuple(segment_ids.shape)}"
        )
    changes = segment_ids[..., 1:] != segment_ids[..., :-1]
    return nn.functional.pad(changes.long().cumsum(-1), (1, 0))
