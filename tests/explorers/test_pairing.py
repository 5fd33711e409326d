"""Tests specific to the Pairing explorer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ropebook.explorers.pairing import Pairing
from tests.explorers import js
from tests.explorers.helpers import theta
from tests.explorers.oracles import computed, oracle


def onnx_scores(q: torch.Tensor, k: torch.Tensor, m: int, interleaved: bool) -> np.ndarray:
    angles = torch.outer(torch.arange(65.0), torch.tensor(theta(len(q), 1e4), dtype=torch.float32))

    def turned(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        x = x.float().expand(1, 1, len(positions), -1)
        places = positions[None]
        return torch.onnx.ops.rotary_embedding(x, angles.cos(), angles.sin(), places, interleaved=interleaved)[0, 0]

    return (turned(k, torch.arange(65)) @ turned(q, torch.tensor([m]))[0]).numpy()


@pytest.mark.parametrize("dim", [4, 10, 32])
@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("permute_q", [False, True])
@pytest.mark.parametrize("permute_k", [False, True])
def test_scores_agree_only_if_q_k_and_the_rotation_do(dim, layout, permute_q, permute_k):
    m, n = 23, 8
    found = computed(Pairing, dim=dim, pairing=layout, permute_q=permute_q, permute_k=permute_k, m=m, n=n)
    halves = [*range(0, dim, 2), *range(1, dim, 2)]
    orders = [halves if permute else list(range(dim)) for permute in (permute_q, permute_k)]
    assert [found["qChannels"], found["kChannels"]] == orders
    q, k = oracle(Pairing).vectors(dim)
    stored = [vector[order] for vector, order in zip((q, k), orders, strict=True)]
    assert [found["q"], found["k"]] == [vector.tolist() for vector in stored]
    expected = onnx_scores(*stored, m, layout == "interleaved")
    np.testing.assert_allclose(found["scores"], expected, atol=1e-4)
    np.testing.assert_allclose(found["references"], onnx_scores(q, k, m, True), atol=1e-4)
    assert (found["score"], found["reference"]) == (found["scores"][n], found["references"][n])
    gaps = np.abs(np.subtract(found["scores"], found["references"]))
    assert found["difference"] == gaps.max()
    agree = permute_q == permute_k == (layout == "half")
    assert (gaps.max() < 1e-12) == agree
    if not agree:
        assert gaps.max() > 1
    # at n = m the rotations cancel, so all that matters is which entries are multiplied together
    assert (gaps[m] < 1e-12) == (permute_q == permute_k)


def test_the_terms_of_a_score():
    figure = Pairing(dim=6)
    terms = oracle(type(figure)).terms(figure.dials())
    q, k = oracle(Pairing).vectors(6)
    assert terms["score"] == terms["difference"] == pytest.approx((q.norm() * k.norm()).item())
    assert terms["q"] == q[[0, 2, 4, 1, 3, 5]].abs().tolist()
    assert [terms[name] for name in ("qChannels", "kChannels", "links")] == [0, 0, 0]


def test_the_orders_in_words():
    kinds = [(q, k, layout) for q in (False, True) for k in (False, True) for layout in ("interleaved", "half")]
    cases = [Pairing(permute_q=q, permute_k=k, pairing=layout).dials() for q, k, layout in kinds]
    said = dict(zip(kinds, js.inside(Pairing, "return input.map((d) => describe(compute(d), d));", cases), strict=True))
    for (q, k, layout), text in said.items():
        if q != k:
            wrong = "so the scores are wrong whatever the rotation does, even at n = m."
            assert text == f"Only {'q' if q else 'k'} is permuted, {wrong}"
        elif q == (layout == "half"):
            stored = "half-split" if q else "interleaved"
            assert text == f"q, k and the rotation are all {stored}, so both curves agree at every position of the key."
        else:
            stored, taken = ("half-split", "interleaved") if q else ("interleaved", "half-split")
            assert text.startswith(
                f"q and k are {stored}, but the rotation is {taken}. At n = m you can’t see the mistake"
            )
            assert text.endswith("because there the two rotations cancel; everywhere else the score is wrong.")
