"""Tests of the recommendations. Each recommended value must be the smallest that reaches the length, and each entry
must come with its evidence."""

from __future__ import annotations

import re

import pytest

from ropebook import extrapolation as X
from ropebook.sinusoidal import inv_freq
from tests.links import LINK, lost, prose, typed_numbers
from tests.together import together

PAGE = "choose.md"
SETTINGS = [(4096, 16384, 128, 1e4), (2048, 4096, 64, 1e4), (8192, 131072, 128, 5e5), (512, 513, 8, 1e4)]


@together(("trained", "target", "dim", "base"), SETTINGS)
def test_the_factor_is_the_least_with_which_no_pair_goes_beyond(trained, target, dim, base):
    theta = inv_freq(dim, base)
    least = X.least_ntk_factor(theta, trained, target)

    def beyond(factor):
        return X.overshoot(theta, trained, target, X.NTKAware(factor)(theta)[0]).max()

    assert beyond(least * (1 + 1e-9)) < 1e-6
    assert beyond(max(1.0, 0.999 * least)) > 0


@together(("trained", "target", "dim", "base"), SETTINGS)
def test_the_group_is_the_least_that_reaches(trained, target, dim, base):
    window = trained // 2
    group = X.least_group(trained, target, window)
    assert X.SelfExtend(window, group).reach(trained) >= target
    assert group == 1 or X.SelfExtend(window, group - 1).reach(trained) < target


@pytest.mark.parametrize("group", [2, 5])
def test_a_group_that_reaches_just_the_target_is_enough(group):
    target = X.SelfExtend(64, group).reach(256)
    assert X.least_group(256, target, 64) == group
    assert X.least_group(256, target + 1, 64) == group + 1


@together(("trained", "target", "dim", "base"), SETTINGS)
def test_what_is_recommended_does_what_it_is_recommended_for(trained, target, dim, base):
    found = {choice.when: choice.method for choice in X.choices(trained, target, dim=dim, base=base)}
    theta = inv_freq(dim, base)
    assert found["as it is, keys cached"].facts.cache_safe
    assert not found["as it is, short texts untouched"].facts.changes_within
    assert found["as it is, keys cached"].factor == target / trained
    assert found["as it is, two tables of scores"].reach(trained) >= target
    dynamic = found["as it is, short texts untouched"]
    assert (dynamic(theta, trained)[0] == theta).all()
    changed, _ = found["only the base can be set"](theta)
    assert X.overshoot(theta, trained, target, changed).max() < 1e-6


def test_pairs_that_have_all_turned_need_no_factor():
    assert X.least_ntk_factor(inv_freq(8, 10.0), 4096, 16384) == 1.0


def test_without_more_words_it_is_for_heads_of_128_and_base_10000():
    assert X.choices(4096, 16384) == X.choices(4096, 16384, dim=128, base=10_000.0)
    changed = [X.choices(4096, 16384, dim=126), X.choices(4096, 16384, base=10_001.0)]
    assert all(other != X.choices(4096, 16384) for other in changed)


def test_what_needs_nothing_or_cannot_be_done_is_refused():
    with pytest.raises(ValueError, match="target_length must be an integer >= 4097, got 4096"):
        X.choices(4096, 4096)
    with pytest.raises(ValueError, match="trained_length must let the first pair complete a turn, got 4"):
        X.least_ntk_factor(inv_freq(8), 4, 16)


def test_every_link_lands_and_every_number_is_glued():
    assert lost(PAGE) == []


def test_every_entry_of_the_table_leads_to_its_evidence():
    table = [line for line in prose(PAGE).splitlines() if line.startswith("|")][2:]
    assert len(table) >= 8
    for line in table:
        _, *entries = (cell.strip() for cell in line.strip("|").split(" | "))
        assert len(entries) == 4
        for entry in entries:
            assert LINK.search(entry) or re.search(r"\{eq\}", entry), entry
            assert typed_numbers(re.sub(r"\*[^*]*\*", "", entry)) == []
