"""Tests of the single file that readers may copy. It is compared with the package in layouts, offset, positions,
scalings, types and bad input."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import rope_single
from ropebook.checks import LAYOUTS
from ropebook.efficient import RotaryEmbedding
from ropebook.extrapolation import make
from tests.helpers import largest, random
from tests.together import pairwise, together

DIM = 64
# for each scaling: the file's function, and the package's method
SCALINGS = {
    "none": (None, None),
    "llama3": (rope_single.llama3, make("llama3")),
    "llama3, other": (functools.partial(rope_single.llama3, factor=4.0, trained=512, low=2.0, high=9.0),
                      make("llama3", factor=4.0, trained_length=512, low_freq_factor=2.0, high_freq_factor=9.0)),
    "yarn": (functools.partial(rope_single.yarn, factor=4.0, trained=4096),
             make("yarn", factor=4.0, trained_length=4096)),
    "yarn, other": (functools.partial(rope_single.yarn, factor=16.0, trained=300, slow=0.5, fast=7.0),
                    make("yarn", factor=16.0, trained_length=300, alpha=0.5, beta=7.0)),
    "yarn, factor 1": (functools.partial(rope_single.yarn, factor=1.0, trained=4096),
                       make("yarn", factor=1.0, trained_length=4096)),
}  # fmt: skip
PLACES = {
    "from 0": {},
    "offset": {"offset": 100_000},
    "positions": {"positions": torch.tensor([5, 0, 131_071, 7])},
    "rows": {"positions": torch.tensor([[0, 1, 2, 3], [0, 0, 0, 1], [9, 8, 7, 6]])},
}


@together("layout, base, scaling, places", pairwise(LAYOUTS, [10000.0, 500000.0], SCALINGS, PLACES))
def test_it_rotates_as_the_package_does(layout, base, scaling, places):
    copied, ours = SCALINGS[scaling]
    one = rope_single.RoPE(DIM, base, layout=layout, scaling=copied)
    other = RotaryEmbedding(DIM, base, layout=layout, scaling=ours)
    q, k = random(3, 4, 4, DIM), random(3, 2, 4, DIM, seed=1)
    for found, expected in zip(one(q, k, **PLACES[places]), other(q, k, **PLACES[places]), strict=True):
        assert found.dtype == torch.float64
        assert largest(found - expected) < 1e-9  # angles go up to 131,071 radians, in float64


@together("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_only_the_result_is_rounded(dtype):
    rope = rope_single.RoPE(DIM, layout="half").to(dtype)
    q = random(1, 2, 8, DIM).to(dtype)
    found, _ = rope(q, q, offset=100_000)
    exact, _ = rope(q.double(), q.double(), offset=100_000)
    assert found.dtype == dtype
    assert largest(found.double() - exact) <= torch.finfo(dtype).eps * 4


@together(("dim", "layout"), [(7, "half"), (0, "half"), (8, "neox")])
def test_what_it_refuses(dim, layout):
    with pytest.raises(
        ValueError, match=f"dim must be even and layout 'half' or 'interleaved', got {dim} and '{layout}'"
    ):
        rope_single.RoPE(dim, layout=layout)
    with pytest.raises(TypeError, match="layout"):
        rope_single.RoPE(8)


@together("base", [0, -1.0, 0.5, float("nan"), float("inf")])
def test_a_base_below_one_is_refused(base):
    with pytest.raises(ValueError, match=f"base must be a finite number >= 1, got {base}"):
        rope_single.RoPE(8, base, layout="half")


def test_what_does_not_fit_the_module_is_refused():
    rope, q = rope_single.RoPE(8, layout="half"), torch.ones(1, 2, 3, 8)
    with pytest.raises(ValueError, match="k must be 8 wide, got 6"):
        rope(q, q[..., :6])
    places = torch.arange(3)
    with pytest.raises(ValueError, match=r"positions must be integers or float32, without offset, got torch.int64, 5"):
        rope(q, q, positions=places, offset=5)
    with pytest.raises(ValueError, match=r"positions must be integers or float32, .* got torch\.bfloat16"):
        rope(q, q, positions=places.bfloat16())
    with pytest.raises(ValueError, match=r"positions must be integers or float32, .* got torch\.bool"):
        rope(q, q, positions=places > 0)


def test_q_and_k_must_be_of_the_same_tokens():
    """Without this error, the cosines of six tokens would broadcast over a single key, and the result would contain six
    keys."""
    rope, q = rope_single.RoPE(8, layout="half"), torch.ones(2, 2, 6, 8)
    for k in (q[:, :, :1], q[:1], q[:, :, :5]):
        with pytest.raises(
            ValueError, match=rf"k must have q's batch and seq, 2 and 6, got shape \(.*{k.shape[-2]}, 8"
        ):
            rope(q, k)
    assert rope(q, q[:, :1])[1].shape == (2, 1, 6, 8)


@together("shape", [(1,), (5,), (1, 1), (3, 6), (2, 1, 6), ()])
@together("batch", [1, 2])
def test_positions_must_be_those_of_the_rows(shape, batch):
    """Without this error, positions for three rows would turn one row into three."""
    rope, q = rope_single.RoPE(8, layout="half"), torch.ones(batch, 2, 6, 8)
    with pytest.raises(ValueError, match=rf"positions must have shape \(6,\) or \({batch}, 6\), got"):
        rope(q, q, positions=torch.zeros(shape).long())
    assert rope(q, q, positions=torch.arange(6)[None])[0].shape == q.shape


@pytest.mark.parametrize("name", ["q", "k"])
def test_integers_are_not_cut_off(name):
    given = {"q": torch.ones(1, 2, 3, 8), "k": torch.ones(1, 2, 3, 8)}
    given[name] = given[name].long()
    with pytest.raises(TypeError, match=rf"{name} must be floating-point, got torch\.int64"):
        rope_single.RoPE(8, layout="half")(**given)


@together("scaling", SCALINGS)
def test_built_under_meta_it_rotates(scaling):
    copied, _ = SCALINGS[scaling]
    with torch.device("meta"):
        rope = rope_single.RoPE(DIM, layout="half", scaling=copied)
    q = random(1, 2, 4, DIM)
    assert torch.equal(rope(q, q)[0], rope_single.RoPE(DIM, layout="half", scaling=copied)(q, q)[0])
    assert rope(q.to("meta"), q.to("meta"))[1].shape == q.shape


def test_it_stands_alone_and_is_short():
    path = Path(rope_single.__file__)
    code = (
        "import sys; sys.path = [p for p in sys.path if 'code' not in p]; import runpy; runpy.run_path(sys.argv[1]); "
    )
    code += "assert not [name for name in sys.modules if name.startswith('ropebook')]"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, env={})
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 100
