"""Tests of the rotation under autograd. Every way to compute the gradients must rotate them back by −φ, even if the
output is written in parts."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

from ropebook import efficient as E
from ropebook.efficient import forms
from tests.helpers import largest, random
from tests.rotations import LAYOUTS, exact, tables

SHAPES = {"(T, d)": (3, 4), "(B, H, T, d)": (1, 2, 3, 4), "a row of each": (2, 1, 3, 4), "partial": (1, 1, 3, 6)}


@pytest.fixture(params=["whole", "part by part", "few"])
def way(request, monkeypatch):
    """Run a test in three variants: with all numbers at once, with two tokens at a time, and with the method for a
    small number of entries."""
    monkeypatch.setattr(forms, "SMALL", 2**15 if request.param == "few" else 0)
    monkeypatch.setattr(forms, "CHUNK", 2 if request.param == "part by part" else 2**16)
    return request.param


def places(name):
    return tables(torch.tensor([[0, 1, 2], [7, 0, 30]]) if name == "a row of each" else range(3), 4)


@pytest.mark.parametrize(
    ("name", "way", "layout"),
    [
        (name, way, LAYOUTS[(row + column) % 2])
        for row, name in enumerate(SHAPES)
        for column, way in enumerate(("whole", "part by part", "few"))
    ],
    indirect=["way"],
)
def test_first_and_second_derivatives_are_those_of_differences(name, layout, way):
    cos, sin = places(name)
    x = random(*SHAPES[name]).requires_grad_()

    def turned(x, cos=cos, sin=sin):
        return E.apply_rotary(x, cos, sin, layout=layout)

    assert torch.autograd.gradcheck(turned, x)
    assert torch.autograd.gradgradcheck(lambda x: turned(x) ** 3, x)
    # cos and sin must get gradients, too
    given = x, cos.clone().requires_grad_(), sin.clone().requires_grad_()
    assert torch.autograd.gradcheck(turned, given)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_every_way_gives_the_same_numbers(layout, dtype, monkeypatch):
    """The results must agree to the last bit, including their rounding errors."""
    x, (cos, sin) = random(2, 3, 50, 16).to(dtype), tables(range(50), 16, dtype=torch.float32)
    wide = torch.promote_types(dtype, torch.float32)
    for strange in (x, x.transpose(1, 2).contiguous().transpose(1, 2), x[..., :8, :].repeat(1, 1, 7, 1)[..., :50, :]):
        y1, y2 = (part.to(wide) for part in forms.split(strange, layout))
        right = forms.join(
            torch.addcmul(y1 * cos, y2, sin, value=-1), torch.addcmul(y2 * cos, y1, sin), layout
        ).to(dtype)  # fmt: skip
        for small, chunk in ((2**15, 1), (0, 1), (0, 700), (0, 2**30)):
            monkeypatch.setattr(forms, "SMALL", small)
            monkeypatch.setattr(forms, "CHUNK", chunk)
            found = E.rotate_eager(strange, cos, sin, layout)
            assert found.dtype == dtype
            assert found.stride() == torch.empty_like(strange).stride()
            if layout == "half":
                assert torch.equal(found, right)
            else:  # this layout is computed as a product of complex numbers, which rounds differently
                assert largest(found.double() - right.double()) <= 4 * torch.finfo(dtype).eps


@pytest.mark.parametrize("layout", LAYOUTS)
def test_transforms_of_torch_func_and_tangents(layout, way):
    cos, sin = tables(range(5), 8)
    x, v = random(2, 3, 5, 8), random(2, 3, 5, 8, seed=1)

    def turned(x, cos=cos, sin=sin):
        return E.rotate_eager(x, cos, sin, layout)

    right, back = turned(v), E.rotate_eager(v, cos, -sin, layout)
    torch.testing.assert_close(torch.func.vmap(turned)(x), turned(x))
    torch.testing.assert_close(torch.func.vmap(turned, 1, 1)(x), turned(x))
    torch.testing.assert_close(torch.func.jvp(turned, (x,), (v,))[1], right)
    torch.testing.assert_close(torch.func.vjp(turned, x)[1](v)[0], back)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(lambda x: (turned(x) ** 2).sum()))(x), 2 * x)
    turns = torch.func.vmap(turned, (None, 0, 0))(x, torch.stack((cos, sin)), torch.stack((sin, cos)))
    torch.testing.assert_close(turns[0], turned(x))
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(turned(forward_ad.make_dual(x, v))).tangent
    torch.testing.assert_close(tangent, right)
    one = x[:1, :1].clone().requires_grad_()
    jacobian = torch.autograd.functional.jacobian(turned, one, vectorize=True)
    torch.testing.assert_close(jacobian, torch.func.jacrev(turned)(one.detach()))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_x_is_not_kept_for_the_backward_pass(layout, monkeypatch):
    monkeypatch.setattr(forms, "SMALL", 0)
    kept, rope = [], E.RotaryEmbedding(64, layout=layout)
    q = random(1, 4, 100, 64, dtype=torch.float32).requires_grad_()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
        rope(q)
    assert kept == [100 * 32] * 2


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_checkpointed_rotation_has_the_same_gradient(layout, way):
    rope, weights, gradients = E.RotaryEmbedding(8, layout=layout), random(1, 2, 5, 8, seed=1), []
    for reentrant in (None, False, True):
        q = random(1, 2, 5, 8).requires_grad_()
        turned = rope(q) if reentrant is None else checkpoint(rope, q, use_reentrant=reentrant)
        (turned * weights).sum().backward()
        gradients.append(q.grad)
    assert torch.equal(gradients[0], gradients[1])
    assert torch.equal(gradients[0], gradients[2])


# --- One token -------------------------------------------------------------------------------------------------------


def one_token(seed=0, dtype=torch.float64):
    return random(1, 4, 1, 8, seed=seed, dtype=dtype), random(1, 2, 1, 8, seed=seed + 1, dtype=dtype)


def test_the_rows_of_the_last_token_are_those_that_are_asked_for():
    rope = E.RotaryEmbedding(8, layout="half")
    for offset, layout, dtype in (
        (7, "half", torch.float64),
        (7, "half", torch.float64),
        (8, "half", torch.float64),
        (8, "interleaved", torch.float64),
        (8, "half", torch.float32),
        (8, "half", torch.float64),
        (0, "half", torch.float64),
    ):
        if layout != rope.layout:
            rope.layout = layout
        for found, x in zip(rope(*one_token(dtype=dtype), offset=offset), one_token(dtype=dtype), strict=True):
            assert largest(found - exact(x, [offset], layout)) < (1e-6 if dtype == torch.float32 else 1e-14)
    with pytest.raises(TypeError, match="offset must be an integer"):
        rope(*one_token(), offset=False)
    rope.to("meta")
    assert rope(*(x.to("meta") for x in one_token()))[0].is_meta


def test_rows_made_in_inference_mode_serve_training():
    rope = E.RotaryEmbedding(8, layout="half")
    with torch.inference_mode():
        rope(*one_token())
    q, k = (x.requires_grad_() for x in one_token())
    rope(q, k)[0].sum().backward()
    assert q.grad is not None


def test_nothing_is_kept_of_what_is_traced():
    """A table that was made under a transform or in fake mode must not be kept, because it contains no actual
    numbers."""
    for tokens in (1, 5):
        rope, x = E.RotaryEmbedding(8, layout="half"), random(1, 2, tokens, 8)
        torch.func.grad(lambda x, rope=rope: rope(x, x)[0].sum())(x)
        for found in rope(x, x):
            assert largest(found - exact(x, range(tokens), "half")) < 1e-14
        rope = E.RotaryEmbedding(8, layout="half")
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
            fake = mode.from_tensor(x)
            assert rope(fake, fake)[0].shape == x.shape
        for found in rope(x, x):
            assert largest(found - exact(x, range(tokens), "half")) < 1e-14
