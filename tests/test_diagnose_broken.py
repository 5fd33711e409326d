"""Tests of the diagnosis of functions that raise, return no numbers, return random ones or overwrite their input. The
diagnosis returns a verdict, and never raises an error itself."""

import re

import pytest
import torch

from ropebook import rope
from ropebook.diagnose import diagnose
from ropebook.diagnose.bands import banded
from tests.together import together

HOW = {"call": "q, k, positions", "order": "batch heads seq dim", "dim": 32}
WHOLE = {**HOW, "layout": "half", "base": 10_000.0, "length": 1024, "rotary_dim": 32}


def sound(q, k, positions):
    angles = positions.double()[..., None] * rope.inv_freq(32)
    angles = angles[:, None] if angles.ndim == 3 else angles
    cos, sin = angles.cos(), angles.sin()

    def turned(x):
        first, second = rope.split(x, "half")
        return rope.join(first * cos - second * sin, first * sin + second * cos, "half").to(x.dtype)

    return turned(q), turned(k)


def broken(name, said, **more):
    def add(function):
        BROKEN.append(pytest.param(function, name, said, more, id=function.__name__))
        return function

    return add


BROKEN = []


@broken("random", "11% of entries come back as zeros")
def dropped(q, k, positions):
    q, k = sound(q, k, positions)
    return torch.dropout(q, 0.1, True), k


@broken("changed_inputs", "1, 2, 3, 4, 5 have become 2, 3, 4, 5, 6")
def positions_counted_on(q, k, positions):
    found = sound(q, k, positions)
    positions += 1
    return found


@broken("changed_inputs", "q that it is given is written over")
def queries_doubled(q, k, positions):
    found = sound(q, k, positions)
    q.mul_(2)
    return found


@broken("raises", "a token that comes alone, at position 24: raises RuntimeError: several, please")
def refuses_one_token(q, k, positions):
    if q.shape[2] == 1:
        raise RuntimeError("several, please")
    return sound(q, k, positions)


@broken("other_shape", "an axis of size 1 is lost")
def squeezes_one_token(q, k, positions):
    q, k = sound(q, k, positions)
    return (q[:, :, 0], k) if q.shape[2] == 1 else (q, k)


@broken("too_short", "up to 63 are answered, and from 64 on they are not")
def table_of_64(q, k, positions):
    if positions.max() >= 64:
        raise IndexError("out of range")
    return sound(q, k, positions)


@broken("too_short", "positions 0 to 20, raise IndexError: out of range; up to position 19")
def text_of_20(q, k, positions):
    if len(positions) > 20:
        raise IndexError("out of range")
    return sound(q, k, positions)


@broken("zeros", "from position 64 on .* zeros.*it covers only 64 positions")
def zeros_past_64(q, k, positions):
    kept = (positions < 64)[..., None]
    kept = kept[:, None] if kept.ndim == 3 else kept
    return tuple(x * kept for x in sound(q, k, positions))


@broken("not_finite", "in entries 1 to 15, 17 to 31|every pair but the first")
def negative_base(q, k, positions):
    theta = torch.tensor(-10_000.0).double() ** (-torch.arange(0, 32, 2).double() / 32)
    angles = positions.double()[..., None] * theta
    angles = angles[:, None] if angles.ndim == 3 else angles
    cos, sin = angles.cos(), angles.sin()
    return tuple(
        rope.join(a * cos - b * sin, a * sin + b * cos, "half") for a, b in (rope.split(x, "half") for x in (q, k))
    )


@broken("depends_on_text", "in a text of 65 tokens .* in token 64, it comes back as it went in")
def blocks_of_64(q, k, positions):
    q2, k2 = sound(q, k, positions)
    if q.shape[2] > 64:
        end = q.shape[2] // 64 * 64
        q2[:, :, end:] = q[:, :, end:]
    return q2, k2


@broken("other_heads", "32 heads of q .* in heads 16 to 31")
def sixteen_heads(q, k, positions):
    q2, k2 = sound(q, k, positions)
    q2[:, 16:] = q[:, 16:]
    return q2, k2


@broken("other_rows", "in a batch of 8 rows.* in rows 2 to 7, it comes back as it went in")
def two_rows(q, k, positions):
    q2, k2 = sound(q, k, positions)
    k2[2:] = k[2:]
    return q2, k2


@broken("memory_layout", "transposed, not contiguous")
def reads_memory_in_order(q, k, positions):
    if not q.is_contiguous():
        q = q.transpose(1, 2).contiguous().view_as(q)
    return sound(q, k, positions)


@broken("not_linear", "300 times as long")
def clipped_at_100(q, k, positions):
    return sound(q.clamp(-100, 100), k, positions)


@broken("other_dtype", "vectors of float32 .* as it went in")
def leaves_float32_alone(q, k, positions):
    return (q, k) if q.dtype == torch.float32 else sound(q, k, positions)


@pytest.mark.parametrize(("function", "name", "said", "more"), BROKEN)
def test_a_function_that_breaks_is_named(function, name, said, more):
    report = diagnose(function, **{**WHOLE, **more})
    assert report.verdict == "wrong"
    assert re.search(said, report.mistakes.get(name, "")), report.mistakes


def test_a_rotation_in_place_has_to_be_declared():
    def in_place(q, k, positions):
        for x, turned in zip((q, k), sound(q, k, positions), strict=True):
            x.copy_(turned)
        return q, k

    report = diagnose(in_place, **WHOLE, in_place=True)
    assert report.sound
    assert report.evidence["in place"].startswith("q and k are rotated in place")
    report = diagnose(in_place, **WHOLE)
    assert not report.mistakes
    assert report.verdict == "undetermined"
    assert "Declare in_place=True" in report.undetermined["in_place"]


def test_positions_that_all_are_one_off_cannot_be_judged():
    """No score changes, but the rotation would disagree with keys that other code has put in a cache."""
    report = diagnose(lambda q, k, positions: sound(q, k, positions - 1), **WHOLE)
    assert report.verdict == "undetermined"
    assert "1 position earlier than the one that is given" in report.undetermined["start"]


@together(
    ("share", "said"),
    [
        ([1, 1, 0.3, 0.6, 0, 0, 0, 0], "the middle band .* is reversed"),
        ([0, 0, 0.3, 0.6, 1, 1, 1, 1], "Fast and slow pairs are exchanged"),
        ([1, 1, 1, 1, 0, 0, 0, 0], "not blended but kept"),
        ([1, 1, 0.7, 0.4, 1, 1, 1, 1], "the slow pairs 4 to 7 are kept, not divided"),
        ([0, 0, 0.7, 0.4, 0, 0, 0, 0], "the fast pairs 0 and 1 are divided by 4 like the slow ones"),
    ],
)
def test_the_band_that_is_wrong_is_named(share, said):
    plain = rope.inv_freq(16, 10_000.0)

    def scaled(kept):
        kept = torch.tensor(kept).double()
        return plain * (kept + (1 - kept) / 4)

    right = scaled([1, 1, 0.7, 0.4, 0, 0, 0, 0])
    found = banded(scaled(share), right, 10_000.0)
    assert found is not None
    assert re.search(said, found), found
    assert banded(right, right, 10_000.0) is None


def test_a_function_that_never_works_is_refused_only_if_call_and_order_are_declared():
    def broken(q, k, positions):
        raise RuntimeError("no kernel")

    call, order = {"call": "q, k, positions"}, {"order": "batch heads seq dim"}
    for how in ({}, call, order):
        with pytest.raises(ValueError, match=r"could not be called in any way[\s\S]*no kernel"):
            diagnose(broken, dim=8, **how)
    assert "raises" in diagnose(broken, dim=8, **call, **order).mistakes
