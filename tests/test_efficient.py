"""The efficient module against torch's ONNX operator, transformers' rotations, complex numbers in float64, and counts
of what torch runs."""

import copy
import inspect
import math
import os
import pickle
import re
import subprocess
import sys
import types
import warnings
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from ropebook import efficient as E
from ropebook import rope, sinusoidal
from ropebook.efficient import forms
from ropebook.efficient.rotary import choose_backend
from tests.helpers import largest, public, random, seeded

LAYOUTS = ["interleaved", "half"]
HALVES = [torch.bfloat16, torch.float16]
EAGER = ["dense", "blocks", "sparse", "by_pairs", "complex", "eager", "in_place"]

layouts = st.sampled_from(LAYOUTS)
seeds = st.integers(0, 2**32 - 1)
bases = st.sampled_from([1.0, 100.0, 10000.0, 5e5])


def tables(positions, dim, base=10000.0, dtype=torch.float64):
    return E.cos_sin(torch.as_tensor(positions), sinusoidal.inv_freq(dim, base), dtype)


def exact(x, positions, layout, base=10000.0):
    """z e^{imθ} in complex float64, pair by pair; x (B, H, T, d), positions (T,) or (B, T)."""
    x = x.double()
    dim = x.shape[-1]
    x1, x2 = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else (x[..., : dim // 2], x[..., dim // 2 :])
    theta = torch.tensor([base ** (-2 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
    angles = torch.as_tensor(positions).double()[..., None] * theta
    angles = angles[:, None] if angles.ndim == 3 else angles
    y = torch.complex(x1, x2) * torch.polar(torch.ones_like(angles), angles)
    result = torch.empty_like(x)
    if layout == "interleaved":
        result[..., 0::2], result[..., 1::2] = y.real, y.imag
    else:
        result[..., : dim // 2], result[..., dim // 2 :] = y.real, y.imag
    return result


# --- Tables ---


def test_cos_sin_against_python():
    cos, sin = tables([[0, 1, 77], [5, 123456, -3]], 6, 50.0)
    assert cos.shape == sin.shape == (2, 3, 3)
    for row, positions in enumerate([[0, 1, 77], [5, 123456, -3]]):
        for column, m in enumerate(positions):
            for i in range(3):
                angle = m * 50.0 ** (-2 * i / 6)
                assert cos[row, column, i].item() == pytest.approx(math.cos(angle), abs=1e-10)
                assert sin[row, column, i].item() == pytest.approx(math.sin(angle), abs=1e-10)


@pytest.mark.parametrize("position", [2**24 + 1, 10**7 + 1, 2**31])
def test_positions_that_float32_has_not(position):
    cos, sin = tables([position], 2, dtype=torch.float32)
    assert cos.dtype == sin.dtype == torch.float32
    assert cos.item() == pytest.approx(math.cos(position), abs=2**-24)
    assert sin.item() == pytest.approx(math.sin(position), abs=2**-24)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32])
def test_positions_of_any_type(dtype, device):
    ours = tables(torch.tensor([3, 7], dtype=dtype, device=device), 8, dtype=torch.float32)
    assert ours[0].device.type == device.type
    for one, other in zip(ours, tables([3, 7], 8, dtype=torch.float32), strict=True):
        assert torch.equal(one.cpu(), other)


@pytest.mark.parametrize(
    "position", [2**31 + 1, -(2**31) - 1, 2**63 - 1, -(2**63), 2.0**31 + 1, *map(float, ("nan", "inf"))]
)
def test_positions_whose_angles_would_be_wrong_are_refused(position):
    positions = torch.tensor([0, 1, position, 3], dtype=torch.float64 if isinstance(position, float) else None)
    q, message = random(1, 2, 4, 8), f"positions must lie between -2147483648 and 2147483648, got {position}"
    rope = E.RotaryEmbedding(8)
    for call in (
        lambda: E.cos_sin(positions, sinusoidal.inv_freq(8)),
        lambda: rope.cos_sin(positions),
        lambda: rope(q, q, positions),
        lambda: rope(q, q, positions[None]),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()


def test_the_largest_positions_pass():
    for dtype in (torch.int64, torch.float64, torch.float32):
        E.check_positions(torch.tensor([-(2**31), 2**31], dtype=dtype))
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        E.check_positions(torch.tensor([torch.iinfo(dtype).min, torch.iinfo(dtype).max], dtype=dtype))
    E.check_positions(torch.zeros(0, dtype=torch.int64))


@given(st.integers(1, 9), layouts)
def test_pairs_split_and_join(pairs, layout):
    x = torch.arange(3 * 2 * pairs).reshape(3, 2 * pairs)
    first, second = E.split_pairs(x, layout)
    assert first.data_ptr() == x.data_ptr()
    step = 1 if layout == "interleaved" else pairs
    assert torch.equal(second - first, torch.full_like(first, step))
    assert torch.equal(E.join_pairs(first, second, layout), x)


# --- The ladder ---


def test_by_hand():
    # d = 4, m = 2, q = (1, 2, 3, 4): angles 2 and 0.02
    expected = [math.cos(2) - 2 * math.sin(2), 2 * math.cos(2) + math.sin(2)]
    expected += [3 * math.cos(0.02) - 4 * math.sin(0.02), 4 * math.cos(0.02) + 3 * math.sin(0.02)]
    assert expected == pytest.approx([-2.234, 0.077, 2.92, 4.06], abs=1e-2)
    for form in EAGER:
        x = torch.tensor([[1.0, 2.0, 3.0, 4.0]], dtype=torch.float64)
        assert E.FORMS[form](x, *tables([2], 4))[0].tolist() == pytest.approx(expected, abs=1e-12), form
        x = torch.tensor([[1.0, 3.0, 2.0, 4.0]], dtype=torch.float64)
        halves = E.FORMS[form](x, *tables([2], 4), "half")[0].tolist()
        assert halves == pytest.approx([expected[i] for i in (0, 2, 1, 3)], abs=1e-12), form


@pytest.mark.parametrize("form", EAGER)
@given(data=st.data())
def test_every_form_is_the_rotation(form, data):
    layout, base, seed = data.draw(layouts), data.draw(bases), data.draw(seeds)
    batch, heads, tokens = (data.draw(st.integers(1, 3)) for _ in range(3))
    dim = 2 * data.draw(st.integers(1, 8))
    rows = data.draw(st.sampled_from([(tokens,), (1, tokens), (batch, tokens)]))
    positions = torch.randint(-(10**6), 10**6, rows, generator=seeded(seed))
    x = random(batch, heads, tokens, dim, seed=seed)
    expected = exact(x, positions, layout, base)
    ours = E.FORMS[form](x.clone(), *tables(positions, dim, base), layout)
    assert ours.dtype == x.dtype
    assert largest(ours - expected) < 1e-8


@pytest.mark.parametrize("form", EAGER)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, *HALVES])
def test_every_form_against_the_onnx_operator(form, layout, dtype, device):
    if dtype == torch.float64 and device.type == "mps":
        pytest.skip("no float64")
    x = random(2, 3, 5, 8, dtype=dtype).to(device)
    positions = torch.randint(0, 4096, (2, 5), generator=seeded(1))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    cos, sin = tables(positions, 8, dtype=wide)
    ours = E.FORMS[form](x.clone(), cos.to(device), sin.to(device), layout).cpu()
    theirs = torch.onnx.ops.rotary_embedding(x.cpu().to(wide), cos, sin, None, interleaved=layout == "interleaved")
    assert ours.dtype == dtype
    # float32 arithmetic, rounded once: within one step of the type of the right number
    assert torch.allclose(
        ours.double(),
        theirs.double(),
        rtol=torch.finfo(dtype).eps,
        atol=1e-6 if wide != dtype else 1e-14 if dtype == torch.float64 else 1e-6,
    )


@pytest.mark.parametrize("form", EAGER)
@pytest.mark.parametrize(("dtype", "of_tables"), [(torch.float64, torch.float32), (torch.float32, torch.float64)])
def test_data_and_tables_of_two_types(form, dtype, of_tables):
    for layout in LAYOUTS:
        x = random(2, 3, 5, 8, dtype=dtype)
        ours = E.FORMS[form](x.clone(), *tables(range(5), 8, dtype=of_tables), layout)
        assert ours.dtype == dtype
        assert largest(ours - exact(x, range(5), layout)) < 1e-6


@pytest.mark.parametrize("form", EAGER)
def test_half_data_are_rounded_once(form):
    x = random(1, 2, 300, 16, dtype=torch.bfloat16)
    for layout in LAYOUTS:
        right = exact(x, range(300), layout)
        ours = E.FORMS[form](x.clone(), *tables(range(300), 16, dtype=torch.float32), layout)
        step = 2.0 ** (right.abs().log2().floor() - 7)
        # half a step, and what float32 may add to it
        assert ((ours.double() - right).abs() <= 0.5 * step + 1e-6).all()


@pytest.mark.parametrize("form", EAGER)
@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 6), (2, 3, 4, 6), (2, 2, 3, 4, 6), (0, 3, 4, 6), (2, 0, 4, 6)])
def test_every_form_takes_any_leading_axes(form, shape):
    for layout in LAYOUTS:
        x = random(*shape)
        whole = E.FORMS[form](x.clone(), *tables(range(4), 6), layout)
        assert whole.shape == shape
        for ours, row in zip(whole.reshape(-1, 4, 6), x.reshape(-1, 4, 6), strict=True):
            assert largest(ours - exact(row[None, None], range(4), layout)[0, 0]) < 1e-14


@pytest.mark.parametrize("form", EAGER)
def test_batches_without_a_head_axis(form):
    positions = torch.tensor([[0, 1, 2], [7, 8, 100]])
    x = random(2, 3, 6)
    for layout in LAYOUTS:
        ours = E.FORMS[form](x.clone(), *tables(positions, 6), layout)
        assert largest(ours - exact(x[:, None], positions, layout)[:, 0]) < 1e-14


STRANGE = {
    "heads and tokens exchanged in memory": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "every second token": lambda x: x.repeat_interleave(2, 2)[:, :, ::2],
    "odd start": lambda x: torch.cat((torch.zeros(1), x.flatten()))[1:].reshape(x.shape),
    "last axis with steps": lambda x: x.mT.contiguous().mT,
    "odd rows": lambda x: torch.cat((x, x[..., :1]), -1)[..., :-1],
}


@pytest.mark.parametrize("form", EAGER)
@pytest.mark.parametrize("strange", STRANGE)
def test_every_form_takes_any_strides(form, strange):
    for layout in LAYOUTS:
        x = random(2, 3, 5, 8, dtype=torch.float32)
        placed = STRANGE[strange](x)
        assert torch.equal(placed, x)
        ours = E.FORMS[form](placed, *tables(range(5), 8, dtype=torch.float32), layout)
        assert largest(ours - exact(x, range(5), layout)) < 1e-6
        assert torch.equal(placed, ours if form == "in_place" else x)


def test_the_sparse_form_is_that_of_transformers():
    from transformers.models.gptj import modeling_gptj as gptj
    from transformers.models.llama import modeling_llama as llama

    x = random(2, 3, 5, 8, dtype=torch.float32)
    cos, sin = tables(range(5), 8, dtype=torch.float32)
    assert torch.equal(E.rotate_half(x), llama.rotate_half(x))
    assert torch.equal(E.rotate_every_two(x), gptj.rotate_every_two(x))
    wide = torch.cat((cos, cos), -1)[None], torch.cat((sin, sin), -1)[None]
    theirs, _ = llama.apply_rotary_pos_emb(x, x, *wide)
    assert torch.equal(E.rotate_halves(x, cos, sin), theirs)
    theirs = gptj.apply_rotary_pos_emb(x.transpose(1, 2), sin[None], cos[None]).transpose(1, 2)
    assert torch.equal(E.rotate_interleaved(x, cos, sin), theirs)
    for form in EAGER:
        assert largest(E.FORMS[form](x.clone(), cos, sin) - theirs) < 1e-6


@given(seeds, layouts, st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_a_rotation_keeps_lengths_and_is_undone_by_the_opposite(seed, layout, m, n):
    x = random(1, 1, 1, 8, seed=seed)
    turned = E.rotate_eager(x, *tables([m], 8), layout)
    assert turned.norm().item() == pytest.approx(x.norm().item(), rel=1e-14)
    cos, sin = tables([m], 8)
    assert largest(E.rotate_eager(turned, cos, -sin, layout) - x) < 1e-14
    on = E.rotate_eager(turned, *tables([n], 8), layout)
    assert largest(on - E.rotate_eager(x, *tables([m + n], 8), layout)) < 1e-8


@given(seeds, layouts, st.integers(0, 10**5), st.integers(0, 10**5), st.integers(0, 10**5))
def test_scores_know_the_distance_only(seed, layout, m, n, shift):
    q, k = random(2, 1, 16, seed=seed)

    def score(m, n):
        turned = (E.rotate_eager(x, *tables([at], 16), layout) for x, at in ((q, m), (k, n)))
        return torch.dot(*(x[0] for x in turned)).item()

    assert score(m, n) == pytest.approx(score(m + shift, n + shift), abs=1e-8)


# --- Gradients ---


@pytest.mark.parametrize("form", EAGER)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients(form, layout):
    cos, sin = tables([0, 3, 100], 4)
    x = random(2, 2, 3, 4).requires_grad_()

    def rotate(x):
        return E.FORMS[form](x * 1, cos, sin, layout)  # x · 1: in place must not touch a leaf

    assert torch.autograd.gradcheck(rotate, (x,))
    assert torch.autograd.gradgradcheck(rotate, (x,))
    upstream = random(2, 2, 3, 4, seed=1)
    (gradient,) = torch.autograd.grad(rotate(x), x, upstream)
    assert largest(gradient - exact(upstream, [0, -3, -100], layout)) < 1e-12


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_place_returns_the_same_memory(layout):
    x = random(2, 3, 5, 8)
    cos, sin = tables(range(5), 8)
    expected = exact(x, range(5), layout)
    with torch.no_grad():
        ours = E.rotate_in_place(x, cos, sin, layout)
    assert ours is x
    assert largest(x - expected) < 1e-14
    y = random(2, 3, 5, 8).requires_grad_() * 1
    assert E.rotate_in_place(y, cos, sin, layout).data_ptr() == y.data_ptr()


def largest_allocation(function):
    """The most numbers that one operation made anew while the function ran."""

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            known.update(t.untyped_storage().data_ptr() for t in tree_leaves(args) if isinstance(t, torch.Tensor))
            for t in tree_leaves(result):
                if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() not in known:
                    made.append(t.numel())
            return result

    known, made = set(), [0]
    with Watch():
        function()
    return max(made)


def test_in_place_allocates_no_more_than_the_tables():
    cos, sin = tables(range(50), 8, dtype=torch.float32)
    for layout, most in (("interleaved", cos.numel()), ("half", cos.numel())):
        x = random(1, 12, 50, 8, dtype=torch.float32)
        assert largest_allocation(lambda x=x, layout=layout: E.rotate_in_place(x, cos, sin, layout)) <= most
        assert largest_allocation(lambda x=x, layout=layout: E.rotate_eager(x, cos, sin, layout)) >= x.numel() / 2


def test_in_place_refuses_leaves_and_leaves_them_alone():
    leaf = random(2, 3, 5, 8).requires_grad_()
    before = leaf.detach().clone()
    cos, sin = tables(range(5), 8)
    for x in (leaf, leaf.view(6, 5, 8), leaf[:, :1]):
        with pytest.raises(ValueError, match="x must not be a leaf"):
            E.rotate_in_place(x, cos, sin)
    assert torch.equal(leaf, before)
    with torch.no_grad():
        E.rotate_in_place(leaf, cos, sin)
    assert largest(leaf.detach() - exact(before, range(5), "interleaved")) < 1e-14
    with pytest.raises(ValueError, match="must not require a gradient"):
        E.rotate_in_place(random(2, 3, 5, 8), cos.requires_grad_(), sin)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_in_place_refuses_what_would_be_turned_twice_and_leaves_it_alone(layout, dtype):
    """Each of these views holds some number of its memory in several entries."""
    memory = random(400, dtype=dtype)
    kept = memory.clone()
    shared = memory[:40].view(1, 1, 5, 8)
    cos, sin = tables(range(5), 8, dtype=torch.float32)
    for x in (
        shared.expand(1, 4, 5, 8),  # a key head for four query heads
        shared.expand(3, 1, 5, 8),
        shared[0].expand(4, 5, 8),
        shared[:, :, :1].expand(1, 1, 5, 8),  # one token, five times
        memory.as_strided((1, 2, 5, 8), (0, 16, 8, 1)),  # heads that overlap in three tokens
        memory.as_strided((1, 2, 5, 8), (0, 100, 4, 1)),  # windows
    ):
        with pytest.raises(ValueError, match=r"x must hold each number once .* with strides"):
            E.rotate_in_place(x, cos, sin, layout)
    assert torch.equal(memory, kept)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_place_takes_slices_and_transposes(layout):
    cos, sin = tables(range(5), 8)
    both = random(2, 5, 6, 16)  # (batch, tokens, heads, ...), as one projection gives queries and keys
    kept = both.clone()
    for x in (both[:, :, :4, :8].transpose(1, 2), both[:, ::1, ::2, 8:].transpose(1, 2)):
        expected = exact(x, range(5), layout)
        E.rotate_in_place(x, cos, sin, layout)
        assert largest(x - expected) < 1e-13
    assert torch.equal(both[:, :, 4:, :8], kept[:, :, 4:, :8])
    assert torch.equal(both[:, :, 1::2, 8:], kept[:, :, 1::2, 8:])


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_in_place_under_activation_checkpointing(use_reentrant):
    cos, sin = tables(range(5), 8)
    linear = torch.nn.Linear(8, 8).double()
    x = random(2, 3, 5, 8).requires_grad_()

    def gradient(block, *args):
        (result,) = torch.autograd.grad(block(*args).square().sum(), linear.weight)
        return result

    def inside(rotate):
        return lambda x: rotate(linear(x), cos, sin).sin()

    def checkpointed(x):
        # backward() and not grad(): the reentrant kind knows no other
        linear.weight.grad = None
        checkpoint(inside(E.rotate_in_place), x, use_reentrant=use_reentrant).square().sum().backward()
        return linear.weight.grad

    assert largest(checkpointed(x) - gradient(inside(E.rotate_by_pairs), x)) < 1e-12
    # The argument of the checkpoint would be rotated twice: that is an error, and no wrong gradient.
    with pytest.raises((RuntimeError, ValueError), match=r"inplace operation|must not be a leaf"):
        checkpoint(
            lambda x: E.rotate_in_place(x, cos, sin).sin(), linear(x), use_reentrant=use_reentrant
        ).sum().backward()


def test_in_place_on_what_was_kept_raises():
    y = random(2, 3, 5, 8).requires_grad_().exp()  # keeps its result for the gradient
    E.rotate_in_place(y, *tables(range(5), 8))
    with pytest.raises(RuntimeError, match="inplace operation"):
        y.sum().backward()


# --- Compiled: six shapes in all, and none without a compiler ---


def skip_without_compiler():
    if not hasattr(skip_without_compiler, "reason"):
        try:
            torch.compile(lambda x: x + 1)(torch.ones(2))
            skip_without_compiler.reason = None
        except RuntimeError as error:
            skip_without_compiler.reason = str(error).strip().splitlines()[0]
    if skip_without_compiler.reason:
        message = f"NO WORKING COMPILER, COMPILED FORMS NOT TESTED: {skip_without_compiler.reason}"
        warnings.warn(message, stacklevel=2)
        pytest.skip(message)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiled_is_the_rotation_at_any_size(layout):
    skip_without_compiler()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for batch, tokens, positions in ((2, 5, range(5)), (3, 7, range(7))):
            x = random(batch, 3, tokens, 8, dtype=torch.float32)
            cos, sin = tables(positions, 8, dtype=torch.float32)
            ours = E.apply_rotary(x, cos, sin, layout=layout, backend="compiled")
            assert largest(ours - exact(x, positions, layout)) < 1e-6


def without_compiler(*lines):
    code = "\n".join(
        (
            "import torch, warnings",
            "from ropebook import efficient as E, rope",
            "x = torch.ones(1, 2, 3, 4)",
            "cos, sin = E.cos_sin(torch.arange(3), rope.inv_freq(4))",
            *lines,
        )
    )
    env = {**os.environ, "CXX": "/nowhere", "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    env["PYTHONPATH"] = str(Path(rope.__file__).parents[1])
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=300)


@pytest.mark.skipif(sys.platform == "win32", reason="CXX names the compiler elsewhere")
def test_without_a_compiler_it_warns_once_and_rotates():
    done = without_compiler(
        "for _ in range(2):",
        "    with warnings.catch_warnings(record=True) as caught:",
        "        warnings.simplefilter('always')",
        "        y = E.apply_rotary(x, cos, sin, backend='compiled')",
        "    assert torch.equal(y, E.rotate_eager(x, cos, sin))",
        "    print([str(w.message)[:50] for w in caught if w.category is RuntimeWarning])",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['no compiled rotation on cpu, rotating eagerly: Inv']", "[]"]


def test_a_failing_compiler_is_not_asked_again(monkeypatch):
    def broken():
        raise torch._dynamo.exc.BackendCompilerFailed("inductor", ValueError("no compiler"), None)

    x, (cos, sin) = random(1, 2, 3, 4), tables(range(3), 4)
    monkeypatch.setattr(forms, "_WITHOUT_COMPILER", set())
    monkeypatch.setattr(forms, "_compiled_by_pairs", broken)
    with pytest.warns(RuntimeWarning, match=r"no compiled rotation on cpu, rotating eagerly: .*no compiler"):
        ours = E.rotate_compiled(x, cos, sin, "half")
    assert torch.equal(ours, E.rotate_eager(x, cos, sin, "half"))
    monkeypatch.setattr(forms, "_compiled_by_pairs", None)
    assert torch.equal(E.rotate_compiled(x, cos, sin), E.rotate_eager(x, cos, sin))


def test_another_failure_while_compiling_is_not_remembered(monkeypatch):
    def broken():
        raise RuntimeError("too many sizes\nand a traceback")

    x, (cos, sin) = random(1, 2, 3, 4), tables(range(3), 4)
    monkeypatch.setattr(forms, "_WITHOUT_COMPILER", set())
    monkeypatch.setattr(forms, "_compiled_by_pairs", broken)
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=r"rotating eagerly: too many sizes and a traceback$"):
            E.rotate_compiled(x, cos, sin)


class Graphs:
    """A backend of torch.compile that counts graphs and runs them as they are: no C++ compiler needed."""

    def __init__(self):
        self.count = 0

    def __call__(self, graph, inputs):
        self.count += 1
        return graph.forward


@pytest.fixture
def graphs():
    torch._dynamo.reset()
    yield Graphs()
    torch._dynamo.reset()


@pytest.mark.parametrize("table_length", [None, 16, 128])
@pytest.mark.parametrize("used_before", [False, True])
def test_decoding_64_tokens_recompiles_at_most_twice(table_length, used_before, graphs):
    rope = E.RotaryEmbedding(8, table_length=table_length)
    compiled = torch.compile(rope, fullgraph=True, backend=graphs)
    q, k = random(2, 4, 164, 8, dtype=torch.float32), random(2, 2, 164, 8, dtype=torch.float32)
    expected = exact(q, range(164), "interleaved"), exact(k, range(164), "interleaved")
    if used_before:
        rope(q[:, :, :100], k[:, :, :100])
    parts = [compiled(q[:, :, :100], k[:, :, :100])]
    assert graphs.count == 1
    for at in range(100, 164):
        parts.append(compiled(q[:, :, at : at + 1], k[:, :, at : at + 1], offset=at))
    assert graphs.count <= 3
    for ours, right in zip(zip(*parts, strict=True), expected, strict=True):
        assert largest(torch.cat(ours, 2) - right) < 1e-6


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_graph_with_position_tensors_partial_and_scaled(layout, graphs):
    def scaling(inv_freq, length):
        return inv_freq / (2 if length is None else length), 1.5

    q, k = random(2, 4, 3, 8, dtype=torch.float32), random(2, 2, 3, 8, dtype=torch.float32)
    for at in (torch.tensor([3, 9, 4]), torch.tensor([[0, 0, 1], [5, 6, 7]]), None):
        rope = E.RotaryEmbedding(8, layout=layout, rotary_dim=6, scaling=scaling)
        compiled = torch.compile(rope, fullgraph=True, backend=graphs)
        for ours, eager in zip(compiled(q, k, at), rope(q, k, at), strict=True):
            assert largest(ours - eager) < 1e-6


def test_what_a_graph_may_not_read_comes_out_as_nan(graphs):
    rope, q = E.RotaryEmbedding(8), random(1, 2, 4, 8)
    wrong = torch.tensor([5, 2**31 + 1, -(2**63), 2**31])
    compiled = torch.compile(rope, fullgraph=True, backend=graphs)
    exported = torch.export.export(rope, (q, q, torch.arange(4))).module()
    for program in (compiled, exported):
        for x in program(q, q, wrong):
            assert x.isnan().all(-1).all(1).tolist() == [[False, True, True, False]]
            right = exact(q[:, :, [0, 3]], [5, 2**31], "interleaved")
            assert largest(x[:, :, [0, 3]] - right) < 1e-6
    assert compiled(q, q, wrong.double() / 0)[0][:, :, 1:].isnan().all()


def test_compiled_with_the_module_it_is_one_loop():
    skip_without_compiler()
    rope = E.RotaryEmbedding(8, backend="compiled")
    q, k = random(1, 4, 3, 8, dtype=torch.float32), random(1, 2, 3, 8, dtype=torch.float32)
    positions = torch.tensor([5, 7, 100])
    for ours, x in zip(torch.compile(rope, fullgraph=True)(q, k, positions), (q, k), strict=True):
        assert largest(ours - exact(x, positions, "interleaved")) < 1e-6


def test_in_place_inside_a_graph(graphs):
    compiled = torch.compile(E.rotate_in_place, fullgraph=True, backend=graphs)
    x, (cos, sin) = random(1, 2, 3, 4), tables(range(3), 4)
    expected = exact(x, range(3), "interleaved")
    compiled(x, cos, sin)
    assert largest(x - expected) < 1e-14


def test_in_place_inside_a_graph_takes_transposes_and_refuses_expanded_views(graphs):
    compiled = torch.compile(E.rotate_in_place, backend=graphs, dynamic=True)
    for length in (3, 5, 8):
        x, (cos, sin) = random(1, length, 2, 4).transpose(1, 2), tables(range(length), 4)
        expected = exact(x, range(length), "half")
        compiled(x, cos, sin, "half")
        assert largest(x - expected) < 1e-14
    with pytest.raises(ValueError, match="x must hold each number once"):
        compiled(random(1, 1, 8, 4).expand(1, 2, 8, 4), cos, sin, "half")


def test_tables_inside_a_graph_are_made_once_for_all_heads(graphs):
    seen = []

    def look(graph, inputs):
        seen.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    rope = E.RotaryEmbedding(8)
    x = random(1, 2, 3, 8, dtype=torch.float32)
    torch.compile(rope, fullgraph=True, backend=look)(x, x, torch.arange(3))
    assert any("ropebook.cos_sin" in target for target in seen)
    assert not any(target in ("cos", "sin") for target in seen)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_graph_is_made_of_is_the_same_rotation(layout, monkeypatch):
    """The branches for compilation, run as they are."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    q, k = qk()
    rope = E.RotaryEmbedding(8, layout=layout)
    for ours, x in zip(rope(q, k, offset=3), (q, k), strict=True):
        assert largest(ours - exact(x, range(3, 8), layout)) < 1e-14
    assert rope._table is None
    for form in ("compiled", "in_place"):
        ours = E.FORMS[form](q.clone(), *tables(range(5), 8), layout)
        assert largest(ours - exact(q, range(5), layout)) < 1e-14


def test_the_operation_that_makes_tables_is_sound():
    for positions in (torch.arange(3), torch.zeros(2, 3, dtype=torch.float64)):
        torch.library.opcheck(rope.tables_kept, (positions, sinusoidal.inv_freq(8), torch.float32))


# --- One entry ---


def test_as_many_positions_as_entries_that_turn():
    x, positions = torch.randn(1, 1, 4, 8, dtype=torch.float64), torch.arange(4)
    q, k = E.RotaryEmbedding(8, rotary_dim=4)(x, x.clone())
    assert torch.equal(q[..., 4:], x[..., 4:])
    assert largest(k[..., :4] - exact(x[..., :4], positions, "interleaved")) < 1e-14


@pytest.mark.parametrize("backend", [None, "eager"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim", [2, 6, 8])
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
    """A stand-in for the kernel's module: it notes what it is asked."""
    asked = []

    def rotary(q, k, cos, sin, *, layout):
        asked.append((q, k, layout))
        return q + 1, None if k is None else k + 2

    module = types.ModuleType("ropebook.triton_kernel")
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
    assert torch.equal(E.apply_rotary(q, cos, sin, backend="triton"), q + 1)
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


# --- What each form costs ---


class Count(TorchDispatchMode):
    """Operations, and numbers read and written, of every step that torch runs on tensors larger than a table."""

    EACH = types.MappingProxyType({"mul": 1, "mul_": 1, "add": 1, "sub": 1, "neg": 1, "addcmul_": 2})

    def __init__(self, table):
        super().__init__()
        self.table, self.flops, self.data, self.tables = table, 0, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if any(ret.alias_info and not ret.alias_info.is_write for ret in func._schema.returns):
            return result  # a view moves nothing
        name = func._schema.name.removeprefix("aten::")
        read = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        if all(t.numel() <= self.table for t in read):
            return result  # the making of tables
        written = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor)]
        real = 2 if written[0].is_complex() else 1
        for t in read + written:
            size = t.numel() * (2 if t.is_complex() else 1)
            if t.numel() <= self.table:
                self.tables += size
            else:
                self.data += size
        if name == "bmm":
            self.flops += 2 * read[0].numel() * read[1].shape[-1]
        else:
            self.flops += self.EACH.get(name, 0) * written[0].numel() * (6 if real == 2 else 1)
        return result


@pytest.mark.parametrize("form", EAGER)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_costs_are_what_torch_runs(form, layout):
    tokens, dim, heads = 3, 8, 40
    x = random(1, heads, tokens, dim, dtype=torch.float32)
    cos, sin = tables(range(tokens), dim, dtype=torch.float32)
    table = tokens * dim * (dim if form == "dense" else 4)
    if (form, layout) == ("in_place", "half"):  # head by head: each step is as small as a table
        counts = [count_one_head(x[:, head], cos, sin) for head in range(heads)]
        flops, data, read = (sum(column) for column in zip(*counts, strict=True))
    else:
        with Count(table) as count:
            E.FORMS[form](x, cos, sin, layout)
        flops, data, read = count.flops, count.data, count.tables
    ours = E.rotation_cost(form, dim, heads, layout, bytes_per_element=4)
    assert ours.flops * tokens == flops
    assert ours.data_bytes * tokens == 4 * data
    assert ours.table_bytes * tokens == 4 * read


def count_one_head(head, cos, sin):
    # a batch of many makes of one head something larger than a table
    many = 50
    x = head[:, None].expand(many, 1, *head.shape[1:]).clone()
    with Count(cos.numel()) as count:
        E.rotate_in_place(x, cos, sin, "half")
    return count.flops / many, count.data / many, count.tables


def test_products_counted_by_torch_itself():
    x = random(1, 5, 3, 8, dtype=torch.float32)
    for form in ("dense", "blocks"):
        with FlopCounterMode(display=False) as counter:
            E.FORMS[form](x, *tables(range(3), 8, dtype=torch.float32))
        assert counter.get_total_flops() == 3 * E.rotation_cost(form, 8, 5).flops


def test_costs_by_hand():
    # Llama-3-8B in bfloat16: 20480 bytes a token are the least
    least = E.rotation_cost("compiled", 128, 40, bytes_per_element=2)
    assert least.data_bytes == 20480
    assert least == E.RotationCost(3 * 128 * 40, 20480, 256)
    assert least.bytes == 20736
    assert least.intensity == 15360 / 20736
    assert E.rotation_cost("dense", 128, 40).flops == 2 * 128 * 128 * 40
    assert E.rotation_cost("compiled", 8, layout="half") == E.RotationCost(24, 64, 32)
    costs = [E.rotation_cost(form, 64, 8, layout) for form in E.FORMS for layout in LAYOUTS]
    assert min(cost.bytes for cost in costs) == E.rotation_cost("compiled", 64, 8).bytes


# --- RotaryEmbedding ---


def qk(batch=2, tokens=5, dim=8, dtype=torch.float64, seed=0):
    return random(batch, 4, tokens, dim, seed=seed, dtype=dtype), random(
        batch, 2, tokens, dim, seed=seed + 1, dtype=dtype
    )


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
    positions = torch.tensor([[0, 1, 2, 0, 1], [0, 0, 0, 1, 2]])  # packed; padded on the left
    q, k = qk()
    for ours, x in zip(E.RotaryEmbedding(8)(q, k, positions), (q, k), strict=True):
        assert largest(ours - exact(x, positions, "interleaved")) < 1e-13
    half = positions.double() / 2
    for ours, x in zip(E.RotaryEmbedding(8)(q, k, half), (q, k), strict=True):
        assert largest(ours - exact(x, half, "interleaved")) < 1e-13


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim", [8, 4])
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


@pytest.mark.parametrize("cast", CASTS)
@pytest.mark.parametrize("used_before", [False, True])
def test_angles_stay_exact_whatever_is_done_to_the_model(cast, used_before):
    q, k = qk(dtype=torch.bfloat16)
    rope = E.RotaryEmbedding(8)
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


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", [*EAGER, "module"])
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
        rope = E.RotaryEmbedding(8)
    assert torch.equal(rope.inv_freq, sinusoidal.inv_freq(8))
    assert torch.equal(rope.to("meta").inv_freq, sinusoidal.inv_freq(8))
    q, k = (x.to("meta") for x in qk())
    assert [x.shape for x in rope(q, k)] == [q.shape, k.shape]
    q, k = qk()
    assert largest(rope(q, k)[0] - exact(q, range(5), "interleaved")) < 1e-14


def test_the_module_follows_the_device(device):
    rope = E.RotaryEmbedding(8)
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
    rope = E.RotaryEmbedding(8)
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
    rope = E.RotaryEmbedding(8, table_length=6)
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
    assert E.RotaryEmbedding(8).table_length == 4096


@pytest.mark.parametrize("used_before", [False, True])
def test_one_token_far_off_makes_no_table_of_what_lies_between(used_before):
    rope = E.RotaryEmbedding(8)
    if used_before:
        rope(*qk())
    kept = rope._table
    q, k = qk(tokens=1)
    for offset in (2**20, 2**20 + 1, 2**30):
        made = []
        most = largest_allocation(lambda offset=offset, made=made: made.extend(rope(q, k, offset=offset)))
        assert most <= q.numel()
        for one, x in zip(made, (q, k), strict=True):
            assert largest(one - exact(x, [offset], "interleaved")) < 1e-6
    assert rope._table is kept


@pytest.mark.parametrize("offset", [6, 11, 12, 48])
def test_rows_kept_are_at_most_twice_what_was_asked_for(offset):
    rope = E.RotaryEmbedding(8, table_length=6)
    for _ in range(2):
        for one, x in zip(rope(*qk(tokens=1), offset=offset), qk(tokens=1), strict=True):
            assert largest(one - exact(x, [offset], "interleaved")) < 1e-13
    assert rope._table is None if offset >= 12 else rope._table[0].shape == (12, 4)


@pytest.mark.parametrize("used_before", [False, True])
@pytest.mark.parametrize("name", ["dim", "rotary_dim", "base", "inv_freq"])
def test_what_the_table_was_made_of_cannot_be_set(name, used_before):
    rope = E.RotaryEmbedding(8)
    if used_before:
        rope(*qk())
    other = {"dim": 16, "rotary_dim": 4, "base": 500.0, "inv_freq": sinusoidal.inv_freq(8, 500.0)}[name]
    for value in (other, torch.nn.Parameter(torch.ones(4))):
        with pytest.raises(AttributeError, match=f"{name} cannot be set .* make another RotaryEmbedding"):
            setattr(rope, name, value)
    rope.inv_freq.zero_()  # of a copy
    assert (rope.dim, rope.rotary_dim, rope.base) == (8, 8, 10000.0)
    q, k = qk()
    for at in ({}, {"offset": 3}, {"positions": torch.arange(5)}):
        first = at.get("offset", 0)
        assert largest(rope(q, k, **at)[0] - exact(q, range(first, first + 5), "interleaved")) < 1e-13
    # the way that the message names
    slow = E.RotaryEmbedding(8, scaling=lambda inv_freq, length: (sinusoidal.inv_freq(8, 500.0), 1.0))
    for at in ({}, {"positions": torch.arange(5)}):
        assert largest(slow(q, k, **at)[0] - exact(q, range(5), "interleaved", 500.0)) < 1e-13


def test_cos_sin_of_the_module():
    rope = E.RotaryEmbedding(8, 100.0, rotary_dim=4)
    for ours, right in zip(rope.cos_sin(torch.tensor([[5]]), torch.float64), tables([[5]], 4, 100.0), strict=True):
        assert ours.shape == (1, 1, 2)
        assert torch.equal(ours, right)
    assert rope.cos_sin(torch.tensor([1]))[0].dtype == torch.float32


def test_scaling_enters_with_the_length_and_the_factor():
    asked = []

    def scaling(inv_freq, length):
        asked.append(length)
        inv_freq /= 2  # in its own copy
        return inv_freq, 1.5

    rope = E.RotaryEmbedding(8, scaling=scaling)
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
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    parameters = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 64}
    config = LlamaConfig(hidden_size=32, num_attention_heads=4, rope_parameters=parameters, max_position_embeddings=256)
    theirs = LlamaRotaryEmbedding(config)
    q, k = (random(1, 4, 5, 8, seed=seed, dtype=torch.float32) for seed in (0, 1))
    expected = apply_rotary_pos_emb(q, k, *theirs(q, torch.arange(5)[None]))
    frequencies, factor = ROPE_INIT_FUNCTIONS["yarn"](config, "cpu")
    rope = E.RotaryEmbedding(8, layout="half", scaling=lambda inv_freq, length: (frequencies, factor))
    for ours, right in zip(rope(q, k), expected, strict=True):
        assert largest(ours - right) < 1e-5


# --- Layouts ---


@given(st.integers(1, 16), st.data())
def test_orders_are_inverse_and_move_whole_pairs(pairs, data):
    dim = 2 * pairs
    rotary_dim = data.draw(st.sampled_from([None, *range(2, dim + 1, 2)]))
    to_half, to_interleaved = E.interleaved_to_half(dim, rotary_dim), E.half_to_interleaved(dim, rotary_dim)
    assert torch.equal(to_half[to_interleaved], torch.arange(dim))
    turned = rotary_dim or dim
    x = torch.arange(dim)
    for one, other in zip(
        E.split_pairs(x[:turned], "interleaved"), E.split_pairs(x[to_half][:turned], "half"), strict=True
    ):
        assert torch.equal(one, other)
    assert torch.equal(to_half[turned:], x[turned:])


@given(seeds, st.integers(0, 10**5))
def test_the_order_carries_one_rotation_into_the_other(seed, position):
    x = random(1, 8, seed=seed)
    order = E.interleaved_to_half(8)
    cos, sin = tables([position], 8)
    carried = E.rotate_halves(x[..., order], cos, sin)
    assert largest(carried - E.rotate_interleaved(x, cos, sin)[..., order]) < 1e-14


@pytest.mark.parametrize("to", LAYOUTS)
@pytest.mark.parametrize("rotary_dim", [None, 8, 4])
@pytest.mark.parametrize("bias", [False, True])
def test_converted_projections_keep_the_scores(to, rotary_dim, bias):
    """Grouped heads: 4 of queries, 2 of keys; only both converted will do."""
    other = {"half": "interleaved", "interleaved": "half"}[to]
    x, head_dim = random(1, 6, 32), 8
    q_proj, k_proj = torch.nn.Linear(32, 32, bias).double(), torch.nn.Linear(32, 16, bias).double()

    def scores(layout, *layers):
        q, k = (layer(x).unflatten(-1, (-1, head_dim)).transpose(1, 2) for layer in layers)
        q, k = E.RotaryEmbedding(head_dim, layout=layout, rotary_dim=rotary_dim)(q, k, offset=3)
        return q @ k.repeat_interleave(2, 1).mT

    def convert(layer, heads, to):
        layer = copy.deepcopy(layer)
        for tensor in layer.parameters():
            tensor.data = E.convert_weight(tensor.data, heads, head_dim, to, rotary_dim)
        return layer

    new_q, new_k = convert(q_proj, 4, to), convert(k_proj, 2, to)
    right = scores(other, q_proj, k_proj)
    assert largest(scores(to, new_q, new_k) - right) < 1e-13
    for layers in ((new_q, k_proj), (q_proj, new_k), (q_proj, k_proj)):
        assert largest(scores(to, *layers) - right) > 0.01
    for layer, heads, new in ((q_proj, 4, new_q), (k_proj, 2, new_k)):
        assert torch.equal(convert(new, heads, other).weight, layer.weight)
    # all heads taken for one moves rows from head to head
    with torch.no_grad():
        wrong = E.convert_weight(q_proj.weight, 1, 32, to, rotary_dim)
    assert not torch.equal(wrong, new_q.weight)


def test_converted_scores_by_the_rotations_of_transformers():
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as interleaved
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as halves

    x, dim = random(5, 16), 8
    w_q, w_k = random(2 * dim, 16, seed=1), random(2 * dim, 16, seed=2)
    cos, sin = tables(range(5), dim)
    wide = torch.cat((cos, cos), -1)[None], torch.cat((sin, sin), -1)[None]

    def heads(weight):
        return (x @ weight.T).unflatten(-1, (2, dim))[None]  # (1, T, heads, d)

    q, k = (interleaved(heads(w), sin[None], cos[None]).transpose(1, 2) for w in (w_q, w_k))
    new = (heads(E.convert_weight(w, 2, dim, "half")).transpose(1, 2) for w in (w_q, w_k))
    q2, k2 = halves(*new, *wide)
    assert largest(q @ k.mT - q2 @ k2.mT) < 1e-12
    q2, k2 = halves(heads(E.convert_weight(w_q, 2, dim, "half")).transpose(1, 2), heads(w_k).transpose(1, 2), *wide)
    assert largest(q @ k.mT - q2 @ k2.mT) > 1


# --- Bad input ---

X, COS, SIN = random(2, 3, 5, 8), *tables(range(5), 8)
P, V = torch.arange(5), random(5, 8)
ROPE = E.RotaryEmbedding(8)
TABLES = "cos and sin must have shape"
BAD = [
    ("cos_sin([1, 2], INV)", TypeError, "positions must be a tensor, got list"),
    (
        "cos_sin(P.bfloat16(), INV)",
        TypeError,
        "positions must be integers, float32 or float64, got dtype torch.bfloat16",
    ),
    ("cos_sin(P > 1, INV)", TypeError, "positions must be integers.* got dtype torch.bool"),
    ("cos_sin(P, INV.half())", TypeError, "inv_freq must be float32 or float64, got torch.float16"),
    ("cos_sin(P, INV[None])", ValueError, r"inv_freq must have shape \(d/2,\), got \(1, 4\)"),
    ("cos_sin(P, INV, torch.bfloat16)", ValueError, "dtype must be one of .* got torch.bfloat16"),
    ("split_pairs([1, 2])", TypeError, "x must be a tensor, got list"),
    ("split_pairs(torch.ones(3))", ValueError, r"x must have an even last axis >= 2, got shape \(3,\)"),
    ("split_pairs(torch.ones(2, 0))", ValueError, "x must have an even last axis"),
    ("split_pairs(torch.tensor(1))", ValueError, "x must have an even last axis"),
    ("split_pairs(X, 'halves')", ValueError, "layout must be one of 'interleaved', 'half', got 'halves'"),
    ("join_pairs(X, X, 'paired')", ValueError, "layout must be one of"),
    ("rotate_dense(X.long(), COS, SIN)", TypeError, "x must be a floating-point tensor, got dtype torch.int64"),
    ("rotate_dense(X, COS[:4], SIN[:4])", ValueError, TABLES + r".* got \(4, 4\) for \(2, 3, 5, 8\)"),
    ("rotate_blocks(X, COS[:, :3], SIN[:, :3])", ValueError, TABLES),
    ("rotate_every_two(torch.ones(5))", ValueError, "x must have an even last axis"),
    ("rotate_half(torch.ones(5))", ValueError, "x must have an even last axis"),
    ("rotate_interleaved(X, COS.half(), SIN)", TypeError, "cos must be float32 or float64, got torch.float16"),
    ("rotate_halves(X, COS, SIN.bfloat16())", TypeError, "sin must be float32 or float64, got torch.bfloat16"),
    ("rotate_halves(X, COS, 1.0)", TypeError, "sin must be a floating-point tensor, got float"),
    ("rotate_sparse(X, COS, SIN, 'both')", ValueError, "layout must be one of"),
    ("rotate_by_pairs(X, COS, SIN.float())", ValueError, "cos and sin must be alike, got torch.float64"),
    ("rotate_by_pairs(X, COS, SIN[:1])", ValueError, "cos and sin must be alike"),
    ("rotate_complex(X, COS.expand(3, 5, 4), SIN.expand(3, 5, 4))", ValueError, TABLES),
    ("rotate_eager(X[0, 0, 0], COS[0], SIN[0])", ValueError, TABLES),
    ("rotate_eager(X, COS[0, 0], SIN[0, 0])", ValueError, TABLES),
    ("rotate_eager(X[None], COS[None], SIN[None])", ValueError, TABLES),
    ("rotate_in_place(X.expand(9, 2, 3, 5, 8), COS, SIN)", ValueError, "x must hold each number once"),
    ("rotate_compiled(X, COS, SIN, 'odd')", ValueError, "layout must be one of"),
    ("apply_rotary(X, COS, SIN, backend='cuda')", ValueError, "backend must be one of 'eager', 'compiled', 'triton'"),
    ("apply_rotary(X[..., :6], COS, SIN)", ValueError, TABLES),
    ("apply_rotary(X, COS[:, :0], SIN[:, :0])", ValueError, TABLES),
    ("apply_rotary_qk(X, X[:, :, :4], COS, SIN)", ValueError, TABLES),
    ("rotation_cost('matrix', 8)", ValueError, "form must be one of 'dense'"),
    ("rotation_cost('dense', 7)", ValueError, "head_dim must be an even integer"),
    ("rotation_cost('dense', 8, 0)", ValueError, "n_heads must be an integer >= 1"),
    ("rotation_cost('dense', 8, layout='odd')", ValueError, "layout must be one of"),
    ("rotation_cost('dense', 8, bytes_per_element=0)", ValueError, "bytes_per_element must be"),
    ("RotaryEmbedding(7)", ValueError, "dim must be an even integer >= 2, got 7"),
    ("RotaryEmbedding(8, 0.5)", ValueError, "base must be a finite number >= 1, got 0.5"),
    ("RotaryEmbedding(8, float('nan'))", ValueError, "base must be a finite number"),
    ("RotaryEmbedding(8, layout='neox')", ValueError, "layout must be one of"),
    ("RotaryEmbedding(8, rotary_dim=10)", ValueError, "rotary_dim must be at most dim = 8, got 10"),
    ("RotaryEmbedding(8, rotary_dim=3)", ValueError, "rotary_dim must be an even integer"),
    ("RotaryEmbedding(8, scaling=2.0)", TypeError, "scaling must be a function or None, got 2.0"),
    ("RotaryEmbedding(8, table_length=0)", ValueError, "table_length must be an integer >= 1"),
    ("RotaryEmbedding(8, backend='fast')", ValueError, "backend must be one of"),
    ("ROPE(X[0], X)", ValueError, r"q must have shape \(batch, heads, seq, 8\), got \(3, 5, 8\)"),
    ("ROPE(X, X[..., :4])", ValueError, "k must have shape"),
    ("ROPE(X, X.long())", TypeError, "k must be a floating-point tensor"),
    ("ROPE(X, X[:, :, :4])", ValueError, "q and k must agree in batch and seq"),
    ("ROPE(X, X[:1])", ValueError, "q and k must agree in batch and seq"),
    ("ROPE(X, X, P[:4])", ValueError, r"positions must have shape \(5,\) or \(2, 5\), got \(4,\)"),
    ("ROPE(X, X, P.expand(3, 5))", ValueError, "positions must have shape"),
    ("ROPE(X, X, [0, 1, 2, 3, 4])", TypeError, "positions must be a tensor"),
    ("ROPE(X, X, P, offset=1)", ValueError, "offset must be 0 where positions are given, got 1"),
    ("ROPE(X, X, offset=-1)", ValueError, "offset must be an integer >= 0, got -1"),
    ("ROPE(X, X, offset=1.0)", TypeError, "offset must be an integer"),
    ("ROPE(X, X, offset=2**31 - 4)", ValueError, "offset must leave positions below 2147483648"),
    ("RotaryEmbedding(8, scaling=lambda f, n: f)(X, X)", TypeError, "scaling must return .* got Tensor"),
    ("RotaryEmbedding(8, scaling=lambda f, n: (f, 1, 2))(X, X)", TypeError, "scaling must return"),
    (
        "RotaryEmbedding(8, scaling=lambda f, n: (f[1:], 1))(X, X)",
        ValueError,
        r"scaling's inv_freq must have shape \(4,\)",
    ),
    ("RotaryEmbedding(8, scaling=lambda f, n: (f.long(), 1))(X, X)", TypeError, "scaling's inv_freq must be"),
    ("RotaryEmbedding(8, scaling=lambda f, n: (f, 0))(X, X)", ValueError, "scaling's attention_factor must be"),
    ("interleaved_to_half(7)", ValueError, "dim must be an even integer"),
    ("half_to_interleaved(8, 10)", ValueError, "rotary_dim must be at most dim = 8"),
    (
        "convert_weight(X[0, 0], 2, 4, 'half')",
        ValueError,
        r"weight must have n_heads·head_dim = 8 rows, got shape \(5, 8\)",
    ),
    ("convert_weight(X, 1, 2, 'half')", ValueError, "weight must have n_heads·head_dim"),
    ("convert_weight(V.T, 2, 4, 'neox')", ValueError, "to must be one of"),
    ("convert_weight(V.T.long(), 2, 4, 'half')", TypeError, "weight must be a floating-point tensor"),
]


@pytest.mark.parametrize(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    names = {
        "X": X,
        "COS": COS,
        "SIN": SIN,
        "P": P,
        "V": V,
        "ROPE": ROPE,
        "INV": sinusoidal.inv_freq(8),
        "torch": torch,
    }
    with pytest.raises(error, match=message):
        eval(call, {**vars(E), **names})


def test_every_public_function_has_bad_input_and_a_description():
    called = {re.match(r"\w+", call)[0] for call, *_ in BAD}
    assert public(E) - {"RotationCost", "InPlace", "overwrite", "check_positions"} == called - {"ROPE"}
    assert all(inspect.getdoc(getattr(E, name)) for name in public(E))


# --- The module as a whole ---
