"""Tests specific to the Saturation explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ropebook.explorers.saturation import Saturation
from tests.explorers import draws, js
from tests.explorers.oracles import oracle


@pytest.mark.parametrize("scaled", [False, True])
def test_saturation_is_a_softmax_and_its_jacobian(scaled):
    found = oracle(Saturation).compute({**Saturation().dials(), "dim": 48, "n_keys": 5, "draw": 3, "scaled": scaled})
    query = draws.normals("query 3", 512)[:48]
    keys = np.stack([draws.normals(f"key 3 {n}", 512)[:48] for n in range(5)])
    divisor = math.sqrt(48) if scaled else 1
    dots = torch.from_numpy(keys @ query)
    scores = dots / divisor
    weights = scores.exp() / scores.exp().sum()
    jacobian = torch.autograd.functional.jacobian(lambda dots: (dots / divisor).softmax(-1), dots)
    np.testing.assert_allclose(found["scores"], scores, atol=1e-13)
    np.testing.assert_allclose(found["weights"], weights, atol=1e-14)
    assert found["gradient"] == pytest.approx(jacobian.square().sum().sqrt().item(), rel=1e-10)


def test_the_median_over_all_draws():
    found = oracle(Saturation).compute({**Saturation().dials(), "dim": 1, "n_keys": 7, "draw": 0, "scaled": True})
    assert found["medianDims"][:8] == [1, 2, 3, 4, 5, 6, 8, 10]
    assert found["medianDims"][-1] == 512
    at = found["medianDims"].index(64)
    for name, scaled in (("medianScaled", True), ("medianRaw", False)):
        dials = Saturation(dim=64, n_keys=7, scaled=scaled).dials()
        sizes = [oracle(Saturation).compute({**dials, "draw": draw})["gradient"] for draw in range(16)]
        assert found[name][at] == pytest.approx(np.median(sizes), rel=1e-12)


def test_terms_of_saturation():
    dials = Saturation(dim=3, n_keys=2, draw=1, scaled=False).dials()
    query = draws.normals("query 1", 3)
    expected = [np.abs(query * draws.normals(f"key 1 {n}", 3)).sum() for n in range(2)]
    np.testing.assert_allclose(oracle(Saturation).terms(dials)["scores"], expected)
    np.testing.assert_allclose(
        oracle(Saturation).terms({**dials, "scaled": True})["scores"], np.array(expected) / math.sqrt(3)
    )


def test_traits_are_observed_from_both_sides():
    figure, seen = Saturation(), []
    figure.observe(lambda change: seen.append((change["name"], change["new"])), ["dim", "scaled"])
    figure.dim = 128
    figure.set_state({"dim": 256, "scaled": False})  # the page sends a state like this
    figure.dim = np.int64(256)
    assert seen == [("dim", 128), ("dim", 256), ("scaled", False)]
    assert type(figure.dim) is int
    assert {name: figure.get_state()[name] for name in figure.dial_traits()} == figure.dials()
    assert figure.get_state()["_esm"] == Saturation._esm
    assert figure.get_state()["alt"] == figure.alt


def test_how_the_keys_share_the_weight_in_words():
    weights = [[0.1] * 10, [0.3, 0.25, *[0.09] * 5], [0.94, 0.06], [0.96, 0.04]]
    body = """return input.map((weights) => {
      const values = { dim: 8, n_keys: weights.length, scaled: true };
      return describe({ weights }, values).match(/^With d = 8 and division by √d, (.*)\\.$/)[1];
    });"""
    assert js.inside(Saturation, body, weights) == [
        "10 keys share the weight",
        "several of 7 keys share the weight",
        "one of 2 keys gets most of the weight",
        "one of 2 keys gets nearly all of the weight",
    ]
