"""Tests of the encoding, compared with mpmath's 40 digits and with transformers' tables. Public names and bad input are
tested too.

The float64 bounds in some tests follow from this: for θ ≤ 1, the error of an angle mθ is at most m times a few units of
2^−53.
"""

import inspect
import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import sinusoidal as S
from tests.helpers import largest, public
from tests.sinusoidal_helpers import (
    EPS,
    HALVES,
    bases,
    dims,
    exact_encoding,
    exact_frequency,
    positions_up_to_a_million,
)
from tests.together import together

# --- Frequencies, angles, the encoding ---


@together("dim", [2, 4, 6, 64, 512])
@together("base", [1, 1.5, 10, 10000.0, 1e7])
def test_frequencies_to_the_last_digits(dim, base):
    exact = torch.tensor([float(exact_frequency(i, dim, base)) for i in range(dim // 2)], dtype=torch.float64)
    ours = S.inv_freq(dim, base)
    assert ours.dtype == torch.float64
    assert ours[0] == 1
    assert largest(ours - exact) <= EPS
    assert largest(ours / exact - 1) <= 10 * EPS


def test_by_default_the_base_is_that_of_the_paper():
    assert S.inv_freq(4).tolist() == [1.0, 0.01]
    for name in public(S):
        base = inspect.signature(getattr(S, name)).parameters.get("base")
        assert base is None or base.default == 10000, name


def test_frequencies_in_float32_are_rounded_last(device):
    ours = S.inv_freq(512, 1e7, dtype=torch.float32, device=device)
    assert ours.dtype == torch.float32
    assert ours.device.type == device.type
    assert torch.equal(ours.cpu(), S.inv_freq(512, 1e7).float())


def test_wavelengths_by_hand():
    expected = [2 * math.pi * factor for factor in (1, 10, 100, 1000)]
    assert S.wavelengths(8).tolist() == pytest.approx(expected, rel=1e-14)
    assert S.wavelengths(4, 4).tolist() == pytest.approx([2 * math.pi, 4 * math.pi], rel=1e-14)


@given(positions_up_to_a_million, dims, bases)
def test_angles_and_turns_are_exact_to_float64(position, dim, base):
    exact = [exact_frequency(i, dim, base) * position for i in range(dim // 2)]
    angles, turns = S.angles(position, dim, base), S.turns(position, dim, base)
    assert angles.shape == turns.shape == (dim // 2,)
    tolerance = 2 * EPS * (abs(position) + 1)
    assert angles.tolist() == pytest.approx([float(a) for a in exact], abs=tolerance)
    assert turns.tolist() == pytest.approx([float(a / (2 * mpmath.pi)) for a in exact], abs=tolerance)


@given(st.integers(1, 300), st.integers(-2000, 2000), dims, bases)
def test_unseen_angles_are_the_way_to_the_nearest_point_of_the_arc(length, position, dim, base):
    ours = S.unseen_angles([position], length, dim, base)[0]
    for i, frequency in enumerate(S.inv_freq(dim, base).tolist()):
        arc = torch.linspace(0, min((length - 1) * frequency, 2 * math.pi), 2001, dtype=torch.float64)
        apart = (position * frequency - arc).cos().clamp(-1, 1).acos().min().item()
        # neighbouring points on the arc are up to 2π/2000 apart
        assert ours[i].item() == pytest.approx(apart, abs=4e-3)
    assert (ours >= 0).all()


def test_unseen_angles_by_hand():
    # With base 10⁴ and d = 4, the slow pair rotates by 1/100 per word, so 101 words show its first radian.
    right, left, seen = S.unseen_angles([250, 600, 728], 101, 4)[:, 1].tolist()
    assert right == pytest.approx(1.5)
    assert left == pytest.approx(2 * math.pi - 6)
    assert seen == 0  # 7.28 radians are a whole turn plus 7.28 − 2π < 1 radians


def test_angles_at_the_largest_position_are_good_to_a_millionth():
    position = S.LARGEST_POSITION
    for base in (10000, 1e7):
        for dim in (4, 64, 512):
            exact = [float(mpmath.fmod(exact_frequency(i, dim, base) * position, 1000)) for i in range(dim // 2)]
            ours = S.angles(position, dim, base).remainder(1000)
            wrapped = (ours - torch.tensor(exact, dtype=torch.float64) + 500).remainder(1000) - 500
            assert largest(wrapped) < 1e-6


def test_encoding_by_hand():
    # with d = 4 and b = 10000, the angles are 1·m and 0.01·m
    expected = [[0, 1, 0, 1], [0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004]]
    assert S.encoding([0, 1], 4, dtype=torch.float64).tolist() == [pytest.approx(row, abs=1e-10) for row in expected]
    assert S.encoding(2, 2, dtype=torch.float64).tolist() == pytest.approx([math.sin(2), math.cos(2)])


@given(positions_up_to_a_million, dims, bases)
def test_encoding_against_forty_digits(position, dim, base):
    ours = S.encoding(position, dim, base, torch.float64)
    assert largest(ours - exact_encoding(position, dim, base)) <= 4 * EPS * (abs(position) + 1)


@given(st.floats(-1e4, 1e4), dims)
def test_encoding_of_positions_between_the_whole_ones(position, dim):
    ours = S.encoding(position, dim, dtype=torch.float64)
    assert largest(ours - exact_encoding(position, dim, 10000)) <= 4 * EPS * (abs(position) + 1)


@together("dim", [2, 64, 512])
@together("base", [1, 10000, 1e7])
def test_encoding_on_the_whole_grid(dim, base, device):
    positions = np.arange(4096, dtype=np.float64)
    angles = positions[:, None] * base ** (-np.arange(0, dim, 2) / dim)
    expected = np.empty((4096, dim))
    expected[:, 0::2], expected[:, 1::2] = np.sin(angles), np.cos(angles)
    ours = S.encoding(torch.arange(4096, device=device), dim, base)
    assert ours.dtype == torch.float32
    assert ours.device.type == device.type
    assert np.abs(ours.cpu().double().numpy() - expected).max() <= 2**-25 + 1e-11


@together("shape", [(), (3,), (2, 3), (2, 1, 3), (0,), (2, 0)])
def test_positions_of_any_shape(shape):
    positions = torch.arange(math.prod(shape)).reshape(shape)
    whole = S.encoding(positions, 6)
    assert whole.shape == (*shape, 6)
    for index in np.ndindex(*shape):
        assert torch.equal(whole[index], S.encoding(int(positions[index]), 6))
    assert S.angles(positions, 6).shape == (*shape, 3)


def test_positions_of_any_kind_give_the_same_encoding():
    expected = S.encoding(torch.tensor([3, 7]), 8, dtype=torch.float64)
    for same in ([3, 7], (3.0, 7.0), np.array([3, 7], dtype=np.int32), np.array([7.0, 3.0])[::-1]):
        assert torch.equal(S.encoding(same, 8, dtype=torch.float64), expected)
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.float32, torch.float64):
        assert torch.equal(S.encoding(torch.tensor([3, 7], dtype=dtype), 8, dtype=torch.float64), expected)
    assert torch.equal(S.encoding(range(5), 8), S.encoding([0, 1, 2, 3, 4], 8))
    assert S.encoding([], 8).shape == (0, 8)


def test_fractional_positions_of_a_list_keep_float64():
    # torch would convert the list to float32, which would change 0.1 by 1.5e-9
    assert S.angles([0.1], 2).item() == 0.1


@together("dtype", [torch.float64, torch.float32, *HALVES])
def test_only_the_finished_encoding_is_cast_down(dtype):
    positions = torch.arange(0, 200_000, 997)
    ours = S.encoding(positions, 64, dtype=dtype)
    assert ours.dtype == dtype
    assert torch.equal(ours, S.encoding(positions, 64, dtype=torch.float64).to(dtype))


def test_throughout_in_one_type_is_the_same_in_float64_only():
    positions = torch.arange(4096)
    exact = S.encoding(positions, 64, 500.0, torch.float64)
    assert torch.equal(S.encoding_all_in(positions, 64, 500.0, torch.float64), exact)
    assert 1e-5 < largest(S.encoding_all_in(positions, 64, 500.0) - exact) < 4096 * 2**-22


@pytest.mark.parametrize("dtype", HALVES)
def test_throughout_in_a_half_type_rounds_position_frequency_and_angle(dtype, device):
    positions = torch.arange(3000)
    ours = S.encoding_all_in(positions.to(device), 16, dtype=dtype)
    assert ours.dtype == dtype
    assert ours.device.type == device.type
    angles = (positions.to(dtype)[:, None] * S.inv_freq(16).to(dtype)).double()
    expected = torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)
    assert largest(ours.cpu().double() - expected) <= torch.finfo(dtype).eps
    first = {torch.bfloat16: 256, torch.float16: 2048}[dtype]
    assert torch.equal(ours[first], ours[first + 1])


@pytest.mark.parametrize(("dtype", "half_spacing"), [(torch.bfloat16, 2**-9), (torch.float16, 2**-12)])
def test_rounding_error_cast_last_and_throughout(dtype, half_spacing):
    found = S.rounding_error(range(4096), 64, dtype=dtype)
    assert 0.9 * half_spacing < found.cast_last <= half_spacing + 2**-25
    assert 1.7 < found.throughout <= 2
    exact = S.encoding(range(4096), 64, dtype=torch.float64)
    assert found.cast_last == largest(exact.to(dtype).double() - exact)
    assert found.throughout == largest(S.encoding_all_in(range(4096), 64, dtype=dtype).double() - exact)


def test_rounding_error_is_of_the_given_encoding_and_bfloat16_by_default():
    assert S.rounding_error(range(9), 8) == S.rounding_error(range(9), 8, 10000, torch.bfloat16)
    assert S.rounding_error(range(9), 8, 3.0) != S.rounding_error(range(9), 8)
    assert S.rounding_error([0], 8).cast_last == 0
    assert 0 < S.rounding_error(range(4096), 64, dtype=torch.float32).cast_last <= 2**-25


# --- Other people's implementations ---


def test_xlm_builds_the_same_table():
    from transformers.models.xlm.modeling_xlm import create_sinusoidal_embeddings

    theirs = create_sinusoidal_embeddings(512, 64, torch.empty(512, 64))
    assert largest(S.encoding(range(512), 64) - theirs) <= 2**-24


def test_marian_builds_the_same_table_sines_first():
    from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

    theirs = MarianSinusoidalPositionalEmbedding(512, 64).create_weight()
    ours = S.encoding(range(512), 64)
    assert largest(ours[:, S.concatenated_order(64)] - theirs) <= 2**-24
    assert largest(ours - theirs) > 1


@pytest.mark.parametrize("name", ["m2m_100", "fsmt"])
def test_the_spacing_of_tensor2tensor_is_ours_with_another_base(name):
    if name == "m2m_100":
        from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding as Theirs
    else:
        from transformers.models.fsmt.modeling_fsmt import SinusoidalPositionalEmbedding as Theirs
    dim = 64
    theirs = Theirs.get_embedding(512, dim, None)
    order = S.concatenated_order(dim)
    # the other implementation uses float32 throughout, so the error of an angle of 511 radians is about 1e-5
    assert largest(S.encoding(range(512), dim, 10000 ** (dim / (dim - 2)))[:, order] - theirs) <= 1e-4
    assert largest(S.encoding(range(512), dim)[:, order] - theirs) > 1


def tiny_models():
    from transformers import (
        BertConfig,
        BertModel,
        GPT2Config,
        GPT2Model,
        M2M100Config,
        M2M100Model,
        MarianConfig,
        MarianModel,
    )

    bert = BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    gpt2 = GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=2, n_positions=16)
    small = {"vocab_size": 9, "d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "pad_token_id": 0}
    small |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    return {
        "BERT": (BertModel(bert).embeddings.position_embeddings, True),
        "GPT-2": (GPT2Model(gpt2).wpe, True),
        "Marian": (MarianModel(MarianConfig(**small, decoder_start_token_id=0)).encoder.embed_positions, False),
        "M2M100": (M2M100Model(M2M100Config(**small)).encoder.embed_positions, False),
    }


def test_bert_and_gpt2_learn_their_positions_and_the_translators_do_not():
    for name, (positions, learned) in tiny_models().items():
        trained = [parameter for parameter in positions.parameters() if parameter.requires_grad]
        assert bool(trained) == learned, name


# --- Bad input ---

ZEROS = torch.zeros(3, 4)
BAD = [
    ("inv_freq(7)", ValueError, "dim must be an even integer >= 2, got 7"),
    ("inv_freq(0)", ValueError, r"dim must be .* got 0"),
    ("inv_freq(8.0)", TypeError, r"dim must be .* got 8.0"),
    ("inv_freq(8, 0.99)", ValueError, r"base must be .*1.*got 0.99"),
    ("inv_freq(8, math.nan)", ValueError, r"base must be .* got nan"),
    ('inv_freq(8, "big")', TypeError, r"base must be .* got 'big'"),
    ("inv_freq(8, dtype=torch.bfloat16)", ValueError, r"dtype must be .*float64.*float32, got .*bfl"),
    ("wavelengths(3)", ValueError, r"dim must be .* got 3"),
    ("angles(1, 5)", ValueError, r"dim must be .* got 5"),
    ("angles(torch.ones(2).bfloat16(), 4)", TypeError, r"positions must be .* got dtype .*bfloat16"),
    ("angles(torch.ones(2).half(), 4)", TypeError, r"positions must be .* got dtype .*float16"),
    ("angles([True], 4)", TypeError, r"positions must be .* got dtype .*bool"),
    ("angles(1j, 4)", TypeError, r"positions must be .* got dtype .*complex"),
    ('angles("one", 4)', TypeError, r"positions must be .* got 'one'"),
    ("angles([[1], [2, 3]], 4)", TypeError, r"positions must be .* got \[\[1\], \[2, 3\]\]"),
    ("angles([0, 2 ** 31 + 1], 4)", ValueError, r"positions must lie between .* got 2147483649"),
    ("angles(-2 ** 31 - 1, 4)", ValueError, "positions must lie between -2147483648 and 2147483648"),
    ("angles(-2 ** 63, 4)", ValueError, "positions must lie between"),
    ("angles(math.nan, 4)", ValueError, r"positions must lie between .* got nan"),
    ("turns(math.inf, 4)", ValueError, r"positions must lie between .* got inf"),
    ("unseen_angles(1, 0, 4)", ValueError, "length must be an integer >= 1, got 0"),
    ("unseen_angles(1, 2.5, 4)", TypeError, r"length must be .* got 2.5"),
    ("encoding(1, 4, dtype=torch.int64)", ValueError, r"dtype must be .* got torch.int64"),
    ("encoding(1, 4, 0)", ValueError, r"base must be .* got 0"),
    ("encoding_all_in(1, 4, dtype=int)", ValueError, r"dtype must be .* got <class 'int'>"),
    ("encoding_all_in(None, 4)", TypeError, r"positions must be .* got None"),
    ("rounding_error([], 4)", ValueError, "positions must hold at least one"),
    ('rounding_error([1], 4, dtype="half")', ValueError, r"dtype must be .* got 'half'"),
    ("counting(0)", ValueError, "length must be an integer >= 1, got 0"),
    ("counting(3, torch.int64)", ValueError, r"dtype must be .* got torch.int64"),
    ("fractions(1)", ValueError, "length must be an integer >= 2, got 1"),
    ("fractions(3, torch.int64)", ValueError, r"dtype must be .* got torch.int64"),
    ("binary_digits([0, 8], 3)", ValueError, "positions must lie between 0 and 7, got 8"),
    ("binary_digits(-1, 3)", ValueError, "positions must lie between 0 and 7, got -1"),
    ("binary_digits(1.0, 3)", TypeError, r"positions must be integers, got dtype .*float64"),
    ("binary_digits(1, 0)", ValueError, r"bits must be .* got 0"),
    ("binary_digits(1, 32)", ValueError, r"bits must be .* got 32"),
    ("binary_periods(0)", ValueError, r"bits must be .* got 0"),
    ("binary_periods(32)", ValueError, r"bits must be .* got 32"),
    ('binary_waves("m", 3)', TypeError, r"positions must be .* got 'm'"),
    ("binary_waves(1, 32)", ValueError, r"bits must be .* got 32"),
    ("describe_codes([1.0])", TypeError, r"codes must be .* got list"),
    ("describe_codes(torch.ones(3))", ValueError, r"codes must have shape .* got \(3,\)"),
    ("describe_codes(torch.ones(1, 3))", ValueError, r"codes must have .* got \(1, 3\)"),
    ("describe_codes(torch.ones(3, 0))", ValueError, r"codes must have .* got \(3, 0\)"),
    ("collisions(torch.ones(2, 2).long())", TypeError, r"codes must be .* got dtype torch.int64"),
    ("collisions(torch.ones(2, 2, 2))", ValueError, r"codes must have .* got \(2, 2, 2\)"),
    ("collisions(torch.ones(3, 0))", ValueError, r"codes must have .* got \(3, 0\)"),
    ("collisions(torch.tensor(1.0))", ValueError, r"codes must have shape .* got \(\)"),
    ("collisions(torch.tensor([1, math.nan]))", ValueError, "codes must be finite"),
    ("relative_positions(1, [1])", ValueError, r"query_positions must have .* number 1"),
    ("relative_positions([1], 2)", ValueError, r"key_positions must have .* number 2"),
    ('relative_positions([1], "n")', TypeError, r"key_positions must be .* got 'n'"),
    ('relative_positions(["m"], [1])', TypeError, "query_positions must be"),
    ("shift_matrix(1, 3)", ValueError, r"dim must be .* got 3"),
    ("shift_matrix(math.nan, 4)", ValueError, r"offset must lie between .* got nan"),
    ("distance_kernel(1, 3)", ValueError, r"dim must be .* got 3"),
    ("distance_kernel(2 ** 32, 4)", ValueError, r"distances must lie between .* got 4294967296"),
    ('chord("far", 4)', TypeError, r"distances must be .* got 'far'"),
    ("chord(1, 4, -1)", ValueError, r"base must be .* got -1"),
    ("closest_values(0, 4)", ValueError, r"max_distance must be .* got 0"),
    ("closest_values(9, 5)", ValueError, r"dim must be .* got 5"),
    ("closest_values(2 ** 31 + 1, 4)", ValueError, r"max_distance must be .* got 2147483649"),
    ("closest_return(0, 4)", ValueError, r"max_distance must be .* got 0"),
    ("closest_return(2 ** 31 + 1, 4)", ValueError, r"max_distance must be .* got 2147483649"),
    ("exact_period(4, 0.5)", ValueError, r"base must be .* got 0.5"),
    ("exact_period(1)", ValueError, r"dim must be .* got 1"),
    ("four_terms([1], ZEROS, ZEROS, ZEROS)", TypeError, r"x must be .* got list"),
    ("four_terms(ZEROS, ZEROS, ZEROS.long(), ZEROS)", TypeError, r"p must be .* torch.int64"),
    ("four_terms(ZEROS, ZEROS, ZEROS, ZEROS[:, :3])", ValueError, r"last axis.*q \(3, 3\)"),
    ("four_terms(*[torch.tensor(1.0)] * 4)", ValueError, r"last axis.*x \(\)"),
    ("four_terms(ZEROS, ZEROS[:2], ZEROS, ZEROS)", ValueError, r"broadcast.*x \(3, 4\), y \(2, 4\)"),
    ("slide(ZEROS, [0], 1, 0, [0])", TypeError, r"y must be .* got list"),
    ("slide([0], ZEROS, 1, 0, [0])", TypeError, r"x must be .* got list"),
    ("slide(torch.tensor(1.0), ZEROS, 1, 0, [0])", ValueError, "x must have a last axis"),
    ("slide(ZEROS, torch.tensor(1.0), 1, 0, [0])", ValueError, "y must have a last axis"),
    ("slide(ZEROS[:, :3], ZEROS, 1, 0, [0])", ValueError, r"dim must be .* got 3"),
    ('slide(ZEROS, ZEROS, "1", 0, [0])', TypeError, r"m must be .* got '1'"),
    ("slide(ZEROS, ZEROS, 1, 2 ** 32, [0])", ValueError, r"n must be .* got 4294967296"),
    ("slide(ZEROS, ZEROS, -2 ** 32, 1, [0])", ValueError, r"m must be .* got -4294967296"),
    ("slide(ZEROS, ZEROS, 1, 0, 0)", ValueError, r"shifts must have one axis, got shape \(\)"),
    ("term_sizes(1, 0, 3)", ValueError, r"dim must be .* got 3"),
    ("term_sizes(1, 0, 4, std=-1)", ValueError, r"std must be .* got -1"),
    ("term_sizes(1, 0, 4, samples=0)", ValueError, r"samples must be .* got 0"),
    ("term_sizes(1, 0, 4, generator=7)", TypeError, r"generator must be .* got 7"),
    ("term_sizes(math.inf, 0, 4)", ValueError, r"m must be .* got inf"),
    ("term_sizes(0, None, 4)", TypeError, r"n must be .* got None"),
    ("concatenated_order(5)", ValueError, r"dim must be .* got 5"),
    ("pair_order([0, 2])", ValueError, r"order must hold each of .* got \[0, 2\]"),
    ("pair_order([0, 0])", ValueError, r"order must hold each of .* got \[0, 0\]"),
    ("pair_order([[0]])", ValueError, r"order must hold each of .* got \[\[0\]\]"),
    ("pair_order(0)", ValueError, r"order must hold each of .* got 0"),
    ("pair_order([0.0, 1.0])", ValueError, r"order must hold each of .* got \[0.0, 1.0\]"),
    ("absorb_order(ZEROS, [0, 1, 2])", ValueError, r"order must permute the 4 .* got 3"),
    ("absorb_order(ZEROS, [0, 1, 2, 4])", ValueError, "order must hold"),
    ("absorb_order(ZEROS[0], [0])", ValueError, r"weight must have shape .* got \(4,\)"),
    ("absorb_order([[1.0]], [0])", TypeError, r"weight must be .* got list"),
    ("SinusoidalEncoding(5)", ValueError, r"dim must be .* got 5"),
    ("SinusoidalEncoding(4, 0)", ValueError, r"base must be .* got 0"),
    ("SinusoidalEncoding(6)(ZEROS)", ValueError, r"x must have .*seq, 6\), got \(3, 4\)"),
    ("SinusoidalEncoding(4)(ZEROS[0])", ValueError, r"x must have shape .* got \(4,\)"),
    ("SinusoidalEncoding(4)(ZEROS.long())", TypeError, r"x must be .* torch.int64"),
    ("SinusoidalEncoding(4)(ZEROS, [1, 2])", ValueError, r"positions .* \(3,\), .* \(2,\)"),
    ("SinusoidalEncoding(4)(ZEROS, [[1], [2]])", ValueError, r"positions .* shape \(2, 1\)"),
    ("LearnedPositions(0, 4)", ValueError, r"dim must be .* got 0"),
    ("LearnedPositions(4, 0)", ValueError, r"max_length must be .* got 0"),
    ("LearnedPositions(4, 4, -1)", ValueError, r"std must be .* got -1"),
    ("head_matrix([1.0], ZEROS[0])", TypeError, "a must be .* got list"),
    ("head_matrix(ZEROS[0], ZEROS)", ValueError, r"b must have shape \(dim/2,\), got \(3, 4\)"),
    ("head_matrix(ZEROS[0], ZEROS[:, 0])", ValueError, r"a and b must have one shape, got \(4,\) and \(3,\)"),
    ("draw_binary_waves(1)", ValueError, "bits must be an integer .* got 1"),
    ("draw_kernel(128, 1)", ValueError, "reach must be an integer >= 2, got 1"),
    ("draw_turns(128, 1)", ValueError, "length must be an integer >= 2, got 1"),
    ("draw_wavelengths(7)", ValueError, "dim must be an even .* got 7"),
    ("draw_wavelengths(8, 0)", ValueError, "length must be an integer >= 1, got 0"),
    ("LearnedPositions(4, 9)(ZEROS, [1.0])", TypeError, "positions must be integers"),
    ("LearnedPositions(4, 9)(ZEROS, [[1, 2]] * 2)", ValueError, "positions must broadcast"),
    ("LearnedPositions(4, 9)(ZEROS.expand(2, 3, 4), [1, 2])", ValueError, r"positions must broadcast to \(2, 3\)"),
]


@together(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        eval(call, {**vars(S), "math": math, "torch": torch, "ZEROS": ZEROS})


def test_every_public_function_has_bad_input_and_a_description():
    results = {"RoundingError", "CodeSummary", "ClosestValues", "ClosestReturn", "FourTerms"}
    results.add("interleave")  # this function accepts any input
    results.add("draw_terms")  # this function takes the result of slide
    assert public(S) - results == {call.partition("(")[0] for call, *_ in BAD}
    assert all(inspect.getdoc(getattr(S, name)) for name in public(S))
