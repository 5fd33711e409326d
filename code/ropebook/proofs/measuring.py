"""What the checks with numbers share: vectors that look random, and how far a result is from what it should be."""

from __future__ import annotations

import torch


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal numbers, float64, the same each time."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def off(found: torch.Tensor, expected: torch.Tensor | list | float) -> float:
    """The largest difference of two real tensors, in float64; NaN if there is one in either.

    ``expected`` has the shape of ``found``, or is one number for all of it; else ``ValueError``.

    >>> off(torch.tensor([1.0, 2.5]), [1, 2])
    0.5
    """
    expected = torch.as_tensor(expected, dtype=torch.float64)
    if expected.ndim and found.shape != expected.shape:
        raise ValueError(
            f"found must have the shape {tuple(expected.shape)}, got {tuple(found.shape)}"
        )
    return (found.detach().double() - expected).abs().max().item()
