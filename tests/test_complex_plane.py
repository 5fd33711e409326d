"""Tests of RoPE in the complex plane, compared with Python's own complex numbers, mpmath, ONNX's operator,
transformers, NumPy's Fourier transform and the theorems.

The float64 bounds in some tests follow from this: for θ ≤ 1, the error of an angle mθ is at most m times a few units of
2^−53.
"""

import cmath
import inspect
import math

import mpmath
import numpy as np
import pytest
import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import complex_plane as C
from ropebook import derivation, proofs, sinusoidal
from ropebook.proofs import complex_plane as P
from tests.helpers import largest, public, random, seeds
from tests.rotations import LAYOUTS, from_onnx, from_transformers, layouts
from tests.together import together

mpmath.mp.dps = 40

EPS = 2.0**-52
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]

dims = st.integers(1, 16).map(lambda pairs: 2 * pairs)
bases = st.one_of(st.sampled_from([1, 10000, 10000.0, 1e7]), st.floats(0, 7).map(lambda power: 10**power))
positions = st.integers(-(10**5), 10**5)


def numbers(vector, layout):
    """Convert a vector to Python's own complex numbers, independently of the module."""
    entries, half = vector.tolist(), len(vector) // 2
    if layout == "half":
        return [complex(entries[i], entries[i + half]) for i in range(half)]
    return [complex(entries[2 * i], entries[2 * i + 1]) for i in range(half)]


def scored(q, k, m, n, base=10000.0, layout="interleaved"):
    """Compute ⟨R_m q, R_n k⟩ with the rotations from the previous chapter, which use only real numbers."""
    one, other = (derivation.rotate(vector, at, base, layout) for vector, at in ((q, m), (k, n)))
    return (one * other).sum(-1)


# --- The map ---


@together("layout", LAYOUTS)
@together("dtype", DTYPES)
def test_to_complex_keeps_every_digit(layout, dtype):
    x = random(5, 8, dtype=dtype)
    ours = C.to_complex(x, layout)
    assert ours.dtype == (torch.complex128 if dtype == torch.float64 else torch.complex64)
    assert ours.tolist() == [numbers(row, layout) for row in x]


@given(dims, layouts, seeds)
def test_there_and_back(dim, layout, seed):
    x = random(3, dim, seed=seed)
    z = C.to_complex(x, layout)
    assert torch.equal(C.from_complex(z, layout), x)
    assert torch.equal(C.to_complex(C.from_complex(z, layout), layout), z)
    assert C.from_complex(z.to(torch.complex64), layout).dtype == torch.float32


@together("layout", LAYOUTS)
@together(
    "x",
    [
        torch.arange(9.0)[1:],  # the vector starts at an odd offset in memory
        torch.arange(32.0).view(8, 4).T,
        torch.arange(48.0).view(2, 8, 3).transpose(1, 2),
        torch.arange(21.0).view(3, 7)[:, :4],  # each row starts at an odd offset
        torch.arange(32.0).view(2, 16)[:, ::2],
        torch.arange(8.0).expand(3, 8),
        torch.zeros(0, 8),
        torch.zeros(3, 0, 8),
    ],
    ids=lambda x: f"{tuple(x.shape)} {x.stride()} {x.storage_offset()}",
)
def test_memory_of_any_shape(x, layout):
    z = C.to_complex(x, layout)
    rows = [numbers(row, layout) for row in x.reshape(-1, x.shape[-1])]
    assert z.reshape(-1, x.shape[-1] // 2).tolist() == rows
    assert torch.equal(C.from_complex(z, layout), x)
    assert (
        largest(C.from_complex(z.conj(), layout) - C.from_complex(z.conj().clone(), layout)) == 0 if z.numel() else True
    )


def test_the_numbers_are_a_copy():
    x = torch.arange(8.0)
    C.to_complex(x)[0] = 99
    assert torch.equal(x, torch.arange(8.0))


def test_the_map_is_linear_over_the_reals_and_keeps_the_product():
    x, y = random(2, 8)
    z, w = C.to_complex(x), C.to_complex(y)
    assert largest(C.to_complex(2 * x - 3 * y) - (2 * z - 3 * w)) < 1e-14
    assert (z * w.conj()).sum().real.item() == pytest.approx((x @ y).item(), abs=1e-14)
    assert abs((z * w).sum().real - x @ y) > 1


def test_what_torch_asks_of_view_as_complex():
    # the chapter describes these cases
    torch.view_as_complex(torch.zeros(3, 2))
    with pytest.raises(RuntimeError, match="size 2"):
        torch.view_as_complex(torch.zeros(3, 4))
    with pytest.raises(RuntimeError, match="stride 1"):
        torch.view_as_complex(torch.zeros(2, 3).T)
    with pytest.raises(RuntimeError, match="storage_offset"):
        torch.view_as_complex(torch.zeros(9)[1:].view(4, 2))
    with pytest.raises(RuntimeError, match=r"(?i)bfloat16"):
        torch.view_as_complex(torch.zeros(3, 2, dtype=torch.bfloat16))
    with pytest.raises(RuntimeError, match="resolve_conj"):
        torch.view_as_real(torch.zeros(3, dtype=torch.complex64).conj())


# --- The rotation ---


@given(positions, dims, bases, layouts, seeds)
def test_rotate_against_forty_digits(m, dim, base, layout, seed):
    x = random(dim, seed=seed)
    found = numbers(C.rotate(x, m, base, layout), layout)
    for i, (ours, z) in enumerate(zip(found, numbers(x, layout), strict=True)):
        exact = z * mpmath.expj(m * mpmath.power(mpmath.mpf(base), -mpmath.mpf(2 * i) / dim))
        assert abs(ours - exact) <= 8 * EPS * (abs(m) + 1) * (abs(z) + EPS)


@given(positions, dims, bases, layouts, seeds)
def test_rotate_is_that_of_the_chapter_before(m, dim, base, layout, seed):
    x = random(3, dim, seed=seed)
    assert largest(C.rotate(x, m, base, layout) - derivation.rotate(x, m, base, layout)) <= 4 * EPS * largest(x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotate_against_the_operator_of_onnx(layout):
    assert from_onnx(C.rotate, layout) < 2e-6


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotate_against_transformers(layout):
    assert from_transformers(C.rotate, layout) < 1e-14


@pytest.mark.parametrize("dtype", DTYPES)
def test_only_the_result_is_cast_down(dtype, device):
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("mps has no float64")
    x = random(3, 100, 32, dtype=dtype).to(device)
    places = torch.arange(100_000, 100_100)
    ours = C.rotate(x, places)
    assert ours.dtype == dtype
    assert ours.device.type == device.type
    assert torch.equal(ours.cpu(), C.rotate(x.cpu().double(), places).to(dtype))


@together(
    ("shape", "places"),
    [((5, 4), [5]), ((4,), [5]), ((2, 3, 5, 4), [5]), ((2, 3, 5, 4), [2, 1, 5]), ((4,), []), ((2, 4), [1])],
)
def test_positions_that_broadcast(shape, places):
    x, at = random(*shape), random(*places, seed=1)
    ours = C.rotate(x, at)
    assert ours.shape == (*torch.broadcast_shapes(shape[:-1], tuple(places)), 4)
    assert largest(ours - derivation.rotate(x, at)) < 1e-14


def test_gradients_are_turned_back():
    x, weight = random(5, 8).requires_grad_(), random(5, 8, seed=1)
    (C.rotate(x, range(5), layout="half") * weight).sum().backward()
    assert largest(x.grad - C.rotate(weight, -torch.arange(5), layout="half")) < 1e-15


def test_by_default_base_and_layout_are_those_of_the_paper():
    x = random(8)
    assert torch.equal(C.to_complex(x), C.to_complex(x, "interleaved"))
    assert torch.equal(C.from_complex(C.to_complex(x)), x)
    assert torch.equal(C.rotate(x, 5), C.rotate(x, 5, 10000, "interleaved"))
    assert torch.equal(C.amplitudes(x, x.flip(0)).b, C.amplitudes(x, x.flip(0), "interleaved").b)
    assert torch.equal(C.score_at(5, x, x), C.score_at(5, x, x, 10000))
    assert torch.equal(C.waves(5, 8), C.waves(5, 8, 10000))
    assert torch.equal(C.key_for(x, 5), C.rotate(x, 5, 10000, "interleaved"))


# --- The score ---


@given(positions, positions, dims, bases, layouts, seeds)
def test_the_score_is_the_real_part_of_a_sum(m, n, dim, base, layout, seed):
    q, k = random(2, dim, seed=seed)
    turns = [cmath.exp(1j * (m - n) * base ** (-2 * i / dim)) for i in range(dim // 2)]
    pairs = list(zip(numbers(q, layout), numbers(k, layout), turns, strict=True))
    exact = scored(q, k, m, n, base, layout).item()
    tolerance = 1e-9 * (q.norm() * k.norm()).item()
    assert sum(z * w.conjugate() * turn for z, w, turn in pairs).real == pytest.approx(exact, abs=tolerance)
    ours = C.score_at(m - n, *C.amplitudes(q, k, layout), base)
    assert ours.item() == pytest.approx(exact, abs=tolerance)


@given(st.integers(-1000, 1000), st.integers(-1000, 1000), dims, layouts, seeds)
def test_without_the_conjugate_the_score_depends_on_the_sum_of_the_positions(m, n, dim, layout, seed):
    q, k = random(2, dim, seed=seed)
    one, other = (C.to_complex(C.rotate(x, at, layout=layout), layout) for x, at in ((q, m), (k, n)))
    mirrored = C.from_complex(C.to_complex(k, layout).conj(), layout)
    expected = scored(q, mirrored, m + n, 0, layout=layout)
    assert (one * other).sum().real.item() == pytest.approx(expected.item(), abs=1e-10 * dim)


def test_amplitudes_by_hand():
    q, k = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([5.0, 6.0, 7.0, 9.0])
    a, b = C.amplitudes(q, k)
    assert a.dtype == b.dtype == torch.float64
    assert a.tolist() == [1 * 5 + 2 * 6, 3 * 7 + 4 * 9]
    assert b.tolist() == [1 * 6 - 2 * 5, 3 * 9 - 4 * 7]
    a, b = C.amplitudes(q, k, "half")
    assert a.tolist() == [1 * 5 + 3 * 7, 2 * 6 + 4 * 9]
    assert b.tolist() == [1 * 7 - 3 * 5, 2 * 9 - 4 * 6]


@together("dtype", DTYPES)
def test_amplitudes_are_computed_in_float64(dtype):
    q, k = random(2, 16, dtype=dtype)
    ours, exact = C.amplitudes(q, k), C.amplitudes(q.double(), k.double())
    assert torch.equal(ours.a, exact.a)
    assert torch.equal(ours.b, exact.b)
    assert ours.a.dtype == torch.float64


def test_amplitudes_of_many_vectors_and_scores_at_many_distances():
    q, k, distances = random(3, 1, 8), random(5, 8, seed=1), torch.arange(-7, 7).view(2, 7)
    a, b = C.amplitudes(q, k)
    assert a.shape == b.shape == (3, 5, 4)
    ours = C.score_at(distances, a, b, 50.0)
    assert ours.shape == (3, 5, 2, 7)
    assert ours.dtype == torch.float64
    for index in np.ndindex(3, 5, 2, 7):
        h, j, *at = index
        assert ours[index].item() == pytest.approx(scored(q[h, 0], k[j], distances[tuple(at)].item(), 0, 50.0).item())
    assert C.score_at([], a, b).shape == (3, 5, 0)
    assert torch.equal(
        C.score_at(distances, a.float(), b.float()), C.score_at(distances, a.float().double(), b.float().double())
    )


@given(positions, dims, bases, seeds)
def test_amplitude_and_phase(distance, dim, base, seed):
    q, k = random(2, dim, seed=seed)
    a, b = C.amplitudes(q, k)
    for i, (z, w) in enumerate(zip(numbers(q, "interleaved"), numbers(k, "interleaved"), strict=True)):
        r, phi = abs(z) * abs(w), cmath.phase(z) - cmath.phase(w)
        assert math.hypot(a[i], b[i]) == pytest.approx(r)
        angle = distance * base ** (-2 * i / dim)
        wave = a[i].item() * math.cos(angle) + b[i].item() * math.sin(angle)
        assert wave == pytest.approx(r * math.cos(angle + phi), abs=1e-9 * (r + 1))


def test_waves_are_the_columns_of_the_score():
    distances, dim, base = torch.arange(-5, 9).view(2, 7), 6, 50.0
    table = C.waves(distances, dim, base)
    assert table.shape == (2, 7, dim)
    expected = [
        wave(distance * base ** (-2 * i / dim))
        for distance in range(-5, 9)
        for wave in (math.cos, math.sin)
        for i in range(3)
    ]
    assert table.flatten().tolist() == pytest.approx(expected)
    a, b = random(2, 3)
    assert largest(table @ torch.cat((a, b)) - C.score_at(distances, a, b, base)) < 1e-14


def test_with_whole_frequencies_it_is_the_discrete_fourier_transform():
    # A single wave, with θ = 2π·3/64 after a change of units. NumPy finds it at frequency 3, with the value a − ib.
    a, b = random(2, 1)
    signal = C.score_at(torch.arange(64, dtype=torch.float64) * (2 * math.pi * 3 / 64), a, b)
    spectrum = np.fft.fft(signal.numpy()) / 32
    assert spectrum[3] == pytest.approx(complex(a.item(), -b.item()))
    assert np.abs(np.delete(spectrum, [3, 61])).max() < 1e-13


# --- Symmetry ---


@given(dims, bases, seeds)
def test_the_odd_part_is_that_of_the_sines(dim, base, seed):
    q, k = random(2, dim, seed=seed)
    a, b = C.amplitudes(q, k)
    distances = torch.arange(50)
    odd = C.score_at(distances, a, b, base) - C.score_at(-distances, a, b, base)
    assert largest(odd - 2 * C.score_at(distances, torch.zeros_like(a), b, base)) < 1e-12
    assert largest(C.amplitudes(q, q).b) < 1e-15
    assert C.amplitudes(q, q).a.tolist() == pytest.approx([abs(z) ** 2 for z in numbers(q, "interleaved")])


@together(("dim", "base"), [(2, 1), (8, 100), (10, 1.5)])
def test_b_is_the_mean_of_the_odd_part_times_the_sine(dim, base):
    a, b = C.amplitudes(*random(2, dim))
    distances = torch.arange(1, 200_001)
    odd = C.score_at(distances, a, b, base) - C.score_at(-distances, a, b, base)
    for i, amplitude in enumerate(b.tolist()):
        sine = (distances.double() * base ** (-2 * i / dim)).sin()
        assert (odd * sine).mean().item() == pytest.approx(amplitude, abs=1e-3)


def test_at_base_one_a_score_can_be_even_though_b_is_not_zero():
    q, k = torch.tensor([1.0, 0.0, 1.0, 0.0]), torch.tensor([1.0, 1.0, 1.0, -1.0])
    distances = torch.arange(1, 100)
    even, other = (
        C.score_at(distances, *C.amplitudes(q, k), base) - C.score_at(-distances, *C.amplitudes(q, k), base)
        for base in (1, 10000)
    )
    assert C.amplitudes(q, k).b.tolist() == [1, -1]
    assert largest(even) == 0
    assert largest(other) > 1


# --- The peak ---


@given(st.integers(-5000, 5000), dims, bases, layouts, seeds)
def test_the_peak_is_where_one_likes_and_as_high_as_can_be(distance, dim, base, layout, seed):
    q = random(dim, seed=seed)
    k = C.key_for(q, distance, base, layout)
    a, b = C.amplitudes(q, k, layout)
    around = torch.arange(distance - 300, distance + 301)
    scores = C.score_at(around, a, b, base)
    highest = (q @ q).item()
    assert k.norm().item() == pytest.approx(q.norm().item())
    assert scores[300].item() == pytest.approx(highest, rel=1e-9)
    assert scores.max().item() <= highest * (1 + 1e-9)
    # The first pair alone is enough for this bound. It rotates by a radian per step, and within 300 steps of the peak
    # it comes closest to whole turns after 44 ≈ 14π steps.
    assert (scores[scores != scores[300]] <= highest - abs(numbers(q, layout)[0]) ** 2 * 1e-5).all()


@given(dims, seeds)
def test_no_key_of_that_length_scores_higher(dim, seed):
    q, k = random(2, dim, seed=seed)
    k = k / k.norm() * q.norm()
    assert largest(C.score_at(torch.arange(-200, 200), *C.amplitudes(q, k))) <= (q @ q).item() * (1 + 1e-12)


def test_key_for_keeps_type_and_takes_many_distances():
    q = random(8, dtype=torch.float32)
    keys = C.key_for(q, [1, 2, 777])
    assert keys.shape == (3, 8)
    assert keys.dtype == torch.float32
    assert torch.equal(keys[2], C.key_for(q, 777))


# --- Bad input ---

X = torch.zeros(3, 4)
Z = torch.zeros(3, 2, dtype=torch.complex64)
BAD = [
    ("to_complex([1.0, 2.0])", TypeError, "x must be a floating-point tensor, got list"),
    ("to_complex(X.long())", TypeError, "x must be .* torch.int64"),
    ("to_complex(Z)", TypeError, "x must be .* torch.complex64"),
    ("to_complex(X[:, :3])", ValueError, "the last axis of x must be an even integer >= 2, got 3"),
    ("to_complex(X[:, :0])", ValueError, "the last axis of x must be .* got 0"),
    ("to_complex(X[0, 0])", ValueError, "x must have at least one axis"),
    ("to_complex(X, 'halves')", ValueError, "layout must be one of 'interleaved', 'half', got 'halves'"),
    ("from_complex(X)", TypeError, "z must be complex64 or complex128, got dtype torch.float32"),
    ("from_complex([1j])", TypeError, "z must be a complex tensor, got list"),
    ("from_complex(Z[0, 0])", ValueError, "z must have shape"),
    ("from_complex(Z, None)", ValueError, "layout must be .* got None"),
    ("rotate(X.long(), 1)", TypeError, "x must be .* torch.int64"),
    ("rotate(X[0, 0], 1)", ValueError, "x must have at least one axis"),
    ("rotate(X[:, :3], 1)", ValueError, "the last axis of x must be .* got 3"),
    ("rotate(X, 1, 0)", ValueError, "base must be .* got 0"),
    ("rotate(X, 1, -5.0)", ValueError, "base must be .* got -5.0"),
    ("rotate(X, math.nan)", ValueError, "positions must lie .* got nan"),
    ("rotate(X, X[:, 0].bfloat16())", TypeError, "positions must be .* torch.bfloat16"),
    ("rotate(X, [1, 2])", ValueError, r"positions must broadcast with \(3,\), got shape \(2,\)"),
    (
        "rotate(X.expand(5, 3, 4), [[1, 2]])",
        ValueError,
        r"positions must broadcast with \(5, 3\), got shape \(1, 2\)",
    ),
    ("rotate(X, 1, layout='Half')", ValueError, "layout must be .* got 'Half'"),
    ("phases([1], 5)", ValueError, "dim must be .* got 5"),
    ("phases([math.nan], 4)", ValueError, "got nan"),
    ("amplitudes(X, X[:, :2])", ValueError, r"q and k must agree in their last axis, got shapes \(3, 4\) and \(3, 2\)"),
    ("amplitudes(X, X[:2])", ValueError, r"q and k must broadcast, got shapes \(3, 4\) and \(2, 4\)"),
    ("amplitudes(X, X.long())", TypeError, "k must be .* torch.int64"),
    ("amplitudes(3, X)", TypeError, "q must be .* got int"),
    ("amplitudes(X[:, :3], X[:, :3])", ValueError, "the last axis of .* got 3"),
    ("amplitudes(X, X, 'x')", ValueError, "layout must be .* got 'x'"),
    ("score_at([1], X, X[0])", ValueError, r"a and b must have one shape .* got \(3, 4\) and \(4,\)"),
    ("score_at([1], X[:, :0], X[:, :0])", ValueError, "a and b must have one shape .*"),
    ("score_at([1], X.long(), X.long())", TypeError, "a must be .* torch.int64"),
    ("score_at([1], X, 2)", TypeError, "b must be .* got int"),
    ("score_at([1], X[0, 0], X[0, 0])", ValueError, "a must have at least one axis"),
    ("score_at([math.inf], X, X)", ValueError, "distances must lie .* got inf"),
    ("score_at([1], X, X, 0)", ValueError, "base must be .* got 0"),
    ("waves([1], 5)", ValueError, "dim must be .* got 5"),
    ("waves(['a'], 4)", TypeError, "must be integers or"),
    ("key_for(X[0, 0], 1)", ValueError, "q must have at least one axis"),
    ("key_for([1.0, 2.0], 1)", TypeError, "q must be .* got list"),
    ("key_for(X[0], math.nan)", ValueError, "must lie .* got nan"),
]


@together(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        eval(call, {**vars(C), "X": X, "Z": Z, "math": math})


def test_every_public_function_has_bad_input_and_a_description():
    assert public(C) - {"Amplitudes"} == {call.partition("(")[0] for call, *_ in BAD}
    assert all(inspect.getdoc(getattr(C, name)) for name in public(C))


# --- The proofs describe the module: numerically, it computes both sides of each identity ---

M, N, DISTANCE, PLACE, DIM, BASE = 7, 3, 4, 9, 4, 50.0
THETA = sinusoidal.inv_freq(DIM, BASE).tolist()
SCALARS = {"x": 1, "y": -2, "u": 2, "v": 0.25, "s": 1.5, "r": 2.5, "alpha": 0.3, "beta": 1.1}
A, B = torch.tensor([[1.5, -2.5], [4.25, 3.5]], dtype=torch.float64)


def value(side):
    """Evaluate one side of an identity for the numbers above."""
    side = sympy.sympify(side).subs({P.d: DIM, P.m: M, P.n: N, P.p: PLACE, P.Delta: DISTANCE}).doit()
    for name, entries in {"a": A.tolist(), "b": B.tolist(), "theta": THETA}.items():
        base = sympy.IndexedBase(name, real=True)
        side = side.subs({base[i]: entry for i, entry in enumerate(entries)})
    side = side.subs(P.theta, THETA[1])
    return complex(side.subs({symbol: SCALARS[symbol.name] for symbol in side.free_symbols if symbol.name in SCALARS}))


def sides(label, wrong=False):
    return [(value(left), value(right)) for left, right in proofs.pairs(proofs.registry()[label], wrong)]


def the(label):
    [(left, right)] = sides(f"eq-complex-plane-{label}")
    assert left == pytest.approx(right, abs=1e-12)
    return left


def test_the_proofs_are_about_the_module():
    one, other = torch.tensor([[0, 0, SCALARS[x], SCALARS[y]] for x, y in ("xy", "uv")], dtype=torch.float64)
    assert the("dot") == pytest.approx((one @ other).item())
    query, key = (C.to_complex(C.rotate(x, at, BASE))[1].item() for x, at in ((one, M), (other, N)))
    assert [left for left, _ in sides("eq-complex-plane-turn")] == pytest.approx([query.real, query.imag])
    assert the("dropped") == pytest.approx((query * key).real)
    amplitudes = C.amplitudes(one, other)
    assert the("score") == pytest.approx(C.score_at(M - N, *amplitudes, BASE).item())
    assert the("fourier") == pytest.approx(C.score_at(DISTANCE, *amplitudes, BASE).item())
    at_peak = C.amplitudes(one, C.key_for(one, PLACE, BASE))
    assert the("peak") == pytest.approx(C.score_at(DISTANCE, *at_peak, BASE).item())
    assert the("odd") == pytest.approx((C.score_at(DISTANCE, A, B, BASE) - C.score_at(-DISTANCE, A, B, BASE)).item())


CHAPTER = [label for label in proofs.registry() if label.startswith("eq-complex-plane-")]


@together("label", [label for label in CHAPTER if proofs.registry()[label].kind == "identity"])
def test_a_wrong_twin_is_false_and_not_merely_unproved(label):
    for left, right in sides(label, wrong=True):
        assert abs(left - right) > 1e-3


# --- The module as a whole ---
