"""Test that ``torch.compile(fullgraph=True)`` causes no graph breaks, needs only a few graphs for many lengths, and
gives the same gradients.

The backends only count graphs or run them uncompiled, so no C++ compiler is needed.
"""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from ropebook import rope
from ropebook.efficient import RotaryEmbedding
from ropebook.extrapolation import make
from ropebook.rotary_attention import LlamaModel, RotaryAttention
from tests.helpers import random


@pytest.fixture(autouse=True)
def nothing_compiled():
    """Reset the compiler before each test. Otherwise torch would refuse to compile a function for the ninth time, even
    if most of the earlier compilations came from other tests."""
    torch.compiler.reset()


@pytest.mark.parametrize(
    ("dtype", "shape", "wanted"),
    [
        (torch.float32, (5,), "theta"),
        (torch.float64, (2, 5), "theta"),
        (torch.float32, (2, 5), "positions"),
        (torch.float64, (5,), "positions"),
        (torch.float32, (2, 5), "both"),
        (torch.float64, (5,), "both"),
    ],
)
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
    """Count the graphs that a compiled module needs for these inputs. Each result must equal that of the uncompiled
    module."""
    graphs = CompileCounter()
    compiled = torch.compile(module, fullgraph=True, backend=graphs)
    for given in inputs:
        torch.testing.assert_close(compiled(*given), module(*given))
    return graphs.frame_count


@torch.no_grad()
def test_an_attention_layer_is_two_graphs_over_many_lengths():
    layer = RotaryAttention(16, 4, 2, layout="interleaved")
    assert lengths(layer, *((random(2, n, 16, dtype=torch.float32),) for n in (5, 9, 17, 33))) <= 2


@torch.no_grad()
@pytest.mark.parametrize("method", [None, "yarn"])
def test_a_model_is_two_graphs_over_many_lengths(method):
    scaling = method and make(method, factor=4.0, trained_length=64)
    model = LlamaModel(50, 16, 24, n_layers=2, n_heads=2, scaling=scaling, layout="interleaved")
    texts = (torch.arange(2 * n).view(2, n) % 50 for n in (5, 9, 33))
    assert lengths(model, *((text,) for text in texts)) <= 2


def turned_alike(compiled, module, length, *places):
    x = random(2, 2, length, 8, dtype=torch.float32)
    for found, expected in zip(compiled(x, x, *places), module(x, x, *places), strict=True):
        torch.testing.assert_close(found, expected)


# For each method: options for two modules that are compiled in the same process.
TWO = {
    "yarn": [{"factor": 4.0, "trained_length": 64}, {"factor": 8.0, "trained_length": 32}],
    "llama3": [{"factor": 8.0}, {"factor": 32.0}],
    "dynamic_yarn": [{"trained_length": 4, "beta": 4.0}, {"trained_length": 6, "beta": 4.0}],
}


@pytest.mark.parametrize(
    ("name", "dynamic"), [("yarn", None), ("yarn", True), ("llama3", True), ("dynamic_yarn", None)]
)
def test_a_second_module_with_another_factor_is_compiled_whole_as_well(name, dynamic):
    """The float factor becomes a symbol when the second module is compiled, so one graph works for every factor."""
    for options in TWO[name]:
        module = RotaryEmbedding(8, scaling=make(name, **options), layout="interleaved")
        compiled = torch.compile(module, fullgraph=True, dynamic=dynamic, backend="eager")
        for length in (5, 9):
            turned_alike(compiled, module, length)


def test_lengths_without_positions_and_then_positions():
    """After the first calls, the length is a symbol. The expected size of the positions is then a symbol, too."""
    module = RotaryEmbedding(8, layout="interleaved")
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    turned_alike(compiled, module, 3)
    turned_alike(compiled, module, 5)
    for places in (torch.arange(7), torch.arange(9)[None], torch.tensor([[0, 1, 2], [5, 7, 6]])):
        turned_alike(compiled, module, places.shape[-1], places)


OPEN = {
    "none": None,
    "yarn": {"factor": 4.0, "trained_length": 64},
    "dynamic_ntk": {"trained_length": 8, "factor": 2.0},
    "longrope": {"short_factors": [1.0, 1.1, 1.2, 1.3], "long_factors": [2.0] * 4, "trained_length": 8, "factor": 4.0},
}


@pytest.mark.parametrize(
    ("name", "most"),
    [("none", 1000), ("yarn", None), ("dynamic_ntk", None), ("dynamic_ntk", 1000), ("longrope", 1000)],
)
def test_exported_with_an_open_length_it_is_right_at_every_length(name, most, monkeypatch):
    """Only an export to ONNX requires a largest length."""
    for_onnx = most is not None
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: for_onnx)
    module = RotaryEmbedding(8, scaling=OPEN[name] and make(name, **OPEN[name]), layout="interleaved")
    x, length = random(2, 2, 5, 8, dtype=torch.float32), {2: torch.export.Dim("length", max=most)}
    program = torch.export.export(module, (x, x), dynamic_shapes={"q": length, "k": length}).module()
    for at in (5, 2, 8, 9, 100):
        turned_alike(program, module, at)


def test_dynamic_yarn_says_that_it_has_no_formula_for_all_lengths():
    module = RotaryEmbedding(8, scaling=make("dynamic_yarn", trained_length=8, beta=4.0), layout="interleaved")
    x, length = random(2, 2, 5, 8), {2: torch.export.Dim("length", max=1000)}
    with pytest.raises(ValueError, match=r"length must be a number for dynamic YaRN.* fix the frequencies"):
        torch.export.export(module, (x, x), dynamic_shapes={"q": length, "k": length})


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_vmap_over_positions(layout):
    module, x = RotaryEmbedding(8, layout=layout), random(1, 2, 5, 8)
    places = torch.stack([torch.arange(5), torch.arange(5) + 3, 7 * torch.arange(5)])
    found = torch.func.vmap(lambda m: module(x, x, m)[0])(places)
    for one, m in zip(found, places, strict=True):
        torch.testing.assert_close(one, module(x, x, m)[0])
    slopes = torch.func.vmap(torch.func.grad(lambda m: module(x, x, m)[0].sum()))(places.double())
    for one, m in zip(slopes, places.double(), strict=True):
        torch.testing.assert_close(one, torch.func.grad(lambda m: module(x, x, m)[0].sum())(m))


def test_jit_script_is_not_supported():
    """The module's docstring says that torch.jit.script isn't supported, and torch's own error message gives the
    reason."""
    with pytest.raises(torch.jit.frontend.NotSupportedError, match="keyword-only arguments"):
        torch.jit.script(RotaryEmbedding(8, layout="interleaved"))
