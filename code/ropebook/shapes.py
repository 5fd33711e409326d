"""The notation for shapes in signatures: ``Float[Tensor, "batch heads seq dim"]`` is a tensor of real numbers with
these axes.

Axes with the same name have the same size. ``...`` means any axes; ``*rows`` means any axes, but the same ones wherever
the name occurs. The notation is that of jaxtyping, and the tests check every call against it. Without jaxtyping it only
informs readers.
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
