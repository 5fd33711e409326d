"""The code of the book *RoPE, Turn by Turn*: one module per chapter, named after the chapter.

Import the module you need, for example ``from ropebook import attention``. The names that you need to build a model can
also be imported directly from ``ropebook``:

>>> from ropebook import RotaryEmbedding
>>> RotaryEmbedding(dim=8, layout="half")
RotaryEmbedding(dim=8, base=10000, layout='half', rotary_dim=8)

Nothing is imported until you use it, so each module loads only what it needs.
"""

from __future__ import annotations

import importlib
import importlib.util

__version__ = "0.1.0"

# The module that defines each of the main names; `__init__.pyi` repeats this for type checkers.
_HOMES = {
    "RotaryEmbedding": "efficient",
    "apply_rotary": "efficient",
    "apply_rotary_qk": "efficient",
    "convert_weight": "efficient",
    "meta_to_transformers": "efficient",
    "transformers_to_meta": "efficient",
    "from_transformers": "extrapolation",
    "install": "extrapolation",
    "make": "extrapolation",
    "to_transformers": "extrapolation",
    "KVCache": "rotary_attention",
    "LlamaModel": "rotary_attention",
    "RotaryAttention": "rotary_attention",
}


def __getattr__(name: str) -> object:
    """Return the main name or the module called ``name``, importing it on first use."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"ropebook.{_HOMES[name]}"), name)
    own = f"ropebook.{name}"
    if name.startswith("_") or importlib.util.find_spec(own) is None:
        raise AttributeError(f"module 'ropebook' has no attribute {name!r}")
    return importlib.import_module(own)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
