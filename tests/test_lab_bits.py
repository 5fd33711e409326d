"""Tests of bits per byte, compared with logits that are computed for one text at a time."""

import math

import numpy as np
import pytest
import torch

from ropebook.lab import bits as reading
from ropebook.lab.bits import SAMPLED, position_bits, sampled_bits, sampled_lengths, windowed_bits
from ropebook.lab.longer import with_method
from ropebook.lab.model import SCHEMES
from tests.lab_models import (
    METHOD_OPTIONS,
    L,
    bits_from,
    decoded,
    random_windows,
    slow_method,
    tiny,
)
from tests.together import together


@pytest.fixture(scope="module")
def model():
    return tiny()


@torch.no_grad()
def plain_bits(model, window, start=0):
    """Compute -log2 p for each next byte directly from the logits, starting at position ``start``."""
    p = model(window[None, :-1])[0].double().softmax(-1)
    return torch.tensor([-math.log2(p[t, window[t + 1]]) for t in range(start, len(window) - 1)])


# --- Bits per byte ---


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bits_are_minus_log2_of_what_came(scheme, monkeypatch):
    monkeypatch.setattr(reading, "_PIECE", 5)
    length = L if scheme == "learned" else 2 * L + 1
    model, windows = tiny(scheme), random_windows(3, length)
    bits = position_bits(model, windows)
    assert bits.shape == (3, length)
    assert bits.dtype == torch.float32
    for found, window in zip(bits, windows, strict=True):
        assert (found - plain_bits(model, window)).abs().max() < 1e-5
    assert (position_bits(model, windows, batch=2) - bits).abs().max() < 1e-5
    assert not bits.requires_grad
    with pytest.raises(ValueError, match="batch"):
        position_bits(model, windows, batch=0)


def test_windowed_bits_see_the_last_bytes_only(model):
    windows = random_windows(2, 40)
    bits = windowed_bits(model, windows, 8)
    assert bits.shape == (2, 40)
    for found, window in zip(bits, windows, strict=True):
        for t in range(40):
            # the window contains between 5 and 8 bytes, up to and including byte t
            start = 0 if t < 8 else t // 4 * 4 - 4
            wanted = plain_bits(model, window[start : t + 2])[-1]
            assert found[t].item() == pytest.approx(wanted.item(), abs=1e-5)
    assert torch.allclose(windowed_bits(model, windows[:, :9], 8), position_bits(model, windows[:, :9]))


def test_with_small_steps_they_see_nearly_all_of_the_window(model):
    windows = random_windows(2, 24)
    for step in (1, 2, 8):
        bits = windowed_bits(model, windows, 8, step)
        for at in (5, 8, 15, 23):
            seen = at + 1 if at < 8 else 8 - step + 1 + at % step
            alone = position_bits(model, windows[:, at + 1 - seen : at + 2])[:, -1]
            assert torch.allclose(bits[:, at], alone)
    with pytest.raises(ValueError, match="multiples of 3"):
        windowed_bits(model, windows, 8, 3)


@together("length, window, message", [(6, 8, "T = 6"), (42, 8, "multiples of 4"), (40, 7, "even")])
def test_windows_that_do_not_fit(model, length, window, message):
    with pytest.raises(ValueError, match=message):
        windowed_bits(model, random_windows(1, length), window)


def test_sampled_bits_are_the_last_of_each_length(model):
    windows, lengths = random_windows(2, 60), [20, 33, 60]
    ours = with_method(model, "dynamic_ntk", METHOD_OPTIONS["dynamic_ntk"])
    bits = sampled_bits(ours, windows, lengths, last=4)
    assert bits.shape == (2, 3, 4)
    for found, window in zip(bits, windows, strict=True):
        for row, n in zip(found, lengths, strict=True):
            assert (row - plain_bits(ours, window[: n + 1], n - 4)).abs().max() < 1e-5


def test_sampled_bits_are_decoding_with_unrotated_keys_in_one_layer():
    """In a model with one layer, a key depends only on its byte. Rotating the key again therefore gives the same result
    as computing it again.

    In a model with two layers, this isn't true. The keys of the second layer were computed from inputs that depend on
    the frequencies of an earlier step.
    """
    window, lengths, options = random_windows(1, 60)[0], [20, 33, 47, 60], METHOD_OPTIONS["dynamic_ntk"]
    apart = {}
    for n_layers in (1, 2):
        model = tiny(n_layers=n_layers)
        literal = bits_from(decoded(slow_method(model, "dynamic_ntk", options, keep="unrotated"), window[:-1]), window)
        sampled = sampled_bits(with_method(model, "dynamic_ntk", options), window[None], lengths, last=1)
        apart[n_layers] = (sampled[0, :, 0] - literal[[n - 1 for n in lengths]]).abs().max().item()
    assert apart[1] < 1e-5
    assert apart[2] > 1e-3


def test_bad_samples(model):
    with pytest.raises(ValueError, match="last must be an integer >= 1 and <= 5, got 6"):
        sampled_bits(model, random_windows(1, 20), [5, 9], 6)
    with pytest.raises(ValueError, match="lengths must be an integer <= 20, got 21"):
        sampled_bits(model, random_windows(1, 20), [5, 21], 1)


def test_sampled_lengths():
    lengths = sampled_lengths(256, 4096)
    assert len(lengths) == 24
    assert lengths[-1] == 4096
    assert lengths[5::6] == [512, 1024, 2048, 4096]
    assert min(np.diff([256, *lengths])) >= SAMPLED  # no byte is sampled twice
    assert sampled_lengths(100, 110, 2) == []
    for bad, name in [((0, 5, 1), "start"), ((5, 5, 1), "stop"), ((5, 6, 0), "per_octave")]:
        with pytest.raises(ValueError, match=name):
            sampled_lengths(*bad)
