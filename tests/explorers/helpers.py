"""Formulas shared by the tests of several explorers."""

import numpy as np


def theta(dim: int, base: float) -> np.ndarray:
    """Return the frequencies, (dim/2,)."""
    return np.array([base ** (-2 * i / dim) for i in range(dim // 2)])


def exact(value: float, decimals: int = 3) -> str:
    """Format a value with this number of decimals. A negative value gets a true minus sign, which is as wide as a
    plus. A value that rounds to zero gets no sign."""
    return f"{value:z.{decimals}f}".replace("-", "−")
