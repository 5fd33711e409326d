"""Tests of three functions that readers may copy, from the first page, the chapter and the cheat sheet. Each function
is run with nothing else defined."""

from __future__ import annotations

import inspect
import re

import pytest
import torch

from ropebook import efficient
from tests.helpers import largest, random
from tests.links import text
from tests.together import together

PAGES = ("intro.md", "efficient.md", "cheatsheet.md")
TYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


@pytest.fixture(scope="module", params=PAGES)
def rope(request):
    [source] = re.findall(r"^def rope\(.*?(?=\n```|\n\n\n)", text(request.param), re.MULTILINE | re.DOTALL)
    names: dict = {"torch": torch}
    exec(source, names)
    return names["rope"]


@together("dtype", TYPES)
def test_the_result_is_that_of_the_module_in_every_type(rope, dtype):
    x, positions = random(2, 3, 6, 16).to(dtype), torch.tensor([0, 1, 5, 300, 70_000, 1_000_003])
    exact, _ = efficient.RotaryEmbedding(16, layout="half")(x.double(), x.double(), positions)
    found = rope(x, positions)
    assert found.dtype == dtype
    # the result is rounded once at the end, and there are small errors from arithmetic in a wider type
    narrow = torch.finfo(dtype).eps / 2 if dtype.itemsize == 2 else 0
    wide = 2 * torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    assert ((found.double() - exact).abs() <= narrow * exact.abs() + wide * largest(x.double())).all()


@together("dtype", TYPES)
def test_everything_is_made_where_x_is(rope, dtype):
    x = torch.empty(1, 2, 6, 16, dtype=dtype, device="meta")
    for positions in (torch.arange(6), torch.arange(6, device="meta")):
        found = rope(x, positions)
        assert (found.device.type, found.dtype, found.shape) == ("meta", dtype, x.shape)


def test_no_step_over_the_heads_is_wider_than_it_must_be(rope):
    class Types(torch.utils._python_dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.found = set()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.ndim == 4:
                self.found.add(result.dtype)
            return result

    for dtype, widest in ((torch.float32, {torch.float32}), (torch.bfloat16, {torch.bfloat16, torch.float32})):
        x = random(1, 2, 6, 16).to(dtype)
        with Types() as types:
            rope(x, torch.arange(6))
        assert types.found <= widest


def test_positions_with_an_axis_too_many_are_refused(rope):
    # with as many tokens as pairs, each pair would get the angle of another position, and no shape would reveal this
    x = random(1, 2, 8, 16)
    with pytest.raises(RuntimeError, match="1-D"):
        rope(x, torch.arange(8)[None])


def test_gradients_go_through(rope):
    x = random(1, 1, 4, 8).requires_grad_()
    rope(x, torch.arange(4)).sum().backward()
    assert x.grad.isfinite().all()


def test_the_layouts_are_those_of_the_module(rope):
    layouts = ("interleaved", "half") if "layout" in inspect.signature(rope).parameters else ("half",)
    x, positions = random(1, 2, 6, 16), torch.arange(6)
    for layout in layouts:
        ours, _ = efficient.RotaryEmbedding(16, layout=layout)(x, x)
        found = rope(x, positions, layout=layout) if len(layouts) > 1 else rope(x, positions)
        assert largest(found - ours) < 1e-14
