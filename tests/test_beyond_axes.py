"""Places of two and three numbers: against transformers' modules, and what a shift does."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import Qwen2_5_VLConfig, Qwen2VLConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2
from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3

from ropebook import beyond as B
from ropebook import rope
from ropebook.efficient import apply_rotary
from tests.helpers import largest, random, seeded

sizes = st.integers(min_value=0, max_value=5)


def places(length: int, axes: int, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 40, (length, axes), generator=seeded(seed))


def waves() -> dict[str, torch.Tensor]:
    return {
        "line": B.axial([12]),
        "axial": B.axial([8, 4], base=100.0),
        "two bases": B.axial([6, 6], base=[100.0, 10.0]),
        "blocks": B.in_blocks(B.axial([4, 4, 4], base=50.0)),
        "mixed": B.mixed(12, 100.0, random(6)),
        "sections": B.mrope([1, 3, 2]),
        "interleaved": B.mrope([2, 2, 2], interleaved=True),
    }


every = pytest.mark.parametrize("name", waves())


@every
def test_a_score_does_not_change_when_all_places_move(name):
    found = waves()[name]
    q, k = random(2, 3, 5, 12)
    m = places(5, len(found))
    by = torch.tensor([7, -3, 100])[: len(found)]
    moved = B.score(q, k, m + by, m + by, found)
    assert largest(moved - B.score(q, k, m, m, found)) < 1e-12
    # one query and key of the same place score as unturned ones
    assert largest(B.score(q, k, m, m, found).diagonal(dim1=1, dim2=2) - (q * k).sum(-1) / 12**0.5) < 1e-12


@every
def test_every_axis_is_heard(name):
    found = waves()[name]
    q, k = random(2, 5, 12)
    m = places(5, len(found))
    for axis in range(len(found)):
        by = torch.zeros(len(found), dtype=torch.int64)
        by[axis] = 1
        assert largest(B.score(q, k, m + by, m, found) - B.score(q, k, m, m, found)) > 1e-3


def test_one_axis_is_a_line():
    x, m = random(3, 5, 12), torch.arange(5)
    tables = rope.cos_sin(m, rope.inv_freq(12, 77.0), torch.float64)
    assert torch.equal(B.turned(x, m[:, None], B.axial([12], 77.0)), apply_rotary(x, *tables))


@given(sections=st.tuples(sizes, sizes, sizes).filter(any), interleaved=st.booleans())
@settings(max_examples=15, deadline=None)
def test_equal_ids_are_a_line(sections, interleaved):
    if interleaved and 3 * max(sections[1:]) > sum(sections):
        with pytest.raises(ValueError, match="sections must leave room to interleave"):
            B.mrope(sections, interleaved=True)
        return
    found, dim = B.mrope(sections, interleaved=interleaved), 2 * sum(sections)
    equal = torch.arange(9)[:, None].expand(-1, 3)
    assert torch.equal(B.angles(equal, found), rope.angles(torch.arange(9), dim))


@pytest.mark.parametrize(("axes", "pairs"), [(2, 4), (3, 6)])
def test_blocks_are_sections_in_another_order(axes, pairs):
    sections = B.axial([2 * pairs // axes] * axes, 50.0)
    blocks = B.in_blocks(sections)
    assert [int(column.argmax()) for column in blocks.T] == list(range(axes)) * (pairs // axes)
    assert sorted(map(tuple, blocks.T.tolist())) == sorted(map(tuple, sections.T.tolist()))


# --- As transformers has it -----------------------------------------------------------------------------------------


@given(
    sections=st.tuples(*[st.integers(1, 6)] * 3),
    interleaved=st.booleans(),
    base=st.floats(10, 1e6),
    seed=st.integers(0, 99),
)
@settings(max_examples=15, deadline=None)
def test_mrope_is_that_of_transformers(sections, interleaved, base, seed):
    time, row, column = sections
    if interleaved:
        time = max(time, 2 * max(row, column) - min(row, column))
    sections, pairs = [time, row, column], time + row + column
    parameters = {"rope_type": "default", "rope_theta": base, "mrope_section": sections}
    config = SimpleNamespace(
        rope_parameters=parameters, head_dim=2 * pairs, max_position_embeddings=64, standardize_rope_params=lambda: None
    )
    module = (qwen3.Qwen3VLTextRotaryEmbedding if interleaved else qwen2.Qwen2VLRotaryEmbedding)(config)
    ids = places(7, 3, seed)
    q, k = random(2, 1, 2, 7, 2 * pairs, seed=seed, dtype=torch.float32)
    theirs = qwen2.apply_rotary_pos_emb(q, k, *module(q, ids.T[:, None]))
    found = B.mrope(sections, base, interleaved=interleaved)
    for x, expected in zip((q, k), theirs, strict=True):
        assert largest(B.turned(x, ids, found, layout="half") - expected) < 2e-5


@given(quarter=st.integers(1, 8), base=st.floats(10, 1e5), seed=st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_axial_is_that_of_a_vision_tower(quarter, base, seed):
    dim = 4 * quarter
    config = SimpleNamespace(rope_parameters={"rope_type": "axial", "rope_theta": base}, head_dim=dim)
    module = qwen2.Qwen2VLVisionRotaryEmbedding(config)
    m = places(7, 2, seed)
    q, k = random(2, 7, 3, dim, seed=seed, dtype=torch.float32)  # theirs is (seq, heads, dim)
    theirs, _ = qwen2.apply_rotary_pos_emb_vision(q, k, *module(q, m))
    found = B.turned(q.transpose(0, 1), m, B.axial([dim // 2] * 2, base), layout="half")
    assert largest(found.transpose(0, 1) - theirs) < 2e-5


def their_ids(model: object, parts: list, merge: int, **options: object) -> torch.Tensor:
    """The ids that transformers gives: grids are counted in patches there, merge × merge of which make a token."""
    kinds = [0 if isinstance(part, int) else 2 if part.frames > 1 else 1 for part in parts]
    counts = [part if isinstance(part, int) else part.frames * part.rows * part.columns for part in parts]
    types = torch.tensor(kinds).repeat_interleave(torch.tensor(counts))[None]
    grids = {
        kind: torch.tensor(
            [[p.frames, p.rows * merge, p.columns * merge] for p, of in zip(parts, kinds, strict=True) if of == kind]
        )
        for kind in (1, 2)
    }
    found, _ = model.get_rope_index(
        torch.zeros_like(types), types, image_grid_thw=grids[1], video_grid_thw=grids[2], **options
    )
    return found[:, 0].T


class Ids(qwen2.Qwen2VLModel):
    """Its method alone, without weights."""

    def __init__(self, config: object):
        torch.nn.Module.__init__(self)
        self.config = config


class LaterIds(Qwen2_5_VLModel):
    def __init__(self, config: object):
        torch.nn.Module.__init__(self)
        self.config = config


grids = st.builds(B.Grid, st.integers(1, 5), st.integers(1, 4), st.integers(1, 4), st.just(1))


@given(texts=st.lists(st.integers(1, 4), min_size=2, max_size=4), pictures=st.lists(grids, min_size=3, max_size=3))
@settings(max_examples=15, deadline=None)
def test_ids_are_those_of_transformers(texts, pictures):
    parts = [part for both in zip(texts, pictures, strict=False) for part in both] + [1]
    model = Ids(Qwen2VLConfig(vision_config={"spatial_merge_size": 2}))
    assert torch.equal(B.position_ids(parts), their_ids(model, parts, 2))


def test_a_video_may_count_seconds():
    model = LaterIds(Qwen2_5_VLConfig(vision_config={"spatial_merge_size": 2, "tokens_per_second": 3}))
    parts = [2, B.Grid(4, 2, 3, step=1.5), 3]
    theirs = their_ids(model, parts, 2, second_per_grid_ts=[0.5])
    assert torch.equal(B.position_ids(parts), theirs)
    assert theirs[2:26:6, 0].tolist() == [2, 3, 5, 6]


def test_after_a_long_video_the_two_rules_differ():
    parts = [1, B.Grid(5, 2, 2), 1]
    assert B.position_ids(parts)[-1].tolist() == [3] * 3
    assert B.position_ids(parts, follow="largest")[-1].tolist() == [6] * 3
    image = [1, B.Grid(1, 2, 3), 1]
    assert torch.equal(B.position_ids(image), B.position_ids(image, follow="largest"))


# --- Generators -----------------------------------------------------------------------------------------------------


def test_what_commutes_knows_the_difference_alone():
    a, b = random(2, 3, 3)
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    # any waves, in a basis of any kind
    basis = torch.linalg.qr(random(6, 6))[0]
    blocks = [basis @ torch.block_diag(*(w * turn for w in row)) @ basis.T for row in (a[0], b[0])]
    generators = torch.stack(blocks)
    m, n = torch.tensor([2.0, -3.0]), torch.tensor([5.0, 1.0])
    assert B.commutator(generators) < 1e-12
    assert B.shift_error(generators, m, n) < 1e-12
    assert largest(B.operator(m, generators) @ B.operator(m, generators).mT - torch.eye(6)) < 1e-12


def test_what_does_not_commute_knows_more():
    assert B.shift_error(B.spins(), torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])) > 0.1
    assert B.shift_error(B.spins(), torch.tensor([1.0, 0.0]), torch.tensor([3.0, 0.0])) < 1e-12
    assert B.commutator(B.spins()) == 1
    assert B.commutator(B.spins()[:1]) == 0


# --- What is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: B.axial([4, 4], base=[10.0]), "base must be one number, or one for each of 2 dims, got 1"),
        (lambda: B.axial([4, 3]), "dim must be an even integer >= 2, got 3"),
        (
            lambda: B.in_blocks(B.axial([4, 2])),
            "waves must have pairs of its own for each of 2 axes, .*, got 3",
        ),
        (
            lambda: B.in_blocks(B.axial([2, 6])),
            "waves must have pairs of its own for each of 2 axes, .*, got 4",
        ),
        (lambda: B.mixed(8, 100, torch.zeros(3)), r"directions must have shape \(4,\), one for each pair, got \(3,\)"),
        (lambda: B.angles(torch.zeros(5, 3), B.axial([4, 4])), "places must have 2 numbers each"),
        (lambda: B.mixed(4, 100, torch.tensor([0, torch.nan])), "directions must be finite numbers, got nan"),
        (lambda: B.angles(torch.full((5, 2), torch.nan), B.axial([4, 4])), "positions must lie between .*, got nan"),
        (lambda: B.axis_of_pair([1, -1]), "every section must be an integer >= 0, got -1"),
        (lambda: B.position_ids([-1]), "tokens of text must be an integer >= 0, got -1"),
        (lambda: B.position_ids([B.Grid(1, 0, 2)]), "rows must be an integer >= 1, got 0"),
        (lambda: B.position_ids([1], follow="time"), "follow must be one of 'grid', 'largest', got 'time'"),
        (lambda: B.operator(torch.zeros(3), B.spins()), r"place must have shape \(2,\), a number for each generator"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_places_that_were_rounded_already_are_refused():
    with pytest.raises(TypeError, match=r"positions must be integers, float32 or float64, got dtype torch.bfloat16"):
        B.turned(torch.ones(1, 4), torch.full((1, 2), 257, dtype=torch.bfloat16), B.axial([2, 2]))
