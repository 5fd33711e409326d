"""Facts that follow from a model's type, as data.

They supply what a file doesn't state: the layout of the weights, and the values that transformers assumes.

For each ``model_type``:

- ``layout``: the layout of the weights in transformers.
- ``base``, ``fraction``, ``head_dim``, ``window``: the default values in its configuration, if any. ``local_base``: the
  base of the layers with a window.
- ``keys``: the names it uses for facts, where they differ from the usual ones.
- ``full_every``: one layer in each group of this size has no window.
- ``still_every``: one layer in each group of this size does not rotate.
- ``rotating``: the only type of layer that rotates.
- ``windowed``: whether all layers have a window.
- ``only``: the only rope types that its code accepts.
- ``asks_head_dim``: whether its code fails if head_dim is missing and the rope type
  depends on the length.
- ``original``: the default original length.
- ``shares``: whether its code rotates only the given share of each head even without
  scaling.
- ``scaling``: whether it applies a scaling by default if the file specifies none.
- ``also``: additional keys that it reads from the dictionary.
- ``usual``: the bases of published checkpoints, and the names of the checkpoints.
"""

from __future__ import annotations

CHECKED = "transformers 5.23.0, November 2026"
"""The version in which layouts and assumptions were looked up. The tests compare them
with the installed version."""


def _family(
    name: str, layout: str = "half", base: float = 1e4, **more: object
) -> dict:
    return {"name": name, "layout": layout, "base": base, **more}


_LLAMA = {
    "10000": "LLaMA and Llama 2",
    "500000": "Llama 3",
    "1000000": "Code Llama",
}
_QWEN = {"1000000": "Qwen2.5 and Qwen3", "5000000": "Qwen3 of July 2025"}
_GPT_OSS = {"150000": "gpt-oss-20b"}
_GEMMA3 = {"1000000": "Gemma 3"}
_ONE = {"10000": "its first checkpoints"}

FAMILIES = {
    "llama": _family("Llama", usual=_LLAMA),
    "mistral": _family("Mistral", window=4096, windowed=True),
    "mixtral": _family("Mixtral", base=1e6, windowed=True, asks_head_dim=True),
    "ministral3": _family(
        "Ministral 3", head_dim=128, scaling=True, also=["llama_4_scaling_beta", "max_position_embeddings"], usual={"1000000": "Ministral 3 8B"}
    ),
    "qwen2": _family("Qwen2", window=4096, switched=True, usual={"1000000": "Qwen2.5"}),
    "qwen3": _family("Qwen3", head_dim=128, window=4096, switched=True, usual=_QWEN),
    "qwen3_moe": _family("Qwen3, mixture of experts", switched=True),
    "gemma": _family("Gemma", head_dim=256, usual={"10000": "Gemma 7B"}),
    "gemma2": _family("Gemma 2", head_dim=256, window=4096, full_every=2),
    "gemma3_text": _family(
        "Gemma 3", base=1e6, local_base=1e4, head_dim=256, window=4096, full_every=6, usual=_GEMMA3
    ),
    "phi": _family("Phi", fraction=0.5, shares=True),
    "phi3": _family("Phi-3", shares=True, original=4096, only=["default", "longrope"], renamed={"yarn": "longrope"}, windowed=True),
    "gpt_neox": _family(
        "GPT-NeoX",
        fraction=0.25,
        shares=True,
        keys={"given_base": "rotary_emb_base", "given_fraction": "rotary_pct"},
        usual={"10000": "GPT-NeoX-20B"},
    ),
    "stablelm": _family("StableLM", fraction=0.25, shares=True),
    "cohere": _family("Cohere", "interleaved", base=5e5),
    "cohere2": _family(
        "Cohere 2", "interleaved", window=4096, full_every=4, rotating="sliding_attention"
    ),
    "deepseek_v3": _family("DeepSeek-V3", "interleaved", split=True, usual={"10000": "DeepSeek-V3"}),
    "gpt_oss": _family(
        "gpt-oss", base=150000.0, head_dim=64, scaling=True, window=128, full_every=2, usual=_GPT_OSS
    ),
    "glm4": _family("GLM-4", "interleaved", fraction=0.5, head_dim=128, shares=True),
    "helium": _family("Helium", "interleaved", base=1e5, head_dim=128),
    "llama4_text": _family("Llama 4", "interleaved", base=5e5, head_dim=128, chunked=True, still_every=4),
    "olmo2": _family("OLMo 2"),
    "smollm3": _family("SmolLM3", base=2e6, still_every=4, switched=True),
    "starcoder2": _family("StarCoder2", windowed=True),
    "granite": _family("Granite"),
}  # fmt: skip

STRANGERS = {
    "bloom": "ALiBi, a penalty that grows with the distance",
    "mpt": "ALiBi, a penalty that grows with the distance",
    "gpt2": "a learned vector for each position",
    "opt": "a learned vector for each position",
    "bert": "a learned vector for each position",
    "roberta": "a learned vector for each position",
    "t5": "a learned number for each range of distances",
}
"""Types of models that don't rotate anything, and how each encodes positions
instead."""
