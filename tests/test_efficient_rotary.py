"""Tests of `apply_rotary`, and of the module that models use."""

import copy
import os
import pickle
import subprocess
import sys
import types
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from ropebook import efficient as E
from ropebook import rope, sinusoidal
from ropebook.efficient.rotary import choose_backend
from tests.helpers import largest, random, seeds
from tests.rotations import EAGER, LAYOUTS, bases, exact, largest_allocation, layouts, qk, tables
from tests.together import together

# --- One entry ---


def test_as_many_positions_as_entries_that_turn():
    x, positions = torch.randn(1, 1, 4, 8, dtype=torch.float64), torch.arange(4)
    q, k = E.RotaryEmbedding(8, rotary_dim=4, layout="interleaved")(x, x.clone())
    assert torch.equal(q[..., 4:], x[..., 4:])
    assert largest(k[..., :4] - exact(x[..., :4], positions, "interleaved")) < 1e-14


@together("backend", [None, "eager"])
@together("layout", LAYOUTS)
@together("rotary_dim", [2, 6, 8])
def test_apply_rotary_turns_the_first_entries_only(backend, layout, rotary_dim, device):
    x = random(2, 3, 5, 8, dtype=torch.float32).to(device)
    positions = torch.tensor([[0, 1, 2, 3, 4], [9, 9, 7, 1, 0]])
    cos, sin = (t.to(device) for t in tables(positions, rotary_dim, dtype=torch.float32))
    ours = E.apply_rotary(x, cos, sin, layout=layout, backend=backend)
    assert largest(ours[..., :rotary_dim].cpu() - exact(x[..., :rotary_dim].cpu(), positions, layout)) < 1e-5
    assert torch.equal(ours[..., rotary_dim:], x[..., rotary_dim:])
    for one, other in zip(E.apply_rotary_qk(x, x[:, :1], cos, sin, layout=layout), (ours, ours[:, :1]), strict=True):
        assert largest(one - other) < 1e-5


@pytest.fixture
def kernel(monkeypatch):
    """A substitute for the kernel module that records how it is called."""
    asked = []

    def rotary(q, k, cos, sin, *, layout):
        asked.append((q, k, layout))
        return q + 1, None if k is None else k + 2

    module = types.ModuleType("ropebook.triton_kernel")
    module.__spec__ = ModuleSpec("ropebook.triton_kernel", loader=None)  # the package asks for it
    module.rotary, module.available, module.asked = rotary, lambda device: module.there, asked
    module.there = True
    monkeypatch.setitem(sys.modules, "ropebook.triton_kernel", module)
    import ropebook

    monkeypatch.setattr(ropebook, "triton_kernel", module, raising=False)
    return module


def test_the_kernel_gets_both_in_one_launch(kernel):
    q, k = random(1, 4, 3, 8), random(1, 2, 3, 8)
    cos, sin = tables(range(3), 6)
    q2, k2 = E.apply_rotary_qk(q, k, cos, sin, layout="half", backend="triton")
    assert torch.equal(q2, q + 1)
    assert torch.equal(k2, k + 2)
    assert kernel.asked == [(q, k, "half")]
    assert torch.equal(E.apply_rotary(q, cos, sin, backend="triton", layout="interleaved"), q + 1)
    assert kernel.asked[1] == (q, None, "interleaved")


def test_which_backend(kernel):
    on_cuda = types.SimpleNamespace(device=torch.device("cuda"), ndim=4)
    flat = types.SimpleNamespace(device=torch.device("cuda"), ndim=2)
    assert choose_backend(None, (on_cuda, on_cuda)) == "triton"
    assert choose_backend(None, (flat,)) == "eager"
    assert choose_backend("eager", (on_cuda,)) == "eager"
    assert choose_backend(None, (random(1, 1, 1, 2),)) == "eager"
    kernel.there = False
    assert choose_backend(None, (on_cuda,)) == "eager"
    assert choose_backend("triton", (on_cuda,)) == "triton"


def test_importing_does_not_load_triton_or_compile():
    heavy = "('triton', 'sympy', 'matplotlib', 'torch._inductor')"
    code = f"import sys; import ropebook.efficient; print([name for name in {heavy} if name in sys.modules])"
    env = {**os.environ, "PYTHONPATH": str(Path(rope.__file__).parents[1])}
    plain = subprocess.run(
        [sys.executable, "-c", code.replace("ropebook.efficient", "torch")], env=env, capture_output=True, text=True
    )
    ours = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert ours.returncode == 0, ours.stderr
    assert "matplotlib" not in ours.stdout
    assert ours.stdout == plain.stdout


# --- RotaryEmbedding ---


@given(seeds, layouts, bases, st.integers(0, 10**6), st.sampled_from([2, 6, 8, None]))
def test_offsets_and_positions_are_the_rotation(seed, layout, base, offset, rotary_dim):
    q, k = qk(seed=seed)
    rope = E.RotaryEmbedding(8, base, layout=layout, rotary_dim=rotary_dim, table_length=4)
    turned = rotary_dim or 8
    positions = torch.arange(offset, offset + 5)
    for at, ours in (
        (positions, rope.forward(q, k, positions)),
        (positions, rope(q, k, positions[None])),
        (positions, rope(q, k, positions.expand(2, 5))),
    ):
        for one, x in zip(ours, (q, k), strict=True):
            assert largest(one[..., :turned] - exact(x[..., :turned], at, layout, base)) < 1e-8
            assert torch.equal(one[..., turned:], x[..., turned:])
    small = offset % 100
    for one, x in zip(rope(q, k, offset=small), (q, k), strict=True):
        assert largest(one[..., :turned] - exact(x[..., :turned], range(small, small + 5), layout, base)) < 1e-12


def test_positions_per_row():
    # the first row is packed, and the second is padded on the left
    positions = torch.tensor([[0, 1, 2, 0, 1], [0, 0, 0, 1, 2]])
    q, k = qk()
    for ours, x in zip(E.RotaryEmbedding(8, layout="interleaved")(q, k, positions), (q, k), strict=True):
        assert largest(ours - exact(x, positions, "interleaved")) < 1e-13
    half = positions.double() / 2
    for ours, x in zip(E.RotaryEmbedding(8, layout="interleaved")(q, k, half), (q, k), strict=True):
        assert largest(ours - exact(x, half, "interleaved")) < 1e-13


@together("layout", LAYOUTS)
@together("rotary_dim", [8, 4])
def test_module_against_transformers(layout, rotary_dim):
    from transformers import GPTNeoXConfig
    from transformers.models.gpt_neox import modeling_gpt_neox as neox

    config = GPTNeoXConfig(
        hidden_size=32,
        num_attention_heads=4,
        rope_parameters={"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": rotary_dim / 8},
    )
    q, k = (random(2, 4, 5, 8, seed=seed, dtype=torch.float32) for seed in (0, 1))
    positions = torch.tensor([[0, 1, 2, 3, 4], [7, 8, 30, 2, 2]])
    cos, sin = neox.GPTNeoXRotaryEmbedding(config)(q, positions)
    theirs = neox.apply_rotary_pos_emb(q, k, cos, sin)
    to_layout = E.half_to_interleaved(8, rotary_dim) if layout == "interleaved" else torch.arange(8)
    rope = E.RotaryEmbedding(8, 500.0, layout=layout, rotary_dim=rotary_dim)
    for ours, right in zip(rope(q[..., to_layout], k[..., to_layout], positions), theirs, strict=True):
        assert largest(ours - right[..., to_layout]) < 1e-5


CASTS = {
    "half": lambda rope: rope.half(),
    "bfloat16": lambda rope: rope.bfloat16(),
    "to(bfloat16)": lambda rope: rope.to(torch.bfloat16),
    "to(device, dtype)": lambda rope: rope.to("cpu", torch.float16),
    "inside a model": lambda rope: torch.nn.Sequential(rope, torch.nn.Linear(2, 2)).bfloat16()[0],
    "deepcopy": copy.deepcopy,
    "pickle": lambda rope: pickle.loads(pickle.dumps(rope)),
    "to meta and back": lambda rope: rope.to("meta").to_empty(device="cpu"),
    "share_memory": lambda rope: rope.share_memory(),
}


@together("cast", CASTS)
@together("used_before", [False, True])
def test_angles_stay_exact_whatever_is_done_to_the_model(cast, used_before):
    q, k = qk(dtype=torch.bfloat16)
    rope = E.RotaryEmbedding(8, layout="interleaved")
    if used_before:
        rope(q, k)
    rope = CASTS[cast](rope)
    assert rope.inv_freq.dtype == torch.float64
    assert torch.equal(rope.inv_freq, sinusoidal.inv_freq(8))
    for at in (dict(offset=4000), dict(positions=torch.arange(4000, 4005))):
        for ours, x in zip(rope(q, k, **at), (q, k), strict=True):
            right = exact(x, range(4000, 4005), "interleaved")
            assert ours.dtype == torch.bfloat16
            assert ((ours.double() - right).abs() <= right.abs() * 2**-8 + 1e-6).all()


@together("layout", LAYOUTS)
@together("form", [*EAGER, "module"])
def test_autocast_changes_nothing(layout, form):
    q, k = qk(dtype=torch.float32)
    cos, sin = tables(range(5), 8, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        if form == "module":
            ours, _ = E.RotaryEmbedding(8, layout=layout)(q, k)
        else:
            ours = E.FORMS[form](q.clone(), cos, sin, layout)
    assert ours.dtype == torch.float32
    assert largest(ours - exact(q, range(5), layout)) < 1e-6


def test_built_on_meta_it_has_its_values():
    with torch.device("meta"):
        rope = E.RotaryEmbedding(8, layout="interleaved")
    assert torch.equal(rope.inv_freq, sinusoidal.inv_freq(8))
    assert torch.equal(rope.to("meta").inv_freq, sinusoidal.inv_freq(8))
    q, k = (x.to("meta") for x in qk())
    assert [x.shape for x in rope(q, k)] == [q.shape, k.shape]
    q, k = qk()
    assert largest(rope(q, k)[0] - exact(q, range(5), "interleaved")) < 1e-14


def test_the_module_follows_the_device(device):
    rope = E.RotaryEmbedding(8, layout="interleaved")
    q, k = qk(dtype=torch.float32)
    expected = rope(q, k)
    rope = rope.to(device)
    if device.type != "mps":
        assert rope.inv_freq.device.type == device.type
    for at in ({}, dict(positions=torch.arange(5))):
        for ours, right in zip(rope(q.to(device), k.to(device), **at), expected, strict=True):
            assert ours.device.type == device.type
            assert largest(ours.cpu() - right) < 1e-5


def test_nothing_to_train_and_nothing_to_save():
    rope = E.RotaryEmbedding(8, layout="interleaved")
    rope(*qk())
    assert rope.state_dict() == {}
    assert list(rope.parameters()) == list(rope.buffers()) == []
    rope.load_state_dict({})
    assert repr(rope) == "RotaryEmbedding(dim=8, base=10000, layout='interleaved', rotary_dim=8)"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_table_made_in_inference_mode_serves_training(layout):
    rope = E.RotaryEmbedding(8, layout=layout)
    q, k = qk(dtype=torch.float32)
    with torch.inference_mode():
        rope(q, k)
    q.requires_grad_()
    rope(q, k)[0].sum().backward()
    assert q.grad is not None


def test_the_table_doubles_and_is_read_only_where_it_may_be():
    rope = E.RotaryEmbedding(8, table_length=6, layout="interleaved")
    rope(*qk(tokens=5))
    assert rope._table[0].shape == (6, 4)
    first = rope._table
    rope(*qk(tokens=3), offset=3)
    assert rope._table is first
    rope(*qk(tokens=3), offset=4)
    assert rope._table[0].shape == (12, 4)
    rope(*qk(tokens=1), offset=23)
    assert rope._table[0].shape == (24, 4)
    rope(*qk(tokens=50))
    assert rope._table[0].shape == (96, 4)
    assert rope._table[0].dtype == torch.float64
    rope(*qk(tokens=1, dtype=torch.bfloat16), offset=1)
    assert rope._table[0].dtype == torch.float32
    kept = rope._table
    rope(*qk(tokens=2), torch.tensor([10**6, 3]))
    assert rope._table is kept
    assert E.RotaryEmbedding(8, layout="interleaved").table_length == 4096


class Counted(TorchDispatchMode):
    """Dispatch mode that counts torch's operations."""

    count = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.count += 1
        return operation(*args, **(kwargs or {}))


@together("dtype", [torch.float32, torch.bfloat16], ids=str)
@together("layout", LAYOUTS)
@torch.no_grad()
def test_one_token_takes_fewer_operations_than_in_transformers(layout, dtype):
    """Every operation takes at least a microsecond, whatever its input. For a single token, the time therefore depends
    on the number of operations."""
    q, k = random(1, 32, 1, 128, dtype=dtype), random(1, 8, 1, 128, dtype=dtype)
    cos, sin = tables([7], 128, dtype=torch.float32)
    wide = (torch.cat((table, table), -1)[None].to(dtype) for table in (cos, sin))
    with Counted() as theirs:
        apply_rotary_pos_emb(q, k, *wide)
    with Counted() as ours:
        E.apply_rotary_qk(q, k, cos, sin, layout=layout)
    assert ours.count <= 10 + 2 * (dtype == torch.bfloat16) < theirs.count


@pytest.mark.parametrize("used_before", [False, True])
def test_one_token_far_off_makes_no_table_of_what_lies_between(used_before):
    rope = E.RotaryEmbedding(8, layout="interleaved")
    if used_before:
        rope(*qk())
    kept = rope._table
    q, k = qk(tokens=1)
    for offset in (2**20, 2**20 + 1, 2**30):
        made = []
        most = largest_allocation(lambda offset=offset, made=made: made.extend(rope(q, k, offset=offset)))
        assert most <= q.numel() + k.numel()
        for one, x in zip(made, (q, k), strict=True):
            assert largest(one - exact(x, [offset], "interleaved")) < 1e-6
    assert rope._table is kept


@together("offset", [6, 11, 12, 48])
def test_rows_kept_are_at_most_twice_what_was_asked_for(offset):
    rope = E.RotaryEmbedding(8, table_length=6, layout="interleaved")
    for _ in range(2):
        for one, x in zip(rope(*qk(tokens=1), offset=offset), qk(tokens=1), strict=True):
            assert largest(one - exact(x, [offset], "interleaved")) < 1e-13
    assert rope._table is None if offset >= 12 else rope._table[0].shape == (12, 4)


@together("used_before", [False, True])
@together("name", ["dim", "rotary_dim", "base", "inv_freq"])
def test_what_the_table_was_made_of_cannot_be_set(name, used_before):
    rope = E.RotaryEmbedding(8, layout="interleaved")
    if used_before:
        rope(*qk())
    other = {"dim": 16, "rotary_dim": 4, "base": 500.0, "inv_freq": sinusoidal.inv_freq(8, 500.0)}[name]
    for value in (other, torch.nn.Parameter(torch.ones(4))):
        with pytest.raises(AttributeError, match=f"{name} cannot be set .* make another RotaryEmbedding"):
            setattr(rope, name, value)
    rope.inv_freq.zero_()  # this changes only a copy of the frequencies
    assert (rope.dim, rope.rotary_dim, rope.base) == (8, 8, 10000.0)
    q, k = qk()
    for at in ({}, {"offset": 3}, {"positions": torch.arange(5)}):
        first = at.get("offset", 0)
        assert largest(rope(q, k, **at)[0] - exact(q, range(first, first + 5), "interleaved")) < 1e-13
    # follow the suggestion in the error message
    slow = E.RotaryEmbedding(
        8, scaling=lambda inv_freq, length: (sinusoidal.inv_freq(8, 500.0), 1.0), layout="interleaved"
    )
    for at in ({}, {"positions": torch.arange(5)}):
        assert largest(slow(q, k, **at)[0] - exact(q, range(5), "interleaved", 500.0)) < 1e-13


def test_cos_sin_of_the_module():
    rope = E.RotaryEmbedding(8, 100.0, rotary_dim=4, layout="interleaved")
    for ours, right in zip(rope.cos_sin(torch.tensor([[5]]), torch.float64), tables([[5]], 4, 100.0), strict=True):
        assert ours.shape == (1, 1, 2)
        assert torch.equal(ours, right)
    assert rope.cos_sin(torch.tensor([1]))[0].dtype == torch.float32


def test_scaling_enters_with_the_length_and_the_factor():
    asked = []

    def scaling(inv_freq, length):
        asked.append(length)
        inv_freq /= 2  # this changes only the function's own copy
        return inv_freq, 1.5

    rope = E.RotaryEmbedding(8, scaling=scaling, layout="interleaved")
    q, k = qk()
    for _ in range(2):
        for ours, x in zip(rope(q, k, offset=7), (q, k), strict=True):
            assert largest(ours - 1.5 * exact(x, torch.arange(7, 12) / 2, "interleaved")) < 1e-12
    rope(q, k, torch.arange(5))
    rope.cos_sin(torch.arange(5), length=9)
    assert asked == [12, 12, None, 9]
    assert rope._table is None


def test_scaling_against_transformers():
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    parameters = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
    config = LlamaConfig(hidden_size=32, num_attention_heads=4, rope_parameters=parameters, max_position_embeddings=256)
    theirs = LlamaRotaryEmbedding(config)
    q, k = (random(1, 4, 5, 8, seed=seed, dtype=torch.float32) for seed in (0, 1))
    expected = apply_rotary_pos_emb(q, k, *theirs(q, torch.arange(5)[None]))
    frequencies, factor = ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")
    rope = E.RotaryEmbedding(8, layout="half", scaling=lambda inv_freq, length: (frequencies, factor))
    for ours, right in zip(rope(q, k), expected, strict=True):
        assert largest(ours - right) < 1e-5
