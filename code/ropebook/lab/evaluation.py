"""What a trained model does within and beyond its length: bits per byte at every position, and retrieval by distance.

Here is the grid of models and methods, and what is measured of each; `texts` has what they read, `longer` the model with a method, `bits` the
loss and the retrieval, `means` the averages. Beyond its length L a model is not trained any further unless a result says so.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ropebook.lab.bits import (
    SAMPLED,
    bits_of,
    logits,
    position_bits,
    sampled_bits,
    sampled_lengths,
    windowed_bits,
)
from ropebook.lab.longer import method_options, with_method
from ropebook.lab.means import Mean, band_means, for_json, over_files, paired
from ropebook.lab.model import LanguageModel
from ropebook.lab.texts import (
    LENGTH,
    TEXT,
    RetrievalTexts,
    held_out_windows,
    retrieval,
    retrieval_texts,
)
from ropebook.shapes import Float, Int

__all__ = [
    "BANDS",
    "CONTEXTS",
    "DISTANCES",
    "FACTORS",
    "LENGTH",
    "SAMPLED",
    "TEXT",
    "Cell",
    "Mean",
    "RetrievalTexts",
    "band_means",
    "bits_of",
    "for_json",
    "grid",
    "held_out_windows",
    "logits",
    "measure",
    "measure_windowed",
    "method_options",
    "over_files",
    "paired",
    "position_bits",
    "retrieval",
    "retrieval_texts",
    "sampled_bands",
    "sampled_bits",
    "sampled_lengths",
    "windowed_bits",
    "with_method",
]

BANDS = ((0, 256), (256, 512), (512, 1024), (1024, 2048), (2048, 4096))
"""Positions from and to, the last not included, over which bits are averaged."""
DISTANCES = (24, 64, 128, 192, 384, 768, 1536, 3072)
"""Bytes from a record to its query."""
FACTORS = (2, 4, 8, 16)
CONTEXTS = 32
"""Texts of the retrieval task of each length."""


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
    windows: Int[Tensor, "files bytes"],
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
        "files": for_json(means),
        "bits": for_json(mean),
        "error": for_json(error),
    }
    if sampled is not None:
        mean, error = over_files(sampled.mean(2))
        result["sampled"] = {
            "lengths": lengths,
            "last": SAMPLED,
            "bits": for_json(mean),
            "error": for_json(error),
            "files": for_json(sampled_bands(sampled, lengths, bands)),
        }
    result["retrieval"], result["asked"] = {}, {}
    for size, asked in texts.items():
        shares = {}
        if size <= length and (cell.cache is not False or size <= trained):
            shares = retrieval(model, asked)
        found = [shares.get(distance, math.nan) for distance in DISTANCES]
        count = [(asked.distances == distance).sum() for distance in DISTANCES]
        result["retrieval"][str(size)] = for_json(found)
        result["asked"][str(size)] = [int(number) for number in count]
    return result, bits.mean(0)


def measure_windowed(
    model: LanguageModel,
    windows: Int[Tensor, "files bytes"],
    bands: Sequence[tuple[int, int]] = BANDS,
) -> dict[str, object]:
    """The numbers of a model that always sees the last L bytes only, L its trained length: what longer texts must beat."""
    means = band_means(windowed_bits(model, windows, model.length), bands)
    mean, error = over_files(means)
    return {
        "files": for_json(means),
        "bits": for_json(mean),
        "error": for_json(error),
    }


def sampled_bands(
    sampled: Float[Tensor, "files lengths last"],
    lengths: Sequence[int],
    bands: Sequence[tuple[int, int]],
) -> Float[Tensor, "files bands"]:
    """(files, lengths, last) to (files, bands): the mean over the lengths that end in a band, NaN where none does."""
    ends = torch.tensor(lengths)
    return torch.stack(
        [
            sampled[:, (start < ends) & (ends <= stop)].mean((1, 2))
            for start, stop in bands
        ],
        1,
    )
