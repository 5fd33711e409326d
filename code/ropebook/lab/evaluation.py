"""What a trained model does within and beyond its length: bits per byte at every position, and retrieval by distance.

Texts are held-out windows, int64 (files, length + 1): inputs and, one to the right, targets. Bits at position t are those
of the byte that follows the first t + 1. Beyond its length L a model is the trained one with a method from
`ropebook.extrapolation` in every layer (`with_method`), not trained any further unless a result says so.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.attention import merge_heads
from ropebook.efficient import RotaryEmbedding, apply_rotary, apply_rotary_qk
from ropebook.extrapolation import METHODS, Distances, ExtendedAttention, SelfExtend
from ropebook.lab.data import KEYS, QUERY, RECORD, VALUES, Corpus
from ropebook.lab.model import LanguageModel

LENGTH, TEXT = 256, 4096
"""L, in which the models were trained, and the bytes of the texts they are tried on."""
BANDS = ((0, 256), (256, 512), (512, 1024), (1024, 2048), (2048, 4096))
"""Positions from and to, the last not included, over which bits are averaged."""
DISTANCES = (24, 64, 128, 192, 384, 768, 1536, 3072)
"""Bytes from a record to its query."""
FACTORS = (2, 4, 8, 16)
CONTEXTS = 32
"""Texts of the retrieval task of each length."""
SAMPLED = 16
"""Bytes scored at each sampled length."""

_PIECE = 256  # queries at a time, where the scores of a whole text would not fit
_QUERY = 2  # bytes of a query with its answer


# --- Texts ----------------------------------------------------------------------------------------------------------


def held_out_windows(
    corpus: Corpus, length: int = TEXT, files: int | None = None
) -> tuple[list[str], Tensor]:
    """Names, and one window of every held-out file that is long enough: int64 (files, length + 1).

    A hash of the name says where in its file a window begins and, where only so many ``files`` are wanted, which ones
    these are. ``ValueError`` if there are too few.
    """
    checks.integer("length", length, minimum=1)
    names = _long_enough(corpus, length)
    if files is not None:
        checks.integer("files", files, minimum=1, maximum=len(names))
        names = sorted(sorted(names, key=_hash)[:files])
    windows = []
    for name in names:
        text = corpus.held_out[name]
        start = _hash(name) % (len(text) - length)
        windows.append(text[start : start + length + 1])
    return names, torch.from_numpy(np.stack(windows).astype(np.int64))


class RetrievalTexts(NamedTuple):
    """What `retrieval_texts` makes; n queries in each text."""

    tokens: Tensor  # (contexts, length), int64
    answers: (
        Tensor  # (contexts, n), int64: where the records stand that must come again
    )
    distances: Tensor  # (contexts, n), int64: from each record to its query


def retrieval_texts(
    corpus: Corpus, length: int, distances: Sequence[int], contexts: int, seed: int
) -> RetrievalTexts:
    """Held-out text with one record for each of ``distances``; at its end the queries, each with its answer behind it.

    A record (`ropebook.lab.data.RECORD`) and its query are exactly the distance apart; a distance may be given several
    times. Keys, values and the order of the queries are random. No key occurs twice. ``ValueError`` if the distances do
    not fit into the length, or no file is long enough.
    """
    checks.integer("length", length, minimum=1)
    checks.integer("contexts", contexts, minimum=1)
    n = checks.integer("number of distances", len(distances), 1, KEYS)
    for distance in distances:
        checks.integer("distances", distance, _QUERY * n, length - _QUERY * n)
    names = _long_enough(corpus, length)
    draws = np.random.default_rng([checks.integer("seed", seed, minimum=0), length])
    rows = []
    for _ in range(contexts):
        text = corpus.held_out[names[draws.integers(len(names))]]
        rows.append(_planted(text, length, np.asarray(distances), draws))
    columns = (
        torch.from_numpy(np.stack(column)) for column in zip(*rows, strict=True)
    )
    return RetrievalTexts(*columns)


def _planted(
    text: np.ndarray, length: int, distances: np.ndarray, draws: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n = len(distances)
    queries = length - _QUERY * np.arange(n, 0, -1)
    records = queries
    while len(np.unique(records)) < n or (records >= queries[0]).any():
        distances = draws.permutation(distances)
        records = queries - distances
    keys = draws.permutation(KEYS)[:n]
    answers = RECORD + VALUES * keys + draws.integers(0, VALUES, n)
    start = draws.integers(len(text) - length)
    planted = np.zeros(length, np.int64)
    planted[records] = planted[queries + 1] = answers
    planted[queries] = QUERY + keys
    free = planted == 0
    planted[free] = text[start : start + free.sum()]
    return planted, queries + 1, distances


def _long_enough(corpus: Corpus, length: int) -> list[str]:
    names = [name for name, text in corpus.held_out.items() if len(text) > length]
    if not names:
        raise ValueError(
            f"corpus must have a held-out file of more than length = {length} bytes"
        )
    return names


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


# --- A trained model with a method ----------------------------------------------------------------------------------


def with_method(
    model: LanguageModel,
    method: str,
    options: Mapping[str, object] | None = None,
    *,
    arrival: bool = False,
) -> LanguageModel:
    """The model with a method in every layer, by name and options as `ropebook.extrapolation.make` takes them.

    A new model with the same weights, not copies of them; ``model`` stays as it is. "none" is the model itself.
    ``arrival`` is for methods that follow the length: every key and query is rotated with the frequencies of the length
    at which it came, p + 1 at position p, as in decoding with a cache of rotated keys; else a text has those of its whole
    length. ``ValueError`` for a model that does not rotate.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=1, n_heads=1)
    >>> longer = with_method(model, "linear", {"factor": 2.0})
    >>> longer.layers[0].attention.q_proj.weight is model.layers[0].attention.q_proj.weight
    True
    """
    checks.choice("method", method, ("none", *METHODS))
    if arrival and not (
        method in METHODS and getattr(METHODS[method].form, "follows_length", False)
    ):
        raise ValueError(
            f"arrival must be False for a method that does not follow the length, got True for {method!r}"
        )
    if method == "none":
        return model
    if not isinstance(model.layers[0].attention.rotary, RotaryEmbedding):
        raise ValueError(
            f"model must rotate its queries and keys, got scheme {model.scheme!r}"
        )
    weights = {id(weight): weight for weight in model.parameters()}
    longer = copy.deepcopy(model, weights)
    changes_distances = issubclass(METHODS[method].form, Distances)
    kind, keep = (
        ExtendedAttention,
        "rotated",
    )  # also where a cache makes it wrong: that is measured
    if changes_distances:
        kind, keep = _InPieces, "unrotated"
    for layer in longer.layers:
        layer.attention = kind.of(
            layer.attention, method=method, options=options or {}, keep=keep
        )
    rotary = longer.layers[0].attention.rotary
    if arrival:
        rotary = _OnArrival(rotary)
    for layer in longer.layers:
        layer.attention.rotary = rotary
    return longer


class _OnArrival(nn.Module):
    """A RotaryEmbedding whose scaling is told p + 1 at every position p, whatever the length of the text."""

    def __init__(self, rotary: RotaryEmbedding):
        super().__init__()
        self.rotary = rotary
        self._rows: list[tuple[Tensor, Tensor]] = []

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        positions: Tensor | None = None,
        *,
        offset: int = 0,
    ) -> tuple[Tensor, Tensor]:
        if positions is not None:
            raise ValueError(
                "positions must be None where the length follows from them"
            )
        end = offset + q.shape[-2]
        for place in range(len(self._rows), end):
            at = torch.tensor([place])
            self._rows.append(
                self.rotary.cos_sin(at, torch.float64, length=place + 1)
            )
        wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        cos, sin = (
            torch.cat(column).to(q.device, wide)
            for column in zip(*self._rows[offset:end], strict=True)
        )
        return apply_rotary_qk(q, k, cos, sin, layout=self.rotary.layout)


class _InPieces(ExtendedAttention):
    """`ExtendedAttention` of a method that changes distances, without the (heads, T, T) tables where the text comes whole.

    A query has two sets of keys, far ones and near ones, of which it sees those that are so. They stand one behind the
    other in one call of torch's own attention: the far query and the near one side by side, and a key with zeros where
    the other kind would be. (Values get zeros too: only vectors of one width have the fast path.)
    """

    def forward(
        self,
        x: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = True,
        cache=None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        if (
            (positions, mask, cache) == (None, None, None)
            and is_causal
            and not return_weights
        ):
            return self._whole(x)
        return super().forward(
            x,
            positions,
            mask,
            is_causal=is_causal,
            cache=cache,
            return_weights=return_weights,
        )

    def _whole(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x)
        dim, window = self.head_dim, self.method.window
        places = torch.arange(q.shape[-2], device=x.device)
        at = places.double()
        far_q, far_k = (
            self._turned(y, to)
            for y, to in zip((q, k), self.method.far_positions(at, at), strict=True)
        )
        near_q, near_k = self._turned(q, at), self._turned(k, at)
        q = torch.cat((far_q, near_q), -1)
        far_k = nn.functional.pad(far_k, (0, dim))
        near_k = nn.functional.pad(near_k, (dim, 0))
        v = nn.functional.pad(v, (0, dim))
        heads = []
        for here in places.split(_PIECE):
            start, stop = int(here[0]), int(here[-1]) + 1
            far, near = (
                slice(0, max(0, stop - window)),
                slice(max(0, start - window + 1), stop),
            )
            distance = here[:, None] - torch.cat((places[far], places[near]))
            is_far = torch.arange(distance.shape[1], device=x.device) < far.stop
            seen = torch.where(
                is_far, distance >= window, (distance >= 0) & (distance < window)
            )
            heads.append(
                nn.functional.scaled_dot_product_attention(
                    q[..., start:stop, :],
                    torch.cat((far_k[..., far, :], near_k[..., near, :]), -2),
                    torch.cat((v[..., far, :], v[..., near, :]), -2),
                    attn_mask=seen,
                    scale=1 / math.sqrt(dim),
                    enable_gqa=self.n_kv_heads != self.n_heads,
                )
            )
        return self.out_proj(merge_heads(torch.cat(heads, -2)[..., :dim]))

    def _turned(self, x: Tensor, positions: Tensor) -> Tensor:
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        cos, sin = self.rotary.cos_sin(positions, wide)
        return apply_rotary(x, cos, sin, layout=self.rotary.layout)


# --- Bits per byte --------------------------------------------------------------------------------------------------


@torch.no_grad()
def position_bits(model: LanguageModel, windows: Tensor, batch: int = 1) -> Tensor:
    """Bits per byte at every position: windows (files, T + 1) to float32 (files, T). ``batch`` files at a time."""
    checks.integer("batch", batch, minimum=1)
    return torch.cat([_bits(model, rows) for rows in windows.split(batch)])


@torch.no_grad()
def windowed_bits(model: LanguageModel, windows: Tensor, window: int) -> Tensor:
    """As `position_bits`, of a model that always sees the last ``window`` bytes only, or half as many at least.

    The text is cut into windows that overlap by half; of each the second half is scored, of the first all. ``window`` is
    even, and T a multiple of its half, at least ``window``.
    """
    checks.even("window", window)
    length, half = windows.shape[1] - 1, window // 2
    if length < window or length % half:
        raise ValueError(
            f"windows must have T + 1 bytes, T a multiple of {half} and at least {window}, got T = {length}"
        )
    pieces = windows.unfold(1, window + 1, half)
    bits = torch.stack([_bits(model, rows) for rows in pieces])
    return torch.cat((bits[:, 0, :half], bits[:, :, half:].flatten(1)), 1)


@torch.no_grad()
def sampled_bits(
    model: LanguageModel, windows: Tensor, lengths: Sequence[int], last: int
) -> Tensor:
    """Bits of the ``last`` bytes of the first n, for each n of ``lengths``: (files, lengths, last), float32.

    For a model whose frequencies follow the length this is decoding without a cache: the whole text is computed anew at each
    length. To the letter that is so for the last byte; those before it came when the text was up to ``last`` − 1 bytes
    shorter.
    """
    checks.integer("last", last, minimum=1, maximum=min(lengths))
    checks.integer("lengths", max(lengths), maximum=windows.shape[1] - 1)
    files = []
    for rows in windows.split(1):
        pieces = [_bits(model, rows[:, : n + 1])[:, -last:] for n in lengths]
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


def _bits(model: LanguageModel, windows: Tensor) -> Tensor:
    windows = windows.to(model.embedding.weight.device)
    loss = nn.functional.cross_entropy(
        logits(model, windows[:, :-1]).transpose(1, 2),
        windows[:, 1:],
        reduction="none",
    )
    return loss.float().cpu() / math.log(2)


def logits(model: LanguageModel, tokens: Tensor) -> Tensor:
    """The model's logits, (batch, seq, 256): of a scheme with a bias as large as all scores, a piece of the text at a time."""
    if not model.has_bias:
        return model(tokens)
    caches = model.new_caches(tokens.shape[1])
    pieces = [model(piece, caches=caches) for piece in tokens.split(_PIECE, 1)]
    return torch.cat(pieces, 1)


# --- Retrieval ------------------------------------------------------------------------------------------------------


@torch.no_grad()
def retrieval(
    model: LanguageModel, texts: RetrievalTexts, batch: int = 1
) -> dict[int, float]:
    """For each distance, the share of records given back: after the query, the record is the likeliest of all 256 bytes."""
    checks.integer("batch", batch, minimum=1)
    found = []
    for tokens, answers in zip(
        texts.tokens.split(batch), texts.answers.split(batch), strict=True
    ):
        tokens = tokens.to(model.embedding.weight.device)
        likeliest = logits(model, tokens[:, :-1]).argmax(-1).cpu()
        wanted = tokens.cpu().gather(1, answers)
        found.append(likeliest.gather(1, answers - 1) == wanted)
    right = torch.cat(found)
    return {
        distance: right[texts.distances == distance].float().mean().item()
        for distance in texts.distances.unique().tolist()
    }


# --- Over files -----------------------------------------------------------------------------------------------------


class Mean(NamedTuple):
    """A mean over files and its standard error."""

    mean: Tensor
    error: Tensor


def over_files(values: Tensor) -> Mean:
    """Mean over the first axis, and its standard error, s/√n with s² divided by n − 1. ``ValueError`` for fewer than two.

    >>> over_files(torch.tensor([1.0, 3.0]))
    Mean(mean=tensor(2., dtype=torch.float64), error=tensor(1., dtype=torch.float64))
    """
    checks.floating("values", values)
    if values.ndim == 0 or len(values) < 2:
        raise ValueError(
            f"values must be of two files at least, got shape {tuple(values.shape)}"
        )
    values = values.double()
    return Mean(values.mean(0), values.std(0) / math.sqrt(len(values)))


def paired(a: Tensor, b: Tensor) -> Mean:
    """The mean of a − b over files, (files, …) each, and its standard error: of the differences, file by file.

    >>> paired(torch.tensor([2.0, 5.0]), torch.tensor([1.0, 4.0]))
    Mean(mean=tensor(1., dtype=torch.float64), error=tensor(0., dtype=torch.float64))
    """
    if checks.floating("a", a).shape != checks.floating("b", b).shape:
        raise ValueError(
            f"a and b must be of the same files, got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    return over_files(a.double() - b.double())


def band_means(bits: Tensor, bands: Sequence[tuple[int, int]] = BANDS) -> Tensor:
    """Means over bands of positions, bits (files, T) to (files, bands); NaN for a band that the text does not fill."""
    return torch.stack(
        [
            bits[:, start:stop].mean(1)
            if stop <= bits.shape[1]
            else bits.new_full((len(bits),), math.nan)
            for start, stop in bands
        ],
        1,
    )


# --- The grid -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One trained model with one method. ``tuned``: trained a little further with it, on longer texts. ``cache``, of a
    method that follows the length: None for a whole text at its length, True for decoding with keys as they were rotated
    on arrival, False for decoding that computes all anew."""

    run: str
    method: str = "none"
    factor: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    tuned: bool = False
    cache: bool | None = None

    @property
    def id(self) -> str:
        """
        >>> Cell("rope-10000-0", "yarn", 4, tuned=True).id
        'rope-10000-0/yarn/4/tuned'
        """
        parts = [self.run, self.method]
        if self.factor is not None:
            parts.append(str(self.factor))
        if self.cache is not None:
            parts.append("cached" if self.cache else "uncached")
        if self.tuned:
            parts.append("tuned")
        return "/".join(parts)


def method_options(
    method: str, factor: int | None, length: int = LENGTH
) -> dict[str, object]:
    """The options that the grid gives a method: trained length L, wanted length ``factor``·L.

    >>> method_options("self_extend", 4)
    {'window': 64, 'group': 6}
    """
    if method == "none":
        return {}
    checks.choice("method", method, METHODS)
    if method == "rerope":
        return {"window": length // 2}
    if method == "self_extend":
        window = length // 4
        group = 1
        while SelfExtend(window, group).reach(length) < factor * length:
            group += 1
        return {"window": window, "group": group}
    known = {"factor": factor, "trained_length": length}
    wanted = {option.name for option in dataclasses.fields(METHODS[method].form)}
    return {
        key: value
        for key, value in known.items()
        if key in wanted and value is not None
    }


def grid(
    runs: Sequence[str], extended: Sequence[str], length: int = LENGTH
) -> list[Cell]:
    """All cells without fine-tuning: each of ``runs`` as it is, and each of ``extended`` with every method."""
    kinds = [
        (method, factor, None)
        for method in ("linear", "ntk", "ntk_by_parts", "yarn", "self_extend")
        for factor in FACTORS
    ]
    kinds += [("dynamic_ntk", None, cache) for cache in (None, True, False)]
    kinds += [("log_n", None, None), ("rerope", None, None)]
    return [Cell(run) for run in runs] + [
        Cell(
            run, method, factor, method_options(method, factor, length), cache=cache
        )
        for run in extended
        for method, factor, cache in kinds
    ]


def measure(
    cell: Cell,
    model: LanguageModel,
    windows: Tensor,
    texts: Mapping[int, RetrievalTexts],
    bands: Sequence[tuple[int, int]] = BANDS,
) -> tuple[dict[str, object], Tensor]:
    """A cell's numbers, and bits at each position as a mean over files, (T,) float32.

    ``model``: the trained one, without the method; ``windows`` (files, T + 1); ``texts``: of the retrieval task, by
    length. A learned scheme goes as far as its length. Decoding without a cache is too dear at every length: beyond L its
    bands are None and its positions NaN, but for the bytes in "sampled" (`sampled_bits`). Cells of other forms of the method
    and those without one have these as well, so that they can be compared on the same bytes.
    """
    trained, whole = model.length, windows.shape[1] - 1
    length = trained if model.scheme == "learned" else whole
    windows = windows[:, : length + 1]
    model = with_method(
        model, cell.method, cell.options, arrival=cell.cache is True
    )
    lengths = sampled_lengths(trained, length) if length > trained else []
    sampled = None
    if cell.cache is False:
        sampled = sampled_bits(model, windows, lengths, SAMPLED)
        bits = torch.full((len(windows), length), math.nan)
        bits[:, :trained] = position_bits(model, windows[:, : trained + 1])
        for at, n in enumerate(lengths):
            bits[:, n - SAMPLED : n] = sampled[:, at]
    else:
        bits = position_bits(model, windows)
        if lengths and cell.method in ("none", "dynamic_ntk"):
            sampled = torch.stack([bits[:, n - SAMPLED : n] for n in lengths], 1)
    means = band_means(bits, bands)
    mean, error = over_files(means)
    result = {
        "id": cell.id,
        **dataclasses.asdict(cell),
        "text": length,
        "files": _plain(means),
        "bits": _plain(mean),
        "error": _plain(error),
    }
    if sampled is not None:
        mean, error = over_files(sampled.mean(2))
        result["sampled"] = {
            "lengths": lengths,
            "last": SAMPLED,
            "bits": _plain(mean),
            "error": _plain(error),
            "files": _plain(_sampled_bands(sampled, lengths, bands)),
        }
    result["retrieval"], result["asked"] = {}, {}
    for size, asked in texts.items():
        shares = {}
        if size <= length and (cell.cache is not False or size <= trained):
            shares = retrieval(model, asked)
        result["retrieval"][str(size)] = [
            None if distance not in shares else round(shares[distance], 5)
            for distance in DISTANCES
        ]
        result["asked"][str(size)] = [
            int((asked.distances == distance).sum()) for distance in DISTANCES
        ]
    return result, bits.mean(0)


def measure_windowed(
    model: LanguageModel,
    windows: Tensor,
    bands: Sequence[tuple[int, int]] = BANDS,
) -> dict[str, object]:
    """The numbers of a model that always sees the last L bytes only, L its trained length: what longer texts must beat."""
    means = band_means(windowed_bits(model, windows, model.length), bands)
    mean, error = over_files(means)
    return {
        "files": _plain(means),
        "bits": _plain(mean),
        "error": _plain(error),
    }


def _sampled_bands(
    sampled: Tensor, lengths: Sequence[int], bands: Sequence[tuple[int, int]]
) -> Tensor:
    """(files, lengths, last) to (files, bands): the mean over the lengths that end in a band, NaN where none does."""
    ends = torch.tensor(lengths)
    return torch.stack(
        [
            sampled[:, (start < ends) & (ends <= stop)].mean((1, 2))
            for start, stop in bands
        ],
        1,
    )


def _plain(values: Tensor) -> list:
    """Numbers for JSON, five digits behind the point, None for NaN."""
    if values.ndim > 1:
        return [_plain(row) for row in values]
    return [None if math.isnan(v) else round(v, 5) for v in values.tolist()]
