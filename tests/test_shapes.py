"""Test that the shapes in signatures are checked while the tests run, and that a wrong shape is detected."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest
import torch
from torch import Tensor

from ropebook import efficient, rope
from ropebook.shapes import Float, Real
from tests import shapes
from tests.helpers import random
from tests.together import together
from tools.paths import ROOT

Vectors = Float[Tensor, "*batch seq dim"]
COS, SIN = rope.cos_sin(torch.arange(3), rope.inv_freq(8))
X = random(2, 3, 8)


@shapes.checked
def turned(x: Vectors, cos: Float[Tensor, "seq dim//2"], result: str = "right") -> Vectors | tuple[Vectors, Vectors]:
    """A rotation whose return value depends on ``result``."""
    if result == "refused":
        raise ValueError("cos must fit")
    right = x.clone()
    given = {"right": right, "pair": (right, right), "transposed": right.mT, "half a pair": (right, right.mT)}
    return given.get(result, right.long())


@pytest.mark.parametrize("result", ["right", "pair"])
def test_what_fits_passes(result):
    turned(X, COS, result)


@together("result", ["transposed", "half a pair", "whole numbers"])
def test_a_wrong_shape_or_type_is_seen(result):
    with pytest.raises(shapes.ShapeError, match=r"turned gave back \(?torch\.\w+ \(2, "):
        turned(X, COS, result)


def test_what_does_not_fit_has_to_be_refused_by_the_function_itself():
    with pytest.raises(ValueError, match="cos must fit"):
        turned(X, COS[:2], "refused")
    with pytest.raises(shapes.ShapeError, match=r"turned took torch\.float32 \(2, 4\) for cos"):
        turned(X, COS[:2])
    with pytest.raises(TypeError, match="missing"):
        turned(X)


def test_a_none_is_fine_where_it_is_allowed():
    assert shapes.fits(None, Real[Tensor, " seq"] | None)
    assert not shapes.fits(None, Real[Tensor, " seq"])


MUTANT = """
import re, sys
from tests import shapes
shapes.install()
read = shapes._Loader.get_data
def transposed(self, path):
    data = read(self, path)
    wanted = b"    y = join(x1 * cos - x2 * sin, x2 * cos + x1 * sin, layout)\\n    return y.to(x.dtype)"
    if path.endswith("forms.py") and sys.argv[1] == "wrong":
        assert wanted in data
        data = data.replace(wanted, wanted + b".mT")
    return data
shapes._Loader.get_data = transposed
import torch
from ropebook import efficient, rope
from ropebook.shapes import Float, Real
cos, sin = rope.cos_sin(torch.arange(3), rope.inv_freq(8))
print(tuple(efficient.rotate_by_pairs(torch.ones(3, 8), cos, sin).shape))
"""


def test_a_transposed_rotation_is_seen():
    run = [sys.executable, "-c", MUTANT]
    assert subprocess.run([*run, "right"], cwd=ROOT, capture_output=True, text=True).stdout == "(3, 8)\n"
    done = subprocess.run([*run, "wrong"], cwd=ROOT, capture_output=True, text=True)
    assert "ShapeError: rotate_by_pairs gave back torch.float32 (8, 3), not" in done.stderr


def test_the_package_is_checked_in_these_tests():
    with pytest.raises(shapes.ShapeError, match="over_heads took"):
        efficient.forms.over_heads(X, COS, SIN.long())


def test_nothing_of_it_is_needed_to_read_the_book():
    """Without jaxtyping, the same words appear in the signatures, but each of them simply stands for a tensor."""
    program = """
import sys
sys.modules["jaxtyping"] = None
from ropebook import efficient, shapes
assert {getattr(shapes, word)[efficient.forms.Tensor, "a b"] for word in shapes.__all__} == {efficient.forms.Tensor}
import torch
print(efficient.rotate_half(torch.tensor([1, 2])).tolist())
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT / "code", capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[-2, 1]\n", "")


def test_modules_are_found_by_the_words_in_them():
    finder = shapes._Finder()
    found = importlib.util.find_spec("ropebook.rope").origin
    assert finder.find_spec("ropebook.rope", [str(ROOT / "code" / "ropebook")]).origin == found
    assert finder.find_spec("ropebook.memory", [str(ROOT / "code" / "ropebook")]) is None
    assert finder.find_spec("torch", None) is None
