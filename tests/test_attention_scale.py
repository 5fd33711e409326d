"""Tests of the effect of the scale 1/√d on the variance of the scores, and on how much the weights change when a dot
product changes."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import attention as A
from tests.attention_helpers import assert_close, draw
from tests.helpers import seeds
from tests.together import together


@together("dim", [1, 2, 64, 512])
def test_the_variance_of_a_score_is_the_dimension(dim):
    samples = 20_000
    measured = A.score_variance(dim, samples, torch.Generator().manual_seed(0))
    deviation = dim * math.sqrt((2 + 6 / dim) / samples)
    assert abs(measured - dim) < 4 * deviation
    assert abs(measured - dim) > deviation / 100


def test_the_variance_is_that_of_the_products_drawn():
    q, k = torch.randn(2, 50, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).tolist()
    products = [sum(a * b for a, b in zip(x, y, strict=True)) for x, y in zip(q, k, strict=True)]
    mean = sum(products) / 50
    expected = sum((s - mean) ** 2 for s in products) / 49
    measured = A.score_variance(3, 50, torch.Generator().manual_seed(5))
    assert isinstance(measured, float)
    assert math.isclose(measured, expected, rel_tol=1e-12)
    torch.manual_seed(5)
    # here the global generator is used, with the same seed
    assert math.isclose(A.score_variance(3, 50), expected, rel_tol=1e-12)
    default, stated = (A.score_variance(3, *n, generator=torch.Generator().manual_seed(5)) for n in ([], [10_000]))
    assert default == stated


def test_the_spread_of_the_measured_variance_is_as_stated():
    dim, samples = 3, 400
    generator = torch.Generator().manual_seed(1)
    measured = torch.tensor([A.score_variance(dim, samples, generator) for _ in range(400)])
    assert math.isclose(measured.std().item(), dim * math.sqrt((2 + 6 / dim) / samples), rel_tol=0.1)


def test_the_scale_keeps_the_scores_at_variance_one():
    dim, keys = 512, 16
    q, k = draw(200, dim, seed=1), draw(keys, dim, seed=2)
    with_scale, without = A.attention_weights(q, k), A.attention_weights(q, k, scale=1.0)
    # the logarithms of the softmax are the scores, with each row shifted by a constant
    assert 0.8 < with_scale.log().var(-1).mean() < 1.2
    assert 0.8 < without.clamp(min=1e-300).log().var(-1).mean() / dim < 1.2


@together("dim", [1, 2, 8])
def test_score_rows_have_the_moments_of_dot_products(dim):
    # For sums of d products x·y, E s² = d and E s⁴ = 3d(d + 2). For two keys and one query, E s²t² = d(d + 2).
    s, t = A.score_rows(dim, 2, 400_000, torch.Generator().manual_seed(0)).T
    expected = ((s * s, dim), (t**4, 3 * dim * (dim + 2)), ((s * t) ** 2, dim * (dim + 2)), (s, 0), (s * t, 0))
    for moment, value in expected:
        assert abs(moment.mean() - value) < 5 * moment.std() / len(s) ** 0.5


def test_score_rows_come_from_the_generator():
    first, again, other = (A.score_rows(4, 3, 5, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert A.score_rows(4, 3).shape == (1000, 3)


# Medians over 2000 rows of Gaussian scores, computed by another program. Each entry gives the number of keys, the
# dimension, the median without the scale, and the median with it. For the last of these, that program differentiated
# with respect to the scaled scores. We need the derivative with respect to the dot products, so the test divides this
# median by √d.
MEDIANS = [(16, 64, 0.11, 0.30), (64, 64, 0.195, 0.179), (256, 64, 0.27, 0.097), (1024, 64, 0.28, 0.050)]
MEDIANS += [(1024, 128, 0.18, 0.050), (4096, 512, 0.031, 0.026)]


@pytest.mark.parametrize(("keys", "dim", "without", "with_scale"), MEDIANS)
def test_without_the_scale_a_row_of_many_keys_keeps_its_gradient(keys, dim, without, with_scale):
    scores = A.score_rows(dim, keys, 2000, torch.Generator().manual_seed(1))
    spread = math.sqrt(dim / (2 * math.log(keys)))  # the standard deviation of the gap and of the gradient's logarithm
    noise = 3 * math.sqrt(2 / 2000) * spread  # three standard errors of the difference between two such medians
    for divisor, expected, allowed in ((1, without, noise), (dim**0.5, with_scale / dim**0.5, 0.03)):
        median = A.softmax_gradient_norm((scores / divisor).softmax(-1), divisor).median().item()
        assert median == pytest.approx(expected, rel=allowed)


@given(seeds, st.integers(1, 6))
def test_softmax_jacobian_is_autograds(seed, n):
    z = draw(2, 3, n, seed=seed) * 3
    ours = A.softmax_jacobian(z.softmax(-1))
    assert ours.shape == (2, 3, n, n)
    for i, j in itertools.product(range(2), range(3)):
        theirs = torch.autograd.functional.jacobian(lambda z: z.softmax(-1), z[i, j])
        assert (ours[i, j] - theirs).abs().max() < 1e-14
    assert_close(A.softmax_gradient_norm(z.softmax(-1)), ours.square().sum((-2, -1)).sqrt())


@together("divisor", [1, math.sqrt(24), 24])
def test_the_derivative_is_by_the_dot_products_and_has_the_divisor_in_it(divisor):
    # smaller vectors, because autograd would lose digits for nearly one-hot rows
    q, k = draw(24, seed=1) / 4, draw(5, 24, seed=2)
    dots = k @ q
    theirs = torch.autograd.functional.jacobian(lambda dots: (dots / divisor).softmax(-1), dots)
    p = (dots / divisor).softmax(-1)
    assert_close(A.softmax_jacobian(p, divisor), theirs)
    assert_close(A.softmax_gradient_norm(p, divisor), theirs.square().sum().sqrt())
    by_query = torch.autograd.functional.jacobian(lambda q: (k @ q / divisor).softmax(-1), q)
    # by the chain rule, we multiply by the keys; there is no further factor
    assert_close(A.softmax_jacobian(p, divisor) @ k, by_query)


@together("dim", [16, 64, 256])
def test_the_gradient_of_rows_has_the_divisor_in_it(dim):
    dots = A.score_rows(dim, 4, 20, torch.Generator().manual_seed(7))
    for divisor in (1, math.sqrt(dim)):

        def weights(row, divisor=divisor):
            return (row / divisor).softmax(-1)

        sizes = torch.stack([torch.autograd.functional.jacobian(weights, row).norm() for row in dots])
        found = A.rows_of(dim, 4, divisor, rows=20, seed=7)
        assert found.gradient == pytest.approx(sizes.median().item(), rel=1e-9)
        assert found.mean_gradient == pytest.approx(sizes.mean().item(), rel=1e-9)


def test_softmax_jacobian_in_fractions():
    p = torch.tensor([1 / 8, 2 / 8, 5 / 8], dtype=torch.float64)
    expected = torch.tensor([[7.0, -2, -5], [-2, 12, -10], [-5, -10, 15]], dtype=torch.float64) / 64
    assert_close(A.softmax_jacobian(p), expected)
    assert_close(A.softmax_gradient_norm(p), expected.square().sum().sqrt())
    assert A.softmax_jacobian(p.float()).dtype == torch.float32


@together("epsilon", [1e-3, 1e-9, 1e-15, 1e-30])
def test_softmax_jacobian_keeps_its_digits_near_one_hot(epsilon):
    p = torch.tensor([1 - epsilon, epsilon], dtype=torch.float64)
    size = (1 - epsilon) * epsilon
    expected = size * torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
    assert_close(A.softmax_jacobian(p), expected, 2)
    assert_close(A.softmax_gradient_norm(p), torch.tensor(2 * size, dtype=torch.float64), 4)


def test_softmax_gradient_norm_of_a_long_row_needs_no_matrix():
    p = (3 * draw(2, 200_000)).softmax(-1)
    second, third = p.square().sum(-1), p.pow(3).sum(-1)
    assert_close(A.softmax_gradient_norm(p), (second - 2 * third + second.square()).sqrt(), 100)


def test_one_hot_lets_no_gradient_through():
    assert A.softmax_gradient_norm(torch.tensor([0.0, 1.0, 0.0])) == 0


@given(seeds, st.integers(1, 8), st.floats(0.1, 30))
def test_softmax_gradient_norm_is_bounded(seed, n, divisor):
    p = (draw(n, seed=seed) * 30 / divisor).softmax(-1)
    s = p.square().sum()
    norm = divisor * A.softmax_gradient_norm(p, divisor)
    assert norm <= torch.sqrt(s * (1 - s).clamp(min=0)) + 1e-7
    assert norm <= 0.5 + 1e-12


def test_rows_of_measures_the_rows_it_draws():
    dim, keys, rows = 16, 5, 200
    scores = A.score_rows(dim, keys, rows, torch.Generator().manual_seed(3)) / 2
    found = A.rows_of(dim, keys, 2, rows, seed=3)
    weights = scores.softmax(-1).sort(-1, descending=True).values
    sizes = A.softmax_jacobian(weights, divisor=2).flatten(-2).norm(dim=-1)
    leads = scores.sort(-1, descending=True).values
    leads = leads[:, 0] - leads[:, 1]
    assert found.largest == pytest.approx(weights[:, 0].median().item(), rel=1e-12)
    assert found.gradient == pytest.approx(sizes.median().item(), rel=1e-9)
    assert found.mean_gradient == pytest.approx(sizes.mean().item(), rel=1e-9)
    assert found.lead == pytest.approx(leads.mean().item(), rel=1e-12)
    assert found.close == pytest.approx((leads < 1).sum().item() / rows, rel=1e-12)


@together(("dim", "least", "most"), [(64, 2, 4), (128, 1.1, 2.2), (512, 0.02, 0.1)])
def test_with_sixteen_keys_the_typical_gradient_vanishes_at_512_and_not_at_64(dim, least, most):
    without, scaled = (A.rows_of(dim, 16, divisor, rows=8000) for divisor in (1, math.sqrt(dim)))
    assert least < without.gradient / scaled.gradient < most
    # the mean doesn't vanish, because the gradient is large in a few rows
    assert without.mean_gradient > 3 * scaled.mean_gradient


def test_the_same_rows_whatever_they_are_divided_by():
    assert A.rows_of(64, 16, 1).lead == pytest.approx(8 * A.rows_of(64, 16, 8).lead)
