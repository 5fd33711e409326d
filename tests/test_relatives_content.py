"""Tests of schemes that depend on the content (learned absolute positions, Transformer-XL, CoPE) and of multiplicative
schemes (RoPE, xPos)."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers.models.llama4.configuration_llama4 import Llama4TextConfig
from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

from ropebook import derivation, sinusoidal
from ropebook import relatives as R
from tests.helpers import largest, random

PLACES = torch.arange(7)


def drawn(scheme: R.Scheme) -> R.Scheme:
    torch.manual_seed(3)
    for weight in scheme.parameters():
        torch.nn.init.normal_(weight)
    return scheme.double()


def test_absolute_positions_are_added_before_the_projections():
    scheme = drawn(R.Absolute(2, 4, length=7, width=6))
    x = random(7, 6)
    q, k = (torch.einsum("hdw,sw->hsd", w, x) for w in (scheme.w_q, scheme.w_k))
    y = x + scheme.table
    whole = [torch.einsum("hdw,sw->hsd", w, y) for w in (scheme.w_q, scheme.w_k)]
    expected = whole[0] @ whole[1].mT / 2
    assert largest(scheme.score(q, k, PLACES, PLACES) - expected) < 1e-12


def test_a_place_beyond_the_table_has_no_vector():
    scheme = R.Absolute(2, 4, length=6, width=6)
    q = random(2, 7, 4)
    with pytest.raises(ValueError, match=r"m must lie between 0 and 5 \(6 vectors were learned, no more\), got 6"):
        scheme.score(q, q, PLACES, PLACES)
    with pytest.raises(ValueError, match="n must lie between 0 and 5"):
        scheme.score(q[:, :6], q, PLACES[:6], PLACES)
    with pytest.raises(TypeError, match=r"m must be integers, got dtype torch\.float32"):
        scheme.score(q[:, :6], q[:, :6], PLACES[:6].float(), PLACES[:6])


def plain_xl(scheme, q, k, m, n):
    """Compute one score from the formula in the paper, with loops over entries. Its four terms are a, b, c and d."""
    heads, dim = scheme.u.shape
    theta = [10000 ** (-2 * i / scheme.width) for i in range(scheme.width // 2)]
    waves = [math.sin((m - n) * t) for t in theta] + [math.cos((m - n) * t) for t in theta]
    found = []
    for h in range(heads):
        r = [sum(w * x for w, x in zip(row, waves, strict=True)) for row in scheme.w_r[h].tolist()]
        product = lambda a, b: sum(x * y for x, y in zip(a, b, strict=True)) / math.sqrt(dim)  # noqa: E731
        asked, key = q[h, m].tolist(), k[h, n].tolist()
        u, v = scheme.u[h].tolist(), scheme.v[h].tolist()
        found.append([product(asked, key), product(asked, r), product(u, key), product(v, r)])
    return np.array(found)


def test_transformer_xl_term_by_term():
    scheme = drawn(R.TransformerXL(2, 4, width=6))
    q, k = random(2, 2, 7, 4)
    terms = scheme.terms(q, k, PLACES, PLACES)
    scores = scheme.score(q, k, PLACES, PLACES)
    for m, n in ((0, 0), (5, 2), (2, 5), (6, 0)):
        expected = plain_xl(scheme, q, k, m, n)
        for at, term in enumerate(terms):
            np.testing.assert_allclose(term[:, m, n].detach(), expected[:, at], atol=1e-12)
        np.testing.assert_allclose(scores[:, m, n].detach(), expected.sum(1), atol=1e-12)


def test_the_shift_gives_what_the_direct_sum_gives():
    scheme = drawn(R.TransformerXL(2, 4, width=6))
    q, k = random(2, 3, 2, 7, 4)
    direct = scheme.terms(q, k, PLACES, PLACES).total
    assert largest(scheme.score_by_shift(q, k) - direct) < 1e-12
    assert largest(scheme.score(q, k, PLACES, PLACES) - direct) < 1e-12


def test_the_shift_is_that_of_xlnet():
    """XLNet's function expects rows for one more distance, T, but never reads them."""
    x = random(2, 3, 5, 9)
    theirs = XLNetRelativeAttention.rel_shift_bnij(torch.cat((random(2, 3, 5, 1, seed=1), x), -1), klen=5)
    assert torch.equal(R.shifted(x), theirs)
    by_index = torch.stack([x[..., m, 4 - m : 9 - m] for m in range(5)], -2)
    assert torch.equal(R.shifted(x), by_index)


def test_with_v_alone_transformer_xl_is_a_bias_and_with_its_cosines_sandwich():
    dim = 6
    scheme = R.TransformerXL(1, dim, width=dim).double()
    with torch.no_grad():
        scheme.w_r.copy_(torch.eye(dim))
        scheme.v.copy_(torch.tensor([0.0] * 3 + [1.0] * 3))
    q = torch.zeros(1, 7, dim, dtype=torch.float64)
    found = scheme.score(q, random(1, 7, dim), PLACES, PLACES) * math.sqrt(dim) - dim / 2
    assert largest(found - 8 * R.Sandwich(1, dim).bias(PLACES, PLACES)) < 1e-12


def test_cope_counts_the_separators():
    """The gates are 1 at full stops and 0 elsewhere. A position is therefore the number of full stops between the key
    and the query."""
    stops = torch.tensor([0.0, 1, 0, 0, 1, 0, 1])
    k = torch.stack([200 * stops - 100, torch.zeros(7)], -1)[None].double()
    q = torch.tensor([1.0, 0.0]).double().expand(1, 7, 2)
    places = R.CoPE(2, places=8).places(q, k, PLACES, PLACES)[0]
    for m in range(7):
        assert places[m].tolist() == pytest.approx([stops[n : m + 1].sum().item() for n in range(7)], abs=1e-9)


def test_cope_by_hand():
    """Because q·k = 0, every gate is ½, and the position is (Δ + 1)/2. We set e[p] = (p², 0). Half-way between two
    positions, the vector is the mean of their two vectors."""
    scheme = R.CoPE(2, places=4).double()
    with torch.no_grad():
        scheme.table.copy_(torch.tensor([[0.0, 0], [1, 0], [4, 0], [9, 0]]))
    q = torch.tensor([2.0, 0.0]).double().expand(1, 9, 2)
    k = torch.zeros(1, 9, 2, dtype=torch.float64)
    found = scheme.score(q, k, torch.arange(9), torch.arange(9))[0, 8].detach() * math.sqrt(2)
    expected = [18, 18, 18, 18, 2 * 6.5, 2 * 4, 2 * 2.5, 2 * 1, 2 * 0.5]
    assert found.tolist() == pytest.approx(expected)


def test_what_comes_after_the_query_opens_no_gate():
    scheme = R.CoPE(4, places=5).double()
    q, k = random(2, 1, 7, 4)
    whole = scheme.places(q, k, PLACES, PLACES)
    part = scheme.places(q[:, :4], k[:, :4], PLACES[:4], PLACES[:4])
    assert torch.equal(whole[:, :4, :4], part)
    with pytest.raises(ValueError, match="n must be in order"):
        scheme.score(q, k, PLACES, PLACES.flip(0))


def test_rope_is_that_of_the_derivation():
    q, k = random(2, 2, 7, 8)
    found = R.Rope(8, base=100).score(q, k, PLACES, PLACES + 2)
    for m, n in ((0, 0), (6, 1), (2, 5)):
        expected = derivation.score(q[:, m], k[:, n], m, n + 2, 100) / math.sqrt(8)
        assert largest(found[:, m, n] - expected) < 1e-12


# The values of XPOS(4) from torchscale 0.3.0 in float64: q with downscale=False, k with downscale=True, and then q·k/2.
QUERIES = [[1.0, 2, 3, 4], [4, -3, 2, 1], [0.5, 0, -1, 2]]
KEYS = [[2.0, -1, 0, 1], [1, 1, 1, 1], [3, 0, -2, 0.25]]
TORCHSCALE = [
    [2.0, 4.742055844369444, -0.47747115954563524],
    [4.313350024696267, 2.0, -2.4351757515135906],
    [0.554821525661999, 0.8291560433515761, 1.9999999999999998],
]
ONES = {(599, 0): 0.45484750437083926, (0, 599): -0.5711048325037389, (300, 200): 1.1707885481891276}


def test_xpos_has_the_scores_of_torchscale():
    q, k = (torch.tensor([one], dtype=torch.float64) for one in (QUERIES, KEYS))
    found = R.XPos(4).score(q, k, [0, 1, 2], [0, 1, 2])[0]
    np.testing.assert_allclose(found, TORCHSCALE, atol=1e-12)
    ones = torch.ones(1, 600, 4, dtype=torch.float64)
    found = R.XPos(4).score(ones, ones, torch.arange(600), torch.arange(600))[0]
    for (m, n), expected in ONES.items():
        assert found[m, n].item() == pytest.approx(expected, rel=1e-12)


def test_xpos_overflows_where_it_says():
    for dtype in (torch.float16, torch.float32, torch.bfloat16):
        scheme = R.XPos(64)
        last = scheme.reach(dtype)
        factors = scheme.zeta()[0] ** (-torch.tensor([last, last + 1]).double() / 512)
        limit = torch.finfo(dtype).max
        assert factors[0] <= limit < factors[1]


def test_in_turn_is_llama_4s_order():
    config = Llama4TextConfig(num_hidden_layers=10)
    layers = R.in_turn([R.Rope(8)] * 3 + [R.Nothing()], 10)
    assert [int(isinstance(layer, R.Rope)) for layer in layers] == config.no_rope_layers


def test_sandwich_is_the_product_of_two_sinusoids():
    waves = sinusoidal.encoding(PLACES, 12, dtype=torch.float64)
    expected = (waves @ waves.T - 6) / (8 * 2 / 3)
    assert largest(R.Sandwich(3, 12).bias(PLACES, PLACES)[1] - expected) < 1e-12
