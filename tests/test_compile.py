"""Under ``torch.compile(fullgraph=True)``: no graph breaks, few graphs over many lengths, gradients as without it.

The backends count graphs or run them as they are: no C++ compiler is needed.
"""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from ropebook import rope
from ropebook.extrapolation import make
from ropebook.rotary_attention import LlamaModel, RotaryAttention
from tests.helpers import random


@pytest.fixture(autouse=True)
def nothing_compiled():
    """A function that was compiled eight times is refused the ninth, whoever asked before."""
    torch.compiler.reset()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(5,), (2, 5)])
@pytest.mark.parametrize("wanted", ["theta", "positions", "both"])
def test_gradients_of_the_tables_are_those_of_eager_code(dtype, shape, wanted):
    theta = rope.inv_freq(8).to(dtype).requires_grad_(wanted != "positions")
    places = (10 * random(*shape)).to(dtype).requires_grad_(wanted != "theta")
    weights = random(*shape, 4), random(*shape, 4, seed=1)

    def loss(m, theta):
        return sum((w * table).sum() for w, table in zip(weights, rope.cos_sin(m, theta, torch.float64), strict=True))

    inputs = [x for x in (places, theta) if x.requires_grad]
    expected = torch.autograd.grad(loss(places, theta), inputs)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for found, eager in zip(torch.autograd.grad(compiled(places, theta), inputs), expected, strict=True):
        assert found.dtype == dtype
        assert found.shape == eager.shape
        torch.testing.assert_close(found, eager)


def lengths(module: torch.nn.Module, *inputs) -> int:
    """How many graphs a compiled module is over several inputs, each time with what it gives without a compiler."""
    graphs = CompileCounter()
    compiled = torch.compile(module, fullgraph=True, backend=graphs)
    for given in inputs:
        torch.testing.assert_close(compiled(*given), module(*given))
    return graphs.frame_count


@torch.no_grad()
def test_an_attention_layer_is_two_graphs_over_many_lengths():
    layer = RotaryAttention(16, 4, 2)
    assert lengths(layer, *((random(2, n, 16, dtype=torch.float32),) for n in (5, 9, 17, 33))) <= 2


@torch.no_grad()
@pytest.mark.parametrize("method", [None, "yarn"])
def test_a_model_is_two_graphs_over_many_lengths(method):
    scaling = method and make(method, factor=4.0, trained_length=64)
    model = LlamaModel(50, 16, 24, n_layers=2, n_heads=2, scaling=scaling)
    texts = (torch.arange(2 * n).view(2, n) % 50 for n in (5, 9, 17, 33))
    assert lengths(model, *((text,) for text in texts)) <= 2
