"""The words for shapes in signatures: ``Float[Tensor, "batch heads seq dim"]`` is a tensor of real numbers with these axes.

Axes of one name are of one size; ``...`` stands for any axes, ``*rows`` for any that come again where the name does. They are
jaxtyping's words, and the tests check every call by them. Without jaxtyping they say the same to a reader, and nothing runs.
"""

from __future__ import annotations

try:
    from jaxtyping import Bool, Complex, Float, Int, Real, Shaped
except ImportError:

    class Shaped:
        """A tensor of any type of numbers."""

        def __class_getitem__(cls, given: tuple) -> type:
            return given[0]

    class Bool(Shaped):
        """True and false."""

    class Complex(Shaped):
        """Complex numbers."""

    class Float(Shaped):
        """Floating-point numbers of any precision."""

    class Int(Shaped):
        """Whole numbers."""

    class Real(Shaped):
        """Whole or floating-point numbers."""


__all__ = ["Bool", "Complex", "Float", "Int", "Real", "Shaped"]
