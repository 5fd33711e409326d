"""How the score depends on distance: the bound that falls, the score that swings, and the base that a length needs.

Notation: distance Δ = m − n, dimension d (even), base b, frequency θ_i = b^(−2i/d), i = 0 … d/2 − 1; pair i of the query
and the key as complex numbers q_i, k_i, and h_i = q_i conj(k_i). Then the score and its partial sums are

    S(Δ) = Re Σ_i h_i e^{iΔθ_i},        S_j(Δ) = Σ_{i<j} e^{iΔθ_i},   j = 1 … d/2,

as in Su et al., "RoFormer" (2021), section 3.4.3. For q = k = (1, …, 1) the score is 2K(Δ), twice
`ropebook.sinusoidal.distance_kernel`; for any q and k it is `ropebook.complex_plane.score_at`.

A curve is a function of distances: it takes an int64 tensor of shape (n,) and gives float64 values of that shape, on the
tensor's device. What walks along a curve (`summarize`, `windows`, `first_below`, `reach` …) asks for at most CHUNK
distances at a time, so its memory does not grow with the length. Angles are float64; under mps, which has none, on the CPU.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.attention import attention_weights
from ropebook.complex_plane import amplitudes, rotate, score_at
from ropebook.rope import Positions
from ropebook.sinusoidal import distance_kernel

Curve = Callable[[Tensor], Tensor]  # distances (n,) -> values (n,)
Device = torch.device | str | None

CHUNK = 2**16  # distances at a time


# --- RoFormer's bound -----------------------------------------------------------------------------------------------


def partial_sums(distances: Positions, dim: int, base: float = 10000.0) -> Tensor:
    """The partial sums S_1 … S_{d/2} at each distance: shape distances.shape + (dim/2,), complex128.

    Steps of length 1 in the plane, step i in the direction Δθ_i: a straight line at Δ = 0, a curled-up walk far away.

    >>> partial_sums(0, dim=8)
    tensor([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j], dtype=torch.complex128)
    """
    radians = rope.angles(distances, dim, base)
    return torch.polar(torch.ones_like(radians), radians).cumsum(-1)


def mean_partial_sum(
    distances: Positions, dim: int, base: float = 10000.0
) -> Tensor:
    """The mean of |S_1| … |S_{d/2}| at each distance, RoFormer's figure 2: shape distances.shape, float64.

    (d/2 + 1)/2 at Δ = 0, and even in Δ. Summed pair by pair: the memory of a few copies of the distances.

    >>> mean_partial_sum([0, 1000], dim=8)
    tensor([2.5000, 1.0929], dtype=torch.float64)
    """
    frequencies = rope.inv_freq(dim, base).tolist()
    distances = rope.as_positions("distances", distances)
    total = sum(partial_sum.abs() for partial_sum in _walk(distances, frequencies))
    return total / len(frequencies)


def partial_sum_floor(dim: int) -> float:
    """A number that the mean of |S_j| never falls below, whatever Δ and base: more than 1/2.

    |S_1| = 1, and |S_j| + |S_{j+1}| ≥ |S_{j+1} − S_j| = 1; so Σ_j |S_j| ≥ 1 + ⌊(d/2 − 1)/2⌋.

    >>> partial_sum_floor(8), partial_sum_floor(6)
    (0.5, 0.6666666666666666)
    """
    n_pairs = checks.even("dim", dim) // 2
    return (1 + (n_pairs - 1) // 2) / n_pairs


def random_walk_level(dim: int) -> float:
    """What the mean of |S_j| comes to where the directions Δθ_i are as good as random: the mean of √(πj)/2.

    √(πj)/2 is the mean length of a walk of j unit steps in random directions, for large j (Rayleigh's distribution).

    >>> round(random_walk_level(128), 3)
    4.779
    """
    n_pairs = checks.even("dim", dim) // 2
    return sum(math.sqrt(math.pi * j) / 2 for j in range(1, n_pairs + 1)) / n_pairs


class Bounds(NamedTuple):
    """A score and three numbers that its size cannot exceed; see `bounds`."""

    score: Tensor
    steps: Tensor
    abel: Tensor
    triangle: Tensor


def bounds(
    q: Tensor,
    k: Tensor,
    distances: Positions,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Bounds:
    """The score at each distance and what bounds it, each of shape (…,) + distances.shape, float64.

    With h_{d/2} = 0, summation by parts gives Σ_i h_i e^{iΔθ_i} = −Σ_i S_{i+1}(h_{i+1} − h_i), hence

        |score| ≤ Σ_i |S_{i+1}| |h_{i+1} − h_i|            (``steps``)
                ≤ max_i |h_{i+1} − h_i| · Σ_i |S_{i+1}|    (``abel``, RoFormer's, section 3.4.3).

    ``triangle`` is what needs no such art, |score| ≤ Σ_i |h_i|; it is the same at every distance.

    ``q``, ``k``: (…, dim) that broadcast, floating point, the same dim.

    >>> ones = torch.ones(8)
    >>> near, far = bounds(ones, ones, [1, 1000]).abel
    >>> round(near.item(), 2), round(far.item(), 2)  # the scores themselves are 7.07 and 2.25
    (18.34, 8.74)
    """
    a, b = amplitudes(q, k, layout)
    frequencies = rope.inv_freq(2 * a.shape[-1], base).tolist()
    distances = rope.as_positions("distances", distances).to(a.device)
    h = torch.complex(a, -b)
    steps = torch.cat((h, torch.zeros_like(h[..., :1])), -1).diff().abs()
    axes = (..., *(None,) * distances.ndim)
    by_steps, lengths = 0, 0
    for i, partial_sum in enumerate(_walk(distances, frequencies)):
        length = partial_sum.abs()
        by_steps = by_steps + steps[..., i][axes] * length
        lengths = lengths + length
    return Bounds(
        score_at(distances, a, b, base),
        by_steps,
        steps.amax(-1)[axes] * lengths,
        h.abs().sum(-1)[axes].expand_as(by_steps),
    )


def _walk(distances: Tensor, frequencies: list[float]) -> Iterator[Tensor]:
    """S_1, S_2, … of all distances, one after the other; complex128."""
    where = rope.float64_device(distances.device)
    distances = distances.to(device=where, dtype=torch.float64)
    total = torch.zeros_like(distances, dtype=torch.complex128)
    for frequency in frequencies:
        radians = distances * frequency
        total = total + torch.polar(torch.ones_like(radians), radians)
        yield total


# --- Along a curve --------------------------------------------------------------------------------------------------


class Summary(NamedTuple):
    """What `summarize` finds on the way along a curve."""

    mean: float
    least: float
    least_at: int
    first_negative: int | None
    local_maxima: int
    rises: int


def summarize(curve: Curve, length: int, device: Device = None) -> Summary:
    """Walk along a curve from Δ = 0 to length − 1.

    ``local_maxima`` counts the inner distances whose value is above the one before and not below the next; ``rises``
    the steps that go up, so that a curve falls monotonically if and only if there are none. ``first_negative`` is None
    if no value is below 0. ``ValueError`` if the curve gives another shape than that of its distances, or NaN.

    >>> found = summarize(lambda distances: distances.double().cos(), 10)
    >>> found.least_at, found.first_negative, found.local_maxima, found.rises
    (3, 2, 1, 3)
    """
    length = _length("length", length)
    total, least, least_at, first_negative = 0.0, math.inf, 0, None
    local_maxima = rises = 0
    before = None  # the last two values of the chunk before
    for distances in _chunks(0, length, device):
        values = _values(curve, distances)
        start = int(distances[0])
        total += values.sum().item()
        lowest = int(values.argmin())
        if values[lowest] < least:
            least, least_at = values[lowest].item(), start + lowest
        if first_negative is None and least < 0:
            first_negative = start + int((values < 0).int().argmax())
        joined = values if before is None else torch.cat((before, values))
        up = joined.diff() > 0
        local_maxima += int((up[:-1] & ~up[1:]).sum())
        # Of two values carried over, the step between them has been counted.
        rises += int(up[0 if before is None else len(before) - 1 :].sum())
        before = joined[-2:]
    return Summary(
        total / length, least, least_at, first_negative, local_maxima, rises
    )


class Windows(NamedTuple):
    """Mean, least and greatest value of a curve in each window: shape (windows,), float64, on the CPU."""

    mean: Tensor
    least: Tensor
    greatest: Tensor


def windows(curve: Curve, edges: Sequence[int], device: Device = None) -> Windows:
    """The trend under a curve's swings: mean, least and greatest value over edges[j] ≤ Δ < edges[j + 1].

    ``edges``: whole distances, at least two, each greater than the one before, the first at least 0.

    >>> windows(lambda distances: distances.double(), [0, 2, 4]).mean
    tensor([0.5000, 2.5000], dtype=torch.float64)
    """
    edges = [
        checks.integer("edges", edge, 0, rope.LARGEST_POSITION) for edge in edges
    ]
    if len(edges) < 2 or any(stop <= start for start, stop in pairwise(edges)):
        raise ValueError(f"edges must be two or more, and increase, got {edges}")
    rows = []
    for start, stop in pairwise(edges):
        total, least, greatest = 0.0, math.inf, -math.inf
        for distances in _chunks(start, stop, device):
            values = _values(curve, distances)
            total += values.sum().item()
            least = min(least, values.min().item())
            greatest = max(greatest, values.max().item())
        rows.append((total / (stop - start), least, greatest))
    return Windows(*torch.tensor(rows, dtype=torch.float64).T)


def first_below(
    curve: Curve, level: float, length: int, device: Device = None
) -> int | None:
    """The first distance in 0 … length − 1 at which a curve is below ``level``; None if there is none.

    Nothing beyond the chunk in which it lies is computed.

    >>> first_below(lambda distances: distances.double().cos(), 0.0, 100)
    2
    """
    level = checks.number("level", level)
    return _first(
        curve, lambda values: values < level, 0, _length("length", length), device
    )


def first_return(
    share: float,
    length: int,
    dim: int,
    base: float = 10000.0,
    device: Device = None,
) -> int | None:
    """The first Δ < length at which K(Δ) is back to ``share`` of K(0), having been below; None if there is none.

    K is almost periodic: it comes back as near to K(0) as one likes, but for many pairs not before very long.

    >>> first_return(0.99, 10000, dim=8)  # its frequencies are powers of 1/10: the period is 2000π
    6283
    """
    share = checks.number("share", share, above=0, maximum=1)
    length = _length("length", length)
    curve = partial(distance_kernel, dim=checks.even("dim", dim), base=base)
    level = share * (dim // 2)
    left = first_below(curve, level, length, device)
    if left is None:
        return None
    return _first(curve, lambda values: values >= level, left, length, device)


def _first(
    curve: Curve,
    condition: Callable[[Tensor], Tensor],
    start: int,
    stop: int,
    device: Device,
) -> int | None:
    for distances in _chunks(start, stop, device):
        found = condition(_values(curve, distances))
        if found.any():
            return int(distances[0]) + int(found.int().argmax())
    return None


def _chunks(start: int, stop: int, device: Device) -> Iterator[Tensor]:
    """The distances start … stop − 1 in pieces: a small one first, then twice as many each time, up to CHUNK."""
    size = CHUNK // 16
    while start < stop:
        end = min(start + size, stop)
        yield torch.arange(start, end, device=device)
        start, size = end, min(2 * size, CHUNK)


def _values(curve: Curve, distances: Tensor) -> Tensor:
    values = checks.floating("what curve gives", curve(distances))
    if values.shape != distances.shape:
        raise ValueError(
            f"curve must give one value for each distance, shape {tuple(distances.shape)}, got {tuple(values.shape)}"
        )
    if values.isnan().any():
        raise ValueError("curve must give numbers, got NaN")
    return values


# --- The score, for q = k, for chosen and for random vectors --------------------------------------------------------


class Figure(NamedTuple):
    """One figure of the score: a query at a position, keys at 0 … length − 1, q = k = (1, …, 1)."""

    query_position: int
    length: int
    dim: int


# The twelve settings that the six figures of a widely read study note on RoPE are taken from; base 10000.
FIGURES = tuple(
    Figure(query_position, length, dim)
    for dim in (256, 16, 8)
    for length in (512, 65536)
    for query_position in (0, 256)
)


def score_curve(
    query_position: int,
    length: int,
    q: Tensor,
    k: Tensor,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Tensor:
    """The scores of one query with keys at 0 … length − 1: ⟨R_m q, R_n k⟩, shape (…, length), float64.

    ``q``, ``k``: (…, dim), floating point; every key is the same vector k. They are on q's device.

    >>> ones = torch.ones(4)
    >>> score_curve(1, 3, ones, ones)  # symmetric about the query: q = k
    tensor([3.0805, 4.0000, 3.0805], dtype=torch.float64)
    """
    largest = rope.LARGEST_POSITION
    query_position = checks.integer("query_position", query_position, 0, largest)
    keys = torch.arange(
        _length("length", length), device=checks.floating("q", q).device
    )
    return score_at(query_position - keys, *amplitudes(q, k, layout), base)


class Spread(NamedTuple):
    """Mean and standard deviation of random scores at each distance."""

    mean: Tensor
    std: Tensor


def random_scores(
    distances: Positions,
    dim: int,
    base: float = 10000.0,
    samples: int = 1000,
    seed: int = 0,
) -> Spread:
    """Mean and standard deviation of the score over random q and k, at each distance: distances.shape, float64.

    All entries of q and k are independent, of mean 0 and variance 1 (normal). Then the score has mean 0 and variance d
    at *every* distance: rotation leaves such a k what it was, so nothing decays and no diagonal appears.
    The same q and k serve all distances.

    >>> spread = random_scores([0, 10, 10000], dim=64, samples=4000)
    >>> ((spread.std / 64**0.5 - 1).abs() < 0.05).all().item()
    True
    """
    dim = checks.even("dim", dim)
    samples = checks.integer("samples", samples, minimum=2)
    generator = torch.Generator().manual_seed(checks.integer("seed", seed))
    distances = rope.as_positions("distances", distances)
    where = rope.float64_device(distances.device)
    total, squares = 0, 0
    batch = max(1, CHUNK // max(1, distances.numel()))
    for start in range(0, samples, batch):
        shape = (2, min(batch, samples - start), dim)
        q, k = torch.randn(shape, generator=generator, dtype=torch.float64)
        scores = score_at(distances, *amplitudes(q.to(where), k.to(where)), base)
        total, squares = total + scores.sum(0), squares + scores.square().sum(0)
    mean = total / samples
    variance = (squares - samples * mean.square()) / (samples - 1)
    return Spread(mean, variance.clamp(min=0).sqrt())


class Estimate(NamedTuple):
    """A mean over independent trials, and the standard error of that mean."""

    value: float
    error: float


def diagonal_weight(q: Tensor, k: Tensor, base: float | None = 10000.0) -> Estimate:
    """The attention that a position pays to itself, as a multiple of an even share: 1 is no diagonal.

    ``q``, ``k``: (trials, seq, dim), floating point, at least 2 trials. They are rotated by their positions 0 … seq − 1
    (``base`` None: not at all); softmax of the scores over √dim, no mask; the mean weight on the diagonal times seq.

    >>> q, k = torch.randn(2, 100, 32, 64, generator=torch.Generator().manual_seed(0))
    >>> value, error = diagonal_weight(q, k)
    >>> abs(value - 1) < 3 * error
    True
    """
    for name, x in (("q", q), ("k", k)):
        if checks.floating(name, x).ndim != 3 or x.shape[0] < 2 or not x.shape[1]:
            raise ValueError(
                f"{name} must have shape (trials >= 2, seq >= 1, dim), got {tuple(x.shape)}"
            )
    if q.shape != k.shape:
        raise ValueError(
            f"q and k must have one shape, got {tuple(q.shape)} and {tuple(k.shape)}"
        )
    seq_len = q.shape[1]
    if base is not None:
        positions = torch.arange(seq_len, device=q.device)
        q, k = (rotate(x, positions, base) for x in (q, k))
    weights = attention_weights(q, k).diagonal(dim1=-2, dim2=-1)
    shares = weights.double().mean(-1) * seq_len
    return Estimate(
        shares.mean().item(), shares.std().item() / math.sqrt(len(shares))
    )


# --- What base and dimension do -------------------------------------------------------------------------------------

BASES = (1.0, 2.0, 10.0, 1e2, 5e2, 1e3, 1e4, 1e5, 1e6, 1e7)
DIMS = (8, 16, 32, 64, 128, 256)


class SweepRow(NamedTuple):
    """One base and dimension of `sweep`; ``below_half`` and ``summary`` are of the curve K(Δ)/K(0)."""

    base: float
    dim: int
    below_half: int | None
    summary: Summary


def sweep(
    length: int,
    bases: Iterable[float] = BASES,
    dims: Iterable[int] = DIMS,
    device: Device = None,
) -> list[SweepRow]:
    """The score of q = k = 1, as a share of its value at Δ = 0, for each dim and base, over Δ < length.

    ``below_half`` is the first distance at which it is below 1/2, None if it stays above.

    >>> [row.below_half for row in sweep(1000, bases=[100, 10000], dims=[64])]
    [5, 28]
    """
    rows = []
    bases = list(bases)
    for dim in dims:
        for base in bases:
            curve = partial(_share, dim=checks.even("dim", dim), base=base)
            half = first_below(curve, 0.5, length, device)
            summary = summarize(curve, length, device)
            rows.append(SweepRow(float(base), dim, half, summary))
    return rows


def _share(distances: Tensor, dim: int, base: float) -> Tensor:
    return distance_kernel(distances, dim, base) / (dim // 2)


# --- Wavelengths against context ------------------------------------------------------------------------------------


class Model(NamedTuple):
    """A published model's rotary setting: ``dim`` is how many entries of each head turn, of ``head_dim``."""

    name: str
    dim: int
    head_dim: int
    base: float
    context: int  # tokens in a training text, or in the attention's window
    source: str  # its key in the bibliography


MODELS = (
    Model("GPT-NeoX-20B", 24, 96, 1e4, 2048, "black2022"),
    Model("LLaMA 7B", 128, 128, 1e4, 2048, "touvron2023"),
    Model("Llama 2 7B", 128, 128, 1e4, 4096, "touvron2023llama2"),
    # Its training texts have 8192 tokens, but no query sees further than the window.
    Model("Mistral 7B", 128, 128, 1e4, 4096, "jiang2023"),
    Model("Gemma 7B", 256, 256, 1e4, 8192, "gemma2024"),
    Model("Llama 3 8B", 128, 128, 5e5, 8192, "grattafiori2024"),
    Model("Qwen2.5 7B", 128, 128, 1e6, 32768, "qwen2024"),
    Model("Gemma 3 4B (global layers)", 256, 256, 1e6, 32768, "gemma2025"),
)


def turned_pairs(context: int, dim: int, base: float = 10000.0) -> int:
    """How many of the dim/2 pairs make at least one turn within a text of ``context`` tokens: (L − 1)θ_i ≥ 2π.

    >>> turned_pairs(4096, dim=128), "of", 64
    (46, 'of', 64)
    """
    last = _length("context", context) - 1
    return int((rope.turns(last, dim, base) >= 1).sum())


# --- The base that a context needs ----------------------------------------------------------------------------------

# What Men et al. (2024) found for d = 128: the least base, by context length.
PUBLISHED_BASES = MappingProxyType(
    {
        "1k": 4.3e3,
        "2k": 1.6e4,
        "4k": 2.7e4,
        "8k": 8.4e4,
        "16k": 3.1e5,
        "32k": 6.4e5,
        "64k": 2.1e6,
        "128k": 7.8e6,
        "256k": 3.6e7,
        "512k": 6.4e7,
        "1M": 5.1e8,
    }
)


def tokens(label: str, thousand: int = 1024) -> int:
    """The context length that a label such as "128k" or "1M" stands for; a thousand is 1024 here, or 1000.

    >>> tokens("4k"), tokens("4k", thousand=1000), tokens("1M")
    (4096, 4000, 1048576)
    """
    checks.choice("thousand", thousand, (1000, 1024))
    match = re.fullmatch(r"([1-9][0-9]*)([kM])", label)
    if not match:
        raise ValueError(
            f"label must be a whole number with k or M, such as '128k', got {label!r}"
        )
    return int(match[1]) * thousand ** {"k": 1, "M": 2}[match[2]]


def reach(base: float, dim: int, limit: int, device: Device = None) -> int:
    """How many positions a base carries by the criterion Σ_i cos mθ_i ≥ 0 for m = 0, 1, …: the first m that breaks it.

    ``limit`` if none below it does. So a base is admissible for a context of L tokens if its reach (with limit L or more)
    is at least L (Men et al. 2024). The walk ends at the first negative sum.

    >>> reach(10000, dim=128, limit=4096)
    1707
    """
    limit = _length("limit", limit)
    curve = partial(distance_kernel, dim=checks.even("dim", dim), base=base)
    negative = first_below(curve, 0.0, limit, device)
    return limit if negative is None else negative


def significant_grid(digits: int, low: float, high: float) -> list[float]:
    """All numbers from ``low`` to ``high``, both included, that have ``digits`` significant decimal digits, rising.

    The paper's grid has two: 1000, 1100, …, 9900, 10000, 11000, ….

    >>> [int(base) for base in significant_grid(2, 970, 1200)]
    [970, 980, 990, 1000, 1100, 1200]
    """
    digits = checks.integer("digits", digits, minimum=1, maximum=6)
    low = checks.number("low", low, minimum=1)
    high = checks.number("high", high, minimum=low)
    grid = []
    # One decade early: a logarithm next to a whole number may round to either side.
    for decade in range(int(math.log10(low)) - 1, int(math.log10(high)) + 2):
        for mantissa in range(10 ** (digits - 1), 10**digits):
            power = decade - digits + 1
            grid.append(
                mantissa * 10.0**power if power >= 0 else mantissa / 10**-power
            )
    return [number for number in grid if low <= number <= high]


def smallest_base(
    length: int, bases: Iterable[float], dim: int = 128, device: Device = None
) -> float | None:
    """The first of ``bases`` (which rise) that is admissible for ``length`` positions; None if none is.

    It has to try them one by one: the admissible bases are no interval (`runs`), so bisection may miss.

    >>> smallest_base(1024, significant_grid(2, 1e3, 1e4))
    4300.0
    """
    length = _length("length", length)
    return next(
        (
            base
            for base in _rising(bases)
            if reach(base, dim, length, device) >= length
        ),
        None,
    )


class Run(NamedTuple):
    """Neighbours on a grid of bases that are all admissible, from ``first`` to ``last``; ``count`` of them."""

    first: float
    last: float
    count: int


def runs(bases: Sequence[float], reaches: Sequence[int], length: int) -> list[Run]:
    """The admissible bases for ``length`` positions, as runs of neighbours on the grid ``bases``.

    ``reaches[j]`` is the `reach` of bases[j], found with a limit of at least ``length``. Between two grid points nothing
    is known: the runs are those of the grid.

    >>> runs([1.0, 2.0, 3.0, 4.0], [9, 5, 8, 9], length=8)
    [Run(first=1.0, last=1.0, count=1), Run(first=3.0, last=4.0, count=2)]
    """
    length = _length("length", length)
    bases = _rising(bases)
    if len(bases) != len(reaches):
        raise ValueError(
            f"bases and reaches must be equally many, got {len(bases)} and {len(reaches)}"
        )
    found = []
    for admissible, group in groupby(
        zip(bases, reaches, strict=True), key=lambda pair: pair[1] >= length
    ):
        if admissible:
            run = [base for base, _ in group]
            found.append(Run(run[0], run[-1], len(run)))
    return found


class Comparison(NamedTuple):
    """A published least base beside ours; ``first_negative`` is where the published one breaks the criterion, if it does."""

    length: int
    published: float
    ours: float | None
    agrees: bool
    first_negative: int | None


def compare(
    length: int,
    published: float,
    bases: Iterable[float],
    dim: int = 128,
    device: Device = None,
) -> Comparison:
    """Search ``bases`` for the least admissible one, and put a published base to the same criterion.

    >>> compare(4096, 2.7e4, significant_grid(2, 1e3, 1e5))
    Comparison(length=4096, published=27000.0, ours=29000.0, agrees=False, first_negative=4079)
    """
    ours = smallest_base(length, bases, dim, device)
    reached = reach(published, dim, length, device)
    return Comparison(
        length,
        published,
        ours,
        ours == published,
        reached if reached < length else None,
    )


# --- Checks of arguments --------------------------------------------------------------------------------------------


def _length(name: str, value: int) -> int:
    return checks.integer(name, value, 1, rope.LARGEST_POSITION)


def _rising(bases: Iterable[float]) -> list[float]:
    bases = [checks.number("bases", base, minimum=1) for base in bases]
    if any(after <= before for before, after in pairwise(bases)):
        raise ValueError("bases must rise, each greater than the one before")
    return bases
