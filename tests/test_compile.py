"""Under ``torch.compile(fullgraph=True)``: no graph breaks, few graphs over many lengths, gradients as without it.

The backends count graphs or run them as they are: no C++ compiler is needed.
"""

from __future__ import annotations

import pytest
import torch

from ropebook import rope
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
