"""Tests of the means over files and over bands, and of the errors of these means."""

import math
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook.lab.means import band_means, over_files, paired


@given(st.lists(st.tuples(st.floats(0, 8), st.floats(0, 8)), min_size=2, max_size=30))
def test_means_and_their_errors(pairs):
    a, b = torch.tensor(pairs, dtype=torch.float64).T
    for found, values in ((over_files(a), a.tolist()), (paired(a, b), (a - b).tolist())):
        assert found.mean.item() == pytest.approx(statistics.fmean(values), abs=1e-12)
        assert found.error.item() == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-7)


def test_pairs_see_what_means_do_not():
    level = torch.tensor([1.0, 3.0, 6.0, 2.0])
    difference = paired(level + torch.tensor([0.1, 0.12, 0.1, 0.12]), level)
    assert difference.mean > 10 * difference.error
    assert over_files(level).error > 1
    assert paired(torch.ones(3, 5), torch.zeros(3, 5)).mean.tolist() == [1] * 5


def test_bad_means():
    with pytest.raises(ValueError, match=r"two files at least, got shape \(1,\)"):
        over_files(torch.ones(1))
    with pytest.raises(ValueError, match="two files at least"):
        over_files(torch.tensor(1.0))
    with pytest.raises(TypeError, match="values must be a floating-point tensor"):
        over_files(torch.ones(3).long())
    with pytest.raises(ValueError, match=r"same files, got \(3,\) and \(2,\)"):
        paired(torch.ones(3), torch.ones(2))


def test_band_means():
    bits = torch.arange(12.0).expand(2, 12)
    found = band_means(bits, [(0, 4), (4, 12), (8, 13)])
    assert found[:, :2].tolist() == [[1.5, 7.5]] * 2
    assert found[:, 2].isnan().all()
