"""Tests of positions with two or three components. Results are compared with transformers' modules, and we check how a
shift changes the scores."""

from __future__ import annotations

from types import MethodType, SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from transformers import Qwen2VLConfig
from transformers.models.qwen2_5_vl import modeling_qwen2_5_vl as qwen2_5
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2
from transformers.models.qwen3_5 import modeling_qwen3_5 as qwen3_5
from transformers.models.qwen3_vl import modeling_qwen3_vl as qwen3

from ropebook import beyond as B
from ropebook import rope
from ropebook.efficient import apply_rotary
from tests.helpers import largest, random, seeded
from tests.together import together

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
    # if the query and the key have the same position, their score is the same as without rotation
    assert largest(B.score(q, k, m, m, found).diagonal(dim1=1, dim2=2) - (q * k).sum(-1) / 12**0.5) < 1e-12


def test_an_axis_has_the_frequencies_of_a_head_of_its_size_and_their_usual_base():
    assert torch.equal(B.axial([12])[0], rope.inv_freq(12))
    assert torch.equal(B.axial([8, 4])[1, 4:], rope.inv_freq(4))


def test_one_place_alone_has_the_angles_that_it_has_among_others():
    waves, places = B.axial([4, 4]), torch.tensor([[2, 3], [5, 7]])
    assert torch.equal(B.angles(places[1], waves), B.angles(places, waves)[1])


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
    assert torch.equal(B.turned(x, m[:, None], B.axial([12], 77.0)), apply_rotary(x, *tables, layout="interleaved"))


def fits(sections: tuple[int, ...]) -> bool:
    """Return whether the head has enough pairs for all of the row's and column's sections."""
    return all(not size or axis + 3 * (size - 1) < sum(sections) for axis, size in enumerate(sections) if axis)


@given(sections=st.tuples(sizes, sizes, sizes).filter(any), interleaved=st.booleans())
@settings(max_examples=15, deadline=None)
def test_equal_ids_are_a_line(sections, interleaved):
    if interleaved and not fits(sections):
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


# --- Compared with transformers -------------------------------------------------------------------------------------


def as_theirs(kind: type, sections: list[int], ids: torch.Tensor, base: float = 500.0) -> tuple[torch.Tensor, ...]:
    """Return random vectors, and the same vectors rotated by a module of transformers."""
    pairs = sum(sections)
    parameters = {"rope_type": "default", "rope_theta": base, "mrope_section": sections}
    config = SimpleNamespace(
        rope_parameters=parameters, head_dim=2 * pairs, max_position_embeddings=64, standardize_rope_params=lambda: None
    )
    x = random(1, 2, len(ids), 2 * pairs, dtype=torch.float32)
    return x, qwen2.apply_rotary_pos_emb(x, x, *kind(config)(x, ids.T[:, None]))[0]


IN_TURN = (qwen3.Qwen3VLTextRotaryEmbedding, qwen3_5.Qwen3_5TextRotaryEmbedding)


@given(
    sections=st.tuples(*[st.integers(0, 12)] * 3).filter(any),
    kind=st.sampled_from([qwen2.Qwen2VLRotaryEmbedding, qwen2_5.Qwen2_5_VLRotaryEmbedding, *IN_TURN]),
    base=st.floats(10, 1e6),
    seed=st.integers(0, 99),
)
@example(sections=(11, 11, 10), kind=qwen3_5.Qwen3_5TextRotaryEmbedding, base=1e7, seed=0)
@settings(max_examples=40, deadline=None)
def test_mrope_is_that_of_transformers(sections, kind, base, seed):
    assume(kind not in IN_TURN or fits(sections))
    ids = places(7, 3, seed)
    x, expected = as_theirs(kind, list(sections), ids, base)
    found = B.mrope(sections, base, interleaved=kind in IN_TURN)
    assert [int((wave > 0).sum()) for wave in found] == list(sections)
    assert largest(B.turned(x, ids, found, layout="half") - expected) < 2e-5


def test_what_does_not_fit_in_turn_is_not_what_was_asked_for():
    sections = [1, 1, 6]
    # the column gets pairs 2 and 5; its next pair would be pair 8, which doesn't exist
    ids = torch.tensor([[0, 0, 9]])
    x, theirs = as_theirs(qwen3.Qwen3VLTextRotaryEmbedding, sections, ids)
    moved = (theirs - x).abs().sum((0, 1, 2)) > 1e-6
    assert moved.nonzero()[:, 0].tolist() == [2, 5, 10, 13]
    with pytest.raises(ValueError, match="axis 2 can have 2 of 8 pairs in turn, got 6"):
        B.mrope(sections, interleaved=True)


def test_the_splits_are_those_of_the_models():
    for name, kind in (("Qwen2-VL", qwen2.Qwen2VLRotaryEmbedding), ("Qwen3-VL", qwen3.Qwen3VLTextRotaryEmbedding)):
        split = B.SPLITS[name]
        parameters = {"rope_type": "default", "rope_theta": split["base"]}
        config = SimpleNamespace(
            rope_parameters=parameters, head_dim=128, max_position_embeddings=64, standardize_rope_params=lambda: None
        )
        assert kind(config).mrope_section == list(split["sections"])
        assert sum(split["sections"]) == 64
    assert qwen2_5.Qwen2_5_VLRotaryEmbedding(config).mrope_section == list(B.SPLITS["Qwen2-VL"]["sections"])
    assert Qwen2VLConfig().text_config.rope_parameters["rope_theta"] == B.SPLITS["Qwen2-VL"]["base"]


@given(quarter=st.integers(1, 8), base=st.floats(10, 1e5), seed=st.integers(0, 99))
@settings(max_examples=10, deadline=None)
def test_axial_is_that_of_a_vision_tower(quarter, base, seed):
    dim = 4 * quarter
    config = SimpleNamespace(rope_parameters={"rope_type": "axial", "rope_theta": base}, head_dim=dim)
    module = qwen2.Qwen2VLVisionRotaryEmbedding(config)
    m = places(7, 2, seed)
    q, k = random(2, 7, 3, dim, seed=seed, dtype=torch.float32)  # transformers expects the shape (seq, heads, dim)
    theirs, _ = qwen2.apply_rotary_pos_emb_vision(q, k, *module(q, m))
    found = B.turned(q.transpose(0, 1), m, B.axial([dim // 2] * 2, base), layout="half")
    assert largest(found.transpose(0, 1) - theirs) < 2e-5


def their_ids(kind: type, parts: list, second_per_grid: float = 1.0) -> tuple[torch.Tensor, int]:
    """Return the ids that transformers computes, and the offset that it adds during generation.

    transformers measures grids in patches. Each token consists of 2 × 2 patches.
    """
    kinds = [0 if isinstance(part, int) else 2 if part.frames > 1 else 1 for part in parts]
    counts = [part if isinstance(part, int) else part.frames * part.rows * part.columns for part in parts]
    types = torch.tensor(kinds).repeat_interleave(torch.tensor(counts))[None]
    grids = {
        of: torch.tensor(
            [[p.frames, p.rows * 2, p.columns * 2] for p, one in zip(parts, kinds, strict=True) if one == of]
        )
        for of in (1, 2)
    }
    # we need only the model's method, not its weights
    vision = SimpleNamespace(spatial_merge_size=2, tokens_per_second=3)
    model = SimpleNamespace(config=SimpleNamespace(vision_config=vision))
    model.get_vision_position_ids = MethodType(kind.get_vision_position_ids, model)
    found, deltas = kind.get_rope_index(
        model,
        torch.zeros_like(types),
        types,
        image_grid_thw=grids[1] if len(grids[1]) else None,
        video_grid_thw=grids[2] if len(grids[2]) else None,
        second_per_grid_ts=[second_per_grid / 3] * kinds.count(2),
    )
    return found[:, 0].T, int(deltas)


frames, sides = st.integers(1, 9), st.integers(1, 4)
grids = st.builds(B.Grid, frames, sides, sides, st.just(1))
images = st.builds(B.Grid, st.just(1), sides, sides, st.just(1))
mixed = st.lists(st.one_of(st.integers(1, 6), grids), min_size=1, max_size=5)


def apart(parts: list) -> list:
    """Return the parts with one text token inserted before each grid."""
    return [part for one in parts for part in ([1, one] if isinstance(one, B.Grid) else [one])]


@given(parts=mixed.map(apart), kind=st.sampled_from([qwen2.Qwen2VLModel, qwen2_5.Qwen2_5_VLModel]))
@example(parts=[10, B.Grid(1, 4, 6), 5, B.Grid(8, 4, 4)], kind=qwen2.Qwen2VLModel)
@example(parts=[10, B.Grid(1, 4, 6), 5, B.Grid(8, 4, 4), 2], kind=qwen2.Qwen2VLModel)
@settings(max_examples=40, deadline=None)
def test_ids_are_those_of_transformers(parts, kind):
    ids = B.position_ids(parts)
    theirs, delta = their_ids(kind, parts)
    assert torch.equal(ids, theirs)
    assert B.rope_delta(ids) == delta


@given(
    parts=st.lists(st.one_of(st.integers(1, 6), images), min_size=1, max_size=5).map(apart),
    kind=st.sampled_from([qwen3.Qwen3VLModel, qwen3_5.Qwen3_5Model]),
)
@settings(max_examples=20, deadline=None)
def test_by_frames_the_two_rules_are_one(parts, kind):
    ids = B.position_ids(parts)
    theirs, delta = their_ids(kind, parts)
    assert torch.equal(ids, theirs)
    assert torch.equal(ids, B.position_ids(parts, follow="largest"))
    assert B.rope_delta(ids) == delta


def test_a_video_may_count_seconds():
    parts = [2, B.Grid(4, 2, 3, step=1.5), 3]
    theirs, _ = their_ids(qwen2_5.Qwen2_5_VLModel, parts, second_per_grid=1.5)
    assert torch.equal(B.position_ids(parts), theirs)
    assert theirs[2:26:6, 0].tolist() == [2, 3, 5, 6]


def test_after_a_long_video_the_two_rules_differ():
    parts = [1, B.Grid(5, 2, 2), 1]
    assert B.position_ids(parts)[-1].tolist() == [3] * 3
    assert B.position_ids(parts, follow="largest")[-1].tolist() == [6] * 3
    image = [1, B.Grid(1, 2, 3), 1]
    assert torch.equal(B.position_ids(image), B.position_ids(image, follow="largest"))


@together(("after", "last", "written"), [(0, 24, 29), (1, 25, 29), (4, 28, 29), (5, 29, 30), (7, 31, 32)])
def test_an_answer_that_is_written_follows_the_largest_id(after, last, written):
    prompt = [10, B.Grid(1, 4, 6), 5, B.Grid(8, 4, 4), *([after] if after else [])]
    ids = B.position_ids(prompt)
    assert ids[-1, 2] == last
    assert len(ids) + B.rope_delta(ids) == written
    # when the answer is read again, as in training, it is treated as part of the prompt's text
    longer = [*prompt[:-1], after + 1] if after else [*prompt, 1]
    theirs, delta = their_ids(qwen2.Qwen2VLModel, longer)
    assert theirs[-1].tolist() == [last + 1] * 3
    assert len(theirs) + delta == max(written, last + 2)


@torch.no_grad()
def test_a_model_writes_where_we_say():
    """Compare all positions with those of transformers, first for a prompt that contains a video, and then for a token
    that is generated from the cache."""
    model = qwen2.Qwen2VLModel.__new__(qwen2.Qwen2VLModel)
    torch.nn.Module.__init__(model)
    model.config = Qwen2VLConfig(vision_config={"spatial_merge_size": 2})
    model.rope_deltas = None
    parts = [3, B.Grid(8, 2, 2), 1]
    ids = B.position_ids(parts)
    types = torch.tensor([0] * 3 + [2] * 32 + [0])[None]
    grid = torch.tensor([[8, 4, 4]])
    read = model.compute_3d_position_ids(
        types, torch.zeros(*types.shape, 1), video_grid_thw=grid, mm_token_type_ids=types
    )
    assert torch.equal(read[:, 0].T, ids)
    held = SimpleNamespace(get_seq_length=lambda: len(ids))
    one = types[:, -1:]
    found = model.compute_3d_position_ids(one, torch.zeros(1, 1, 1), past_key_values=held)
    assert found.flatten().tolist() == [len(ids) + B.rope_delta(ids)] * 3 == [11] * 3


# --- Generators -----------------------------------------------------------------------------------------------------


def test_what_commutes_knows_the_difference_alone():
    a, b = random(2, 3, 3)
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    # use any frequencies, in any orthonormal basis
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


@together(
    ("call", "message"),
    [
        (lambda: B.axial([4, 4], base=[10.0]), "base must be one number, or one for each of 2 dims, got 1"),
        (lambda: B.axial([4, 3]), "dim must be an even integer >= 2, got 3"),
        (
            lambda: B.in_blocks(B.axial([4, 2])),
            "waves must have equally many pairs for each of 2 axes, got 3",
        ),
        (
            lambda: B.in_blocks(B.axial([2, 6])),
            "waves must have equally many pairs for each of 2 axes, got 4",
        ),
        (lambda: B.mixed(8, 100, torch.zeros(3)), r"directions must have shape \(4,\), one for each pair, got \(3,\)"),
        (lambda: B.angles(torch.zeros(5, 3), B.axial([4, 4])), "places must have 2 numbers each"),
        (lambda: B.angles(torch.tensor(2.0), B.axial([4, 4])), r"places must have 2 numbers each, .* got shape \(\)"),
        (lambda: B.mixed(4, 100, torch.tensor([0, torch.nan])), "directions must be finite numbers, got nan"),
        (lambda: B.angles(torch.full((5, 2), torch.nan), B.axial([4, 4])), "positions must lie between .*, got nan"),
        (lambda: B.axial([]), "dims must have a number for each axis, got none"),
        (lambda: B.mrope([]), r"sections must hold at least one pair, got \[\]"),
        (lambda: B.mrope([0, 0]), r"sections must hold at least one pair, got \[0, 0\]"),
        (lambda: B.rope_delta(B.position_ids([])), "ids must have at least one token, got none"),
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


@together(
    ("call", "message"),
    [
        (lambda: B.axial(4), "dims must be a list of integers, got 4"),
        (lambda: B.axial("44"), "dims must be a list of integers, got '44'"),
        (lambda: B.axial(np.int64(4)), r"dims must be a list of integers, got np.int64\(4\)"),
        (lambda: B.axial(torch.tensor([4, 4])), r"dims must be a list of integers, got tensor\("),
        (lambda: B.axial([4, 4], base="10"), "base must be a number or a list of numbers, got '10'"),
        (lambda: B.axial([4, 4], base=torch.tensor(10.0)), r"base must be a number or a list of numbers, got tensor\("),
        (lambda: B.axial([4, 4], base=None), "base must be a number or a list of numbers, got None"),
        (lambda: B.mixed(4, 100, [0.0, 1.0]), "directions must be a floating-point tensor, got list"),
        (lambda: B.mrope(6), "sections must be a list of integers, got 6"),
        (lambda: B.mrope(torch.tensor([2, 2, 2])), r"sections must be a list of integers, got tensor\("),
        (lambda: B.position_ids(4), "parts must be a list of numbers and grids, got 4"),
    ],
)
def test_what_is_of_another_kind_is_refused_by_name(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_numbers_of_numpy_pass():
    assert torch.equal(B.axial((np.int64(4), 4), base=np.int64(10)), B.axial([4, 4], base=10.0))
    assert torch.equal(B.axis_of_pair([np.int64(2), 1, 1]), B.axis_of_pair([2, 1, 1]))
