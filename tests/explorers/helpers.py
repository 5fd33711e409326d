"""Formulas that the tests of several explorers need."""

import numpy as np


def theta(dim: int, base: float) -> np.ndarray:
    """The frequencies, (dim/2,)."""
    return np.array([base ** (-2 * i / dim) for i in range(dim // 2)])


def exact(value: float, decimals: int = 3) -> str:
    """The value with this many decimals, and with a minus sign as wide as a plus."""
    return f"{value:.{decimals}f}".replace("-", "−")
