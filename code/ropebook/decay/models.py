"""The rotary settings of published models: pairs that complete a turn in training, and how the context is extended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ropebook import rope
from ropebook.decay.curves import whole_length


class Model(NamedTuple):
    """A published model's rotary setting. Each head has ``head_dim`` entries, and ``dim`` of these are rotated."""

    name: str
    dim: int
    head_dim: int
    base: float
    context: int  # the number of tokens in a training sequence, or in the attention window
    source: str  # its key in the bibliography


MODELS = (
    Model("GPT-NeoX-20B", 24, 96, 1e4, 2048, "black2022"),
    Model("LLaMA 7B", 128, 128, 1e4, 2048, "touvron2023"),
    Model("Llama 2 7B", 128, 128, 1e4, 4096, "touvron2023llama2"),
    # Training sequences have 8192 tokens, but no query sees further than the window.
    Model("Mistral 7B", 128, 128, 1e4, 4096, "jiang2023"),
    Model("Gemma 7B", 256, 256, 1e4, 8192, "gemma2024"),
    Model("Llama 3 8B", 128, 128, 5e5, 8192, "grattafiori2024"),
    Model("Qwen2.5 7B", 128, 128, 1e6, 32768, "qwen2024"),
    Model("Gemma 3 4B (global layers)", 256, 256, 1e6, 32768, "gemma2025"),
)


class LongModel(NamedTuple):
    """The settings of a published long-context checkpoint, from its configuration.

    ``dim`` has the same meaning as in `Model`.

    ``scaling``: transformers' name for the checkpoint's context-extension method, or None if it has none.
    """

    name: str
    dim: int
    base: float
    context: int  # the context length with which it was published
    scaling: Mapping[str, object] | None
    published: str  # year and month
    source: str  # its key in the bibliography


# For models in which some layers see only a window, these are the settings of the
# global layers.
LONG_MODELS = (
    LongModel(
        "Llama 3.1 8B",
        128,
        5e5,
        131_072,
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8192,
        },
        "2024-07",
        "meta2024",
    ),
    LongModel(
        "Gemma 3 4B",
        256,
        1e6,
        131_072,
        {"rope_type": "linear", "factor": 8.0},
        "2025-03",
        "gemma2025",
    ),
    LongModel(
        "gpt-oss-20b",
        64,
        150_000,
        131_072,
        {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 4096,
        },
        "2025-08",
        "openai2025",
    ),
    LongModel(
        "Qwen3-4B-Instruct-2507",
        128,
        5e6,
        262_144,
        None,
        "2025-08",
        "qwen2025config",
    ),
    LongModel(
        "Ministral 3 8B",
        128,
        1e6,
        262_144,
        {
            "rope_type": "yarn",
            "factor": 16.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "mscale": 1.0,
            "mscale_all_dim": 1.0,
            "original_max_position_embeddings": 16_384,
        },
        "2025-12",
        "mistral2025",
    ),
)


def turned_pairs(context: int, dim: int, base: float = 10000.0) -> int:
    """Return how many of the dim/2 pairs complete a turn within a sequence of L = ``context`` tokens: (L − 1)θ_i ≥ 2π.

    >>> turned_pairs(4096, dim=128), "of", 64
    (46, 'of', 64)
    """
    last = whole_length("context", context) - 1
    return int((rope.turns(last, dim, base) >= 1).sum())
