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
        """A tensor of truth values."""

    class Complex(Shaped):
        """A tensor of complex numbers."""

    class Float(Shaped):
        """A tensor of floating-point numbers of any precision."""

    class Int(Shaped):
        """A tensor of whole numbers."""

    class Real(Shaped):
        """A tensor of whole or floating-point numbers."""


__all__ = ["Bool", "Complex", "Float", "Int", "Real", "Shaped"]
