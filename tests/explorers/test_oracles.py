"""Tests of the oracles themselves, and of how other results are compared with them."""

from __future__ import annotations

import numpy as np
import pytest

from ropebook.explorers.bank import Bank
from ropebook.explorers.distance import Distance
from ropebook.explorers.sweep import Sweep
from tests.explorers.helpers import theta
from tests.explorers.oracles import oracle
from tests.explorers.registry import every


@every
def test_terms_have_entries_of_the_result(entry):
    dials = entry.kind().dials()
    data, terms = oracle(entry.kind).compute(dials), oracle(entry.kind).terms(dials)
    assert set(terms) <= set(data)
    for name in set(data) - set(terms):  # these are strings, or values that are measured rather than computed
        assert not isinstance(data[name], float), name
    for name, term in terms.items():
        assert np.shape(term) in ((), np.shape(data[name])), name
        assert (np.asarray(term) >= 0).all(), name


def test_terms_are_the_sizes_of_what_is_added():
    assert oracle(Distance).terms({**Distance().dials(), "dim": 16})["home"] == pytest.approx(16)
    found = oracle(Sweep).terms({"base": 10.0, "dim": 6, "length": 20})
    sizes = np.abs(np.cos(np.multiply.outer(np.arange(20), theta(6, 10.0)))).mean(-1)
    np.testing.assert_allclose(found["values"], sizes)
    assert found["mean"] == pytest.approx(sizes.mean())
    assert found["least"] in sizes
    assert np.shape(found["curves"]) == (10, 20)
    assert set(oracle(Bank).terms(Bank().dials())["tips"]) == {1.0}
