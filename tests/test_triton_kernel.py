"""Tests of the Triton kernel. It is interpreted on the CPU, compiled for CUDA on any machine, and run on CUDA if there
is a GPU.

The cases themselves are in triton_cases.py.
"""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import coverage
import pytest
import torch

from ropebook import checks
from ropebook import triton_kernel as K

ROOT = Path(__file__).resolve().parent.parent


def python(*arguments, interpreted=False):
    """Run Python in a new process, and include that process in the coverage measured for this one."""
    command = [sys.executable]
    if coverage.Coverage.current() is not None:
        command += ["-m", "coverage", "run", "--parallel-mode"]
    return subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1" if interpreted else "0", "PYTHONPATH": str(ROOT / "code")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
    )


def run_cases(interpreted):
    """Run the cases in a separate process, with or without Triton's interpreter. All cases must pass."""
    pytest.importorskip("triton", reason="Triton is not installed: the fused kernel is NOT tested here")
    done = python("-m", "pytest", "tests/triton_cases.py", "-q", "-p", "no:cacheprovider", interpreted=interpreted)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    counts = done.stdout.strip().splitlines()[-1]
    assert int(re.search(r"(\d+) passed", counts)[1]) > 100
    assert "skipped" not in counts or not interpreted


def test_the_cases_under_the_interpreter():
    run_cases(interpreted=True)


def test_the_cases_on_cuda():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device: the fused kernel has NOT run on a GPU here, only under Triton's interpreter")
    run_cases(interpreted=False)


# --- Compiled for CUDA, on any machine ---


@pytest.fixture
def hopper(monkeypatch, tmp_path):
    """Compile the kernel for an H100 instead of launching it. Yield the list of everything compiled."""
    pytest.importorskip("triton", reason="Triton is not installed: the fused kernel is NOT compiled here")
    if K.INTERPRETED:
        pytest.skip("TRITON_INTERPRET is set: the fused kernel is NOT compiled here")
    from triton.backends.compiler import GPUTarget
    from triton.runtime import driver

    compiled, kernel = [], K.rotary_kernel

    class Driver:
        get_current_target = staticmethod(lambda: GPUTarget("cuda", 90, 32))
        get_current_device = staticmethod(lambda: 0)
        get_current_stream = staticmethod(lambda device: 0)

    class Compiling:
        def __getitem__(self, grid):
            return lambda *args, **options: compiled.append(
                kernel.run(*args, grid=grid, warmup=True, **options).asm["ptx"]
            )

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(K, "rotary_kernel", Compiling())
    monkeypatch.setattr(K, "_why_not", lambda device: None)
    kernel.device_caches.clear()
    driver.set_active(Driver)
    yield compiled
    driver.set_active(None)  # return to the driver that is actually installed
    kernel.device_caches.clear()


def case(q_heads=32, k_heads=8, tokens=2048, dim=128, rotary_dim=128, dtype=torch.bfloat16):
    q, k = (torch.empty(1, heads, tokens, dim, dtype=dtype) for heads in (q_heads, k_heads))
    return q, k, torch.empty(tokens, rotary_dim // 2), torch.empty(tokens, rotary_dim // 2)


@pytest.mark.parametrize("layout", checks.LAYOUTS)
@pytest.mark.parametrize("dim, rotary_dim", [(128, 128), (64, 64), (128, 96)])
def test_compiled_for_cuda_it_loads_and_stores_16_bytes_at_a_time(dim, rotary_dim, layout, hopper):
    q, k, cos, sin = case(dim=dim, rotary_dim=rotary_dim)
    K.rotary(q, k, cos, sin, layout=layout)
    token_first = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k)]
    K.rotary(*token_first, cos, sin, layout=layout)
    assert len(hopper) == 2
    for ptx in hopper:
        widths = set(re.findall(r"(?:ld|st)\.global\.([\w.]+)", ptx))
        # Each row has 32 entries that are only passed through. They are loaded in smaller chunks, so that each of the
        # 128 threads gets some of them.
        assert widths == ({"v4.b32"} if dim == rotary_dim else {"v4.b32", "v2.b32"})
        if layout == "interleaved":  # the kernel splits pairs in registers, not through shared memory
            assert not re.search(r"(ld|st)\.shared", ptx)
        assert "fma.rn.f32" in ptx
        assert "fma.rn.bf16" not in ptx


@pytest.mark.parametrize("layout", checks.LAYOUTS)
@pytest.mark.parametrize(
    "shape",
    [
        dict(q_heads=1, k_heads=1, tokens=1, dim=2, rotary_dim=2),
        dict(q_heads=5, k_heads=1, tokens=37, dim=13, rotary_dim=6, dtype=torch.float64),
        dict(q_heads=3, k_heads=0, tokens=16, dim=16, rotary_dim=16, dtype=torch.float16),
    ],
    ids=["ones", "odd, float64", "no k, float16"],
)
def test_every_launch_compiles(shape, layout, hopper):
    """Compile the forward pass, the backward pass, and the in-place rotation. Triton compiles separate versions for
    sizes of 1 and for multiples of 16."""
    q, k, cos, sin = case(**shape)
    q.requires_grad_()
    turned = K.rotary(q, k, cos, sin, layout=layout)
    sum(x.sum() for x in turned).backward()
    with torch.no_grad():
        K.rotary(q, None, cos, sin, layout=layout, in_place=True)
    assert len(hopper) == 3


# --- Where it cannot run ---


def arguments():
    return torch.ones(1, 2, 3, 4), torch.ones(1, 1, 3, 4), torch.ones(3, 2), torch.ones(3, 2)


def test_without_triton(monkeypatch):
    monkeypatch.setattr(K, "triton", None)
    assert not K.available()
    assert not K.available("cuda")
    with pytest.raises(RuntimeError, match=r'needs Triton, which is not installed \(pip install "ropebook\[gpu\]"\)'):
        K.rotary(*arguments())

    def plain():
        """This function is unchanged."""

    assert K._jit(plain) is plain


def test_on_the_cpu_without_the_interpreter(monkeypatch):
    monkeypatch.setattr(K, "triton", object())
    monkeypatch.setattr(K, "INTERPRETED", False)
    assert not K.available("cpu")
    assert K.available("cuda")
    with pytest.raises(RuntimeError, match=r"runs on CUDA, got tensors on cpu; .* TRITON_INTERPRET=1"):
        K.rotary(*arguments())


@pytest.mark.parametrize("there", [False, True])
def test_the_default_device_is_cuda_where_it_is_there(there, monkeypatch):
    monkeypatch.setattr(K, "triton", object())
    monkeypatch.setattr(K, "INTERPRETED", False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert K.available() is there


def test_it_imports_without_triton(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nsys.modules['triton'] = None\n"
        "from ropebook import triton_kernel as K\nprint(K.available(), K.INTERPRETED)\n"
    )
    done = python(str(script))
    assert done.stdout == "False False\n", done.stderr


def test_the_source_can_be_shown():
    for kernel in (K.rotary_kernel, K.rotate_heads):
        assert inspect.getsource(inspect.unwrap(kernel)).startswith("@_jit\ndef rot")
