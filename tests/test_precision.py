"""Tests of the precision module, compared with rounding by hand, with sinusoidal.rounding_error, and with expected
values in closed form."""

import inspect
import math
import re

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from ropebook import precision, sinusoidal
from ropebook.efficient import rotate_by_pairs
from tests.helpers import largest, seeded
from tests.links import text
from tests.together import together


def test_bfloat16_positions_collide_from_257_on():
    positions = torch.arange(300)
    cos, _ = precision.rounded_cos_sin(positions, 64, rounded="positions")
    same = (cos[1:] == cos[:-1]).all(-1).nonzero().flatten().tolist()
    assert same[0] == 256
    errors = precision.table_error(positions, 64, rounded="positions")
    assert largest(errors[:257]) == 0
    assert errors[257] > 0.8
    assert largest(precision.table_error(torch.arange(2049), 64, dtype=torch.float16, rounded="positions")) == 0
    assert precision.table_error(torch.tensor([2049]), 64, dtype=torch.float16, rounded="positions") > 0.8


def test_each_rounding_by_hand():
    m, dim, base = 1001, 4, 100.0
    theta = torch.tensor([1.0, 0.1], dtype=torch.float64)
    bf16 = torch.bfloat16
    for rounded, angles in {
        None: m * theta,
        "positions": 1000 * theta,  # in this range, bfloat16 represents only every fourth integer
        "inv_freq": m * theta.to(bf16).double(),
        "angles": (torch.tensor(m).to(bf16) * theta.to(bf16)).double(),
    }.items():
        cos, sin = precision.rounded_cos_sin(torch.tensor([m]), dim, base, rounded=rounded)
        assert torch.equal(cos[0], angles.cos())
        assert torch.equal(sin[0], angles.sin())
    cos, sin = precision.rounded_cos_sin(torch.tensor([m]), dim, base, rounded="table")
    assert torch.equal(cos[0], (m * theta).cos().to(bf16).double())
    assert torch.equal(sin[0], (m * theta).sin().to(bf16).double())


def test_tables_rounded_last_are_off_by_half_a_step():
    errors = precision.table_error(torch.arange(997, 10**6, 997), 64)
    assert 2**-10 < errors.min() <= errors.max() <= 2**-9 + 2**-25
    cast_last = sinusoidal.rounding_error(range(1000), 64).cast_last
    assert precision.table_error(torch.arange(1000), 64).max().item() == pytest.approx(cast_last, rel=1e-3)


def test_float32_angles_at_a_million_and_ten():
    positions = torch.arange(10**6, 10**6 + 300), torch.arange(10**7, 10**7 + 300)
    million, ten = (
        precision.table_error(p, 128, dtype=torch.float32, rounded="angles").max().item() for p in positions
    )
    for last, error in ((10**6, million), (10**7, ten)):
        assert 2**-24 * last / 20 < error < 2**-23 * (last + 300)
    assert 0.005 < million < 0.13
    assert ten > 0.05
    # at the same positions, with angles in float64 and only the table cast to float32
    assert precision.table_error(positions[1], 128, dtype=torch.float32).max() <= 2**-25


def test_score_errors():
    m = torch.tensor([[10, 250], [10**4, 10**6]])

    def error(**options):
        found = precision.score_error(m, 64, generator=seeded(), **options)
        assert found.rms.shape == found.worst.shape == m.shape
        assert (found.rms <= found.worst).all()
        return found.rms.flatten()

    result = error(rounded="result")
    assert result.max() < 1.2 * result.min() < 2**-9
    positions = error(rounded="positions")
    assert largest(positions[:2]) == 0
    assert positions[2:].min() > 100 * result.min() / 2
    # rounding changes a frequency by the same amount at every position, so the error depends on the distance
    near, far = error(rounded="inv_freq"), error(rounded="inv_freq", distance=4000)
    assert near.max() < 1.01 * near.min()
    assert far.min() > 100 * near.max()
    angles = error(rounded="angles", dtype=torch.float32)
    assert angles[3] > 1000 * angles[0]
    assert error().max() < 1e-3
    assert largest(error(dtype=torch.float64)) == 0


def turned(x, at, rounded=None):
    """Rotate all vectors of x, (many, d), to the same position."""
    cos, sin = precision.rounded_cos_sin(at, x.shape[-1], rounded=rounded)
    return rotate_by_pairs(x[:, None], cos, sin)[:, 0]


def off(q, k, m, distance, rounded):
    """Return the error of a score when one step is rounded, relative to |q||k|."""
    where = torch.tensor([m]), torch.tensor([m - distance])
    rough, exact = ((turned(q, where[0], r) * turned(k, where[1], r)).sum(-1) for r in (rounded, None))
    return (rough - exact).abs() / (q.norm(dim=-1) * k.norm(dim=-1))


@together("rounded", precision.ROUNDED)
@together(("m", "distance"), [(1001, 7), (88014, 10)])
def test_the_worst_case_is_reached_and_never_passed(rounded, m, distance):
    dim = 32
    found = precision.score_error(torch.tensor([m]), dim, distance=distance, rounded=rounded)
    pairs = precision.pair_errors(torch.tensor([m]), dim, distance=distance, rounded=rounded)[0]
    # Both vectors are zero outside the pair with the largest error. In this pair, the key points along the first axis,
    # and the query tries every direction.
    pair = int(pairs.argmax())
    q, k = torch.zeros(2, 3600, dim, dtype=torch.float64)
    directions = torch.arange(3600) * 2 * math.pi / 3600
    q[:, 2 * pair], q[:, 2 * pair + 1], k[:, 2 * pair] = directions.cos(), directions.sin(), 1
    assert off(q, k, m, distance, rounded).max().item() == pytest.approx(found.worst.item(), rel=1e-6)
    others = torch.randn(2, 1000, dim, dtype=torch.float64, generator=seeded())
    assert off(*others, m, distance, rounded).max() <= found.worst
    assert off(*others, m, distance, rounded).square().mean().sqrt().item() == pytest.approx(found.rms.item(), rel=0.2)


@together("m", [3, 70_000])
@together("dtype", [torch.bfloat16, torch.float32])
def test_the_worst_case_of_a_rounded_result(m, dtype):
    found = precision.score_error(torch.tensor([m]), 64, rounded="result", dtype=dtype, generator=seeded())
    # slightly above half a step, because the conversion from float64 to bfloat16 goes through float32
    entry = 1 + torch.finfo(dtype).eps / 2 * (1 + 1e-4)
    here, there = torch.tensor([m]), torch.tensor([m - 1])
    # rotate the vector back first, so that the rotation returns the original
    q, k = (turned(torch.full((1, 64), entry, dtype=torch.float64), -at) for at in (here, there))
    q2, k2 = turned(q, here), turned(k, there)
    error = (q2.to(dtype).double() * k2.to(dtype).double() - q2 * k2).sum() / (q.norm() * k.norm())
    assert error.item() == pytest.approx(found.worst.item(), rel=1e-3)
    assert error <= found.worst


def test_no_table_is_off_by_more_than_a_rounded_result():
    # the error of a cosine or a sine is at most half the distance between neighbouring numbers just below 1
    most = math.sqrt(2) * torch.finfo(torch.bfloat16).eps / 4
    result = precision.score_error(torch.tensor([5]), 8, rounded="result").worst
    for distance in (1, 1000):
        found = precision.score_error(torch.arange(distance, 9000), 64, distance=distance).worst
        assert found.max() <= 2 * most + most**2 < result
    assert found.max() > 1.8 * most


def test_score_errors_by_hand():
    m, distance, dim = torch.tensor([256, 1001]), 1, 8
    q, k = torch.randn(2, 100_000, 1, dim, dtype=torch.float64, generator=seeded(5))

    def scores(bring):
        turned = []
        for x, at in ((q, m), (k, m - distance)):
            angles = bring(at)[:, None] * sinusoidal.inv_freq(dim, 10000.0)
            z = torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones_like(angles), angles)
            turned.append(z)
        return (turned[0] * turned[1].conj()).sum(-1).real

    off = scores(lambda at: at.bfloat16().double()) - scores(torch.Tensor.double)
    expected = (off / (q.norm(dim=-1) * k.norm(dim=-1))).square().mean(0).sqrt()
    found = precision.score_error(m, dim, rounded="positions").rms
    assert found[0] == 0  # bfloat16 can represent 256 and 255, but not 257
    assert found.tolist() == pytest.approx(expected.tolist(), rel=0.01)


def test_defaults_and_shapes():
    for name in ("rounded_cos_sin", "table_error", "score_error", "pair_errors"):
        parameters = inspect.signature(getattr(precision, name)).parameters
        assert (parameters["base"].default, parameters["dtype"].default) == (10000.0, torch.bfloat16)
    positions = torch.arange(6).view(2, 3) * 100
    errors = precision.table_error(positions, 8)
    assert errors.shape == (2, 3)
    assert torch.equal(errors, torch.stack([precision.table_error(row, 8) for row in positions]))


def test_the_frequencies_that_the_page_computes_in_float32_are_those_of_transformers():
    source = re.search(r"^def computed_in_float32.*?(?=^\n|^```)", text("efficient_precision.md"), re.M | re.S)[0]
    names = {"torch": torch}
    exec(source, names)
    for dim, base in ((64, 10_000.0), (80, 500_000.0), (128, 10_000.0)):
        parameters = {"rope_type": "default", "rope_theta": base}
        theirs = LlamaRotaryEmbedding(LlamaConfig(head_dim=dim, rope_parameters=parameters)).inv_freq
        assert torch.equal(names["computed_in_float32"](dim, base), theirs)


P = torch.arange(5)
BAD = [
    ("rounded_cos_sin(P, 8, rounded='sum')", ValueError, "rounded must be one of 'positions'"),
    ("rounded_cos_sin(P, 8, dtype=torch.int8)", ValueError, "dtype must be one of"),
    ("table_error(range(5), 8)", TypeError, "positions must be a tensor"),
    ("score_error(P, 8, rounded='scores')", ValueError, "rounded must be one of .*'result'"),
    ("score_error(P, 8, distance=0.5)", TypeError, "distance must be an integer"),
    ("score_error(P, 8, distance=0.5, rounded='result')", TypeError, "distance must be an integer"),
    ("score_error(P, 8, dtype=torch.int8, rounded='result')", ValueError, "dtype must be one of"),
    ("score_error(range(5), 8, rounded='result')", TypeError, "positions must be a tensor"),
    ("pair_errors(range(5), 8)", TypeError, "positions must be a tensor"),
    ("score_error(P, 7)", ValueError, "dim must be an even integer"),
]


@together(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        eval(call, {**vars(precision), "P": P})
