"""Tests of reading a text byte by byte. The numbers must equal the model's own, and bad arguments must be refused."""

from __future__ import annotations

import math
import zlib

import pytest
import torch
from safetensors.torch import load

from ropebook.lab import int8, reading
from ropebook.lab.bits import position_bits
from ropebook.lab.longer import with_method
from ropebook.lab.model import pretrained
from tests.together import together

TEXT = b"def area(width, height):\n    return width * height\n"


def test_bits_are_those_of_the_evaluation():
    model = pretrained(int8=True)
    tokens = torch.tensor([list(TEXT)])
    torch.testing.assert_close(reading.read(TEXT).bits, position_bits(model, tokens)[0])
    longer = with_method(model, "yarn", {"factor": 2.0, "trained_length": 256})
    mine = reading.read(TEXT, reading.reader(method="yarn", factor=2.0))
    torch.testing.assert_close(mine.bits, position_bits(longer, tokens)[0])
    assert (mine.bits - reading.read(TEXT).bits).abs().max() > 0.1


def test_the_likeliest_byte_and_its_share():
    found = reading.read(TEXT)
    assert found.bits.shape == found.top.shape == found.share.shape == (len(TEXT) - 1,)
    right = found.top == torch.tensor(list(TEXT[1:]))
    torch.testing.assert_close(found.share[right], 2 ** -found.bits[right])
    assert (found.bits[~right] > -found.share[~right].log2()).all()
    assert 0.3 < right.float().mean() < 1


def test_another_base_is_another_model():
    same, other = (reading.read(TEXT, reading.reader(base=base)) for base in (10_000.0, 100.0))
    torch.testing.assert_close(same.bits, reading.read(TEXT).bits)
    assert (same.bits - other.bits).abs().max() > 0.5


@together("method", ["none", "ntk", "rerope"])
def test_attention_is_a_distribution_over_what_came_before(method):
    model = reading.reader(method=method)
    for place in (1, 20, len(TEXT) - 1):
        weights = reading.attention(TEXT, model, 1, 2, place)
        assert weights.shape == (place,)
        assert weights.sum().item() == pytest.approx(1, abs=1e-5)
    first = reading.attention(TEXT, model, 1, 2, 20)
    torch.testing.assert_close(reading.attention(TEXT[:21], model, 1, 2, 20), first)  # later bytes must have no effect


def test_what_is_packed_is_the_model():
    stored = load(zlib.decompress(reading.packed()))
    assert stored["embedding.weight"].dtype == torch.int8
    weights, model = int8.restored(stored), pretrained(int8=True).state_dict()
    assert set(weights) | {"lm_head.weight"} == set(model)
    for name, weight in weights.items():
        assert torch.equal(weight, model[name])


@together(
    ("wrong", "message"),
    [
        (lambda: reading.read("abc"), "text must be bytes, got str"),
        (lambda: reading.read(b"a"), "text must be two bytes or more, got 1"),
        (lambda: reading.reader(base=0.5), "base must be a finite number >= 1"),
        (lambda: reading.reader(method="yarn", factor=0.0), "factor must be a finite number >= 1"),
        (lambda: reading.reader(method="magic"), "method must be one of"),
        (lambda: reading.reader(method="llama3", factor=2.0), "method must be one of 'none', .*, got 'llama3'"),
        (lambda: reading.attention(TEXT, reading.reader(), 3, 0, 1), "layer must be an integer >= 0 and <= 2"),
        (lambda: reading.attention(TEXT, reading.reader(), 0, -1, 1), "head must be an integer >= 0 and <= 3"),
        (lambda: reading.attention(TEXT, reading.reader(), 0, 0, 0), "place must be an integer >= 1 and <= 50"),
        (lambda: reading.reader(factor=math.nan, method="linear"), "factor must be a finite number"),
    ],
)
def test_bad_input_is_named(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        wrong()
