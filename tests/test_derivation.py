"""Tests of the rotation, compared with mpmath's 40 digits, ONNX's operator, transformers, matrix exponentials, sympy
and the theorems.

The float64 bounds in some tests follow from this: for θ ≤ 1, the error of an angle mθ is at most m times a few units of
2^−53.
"""

import inspect
import itertools
import math

import mpmath
import pytest
import sympy
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import derivation as D
from ropebook import figures, proofs, sinusoidal
from ropebook.proofs import derivation as P
from tests.helpers import largest, public, random, seeds
from tests.rotations import LAYOUTS, from_onnx, from_transformers, layouts
from tests.together import together

mpmath.mp.dps = 40

EPS = 2.0**-52

dims = st.integers(1, 16).map(lambda pairs: 2 * pairs)
bases = st.one_of(st.sampled_from([1, 10000, 10000.0, 1e7]), st.floats(0, 7).map(lambda power: 10**power))
positions = st.integers(-(10**5), 10**5)


def members(i, dim, layout):
    """Return the two entries of pair i, independently of the module."""
    return (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + dim // 2)


def exactly_rotated(q, position, base, layout):
    """Compute R_m q to 40 digits. The computation uses Euler's formula instead of a matrix."""
    dim = len(q)
    result = [None] * dim
    for i in range(dim // 2):
        first, second = members(i, dim, layout)
        angle = position * mpmath.power(mpmath.mpf(base), -mpmath.mpf(2 * i) / dim)
        z = mpmath.mpc(q[first], q[second]) * mpmath.expj(angle)
        result[first], result[second] = float(z.real), float(z.imag)
    return torch.tensor(result, dtype=torch.float64)


# --- The rotation ---


def test_rotation_is_counter_clockwise():
    quarter = D.rotation(math.pi / 2)
    assert quarter.dtype == torch.float64
    assert largest(quarter - torch.tensor([[0, -1], [1, 0]])) < 1e-15
    assert torch.equal(D.rotation(0), torch.eye(2, dtype=torch.float64))
    diagonal = D.rotation(math.pi / 4) @ torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert diagonal.tolist() == pytest.approx([math.sqrt(0.5)] * 2)


@together("shape", [(), (3,), (2, 3), (0,)])
def test_rotation_of_angles_of_any_shape(shape):
    angles = random(*shape)
    turned = D.rotation(angles)
    assert turned.shape == (*shape, 2, 2)
    assert torch.equal(turned[..., 0, 0], angles.cos())
    assert torch.equal(turned[..., 1, 0], angles.sin())
    assert torch.equal(turned[..., 0, 1], -angles.sin())
    assert torch.equal(turned[..., 1, 1], angles.cos())


@given(dims, layouts)
def test_pairs_are_the_layouts_pairs_and_hold_each_entry_once(dim, layout):
    found = D.pairs(dim, layout)
    assert found.tolist() == [list(members(i, dim, layout)) for i in range(dim // 2)]
    assert found.flatten().sort().values.tolist() == list(range(dim))


@together("layout", LAYOUTS)
@together("dim", [2, 4, 6, 8])
def test_matrix_entry_by_entry(dim, layout):
    expected = torch.zeros(7, dim, dim, dtype=torch.float64)
    for m in range(7):
        for i in range(dim // 2):
            first, second = members(i, dim, layout)
            angle = m * 50.0 ** (-2 * i / dim)
            expected[m, first, first] = expected[m, second, second] = math.cos(angle)
            expected[m, first, second] = -math.sin(angle)
            expected[m, second, first] = math.sin(angle)
    assert largest(D.rotation_matrix(range(7), dim, 50.0, layout) - expected) < 1e-14


def test_the_matrix_is_the_transpose_of_the_last_chapters():
    # in the chapter on sinusoidal positions, the pair is (sin, cos), which rotates clockwise
    assert torch.equal(D.rotation_matrix([5, 9], 8), sinusoidal.shift_matrix([5, 9], 8).mT)


@together("shape", [(), (3,), (2, 3)])
def test_matrices_for_positions_of_any_shape(shape):
    matrices = D.rotation_matrix(torch.arange(math.prod(shape)).reshape(shape), 6, layout="half")
    assert matrices.shape == (*shape, 6, 6)
    assert matrices.dtype == torch.float64
    assert torch.equal(matrices.reshape(-1, 6, 6)[-1], D.rotation_matrix(math.prod(shape) - 1, 6, layout="half"))


@given(positions, dims, bases, layouts, seeds)
def test_rotate_against_forty_digits(m, dim, base, layout, seed):
    x = random(dim, seed=seed)
    error = D.rotate(x, m, base, layout) - exactly_rotated(x.tolist(), m, base, layout)
    assert largest(error) <= 8 * EPS * (abs(m) + 1) * largest(x)


@given(positions, dims, bases, layouts, seeds)
def test_rotate_is_the_matrix(m, dim, base, layout, seed):
    x = random(dim, seed=seed)
    assert largest(D.rotate(x, m, base, layout) - D.rotation_matrix(m, dim, base, layout) @ x) <= 4 * EPS * largest(x)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotate_against_the_operator_of_onnx(layout):
    assert from_onnx(D.rotate, layout) < 2e-6


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rotate_against_transformers(layout):
    assert from_transformers(D.rotate, layout) < 1e-14


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_only_the_result_is_cast_down(dtype, device):
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("mps has no float64")
    x = random(3, 100, 32, dtype=dtype).to(device)
    places = torch.arange(100_000, 100_100)
    ours = D.rotate(x, places)
    assert ours.dtype == dtype
    assert ours.device.type == device.type
    assert torch.equal(ours.cpu(), D.rotate(x.cpu().double(), places).to(dtype))


@together(
    ("shape", "places"),
    [((5, 4), [5]), ((4,), [5]), ((2, 3, 5, 4), [5]), ((2, 3, 5, 4), [2, 1, 5]), ((4,), []), ((2, 4), [1])],
)
def test_positions_that_broadcast(shape, places):
    x, at = random(*shape), random(*places, seed=1)
    ours = D.rotate(x, at)
    assert ours.shape == (*torch.broadcast_shapes(shape[:-1], tuple(places)), 4)
    assert largest(ours - (D.rotation_matrix(at, 4) @ x[..., None])[..., 0]) < 1e-14


def test_no_vectors_are_no_error():
    assert D.rotate(torch.zeros(0, 4), []).shape == (0, 4)


def test_gradients_are_turned_back():
    x, weight = random(5, 8).requires_grad_(), random(5, 8, seed=1)
    (D.rotate(x, range(5)) * weight).sum().backward()
    assert largest(x.grad - D.rotate(weight, -torch.arange(5))) < 1e-15


# --- The theorems ---


@given(positions, positions, st.integers(-(10**5), 10**5), dims, bases, layouts, seeds)
def test_the_score_knows_the_distance_alone(m, n, shift, dim, base, layout, seed):
    q, k = random(2, dim, seed=seed)
    here, there = D.score(q, k, [m, m + shift], [n, n + shift], base, layout).tolist()
    size = (q.norm() * k.norm()).item()
    tolerance = 16 * EPS * (abs(m) + abs(n) + 2 * abs(shift) + 1) * size
    assert here == pytest.approx(there, abs=tolerance)
    between = D.rotation_matrix(n - m, dim, base, layout)
    assert here == pytest.approx((q @ between @ k).item(), abs=tolerance)


@together("layout", LAYOUTS)
@together("dim", [2, 4, 6, 8])
def test_products_of_rotations(dim, layout):
    places = torch.arange(-6, 7)
    R = D.rotation_matrix(places, dim, layout=layout)
    unit = torch.eye(dim, dtype=torch.float64)
    between = D.rotation_matrix(places - places[:, None], dim, layout=layout)
    assert largest(R[:, None].mT @ R - between) < 4e-15  # R_mᵀ R_n = R_{n−m}
    assert largest(R.mT @ R - unit) < 1e-15
    assert torch.linalg.det(R).tolist() == pytest.approx([1] * len(places))
    assert largest(between - between.mT) > 0.5  # and R_{n−m} isn't R_{m−n}


@given(positions, dims, bases, layouts, seeds)
def test_lengths_are_kept(m, dim, base, layout, seed):
    x = random(dim, seed=seed)
    assert D.rotate(x, m, base, layout).norm().item() == pytest.approx(x.norm().item(), rel=1e-14)


def test_the_score_is_not_symmetric():
    q, k = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert D.score(q, k, 2, 0).item() == pytest.approx(math.sin(2))
    assert D.score(q, k, 0, 2).item() == pytest.approx(-math.sin(2))


def test_score_by_hand():
    # Δ = 2: pair 0 gives 2 cos 2 + sin 2, pair 1 gives 3 cos 0.02 − 4 sin 0.02
    q, k = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 1.0, 0.0]])
    expected = 2 * math.cos(2) + math.sin(2) + 3 * math.cos(0.02) - 4 * math.sin(0.02)
    assert D.score(q, k, 9, 7).item() == pytest.approx(expected)
    assert D.score(q, k, 9, 7).dtype == torch.float64


def test_scores_of_all_queries_and_keys():
    q, k = random(2, 3, 5, 8)
    places = torch.arange(5)
    scores = D.score(q[:, :, None], k[:, None], places[:, None], places, layout="half")
    assert scores.shape == (3, 5, 5)
    expected = D.rotate(q, places, layout="half") @ D.rotate(k, places, layout="half").mT
    assert largest(scores - expected) < 1e-13


@together("layout", LAYOUTS)
@together("dim", [2, 4, 6, 8])
def test_the_matrix_exponential_of_the_generator(dim, layout):
    A = D.generator(dim, 50.0, layout)
    assert A.dtype == torch.float64
    assert torch.equal(A.T, -A)
    for m in (-3, 0, 0.5, 1, 7):
        assert largest(torch.matrix_exp(m * A) - D.rotation_matrix(m, dim, 50.0, layout)) < 1e-13


# --- The derivation by sympy ---

q, k = sympy.symbols("q k")
m, n = sympy.symbols("m n", integer=True)
r, r_g = (sympy.Function(name, positive=True) for name in ("r", "r_g"))
Phi, Phi_g, phi = (sympy.Function(name, real=True) for name in ("Phi", "Phi_g", "phi"))
theta = sympy.Symbol("theta", real=True)


def test_polar_form():
    found = D.polar_form()
    assert found.lengths == sympy.Eq(r(q, m) * r(k, n), r_g(q, k, m - n))
    assert found.angles == sympy.Eq(Phi(q, m) - Phi(k, n), Phi_g(q, k, m - n))


def test_length_and_angle_at_one_place():
    found = D.polar_form()
    assert D.length_at(found.lengths) == sympy.Eq(r(q, m), r(q, 0))
    assert D.angle_at(found.angles) == sympy.Eq(Phi(q, m), Phi(q, 0) + Phi(k, m) - Phi(k, 0))


def test_the_step_has_its_m_on_one_side_and_its_vectors_on_the_other():
    step, recurrence, solution = D.phase(D.polar_form().angles)
    assert step == sympy.Eq(phi(m) - phi(m - 1), Phi_g(q, k, 1) - Phi(q, 0) + Phi(k, 0))
    assert step.lhs.free_symbols == {m}
    assert step.rhs.free_symbols == {q, k}
    assert recurrence == sympy.Eq(phi(m), phi(m - 1) + theta)
    assert solution == sympy.Eq(phi(m), m * theta)


def test_the_solution_solves_the_equation_of_the_angles():
    # if Φ(v, m) = Φ(v, 0) + mθ, both sides become Φ(q, 0) − Φ(k, 0) + (m − n)θ, a function of q, k and m − n
    angles = D.polar_form().angles
    solution = D.phase(angles).solution.rhs
    left = angles.lhs.replace(Phi, lambda vector, place: Phi(vector, 0) + solution.subs(m, place))
    assert sympy.expand(left - (Phi(q, 0) - Phi(k, 0) + (m - n) * theta)) == 0


# Assumptions that contain a mistake, and the error that the derivation raises for each of them.
SLIPS = [
    (Phi_g(q, k, m + n), "rotate every q by the same amount"),  # depends on the sum of the positions
    (Phi_g(q, k, m), "rotate every q by the same amount"),  # depends only on the query's position
    (Phi_g(q, k, m - n) + m * Phi(q, 0), "rotate every q by the same amount"),  # the rotation depends on the vector
    (Phi_g(q, k, m - n) + (m - n) * m, r"a step but φ\(m\) − φ\(m − 1\), got -m \+ phi"),  # the steps increase
    (Phi_g(q, k, m - n) + (m - n) * m * Phi(q, 0), r"a step but .*got .*m\*Phi\(q, 0\)"),  # they depend on q, too
]


@together(("asked", "message"), SLIPS)
def test_a_slip_in_what_is_asked_is_refused(asked, message):
    with pytest.raises(ValueError, match=message):
        D.phase(sympy.Eq(Phi(q, m) - Phi(k, n), asked))


def test_the_derivation_ends_with_the_matrix():
    found = D.turned_vector(D.phase(D.polar_form().angles).solution)
    assert torch.equal(
        torch.tensor(found.subs({m: 3, theta: 0.7}).evalf(17).tolist(), dtype=torch.float64).round(decimals=12),
        D.rotation(3 * 0.7).round(decimals=12),
    )


def test_the_example_by_hand():
    exact = D.rotate_exactly([1, 2, 3, 4], position=2)
    sin, cos, small = sympy.sin, sympy.cos, sympy.Rational(1, 50)
    assert list(exact) == [
        cos(2) - 2 * sin(2),
        sin(2) + 2 * cos(2),
        3 * cos(small) - 4 * sin(small),
        3 * sin(small) + 4 * cos(small),
    ]
    decimal = [float(entry) for entry in exact]
    assert decimal == pytest.approx([-2.234742, 0.077004, 2.919405, 4.059196], abs=1e-6)  # S4.6: (−2.234, 0.077, …)
    assert D.rotate(torch.tensor([1.0, 2.0, 3.0, 4.0]).double(), 2).tolist() == pytest.approx(decimal, abs=1e-14)


def test_exact_rotation_with_another_base():
    found = [float(entry) for entry in D.rotate_exactly([1, -2, 3, 0, 5, 1], position=-7, base=50)]
    expected = D.rotate(torch.tensor([1.0, -2, 3, 0, 5, 1], dtype=torch.float64), -7, 50.0)
    assert found == pytest.approx(expected.tolist(), abs=1e-13)
    cos, sin = sympy.cos(3), sympy.sin(3)  # with base 1, both pairs rotate by the same angle
    assert list(D.rotate_exactly([1, 0, 0, 1], position=3, base=1)) == [cos, sin, -sin, cos]


# --- Which alternatives would work, and why pairs are enough ---


@given(st.floats(-10, 10))
def test_a_reflection_mirrors_the_plane(angle):
    S = D.reflection(angle)
    assert torch.equal(S, S.T)
    assert largest(S @ S - torch.eye(2, dtype=torch.float64)) < 1e-15
    assert torch.linalg.det(S).item() == pytest.approx(-1)
    line = torch.tensor([math.cos(angle / 2), math.sin(angle / 2)], dtype=torch.float64)
    assert largest(S @ line - line) < 1e-14


@given(st.floats(-10, 10), st.integers(-5, 5), st.integers(-5, 5))
def test_powers_of_a_reflection_do_what_is_asked_and_know_odd_from_even_only(angle, m, n):
    O = [torch.linalg.matrix_power(D.reflection(angle), power) for power in (m, n, n - m)]  # noqa: E741
    assert largest(O[0].T @ O[1] - O[2]) < 1e-14
    assert largest(O[2] - (torch.eye(2).double() if (n - m) % 2 == 0 else D.reflection(angle))) < 1e-14
    assert D.breach(D.reflection(angle), 3) < 1e-14


@given(st.integers(1, 6), seeds, st.sampled_from([1, -1]))
def test_any_orthogonal_step_does_what_is_asked(dim, seed, determinant):
    step, _ = torch.linalg.qr(random(dim, dim, seed=seed))
    step[0] *= determinant * torch.linalg.det(step).sign()
    assert torch.linalg.det(step).item() == pytest.approx(determinant)
    assert D.breach(step, 3) < 1e-12
    stretched = step * torch.linspace(1, 2, dim)[:, None] if dim > 1 else 2 * step
    assert D.breach(stretched, 3) > 0.1


def test_the_drawing_shows_ten_places_on_one_circle_and_two_on_the_other(monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "display_figure", lambda *drawing: drawn.append(drawing))
    D.draw_families()
    [(fig, alt, _)] = drawn
    turned, mirrored = (ax.lines[1].get_xydata() for ax in fig.axes)
    assert [len({tuple(point.round(9)) for point in points}) for points in (turned, mirrored)] == [10, 2]
    assert "10 dots" in alt
    (x, y), _ = fig.axes[1].lines[2].get_xydata()  # the line of reflection bisects the angle between the two dots
    halfway = mirrored[0] + mirrored[1]
    assert x * halfway[1] == pytest.approx(y * halfway[0])


def test_breach_by_hand():
    # O_n = 2ⁿ. The worst case is m = n = 1, where the product is 2 · 2 instead of O_0 = 1.
    assert D.breach(torch.tensor([[2.0]]), 1) == 3
    assert D.breach(torch.tensor([[2.0]]), 2) == 15  # m = n = 2: 4 · 4 instead of 1; m = −2, n = 2: 1 instead of 16
    # This is a shear. The worst case is m = n = 3, where the lower right entry is 1 + 3 · 3 instead of 1.
    assert D.breach(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3) == 9
    assert D.breach(torch.eye(3), 2) == 0


def rebuilt(form, power=1):
    J = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    inside = torch.block_diag(*(frequency * J for frequency in form.frequencies))
    return form.basis @ torch.matrix_exp(power * inside) @ form.basis.T, form.basis @ inside @ form.basis.T


def check_normal_form(A, form):
    dim = len(A)
    assert form.basis.shape == (dim, dim)
    assert form.frequencies.shape == (dim // 2,)
    assert largest(form.basis.T @ form.basis - torch.eye(dim)) < 1e-13
    assert (form.frequencies >= 0).all()
    turned, again = rebuilt(form, 2)
    assert largest(again - A) <= 1e-13 * max(largest(A), 1e-300)
    assert largest(turned - torch.matrix_exp(2 * A)) < 1e-11


@given(st.integers(1, 8), seeds, st.integers(0, 8))
def test_normal_form_of_any_skew_symmetric_matrix(half, seed, zeros):
    dim = 2 * half
    A = random(dim, dim, seed=seed)
    A[dim - min(zeros, dim) :] = A[:, dim - min(zeros, dim) :] = 0  # now there are directions that aren't rotated
    A = A - A.T
    form = D.normal_form(A)
    check_normal_form(A, form)
    expected = torch.linalg.svdvals(A)[::2]  # each θ_i is a singular value twice
    assert form.frequencies.tolist() == pytest.approx(expected.tolist(), abs=1e-12)


@together("small", [1, 0.5, 1e-6, 1e-9, 1e-12, 1e-15, 1e-17, 0])
def test_normal_form_with_equal_and_with_tiny_frequencies(small):
    basis, _ = torch.linalg.qr(random(8, 8))
    J = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    A = basis @ torch.block_diag(J, small * J, J, small * J) @ basis.T
    A = (A - A.T) / 2
    form = D.normal_form(A)
    check_normal_form(A, form)
    assert form.frequencies.tolist() == pytest.approx([1, 1, small, small], abs=1e-14)


def test_normal_form_takes_a_matrix_that_is_skew_up_to_rounding():
    A = torch.tensor([[0.0, -3.0], [3.0, 0.0]], dtype=torch.float64)
    nearly = A * torch.tensor([[1.0, 1.0 + 2e-7], [1.0, 1.0]])
    assert D.normal_form(nearly).frequencies.item() == pytest.approx(3, rel=1e-6)
    with pytest.raises(ValueError, match=r"an entry of size 1\.5e-05"):
        D.normal_form(A * torch.tensor([[1.0, 1.0 + 5e-6], [1.0, 1.0]], dtype=torch.float64))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_normal_form_of_the_generator_finds_the_frequencies(layout):
    form = D.normal_form(D.generator(8, layout=layout))
    assert form.frequencies.tolist() == pytest.approx(sinusoidal.inv_freq(8).tolist())
    check_normal_form(torch.zeros(4, 4).double(), D.normal_form(torch.zeros(4, 4)))


def test_the_basis_goes_into_the_weights():
    A, W_q, W_k = random(3, 6, 6)
    A, words, places = A - A.T, random(5, 6, seed=1), torch.arange(5)
    turned = torch.stack([torch.matrix_exp(place * A) for place in places])
    queries, keys = ((turned @ (words @ W.T)[..., None]).squeeze(-1) for W in (W_q, W_k))
    Q, frequencies = D.normal_form(A)
    blocks = torch.stack([torch.block_diag(*D.rotation(place * frequencies)) for place in places])
    q, k = ((blocks @ (words @ (Q.T @ W).T)[..., None]).squeeze(-1) for W in (W_q, W_k))
    assert largest(q @ k.T - queries @ keys.T) < 1e-12


# --- Exercises of the chapter's pages ---


def test_where_it_looks():
    q = torch.tensor([1.0, 0.0], dtype=torch.float64)
    distances = torch.arange(-100, 101)
    scores = D.score(q, D.rotation(1.0) @ q, distances, 0)
    assert largest(scores - (1 - distances).double().cos()) < 1e-13
    assert {*distances[scores.argsort(descending=True)[1:3]].tolist()} == {45, -43}


def test_without_the_minus_sign_the_sum_of_positions_comes_in():
    def block(place):
        cos, sin = sympy.cos(place * theta), sympy.sin(place * theta)
        return sympy.Matrix([[cos, sin], [sin, cos]])

    ones = sympy.Matrix([1, 1])
    score = (block(m) * ones).dot(block(n) * ones)
    assert sympy.simplify(score - 2 * sympy.cos((m - n) * theta) - 2 * sympy.sin((m + n) * theta)) == 0


def test_a_list_rotated_by_one_place():
    step = torch.eye(4, dtype=torch.float64).roll(1, 0)
    assert D.breach(step, 8) == 0
    assert torch.equal(torch.linalg.matrix_power(step, 4), torch.eye(4, dtype=torch.float64))
    assert torch.linalg.det(step) == pytest.approx(-1)
    first, second = torch.tensor([[1.0, 0, -1, 0], [0, 1, 0, -1]], dtype=torch.float64) / math.sqrt(2)
    omega = math.pi * (torch.outer(second, first) - torch.outer(first, second))
    assert largest(torch.matrix_exp(omega) - step @ step) < 1e-14
    assert D.normal_form(omega).frequencies.tolist() == pytest.approx([math.pi, 0])


def test_at_whole_positions_a_turn_more_is_no_turn():
    places = torch.arange(1000, dtype=torch.float64)
    slow = D.rotation(places * 0.01)
    assert largest(D.rotation(places * (2 * math.pi + 0.01)) - slow) < 1e-11
    assert largest(D.rotation(places * (2 * math.pi - 1)) - D.rotation(places).mT) < 1e-11
    halves = places + 0.5
    assert largest(D.rotation(halves * (2 * math.pi + 0.01)) - D.rotation(halves * 0.01)) > 1


@given(seeds)
def test_with_two_functions_any_invertible_step_does(seed):
    step, (q, k) = random(8, 8, seed=seed) + 4 * torch.eye(8), random(2, 8, seed=seed + 1)
    power = torch.linalg.matrix_power
    scores = [(power(step, -m).T @ q) @ (power(step, n) @ k) for m, n in ((2, 0), (5, 3))]
    assert scores[0] == pytest.approx(scores[1].item(), rel=1e-6, abs=1e-6)


# --- The proofs describe the module ---

BASE, DIM, M, N = 50.0, 6, 7, 3
THETA = sinusoidal.inv_freq(DIM, BASE).tolist()


def value(side, pair=0):
    """Evaluate one side of an identity for given numbers. For identities about a single block, ``pair`` selects θ_i."""
    side = side.subs({P.d: DIM, P.m: M, P.n: N}).doit()
    side = side.subs({P.frequency[i]: THETA[i] for i in range(DIM // 2)}).subs(P.theta_i, THETA[pair])
    for vector, numbers in ((P.query, QUERY), (P.key, KEY)):
        side = side.subs({vector[i]: numbers[i] for i in range(DIM)})
    return torch.tensor(sympy.Matrix([side]).evalf(17).tolist(), dtype=torch.float64)


QUERY, KEY = [1, -2, 3, 0, 2, 1], [2, 0, -1, 1, 4, -3]


@together("pair", range(DIM // 2))
@together(
    ("label", "expected"),
    [
        ("eq-derivation-relative", lambda R: R(M).T @ R(N)),
        ("eq-derivation-orthogonal", lambda R: R(M).T @ R(M)),
        ("eq-derivation-group", lambda R: R(M) @ R(N)),
        ("eq-derivation-exponential", lambda R: R(M)),
        ("eq-derivation-direction", lambda R: R(N - M) - R(M - N)),
        ("eq-derivation-sign", lambda R: R(-M).T @ R(-N)),
    ],
)
def test_block_proofs_are_those_of_the_module(label, expected, pair):
    block = slice(2 * pair, 2 * pair + 2)
    numbers = expected(lambda place: D.rotation_matrix(place, DIM, BASE)[block, block])
    for side in proofs.pairs(proofs.registry()[label])[0]:
        assert largest(value(side, pair) - numbers) < 1e-12


def test_the_score_proof_is_that_of_the_module():
    expected = D.score(torch.tensor(QUERY).double(), torch.tensor(KEY).double(), M, N, BASE)
    for side in proofs.pairs(proofs.registry()["eq-derivation-score"])[0]:
        assert value(side).item() == pytest.approx(expected.item(), abs=1e-12)


def test_the_four_lines_are_the_score_of_the_module():
    q, k = torch.tensor(QUERY[:2]).double(), torch.tensor(KEY[:2]).double()
    numbers = dict(zip((*P.QUERY, *P.KEY), (*QUERY[:2], *KEY[:2]), strict=True))
    for side in itertools.chain(*proofs.pairs(proofs.registry()["eq-derivation-forward"])):
        assert value(side.subs(numbers)).item() == pytest.approx(D.score(q, k, M, N).item(), abs=1e-12)


def test_the_reflection_proof_is_that_of_the_module():
    [(square, _), _, (determinant, _)] = proofs.pairs(proofs.registry()["eq-derivation-reflection"])
    F = P.mirror(P.alpha)
    assert square == F.T * F
    S = torch.tensor(F.subs(P.alpha, 0.7).tolist(), dtype=torch.float64)
    assert largest(S - D.reflection(0.7)) < 1e-15
    assert determinant.subs(P.alpha, 0.7) == pytest.approx(-1)


def test_the_isometry_proof_multiplies_out_a_length():
    # Two vectors can have ⟨q, q⟩ = 5, ⟨q, k⟩ = −3 and ⟨k, k⟩ = 2. They make the wrong twin's length nonzero.
    numbers = {sympy.Symbol(name, real=True): value for name, value in zip(P.PRODUCTS, (5, -3, 2), strict=True)}
    numbers |= {P.a: 3, P.b: -2}
    for wrong, expected in ((False, 0), (True, 4 * 9 * 5)):  # |2a f(q)|² = 4a²⟨q, q⟩
        [(left, _)] = proofs.pairs(proofs.registry()["eq-derivation-isometry"], wrong)
        assert left.subs(numbers) == expected


# --- Bad input ---

ZEROS = torch.zeros(3, 4)
BAD = [
    ('rotation("a quarter")', TypeError, r"angle must be .* got 'a quarter'"),
    ("rotation(math.nan)", ValueError, r"angle must lie between .* got nan"),
    ("rotation(torch.ones(2).half())", TypeError, r"angle must be .* got dtype .*float16"),
    ("pairs(7)", ValueError, "dim must be an even integer >= 2, got 7"),
    ("pairs(0)", ValueError, r"dim must be .* got 0"),
    ('pairs(4, "neox")', ValueError, "layout must be one of 'interleaved', 'half', got 'neox'"),
    ("rotation_matrix(1, 5)", ValueError, r"dim must be .* got 5"),
    ("rotation_matrix(1, 4, 0)", ValueError, r"base must be .* got 0"),
    ("rotation_matrix(1, 4, -1)", ValueError, r"base must be .* got -1"),
    ('rotation_matrix(1, 4, layout="")', ValueError, r"layout must be .* got ''"),
    ("rotation_matrix(math.inf, 4)", ValueError, r"positions must lie between .* got inf"),
    ("rotate(ZEROS.long(), [0, 1, 2])", TypeError, r"x must be .* got dtype torch.int64"),
    ("rotate([1.0, 2.0], 1)", TypeError, r"x must be .* got list"),
    ("rotate(torch.tensor(1.0), 1)", ValueError, "x must have shape .* got a single number"),
    ("rotate(ZEROS[:, :3], [0, 1, 2])", ValueError, r"dim must be .* got 3"),
    ("rotate(ZEROS, [0, 1])", ValueError, r"positions must broadcast with \(3,\), got shape \(2,\)"),
    ("rotate(ZEROS, torch.ones(3).bfloat16())", TypeError, r"positions must be .* got dtype .*bfloat16"),
    ('rotate(ZEROS, [0, 1, 2], layout="split")', ValueError, r"layout must be .* got 'split'"),
    ("rotate(ZEROS, [0, 1, 2], math.nan)", ValueError, r"base must be .* got nan"),
    ("score([1.0], ZEROS, 0, 0)", TypeError, r"q must be .* got list"),
    ("score(ZEROS, ZEROS.long(), 0, 0)", TypeError, r"k must be .* got dtype torch.int64"),
    ("score(torch.tensor(1.0), ZEROS, 0, 0)", ValueError, r"q must have shape .* single number"),
    ("score(ZEROS, torch.tensor(1.0), 0, 0)", ValueError, r"k must have shape .* single number"),
    ("score(ZEROS, ZEROS[:, :2], 0, 0)", ValueError, r"agree in their last axis.*\(3, 4\) and \(3, 2\)"),
    ("score(ZEROS, ZEROS[:2], 0, 0)", ValueError, r"k, rotated, must broadcast with \(3, 4\), got shape \(2, 4\)"),
    ("score(ZEROS, ZEROS, [0, 1], 0)", ValueError, r"positions must broadcast with \(3,\)"),
    ("score(ZEROS[:, :3], ZEROS[:, :3], 0, 0)", ValueError, r"dim must be .* got 3"),
    ("generator(3)", ValueError, r"dim must be .* got 3"),
    ("generator(4, 0.5)", ValueError, r"base must be .* got 0.5"),
    ('generator(4, layout="both")', ValueError, r"layout must be .* got 'both'"),
    ("rotate_exactly([1, 2, 3], 1)", ValueError, r"the length of q must be .* got 3"),
    ("rotate_exactly([1, 2], 0.5)", TypeError, r"position must be an integer, got 0.5"),
    ("rotate_exactly([1, 2], 1, 0)", ValueError, r"base must be an integer >= 1, got 0"),
    ("phase(sympy.Eq(Phi(q, m) - Phi(k, n), m))", ValueError, "equation must rotate every q by the same amount"),
    ("angle_at(sympy.Eq(Phi(q, m) - Phi(k, n), Phi_g(q, k, n)))", ValueError, "the same amount, got .*Phi_g"),
    ("draw_families(1)", ValueError, "positions must be an integer >= 2.* got 1"),
    ("draw_families(angle=None)", TypeError, r"angle must be .* got None"),
    ("reflection(None)", TypeError, r"angle must be .* got None"),
    ("breach([1.0], 1)", TypeError, r"step must be .* got list"),
    ("breach(ZEROS, 1)", ValueError, r"step must have shape \(dim, dim\), got \(3, 4\)"),
    ("breach(torch.eye(2), 0)", ValueError, r"reach must be .* got 0"),
    ("breach(torch.full((2, 2), math.nan), 1)", ValueError, "step must be finite"),
    ("breach(torch.zeros(2, 2), 1)", ValueError, "step must be invertible"),
    ("normal_form(ZEROS)", ValueError, r"skew must have shape \(dim, dim\), got \(3, 4\)"),
    ("normal_form(torch.zeros(3, 3))", ValueError, r"the size of skew must be .* got 3"),
    ("normal_form(torch.eye(2))", ValueError, r"skew must be skew-symmetric, but .* an entry of size 2"),
    ("normal_form(torch.full((2, 2), math.inf))", ValueError, "skew must be finite"),
    ("normal_form(torch.zeros(2, 2).long())", TypeError, r"skew must be .* got dtype torch.int64"),
]  # fmt: skip


@together(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        eval(call, {**globals(), **vars(D)})


def test_every_public_function_has_bad_input_and_a_description():
    results = {"Polar", "Phase", "NormalForm"}
    # the input of these functions is the result of the previous step
    symbolic = {"polar_form", "length_at", "turned_vector"}
    assert public(D) - results - symbolic == {call.partition("(")[0] for call, *_ in BAD}
    assert all(inspect.getdoc(getattr(D, name)) for name in public(D))


# --- The module as a whole ---


def test_the_base_is_the_papers_and_the_layout_too():
    for name in public(D):
        parameters = inspect.signature(getattr(D, name)).parameters
        assert "base" not in parameters or parameters["base"].default == 10000, name
        assert "layout" not in parameters or parameters["layout"].default == "interleaved", name
