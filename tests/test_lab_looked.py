"""Tests of what pages say about a run in results/inside.json, compared with the models that the stored numbers came
from."""

import pytest
import torch

from ropebook.lab import inside, looked
from ropebook.lab.bits import position_bits
from ropebook.lab.longer import with_method
from tests.lab_models import L, tiny
from tests.test_lab_inside import texts


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.fixture(scope="module")
def run(model):
    return inside.measure(model, texts(4, 2 * L + 9))


def test_shares_are_of_the_products_of_lengths(model, run):
    norms = inside.pair_norms(model, texts(4, 2 * L + 9)[:, :L])
    found = looked.shares(run)
    assert found.shape == norms.q.shape
    assert torch.allclose(found.sum(-1), torch.ones(2, 2).double())
    product = norms.q * norms.k
    expected = product[1, 0, 2] / product[1, 0].sum()
    assert found[1, 0, 2].item() == pytest.approx(expected.item(), abs=1e-4)


def test_heads_are_counted(model, run):
    attention = inside.attention_by_distance(model, texts(4, 2 * L + 9)[:, :L])
    heads = inside.heads(attention)
    assert looked.falling(run) == (sum(head.slope < 0 for head in heads), 4)
    assert looked.near(run) == pytest.approx(1)  # all of these texts are shorter than 32 bytes
    one = {"heads": [{"slope": -0.1, "near_32": 0.5}, {"slope": 0.2, "near_32": 0.25}]}
    assert (looked.falling(one), looked.near(one)) == ((1, 2), 0.375)


def test_what_is_broken_and_what_is_cured(model, run):
    rows = texts(4, 2 * L + 9)
    plain = position_bits(model, rows).double()
    slower = position_bits(with_method(model, "proportional", {"fraction": 0.5}), rows).double()
    apart = plain[:, L:].mean() - plain[:, :L].mean()
    assert looked.broken(run) == pytest.approx(apart.item(), abs=1e-4)
    gain = (plain[:, L:].mean() - slower[:, L:].mean()) / apart
    assert looked.cured(run, 0.5) == pytest.approx(gain.item(), rel=1e-2)
    with pytest.raises(ValueError, match="fraction must be one of"):
        looked.cured(run, 0.3)
