"""Tests specific to the Heads explorer."""

from __future__ import annotations

import json

import pytest
import torch

from ropebook.explorers import heads
from ropebook.explorers.heads import EDGES, HEADS, LAYERS, Heads
from ropebook.real import stored, texts
from tests.explorers import js
from tests.explorers.oracles import computed

MAPS = [stored.heads(text.name) for text in texts.EXPLORATION]


def test_the_page_carries_means_over_the_texts_and_their_ranges():
    found = heads.load()
    assert len(MAPS) == 4
    for name, unit in (("first", 1000), ("previous", 1000), ("entropy", 100)):
        each = torch.stack([getattr(one, name).flatten() for one in MAPS])
        for side, expected in (("mean", each.mean(0)), ("low", each.amin(0)), ("high", each.amax(0))):
            got = torch.tensor(found[name][side], dtype=torch.float64) / unit
            torch.testing.assert_close(got, expected, atol=0.501 / unit, rtol=0)
    expected = torch.stack([one.share() for one in MAPS]).mean(0).flatten(0, 1)
    torch.testing.assert_close(torch.tensor(found["shares"]).double() / 1000, expected, atol=0.000501, rtol=0)


def test_the_bars_add_up_to_all_of_a_heads_weight():
    weights = torch.tensor(heads.load()["weights"])
    assert weights.shape == (LAYERS * HEADS, len(EDGES))
    assert (weights.sum(1) - 1000).abs().max() <= 6  # rounding, twelve times half a thousandth
    # The bins are named by distance: the previous token has a bin of its own, and the last bin ends at the last edge.
    torch.testing.assert_close(
        weights[:, 2].double() / 1000,
        torch.stack([one.previous for one in MAPS]).mean(0).flatten(),
        atol=0.000601,
        rtol=0,
    )
    far = torch.stack([one.by_distance[..., one.edges.index(512) :].sum(-1) for one in MAPS]).mean(0).flatten()
    torch.testing.assert_close(weights[:, -1].double() / 1000, far, atol=0.000601, rtol=0)


def test_the_numbers_are_small_enough_for_a_page():
    assert len(json.dumps(heads.load())) < 60_000


def test_layers_and_heads_are_counted_from_one():
    first, last = computed(Heads, layer=1, head=1), computed(Heads, layer=LAYERS, head=HEADS)
    for data, at in ((first, (0, 0)), (last, (-1, -1))):
        expected = torch.stack([one.entropy[at] for one in MAPS])
        assert data["entropy"] == pytest.approx(
            [one.item() for one in (expected.mean(), expected.min(), expected.max())], abs=0.00501
        )
    assert computed(Heads, layer=1, head=2) != first != computed(Heads, layer=2, head=1)


def test_a_head_in_words():
    cases = [Heads(layer=17, head=1).dials(), Heads(layer=1, head=1).dials()]
    previous = js.describe(Heads, cases)[0]
    assert previous.startswith("In head 1 of layer 17, the fast half of the pairs, 0 to 15, has 37% of the lengths")
    assert previous.endswith("Pair 25 alone has 42%.")
    body = "return input.map((values) => figure.compute(values)).map((data) => spreadOf(data));"
    # A line doesn't break within a range.
    assert js.inside(Heads, "return ranged([0.78, 0.77, 0.8]);") == ["78%", "77–\u206080%"]
    for found, case in zip(js.inside(Heads, body, cases), cases, strict=True):
        mean, low, high = computed(Heads, layer=case["layer"], head=case["head"])["entropy"]
        assert found[:2] == ["Entropy", f"{mean:.1f}"]
        equal = round(torch.tensor(mean).exp().item())
        assert found[2] == f"{low:.1f}–\u2060{high:.1f} nats, ≈ {equal} equal weights"


def test_keys_walk_through_the_map():
    cases = [
        ("ArrowRight", {"layer": 29, "head": 5}, {"layer": 30, "head": 5}),
        ("ArrowRight", {"layer": 30, "head": 5}, {"layer": 30, "head": 5}),
        ("ArrowLeft", {"layer": 1, "head": 5}, {"layer": 1, "head": 5}),
        ("ArrowUp", {"layer": 7, "head": 2}, {"layer": 7, "head": 1}),
        ("ArrowDown", {"layer": 7, "head": 9}, {"layer": 7, "head": 9}),
        ("Home", {"layer": 17, "head": 3}, {"layer": 1, "head": 3}),
        ("End", {"layer": 17, "head": 3}, {"layer": 30, "head": 3}),
        ("PageDown", {"layer": 17, "head": 3}, {"layer": 17, "head": 9}),
        ("a", {"layer": 17, "head": 3}, None),
    ]
    body = "return input.map(([key, at]) => moved(key, at));"
    assert js.inside(Heads, body, [(key, at) for key, at, _ in cases]) == [goal for *_, goal in cases]
