"""Tests of the gallery of mistakes. Each mistake must be what its name says, and it must be detected by the
measurements listed for it and by no others."""

import inspect
import math

import pytest
import torch

from ropebook import efficient, mistakes, sinusoidal
from tests.helpers import largest, random, seeded
from tests.together import together

LAYOUTS = ["interleaved", "half"]


CAUGHT_BY = {
    "missing_sin": {"lengths", "start", "shift", "scores", "gaps", "output"},
    "ignored_positions": {"gaps"},
    "degrees": {"scores", "gaps"},
    "halved_dim": {"scores", "gaps"},
    "swapped_layout": {"lengths", "shift", "scores", "gaps", "output"},
    "other_layout": {"scores", "gaps"},  # this mistake breaks no property of a rotation
    "rotated_values": {"values", "output"},
    "bf16_table": {"lengths", "shift", "scores", "gaps", "output"},
    "query_only": {"shift", "scores", "gaps", "output"},
    "key_value": {"shift", "scores", "gaps", "values", "output"},
}


@together("layout", LAYOUTS)
@together("name", [*CAUGHT_BY, "correct"])
def test_each_mistake_is_caught_by_its_tests_and_by_no_other(name, layout):
    assert set(mistakes.MISTAKES) == set(CAUGHT_BY)
    function = mistakes.correct if name == "correct" else mistakes.MISTAKES[name]
    found = mistakes.diagnose(function, layout=layout, generator=seeded())
    assert set(found.caught_by()) == CAUGHT_BY.get(name, set())
    # no value may be close to the tolerance
    assert all(value < 1e-12 or value > 1e-4 for value in found)


def test_a_rotation_is_asked_for_positions_that_a_text_has():
    """A reader's own function may refuse positions below 0, so `diagnose` must not use any."""
    seen = []

    def watched(q, k, v, positions, **options):
        seen.append(positions)
        return mistakes.correct(q, k, v, positions, **options)

    mistakes.diagnose(watched, shift=7, generator=seeded())
    assert {int(positions[0]) for positions in seen} == {0, 7}
    assert {int(step) for positions in seen for step in positions.diff()} == {1, 3}


class Reader:
    """Two layers of attention without weights, which can be made to misuse a correct rotation. For longer texts, the
    base is raised."""

    def __init__(self, wrong=""):
        self.wrong, self.base = wrong, 100.0

    def __call__(self, x, pad=0, by_token=False):
        base = self.base if len(x) <= 8 else 4 * self.base
        if self.wrong == "base":
            self.base = base
        x = torch.cat((torch.zeros(pad, x.shape[-1], dtype=x.dtype), x))
        at = torch.arange(len(x))
        seen = (at <= at[:, None]) & (at >= pad)
        places = torch.zeros_like(at) if by_token and self.wrong == "offset" else at
        if by_token and self.wrong == "is_causal":
            # the mask is aligned with its upper left corner, so a single query sees only the first key
            seen = seen & (at == 0)
        for _ in range(2):
            q, k, v = mistakes.correct(x, x, x, places, base=base)
            weights = (q @ k.T).masked_fill(~seen, -math.inf).softmax(-1)
            x = x + (weights if self.wrong == "nan" else weights.nan_to_num(0)) @ v
        return x[pad:]


@together("wrong", ["", "offset", "is_causal", "nan", "base"])
def test_wrong_use_of_a_right_rotation_is_found_by_reading_in_other_ways(wrong):
    reader, text, longer = Reader(wrong), random(6, 8), random(12, 8)
    alone = reader(text)
    others = {"by token": reader(text, by_token=True), "padded": reader(text, pad=3)}
    reader(longer)
    others["after a longer text"] = reader(text)
    found = {name for name, other in others.items() if not largest(other - alone) < 1e-9}
    ways = {"offset": "by token", "is_causal": "by token", "nan": "padded", "base": "after a longer text"}
    assert found == ({ways[wrong]} if wrong else set())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_correct_is_the_rotation_of_the_module(layout):
    q, k, v = random(3, 1, 2, 5, 8)
    positions = torch.tensor([4, 9, 1, 0, 100])
    q2, k2, v2 = mistakes.correct(q, k, v, positions, base=50.0, layout=layout)
    right = efficient.RotaryEmbedding(8, 50.0, layout=layout)(q, k, positions)
    assert largest(q2 - right[0]) < 1e-14
    assert largest(k2 - right[1]) < 1e-14
    assert v2 is v


def test_the_mistakes_are_those_they_are_called():
    from transformers.models.llama.modeling_llama import rotate_half

    q, k, v = random(3, 5, 8)
    m = torch.tensor([0, 2, 4, 6, 200])
    wide = torch.cat(2 * (m[:, None] * sinusoidal.inv_freq(8),), -1)
    M = {name: mistake(q, k, v, m, layout="half") for name, mistake in mistakes.MISTAKES.items()}
    right_q, right_k, _ = mistakes.correct(q, k, v, m, layout="half")
    assert largest(M["missing_sin"][1] - (k * wide.cos() + rotate_half(k))) < 1e-14
    assert largest(M["missing_sin"][0] - right_q) < 1e-14
    turned = k * (wide * math.pi / 180).cos() + rotate_half(k) * (wide * math.pi / 180).sin()
    assert largest(M["degrees"][1] - turned) < 1e-14
    steep = torch.cat(2 * (m[:, None] * 10000.0 ** (-torch.arange(0, 8, 2).double() / 4),), -1)
    assert largest(M["halved_dim"][1] - (k * steep.cos() + rotate_half(k) * steep.sin())) < 1e-12
    assert largest(M["ignored_positions"][1] - mistakes.correct(q, k, v, torch.arange(5), layout="half")[1]) == 0
    spread = wide.cos(), wide.sin()
    assert largest(M["swapped_layout"][1] - (k * spread[0] + efficient.rotate_every_two(k) * spread[1])) < 1e-14
    assert largest(M["rotated_values"][2] - (v * spread[0] + rotate_half(v) * spread[1])) < 1e-14
    low = (table.bfloat16().double() for table in spread)
    cos, sin = low
    assert largest(M["bf16_table"][1] - (k * cos + rotate_half(k) * sin)) < 1e-14
    assert largest(M["query_only"][0] - right_q) == 0
    assert M["query_only"][1] is k
    assert all(M[name][2] is v for name in M if name not in ("rotated_values", "key_value"))
    assert largest(M["rotated_values"][1] - right_k) == 0
    for name in ("other_layout", "key_value"):
        assert largest(M[name][1] - (right_k if name == "key_value" else interleaved(k, m))) < 1e-14
    assert largest(M["other_layout"][0] - interleaved(q, m)) < 1e-14
    assert M["key_value"][0] is q
    assert torch.equal(M["key_value"][2], M["rotated_values"][2])


def interleaved(x, positions):
    """Rotate with complex numbers, which the module itself never uses."""
    turn = torch.polar(torch.ones(5, 4).double(), positions[:, None] * sinusoidal.inv_freq(8))
    return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turn).flatten(-2)


def test_the_output_is_measured_against_torchs_attention():
    """`output` is the largest change in the result of torch's own attention when all positions are shifted."""
    found = mistakes.diagnose(mistakes.query_only, dim=8, seq_len=6, shift=7, generator=seeded())
    q, k, v = torch.randn(3, 6, 8, dtype=torch.float64, generator=seeded())
    at = torch.arange(6)
    one, other = (
        torch.nn.functional.scaled_dot_product_attention(*mistakes.query_only(q, k, v, positions))
        for positions in (at, at + 7)
    )
    assert found.output == pytest.approx(largest(one - other), rel=1e-9)
    assert found.output > 0.1


def test_a_diagnosis_names_what_is_not_a_number():
    assert mistakes.Diagnosis(0, float("nan"), 1e-7, 1e-5, 0, 0, 0).caught_by() == ("start", "scores")
    assert mistakes.Diagnosis(0, 0, 1e-7, 1e-5, 0, 0, 0).caught_by(1e-8) == ("shift", "scores")


def test_rotations_are_compared_on_the_same_numbers():
    rotations = {"right": mistakes.correct, "wrong": mistakes.key_value, "again": mistakes.key_value}
    columns = mistakes.compared(rotations, seed=3, dim=8)
    alone = mistakes.diagnose(mistakes.key_value, dim=8, generator=torch.Generator().manual_seed(3))
    assert columns.pop("rotation") == ["right", "wrong", "again"]
    assert list(columns) == list(mistakes.Diagnosis._fields)
    for name, (right, wrong, again) in columns.items():
        assert right is None
        assert wrong == again == (getattr(alone, name) if name in CAUGHT_BY["key_value"] else None)


@together("name", mistakes.MISTAKES)
def test_a_mistake_is_made_in_every_head_alike(name):
    # There are five positions, and each head has eight entries. The leading sizes differ from both of these numbers.
    q, k, v = random(3, 2, 3, 5, 8)
    positions = torch.tensor([0, 2, 4, 6, 200])
    together = mistakes.MISTAKES[name](q, k, v, positions)
    for at in ((0, 0), (0, 2), (1, 1)):
        alone = mistakes.MISTAKES[name](q[at], k[at], v[at], positions)
        for one, other in zip(together, alone, strict=True):
            assert largest(one[at] - other) < 1e-14


def test_defaults():
    for function in (*mistakes.MISTAKES.values(), mistakes.correct):
        parameters = inspect.signature(function).parameters
        assert (parameters["base"].default, parameters["layout"].default) == (10000.0, "interleaved")
    measured = inspect.signature(mistakes.diagnose).parameters
    assert [measured[name].default for name in ("dim", "seq_len", "base", "shift")] == [64, 16, 10000.0, 100]


def test_what_is_as_large_as_the_tolerance_is_not_noticed():
    assert mistakes.Diagnosis(1e-6, 2e-6, 0, 0, 0, 0, 0).caught_by() == ("start",)


P, V = torch.arange(5), random(5, 8)
BAD = [
    ("diagnose(correct, dim=7)", ValueError, "dim must be an even integer"),
    ("diagnose(correct, seq_len=1)", ValueError, "seq_len must be an integer >= 2"),
    ("diagnose(correct, shift=0)", ValueError, "shift must be an integer >= 1"),
    *(
        (f"{name}(V, V, V, P, layout='odd')", ValueError, "layout must be one of")
        for name in [*mistakes.MISTAKES, "correct"]
    ),
]


@together(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        eval(call, {**vars(mistakes), "P": P, "V": V})
