"""Small argument checks, used by every module.

Each function takes an argument's name and value. It returns the value (numbers as a plain ``int`` or ``float``), or
raises ``TypeError`` if the value has the wrong type and ``ValueError`` if it is out of range. The message names the
argument, says what is allowed, and shows what was passed:

>>> even("dim", 7)
Traceback (most recent call last):
    ...
ValueError: dim must be an even integer >= 2, got 7
"""

from __future__ import annotations

import math
import numbers
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def integer(
    name: str, value: object, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Accept an integer from ``minimum`` to ``maximum`` inclusive; ``None`` means no limit.

    NumPy integers are accepted; booleans, floats (even ``4.0``) and tensors are not.

    >>> integer("heads", 8, minimum=1)
    8
    """
    least = value if minimum is None else minimum
    most = value if maximum is None else maximum
    if type(value) is int and least <= value <= most:
        # Nearly every call ends here. Composing the message below would take longer than rotating a token.
        return value
    if _of_a_graph(value):
        return value
    allowed = "an integer" + _limits((">=", minimum), ("<=", maximum))
    value = int(_of_kind(name, value, numbers.Integral, allowed))
    below = minimum is not None and value < minimum
    above = maximum is not None and value > maximum
    return _within(name, value, allowed, not (below or above))


def even(name: str, value: object) -> int:
    """Accept an even integer of at least 2, such as a head dimension, which is split into pairs.

    >>> even("dim", 64)
    64
    """
    allowed = "an even integer >= 2"
    value = int(_of_kind(name, value, numbers.Integral, allowed))
    return _within(name, value, allowed, value > 0 and value % 2 == 0)


def number(
    name: str,
    value: object,
    above: float | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
) -> float:
    """Accept a finite real number greater than ``above``, at least ``minimum`` and at most ``maximum``.

    Integers and NumPy scalars are accepted; booleans, NaN, infinities and tensors are not.

    >>> number("base", 10000, above=0)
    10000.0
    """
    limits = (">", above), (">=", minimum), ("<=", maximum)
    allowed = "a finite number" + _limits(*limits)
    if _of_a_graph(value):
        return value
    value = _of_kind(name, value, numbers.Real, allowed)
    try:
        result = float(value)
    except OverflowError:
        # the integer is too large for a float
        result = math.inf
    inside = (
        # math.isfinite does not accept the symbolic floats of torch.compile
        -math.inf < result < math.inf
        and (above is None or result > above)
        and (minimum is None or result >= minimum)
        and (maximum is None or result <= maximum)
    )
    _within(name, value, allowed, inside)
    return result


def choice(name: str, value: object, allowed: Iterable) -> object:
    """Accept one of the ``allowed`` values. These are plain values such as strings, and they are compared by equality.

    >>> choice("layout", "half", ["interleaved", "half"])
    'half'
    """
    options = tuple(allowed)
    for option in options:
        if isinstance(value, type(option)) and value == option:
            return option
    raise ValueError(
        f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}"
    )


def listed(name: str, value: object, allowed: str) -> list:
    """Accept a list or another sequence, but not a string or a tensor. ``allowed`` is the error message's description
    of what may be passed.

    >>> listed("dims", (4, 2), "a list of integers")
    [4, 2]
    """
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    return list(value)


LAYOUTS = ("interleaved", "half")
"""The two ways to pair a head's entries for the rotation: (2i, 2i + 1), or (i, i + d/2)."""


def layout(value: object) -> str:
    """Accept one of `LAYOUTS`.

    >>> layout("neox")
    Traceback (most recent call last):
        ...
    ValueError: layout must be one of 'interleaved', 'half', got 'neox'
    """
    return choice("layout", value, LAYOUTS)


def layout_said(value: object, stacklevel: int = 3) -> str:
    """Accept one of `LAYOUTS`, or None with a warning. Functions that rotate with a model's own weights use this check.
    For one more release, the layout may be left out (None): it then defaults to "interleaved", and a ``FutureWarning``
    says so. Without the warning, nothing would show that the weights need the other layout, as those of Llama in
    transformers do, for example. The warning points at the caller ``stacklevel`` levels up.

    >>> layout_said("half")
    'half'
    """
    if value is not None:
        return layout(value)
    if not _compiling():
        warnings.warn(
            "layout will have to be given from version 0.2 on; now it is 'interleaved', which suits Meta's own Llama "
            "and GPT-J. The weights of Llama, Qwen, Gemma, Mistral and GPT-NeoX in transformers want layout='half'",
            FutureWarning,
            stacklevel=stacklevel,
        )
    return "interleaved"


def _compiling() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def rotary_dim(dim: int, value: object) -> int:
    """Return how many entries of a head of width ``dim`` are rotated. ``value`` must be an even number of at most
    ``dim``, or None for all entries.

    >>> rotary_dim(64, None), rotary_dim(64, 16)
    (64, 16)
    """
    if value is None:
        return dim
    if even("rotary_dim", value) > dim:
        raise ValueError(f"rotary_dim must be at most dim = {dim}, got {value}")
    return int(value)


def tensor(name: str, value: object, allowed: str = "a tensor") -> torch.Tensor:
    """Accept a tensor of any shape and dtype."""
    # imported here so that modules that only check integers don't have to load torch
    import torch

    if not isinstance(value, torch.Tensor):
        raise TypeError(f"{name} must be {allowed}, got {type(value).__name__}")
    return value


def floating(name: str, value: object) -> torch.Tensor:
    """Accept a tensor of real floating-point numbers, of any shape and precision."""
    allowed = "a floating-point tensor"
    if not tensor(name, value, allowed).is_floating_point():
        raise TypeError(f"{name} must be {allowed}, got dtype {value.dtype}")
    return value


def rotatable(name: str, value: object) -> torch.Tensor:
    """Accept a `floating` tensor with at least two bytes per number, because torch has no arithmetic for float8."""
    if floating(name, value).dtype.itemsize == 1:
        raise TypeError(
            f"{name} must have at least two bytes per number to be rotated, got dtype {value.dtype}"
        )
    return value


def entries(
    name: str, value: torch.Tensor, minimum: int, maximum: int, note: str = ""
) -> torch.Tensor:
    """Accept a tensor of int64, float32 or float64 whose entries all lie between ``minimum`` and ``maximum`` inclusive.
    NaN is refused.

    This reads the values. On an accelerator, that means waiting for the device (see `readable`).
    """
    outside = ~(
        (value >= minimum) & (value <= maximum)
    )  # written this way so that NaN counts as out of range
    if outside.any():
        found = value[outside][0].item()
        raise ValueError(
            f"{name} must lie between {minimum} and {maximum}{note}, got {found}"
        )
    return value


def rows_fit(shape: tuple[int, ...], batch: int | None, seq_len: int) -> bool:
    """Return whether ``shape`` is (seq_len,), (1, seq_len) or, unless ``batch`` is None, (batch, seq_len). The sizes
    are compared one by one, because torch.compile can't search a list of shapes for a symbolic one.

    >>> rows_fit((3,), 2, 3), rows_fit((2, 3), 2, 3), rows_fit((2, 3), 4, 3)
    (True, True, False)
    """
    if not 1 <= len(shape) <= 2 or shape[-1] != seq_len:
        return False
    return len(shape) == 1 or shape[0] == 1 or shape[0] == batch


def finite(name: str, value: torch.Tensor) -> torch.Tensor:
    """Accept a tensor without NaN or infinity. This reads the values, as `entries` does."""
    outside = ~value.isfinite()
    if outside.any():
        raise ValueError(
            f"{name} must be finite numbers, got {value[outside][0].item()}"
        )
    return value


def readable(value: torch.Tensor) -> bool:
    """Return whether a tensor's values may be read. Reading is not allowed in three cases: while a graph is being
    compiled, on a device that we would have to wait for, and inside ``torch.func.vmap``, where one tensor represents
    many."""
    import torch

    if value.device.type != "cpu" or torch.compiler.is_compiling():
        return False
    return not torch._C._functorch.is_functorch_wrapped_tensor(value)


def _of_a_graph(value: object) -> bool:
    """Return whether the value is a symbol that represents an arbitrary number in a graph made by torch.export.
    Comparing such a symbol with anything would fix the outcome in the graph."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, (torch.SymInt, torch.SymFloat))


def _limits(*limits: tuple[str, float | None]) -> str:
    return " and".join(
        f" {sign} {limit}" for sign, limit in limits if limit is not None
    )


def _of_kind(name: str, value: object, kind: type, allowed: str) -> object:
    # In Python True counts as the integer 1, but passing it here is surely a mistake.
    if isinstance(value, bool) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    return value


def _within(name: str, value: object, allowed: str, inside: bool) -> object:
    if not inside:
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return value
