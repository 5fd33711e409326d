"""Tests of confidence intervals over seeds and files. They are compared with tables of Student's t and with results
worked out by hand, and we check how often they contain the true value."""

import math

import pytest
import torch

from ropebook.lab import intervals as I
from ropebook.lab.means import over_files
from tests.together import together

# values from printed tables of Student's t
TABLE = [
    (0.975, 1, 12.7062),
    (0.975, 2, 4.3027),
    (0.95, 2, 2.9200),
    (0.995, 3, 5.8409),
    (0.975, 10, 2.2281),
    (0.995, 30, 2.7500),
    (0.9995, 5, 6.8688),
    (0.975, 120, 1.9799),
    (0.975, math.inf, 1.9600),
]


@together(("probability", "freedom", "printed"), TABLE)
def test_student_is_that_of_the_tables(probability, freedom, printed):
    assert I.student(probability, freedom) == pytest.approx(printed, abs=5.1e-5)


def test_student_has_no_step_where_its_form_changes():
    assert I.student(0.999, 300) == pytest.approx(I.student(0.999, 300.001), rel=1e-6)
    # the limits are the values for 2 and for 3 degrees of freedom
    assert 4.3027 > I.student(0.975, 2.1) > I.student(0.975, 2.9) > 3.1824


def test_without_any_spread_between_seeds_it_is_the_interval_over_files():
    files = torch.tensor([1.0, 4.0, 2.0, 7.0, 3.0, 3.5]).double()
    found = I.crossed(files.repeat(3, 1))
    assert found.error == pytest.approx(over_files(files).error.item())
    assert found.freedom == pytest.approx(5)
    assert found.high - found.mean == pytest.approx(2.5706 * found.error, rel=1e-4)


def test_without_any_spread_between_files_it_is_the_interval_over_seeds():
    seeds = torch.tensor([1.0, 2.0, 4.0]).double()
    found = I.crossed(seeds[:, None].repeat(1, 9))
    assert found.error == pytest.approx(over_files(seeds).error.item())
    assert found.freedom == pytest.approx(2)
    assert (found.high - found.low) / 2 == pytest.approx(4.3027 * found.error, rel=1e-4)


def test_a_table_by_hand():
    # the row means are 2 and 4, the column means are 2, 3 and 4, and all residuals are 0
    found = I.crossed(torch.tensor([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]))
    squares_of_seeds, squares_of_files = 3 * 2.0, 2 * 2.0 / 2
    total = squares_of_seeds + squares_of_files
    assert found.mean == 3
    assert found.error == pytest.approx(math.sqrt(total / 6))
    assert found.freedom == pytest.approx(total**2 / (squares_of_seeds**2 / 1 + squares_of_files**2 / 2))


def test_files_that_a_seed_lacks_are_left_out():
    table = torch.tensor([[1.0, 2.0, 9.0, 4.0], [2.0, 1.0, math.nan, 5.0]])
    assert I.crossed(table) == I.crossed(table[:, [0, 1, 3]])


def test_nothing_but_noise_is_not_surer_than_its_largest_part():
    table = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    found = I.crossed(table)
    assert found.error > 0
    same = I.crossed(torch.ones(3, 5))
    assert (same.error, same.low, same.high) == (0.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("seed_spread", "file_spread", "rest"),
    [(1, 0, 0.1), (0, 1, 0.1), (1, 1, 1), (0.1, 1, 2), (0, 0, 1), (0.3, 0.3, 0.3)],
)
def test_how_often_it_holds_the_truth(seed_spread, file_spread, rest):
    draws = torch.Generator().manual_seed(0)
    held, tries = 0, 400
    for _ in range(tries):
        table = (
            seed_spread * torch.randn(3, 1, generator=draws)
            + file_spread * torch.randn(1, 12, generator=draws)
            + rest * torch.randn(3, 12, generator=draws)
        )
        found = I.crossed(table.double())
        held += found.low <= 0 <= found.high
    error = math.sqrt(0.95 * 0.05 / tries)
    assert held / tries > 0.95 - 3 * error
    if seed_spread == 1 and not file_spread:  # if only the seeds vary, the interval must not be too wide either
        assert held / tries < 0.95 + 3 * error


def test_files_alone_would_promise_too_much():
    """In the first experiment, we averaged over seeds and computed the interval over files. If seeds differ, that
    interval is too narrow."""
    draws = torch.Generator().manual_seed(1)
    held = 0
    for _ in range(300):
        table = torch.randn(3, 1, generator=draws) + 0.3 * torch.randn(3, 12, generator=draws)
        mean, error = over_files(table.double().mean(0))
        held += abs(mean) <= 2 * error
    assert held / 300 < 0.5


def test_p_values_are_those_of_the_intervals():
    """Test intervals that end exactly at 0, at level 1 − p, and intervals that end at the margin, at level 1 − 2p."""
    for freedom, p in ((2.0, 0.01), (7.3, 0.05), (200.0, 0.2)):
        t = I.student(1 - p / 2, freedom)
        assert I.p_different(I.Interval(-t, 0, 0, 1.0, freedom)) == pytest.approx(p, rel=1e-6)
        assert I.p_different(I.Interval(t + 0.5, 0, 0, 1.0, freedom), 0.5) == pytest.approx(p, rel=1e-6)
        one_sided = I.student(1 - p, freedom)
        found = I.Interval(-0.3, 0, 0, 1.0, freedom)
        assert I.p_equivalent(found, 0.3 + one_sided) == pytest.approx(p, rel=1e-6)
        assert I.p_equivalent(found, 0.3) == 1.0
    assert I.p_different(I.Interval(0.0, 0, 0, 2.0, 5.0)) == pytest.approx(1.0)
    # with so many degrees of freedom, the p-value is that of a normal distribution
    assert I.p_different(I.Interval(2.0, 0, 0, 1.0, 1e9)) == pytest.approx(0.0455, abs=1e-4)


def test_what_does_not_vary_is_sure():
    same, zero = I.Interval(0.01, 0, 0, 0.0, math.inf), I.Interval(0.0, 0, 0, 0.0, math.inf)
    assert (I.p_different(same), I.p_different(zero)) == (0.0, 1.0)
    assert (I.p_equivalent(same, 0.02), I.p_equivalent(same, 0.005)) == (0.0, 1.0)


def test_a_mean_on_the_margin_is_not_within_it():
    for mean in (0.25, -0.25):
        assert I.p_equivalent(I.Interval(mean, 0, 0, 1.0, 5.0), 0.25) == 1.0
        assert I.p_equivalent(I.Interval(mean, 0, 0, 0.0, math.inf), 0.25) == 1.0


# In section 3.2 of Benjamini and Hochberg 1995, four of these fifteen p-values pass at 0.05.
PUBLISHED = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528]
PUBLISHED += [0.7590, 1.0]


def test_the_published_example_of_discoveries():
    assert I.discoveries(PUBLISHED) == [True] * 4 + [False] * 11
    assert I.discoveries(PUBLISHED[::-1]) == [False] * 11 + [True] * 4
    assert I.discoveries([0.04]) == [True]
    assert I.discoveries([0.02, 0.04]) == [True, True]  # if a larger p-value passes, the smaller ones pass as well
    assert I.discoveries([0.03, 0.04]) == [True, True]
    assert I.discoveries([]) == []


def test_what_has_no_spread_to_measure_is_refused():
    for bad in (torch.zeros(1, 5), torch.zeros(3, 1), torch.full((3, 3), math.nan)):
        with pytest.raises(ValueError, match="values must be of two seeds and two files at least"):
            I.crossed(bad)
    with pytest.raises(ValueError, match=r"values must be of shape \(seeds, files\)"):
        I.crossed(torch.zeros(3))
    with pytest.raises(ValueError, match=r"level must be .*got 1"):
        I.crossed(torch.zeros(3, 3), 1.0)
    with pytest.raises(ValueError, match=r"freedom must be 1 at least, got 0\.5"):
        I.student(0.9, 0.5)
    with pytest.raises(ValueError, match=r"probability must be .*got 0\.5"):
        I.student(0.5, 2)


def test_it_is_seldom_very_sure_of_what_is_not_so():
    """Corrections for many comparisons depend on very small p-values. Without a real difference, these must be rare,
    at least if seeds vary less than files do."""
    draws = torch.Generator().manual_seed(0)
    tries, called = 600, {0.01: 0, 0.001: 0}
    for _ in range(tries):
        seeds = 0.4 * torch.randn(3, 1, generator=draws, dtype=torch.float64)
        p = I.p_different(I.crossed(seeds + torch.randn(3, 37, generator=draws, dtype=torch.float64)))
        for level in called:
            called[level] += p < level
    assert called[0.01] / tries < 0.012
    assert called[0.001] / tries < 0.005
