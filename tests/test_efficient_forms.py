"""Tests of the successive forms of the rotation and of their gradients, compared with transformers' rotations, torch's
ONNX operator and complex numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.checkpoint import checkpoint

from ropebook import efficient as E
from tests.helpers import largest, random, seeded, seeds
from tests.rotations import EAGER, LAYOUTS, bases, exact, largest_allocation, layouts, tables
from tests.together import together

HALVES = [torch.bfloat16, torch.float16]

# --- The ladder ---


def test_by_hand():
    # d = 4, m = 2 and q = (1, 2, 3, 4), so the angles are 2 and 0.02
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
    # The arithmetic is done in float32 and the result is rounded once, so the error is at most one step of the type.
    assert torch.allclose(
        ours.double(),
        theirs.double(),
        rtol=torch.finfo(dtype).eps,
        atol=1e-6 if wide != dtype else 1e-14 if dtype == torch.float64 else 1e-6,
    )


@together("form", EAGER)
@together(("dtype", "of_tables"), [(torch.float64, torch.float32), (torch.float32, torch.float64)])
def test_data_and_tables_of_two_types(form, dtype, of_tables):
    for layout in LAYOUTS:
        x = random(2, 3, 5, 8, dtype=dtype)
        ours = E.FORMS[form](x.clone(), *tables(range(5), 8, dtype=of_tables), layout)
        assert ours.dtype == dtype
        assert largest(ours - exact(x, range(5), layout)) < 1e-6


@together("form", EAGER)
def test_half_data_are_rounded_once(form):
    x = random(1, 2, 300, 16, dtype=torch.bfloat16)
    for layout in LAYOUTS:
        right = exact(x, range(300), layout)
        ours = E.FORMS[form](x.clone(), *tables(range(300), 16, dtype=torch.float32), layout)
        step = 2.0 ** (right.abs().log2().floor() - 7)
        # half a step of bfloat16, plus float32's rounding error
        assert ((ours.double() - right).abs() <= 0.5 * step + 1e-6).all()


@together("form", EAGER)
@together("shape", [(4, 6), (3, 4, 6), (2, 3, 4, 6), (2, 2, 3, 4, 6), (0, 3, 4, 6), (2, 0, 4, 6)])
def test_every_form_takes_any_leading_axes(form, shape):
    for layout in LAYOUTS:
        x = random(*shape)
        whole = E.FORMS[form](x.clone(), *tables(range(4), 6), layout)
        assert whole.shape == shape
        for ours, row in zip(whole.reshape(-1, 4, 6), x.reshape(-1, 4, 6), strict=True):
            assert largest(ours - exact(row[None, None], range(4), layout)[0, 0]) < 1e-14


@together("form", EAGER)
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


@together("form", EAGER)
@together("strange", STRANGE)
def test_every_form_takes_any_strides(form, strange):
    for layout in LAYOUTS:
        x = random(2, 3, 5, 8, dtype=torch.float32)
        placed = STRANGE[strange](x)
        assert torch.equal(placed, x)
        ours = E.FORMS[form](placed, *tables(range(5), 8, dtype=torch.float32), layout)
        assert largest(ours - exact(x, range(5), layout)) < 1e-6
        assert torch.equal(placed, ours if form == "in_place" else x)


@pytest.mark.parametrize("form", [E.rotate_half, E.rotate_every_two])
def test_a_quarter_turn_needs_negative_numbers(form):
    """A quarter turn changes signs, and in uint8 the negative of 1 is 255."""
    for dtype in (torch.uint8, torch.uint16, torch.bool):
        with pytest.raises(TypeError, match=rf"x must be of a type with negative numbers, got dtype {dtype}"):
            form(torch.ones(4, dtype=dtype))
    with pytest.raises(TypeError, match="x must be a tensor, got list"):
        form([1, 2])
    assert sorted(form(torch.tensor([1, 2, 3, 4], dtype=torch.int8)).tolist())[0] < 0


def test_the_sparse_form_is_that_of_transformers():
    from transformers.models.cohere import modeling_cohere as cohere
    from transformers.models.gptj import modeling_gptj as gptj
    from transformers.models.llama import modeling_llama as llama

    x = random(2, 3, 5, 8, dtype=torch.float32)
    cos, sin = tables(range(5), 8, dtype=torch.float32)
    assert torch.equal(E.rotate_half(x), llama.rotate_half(x))
    # despite its name, Cohere's rotate_half does the same as our rotate_every_two
    assert torch.equal(E.rotate_every_two(x), cohere.rotate_half(x))
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


# The vectors are rounded four times. In float64, the rounding error of angles of 10⁵ radians is larger than the errors
# from these four roundings.
ROUNDED = {torch.float64: 1e-9, torch.float32: 1e-6, torch.bfloat16: 0.02}


@given(seeds, layouts, *[st.integers(0, 10**5)] * 3, st.sampled_from(list(ROUNDED)), st.integers(1, 64))
def test_scores_know_the_distance_only(seed, layout, m, n, shift, dtype, pairs):
    q, k = random(2, 1, 2 * pairs, seed=seed).to(dtype)

    def score(m, n):
        turned = (E.rotate_eager(x, *tables([at], 2 * pairs), layout) for x, at in ((q, m), (k, n)))
        return torch.dot(*(x[0].double() for x in turned)).item()

    lengths = q.double().norm() * k.double().norm()
    assert abs(score(m, n) - score(m + shift, n + shift)) <= ROUNDED[dtype] * lengths


# --- Gradients ---


@together("form", EAGER)
@together("layout", LAYOUTS)
def test_gradients(form, layout):
    cos, sin = tables([3, 100], 4)
    x = random(1, 2, 2, 4).requires_grad_()  # so small because each entry is moved by itself, twice

    def rotate(x):
        # we multiply by 1, because an in-place rotation must not change a leaf tensor
        return E.FORMS[form](x * 1, cos, sin, layout)

    assert torch.autograd.gradcheck(rotate, (x,))
    assert torch.autograd.gradgradcheck(rotate, (x,))
    cos, sin = tables([0, 3, 100], 4)
    x, upstream = random(2, 2, 3, 4).requires_grad_(), random(2, 2, 3, 4, seed=1)
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


@together("layout", LAYOUTS)
@together("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_in_place_refuses_what_would_be_turned_twice_and_leaves_it_alone(layout, dtype):
    """In each of these views, several entries share the same number in memory."""
    memory = random(400, dtype=dtype)
    kept = memory.clone()
    shared = memory[:40].view(1, 1, 5, 8)
    cos, sin = tables(range(5), 8, dtype=torch.float32)
    for x in (
        shared.expand(1, 4, 5, 8),  # four query heads share one key head
        shared.expand(3, 1, 5, 8),
        shared[0].expand(4, 5, 8),
        shared[:, :, :1].expand(1, 1, 5, 8),  # the same token appears five times
        memory.as_strided((1, 2, 5, 8), (0, 16, 8, 1)),  # these heads share three tokens
        memory.as_strided((1, 2, 5, 8), (0, 100, 4, 1)),  # these windows overlap
    ):
        with pytest.raises(ValueError, match=r"x must hold each number once .* with strides"):
            E.rotate_in_place(x, cos, sin, layout)
    assert torch.equal(memory, kept)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_place_takes_slices_and_transposes(layout):
    cos, sin = tables(range(5), 8)
    # the shape (batch, tokens, heads, …), in which one projection returns both queries and keys
    both = random(2, 5, 6, 16)
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
        # we call backward() instead of grad(), because the reentrant variant doesn't support grad()
        linear.weight.grad = None
        checkpoint(inside(E.rotate_in_place), x, use_reentrant=use_reentrant).square().sum().backward()
        return linear.weight.grad

    assert largest(checkpointed(x) - gradient(inside(E.rotate_by_pairs), x)) < 1e-12
    # Here the checkpoint's argument would be rotated twice. This must raise an error instead of giving a wrong
    # gradient.
    with pytest.raises((RuntimeError, ValueError), match=r"inplace operation|must not be a leaf"):
        checkpoint(
            lambda x: E.rotate_in_place(x, cos, sin).sin(), linear(x), use_reentrant=use_reentrant
        ).sum().backward()


def test_in_place_on_what_was_kept_raises():
    y = random(2, 3, 5, 8).requires_grad_().exp()  # exp keeps its result for the backward pass
    E.rotate_in_place(y, *tables(range(5), 8))
    with pytest.raises(RuntimeError, match="inplace operation"):
        y.sum().backward()
