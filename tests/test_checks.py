import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import checks
from tests.together import together


def exactly(message):
    return f"^{re.escape(message)}$"


@given(st.integers())
def test_integers_pass_unchanged(value):
    assert checks.integer("n", value) == value
    assert checks.integer("n", value, minimum=value, maximum=value) == value


@given(st.integers(), st.integers(min_value=1))
def test_integers_outside_the_limits_are_refused(limit, step):
    with pytest.raises(ValueError, match=exactly(f"n must be an integer >= {limit}, got {limit - step}")):
        checks.integer("n", limit - step, minimum=limit)
    with pytest.raises(ValueError, match=exactly(f"n must be an integer <= {limit}, got {limit + step}")):
        checks.integer("n", limit + step, maximum=limit)


def test_both_limits_are_stated():
    with pytest.raises(ValueError, match=exactly("n must be an integer >= 1 and <= 5, got 6")):
        checks.integer("n", 6, minimum=1, maximum=5)
    with pytest.raises(ValueError, match=exactly("x must be a finite number > 0 and >= 1 and <= 5, got 6")):
        checks.number("x", 6, above=0, minimum=1, maximum=5)


@together("value", [True, False, 4.0, "4", None, [4], 1j, torch.tensor(4), np.bool_(True)])
def test_what_is_no_integer_is_refused(value):
    with pytest.raises(TypeError, match=exactly(f"n must be an integer, got {value!r}")):
        checks.integer("n", value)
    with pytest.raises(TypeError, match=exactly(f"dim must be an even integer >= 2, got {value!r}")):
        checks.even("dim", value)


def test_numpy_scalars_become_plain_numbers():
    assert type(checks.integer("n", np.int32(7))) is int
    assert checks.integer("n", np.int32(7), minimum=7, maximum=7) == 7
    assert type(checks.even("dim", np.int64(8))) is int
    assert type(checks.number("x", np.float32(0.5))) is float
    assert type(checks.number("x", 3)) is float
    assert checks.number("x", Fraction(1, 4)) == 0.25


@together("value", [2, 4, 6, 128])
def test_even_numbers_pass(value):
    assert checks.even("dim", value) == value


@together("value", [-2, -1, 0, 1, 3, 7])
def test_odd_or_small_numbers_are_refused(value):
    with pytest.raises(ValueError, match=exactly(f"dim must be an even integer >= 2, got {value}")):
        checks.even("dim", value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_finite_numbers_pass(value):
    assert checks.number("x", value) == value
    assert checks.number("x", value, minimum=value, maximum=value) == value
    assert checks.number("x", value, above=-math.inf) == value


@given(st.floats(-1e300, 1e300))
def test_numbers_outside_the_limits_are_refused(limit):
    below, beyond = math.nextafter(limit, -math.inf), math.nextafter(limit, math.inf)
    with pytest.raises(ValueError, match=exactly(f"x must be a finite number >= {limit}, got {below}")):
        checks.number("x", below, minimum=limit)
    with pytest.raises(ValueError, match=exactly(f"x must be a finite number <= {limit}, got {beyond}")):
        checks.number("x", beyond, maximum=limit)
    with pytest.raises(ValueError, match=exactly(f"x must be a finite number > {limit}, got {limit}")):
        checks.number("x", limit, above=limit)
    assert checks.number("x", beyond, above=limit) == beyond


@together("value", [math.nan, math.inf, -math.inf, np.float32("nan"), 10**400])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match=exactly(f"base must be a finite number > 0, got {value!r}")):
        checks.number("base", value, above=0)


@together("value", [True, "1.0", None, 1j, torch.tensor(1.0)])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match=exactly(f"base must be a finite number, got {value!r}")):
        checks.number("base", value)


def test_choices():
    assert checks.choice("layout", "half", ["interleaved", "half"]) == "half"
    assert checks.choice("layout", "interleaved", iter(["interleaved", "half"])) == "interleaved"
    message = "layout must be one of 'interleaved', 'half', got {!r}"
    for value in ("Half", "", None, ["half"], 1, np.array(["half", "half"])):
        with pytest.raises(ValueError, match=exactly(message.format(value))):
            checks.choice("layout", value, ["interleaved", "half"])


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_the_two_layouts_pass(layout):
    assert checks.layout(layout) == layout


@together("layout", ["Half", "", None, 1])
def test_other_layouts_are_refused(layout):
    with pytest.raises(ValueError, match=exactly(f"layout must be one of 'interleaved', 'half', got {layout!r}")):
        checks.layout(layout)


@together("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_floating_point_tensors_pass(dtype):
    x = torch.zeros(2, dtype=dtype)
    assert checks.floating("x", x) is x


@together("dtype", [torch.int64, torch.bool, torch.complex64])
def test_other_tensors_are_refused(dtype):
    with pytest.raises(TypeError, match=exactly(f"x must be a floating-point tensor, got dtype {dtype}")):
        checks.floating("x", torch.zeros(2, dtype=dtype))


@together("value, kind", [([1.0], "list"), (np.zeros(2), "ndarray"), (None, "NoneType"), (1.0, "float")])
def test_what_is_no_tensor_is_refused(value, kind):
    with pytest.raises(TypeError, match=exactly(f"x must be a floating-point tensor, got {kind}")):
        checks.floating("x", value)


@together("dtype", [torch.int64, torch.float64, torch.float32])
def test_entries_within_the_limits_pass(dtype):
    x = torch.tensor([[-2, 0], [3, 1]], dtype=dtype)
    assert checks.entries("x", x, -2, 3) is x
    assert checks.entries("x", x[:0], 4, 5).shape == (0, 2)
    for low, high, found in ((-1, 3, x[0, 0]), (-2, 2, x[1, 0])):
        with pytest.raises(ValueError, match=exactly(f"x must lie between {low} and {high} here, got {found.item()}")):
            checks.entries("x", x, low, high, " here")
    with pytest.raises(ValueError, match=exactly(f"m must lie between 0 and 1, got {x[1, 0].item()}")):
        checks.entries("m", x[1, 0], 0, 1)


@together("value", ["nan", "inf", "-inf"])
def test_entries_that_are_no_numbers_are_outside(value):
    with pytest.raises(ValueError, match=exactly(f"x must lie between 0 and 1, got {value}")):
        checks.entries("x", torch.tensor([0.5, float(value), 2.0]), 0, 1)


@together("value", ["nan", "inf", "-inf"])
def test_finite_numbers_pass_and_others_do_not(value):
    x = torch.tensor([0.5, -3e38, 2.0])
    assert checks.finite("x", x) is x
    with pytest.raises(ValueError, match=exactly(f"x must be finite numbers, got {value}")):
        checks.finite("x", torch.tensor([0.5, float(value), 2.0]))


def test_what_may_be_read():
    assert checks.readable(torch.zeros(2))
    assert not checks.readable(torch.zeros(2, device="meta"))
    seen = []

    def look(x):
        seen.append(checks.readable(x))
        return x + 1

    torch.compile(look, backend="eager", fullgraph=True)(torch.zeros(2))
    assert seen == [False]
    torch._dynamo.reset()
