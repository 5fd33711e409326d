"""Tests of giving a single pair a different frequency: what changes, where it changes, and what stays the same."""

import pytest
import torch

from ropebook import rope
from ropebook.lab import causal
from ropebook.lab.causal import bands, changed
from ropebook.lab.frequencies import rotary_of, with_frequencies
from ropebook.lab.heads import queries_and_keys
from ropebook.lab.longer import with_method
from tests.lab_models import METHOD_OPTIONS, tiny
from tests.together import together

TEXT = torch.arange(24)[None] + 40


@torch.no_grad()
@together("factor", causal.WAYS.values())
def test_pairs_have_another_frequency_in_every_layer(factor):
    model = tiny()
    theta = rotary_of(model).inv_freq
    theta[1] *= factor
    theta[3] *= factor
    expected = with_frequencies(model, theta)(TEXT)
    assert torch.equal(changed(model, [1, 3], factor)(TEXT), expected)
    assert not torch.equal(model(TEXT), expected)


@torch.no_grad()
def test_one_head_alone():
    model = tiny()
    plain, everywhere, one = (
        queries_and_keys(m, TEXT) for m in (model, changed(model, [0], 0.0), changed(model, [0], 0.0, (0, 1)))
    )
    for x, y, z in zip(plain[0], everywhere[0], one[0], strict=True):
        assert torch.equal(z[:, 0], x[:, 0])
        assert torch.equal(z[:, 1], y[:, 1])
        assert not torch.equal(x[:, 1], y[:, 1])
    # a change in the second layer must not affect the first layer
    later = changed(model, [0], 0.0, (1, 0))
    assert torch.equal(queries_and_keys(later, TEXT)[0][0], plain[0][0])
    assert not torch.equal(later(TEXT), model(TEXT))


def test_a_model_is_left_as_it_was():
    model = tiny()
    before = model(TEXT)
    changed(model, [0], 0.0, (0, 0))
    assert torch.equal(model(TEXT), before)
    assert changed(model, [0], 0.0).embedding.weight is model.embedding.weight


@together(
    ("given", "message"),
    [
        (([4], 0.0), "pair must be an integer >= 0 and <= 3, got 4"),
        (([0], -0.5), "factor must be .* -0.5"),
        (([0], 0.0, (2, 0)), "layer must be an integer >= 0 and <= 1, got 2"),
        (([0], 0.0, (0, 2)), "head must be an integer >= 0 and <= 1, got 2"),
    ],
)
def test_what_there_is_not(given, message):
    with pytest.raises(ValueError, match=message):
        changed(tiny(), *given)


def test_a_model_that_does_not_rotate_everywhere():
    with pytest.raises(ValueError, match="model must rotate in every layer, got scheme 'alternate'"):
        changed(tiny("alternate"), [0], 0.0)
    with pytest.raises(ValueError, match="model must rotate its queries and keys, got scheme 'none'"):
        changed(tiny("none"), [0], 0.0)


def test_bands_are_all_pairs_by_their_periods():
    theta = 2 * torch.pi / torch.tensor([6.0, 256.0, 257.0, 2048.0, 2049.0])
    assert bands(theta.double()) == {"fast": [0, 1], "middle": [2, 3], "slow": [4]}
    assert bands(torch.ones(2)) == {"fast": [0, 1], "middle": [], "slow": []}


@torch.no_grad()
def test_frequencies_that_follow_the_length_are_fixed_at_one():
    model = with_method(tiny(), "dynamic_ntk", METHOD_OPTIONS["dynamic_ntk"])
    fixed = causal.at_length(model, 24)
    assert torch.allclose(fixed(TEXT), model(TEXT))
    assert not torch.allclose(fixed(TEXT[:, :20]), model(TEXT[:, :20]))
    plain = tiny()
    assert causal.at_length(plain, 24) is plain


def test_the_fastest_pair_of_half_a_turn_at_most():
    theta = 2 * torch.pi / torch.tensor([6.0, 511.0, 9000.0, 512.0]).double()
    assert causal.half_turn_pair(theta) == 3
    assert causal.half_turn_pair(theta, 4499) == 2
    assert causal.half_turn_pair(theta, 5000) is None
    for base, pair in ((100, None), (10_000, 8), (500_000, 6)):
        assert causal.half_turn_pair(rope.inv_freq(32, base)) == pair
