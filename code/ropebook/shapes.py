"""Notation for the shapes of tensors in signatures: ``Float[Tensor, "batch heads seq dim"]`` is a tensor of real
numbers with these axes.

Axes with the same name have the same size. ``...`` stands for any number of axes. ``*rows`` also stands for any number
of axes, but for the same ones wherever the name occurs. The notation is that of jaxtyping, and the tests check every
call against it. Without jaxtyping, it serves only as information for readers.
"""

from __future__ import annotations

try:
    from jaxtyping import Bool, Complex, Float, Int, Real, Shaped
except ImportError:

    class Shaped:
        """A tensor of numbers of any type."""

        def __class_getitem__(cls, given: tuple) -> type:
            return given[0]

    class Bool(Shaped):
        """A tensor of booleans."""

    class Complex(Shaped):
        """A tensor of complex numbers."""

    class Float(Shaped):
        """A tensor of floating-point numbers of any precision."""

    class Int(Shaped):
        """A tensor of integers."""

    class Real(Shaped):
        """A tensor of integers or floating-point numbers."""


__all__ = ["Bool", "Complex", "Float", "Int", "Real", "Shaped"]
