"""The rotary settings of published models: how many pairs come round within the text."""

from __future__ import annotations

from typing import NamedTuple

from ropebook import rope
from ropebook.decay.curves import whole_length


class Model(NamedTuple):
    """A published model's rotary setting: ``dim`` is how many entries of each head turn, of ``head_dim``."""

    name: str
    dim: int
    head_dim: int
    base: float
    context: int  # tokens in a training text, or in the attention's window
    source: str  # its key in the bibliography


MODELS = (
    Model("GPT-NeoX-20B", 24, 96, 1e4, 2048, "black2022"),
    Model("LLaMA 7B", 128, 128, 1e4, 2048, "touvron2023"),
    Model("Llama 2 7B", 128, 128, 1e4, 4096, "touvron2023llama2"),
    # Its training texts have 8192 tokens, but no query sees further than the window.
    Model("Mistral 7B", 128, 128, 1e4, 4096, "jiang2023"),
    Model("Gemma 7B", 256, 256, 1e4, 8192, "gemma2024"),
    Model("Llama 3 8B", 128, 128, 5e5, 8192, "grattafiori2024"),
    Model("Qwen2.5 7B", 128, 128, 1e6, 32768, "qwen2024"),
    Model("Gemma 3 4B (global layers)", 256, 256, 1e6, 32768, "gemma2025"),
)


def turned_pairs(context: int, dim: int, base: float = 10000.0) -> int:
    """How many of the dim/2 pairs make at least one turn within a text of ``context`` tokens: (L − 1)θ_i ≥ 2π.

    >>> turned_pairs(4096, dim=128), "of", 64
    (46, 'of', 64)
    """
    last = whole_length("context", context) - 1
    return int((rope.turns(last, dim, base) >= 1).sum())
