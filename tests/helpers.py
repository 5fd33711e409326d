"""Helpers shared by several test files: random tensors and seeds, largest entries, and public names."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import torch
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

seeds = st.integers(0, 2**32 - 1)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Draw normally distributed random numbers. They are drawn in float64 with a fixed seed. So they are the same in
    every run and, up to rounding, for every ``dtype``."""
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64).to(dtype)


def largest(tensor: torch.Tensor) -> float:
    """Return the largest absolute value of any entry."""
    return tensor.abs().max().item()


def public(module: ModuleType) -> set[str]:
    """Return the names of a module's public functions and classes: those listed in ``__all__`` or, if there is no
    ``__all__``, those that the module defines."""
    if hasattr(module, "__all__"):
        names = set(module.__all__)
    else:
        names = {name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    return {name for name in names if not name.startswith("_") and is_code(getattr(module, name))}


def is_code(value: object) -> bool:
    return inspect.isclass(value) or inspect.isroutine(value)


class LargestTensor(TorchDispatchMode):
    """Dispatch mode that records in ``numel`` the size of the largest tensor that any operation returned."""

    numel = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor):
            self.numel = max(self.numel, out.numel())
        return out


def library(root: Path, files: dict[str, bytes]) -> Path:
    """Write these files into the folder ``root``."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root
