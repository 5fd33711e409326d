"""Sinusoidal positions: where they come from, what they can tell, and what adding them to words does.

Notation: position m (of the query) and n (of the key), distance Δ = m − n, dimension d (even), pair index
i = 0 … d/2 − 1, base b, frequency θ_i = b^(−2i/d) in radians per position. The encoding of position m is the vector

    PE_m = (sin mθ_0, cos mθ_0, sin mθ_1, cos mθ_1, …),  d numbers,

as in Vaswani et al., "Attention Is All You Need" (2017), section 3.5.

Angles are computed in float64 and only the finished sine or cosine is cast down. A device without float64 (mps) has
the angles computed on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.rope import (
    LARGEST_POSITION,
    Positions,
    angles,
    as_positions,
    concatenated_order,
    dim_and_base,
    float64_device,
    in_float64,
    inv_freq,
    turns,
    wavelengths,
)

__all__ = [
    "LARGEST_POSITION",
    "ClosestReturn",
    "ClosestValues",
    "CodeSummary",
    "FourTerms",
    "LearnedPositions",
    "Positions",
    "RoundingError",
    "SinusoidalEncoding",
    "absorb_order",
    "angles",
    "binary_digits",
    "binary_periods",
    "binary_waves",
    "chord",
    "closest_return",
    "closest_values",
    "collisions",
    "concatenated_order",
    "counting",
    "describe_codes",
    "distance_kernel",
    "encoding",
    "encoding_all_in",
    "exact_period",
    "four_terms",
    "fractions",
    "interleave",
    "inv_freq",
    "pair_order",
    "relative_positions",
    "rounding_error",
    "shift_matrix",
    "slide",
    "term_sizes",
    "turns",
    "unseen_angles",
    "wavelengths",
]

_HALVES = (torch.bfloat16, torch.float16)
_FLOATS = (torch.float64, torch.float32, *_HALVES)


# --- The encoding ---------------------------------------------------------------------------------------------------


def unseen_angles(
    positions: Positions, length: int, dim: int, base: float = 10000.0
) -> Tensor:
    """How far each pair points from all that it has shown in a text of ``length`` words, in radians, from 0 to π.

    Within the text pair i sweeps the arc from 0 to (length − 1)θ_i; on that arc the result is 0, and for a pair that came
    all the way round it is 0 everywhere. Shape positions.shape + (dim/2,), float64; ``positions`` as in `angles`.

    >>> unseen_angles([99, 150], length=101, dim=4)  # the second pair has swept 1 radian
    tensor([[0.0000, 0.0000],
            [0.0000, 0.5000]], dtype=torch.float64)
    """
    length = checks.integer("length", length, minimum=1)
    pointing = angles(positions, dim, base).remainder(2 * math.pi)
    arc = angles(length - 1, dim, base).to(pointing.device)
    nearest_end = torch.minimum(pointing - arc, 2 * math.pi - pointing)
    return nearest_end.clamp(min=0)


def encoding(
    positions: Positions,
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The sinusoidal encoding PE of any positions: shape positions.shape + (dim,), interleaved.

    Entry 2i is sin mθ_i, entry 2i + 1 is cos mθ_i. ``positions`` as in `angles`; the result is on their device (float64
    under mps: on the CPU). ``dtype`` is float64, float32, bfloat16 or float16; the angles are float64 whatever it is.

    >>> encoding([0, 1], dim=4, dtype=torch.float64)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 1.0000]], dtype=torch.float64)
    """
    checks.choice("dtype", dtype, _FLOATS)
    result = interleave(angles(positions, dim, base)).to(dtype)
    # float64 stays where the angles are
    if isinstance(positions, Tensor) and dtype != torch.float64:
        result = result.to(positions.device)
    return result


def encoding_all_in(
    positions: Positions,
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """The common mistake, kept for comparison: `encoding` with positions, frequencies and angles all in ``dtype``.

    In bfloat16 and float16 the angle loses its digits as m grows, and the encoding is soon of some other position. In
    float16 positions from 65520 on become infinite and their encoding NaN.
    """
    checks.choice("dtype", dtype, _FLOATS)
    positions = as_positions("positions", positions)
    if dtype == torch.float64:
        positions = positions.to(float64_device(positions.device))
    frequencies = inv_freq(dim, base).to(dtype).to(positions.device)
    return interleave(positions.to(dtype)[..., None] * frequencies)


class RoundingError(NamedTuple):
    """The largest error of any entry of an encoding, as `rounding_error` measures it."""

    cast_last: float
    throughout: float


def rounding_error(
    positions: Positions,
    dim: int,
    base: float = 10000.0,
    dtype: torch.dtype = torch.bfloat16,
) -> RoundingError:
    """The largest error in ``dtype`` against float64: cast last (`encoding`), and throughout (`encoding_all_in`).

    Cast last, it is half the spacing of the numbers below 1: 2^−9 in bfloat16, 2^−12 in float16, 2^−25 in float32 (and
    2^−25 more in the half types, which torch reaches by way of float32). Throughout, it comes up to 2: a sine of −1
    where +1 belongs (and NaN, where float16 positions overflow).

    >>> rounding_error(range(4096), dim=64, dtype=torch.bfloat16).cast_last <= 2**-9 + 2**-25
    True
    """
    exact = encoding(positions, dim, base, torch.float64)
    if exact.numel() == 0:
        raise ValueError("positions must hold at least one position, got none")
    errors = (
        (approximate.to(exact.device).double() - exact).abs().max().item()
        for approximate in (
            encoding(positions, dim, base, dtype),
            encoding_all_in(positions, dim, base, dtype),
        )
    )
    return RoundingError(*errors)


def interleave(radians: Tensor) -> Tensor:
    """Sines and cosines of angles (…, d/2) in turn: (…, d).

    >>> interleave(torch.tensor([0.0, math.pi / 2]))[:2]
    tensor([0., 1.])
    """
    return torch.stack((radians.sin(), radians.cos()), dim=-1).flatten(-2)


# --- Codes that were tried before: counting, fractions, binary digits ------------------------------------------------


def counting(length: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """The plainest code: position m is the number m. Shape (length, 1).

    It grows without bound, and so does its product with anything; and half types run out of integers:

    >>> counting(258, torch.bfloat16)[255:].flatten().tolist()
    [255.0, 256.0, 256.0]
    """
    length = checks.integer("length", length, minimum=1)
    checks.choice("dtype", dtype, _FLOATS)
    return torch.arange(length)[:, None].to(dtype)


def fractions(length: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Counting, squeezed into 0 … 1: position m is m/(length − 1). Shape (length, 1); length at least 2.

    Now the code stays small, but a step of one word depends on how long the text is:

    >>> fractions(3).flatten().tolist(), fractions(5).flatten().tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    # one word alone has no fraction: 0/0
    length = checks.integer("length", length, minimum=2)
    checks.choice("dtype", dtype, _FLOATS)
    m = torch.arange(length, dtype=torch.float64)[:, None]
    return (m / (length - 1)).to(dtype)


def binary_digits(positions: Positions, bits: int) -> Tensor:
    """The binary digits of positions, lowest first: shape positions.shape + (bits,), int64.

    Digit j is a square wave of period 2^(j+1) (`binary_periods`). Positions are integers from 0 to 2^bits − 1.

    >>> binary_digits([5, 6], bits=3)
    tensor([[1, 0, 1],
            [0, 1, 1]])
    """
    bits = checks.integer("bits", bits, minimum=1, maximum=31)
    positions = _whole_positions(
        "positions", positions, minimum=0, maximum=2**bits - 1
    )
    return (positions[..., None] >> torch.arange(bits, device=positions.device)) & 1


def binary_periods(bits: int) -> Tensor:
    """The periods 2^(j+1) of the binary digits j = 0 … bits − 1, in positions: shape (bits,), int64.

    >>> binary_periods(4)
    tensor([ 2,  4,  8, 16])
    """
    bits = checks.integer("bits", bits, minimum=1, maximum=31)
    return 2 ** torch.arange(1, bits + 1)


def binary_waves(positions: Positions, bits: int) -> Tensor:
    """The sinusoids inside the binary digits: shape positions.shape + (bits,), float64.

    Wave j is −sin(2π(m + ½)/2^(j+1)): it has the period of digit j, and is positive exactly where the digit is 1. The
    digit keeps only its sign. The half centres the wave on the whole positions, so that it is never 0 at one.

    >>> (binary_waves(6, bits=3) > 0).long()
    tensor([0, 1, 1])
    """
    positions = as_positions("positions", positions)
    m = in_float64(positions)[..., None]
    return -torch.sin(2 * math.pi * (m + 0.5) / binary_periods(bits).to(m.device))


class CodeSummary(NamedTuple):
    """What `describe_codes` measures."""

    smallest_norm: float
    largest_norm: float
    smallest_step: float
    largest_step: float
    distinct: int


def describe_codes(codes: Tensor) -> CodeSummary:
    """Measure a position code: how large it is, how far apart neighbours are, how many positions it tells apart.

    ``codes``: (length, numbers per position), floating point, length at least 2. A good code has bounded norms, the
    same step everywhere, whatever the length, and as many distinct rows as positions.

    >>> describe_codes(counting(4096, torch.bfloat16)).distinct
    769
    """
    checks.floating("codes", codes)
    if codes.ndim != 2 or codes.shape[0] < 2 or codes.shape[1] < 1:
        raise ValueError(
            f"codes must have shape (length >= 2, numbers per position), got {tuple(codes.shape)}"
        )
    distinct = codes.shape[0] - len(collisions(codes))
    exact = in_float64(codes)
    norms, steps = exact.norm(dim=-1), exact.diff(dim=0).norm(dim=-1)
    return CodeSummary(
        norms.min().item(),
        norms.max().item(),
        steps.min().item(),
        steps.max().item(),
        distinct=distinct,
    )


def collisions(codes: Tensor) -> Tensor:
    """The positions whose code an earlier position has already: shape (count, 2), rows (earliest, later), int64.

    ``codes``: (length,) or (length, numbers per position), compared exactly as they stand, so that rounding to a type
    comes first: ``collisions(encoding(range(4096), 64, dtype=torch.bfloat16))``.

    >>> collisions(counting(262, torch.bfloat16))
    tensor([[256, 257],
            [259, 260],
            [259, 261]])
    """
    checks.floating("codes", codes)
    if codes.ndim not in (1, 2):
        raise ValueError(
            f"codes must have shape (length,) or (length, numbers per position), got {tuple(codes.shape)}"
        )
    if not codes.isfinite().all():
        raise ValueError("codes must be finite, got infinities or NaN among them")
    if codes.numel() == 0:
        return torch.empty(0, 2, dtype=torch.int64, device=codes.device)
    values, group = torch.unique(
        codes, dim=None if codes.ndim == 1 else 0, return_inverse=True
    )
    later = torch.arange(len(codes), device=codes.device)
    none = torch.full((len(values),), len(codes), device=codes.device)
    earliest = none.scatter_reduce(0, group, later, "amin")[group]
    return torch.stack((earliest, later), dim=-1)[earliest != later]


# --- Relative position: the shift and the fingerprint ----------------------------------------------------------------


def relative_positions(
    query_positions: Positions, key_positions: Positions
) -> Tensor:
    """The distances Δ = m − n of every query and key: (…, queries) and (…, keys) give (…, queries, keys).

    >>> relative_positions([0, 1, 2], [0, 1, 2])
    tensor([[ 0, -1, -2],
            [ 1,  0, -1],
            [ 2,  1,  0]])
    """
    queries = as_positions("query_positions", query_positions)
    keys = as_positions("key_positions", key_positions)
    for name, positions in (("query_positions", queries), ("key_positions", keys)):
        if positions.ndim == 0:
            raise ValueError(
                f"{name} must have at least one axis, got the single number {positions.item()}"
            )
    return queries[..., :, None] - keys[..., None, :]


def shift_matrix(offset: Positions, dim: int, base: float = 10000.0) -> Tensor:
    """The matrix M_k with PE_{m+k} = M_k PE_m at every m: shape offset.shape + (dim, dim), float64.

    One 2 × 2 block per pair on the diagonal, a rotation by kθ_i:

        [ cos kθ_i   sin kθ_i]
        [−sin kθ_i   cos kθ_i]

    (clockwise, for the pair is (sin, cos) and not (cos, sin)). So M_k is orthogonal, and M_j M_k = M_{j+k}.

    >>> bool((shift_matrix(3, 8) @ encoding(4, 8, dtype=torch.float64)).allclose(encoding(7, 8, dtype=torch.float64)))
    True
    """
    radians = angles(as_positions("offset", offset), dim, base)
    cos, sin = radians.cos(), radians.sin()
    result = radians.new_zeros(*radians.shape[:-1], dim, dim)
    even = torch.arange(0, dim, 2, device=radians.device)
    result[..., even, even] = cos
    result[..., even, even + 1] = sin
    result[..., even + 1, even] = -sin
    result[..., even + 1, even + 1] = cos
    return result


def distance_kernel(
    distances: Positions, dim: int, base: float = 10000.0
) -> Tensor:
    """The fingerprint of a distance, K(Δ) = Σ_i cos θ_iΔ = PE_m · PE_n: shape distances.shape, float64.

    It is d/2 at Δ = 0, and even: K(−Δ) = K(Δ). Summed pair by pair, so that a million distances take the memory of a
    few copies of themselves, whatever ``dim`` is.

    >>> distance_kernel([0, 1, -1], dim=4)
    tensor([2.0000, 1.5403, 1.5403], dtype=torch.float64)
    """
    return _sum_over_pairs(torch.cos, distances, dim, base)


def chord(distances: Positions, dim: int, base: float = 10000.0) -> Tensor:
    """How far apart two encodings are, |PE_{m+Δ} − PE_m|: shape distances.shape, float64; the same for every m.

    It is √(d − 2K(Δ)), computed as 2·√(Σ_i sin²(θ_iΔ/2)), which keeps its digits where the two almost coincide.

    >>> chord([0, 1, 2], dim=2)
    tensor([0.0000, 0.9589, 1.6829], dtype=torch.float64)
    """

    def squared_half_chord(radians: Tensor) -> Tensor:
        return (radians / 2).sin().square()

    return 2 * _sum_over_pairs(squared_half_chord, distances, dim, base).sqrt()


def _sum_over_pairs(
    term: Callable[[Tensor], Tensor], distances: Positions, dim: int, base: float
) -> Tensor:
    dim, base = dim_and_base(dim, base)
    distances = in_float64(as_positions("distances", distances))
    total = torch.zeros_like(distances)
    # One pair at a time: the whole table would be dim/2 times larger.
    for frequency in inv_freq(dim, base).tolist():
        total += term(distances * frequency)
    return total


# --- Is the fingerprint unique? --------------------------------------------------------------------------------------


class ClosestValues(NamedTuple):
    """Two distances whose kernel values are nearest: |K(first) − K(second)| = gap, known to within ``error``."""

    first: int
    second: int
    gap: float
    error: float


class ClosestReturn(NamedTuple):
    """The distance after which the encoding comes nearest to where it was: |PE_{m+distance} − PE_m| = gap."""

    distance: int
    gap: float


def closest_values(
    max_distance: int, dim: int, base: float = 10000.0
) -> ClosestValues:
    """Of the distances 0 … max_distance, the two whose values K are nearest to each other.

    On whole distances of one sign K is one-to-one: for algebraic θ_i (any base that is a whole number or a float) equal
    values would be a vanishing sum of exponentials of distinct algebraic numbers, which the theorem of Lindemann and
    Weierstrass rules out. But N + 1 values in an interval of length d leave two within d/N of each other, so that in
    any fixed precision the fingerprint stops being unique. ``error`` bounds the float64 error of ``gap``: a gap below
    it says only that float64 cannot tell the two apart.

    >>> found = closest_values(100, dim=64)
    >>> found.gap > found.error
    True
    """
    max_distance = checks.integer(
        "max_distance", max_distance, minimum=1, maximum=LARGEST_POSITION
    )
    values, order = distance_kernel(
        torch.arange(max_distance + 1), dim, base
    ).sort()
    gaps = values.diff()
    narrowest = int(gaps.argmin())
    first, second = sorted(order[narrowest : narrowest + 2].tolist())
    # Two values, each with an angle error of a few units in the last place of Δθ_i, and the rounding of a sum of d/2.
    largest_angles = max_distance * inv_freq(dim, base).sum().item()
    error = 2 * 2**-51 * (largest_angles + (dim / 2) ** 2)
    return ClosestValues(first, second, gaps[narrowest].item(), error)


def closest_return(
    max_distance: int, dim: int, base: float = 10000.0
) -> ClosestReturn:
    """Of the distances 1 … max_distance, the one after which the encoding comes nearest to where it was.

    The whole vector is exactly unique on whole positions, for every base and dim: θ_0 = 1 radian, and two different
    whole numbers never differ by a multiple of 2π. The gap says how narrowly.

    >>> closest_return(1000, dim=2).distance  # 710/113 is nearly 2π
    710
    """
    max_distance = checks.integer(
        "max_distance", max_distance, minimum=1, maximum=LARGEST_POSITION
    )
    gaps = chord(torch.arange(1, max_distance + 1), dim, base)
    nearest = int(gaps.argmin())
    return ClosestReturn(nearest + 1, gaps[nearest].item())


def exact_period(dim: int, base: float = 10000.0) -> float | None:
    """The period of the encoding over *real* positions, or ``None`` where it has none.

    All pairs return together exactly if the frequencies are commensurate, that is if base^(2/dim) is a rational number
    p/q (in lowest terms): then θ_i = (q/p)^i, and the period is 2π·p^(dim/2 − 1). Otherwise the encoding is only almost
    periodic. On whole positions it has no period at all, since every period is a multiple of 2π.
    ``base`` is taken as the exact value of the float.

    >>> round(exact_period(8, base=10000) / (2 * math.pi))
    1000
    >>> exact_period(128, base=10000) is None
    True
    """
    dim, base = dim_and_base(dim, base)
    pairs = dim // 2
    exact = Fraction(base)
    numerator = _whole_root(exact.numerator, pairs)
    if numerator is None or _whole_root(exact.denominator, pairs) is None:
        return None
    return 2 * math.pi * numerator ** (pairs - 1)


def _whole_root(value: int, degree: int) -> int | None:
    """The whole number whose power ``degree`` is ``value``, if there is one."""
    low, high = 1, 1 << -(-value.bit_length() // degree)
    # Bisection in integers: a float root is a guess for numbers this long.
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**degree < value else (low, middle)
    return low if low**degree == value else None


# --- What adding does ------------------------------------------------------------------------------------------------


class FourTerms(NamedTuple):
    """The terms of (x + p)·(y + q): word with word, word with position, position with word, position with position."""

    content: Tensor | float
    content_position: Tensor | float
    position_content: Tensor | float
    position: Tensor | float

    @property
    def total(self) -> Tensor | float:
        """The score itself: the sum of the four."""
        return (
            self.content
            + self.content_position
            + self.position_content
            + self.position
        )


def four_terms(x: Tensor, y: Tensor, p: Tensor, q: Tensor) -> FourTerms:
    """The score (x + p)·(y + q) in its four terms x·y, x·q, p·y, p·q.

    ``x`` is the query's word and ``p`` its position, ``y`` and ``q`` the key's: shapes (…, d) that broadcast, floating
    point, the same d. Each term has the broadcast shape without d. Half types are multiplied in float32. With weights,
    project first; the terms of (W_q(x + p))·(W_k(y + q)) are
    ``four_terms(x @ W_q.T, y @ W_k.T, p @ W_q.T, q @ W_k.T)``.

    >>> terms = four_terms(*torch.tensor([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0], [0.5, 0.5]]))
    >>> [term.item() for term in terms], terms.total.item()
    ([3.0, 1.5, 0.0, 0.5], 5.0)
    """
    named = {"x": x, "y": y, "p": p, "q": q}
    for name, vector in named.items():
        checks.floating(name, vector)
        if vector.ndim == 0 or vector.shape[-1] != x.shape[-1]:
            raise ValueError(
                f"x, y, p, q must agree in their last axis, got shapes {_shapes(named)}"
            )
    try:
        torch.broadcast_shapes(*(vector.shape for vector in named.values()))
    except RuntimeError:
        raise ValueError(
            f"x, y, p, q must broadcast, got shapes {_shapes(named)}"
        ) from None
    x, y, p, q = (
        vector.float() if vector.dtype in _HALVES else vector
        for vector in (x, y, p, q)
    )
    return FourTerms(
        *torch.broadcast_tensors(
            *((a * b).sum(-1) for a, b in ((x, y), (x, q), (p, y), (p, q)))
        )
    )


def slide(
    x: Tensor,
    y: Tensor,
    m: float,
    n: float,
    shifts: Positions,
    base: float = 10000.0,
) -> FourTerms:
    """The four terms as two words slide along the text together: positions m + t and n + t for every shift t.

    ``x``, ``y``: word vectors (…, d); ``shifts``: shape (shifts,). Each term: (…, shifts), float64. The distance stays
    m − n, so the term position·position stays as it is; the two cross terms do not: they know where in the text we are.

    >>> terms = slide(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), m=3, n=1, shifts=[0, 1, 2])
    >>> terms.position
    tensor([-0.4161, -0.4161, -0.4161], dtype=torch.float64)
    >>> terms.content_position
    tensor([0.8415, 0.9093, 0.1411], dtype=torch.float64)
    """
    m, n = _position_number("m", m), _position_number("n", n)
    for name, word in (("x", x), ("y", y)):
        if checks.floating(name, word).ndim == 0:
            raise ValueError(
                f"{name} must have a last axis of dimension d, got a single number"
            )
    shifts = as_positions("shifts", shifts)
    if shifts.ndim != 1:
        raise ValueError(
            f"shifts must have one axis, got shape {tuple(shifts.shape)}"
        )
    where = float64_device(x.device)
    shifts = shifts.to(device=where, dtype=torch.float64)
    p, q = (
        encoding(shifts + start, x.shape[-1], base, torch.float64)
        for start in (m, n)
    )
    x, y = (word.to(where).double().unsqueeze(-2) for word in (x, y))
    return four_terms(x, y, p, q)


def term_sizes(
    m: float,
    n: float,
    dim: int,
    base: float = 10000.0,
    std: float = 1.0,
    samples: int = 4096,
    generator: torch.Generator | None = None,
) -> FourTerms:
    """The measured size (root mean square) of each of the four terms over random words at positions m and n.

    Words have independent normal entries with standard deviation ``std``. Expected: std²·√d for word·word, std·√(d/2)
    for each cross term at every m and n, and |K(m − n)| exactly for position·position, which no word changes.

    >>> sizes = term_sizes(9, 4, dim=128, generator=torch.Generator().manual_seed(0))
    >>> [round(size, 1) for size in sizes]
    [11.4, 8.1, 8.1, 47.2]
    """
    m, n = _position_number("m", m), _position_number("n", n)
    dim, base = dim_and_base(dim, base)
    std = checks.number("std", std, minimum=0)
    samples = checks.integer("samples", samples, minimum=1)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None, got {generator!r}"
        )
    where = "cpu" if generator is None else generator.device
    x, y = std * torch.randn(
        2, samples, dim, dtype=torch.float64, device=where, generator=generator
    )
    p, q = (
        encoding(position, dim, base, torch.float64).to(where)
        for position in (m, n)
    )
    return FourTerms(
        *(term.square().mean().sqrt().item() for term in four_terms(x, y, p, q))
    )


# --- Does the order of the frequencies matter? -----------------------------------------------------------------------


def pair_order(order: Positions) -> Tensor:
    """The order of the dim entries when the dim/2 pairs (frequencies) are put in the given order.

    >>> pair_order([2, 0, 1])
    tensor([4, 5, 0, 1, 2, 3])
    """
    order = _permutation("order", order)
    return torch.stack((2 * order, 2 * order + 1), dim=-1).flatten()


def absorb_order(weight: Tensor, order: Positions) -> Tensor:
    """The weights that undo a new order of the input: ``absorb_order(W, order) @ z[order]`` is ``W @ z``.

    ``weight``: (outputs, inputs), as in torch.nn.Linear; ``order``: a permutation of the inputs. This is why the order
    of the frequencies does not matter to a network that is yet to be trained: whatever W_q and W_k do with one order,
    other W_q and W_k do with another, provided that words and positions are reordered alike.

    >>> absorb_order(torch.tensor([[1.0, 2.0, 3.0]]), [2, 0, 1])
    tensor([[3., 1., 2.]])
    """
    checks.floating("weight", weight)
    if weight.ndim != 2:
        raise ValueError(
            f"weight must have shape (outputs, inputs), got {tuple(weight.shape)}"
        )
    order = _permutation("order", order)
    if len(order) != weight.shape[1]:
        raise ValueError(
            f"order must permute the {weight.shape[1]} inputs of weight, got {len(order)} entries"
        )
    return weight[:, order.to(weight.device)]


# --- Modules ---------------------------------------------------------------------------------------------------------


class SinusoidalEncoding(nn.Module):
    """Adds the sinusoidal encoding to word vectors: x (…, seq, dim) → x + PE, of the same shape and dtype.

    Without parameters or buffers: nothing for training to move, no longest text, and nothing that ``.half()`` could
    round (a table of frequencies kept as a buffer would be rounded by it, and turn at the wrong speed from then on).
    Half types are added in float32 and rounded once.

    Vaswani et al. (2017) multiply the word vectors by √dim before and apply dropout after: both are left to the caller.

    >>> SinusoidalEncoding(dim=2)(torch.zeros(1, 2, 2))
    tensor([[[0.0000, 1.0000],
             [0.8415, 0.5403]]])
    """

    def __init__(self, dim: int, base: float = 10000.0) -> None:
        super().__init__()
        self.dim, self.base = dim_and_base(dim, base)

    def forward(self, x: Tensor, positions: Positions | None = None) -> Tensor:
        """``positions``: as `encoding` takes them, of a shape that broadcasts to x.shape[:-1]; default 0 … seq − 1."""
        positions = _positions_of(x, positions, self.dim)
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        added = encoding(positions, self.dim, self.base, wide)
        return (x.to(wide) + added).to(x.dtype)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, base={self.base:g}"


class LearnedPositions(nn.Module):
    """Adds one trained vector per position: x (…, seq, dim) → x + weight[positions], of the same shape.

    The way of BERT and GPT-2. ``weight`` is (max_length, dim), drawn from a normal distribution with standard deviation
    ``std`` (0.02 in BERT). A position from max_length on has no vector: it is an error, not a guess.

    >>> LearnedPositions(dim=4, max_length=512)(torch.zeros(1, 513, 4))
    Traceback (most recent call last):
        ...
    ValueError: positions must lie between 0 and 511 (max_length=512 vectors were learned, no more), got 512
    """

    def __init__(self, dim: int, max_length: int, std: float = 0.02) -> None:
        super().__init__()
        self.dim = checks.integer("dim", dim, minimum=1)
        self.max_length = checks.integer("max_length", max_length, minimum=1)
        self.std = checks.number("std", std, minimum=0)
        self.weight = nn.Parameter(torch.empty(self.max_length, self.dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.weight, std=self.std)

    def forward(self, x: Tensor, positions: Positions | None = None) -> Tensor:
        """``positions``: integers from 0 to max_length − 1 that broadcast to x.shape[:-1]; default 0 … seq − 1."""
        positions = _positions_of(x, positions, self.dim)
        note = f" (max_length={self.max_length} vectors were learned, no more)"
        positions = _whole_positions(
            "positions",
            positions,
            minimum=0,
            maximum=self.max_length - 1,
            note=note,
        )
        return x + self.weight[positions].to(x.dtype)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, max_length={self.max_length}"


# --- Checks of arguments ---------------------------------------------------------------------------------------------


def _whole_positions(
    name: str, value: Positions, minimum: int, maximum: int, note: str = ""
) -> Tensor:
    value = as_positions(name, value)
    if value.is_floating_point():
        raise TypeError(f"{name} must be integers, got dtype {value.dtype}")
    return checks.entries(name, value, minimum, maximum, note)


def _position_number(name: str, value: float) -> float:
    return checks.number(
        name, value, minimum=-LARGEST_POSITION, maximum=LARGEST_POSITION
    )


def _positions_of(x: Tensor, positions: Positions | None, dim: int) -> Tensor:
    """The positions of word vectors x, on their device: those given, if they fit, else 0 … seq − 1."""
    checks.floating("x", x)
    if x.ndim < 2 or x.shape[-1] != dim:
        raise ValueError(
            f"x must have shape (..., seq, {dim}), got {tuple(x.shape)}"
        )
    if positions is None:
        return torch.arange(x.shape[-2], device=x.device)
    positions = as_positions("positions", positions).to(x.device)
    try:
        fits = torch.broadcast_shapes(positions.shape, x.shape[:-1]) == x.shape[:-1]
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(
            f"positions must broadcast to {tuple(x.shape[:-1])}, got shape {tuple(positions.shape)}"
        )
    return positions


def _permutation(name: str, order: Positions) -> Tensor:
    order = as_positions(name, order)
    if (
        order.is_floating_point()
        or order.ndim != 1
        or order.sort().values.tolist() != list(range(len(order)))
    ):
        raise ValueError(
            f"{name} must hold each of 0 ... n - 1 once, got {order.tolist()}"
        )
    return order


def _shapes(named: dict[str, Tensor]) -> str:
    return ", ".join(
        f"{name} {tuple(tensor.shape)}" for name, tensor in named.items()
    )
