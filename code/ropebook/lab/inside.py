"""Inside a trained model: which frequencies its heads use, how far they look, and what they miss when a frequency changes.

Texts are tokens (batch, T), or windows (files, T + 1) as in `ropebook.lab.evaluation`: inputs and, one to the right, targets. Pairs are
counted as their frequencies θ_i are, from the fastest, i = 0. Everything is done to the trained model as it is: nothing is trained here.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention import attention_weights, repeat_heads
from ropebook.complex_plane import to_complex
from ropebook.efficient import RotaryEmbedding
from ropebook.lab import evaluation
from ropebook.lab.model import LanguageModel, alibi_bias

NEAR = (8, 32)
"""Distances within which `heads` adds up a head's weight."""
FRACTIONS = 8
"""How many shares of turning pairs p-RoPE is tried with: 1, 7/8, … 1/8."""
SEEDS = (0, 1, 2, 3, 4)
"""Of the permutations of the frequencies."""
CACHED = ("none", "linear", "ntk", "ntk_by_parts", "yarn", "dynamic_ntk")
"""Methods with which `measure` decodes from a cache."""
FACTOR = 4  # of the methods in CACHED that have one

_BATCH = 16  # rows at a time


# --- What the heads do ----------------------------------------------------------------------------------------------


@torch.no_grad()
def queries_and_keys(
    model: LanguageModel, tokens: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """Of each layer q and k as they meet, rotated where the model rotates: (batch, heads, T, head_dim), (batch, kv_heads, T, head_dim).

    ``ValueError`` for a model with a method that changes distances (ReRoPE, Self-Extend): its queries and keys meet more than once.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=2, n_heads=2)
    >>> [q.shape for q, k in queries_and_keys(model, torch.zeros(1, 5, dtype=torch.int64))]
    [torch.Size([1, 2, 5, 8]), torch.Size([1, 2, 5, 8])]
    """
    layers = [layer.attention for layer in model.layers]
    if getattr(layers[0], "keep", "rotated") != "rotated":
        raise ValueError(
            "model must rotate queries and keys before they meet, "
            f"got the method {layers[0].method!r}"
        )
    inputs: list[Tensor] = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, given: inputs.append(given[0]))
        for layer in layers
    ]
    try:
        model(tokens.to(_device(model)))
    finally:
        for hook in hooks:
            hook.remove()
    return [layer.project(x)[:2] for layer, x in zip(layers, inputs, strict=True)]


class PairNorms(NamedTuple):
    """Mean length of the pairs of queries and of keys: (layers, heads, d/2) each, float64."""

    q: Tensor
    k: Tensor


def pair_norms(model: LanguageModel, tokens: Tensor) -> PairNorms:
    """Mean over all bytes of √(x² + y²) for each pair (x, y) of q and of k, per layer and head.

    A rotation leaves it as it is, so it shows how much of each frequency the trained projections ask for: what Barbero et al. (2025),
    *Round and Round We Go!*, plot. ``ValueError`` for a model that does not rotate.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=2, n_heads=2)
    >>> pair_norms(model, torch.zeros(1, 5, dtype=torch.int64)).q.shape
    torch.Size([2, 2, 4])
    """
    layout = _rotary(model).layout
    sums = [0.0, 0.0]
    for rows in tokens.split(_BATCH):
        layers = queries_and_keys(model, rows)
        for at, heads in enumerate(zip(*layers, strict=True)):
            lengths = torch.stack([to_complex(x, layout).abs() for x in heads])
            sums[at] += lengths.sum((1, 3)).cpu().double()
    return PairNorms(*(total / tokens.numel() for total in sums))


class Attention(NamedTuple):
    """What `attention_by_distance` gives; (layers, heads, T) float64 the first three, (layers, heads) the last."""

    weights: (
        Tensor  # mean weight at a distance, over the queries that are so far in
    )
    scores: Tensor  # mean score before the softmax, likewise
    share: Tensor  # of all weight: sums to 1 over the distances
    first: Tensor  # share of all weight that falls on the first byte of the text


def attention_by_distance(
    model: LanguageModel, tokens: Tensor, start: int | None = None
) -> Attention:
    """How much each head attends to what is 0, 1, 2, … bytes back, over all texts and the queries from position ``start`` on.

    ``start``: by default T/2, so that every query has T/2 keys at least. Scores are ⟨q, k⟩/√d, and with ALiBi its bias too.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=2, n_heads=2)
    >>> attention = attention_by_distance(model, torch.zeros(1, 6, dtype=torch.int64))
    >>> attention.weights.shape, attention.share.sum(-1).allclose(torch.ones(2, 2).double())
    (torch.Size([2, 2, 6]), True)
    """
    length = tokens.shape[1]
    if start is None:
        start = length // 2
    checks.integer("start", start, minimum=0, maximum=length - 1)
    places = torch.arange(length)
    distance = places[start:, None] - places
    seen = distance >= 0
    mass, scores, first = 0.0, 0.0, 0.0
    for rows in tokens.split(_BATCH):
        layers = [
            _met(model, q, k, start) for q, k in queries_and_keys(model, rows)
        ]
        met = [torch.stack(kind) for kind in zip(*layers, strict=True)]
        first += met[0][..., 0].sum(-1)
        # one column for each pair of query and key that are there, added up by their distance
        by_distance = [
            x.new_zeros(*x.shape[:2], length).index_add(
                2, distance[seen], x[..., seen]
            )
            for x in met
        ]
        mass, scores = mass + by_distance[0], scores + by_distance[1]
    texts, queries = tokens.shape[0], length - start
    pairs = texts * torch.bincount(distance[seen], minlength=length)
    total = texts * queries
    return Attention(mass / pairs, scores / pairs, mass / total, first / total)


def _met(
    model: LanguageModel, q: Tensor, k: Tensor, start: int
) -> tuple[Tensor, Tensor]:
    """Weights and scores of a layer's queries from ``start`` on, added up over the texts: (heads, T − start, T), float64, CPU."""
    bias = None
    if model.scheme == "alibi":
        bias = alibi_bias(model.n_heads, q.shape[-2], device=q.device).to(q.dtype)
    weights = attention_weights(q, k, bias, is_causal=True)
    scores = q @ repeat_heads(k, q.shape[-3]).mT / math.sqrt(q.shape[-1])
    if bias is not None:
        scores = scores + bias
    weights, scores = (
        x[:, :, start:].sum(0).cpu().double() for x in (weights, scores)
    )
    return weights, scores


class Head(NamedTuple):
    """How far one head looks. ``near_8``, ``near_32``: share of its weight on the last 8 and 32 bytes, its own included; ``median``: the
    distance within which half of the weight lies; ``peak``: the distance with the highest mean weight, 1 for a head that
    looks at the byte before; ``at_peak``: that weight; ``first``: share on the text's first byte; ``slope``: correlation of the
    mean score with the distance, from 1 to T/2, below 0 where it decays."""

    layer: int
    head: int
    near_8: float
    near_32: float
    median: int
    peak: int
    at_peak: float
    first: float
    slope: float


def heads(attention: Attention) -> list[Head]:
    """A row for each head of each layer. ``ValueError`` for texts too short for a correlation, T < 4."""
    length = attention.share.shape[-1]
    checks.integer("T", length, minimum=4)
    middle = slice(1, length // 2 + 1)
    distances = torch.arange(length, dtype=torch.float64)[middle]
    rows = []
    for layer, head in torch.cartesian_prod(
        *map(torch.arange, attention.first.shape)
    ).tolist():
        within = attention.share[layer, head].cumsum(0)
        weights = attention.weights[layer, head]
        scores = attention.scores[layer, head, middle]
        rows.append(
            Head(
                layer,
                head,
                *(within[min(near, length) - 1].item() for near in NEAR),
                median=int((within < 0.5).sum()),
                peak=int(weights.argmax()),
                at_peak=weights.max().item(),
                first=attention.first[layer, head].item(),
                slope=torch.corrcoef(torch.stack((distances, scores)))[0, 1].item(),
            )
        )
    return rows


# --- Other frequencies ----------------------------------------------------------------------------------------------


def with_frequencies(model: LanguageModel, inv_freq: Tensor) -> LanguageModel:
    """The model with other θ, the same in every layer: (d/2,), float64 or float32, any order, 0 for a pair that does not turn.

    A new model with the same weights, not copies of them; ``model`` stays as it is. ``ValueError`` for a model that does not rotate, or has a
    method already, and for another number of pairs.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=1, n_heads=2)
    >>> still = with_frequencies(model, torch.zeros(4))
    >>> still.layers[0].attention.rotary.cos_sin(torch.tensor([5]))[0]
    tensor([[1., 1., 1., 1.]])
    """
    rotary = _rotary(model)
    if checks.floating("inv_freq", inv_freq).shape != rotary.inv_freq.shape:
        raise ValueError(
            f"inv_freq must be of shape {tuple(rotary.inv_freq.shape)}, got {tuple(inv_freq.shape)}"
        )
    other = copy.deepcopy(
        model, {id(weight): weight for weight in model.parameters()}
    )
    turning = RotaryEmbedding(
        rotary.dim,
        rotary.base,
        layout=rotary.layout,
        scaling=lambda theta, _: (inv_freq.to(theta), 1.0),
        backend=rotary.backend,
    )
    for layer in other.layers:
        layer.attention.rotary = turning.to(_device(model))
    return other


def permutation(pairs: int, seed: int) -> Tensor:
    """A random order of the pairs, int64 (pairs,), that is not the one they have.

    >>> permutation(2, seed=7)
    tensor([1, 0])
    """
    checks.integer("pairs", pairs, minimum=2)
    draws = torch.Generator().manual_seed(checks.integer("seed", seed))
    while True:
        order = torch.randperm(pairs, generator=draws)
        if not torch.equal(order, torch.arange(pairs)):
            return order


def permuted(model: LanguageModel, order: Tensor) -> LanguageModel:
    """The model in whose layers pair i turns with θ_order[i]; the projections, trained for θ_i, stay."""
    return with_frequencies(model, _rotary(model).inv_freq[order])


def reordered(model: LanguageModel, order: Tensor) -> LanguageModel:
    """As `permuted`, but the rows of W_q and W_k are permuted with the frequencies, pair by pair.

    Every score is a sum over pairs, so this is the same model: only the order of the summands is another. New W_q and W_k; all other
    weights are shared.
    """
    other = permuted(model, order)
    rotary = _rotary(model)
    pairs = to_complex(torch.arange(rotary.dim).double(), rotary.layout)
    entries = torch.view_as_real(pairs).long()  # of pair i in a head: (d/2, 2)
    source = torch.empty(rotary.dim, dtype=torch.int64)
    source[entries] = entries[order]
    for layer in other.layers:
        for name in ("q_proj", "k_proj"):
            linear = copy.deepcopy(getattr(layer.attention, name))
            weight = linear.weight.data.unflatten(0, (-1, rotary.dim))
            linear.weight.data = weight[:, source].flatten(0, 1)
            setattr(layer.attention, name, linear)
    return other


def without_pair(model: LanguageModel, pair: int) -> LanguageModel:
    """The model with θ_i = 0 for one pair: it counts in the scores as before, but says nothing of the distance."""
    inv_freq = _rotary(model).inv_freq.clone()
    inv_freq[checks.integer("pair", pair, 0, len(inv_freq) - 1)] = 0
    return with_frequencies(model, inv_freq)


# --- Decoding with a cache ------------------------------------------------------------------------------------------


@torch.no_grad()
def decoded_bits(model: LanguageModel, windows: Tensor, prefill: int) -> Tensor:
    """Bits per byte at the positions from ``prefill`` on, each byte read alone after those in the cache: (files, T − prefill), float32.

    The first ``prefill`` bytes are read at once. Keys are rotated when they come and never again.
    """
    length = windows.shape[1] - 1
    checks.integer("prefill", prefill, minimum=1, maximum=length - 1)
    windows = windows.to(_device(model))
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


def measure(model: LanguageModel, longer: Tensor) -> dict[str, object]:
    """One trained model's numbers, ready for JSON.

    ``longer`` (files, n·L + 1), n ≥ 2, L the model's length; "within" L is its beginning. Of every model "attention" and "heads", within L; of one
    that rotates also "pair_norms"; "switched_off", each pair in turn, and "proportional", p-RoPE, both within L and, in "beyond", from L on;
    "permuted" and "reordered", by the seeds in `SEEDS`; "cache": largest difference in bits, at the last of 2L bytes, of decoding with a
    cache (after a prefill, L/4 bytes one by one) to reading all at once, for the methods in `CACHED`. "change" is the mean over files of
    the difference to the model as it is, "error" its standard error.
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
            "weights": _plain(binned(attention.weights, edges)),
            "scores": _plain(binned(attention.scores, edges)),
        },
        "heads": [
            {key: _plain(value) for key, value in head._asdict().items()}
            for head in heads(attention)
        ],
    }
    if not isinstance(model.layers[0].attention.rotary, RotaryEmbedding):
        return result
    norms = pair_norms(model, tokens)
    result["pair_norms"] = {"q": _plain(norms.q), "k": _plain(norms.k)}
    inv_freq = _rotary(model).inv_freq
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
        evaluation.with_method(model, "proportional", {"fraction": fraction})
        for fraction in fractions
    ]
    result["proportional"] = {
        "fractions": fractions,
        **_within_and_beyond(plain, _bits(fewer, longer), length),
    }
    result["cache"] = _cache(model, longer[:_BATCH, : 2 * length + 1])
    return result


def bin_edges(length: int, single: int = 16, per_octave: int = 4) -> list[int]:
    """Edges of bins of distances: one bin for each distance below ``single``, then ``per_octave`` for each doubling, up to ``length``.

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


def binned(values: Tensor, edges: Sequence[int]) -> Tensor:
    """Means of (…, T) over bins of distances, from one edge to the next, the last not included: (…, len(edges) − 1)."""
    return torch.stack(
        [values[..., a:b].mean(-1) for a, b in itertools.pairwise(edges)], -1
    )


def _within_and_beyond(
    plain: Tensor, others: Sequence[Tensor], length: int
) -> dict[str, object]:
    """`_changes` of the positions before L, and in "beyond" of those from L on. All from one reading: what comes later changes nothing before."""
    within = _changes(plain[:, :length], [bits[:, :length] for bits in others])
    beyond = _changes(plain[:, length:], [bits[:, length:] for bits in others])
    return {
        **within,
        "beyond": {"from": length, "to": plain.shape[1], **beyond},
    }


def _changes(plain: Tensor, others: Sequence[Tensor]) -> dict[str, object]:
    """Bits per byte, (files, T) each, as means over files: of the model, of the others, and the paired differences."""
    plain, *others = (bits.double().mean(1) for bits in (plain, *others))
    changes = [evaluation.paired(other, plain) for other in others]
    return {
        "plain": _plain(plain.mean()),
        "bits": [_plain(other.mean()) for other in others],
        "change": [_plain(change.mean) for change in changes],
        "error": [_plain(change.error) for change in changes],
    }


def _bits(models: Iterable[LanguageModel], windows: Tensor) -> list[Tensor]:
    return [evaluation.position_bits(model, windows, _BATCH) for model in models]


def _cache(model: LanguageModel, windows: Tensor) -> dict[str, object]:
    prefill = windows.shape[1] - 1 - max(1, model.length // 4)
    differences = []
    for method in CACHED:
        factor = None if method == "dynamic_ntk" else FACTOR
        options = evaluation.method_options(method, factor, model.length)
        other = evaluation.with_method(model, method, options)
        whole = evaluation.position_bits(other, windows)[:, prefill:]
        cached = decoded_bits(other, windows, prefill)
        # of earlier bytes, a method that follows the length has no number in the whole text's reading: it was shorter then
        differences.append((cached - whole)[:, -1].abs().max().item())
    return {"methods": list(CACHED), "difference": differences}


def _rotary(model: LanguageModel) -> RotaryEmbedding:
    rotary = model.layers[0].attention.rotary
    if not isinstance(rotary, RotaryEmbedding):
        raise ValueError(
            f"model must rotate its queries and keys, got scheme {model.scheme!r}"
        )
    if rotary.scaling is not None:
        raise ValueError(
            "model must have its own frequencies, got one with a method"
        )
    return rotary


def _device(model: LanguageModel) -> torch.device:
    return model.embedding.weight.device


def _plain(value: Tensor | float) -> object:
    """Numbers for JSON, five digits behind the point."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return round(value, 5) + 0.0  # no −0
