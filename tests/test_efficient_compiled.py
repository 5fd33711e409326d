"""Tests of the compiled form, and of how a compiler affects the other forms."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

from ropebook import efficient as E
from ropebook import rope, sinusoidal
from ropebook.efficient import forms
from tests.helpers import largest, random
from tests.rotations import LAYOUTS, exact, qk, tables


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


@pytest.mark.parametrize(("layout", "sizes"), [("half", [(2, 5), (3, 7)]), ("interleaved", [(2, 5)])])
def test_compiled_is_the_rotation_at_any_size(layout, sizes):
    """Compiling takes a long time, so the second size is tried in only one layout."""
    skip_without_compiler()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for batch, tokens in sizes:
            positions = range(tokens)
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
        "        y = E.apply_rotary(x, cos, sin, layout='interleaved', backend='compiled')",
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
    """A torch.compile backend that counts graphs and runs them uncompiled. So no C++ compiler is needed."""

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


@pytest.mark.parametrize(("table_length", "used_before"), [(None, True), (16, False), (128, True)])
def test_decoding_64_tokens_recompiles_at_most_three_times(table_length, used_before, graphs):
    rope = E.RotaryEmbedding(8, table_length=table_length, layout="interleaved")
    compiled = torch.compile(rope, fullgraph=True, backend=graphs)
    q, k = random(2, 4, 164, 8, dtype=torch.float32), random(2, 2, 164, 8, dtype=torch.float32)
    expected = exact(q, range(164), "interleaved"), exact(k, range(164), "interleaved")
    if used_before:
        rope(q[:, :, :100], k[:, :, :100])
    parts = [compiled(q[:, :, :100], k[:, :, :100])]
    assert graphs.count == 1
    for at in range(100, 164):
        parts.append(compiled(q[:, :, at : at + 1], k[:, :, at : at + 1], offset=at))
    assert graphs.count <= 4
    for ours, right in zip(zip(*parts, strict=True), expected, strict=True):
        assert largest(torch.cat(ours, 2) - right) < 1e-6


def test_one_graph_with_position_tensors_partial_and_scaled(graphs):
    def scaling(inv_freq, length):
        return inv_freq / (2 if length is None else length), 1.5

    q, k = random(2, 4, 3, 8, dtype=torch.float32), random(2, 2, 3, 8, dtype=torch.float32)
    for layout, at in (
        ("half", torch.tensor([3, 9, 4])),
        ("interleaved", torch.tensor([[0, 0, 1], [5, 6, 7]])),
        ("half", None),
    ):
        rope = E.RotaryEmbedding(8, layout=layout, rotary_dim=6, scaling=scaling)
        compiled = torch.compile(rope, fullgraph=True, backend=graphs)
        for ours, eager in zip(compiled(q, k, at), rope(q, k, at), strict=True):
            assert largest(ours - eager) < 1e-6


@pytest.mark.parametrize(("layout", "for_onnx"), [("interleaved", False), ("half", True)])
def test_a_graph_for_onnx_has_operators_of_torch_only(layout, for_onnx, monkeypatch):
    """The graph must not contain complex numbers either, because ONNX has none. The exporter itself isn't run, because
    it needs packages that aren't installed here."""
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: for_onnx)
    rope = E.RotaryEmbedding(8, layout=layout, rotary_dim=6)
    q, k = random(1, 4, 5, 8, dtype=torch.float32), random(1, 2, 5, 8, dtype=torch.float32)
    length = {2: torch.export.Dim("length", max=1000)}
    program = torch.export.export(rope, (q, k), dynamic_shapes={"q": length, "k": length})
    operators = [node.target for node in program.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]
    assert ("ropebook" in {operator.namespace for operator in operators}) is not for_onnx
    assert not any("complex" in str(operator) for operator in operators)
    longer = random(1, 4, 300, 8, dtype=torch.float32), random(1, 2, 300, 8, dtype=torch.float32)
    for ours, eager in zip(program.module()(*longer), rope(*longer), strict=True):
        assert largest(ours - eager) < 1e-6


def test_what_a_graph_may_not_read_comes_out_as_nan(graphs):
    rope, q = E.RotaryEmbedding(8, layout="interleaved"), random(1, 2, 4, 8)
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
    rope = E.RotaryEmbedding(8, backend="compiled", layout="interleaved")
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
    for length in (3, 8):
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

    rope = E.RotaryEmbedding(8, layout="interleaved")
    x = random(1, 2, 3, 8, dtype=torch.float32)
    torch.compile(rope, fullgraph=True, backend=look)(x, x, torch.arange(3))
    assert any("ropebook.cos_sin" in target for target in seen)
    assert not any(target in ("cos", "sin") for target in seen)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_graph_is_made_of_is_the_same_rotation(layout, monkeypatch):
    """Run the branches that are meant for compilation, but without compiling them."""
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
