"""Tests of the base that a given context needs, compared with 40-digit arithmetic, published numbers and simple
searches."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropebook import decay as D
from tests.sinusoidal_helpers import exact_kernel
from tests.together import together


@together(("dim", "base"), [(128, 4300.0), (128, 27000.0), (128, 10000.0), (64, 500.0), (2, 1.0)])
def test_reach_against_forty_digits(dim, base):
    reach = D.reach(base, dim, 5000)
    assert exact_kernel(reach, dim, base) < -1e-6
    near = D.distance_kernel(range(reach), dim, base)
    # float64 can distinguish all of these values from 0; the smallest is checked with 40 digits
    assert near.min() >= 1e-6
    assert exact_kernel(int(near.argmin()), dim, base) > 0


def test_reach_stops_at_the_limit():
    assert D.reach(1e6, 128, 1000) == 1000
    assert D.reach(4300, 128, 1077) == 1077
    assert D.reach(4300, 128, 10**9) == 1077


def test_the_grid_of_the_paper():
    grid = D.significant_grid(2, 1e3, 1e5)
    assert grid[:3] == [1000, 1100, 1200]
    assert grid[89:92] == [9900, 10000, 11000]
    assert len(grid) == 181
    assert grid == [float(f"{mantissa}e{power}") for power in (2, 3) for mantissa in range(10, 100)] + [1e5]
    assert all(published in D.significant_grid(2, 1e3, 1e9) for published in D.PUBLISHED_BASES.values())


@given(st.integers(1, 4), st.floats(0, 6), st.floats(0, 1))
def test_a_grid_holds_exactly_the_numbers_of_so_many_digits(digits, power, width):
    low = 10**power
    high = low * 10**width
    grid = D.significant_grid(digits, low, high)
    assert grid == sorted(set(grid))
    assert all(low <= number <= high for number in grid)
    assert all(float(f"{number:.{digits - 1}e}") == number for number in grid)
    step = 10 ** (math.floor(math.log10(low)) - digits + 1)
    assert len(grid) >= math.floor((high - low) / step / 10)


def test_a_grid_has_at_most_six_digits():
    assert D.significant_grid(6, 1, 1.00002) == [1, 1.00001, 1.00002]
    with pytest.raises(ValueError, match="digits must be an integer >= 1 and <= 6, got 7"):
        D.significant_grid(7, 1, 2)
    assert D.significant_grid(1, 5, 5) == [5]  # the grid includes both of its ends
    assert D.significant_grid(1, 1, 10**9)[-1] == 10**9


def test_labels_are_counted_in_1024_unless_told():
    assert (D.tokens("4K"), D.tokens("1m"), D.tokens("128000"), D.tokens("128,000"), D.tokens(128000)) == (
        4096, 1048576, 128000, 128000, 128000
    )  # fmt: skip
    assert (D.tokens("4k"), D.tokens("128k", 1000), D.tokens("1M"), D.tokens("2M", 1000)) == (
        4096, 128_000, 2**20, 2_000_000)  # fmt: skip


def test_a_grid_below_ten_has_fractions():
    assert D.significant_grid(2, 1, 1.35) == [1.0, 1.1, 1.2, 1.3]
    assert D.significant_grid(1, 900, 1000) == [900, 1000]


@together(
    ("label", "thousand", "ours", "negative"),
    [("1k", 1024, 4.3e3, None), ("2k", 1024, 1.6e4, None), ("4k", 1024, 2.9e4, 4079), ("4k", 1000, 2.7e4, None),
     ("8k", 1024, 8.4e4, None), ("16k", 1024, 3.5e5, 12223), ("32k", 1024, 6.3e5, 27685)],
)  # fmt: skip
def test_the_search_on_the_grid_of_the_paper(label, thousand, ours, negative):
    published = D.PUBLISHED_BASES[label]
    length = D.tokens(label, thousand)
    grid = D.significant_grid(2, ours / 1.5, 1e6)  # the benchmark covers the whole grid, starting at 1000
    found = D.compare(length, published, grid)
    assert found == (length, published, ours, ours == published, negative)
    if negative is not None:
        assert exact_kernel(negative, 128, published) < -1e-3


@together(
    ("label", "base"),
    [
        ("2k", 1.16e4),
        ("4k", 26_953),
        ("8k", 8.38e4),
        ("16k", 2.317e5),
        ("32k", 6.3e5),
        ("64k", 2.1e6),
        ("128k", 4.87e6),
    ],
)
def test_the_smaller_bases_of_a_finer_search(label, base):
    # For these lengths, Su (2024) gives 1.2e4, 2.7e4, 8.4e4, 2.3e5, 6.3e5, 2.1e6 and 4.9e6, all to two digits.
    length = D.tokens(label)
    assert D.reach(base, 128, length) == length


def test_the_admissible_bases_are_no_interval():
    grid = D.significant_grid(3, 4000, 7000)
    found = D.runs(grid, [D.reach(base, 128, 1024) for base in grid], 1024)
    assert [(run.first, run.last) for run in found] == [(4300, 4330), (5610, 5640), (6020, 7000)]
    assert D.smallest_base(1024, grid) == 4300
    assert D.smallest_base(1024, grid[:30]) is None


@given(st.lists(st.integers(1, 10), max_size=30))
def test_runs_are_those_of_a_plain_search(reaches):
    grid = [float(j + 1) for j in range(len(reaches))]
    found = D.runs(grid, reaches, 5)
    admissible = {base for base, reached in zip(grid, reaches, strict=True) if reached >= 5}
    inside = [base for base in grid if any(run.first <= base <= run.last for run in found)]
    assert set(inside) == admissible
    assert sum(run.count for run in found) == len(admissible)
    assert all(after.first - before.last > 1 for before, after in itertools.pairwise(found))
