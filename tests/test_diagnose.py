"""The diagnosis finds correct rotations sound and names each mistake, whatever the rotation's calling convention."""

import functools
import itertools
import math
import os
import random as chance
import re
import subprocess
import sys
from pathlib import Path

import pytest
import rotary_embedding_torch
import torch

from ropebook import efficient, extrapolation, mistakes, precision, rope
from ropebook.diagnose import diagnose
from ropebook.diagnose.__main__ import main
from ropebook.diagnose.calling import ORDERS, outputs
from ropebook.diagnose.frequencies import read
from tests.together import together

ROOT = Path(__file__).resolve().parent.parent
LAYOUTS = ("interleaved", "half")


def turned(x, angles, layout="interleaved"):
    first, second = rope.split(x, layout)
    cos, sin = angles.cos(), angles.sin()
    return rope.join(first * cos - second * sin, first * sin + second * cos, layout).to(x.dtype)


def angles_of(x, positions, base=10000.0):
    return rope.angles(positions, x.shape[-1], base)


# --- The gallery ------------------------------------------------------------------------------------------------------


def draws(count=2):
    """Random dimensions and bases, including extreme ones."""
    generator = chance.Random(0)
    yield from ((4, 2.0), (6, 10000.0), (64, 1e7))
    for _ in range(count):
        yield 2 * generator.randint(2, 20), round(math.exp(generator.uniform(1, 16)), 3)


NAMES = ["correct", *mistakes.MISTAKES]


@pytest.mark.parametrize("name", NAMES)
def test_every_mistake_is_named_and_no_other(name):
    """The layouts alternate, so that each mistake and each dimension is tried with both of them."""
    mistake = mistakes.correct if name == "correct" else mistakes.MISTAKES[name]
    for turn, (dim, base) in enumerate(draws(), NAMES.index(name)):
        layout = LAYOUTS[turn % 2]
        function = functools.partial(mistake, base=base, layout=layout)
        report = diagnose(function, dim=dim, base=base, layout=layout)
        assert list(report.mistakes) == ([] if name == "correct" else [name]), (dim, base, layout)
        assert report.sound == (name == "correct")
        assert report.rotary_dim == dim
        if name not in ("other_layout", "swapped_layout"):
            assert report.layout == layout


@together(
    "dim, base, layout",
    [
        (dim, base, LAYOUTS[turn % 2])
        for turn, (dim, base) in enumerate(itertools.product([4, 10, 64], [20.0, 10000.0, 123456.0]))
    ],
)
def test_what_is_measured_is_what_was_put_in(dim, base, layout):
    report = diagnose(functools.partial(mistakes.correct, base=base, layout=layout), dim=dim)
    assert report.layout == layout
    assert report.base == pytest.approx(base, rel=1e-9)
    assert report.scaling is None
    assert (report.inv_freq - rope.inv_freq(dim, base)).abs().max() < 1e-12
    assert layout in report.evidence["layout"]
    assert "counter-clockwise" in report.evidence["direction"]
    assert report.evidence["unit"] == "radians"


# --- Other mistakes, in functions as they are written -----------------------------------------------------------------


def clockwise(q, k, positions):
    angles = -angles_of(q, positions)
    return turned(q, angles), turned(k, angles)


def opposite_signs(q, k, positions):
    angles = angles_of(q, positions)
    return turned(q, angles), turned(k, -angles)


def missing_minus(q, k, positions):
    cos, sin = rope.cos_sin(positions, rope.inv_freq(q.shape[-1]), torch.float64)
    cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)

    def swap(x):
        return torch.cat(x.chunk(2, -1)[::-1], -1)

    return q * cos + swap(q) * sin, k * cos + swap(k) * sin


def swapped_cos_sin(q, k, positions):
    angles = angles_of(q, positions)
    return tuple(efficient.rotate_by_pairs(x, angles.sin(), angles.cos()) for x in (q, k))


def cosine_alone(x, positions):
    cos = angles_of(x, positions).cos()
    return x * torch.cat((cos, cos), -1)


def nothing_turns(q, k, positions):
    return q, k


def key_only(q, k, positions):
    return q, turned(k, angles_of(k, positions))


def two_bases(q, k, positions):
    return turned(q, angles_of(q, positions)), turned(k, angles_of(k, positions, 500.0))


def two_layouts(q, k, positions):
    angles = angles_of(q, positions)
    return turned(q, angles), turned(k, angles, "half")


def ignored_gaps(q, k, positions):
    angles = angles_of(q, positions[0] + torch.arange(len(positions)))
    return turned(q, angles), turned(k, angles)


def ignored_start(q, k, positions):
    angles = angles_of(q, positions - positions[0])
    return turned(q, angles), turned(k, angles)


def half_positions(q, k, positions):
    angles = angles_of(q, positions.bfloat16().double())
    return turned(q, angles), turned(k, angles)


def half_frequencies(q, k, positions):
    theta = rope.inv_freq(q.shape[-1]).bfloat16().double()
    angles = positions[:, None] * theta
    return turned(q, angles), turned(k, angles)


def fp16_table(q, k, positions):
    tables = precision.rounded_cos_sin(positions, q.shape[-1], dtype=torch.float16, rounded="table")
    return tuple(efficient.rotate_by_pairs(x, *tables) for x in (q, k))


def longer(q, k, positions):
    angles = angles_of(q, positions)
    return 1.2 * turned(q, angles), 1.2 * turned(k, angles)


def no_pairs(x, positions):
    return turned(x, angles_of(x, positions)).cumsum(-1)


def own_layout(x, positions):
    angles = angles_of(x, positions)
    first, second = x.chunk(2, -1)
    mirrored = second.flip(-1)
    y, z = first * angles.cos() - mirrored * angles.sin(), first * angles.sin() + mirrored * angles.cos()
    return torch.cat((y, z.flip(-1)), -1)


def not_linear(x, positions):
    return turned(x, angles_of(x, positions)) * (1 + (x.abs().sum(-1, keepdim=True) - 1).abs())


def turned_start(q, k, positions):
    angles = angles_of(q, positions) + torch.linspace(0.1, 1.0, q.shape[-1] // 2)
    return turned(q, angles), turned(k, angles)


def uneven_angles(q, k, positions):
    angles = angles_of(q, positions.double().sqrt())
    return turned(q, angles), turned(k, angles)


def lengths(q, k, positions):
    """The tables of xPos."""
    angles, scale = angles_of(q, positions), 0.99 ** positions.double()[:, None]
    return turned(q, angles) * scale, turned(k, angles) / scale


OTHERS = [clockwise, opposite_signs, missing_minus, swapped_cos_sin, nothing_turns, key_only, two_bases, two_layouts]
OTHERS += [ignored_gaps, ignored_start, half_positions, half_frequencies, fp16_table, longer, no_pairs, own_layout]
OTHERS += [lengths, not_linear, turned_start, uneven_angles]


@together("function, dim", [(function, (8, 32)[turn % 2]) for turn, function in enumerate(OTHERS)])
def test_what_the_gallery_lacks_is_named_too(function, dim):
    report = diagnose(function, dim=dim)
    expected = {function.__name__}
    if function is uneven_angles:
        assert expected <= set(report.mistakes)
        return
    assert set(report.mistakes) == expected


def test_a_cosine_alone_misses_its_sine():
    assert list(diagnose(cosine_alone).mistakes) == ["missing_sin"]


def test_another_base_is_told_with_the_scaling_that_would_explain_it():
    scaled = functools.partial(mistakes.correct, base=extrapolation.ntk_base(10000.0, 64, 4.0))
    report = diagnose(scaled, base=10000.0)
    assert list(report.mistakes) == ["other_base"]
    assert "NTK-aware scaling by 4 " in report.mistakes["other_base"]
    smaller = diagnose(functools.partial(mistakes.correct, base=300.0), base=10000.0)
    assert list(smaller.mistakes) == ["other_base"]
    assert "NTK" not in str(smaller)


# --- What is sound, and how it is called ------------------------------------------------------------------------------


def llama(**parameters):
    from transformers.models.llama import configuration_llama, modeling_llama

    config = configuration_llama.LlamaConfig(
        hidden_size=256, num_attention_heads=4, max_position_embeddings=8192, **parameters
    )
    embedding = modeling_llama.LlamaRotaryEmbedding(config)

    def rotate(q, k, position_ids):
        return modeling_llama.apply_rotary_pos_emb(q, k, *embedding(q, position_ids))

    return rotate


def test_transformers_is_sound():
    from transformers.models.gptj import modeling_gptj
    from transformers.models.llama import modeling_llama

    tables = diagnose(modeling_llama.apply_rotary_pos_emb, layout="half")
    assert tables.sound
    assert "tables" in tables.evidence["base"]
    whole = diagnose(llama(), layout="half", base=10000.0)
    assert whole.sound
    assert whole.base == 10000.0
    gptj = diagnose(modeling_gptj.apply_rotary_pos_emb, layout="interleaved")
    assert gptj.sound
    assert "(batch, seq, heads, dim)" in gptj.evidence["call"]


SCALED = [
    ({"rope_type": "linear", "factor": 4.0}, "linear", "linear, by 4"),
    ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 2048}, "by parts", "by parts, by 4"),
    (
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 1024,
        },
        "by parts",
        "by parts, by 8",
    ),
]


@pytest.mark.parametrize(
    ("parameters", "kind", "said", "base"),
    [(*one, base) for one, base in zip([*SCALED, SCALED[0]], [None, 10000.0, None, 10000.0], strict=True)],
)
def test_scaling_is_told_and_has_to_be_declared(parameters, kind, said, base):
    rotate = llama(rope_parameters={"rope_theta": 10000.0, **parameters})
    report = diagnose(rotate, base=base)
    assert report.verdict == "undetermined"
    assert "declare inv_freq" in report.undetermined["scaling"]
    factor = 0.1 * math.log(4) + 1 if parameters["rope_type"] == "yarn" else None
    declared = {"inv_freq": report.inv_freq, "attention_factor": factor}
    assert diagnose(rotate, base=base, layout="half", length=8192, **declared).sound
    other = diagnose(rotate, base=base, inv_freq=0.9 * report.inv_freq, attention_factor=factor)
    assert other.verdict == "wrong"
    assert report.scaling == kind
    assert report.base == 10000.0
    assert report.evidence["scaling"].startswith(said)
    if parameters["rope_type"] == "yarn":
        assert "YaRN's factor for s = 4" in report.evidence["lengths"]


def test_torchs_own_operator_is_sound():
    report = diagnose(torch.onnx.ops.rotary_embedding)
    assert report.sound
    assert report.layout == "half"
    interleaved = functools.partial(torch.onnx.ops.rotary_embedding, interleaved=True)
    assert diagnose(interleaved, layout="interleaved").sound


def test_complex_numbers_are_sound():
    def one(x, positions):
        theta = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
        turns = torch.polar(torch.ones(()), positions[:, None] * theta)
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turns).flatten(-2)

    def meta(xq, xk, freqs_cis):
        def turn(x):
            pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
            return torch.view_as_real(pairs * freqs_cis.view(1, x.shape[1], 1, -1)).flatten(3).type_as(x)

        return turn(xq), turn(xk)

    for function in (one, meta):
        report = diagnose(function, layout="interleaved")
        assert report.sound
    assert "(batch, seq, heads, dim)" in report.evidence["call"]


def test_rotary_embedding_torch_is_sound():
    rotary = rotary_embedding_torch.RotaryEmbedding(dim=32)
    report = diagnose(rotary.rotate_queries_or_keys, dim=32, layout="interleaved", base=10000.0)
    assert report.sound
    assert "offset" in report.evidence["positions"]
    part = diagnose(rotary.rotate_queries_or_keys, dim=64)
    assert part.sound
    assert part.rotary_dim == 32
    assert "32 of 64 entries turn" in part.evidence["part"]
    assert diagnose(rotary_embedding_torch.apply_rotary_emb).sound


@together("layout, rotary_dim", [("interleaved", None), ("half", None), ("interleaved", 8), ("half", 16)])
def test_our_own_module_is_sound(layout, rotary_dim):
    module = efficient.RotaryEmbedding(32, layout=layout, rotary_dim=rotary_dim)
    report = diagnose(module, dim=32, layout=layout, base=10000.0)
    assert report.sound
    assert report.rotary_dim == (rotary_dim or 32)
    assert "(q, k=, positions=)" in report.evidence["call"]


@together("order, layout", [(order, LAYOUTS[turn % 2]) for turn, order in enumerate(ORDERS)])
def test_every_order_of_axes_is_recognised(order, layout):
    names = order.split()

    def rotate(q, k, positions):
        if q.ndim != len(names):
            raise ValueError("not my order")
        if len(positions) != q.shape[names.index("seq")]:
            raise ValueError("not my sequence")
        shape = [1] * len(names)
        shape[names.index("seq")], shape[-1] = len(positions), q.shape[-1] // 2
        angles = angles_of(q, positions).reshape(shape)
        return turned(q, angles, layout), turned(k, angles, layout)

    report = diagnose(rotate, layout=layout, dim=8)
    assert report.sound
    assert f"({', '.join(names)})" in report.evidence["call"]
    told = diagnose(rotate, layout=layout, dim=8, order=order, call="q k positions")
    assert told.evidence["call"] == report.evidence["call"]


def spread(x, layout):
    return rope.join_pairs(x, x, layout)


def in_place(q, k, positions):
    angles = angles_of(q, positions)
    q.copy_(turned(q, angles))
    k.copy_(turned(k, angles))
    return q, k


def backwards(cos, sin, key, query):
    return efficient.rotate_by_pairs(key, cos, sin), efficient.rotate_by_pairs(query, cos, sin)


def unnamed(a, b, c):
    angles = angles_of(a, c)
    return turned(a, angles), turned(b, angles)


def alone(x):
    return turned(x, angles_of(x, torch.arange(x.shape[-2])))


def two(q, k):
    return alone(q), alone(k)


def with_an_offset(x, offset=0):
    return turned(x, angles_of(x, offset + torch.arange(x.shape[-2])))


def rows_of_positions(q, k, *, position_ids):
    angles = angles_of(q, position_ids)[:, None]
    if position_ids.ndim != 2 or position_ids.shape[0] != q.shape[0]:
        raise ValueError("rows of positions, please")
    return turned(q, angles), turned(k, angles)


def with_an_option(q, position_ids=None, upcast=True):
    return turned(q, angles_of(q, position_ids))


@together(
    "function",
    [in_place, backwards, unnamed, alone, two, rows_of_positions, with_an_option, with_an_offset],
    ids=lambda function: function.__name__,
)
def test_many_ways_of_calling_are_recognised(function):
    report = diagnose(function, in_place=function is in_place)
    assert report.sound, str(report)
    assert report.layout == "interleaved"


def test_an_offset_is_read_or_missed():
    assert "counted from the offset" in diagnose(with_an_offset).evidence["positions"]
    missed = diagnose(lambda x, offset=0: alone(x))
    assert list(missed.mistakes) == ["ignored_positions"]


def test_a_table_may_be_looked_up_by_positions():
    def older(q, k, cos, sin, position_ids):
        cos, sin = (table[position_ids].unsqueeze(1) for table in (cos, sin))
        return tuple(x * cos + efficient.rotate_half(x) * sin for x in (q, k))

    report = diagnose(older, layout="half")
    assert report.sound
    assert "honoured" in report.evidence["positions"]
    missed = diagnose(lambda q, k, cos, sin, positions: older(q, k, cos, sin, torch.arange(len(positions))[None]))
    assert list(missed.mistakes) == ["ignored_positions"]


def test_what_cannot_be_seen_is_said():
    assert "no" in diagnose(alone).evidence["positions"]
    assert "one tensor" in diagnose(alone).evidence["not seen"]
    assert "values" in diagnose(two).evidence["not seen"]
    rounded = diagnose(lambda x: alone(x).bfloat16().to(x.dtype))
    assert rounded.sound
    assert "not seen" in rounded.evidence["table"]


def test_tables_of_the_other_spread_are_asked_for_in_words():
    def rotate(q, k, cos, sin):
        return tuple(x * cos + efficient.rotate_every_two(x) * sin for x in (q, k))

    report = diagnose(rotate)
    assert report.sound
    assert "spread as interleaved" in report.evidence["call"]


def test_slow_starts_and_pairs_that_stand_are_no_mistake():
    def from_one(x, positions):
        return turned(x, angles_of(x, positions + 1))

    assert diagnose(from_one).sound
    assert "count from 1" in diagnose(from_one).evidence["start"]

    def proportional(x, positions):
        angles = angles_of(x, positions)
        angles[..., angles.shape[-1] // 2 :] = 0
        return turned(x, angles, "half")

    report = diagnose(proportional)
    assert report.verdict == "undetermined"
    assert "Declare inv_freq" in report.undetermined["still_pairs"]
    assert "16 of 32 pairs turn" in report.evidence["part"]
    assert diagnose(proportional, inv_freq=rope.inv_freq(64) * (torch.arange(32) < 16)).sound


def test_a_table_that_ends_is_told():
    def short(x, positions):
        if positions.max() >= 1024:
            raise IndexError("index 2048 is out of bounds")
        return turned(x, angles_of(x, positions))

    report = diagnose(short)
    assert report.sound
    assert "2049" in report.evidence["far"]


# --- What is said ---


def tried(function, **options):
    return diagnose(function, layout="interleaved", **options)


def of_angles(change):
    def rotate(q, k, positions):
        angles = change(positions, q.shape[-1])
        return turned(q, angles), turned(k, angles)

    return rotate


def test_each_is_said_to_be_as_long_as_it_is():
    def query_alone(factor):
        def rotate(q, k, positions):
            angles = angles_of(q, positions)
            return factor * turned(q, angles), turned(k, angles)

        return rotate

    longer = tried(query_alone(1.3)).mistakes["longer"]
    assert longer.startswith("q comes back 1.3 times as long, k comes back as long as it was; scores are 1.3 times")
    shorter = tried(query_alone(1 / 8)).mistakes["shorter"]
    assert "0.125 times as long" in shorter
    assert "scores are 0.125 times" in shorter


def test_fast_pairs_are_counted_with_their_whole_turns():
    report = tried(of_angles(lambda positions, dim: rope.angles(4 * positions, dim)))
    assert list(report.mistakes) == ["faster"]
    assert "4 times as fast" in report.mistakes["faster"]
    assert report.base == 10_000


def test_a_base_a_little_off_is_another_base():
    near = of_angles(lambda positions, dim: rope.angles(positions, dim, 10_050.0))
    assert list(tried(near, base=10_000.0).mistakes) == ["other_base"]
    assert "10,050, not 10,000" in tried(near, base=10_000.0).mistakes["other_base"]


@together("length, end", [(None, 1000), (3000, 1024), (None, 2000), (3000, 2000)])
def test_tables_that_end_say_where(length, end):
    clamped = tried(of_angles(lambda m, dim: rope.angles(m.clamp(max=end - 1), dim)), length=length)
    assert list(clamped.mistakes) == ["clamped"]
    assert f"from position {end - 1} on" in clamped.mistakes["clamped"]
    wrapped = tried(of_angles(lambda m, dim: rope.angles(m % end, dim)), length=length)
    assert list(wrapped.mistakes) == ["wrapped"]
    assert "begin again" in wrapped.mistakes["wrapped"]


def test_a_length_that_a_table_lacks_is_a_mistake_once_it_is_declared():
    def short(x, positions):
        if positions.max() >= 1024:
            raise IndexError("index 2048 is out of bounds")
        return turned(x, angles_of(x, positions))

    assert diagnose(short, length=1024).sound
    assert list(diagnose(short, length=2048).mistakes) == ["too_short"]


def test_uneven_frequencies_are_said_with_the_nearest_rule():
    def steps(m, dim):
        return m[:, None] * torch.linspace(1.0, 1e-4, dim // 2, dtype=torch.float64)

    report = tried(of_angles(steps), base=10_000.0)
    assert list(report.mistakes) == ["uneven_frequencies"]
    assert "nearest rule is base 10,000" in report.mistakes["uneven_frequencies"]

    def shuffled(m, dim):
        theta = rope.inv_freq(dim)
        factor = torch.linspace(2.0, 9.0, dim // 2, dtype=torch.float64).sqrt()
        return m[:, None] * theta / factor

    asked = tried(of_angles(shuffled), base=10_000.0)
    assert asked.verdict == "undetermined"
    assert "declare inv_freq" in str(asked)


def test_arguments_by_name_alone_are_recognised():
    def rotate(*, q, k, pos):
        angles = angles_of(q, pos)
        return turned(q, angles), turned(k, angles)

    assert diagnose(rotate).sound

    def one(*, x, pos):
        return turned(x, angles_of(x, pos))

    assert diagnose(one).sound


def test_a_width_that_is_not_tried_is_asked_for():
    def of_72(q, k, positions):
        if q.shape[-1] != 72:
            raise ValueError("width must be 72")
        return unnamed(q, k, positions)

    with pytest.raises(ValueError, match="dim=128 if heads must have a certain width"):
        diagnose(of_72)
    assert diagnose(of_72, dim=72).sound


def test_the_part_that_turns_is_the_first():
    def last(q, k, positions):
        return tuple(torch.cat((x[..., :32], unnamed(x[..., 32:], x[..., 32:], positions)[0]), -1) for x in (q, k))

    assert diagnose(last).verdict == "undetermined"
    assert list(diagnose(last, rotary_dim=32).mistakes) == ["other_part"]
    assert list(diagnose(last, layout="interleaved", base=10_000.0).mistakes) == ["other_part"]
    first = efficient.RotaryEmbedding(64, layout="half", rotary_dim=16)
    assert list(diagnose(first, dim=64, rotary_dim=32).mistakes) != []
    assert diagnose(first, dim=64, rotary_dim=16).sound


# --- Bad input --------------------------------------------------------------------------------------------------------


def raises(q, k, positions):
    raise KeyError("no such thing")


def late(q, k, positions):
    if len(positions) > 10:
        raise IndexError("too long")
    return unnamed(q, k, positions)


def gaps_raise(q, k, positions):
    assert (positions.diff() == 1).all()
    return unnamed(q, k, positions)


def test_a_function_that_refuses_gaps_is_not_called_sound():
    report = diagnose(gaps_raise)
    assert report.verdict == "undetermined"
    assert "AssertionError" in report.undetermined["not_asked"]


def one_of_two(q, k, positions):
    return q


def other_shape(q, k, positions):
    return q[..., :2], k[..., :2]


def gives_nan(q, k, positions):
    return q / 0.0 * 0.0, k


def nan_far_away(q, k, positions):
    return unnamed(q, k, torch.where(positions > 1000, 1, positions)) if positions.max() < 1000 else (q / 0 * 0, k)


def gives_integers(q, k, positions):
    return q.long(), k.long()


def strange(alpha, beta, gamma, delta, epsilon):
    return alpha


BAD = [
    ((3,), {}, TypeError, "function must be a function of q and k, got 3"),
    ((efficient.RotaryEmbedding,), {}, TypeError, "the class RotaryEmbedding"),
    ((raises,), {}, ValueError, "raises could not be called.*KeyError: 'no such thing'"),
    ((one_of_two,), {}, ValueError, "must return 2 tensors, got Tensor"),
    ((other_shape,), {}, ValueError, r"the shape that it is given, \(2, 3, 5, 64\), got \(2, 3, 5, 2\)"),
    ((gives_integers,), {}, ValueError, "must return real numbers, got dtype torch.int64"),
    ((strange,), {}, ValueError, r"strange takes \(alpha, beta, gamma, delta, epsilon\)"),
    ((two,), {"layout": "odd"}, ValueError, "layout must be one of"),
    ((two,), {"base": 0.5}, ValueError, "base must be a finite number >= 1"),
    ((two,), {"dim": 7}, ValueError, "dim must be an even integer"),
    ((two,), {"dim": 2}, ValueError, "dim must be at least 4, got 2"),
    ((two,), {"length": 3}, ValueError, "length must be an integer >= 16"),
    ((two,), {"rotary_dim": 512}, ValueError, "rotary_dim must be at most dim = 64"),
    ((two,), {"inv_freq": [[1.0]]}, ValueError, "inv_freq must be finite, of shape"),
    ((two,), {"order": "dim seq"}, ValueError, "order must be one of"),
    ((two,), {"call": 3}, TypeError, "call must be a string"),
    ((two,), {"call": "q, w"}, ValueError, "each part of call must be one of"),
    ((two,), {"call": "cos, sin"}, ValueError, "call must have q, k or x in it"),
]


@together(("given", "options", "error", "message"), BAD)
def test_bad_input_is_named(given, options, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        diagnose(*given, **options)


BROKEN = [
    (late, "raises", "11 tokens, at positions 0 to 10, raise IndexError: too long; up to position 9 it answers"),
    (gives_nan, "not_finite", "the rotation of q is not finite: .* at position 0, and at every other"),
    (nan_far_away, "not_finite", "Positions up to 999 are numbers, and from 1,000 on they are not"),
]
TOLD = {"call": "q, k, positions", "order": "batch heads seq dim", "dim": 64}


@together(("function", "name", "said"), BROKEN)
def test_a_function_that_breaks_gets_a_verdict(function, name, said):
    report = diagnose(function)
    assert list(report.mistakes) == [name]
    assert re.search(said, report.mistakes[name]), report.mistakes


@together(
    ("function", "name", "said"),
    [
        (raises, "raises", "raises KeyError: 'no such thing'"),
        (one_of_two, "other_shape", "it must return 2 tensors, got Tensor"),
        (other_shape, "other_shape", r"got \(2, 3, 5, 2\): its width is another one"),
        (gives_integers, "other_type", "got dtype torch.int64"),
    ],
)
def test_a_function_that_answers_no_call_gets_a_verdict_once_its_call_is_told(function, name, said):
    report = diagnose(function, **TOLD)
    assert list(report.mistakes) == [name]
    assert re.search(said, report.mistakes[name]), report.mistakes


def test_a_wrong_axis_is_named():
    def turns_along_heads(x):
        return alone(x.transpose(1, 2)).transpose(1, 2)

    assert list(diagnose(turns_along_heads, order="batch heads seq dim").mistakes) == ["wrong_axis"]
    assert diagnose(turns_along_heads).sound

    def broken_as_well(x):
        """The tokens come before the heads, and the sine is missing. The report says so, and does not blame an axis."""
        y = x.transpose(1, 2)
        cos = rope.angles(torch.arange(y.shape[-2]), y.shape[-1]).cos()
        return (y * rope.join(cos, cos, "half") + efficient.rotate_half(y)).transpose(1, 2)

    assert list(diagnose(broken_as_well).mistakes) == ["missing_sin"]


def test_results_are_looked_at():
    one = torch.zeros(2, 3)
    assert outputs([one], [one]) == [one]
    assert outputs([one, one], [one, one, one]) == [one, one]
    with pytest.raises(ValueError, match="must return 1 tensor, got 2 which is what a function of tables returns"):
        outputs((one, one), [one])
    with pytest.raises(ValueError, match="got NoneType"):
        outputs(None, [one])


# --- Frequencies ------------------------------------------------------------------------------------------------------


@together("dim", [8, 64, 128])
@together("method", ["linear", "ntk", "yarn"])
def test_methods_of_extension_are_read_off_their_frequencies(dim, method):
    theta = rope.inv_freq(dim)
    made = {
        "linear": extrapolation.Interpolation(4.0),
        "ntk": extrapolation.NTKAware(4.0),
        "yarn": extrapolation.YaRN(4.0, 2048),
    }[method]
    found = read(made(theta, 8192)[0], dim, 1e-4, None)
    if method == "ntk":
        assert found.kind == "plain"
        assert found.base == pytest.approx(extrapolation.ntk_base(10000.0, dim, 4.0), rel=1e-6)
    elif dim > 8:
        assert found[:3] == ({"linear": "linear", "yarn": "by parts"}[method], 10000.0, 4.0)


def test_frequencies_that_are_no_power_are_called_uneven():
    generator = torch.Generator().manual_seed(0)
    theta = rope.inv_freq(64) / (1 + torch.rand(32, dtype=torch.float64, generator=generator))
    assert read(theta, 64, 1e-4, 10000.0).kind == "uneven"


def test_some_pairs_faster_and_some_slower_fit_no_rule():
    ratio = torch.tensor([0.5, 0.5, 0.5, 0.7, 0.9, 1.0, 2.0, 2.0], dtype=torch.float64)
    found = read(rope.inv_freq(16, 500.0) / ratio, 16, 1e-4, 500.0)
    assert (found.kind, found.slowed, found.factor) == ("uneven", False, 2.0)
    # The best single factor for all pairs is 1. It is off by a factor of 2 for both the fastest and the slowest pairs.
    assert "off by up to 100.0%" in found.said
    assert "divided" not in found.said


def test_a_factor_for_all_pairs_is_put_as_a_share_of_the_right_frequencies():
    theta = rope.inv_freq(16, 500.0)
    assert "every θ is 1/1.5 of base^" in read(theta / 1.5, 16, 1e-4, None).said
    assert "every θ is 1.5 times base^" in read(theta * 1.5, 16, 1e-4, None).said


def test_one_pair_does_not_tell_the_base():
    assert read(rope.inv_freq(2), 2, 1e-4, None)[:2] == ("one", None)
    assert read(rope.inv_freq(2).deg2rad(), 2, 1e-4, None)[:2] == ("degrees", None)


@together("base", [1e4, 5e5, 1e6, 1e5, 5e6, 1e7])
@together("half", [torch.bfloat16, torch.float16])
def test_frequencies_of_a_half_type_are_known_by_usual_bases(base, half):
    theta = rope.inv_freq(16, base)
    found = read(theta.to(half).double(), 16, 1e-4, None)
    assert found[:3] == ("half", base, 1.0)
    off = (theta.to(half).double() / theta - 1).abs().max().item()
    name = str(half).removeprefix("torch.")
    assert found.said == f"each frequency θ is that of base {base:,.0f} rounded to {name}, off by up to {off:.2%}"


def test_pairs_that_are_slowed_are_counted():
    kept = torch.tensor([1, 1, 1, 0.75, 0.5, 0, 0, 0, 0], dtype=torch.float64)
    theta = rope.inv_freq(18, 500.0) * (kept + (1 - kept) / 8)
    found = read(theta, 18, 1e-4, 500.0)
    assert found[:3] == ("by parts", 500.0, 8.0)
    assert "the 3 fastest pairs are as base 500 has them, the 4 slowest turn 8 times too slowly, the 2" in found.said


def test_one_pair_that_turns_has_both_layouts():
    report = diagnose(efficient.RotaryEmbedding(8, layout="half", rotary_dim=2), dim=8)
    assert report.mistakes == {}
    assert "one pair alone" in report.evidence["layout"]


def test_how_far_two_bases_are_apart_is_said():
    off = (rope.inv_freq(8) - rope.inv_freq(8, 500.0)).abs().max().item()
    said = diagnose(two_bases, dim=8).mistakes["two_bases"]
    assert said == f"the frequencies of q and k differ by up to {off:.2g}"


# --- From a shell -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["ropebook.mistakes:correct"], 0, "correct: sound"),
        (["ropebook.mistakes:degrees"], 1, "degrees: degrees"),
        (["ropebook.mistakes:correct", "--layout", "half"], 1, "correct: other_layout"),
        (["ropebook.mistakes:correct", "--base", "100", "--dim", "8"], 1, "correct: halved_dim"),
        (["ropebook.mistakes:correct", "--length", "4096", "--rotary-dim", "64"], 0, "correct: sound"),
        (["ropebook.mistakes"], 2, "ValueError: function must be written module:function"),
        (["ropebook.nowhere:correct"], 2, "ModuleNotFoundError"),
        (["ropebook.mistakes:nothing"], 2, "AttributeError"),
    ],
)
def test_the_command_says_it_and_counts(arguments, status, said, capsys):
    assert main(arguments) == status
    printed = capsys.readouterr()
    assert said in (printed.err if status == 2 else printed.out)


def test_the_command_runs_from_a_shell():
    command = [sys.executable, "-m", "ropebook.diagnose", "ropebook.mistakes:query_only"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "code")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 1
    assert done.stdout.startswith("query_only: query_only")
    assert done.stderr == ""
