"""Tests of the interface that all schemes share, of the arguments that each scheme refuses, of attention without any
positions, and of the table."""

from __future__ import annotations

import math

import pytest
import torch

from ropebook import relatives as R
from tests.helpers import largest, random
from tests.together import together

HEADS, DIM, SEQ = 3, 8, 6
PLACES = torch.arange(SEQ)


def schemes() -> dict[str, R.Scheme]:
    """Return one scheme of each kind, with learned numbers that differ from their initial values."""
    torch.manual_seed(0)
    made = {
        "nothing": R.Nothing(),
        "absolute": R.Absolute(HEADS, DIM, length=10, width=12),
        "alibi": R.ALiBi(HEADS),
        "signed": R.ALiBi(HEADS, signed=True),
        "t5": R.T5Buckets(HEADS, bidirectional=True),
        "sandwich": R.Sandwich(HEADS, DIM),
        "kerple": R.Kerple(HEADS),
        "kerple power": R.Kerple(HEADS, "power", p=0.5),
        "fire": R.Fire(HEADS, length=4.0),
        "transformer_xl": R.TransformerXL(HEADS, DIM, width=12),
        "cope": R.CoPE(DIM, places=4),
        "rope": R.Rope(DIM),
        "xpos": R.XPos(DIM),
    }
    for name in ("absolute", "t5", "transformer_xl", "cope"):
        for weight in made[name].parameters():
            torch.nn.init.normal_(weight)
    return made


every = pytest.mark.parametrize("name", schemes())


@every
def test_a_score_is_of_every_head_query_and_key_and_of_no_other_text(name):
    scheme = schemes()[name]
    q, k = random(2, 2, HEADS, SEQ, DIM)
    found = scheme.score(q, k[..., :4, :], PLACES, PLACES[:4])
    assert found.shape == (2, HEADS, SEQ, 4)
    assert found.dtype == torch.float64
    alone = scheme.score(q[1], k[1, :, :4], PLACES, [0, 1, 2, 3])
    assert largest(found[1] - alone) < 1e-12
    assert scheme.score(q.float(), k.float(), PLACES, PLACES).dtype == torch.float32


@every
def test_the_later_queries_have_the_scores_they_had(name):
    """With a cache, all keys are passed, but only the queries at the end of the text."""
    scheme = schemes()[name]
    q, k = random(2, HEADS, SEQ, DIM)
    whole = scheme.score(q, k, PLACES, PLACES)
    assert largest(scheme.score(q[:, 4:], k, PLACES[4:], PLACES) - whole[:, 4:]) < 1e-12


@every
def test_who_knows_the_place_and_who_the_distance(name):
    scheme = schemes()[name]
    q, k = random(2, HEADS, SEQ, DIM)
    places = torch.arange(4)
    q, k = q[:, :4], k[:, :4]
    moved = scheme.score(q, k, places + 3, places + 3) - scheme.score(q, k, places, places)
    assert (largest(moved) > 1e-3) == (name in ("absolute", "fire"))


@every
def test_vectors_and_positions_that_do_not_fit_are_refused(name):
    scheme = schemes()[name]
    q = random(HEADS, SEQ, DIM)
    for m, n, message in (
        (PLACES[:3], PLACES, r"m must have shape \(6,\), one position for each vector, got \(3,\)"),
        (PLACES, PLACES[None], r"n must have shape \(6,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            scheme.score(q, q, m, n)
    with pytest.raises(ValueError, match=r"k must have q's shape except for its length; .* got \(2, 6, 8\)"):
        scheme.score(q, q[:2], PLACES, PLACES)
    with pytest.raises(ValueError, match=r"q must be \(…, heads, seq, dim\), got \(6, 8\)"):
        scheme.score(q[0], q[0], PLACES, PLACES)
    with pytest.raises(TypeError, match="k must be a floating-point tensor"):
        scheme.score(q, q.long(), PLACES, PLACES)


@every
def test_a_scheme_for_other_heads_is_refused(name):
    scheme = schemes()[name]
    q = random(HEADS + 1, SEQ, DIM)
    if name in ("nothing", "cope", "rope", "xpos"):
        assert scheme.score(q, q, PLACES, PLACES).shape == (HEADS + 1, SEQ, SEQ)
        return
    with pytest.raises(ValueError, match=r"q must have .*as the scheme has, got"):
        scheme.score(q, q, PLACES, PLACES)
    if name == "transformer_xl":
        with pytest.raises(ValueError, match=rf"q must have .*, got \({HEADS + 1}, {DIM}\)$"):
            scheme.score(q, q, PLACES, PLACES)


@together(
    ("call", "message"),
    [
        (lambda: R.ALiBi(0), "n_heads must be an integer >= 1, got 0"),
        (lambda: R.T5Buckets(0), "n_heads must be"),
        (lambda: R.T5Buckets(2, buckets=1), "buckets must be an integer >= 2, got 1"),
        (lambda: R.T5Buckets(2, buckets=2, bidirectional=True), "buckets must be an integer >= 4, got 2"),
        (lambda: R.t5_bucket(torch.arange(3), 7, bidirectional=True), "buckets must be an even integer >= 2, got 7"),
        (lambda: R.t5_bucket(torch.tensor([2**40])), "apart must lie between"),
        (lambda: R.T5Buckets(2, farthest=16), "farthest must be an integer >= 17, got 16"),
        (lambda: R.Sandwich(2, 7), "dim must be an even integer >= 2, got 7"),
        (lambda: R.Kerple(2, "linear"), "kind must be one of 'log', 'power', got 'linear'"),
        (lambda: R.Kerple(2, "power", p=2.5), "p must be a finite number >= 0.01 and <= 2, got 2.5"),
        (lambda: R.Kerple(2, a=0), "a must be a finite number >= 0.01, got 0"),
        (lambda: R.Fire(2, length=0), "length must be a finite number > 0, got 0"),
        (lambda: R.Absolute(2, 4, 0, 4), "length must be an integer >= 1, got 0"),
        (lambda: R.TransformerXL(2, 4, 5), "dim must be an even integer >= 2, got 5"),
        (lambda: R.CoPE(4, 1), "places must be an integer >= 2, got 1"),
        (lambda: R.XPos(5), "dim must be an even integer >= 2, got 5"),
        (lambda: R.in_turn([], 3), "schemes must hold at least one scheme, got none"),
        (lambda: R.in_turn([R.Nothing()], 0), "n_layers must be an integer >= 1, got 0"),
        (lambda: R.shifted(torch.zeros(3, 6)), r"x must be \(…, T, 2T - 1\), got \(3, 6\)"),
        (lambda: R.first_share(0), "length must be an integer >= 1, got 0"),
        (lambda: R.cost("rotary", 1, 2, 3), "name must be one of 'nothing', .*, got 'rotary'"),
    ],
)
def test_what_is_out_of_range_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_distance_that_is_no_number_has_no_bucket():
    assert R.t5_bucket(torch.tensor([1.5, -0.5]), bidirectional=True).tolist() == [1, 16]
    with pytest.raises(ValueError, match=r"apart must lie between .*, got nan"):
        R.t5_bucket(torch.tensor([math.nan]))


def test_a_scheme_without_parts_has_no_score():
    q = random(1, 2, 4)
    with pytest.raises(NotImplementedError):
        R.Scheme().score(q, q, [0, 1], [0, 1])
    with pytest.raises(NotImplementedError):
        R.Bias().score(q, q, [0, 1], [0, 1])


def test_without_positions_the_score_is_that_of_the_vectors():
    q, k = random(2, HEADS, SEQ, DIM)
    expected = torch.einsum("hmd,hnd->hmn", q, k) / math.sqrt(DIM)
    assert largest(R.Nothing().score(q, k, PLACES, PLACES) - expected) < 1e-12


def test_what_a_causal_mask_tells_of_the_place():
    assert R.first_share(100).tolist() == pytest.approx([1 / (m + 1) for m in range(100)])


def test_the_table_has_a_row_for_each_and_a_cost_for_each():
    columns = R.facts_table()
    assert columns["scheme"] == [facts.title for facts in R.FACTS.values()]
    assert {len(cells) for cells in columns.values()} == {len(R.FACTS)}
    for name in R.FACTS:
        assert R.cost(name, 2, 8, 16).learned >= 0


def test_learned_numbers_are_counted_as_they_are():
    heads, dim, length = 4, 8, 32
    width = heads * dim
    made = {
        "alibi": R.ALiBi(heads),
        "t5": R.T5Buckets(heads),
        "sandwich": R.Sandwich(heads, dim),
        "kerple": R.Kerple(heads),
        "fire": R.Fire(heads),
        "cope": R.CoPE(dim, 64),
        "rope": R.Rope(dim),
        "xpos": R.XPos(dim),
        "nothing": R.Nothing(),
        "absolute": R.Absolute(heads, dim, length, width),
        "transformer_xl": R.TransformerXL(heads, dim, width),
    }
    for name, scheme in made.items():
        assert R.cost(name, heads, dim, length).learned == scheme.size(), name


def test_what_is_held_is_as_large_as_what_is_made():
    heads, dim, length = 2, 8, 16
    q = random(heads, length, dim)
    places = torch.arange(length)
    for name, scheme in {"alibi": R.ALiBi(heads), "sandwich": R.Sandwich(heads, dim)}.items():
        added = scheme.parts(q, q, places, places).added
        assert R.cost(name, heads, dim, length).held == added.numel()


def test_a_fused_kernel_reads_what_stands_in_the_formula_of_the_bias():
    heads, dim, length = 4, 8, 32
    assert R.cost("alibi", heads, dim, length).fused == R.ALiBi(heads).slopes.numel()
    for name, scheme in {"t5": R.T5Buckets(heads), "kerple": R.Kerple(heads), "fire": R.Fire(heads)}.items():
        assert R.cost(name, heads, dim, length).fused == scheme.size(), name
    rows = R.by_distance(R.Sandwich(heads, dim), length) * torch.arange(1, heads + 1)[:, None]
    assert torch.allclose(rows, rows[:1].expand_as(rows))  # all heads have the same row, up to a constant factor
    assert R.cost("sandwich", heads, dim, length).fused == rows[0].numel()
    for name in ("transformer_xl", "cope"):  # these schemes depend on the content
        assert R.cost(name, heads, dim, length).fused is None
