"""What a model makes of a text: bits per byte at every position.

Bits at position t are those of the byte that follows the first t + 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.lab.model import LanguageModel
from ropebook.shapes import Float, Int

SAMPLED = 16
"""Bytes scored at each sampled length."""

# bytes at a time, where a scheme's bias for a whole text would not fit
_PIECE = 256


@torch.no_grad()
def position_bits(
    model: LanguageModel, windows: Int[Tensor, "files bytes"], batch: int = 1
) -> Float[Tensor, "files bytes-1"]:
    """Bits per byte at every position: windows (files, T + 1) to float32 (files, T). ``batch`` files at a time."""
    checks.integer("batch", batch, minimum=1)
    return torch.cat([bits_of(model, rows) for rows in windows.split(batch)])


@torch.no_grad()
def windowed_bits(
    model: LanguageModel,
    windows: Int[Tensor, "files bytes"],
    window: int,
    step: int | None = None,
) -> Float[Tensor, "files bytes-1"]:
    """As `position_bits`, of a model that always sees the last ``window`` bytes only, or up to ``step`` − 1 fewer.

    The text is cut into windows that begin every ``step`` bytes, by default half a window; of each the last ``step`` bytes are scored,
    of the first all. ``step`` divides ``window``, and T is a multiple of it, at least ``window``.
    """
    if step is None:
        step = checks.even("window", window) // 2
    checks.integer("step", step, minimum=1, maximum=window)
    length = windows.shape[1] - 1
    if length < window or length % step or window % step:
        raise ValueError(
            f"windows must have T + 1 bytes, T and the window multiples of {step} and T at least {window}, "
            f"got T = {length} and {window}"
        )
    pieces = windows.unfold(1, window + 1, step)
    bits = torch.stack([bits_of(model, rows) for rows in pieces])
    first = bits[:, 0, : window - step]
    return torch.cat((first, bits[:, :, window - step :].flatten(1)), 1)


@torch.no_grad()
def sampled_bits(
    model: LanguageModel,
    windows: Int[Tensor, "files bytes"],
    lengths: Sequence[int],
    last: int,
) -> Float[Tensor, "files lengths last"]:
    """Bits of the ``last`` bytes of the first n, for each n of ``lengths``: (files, lengths, last), float32.

    For a model whose frequencies follow the length this is decoding without a cache: the whole text is computed anew at each
    length. To the letter that is so for the last byte; those before it came when the text was up to ``last`` − 1 bytes
    shorter.
    """
    checks.integer("last", last, minimum=1, maximum=min(lengths))
    checks.integer("lengths", max(lengths), maximum=windows.shape[1] - 1)
    files = []
    for rows in windows.split(1):
        pieces = [bits_of(model, rows[:, : n + 1])[:, -last:] for n in lengths]
        files.append(torch.stack(pieces, 1))
    return torch.cat(files)


def sampled_lengths(start: int, stop: int, per_octave: int = 6) -> list[int]:
    """Lengths from above ``start`` to ``stop``, evenly spaced in their logarithm.

    >>> sampled_lengths(256, 1024, per_octave=2)
    [362, 512, 724, 1024]
    """
    checks.integer("start", start, minimum=1)
    checks.integer("stop", stop, minimum=start + 1)
    checks.integer("per_octave", per_octave, minimum=1)
    steps = math.floor(math.log2(stop / start) * per_octave + 1e-9)
    return [round(start * 2 ** (i / per_octave)) for i in range(1, steps + 1)]


def bits_of(
    model: LanguageModel, windows: Int[Tensor, "files bytes"]
) -> Float[Tensor, "files bytes-1"]:
    """As `position_bits`, all windows at once."""
    windows = windows.to(model.embedding.weight.device)
    loss = nn.functional.cross_entropy(
        logits(model, windows[:, :-1]).transpose(1, 2),
        windows[:, 1:],
        reduction="none",
    )
    return loss.float().cpu() / math.log(2)


def logits(
    model: LanguageModel, tokens: Int[Tensor, "batch seq"]
) -> Float[Tensor, "batch seq 256"]:
    """The model's logits, (batch, seq, 256): of a scheme with a bias as large as all scores, a piece of the text at a time."""
    if not model.has_bias:
        return model(tokens)
    caches = model.new_caches(tokens.shape[1])
    pieces = [model(piece, caches=caches) for piece in tokens.split(_PIECE, 1)]
    return torch.cat(pieces, 1)
