"""Tests of the pictures and lists on the page about order, for a synthetic result."""

import numpy as np
import pytest
import torch

from ropebook.extrapolation import make
from ropebook.lab import extensions, rule_two
from ropebook.lab import order_pictures as O
from ropebook.lab.causal import half_turn_pair
from tests.together import together

CHOSEN = {"ntk_by_parts": 2, "yarn": 4, "self_extend": 128, "rerope": 192}
METHODS = {one.id: one for one in extensions.extensions(CHOSEN)}


def a_map(seed, gain):
    plain = {"order": 0.1, "order within": 0.8, "found order": 0.7, "found order within": 0.9}
    bands = {band: {name: at for name, at in plain.items()} for band in ("fast", "middle")}
    bands["middle"] = {name: gain + seed for name in plain}
    products = np.zeros((2, 2, 4, 2))
    products[1, 0, 2] = [3, 4]
    return {
        "model": f"rope-100-{seed}",
        "plain": plain,
        "pairs": {way: {name: [x, x + gain] for name, x in plain.items()} for way in ("halved", "still", "doubled")},
        "bands": {"fast": [0], "middle": [1, 2, 3]},
        "of_bands": {way: bands for way in ("halved", "still", "doubled")},
        "products": {"first": products.tolist(), "last": (0 * products).tolist()},
    }


FOUND = {"maps": {f"rope-100-{seed}": a_map(seed, 0.5) for seed in (1, 0)}}


def test_a_change_is_less_the_model_as_it_is():
    maps = O.mapped(FOUND, "rope-100")
    assert [one["model"] for one in maps] == ["rope-100-0", "rope-100-1"]
    assert np.allclose(O.change(maps, "halved", "order"), [[0, 0.5]] * 2)
    with pytest.raises(ValueError, match="id must be one of"):
        O.mapped(FOUND, "none")


def test_the_map_has_a_row_for_each_pair_and_a_column_for_each_seed(monkeypatch):
    drawn = []
    monkeypatch.setattr(O, "display_figure", lambda fig, alt, caption: drawn.append(fig))
    maps = {name: one | {"periods": [100, 300]} for name, one in FOUND["maps"].items()}
    where = {"device": "a processor", "date": "2026-01-01", "torch": "2", "command": "none", "seed": None}
    O.causal_map({"maps": maps, "provenance": where}, ["rope-100"], "halved", "order", "alt", "A caption.")
    [ax] = drawn[0].axes
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert {(at, row): written[at + 0.5, row + 0.5] for at in (0, 1) for row in (0, 1)} == {
        **{(at, 0): "0" for at in (0, 1)},
        **{(at, 1): "50" for at in (0, 1)},
    }
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1"]
    assert "RoPE, base 100" in [text.get_text() for text in ax.texts]
    assert [list(line.get_ydata()) for line in ax.lines] == [[1, 1]] * 2


def test_the_head_that_tells_has_the_largest_contrast():
    one = FOUND["maps"]["rope-100-0"]
    assert O.telling_head(one, 2) == (1, 0)
    assert O.contrast(one, 1, 0).tolist() == [0, 0, 3 + 4j, 0]


def test_bands_are_means_over_seeds_and_stand_beside_the_model_as_it_is():
    columns = O.of_bands(FOUND, "rope-100")
    assert columns["pairs"] == ["as trained", "fast: 0 to 0", "middle: 1 to 3"]
    assert np.allclose(columns["order, halved"], [0.1, 0.1, 1.0])
    assert np.allclose(columns["records, still"], [0.9, 0.9, 1.0])


@together(("id", "times"), [("linear/8", 8), ("yarn/8", 8), ("log_n", 1), ("ntk/8", None)])
def test_periods_under_a_method(id, times):
    plain, slowed = O.period_with(None, 8), O.period_with(METHODS[id], 8)
    if times is None:
        theta = make("ntk", factor=8).rotary(32)["scaling"](torch.tensor([10_000 ** (-i / 16) for i in range(16)]), 1)[
            0
        ]
        assert slowed == pytest.approx(2 * np.pi / theta[8].item())
    else:
        assert slowed == pytest.approx(times * plain)
    assert O.period_with(METHODS["self_extend/8"], 8) is None


def test_the_second_rule_asks_for_the_pair_that_the_period_predicts():
    for id, pair in rule_two.PAIRS.items():
        base = {"rope-10000-3200": 1e4, "rope-500000": 5e5}[id]
        assert half_turn_pair(torch.tensor([base ** (-i / 16) for i in range(16)])) == pair
