"""Look inside a trained model: which frequencies its heads use, how far back they look, and what they depend on.

The last question is answered by changing frequencies.

This module takes all of these measurements for one model. The module `heads` measures what the heads do, and
`frequencies` builds copies of the model with other frequencies. Input is given either as tokens (batch, T) or as
windows (files, T + 1), which contain the inputs and, shifted by one, the targets. Nothing is trained here; we only
modify trained models.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from ropebook import checks
from ropebook.efficient import RotaryEmbedding
from ropebook.lab.bits import position_bits
from ropebook.lab.frequencies import (
    permutation,
    permuted,
    reordered,
    rotary_of,
    with_frequencies,
    without_pair,
)
from ropebook.lab.heads import (
    NEAR,
    Attention,
    Head,
    PairNorms,
    attention_by_distance,
    heads,
    pair_norms,
    queries_and_keys,
)
from ropebook.lab.longer import method_options, with_method
from ropebook.lab.means import for_json, paired
from ropebook.lab.model import LanguageModel
from ropebook.shapes import Float, Int

__all__ = [
    "CACHED",
    "FACTOR",
    "FRACTIONS",
    "NEAR",
    "SEEDS",
    "Attention",
    "Head",
    "PairNorms",
    "attention_by_distance",
    "bin_edges",
    "binned",
    "decoded_bits",
    "heads",
    "measure",
    "pair_norms",
    "permutation",
    "permuted",
    "queries_and_keys",
    "reordered",
    "with_frequencies",
    "without_pair",
]

FRACTIONS = 8
"""We try p-RoPE with this many different shares of rotating pairs: 1, 7/8, …, 1/8."""
SEEDS = (0, 1, 2, 3, 4)
"""Seeds for shuffling the frequencies."""
CACHED = ("none", "linear", "ntk", "ntk_by_parts", "yarn", "dynamic_ntk")
"""The methods for which `measure` decodes from a cache."""
# the scaling factor for the methods in CACHED that take one
FACTOR = 4

# the number of rows per batch
_BATCH = 16


# --- Decoding with a cache ------------------------------------------------------------------------------------------


@torch.no_grad()
def decoded_bits(
    model: LanguageModel, windows: Int[Tensor, "files bytes"], prefill: int
) -> Float[Tensor, "files decoded"]:
    """Return the bits per byte when the model reads byte by byte from a cache, from position ``prefill`` onwards.

    The result is float32 (files, T − prefill).

    The first ``prefill`` bytes are read in one pass. Each key is rotated once, when it
    enters the cache, and never again.
    """
    length = windows.shape[1] - 1
    checks.integer("prefill", prefill, minimum=1, maximum=length - 1)
    windows = windows.to(model.embedding.weight.device)
    caches = model.new_caches(length)
    model(windows[:, :prefill], caches=caches)
    logits = torch.cat(
        [
            model(byte, caches=caches)
            for byte in windows[:, prefill:length].split(1, dim=1)
        ],
        1,
    )
    loss = torch.nn.functional.cross_entropy(
        logits.transpose(1, 2), windows[:, prefill + 1 :], reduction="none"
    )
    return loss.float().cpu() / math.log(2)


# --- All of it, for one model ---------------------------------------------------------------------------------------


def measure(
    model: LanguageModel, longer: Int[Tensor, "files bytes"]
) -> dict[str, object]:
    """Take all measurements of one trained model, and return them in a form that can be
    saved as JSON.

    ``longer`` has shape (files, n·L + 1) with n ≥ 2, where L is the model's length;
    "within L" refers to the first L bytes. For every model, the result has "attention"
    and "heads", measured within L. For a model that rotates, it also has:

    - "pair_norms": see `pair_norms`.
    - "switched_off", with each pair switched off in turn, and "proportional", for
      p-RoPE. Both are measured within L and, under "beyond", from L onwards.
    - "permuted" and "reordered", with the seeds in `SEEDS`.
    - "cache", for the methods in `CACHED`: the largest difference in bits, at the last
      of 2L bytes, between decoding with a cache (a prefill, then L/4 bytes one at a
      time) and reading all the bytes in one pass.

    Wherever the model is modified, "change" is the mean difference from the unmodified
    model over all files, and "error" is the standard error of that mean.
    """
    length = model.length
    if longer.shape[1] <= 2 * length:
        raise ValueError(
            f"longer must be (files, {2 * length + 1} or more), got {tuple(longer.shape)}"
        )
    windows = longer[:, : length + 1]
    tokens = windows[:, :length]
    attention = attention_by_distance(model, tokens)
    edges = bin_edges(length)
    result: dict[str, object] = {
        "attention": {
            "edges": edges,
            "weights": for_json(binned(attention.weights, edges)),
            "scores": for_json(binned(attention.scores, edges)),
        },
        "heads": [
            {key: for_json(value) for key, value in head._asdict().items()}
            for head in heads(attention)
        ],
    }
    if not isinstance(model.layers[0].attention.rotary, RotaryEmbedding):
        return result
    norms = pair_norms(model, tokens)
    result["pair_norms"] = {"q": for_json(norms.q), "k": for_json(norms.k)}
    inv_freq = rotary_of(model).inv_freq
    orders = [permutation(len(inv_freq), seed) for seed in SEEDS]
    result["inv_freq"] = inv_freq.tolist()
    still = [without_pair(model, pair) for pair in range(len(inv_freq))]
    (plain,) = _bits([model], longer)
    result["switched_off"] = _within_and_beyond(plain, _bits(still, longer), length)
    result["permuted"] = {
        "seeds": list(SEEDS),
        **_changes(
            plain[:, :length],
            _bits((permuted(model, order) for order in orders), windows),
        ),
    }
    result["reordered"] = {
        "seeds": list(SEEDS),
        **_changes(
            plain[:, :length],
            _bits((reordered(model, order) for order in orders), windows),
        ),
    }
    fractions = [(FRACTIONS - i) / FRACTIONS for i in range(FRACTIONS)]
    fractions = [f for f in fractions if f * len(inv_freq) >= 1]
    fewer = [
        with_method(model, "proportional", {"fraction": fraction})
        for fraction in fractions
    ]
    result["proportional"] = {
        "fractions": fractions,
        **_within_and_beyond(plain, _bits(fewer, longer), length),
    }
    result["cache"] = _cache(model, longer[:_BATCH, : 2 * length + 1])
    return result


def bin_edges(length: int, single: int = 16, per_octave: int = 4) -> list[int]:
    """Return the edges of bins for distances up to ``length``.

    Each distance below ``single`` has its own bin; after that, there are ``per_octave`` bins for each doubling of the
    distance.

    >>> bin_edges(16, single=4, per_octave=2)
    [0, 1, 2, 3, 4, 6, 8, 11, 16]
    """
    checks.integer("length", length, minimum=1)
    single = min(checks.integer("single", single, minimum=1), length)
    checks.integer("per_octave", per_octave, minimum=1)
    edges = list(range(single + 1))
    while edges[-1] < length:
        step = len(edges) - single
        edge = max(edges[-1] + 1, round(single * 2 ** (step / per_octave)))
        edges.append(min(edge, length))
    return edges


def binned(
    values: Float[Tensor, "*shape distances"], edges: Sequence[int]
) -> Float[Tensor, "*shape bins"]:
    """Average values of shape (…, T) over bins of distances.

    The result has shape (…, len(edges) − 1). Each bin includes its lower edge but not its upper edge.

    Raises ``ValueError`` unless the edges increase and lie between 0 and T.
    """
    rising = all(a < b for a, b in itertools.pairwise(edges))
    if not rising or edges[0] < 0 or edges[-1] > values.shape[-1]:
        raise ValueError(
            f"edges must rise from 0 or more to {values.shape[-1]} or less, got {list(edges)}"
        )
    return torch.stack(
        [values[..., a:b].mean(-1) for a, b in itertools.pairwise(edges)], -1
    )


def _within_and_beyond(
    plain: Tensor, others: Sequence[Tensor], length: int
) -> dict[str, object]:
    """Apply `_changes` to the positions before L and, under "beyond", to those from L onwards.

    Each file has to be read only once, because later bytes do not affect earlier ones.
    """
    within = _changes(plain[:, :length], [bits[:, :length] for bits in others])
    beyond = _changes(plain[:, length:], [bits[:, length:] for bits in others])
    return {
        **within,
        "beyond": {"from": length, "to": plain.shape[1], **beyond},
    }


def _changes(plain: Tensor, others: Sequence[Tensor]) -> dict[str, object]:
    """Average the bits per byte (files, T) over positions and files.

    The result contains the means for the model itself and for each of the others, and the paired differences between
    them.
    """
    plain, *others = (bits.double().mean(1) for bits in (plain, *others))
    changes = [paired(other, plain) for other in others]
    return {
        "plain": for_json(plain.mean()),
        "bits": [for_json(other.mean()) for other in others],
        "change": [for_json(change.mean) for change in changes],
        "error": [for_json(change.error) for change in changes],
    }


def _bits(models: Iterable[LanguageModel], windows: Tensor) -> list[Tensor]:
    return [position_bits(model, windows, _BATCH) for model in models]


def _cache(model: LanguageModel, windows: Tensor) -> dict[str, object]:
    prefill = windows.shape[1] - 1 - max(1, model.length // 4)
    differences = []
    for method in CACHED:
        factor = None if method == "dynamic_ntk" else FACTOR
        options = method_options(method, factor, model.length)
        other = with_method(model, method, options)
        whole = position_bits(other, windows)[:, prefill:]
        cached = decoded_bits(other, windows, prefill)
        # Only the last position is compared. If a method adapts to the length, the earlier bytes were decoded when the
        # input was still shorter, so a single pass over the whole input yields nothing to compare them with.
        differences.append((cached - whole)[:, -1].abs().max().item())
    return {"methods": list(CACHED), "difference": differences}
