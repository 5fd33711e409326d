"""The sinusoidal module against mpmath's 40 digits, NumPy, transformers' tables, brute force, and the theorems.

Where a bound on float64 is stated: an angle mθ is off by at most a few units of 2^−53 times m, for θ ≤ 1.
"""

import inspect
import math

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from ropebook import sinusoidal as S
from tests.helpers import largest, public, random, seeded

mpmath.mp.dps = 40

HALVES = [torch.bfloat16, torch.float16]
EPS = 2.0**-52

dims = st.integers(1, 32).map(lambda pairs: 2 * pairs)
bases = st.one_of(st.sampled_from([1, 10000, 10000.0, 1e7]), st.floats(0, 7).map(lambda power: 10**power))
positions_up_to_a_million = st.integers(-(10**6), 10**6)
seeds = st.integers(0, 2**32 - 1)


def exact_frequency(i, dim, base):
    return mpmath.power(mpmath.mpf(base), -mpmath.mpf(2 * i) / dim)


def exact_kernel(distance, dim, base):
    return sum(mpmath.cos(exact_frequency(i, dim, base) * distance) for i in range(dim // 2))


def exact_encoding(position, dim, base):
    angles = [exact_frequency(i, dim, base) * position for i in range(dim // 2)]
    return torch.tensor([float(f(a)) for a in angles for f in (mpmath.sin, mpmath.cos)], dtype=torch.float64)


# --- Frequencies, angles, the encoding ---


@pytest.mark.parametrize("dim", [2, 4, 6, 64, 512])
@pytest.mark.parametrize("base", [1, 1.5, 10, 10000.0, 1e7])
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
        assert ours[i].item() == pytest.approx(apart, abs=4e-3)  # the arc's points are up to 2π/2000 apart
    assert (ours >= 0).all()


def test_unseen_angles_by_hand():
    # base 10⁴, d = 4: the slow pair turns by 1/100 a word, so 101 words show the first radian
    right, left, seen = S.unseen_angles([250, 600, 728], 101, 4)[:, 1].tolist()
    assert right == pytest.approx(1.5)
    assert left == pytest.approx(2 * math.pi - 6)
    assert seen == 0  # 7.28 radians: once round, and up to 7.28 − 2π < 1


def test_angles_at_the_largest_position_are_good_to_a_millionth():
    position = S.LARGEST_POSITION
    for base in (10000, 1e7):
        for dim in (4, 64, 512):
            exact = [float(mpmath.fmod(exact_frequency(i, dim, base) * position, 1000)) for i in range(dim // 2)]
            ours = S.angles(position, dim, base).remainder(1000)
            wrapped = (ours - torch.tensor(exact, dtype=torch.float64) + 500).remainder(1000) - 500
            assert largest(wrapped) < 1e-6


def test_encoding_by_hand():
    # d = 4, b = 10000: angles 1·m and 0.01·m
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


@pytest.mark.parametrize("dim", [2, 64, 512])
@pytest.mark.parametrize("base", [1, 10000, 1e7])
def test_encoding_on_the_whole_grid(dim, base, device):
    positions = np.arange(4096, dtype=np.float64)
    angles = positions[:, None] * base ** (-np.arange(0, dim, 2) / dim)
    expected = np.empty((4096, dim))
    expected[:, 0::2], expected[:, 1::2] = np.sin(angles), np.cos(angles)
    ours = S.encoding(torch.arange(4096, device=device), dim, base)
    assert ours.dtype == torch.float32
    assert ours.device.type == device.type
    assert np.abs(ours.cpu().double().numpy() - expected).max() <= 2**-25 + 1e-11


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (0,), (2, 0)])
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
    # torch would make float32 of a list: 0.1 off by 1.5e-9
    assert S.angles([0.1], 2).item() == 0.1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALVES])
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
    # float32 throughout: an angle of 511 is off by some 1e-5
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


# --- Counting, fractions, binary digits ---


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALVES])
@pytest.mark.parametrize("length", [1, 2, 7, 300])
def test_counting(dtype, length):
    ours = S.counting(length, dtype)
    assert ours.shape == (length, 1)
    assert ours.dtype == dtype
    assert torch.equal(ours.flatten(), torch.tensor([float(m) for m in range(length)]).to(dtype))
    assert S.counting(1).dtype == torch.float32


@given(st.integers(2, 5000))
def test_fractions_run_from_0_to_1_in_even_steps(length):
    ours = S.fractions(length, torch.float64)
    assert ours.shape == (length, 1)
    assert ours.flatten().tolist() == [m / (length - 1) for m in range(length)]
    assert torch.equal(S.fractions(length), ours.float())


@pytest.mark.parametrize(("dtype", "last"), [(torch.bfloat16, 256), (torch.float16, 2048)])
def test_half_types_run_out_of_integers(dtype, last):
    assert len(S.collisions(S.counting(last + 1, dtype))) == 0
    assert S.collisions(S.counting(last + 2, dtype)).tolist() == [[last, last + 1]]


@given(st.integers(1, 31).flatmap(lambda bits: st.tuples(st.just(bits), st.integers(0, 2**bits - 1))))
def test_binary_digits_and_the_waves_inside(bits_and_position):
    bits, position = bits_and_position
    digits = [int(character) for character in reversed(format(position, f"0{bits}b"))]
    ours = S.binary_digits(position, bits)
    assert ours.dtype == torch.int64
    assert ours.tolist() == digits
    waves = S.binary_waves(position, bits)
    assert waves.dtype == torch.float64
    assert (waves > 0).long().tolist() == digits
    exact = [-mpmath.sinpi((2 * position + 1) / mpmath.mpf(2 ** (j + 1))) for j in range(bits)]
    assert waves.tolist() == pytest.approx([float(w) for w in exact], abs=1e-5)
    if position < 2**16:
        assert waves.tolist() == pytest.approx([float(w) for w in exact], abs=1e-10)


def test_binary_periods_are_the_smallest_periods_of_the_digits(device):
    digits = S.binary_digits(torch.arange(32, device=device), 5).cpu()
    periods = S.binary_periods(5)
    assert periods.tolist() == [2, 4, 8, 16, 32]
    for digit, period in zip(digits.T, periods.tolist(), strict=True):
        assert torch.equal(digit[period:], digit[:-period])
        assert not torch.equal(digit[period // 2 :], digit[: -(period // 2)])


def test_binary_shapes():
    assert S.binary_digits(torch.zeros(2, 3, dtype=torch.int64), 4).shape == (2, 3, 4)
    assert S.binary_digits([], 4).shape == (0, 4)
    assert S.binary_waves(torch.zeros(2, 3), 4).shape == (2, 3, 4)
    assert S.binary_waves(0.5, 2).tolist() == pytest.approx([0, -1], abs=1e-15)
    assert len(S.binary_periods(31)) == 31


def test_describe_codes_by_hand(device):
    codes = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0], [3.0, 4.0]], device=device)
    assert S.describe_codes(codes) == pytest.approx((0, 5, 1, 5, 3))


def test_describe_codes_of_the_four_codes():
    length = 4096
    counting, fractions = S.describe_codes(S.counting(length)), S.describe_codes(S.fractions(length, torch.float64))
    assert counting == (0, length - 1, 1, 1, length)
    assert fractions == pytest.approx((0, 1, 1 / (length - 1), 1 / (length - 1), length))
    digits = S.describe_codes(S.binary_digits(range(length), 12).double())
    assert digits == pytest.approx((0, math.sqrt(12), 1, math.sqrt(12), length))
    sinusoids = S.describe_codes(S.encoding(range(length), 64, dtype=torch.float64))
    step = math.sqrt(64 - 2 * float(exact_kernel(1, 64, 10000)))
    assert sinusoids == pytest.approx((math.sqrt(32), math.sqrt(32), step, step, length))


def test_describe_codes_measures_half_types_without_more_rounding():
    assert S.describe_codes(torch.tensor([[256.0], [1.0]], dtype=torch.bfloat16)) == (1, 256, 255, 255, 2)
    assert S.describe_codes(torch.full((2, 1), 300.0, dtype=torch.float16).expand(2, 100000)).largest_norm > 65504


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=12))
def test_collisions_against_a_search(rows):
    codes = torch.tensor(rows, dtype=torch.float32).reshape(-1, 2)
    expected = [[rows.index(row), m] for m, row in enumerate(rows) if rows.index(row) < m]
    assert S.collisions(codes).tolist() == expected
    first = [row[0] for row in rows]
    expected = [[first.index(value), m] for m, value in enumerate(first) if first.index(value) < m]
    found = S.collisions(codes[:, 0])
    assert found.tolist() == expected
    assert found.shape == (len(expected), 2)
    assert found.dtype == torch.int64


# --- Shift and fingerprint ---


def test_relative_positions():
    assert S.relative_positions([5, 6], [4, 6, 9]).tolist() == [[1, -1, -4], [2, 0, -3]]
    batch = S.relative_positions(torch.tensor([[0, 1], [7, 8]]), torch.tensor([[0, 1, 2], [7, 8, 9]]))
    assert batch.shape == (2, 2, 3)
    assert torch.equal(batch[0], batch[1])  # the same sentence, seven words later
    assert S.relative_positions([0.5], [0]).item() == 0.5


@given(st.integers(-5000, 5000), st.integers(-5000, 5000), dims, bases)
def test_shift_matrix_shifts_every_encoding(position, offset, dim, base):
    shifted = S.shift_matrix(offset, dim, base) @ S.encoding(position, dim, base, torch.float64)
    assert largest(shifted - exact_encoding(position + offset, dim, base)) <= 16 * EPS * 10_000


@given(st.integers(-5000, 5000), st.integers(-5000, 5000), dims, bases)
def test_shift_matrices_are_orthogonal_and_add(first, second, dim, base):
    one, other, both = S.shift_matrix(torch.tensor([first, second, first + second]), dim, base)
    assert largest(one.T @ one - torch.eye(dim, dtype=torch.float64)) <= 8 * EPS
    assert largest(one @ other - both) <= 16 * EPS * 10_000
    assert torch.equal(one.T, S.shift_matrix(-first, dim, base))
    assert one.trace().item() == pytest.approx(2 * S.distance_kernel(first, dim, base).item(), abs=1e-12)


def test_shift_matrix_by_hand(device):
    cos, sin = math.cos, math.sin
    expected = [
        [cos(3), sin(3), 0, 0],
        [-sin(3), cos(3), 0, 0],
        [0, 0, cos(0.75), sin(0.75)],
        [0, 0, -sin(0.75), cos(0.75)],
    ]
    ours = S.shift_matrix(torch.tensor([[3]], device=device), 4, base=16)
    assert ours.shape == (1, 1, 4, 4)
    assert ours.dtype == torch.float64
    assert ours[0, 0].tolist() == [pytest.approx(row, abs=1e-15) for row in expected]
    assert S.shift_matrix(0, 6).tolist() == torch.eye(6).tolist()


@given(positions_up_to_a_million, dims, bases)
def test_kernel_against_forty_digits(distance, dim, base):
    ours = S.distance_kernel(distance, dim, base)
    assert ours.shape == ()
    assert abs(ours.item() - exact_kernel(distance, dim, base)) <= dim * 4 * EPS * (abs(distance) + 1)
    assert S.distance_kernel(-distance, dim, base) == ours


@given(st.integers(0, 4096), st.integers(0, 4096), dims, bases)
def test_kernel_and_chord_are_product_and_distance_of_encodings(m, n, dim, base):
    one, other = S.encoding([m, n], dim, base, torch.float64)
    assert S.distance_kernel(m - n, dim, base).item() == pytest.approx((one @ other).item(), abs=1e-9)
    assert S.chord(m - n, dim, base).item() == pytest.approx((one - other).norm().item(), abs=1e-9)


def test_kernel_and_chord_shapes_and_ends(device):
    distances = torch.arange(-3, 3, device=device).reshape(2, 3)
    kernel, chord = S.distance_kernel(distances, 10), S.chord(distances, 10)
    assert kernel.shape == chord.shape == (2, 3)
    assert kernel.dtype == chord.dtype == torch.float64
    assert kernel[1, 0] == 5
    assert chord[1, 0] == 0
    assert torch.equal(S.distance_kernel(distances, 2, 7.0).cpu(), distances.cpu().double().cos())
    assert torch.equal(distances.cpu(), torch.arange(-3, 3).reshape(2, 3))


def test_chord_keeps_its_digits_where_the_encodings_nearly_coincide():
    # √(d − 2K) would be 0 here: K is d/2 to the last digit
    assert S.chord(1e-9, 2).item() == pytest.approx(1e-9, rel=1e-12)
    assert S.chord(710, 2).item() == pytest.approx(float(2 * abs(mpmath.sin(355))), rel=1e-9)


class LargestTensor(TorchDispatchMode):
    numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.numel = max(self.numel, out.numel())
        return out


def test_kernel_never_holds_more_than_one_pair_of_all_distances():
    distances = torch.arange(10_000)
    with LargestTensor() as seen:
        S.distance_kernel(distances, 512)
    assert seen.numel == len(distances)


def test_kernel_reaches_a_million_distances():
    kernel = S.distance_kernel(torch.arange(10**6), 16)
    assert abs(kernel[-1].item() - exact_kernel(10**6 - 1, 16, 10000)) < 1e-8


# --- Uniqueness ---


@given(st.integers(1, 200), dims, bases)
def test_closest_values_against_a_search(max_distance, dim, base):
    found = S.closest_values(max_distance, dim, base)
    kernel = S.distance_kernel(range(max_distance + 1), dim, base)
    gaps = (kernel[:, None] - kernel[None, :]).abs()
    smallest = min(gaps[a, b].item() for a in range(max_distance + 1) for b in range(a))
    assert found.gap == smallest
    assert 0 <= found.first < found.second <= max_distance
    assert gaps[found.first, found.second] == smallest


@given(st.integers(1, 3000), dims, bases)
def test_the_error_of_closest_values_is_a_bound_and_not_a_wild_one(max_distance, dim, base):
    found = S.closest_values(max_distance, dim, base)
    exact = exact_kernel(found.first, dim, base) - exact_kernel(found.second, dim, base)
    assert abs(abs(exact) - found.gap) <= found.error
    frequencies = sum(float(exact_frequency(i, dim, base)) for i in range(dim // 2))
    assert found.error == pytest.approx(2**-50 * (max_distance * frequencies + dim**2 / 4), rel=1e-12)


def test_kernel_values_never_coincide_in_theory_but_do_in_practice():
    kernel = S.distance_kernel(range(4096), 128)
    assert S.closest_values(4095, 128).gap > S.closest_values(4095, 128).error
    assert len(S.collisions(kernel.bfloat16())) > 2000
    assert S.closest_values(10**5, 128).gap < 128 / 10**5


@given(st.integers(1, 1000), dims, bases)
def test_closest_return_against_a_search(max_distance, dim, base):
    found = S.closest_return(max_distance, dim, base)
    encodings = S.encoding(range(max_distance + 1), dim, base, torch.float64)
    gaps = (encodings[1:] - encodings[0]).norm(dim=-1)
    assert found.gap == pytest.approx(gaps.min().item(), abs=1e-9)
    assert gaps[found.distance - 1].item() == pytest.approx(found.gap, abs=1e-9)
    assert found.gap > 0


def test_the_nearest_returns_of_one_hand_are_the_fractions_of_2_pi():
    # 6/1, 19/3, 25/4, 44/7, 333/53 and 710/113, each nearer to 2π than those before
    for limit, distance in [
        (18, 6),
        (19, 19),
        (25, 25),
        (43, 25),
        (44, 44),
        (332, 44),
        (333, 333),
        (709, 333),
        (710, 710),
    ]:
        assert S.closest_return(limit, 2).distance == distance


@pytest.mark.parametrize(
    ("dim", "base", "turns"),
    [
        (2, 10000, 1),
        (2, 1.1, 1),
        (4, 10000, 100),
        (8, 10000, 1000),
        (6, 27, 9),
        (64, 1, 1),
        (4, 2.25, 3),
        (6, 3.375, 9),
    ],
)
def test_exact_period(dim, base, turns):
    period = S.exact_period(dim, base)
    assert period == pytest.approx(2 * math.pi * turns, rel=1e-15)
    somewhere = torch.tensor([0.0, 0.3, 17.0], dtype=torch.float64)
    assert largest(S.encoding(somewhere + period, dim, base) - S.encoding(somewhere, dim, base)) < 1e-6
    for fewer in range(1, turns):  # and it is the smallest
        assert S.chord(2 * math.pi * fewer, dim, base) > 1e-3


@pytest.mark.parametrize(("dim", "base"), [(128, 10000), (6, 10000), (4, 2), (4, 4.5), (8, 9999), (6, 28)])
def test_no_exact_period(dim, base):
    assert S.exact_period(dim, base) is None


@given(st.integers(1, 12), st.integers(1, 9))
def test_exact_period_of_every_power(pairs, root):
    assert S.exact_period(2 * pairs, root**pairs) == pytest.approx(2 * math.pi * root ** (pairs - 1), rel=1e-15)


# --- What adding does ---


@given(seeds, st.integers(1, 20))
def test_four_terms_are_the_products_and_sum_to_the_score(seed, dim):
    x, y, p, q = random(4, 5, dim, seed=seed)
    terms = S.four_terms(x, y, p, q)
    for ours, (a, b) in zip(terms, [(x, y), (x, q), (p, y), (p, q)], strict=True):
        assert torch.allclose(ours, torch.einsum("ni,ni->n", a, b), rtol=1e-13, atol=1e-13)
    assert torch.allclose(terms.total, torch.einsum("ni,ni->n", x + p, y + q), rtol=1e-12, atol=1e-12)


def test_four_terms_broadcast_and_keep_their_type(device):
    x, y = torch.ones(2, 1, 4, device=device), torch.ones(4, device=device)
    p, q = torch.ones(3, 4, device=device), torch.ones(1, 1, 4, device=device)
    for dtype, expected in [(torch.float32, torch.float32), *((half, torch.float32) for half in HALVES)]:
        for term in S.four_terms(*(v.to(dtype) for v in (x, y, p, q))):
            assert term.shape == (2, 3)
            assert term.dtype == expected
            assert term.device.type == device.type
    assert S.four_terms(*torch.ones(4, 2, dtype=torch.float64)).total.dtype == torch.float64


def test_four_terms_of_half_types_are_multiplied_in_float32():
    x = torch.full((1,), 255.0, dtype=torch.bfloat16)  # 255² = 65025 is no bfloat16
    assert S.four_terms(x, x, x, x).content == 65025


@given(seeds, st.integers(-50, 50), st.integers(-50, 50))
def test_sliding_changes_the_cross_terms_only(seed, m, n):
    x, y = random(2, 3, 16, seed=seed)
    shifts = torch.tensor([0, 1, 40, 1000])
    terms = S.slide(x, y, m, n, shifts, base=100.0)
    assert all(term.shape == (3, 4) for term in terms)
    assert all(term.dtype == torch.float64 for term in terms)
    for column, shift in enumerate(shifts.tolist()):
        p, q = (exact_encoding(start + shift, 16, 100.0) for start in (m, n))
        for ours, expected in zip(terms, S.four_terms(x, y, p, q), strict=True):
            assert torch.allclose(ours[:, column], expected, atol=1e-9)
    assert largest(terms.position - S.distance_kernel(m - n, 16, 100.0)) < 1e-9
    assert terms.content_position.std(dim=-1).min() > 1e-3
    assert terms.position_content.std(dim=-1).min() > 1e-3


def test_slide_takes_half_types_devices_and_the_papers_base(device):
    x, y = random(2, 8, dtype=torch.float32).to(device)
    for dtype in (torch.float32, torch.bfloat16):
        terms = S.slide(x.to(dtype), y.to(dtype), 2, 0, [0, 5])
        assert terms.total.dtype == torch.float64
        assert torch.allclose(terms.position.cpu(), S.distance_kernel(2, 8).expand(2))
    exact = S.slide(x, y, 2, 0, [7])
    assert exact.content.cpu().item() == pytest.approx((x.cpu().double() @ y.cpu().double()).item(), rel=1e-15)


@pytest.mark.parametrize("std", [0.02, 1.0])
@pytest.mark.parametrize(("m", "n"), [(9, 4), (1009, 1004), (3, 3)])
def test_term_sizes_are_those_of_the_theory(std, m, n):
    dim = 32
    sizes = S.term_sizes(m, n, dim, std=std, samples=20_000, generator=seeded())
    assert sizes.content == pytest.approx(std**2 * math.sqrt(dim), rel=0.03)
    assert sizes.content_position == pytest.approx(std * math.sqrt(dim / 2), rel=0.03)
    assert sizes.position_content == pytest.approx(std * math.sqrt(dim / 2), rel=0.03)
    assert sizes.position == pytest.approx(abs(float(exact_kernel(m - n, dim, 10000))), rel=1e-9)


def test_term_sizes_come_from_the_generator_and_depend_on_the_base():
    first = S.term_sizes(9, 4, 32, samples=50, generator=seeded(1))
    assert first == S.term_sizes(9, 4, 32, samples=50, generator=seeded(1))
    assert first != S.term_sizes(9, 4, 32, samples=50, generator=seeded(2))
    other = S.term_sizes(9, 4, 32, base=2.0, samples=50, generator=seeded(1))
    assert other.content == first.content
    assert other.position == pytest.approx(abs(float(exact_kernel(5, 32, 2))))
    torch.manual_seed(3)
    default = S.term_sizes(9, 4, 32)
    torch.manual_seed(3)
    assert default == S.term_sizes(9, 4, 32, std=1, samples=4096)
    words = random(2, 7, 4, seed=5) * 0.5
    small = S.term_sizes(9, 4, 4, std=0.5, samples=7, generator=seeded(5))
    assert small.content == pytest.approx((words[0] * words[1]).sum(-1).square().mean().sqrt().item())
    crossed = words[0] @ S.encoding(4, 4, dtype=torch.float64)
    assert small.content_position == pytest.approx(crossed.square().mean().sqrt().item())
    crossed = words[1] @ S.encoding(9, 4, dtype=torch.float64)
    assert small.position_content == pytest.approx(crossed.square().mean().sqrt().item())


# --- Order of the frequencies ---


def test_orders_by_hand():
    assert S.concatenated_order(8).tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert S.pair_order([1, 0]).tolist() == [2, 3, 0, 1]
    assert S.pair_order(torch.tensor([0, 2, 1])).tolist() == [0, 1, 4, 5, 2, 3]


@given(seeds, st.permutations(range(6)))
def test_weights_absorb_the_order_of_the_frequencies(seed, pairs):
    order = S.pair_order(pairs)
    words, queries, keys = random(7, 12, seed=seed), random(5, 12, seed=seed + 1), random(5, 12, seed=seed + 2)
    z = words + S.encoding(range(7), 12, dtype=torch.float64)
    scores = (z @ queries.T) @ (z @ keys.T).T
    moved = words[:, order] + S.encoding(range(7), 12, dtype=torch.float64)[:, order]
    absorbed = (moved @ S.absorb_order(queries, order).T) @ (moved @ S.absorb_order(keys, order).T).T
    assert torch.allclose(absorbed, scores, rtol=1e-12, atol=1e-10)
    if order.tolist() != list(range(12)):  # the weights must follow
        assert largest((moved @ queries.T) @ (moved @ keys.T).T - scores) > 1e-6


def test_frequencies_in_another_order_are_pairs_in_that_order():
    order = [2, 0, 1]
    angles = 5 * S.inv_freq(6)[order]
    expected = torch.stack((angles.sin(), angles.cos()), -1).flatten()
    assert torch.equal(S.encoding(5, 6, dtype=torch.float64)[S.pair_order(order)], expected)


def test_absorb_order_keeps_type_and_device(device):
    weight = random(3, 4, dtype=torch.float32).to(device)
    ours = S.absorb_order(weight, [3, 0, 2, 1])
    assert ours.device.type == device.type
    assert torch.equal(ours.cpu(), weight.cpu()[:, [3, 0, 2, 1]])


# --- Modules ---


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES])
def test_sinusoidal_module_adds_the_encoding_and_rounds_once(dtype, device):
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("mps has no float64")
    x = random(2, 300, 16, dtype=dtype).to(device)
    ours = S.SinusoidalEncoding(16)(x)
    assert ours.shape == x.shape
    assert ours.dtype == dtype
    assert ours.device.type == device.type
    exact = x.cpu().double() + S.encoding(range(300), 16, dtype=torch.float64)
    spacing = torch.finfo(dtype).eps * exact.abs().clamp(min=1)
    assert ((ours.cpu().double() - exact).abs() <= 0.5001 * spacing + 2**-24 * (dtype != torch.float64)).all()


@pytest.mark.parametrize("positions", [[4, 0, 9], torch.tensor([[4, 0, 9], [1, 2, 3]]), torch.tensor([[7], [8]])])
def test_modules_take_positions(positions):
    x = random(2, 3, 8, dtype=torch.float32)
    wanted = torch.as_tensor(positions)
    encoded = S.SinusoidalEncoding(8, base=50.0)(x, positions)
    assert torch.equal(encoded, x + S.encoding(wanted, 8, 50.0))
    learned = S.LearnedPositions(8, 10)
    assert torch.equal(learned(x, positions), x + torch.nn.functional.embedding(wanted, learned.weight))


def test_modules_take_one_sequence_and_many_axes():
    for module in (S.SinusoidalEncoding(8), S.LearnedPositions(8, 10)):
        x = random(2, 3, 5, 8, dtype=torch.float32)
        whole = module(x)
        assert whole.shape == x.shape
        assert torch.equal(module(x[1, 2]), whole[1, 2])
        assert torch.equal(module(x, torch.arange(5)), whole)


def test_sinusoidal_module_has_nothing_to_round_or_train():
    module = S.SinusoidalEncoding(8, base=100)
    before = module(torch.zeros(200, 8))
    assert not module.state_dict()
    assert not list(module.buffers())
    assert torch.equal(module.half()(torch.zeros(200, 8)), before)
    assert module.extra_repr() == "dim=8, base=100"
    x = torch.zeros(3, 8, requires_grad=True)
    module(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(3, 8))


def test_learned_positions_learn_the_rows_they_see(device):
    module = S.LearnedPositions(4, 6).to(device)
    x = torch.zeros(2, 3, 4, device=device, requires_grad=True)
    out = module(x)
    assert torch.equal(out[1], module.weight[:3])
    out.sum().backward()
    assert module.weight.grad.cpu().tolist() == [[2.0] * 4] * 3 + [[0.0] * 4] * 3
    assert torch.equal(x.grad.cpu(), torch.ones(2, 3, 4))
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    assert module.extra_repr() == "dim=4, max_length=6"


def test_learned_positions_take_any_dim_and_the_type_of_the_words():
    module = S.LearnedPositions(3, 2)
    out = module(torch.zeros(2, 3, dtype=torch.bfloat16))
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, module.weight.bfloat16())
    assert S.LearnedPositions(1, 1)(torch.zeros(1, 1)).shape == (1, 1)


def test_learned_positions_start_small():
    torch.manual_seed(0)
    assert S.LearnedPositions(64, 512).weight.std().item() == pytest.approx(0.02, rel=0.03)
    module = S.LearnedPositions(64, 512, std=3)
    assert module.weight.std().item() == pytest.approx(3, rel=0.03)
    assert abs(module.weight.mean().item()) < 0.1
    assert not S.LearnedPositions(2, 2, std=0).weight.any()


def test_learned_positions_end_where_learning_ended():
    module = S.LearnedPositions(4, 512)
    assert module(torch.zeros(512, 4)).shape == (512, 4)
    with pytest.raises(ValueError, match=r"positions must lie between 0 and 511 \(max_length=512 .*, got 512"):
        module(torch.zeros(513, 4))
    with pytest.raises(ValueError, match=r"positions must lie between 0 and 511.*got -1"):  # no counting from the end
        module(torch.zeros(1, 4), [-1])


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
    ("LearnedPositions(4, 9)(ZEROS, [1.0])", TypeError, "positions must be integers"),
    ("LearnedPositions(4, 9)(ZEROS, [[1, 2]] * 2)", ValueError, "positions must broadcast"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        eval(call, {**vars(S), "ZEROS": ZEROS})


def test_every_public_function_has_bad_input_and_a_description():
    results = {"RoundingError", "CodeSummary", "ClosestValues", "ClosestReturn", "FourTerms"}
    results.add("interleave")  # trusts what it is given
    assert public(S) - results == {call.partition("(")[0] for call, *_ in BAD}
    assert all(inspect.getdoc(getattr(S, name)) for name in public(S))


# --- The module as a whole ---
