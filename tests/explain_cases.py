"""Configurations, each with the statements that the report must make about it. Python and the page's script are both
tested on these cases."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from ropebook.explain import RULES

KEYS = [*RULES["ropeKeys"], *(how["key"] for how in (RULES["facts"] | RULES["tableFacts"]).values())]
"""Every configuration key that the reader recognises by name."""

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "max_position_embeddings": 4096,
    "rope_theta": 10000.0,
}
LLAMA31 = LLAMA | {
    "max_position_embeddings": 131072,
    "rope_theta": 500000.0,
    "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}  # fmt: skip
QWEN = {
    "model_type": "qwen2", "hidden_size": 3584, "num_attention_heads": 28, "num_hidden_layers": 28,
    "max_position_embeddings": 32768, "rope_theta": 1000000.0, "max_window_layers": 28,
}  # fmt: skip
GEMMA3 = {
    "model_type": "gemma3_text", "hidden_size": 2560, "num_attention_heads": 8, "num_hidden_layers": 34,
    "head_dim": 256, "max_position_embeddings": 131072, "sliding_window": 1024,
    "rope_scaling": {"rope_type": "linear", "factor": 8.0},
}  # fmt: skip
PHI3 = {
    "model_type": "phi3", "hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 2,
    "max_position_embeddings": 131072, "original_max_position_embeddings": 4096, "rope_theta": 10000.0,
    "rope_scaling": {
        "type": "longrope", "short_factor": [1.0, 1.1, 1.2, 1.3, 1.4, 1.5],
        "long_factor": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0],
    },
}  # fmt: skip
GPT_OSS = {
    "model_type": "gpt_oss", "hidden_size": 2880, "num_attention_heads": 64, "num_hidden_layers": 24, "head_dim": 64,
    "max_position_embeddings": 131072, "rope_theta": 150000, "sliding_window": 128, "initial_context_length": 4096,
    "rope_scaling": {
        "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": False,
        "original_max_position_embeddings": 4096,
    },
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128, "num_hidden_layers": 61,
    "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128, "max_position_embeddings": 163840,
    "rope_theta": 10000,
    "rope_scaling": {
        "type": "yarn", "factor": 40, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 4096,
    },
}  # fmt: skip
NEOX = {
    "model_type": "gpt_neox", "hidden_size": 6144, "num_attention_heads": 64, "num_hidden_layers": 44,
    "max_position_embeddings": 2048, "rotary_emb_base": 10000, "rotary_pct": 0.25,
}  # fmt: skip

SMOLLM3 = {
    "model_type": "smollm3", "hidden_size": 2048, "num_attention_heads": 16, "num_hidden_layers": 36,
    "max_position_embeddings": 65536, "rope_theta": 5000000.0, "no_rope_layers": [1, 1, 1, 0] * 9,
}  # fmt: skip


def scaled(config: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return a copy of the configuration with this scaling."""
    return config | {"rope_scaling": options}


def without(config: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: one for key, one in config.items() if key not in keys}


YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}
LONG = LLAMA | {"max_position_embeddings": 16384}

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "plain": (LLAMA, []),
    "Llama 3.1": (LLAMA31, []),
    "Llama 3.1 in the newer form": (
        without(LLAMA31, "rope_scaling", "rope_theta")
        | {"rope_parameters": LLAMA31["rope_scaling"] | {"rope_theta": 500000.0}},
        [],
    ),
    "Qwen2.5": (QWEN, []),
    "Gemma 3": (GEMMA3, []),
    "Gemma 3 by layer": (
        without(GEMMA3, "rope_scaling")
        | {
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            }
        },
        [],
    ),
    "Gemma 3 mixed": (
        GEMMA3 | {"rope_parameters": {"rope_type": "default"}},
        ["two-dictionaries", "two-dictionaries-by-layer"],
    ),
    "Phi-3": (PHI3, ["longrope-with-cache"]),
    "Phi-3 without a cache": (PHI3 | {"use_cache": False}, []),
    "gpt-oss": (GPT_OSS, []),
    "DeepSeek-V3": (DEEPSEEK, []),
    "GPT-NeoX": (NEOX, []),
    "SmolLM3": (SMOLLM3, []),
    "a model of several parts": ({"model_type": "gemma3", "text_config": GEMMA3, "vision_config": {}}, []),
    "ALiBi": ({"model_type": "bloom", "hidden_size": 64, "n_head": 4}, ["unknown-key"]),
    "Falcon with ALiBi": ({"model_type": "falcon", "alibi": True}, []),
    "a stranger": (LLAMA | {"model_type": "wurst"}, ["unknown-model-type"]),
    "no model type": (without(LLAMA, "model_type"), ["no-model-type"]),
    "nothing": ({}, ["no-model-type", "no-head-dim", "no-maximum", "no-base"]),
    "yarn": (scaled(LONG, **YARN), []),
    "yarn in the old spelling": (scaled(LONG, type="yarn", factor=4.0, original_max_position_embeddings=4096), []),
    "a factor without the original length": (scaled(LLAMA, rope_type="yarn", factor=4.0), ["factor-without-original"]),
    "llama3 without the original length": (
        scaled(LLAMA, rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0),
        ["factor-without-original"],
    ),
    "an original length above the maximum": (
        scaled(LLAMA, rope_type="yarn", factor=4.0, original_max_position_embeddings=8192),
        ["original-above-maximum"],
    ),
    "a second scaling: linear on a longer maximum": (
        scaled(LONG, rope_type="linear", factor=2.0, original_max_position_embeddings=4096),
        ["other-kind", "original-not-read", "already-scaled"],
    ),
    "a second scaling: yarn on Llama 3.1": (
        scaled(LLAMA31, rope_type="yarn", factor=4.0, original_max_position_embeddings=131072),
        ["llama3-replaced"],
    ),
    "a second scaling: two rules in one dictionary": (
        scaled(LONG, **YARN, low_freq_factor=1.0, high_freq_factor=4.0),
        ["other-kind", "other-kind", "scaled-yarn"],
    ),
    "two dictionaries": (
        scaled(LONG, **YARN) | {"rope_parameters": {"rope_type": "linear", "factor": 2.0}},
        ["two-dictionaries"],
    ),
    "dynamic scaling with a cache": (scaled(LLAMA, rope_type="dynamic", factor=2.0), ["dynamic-with-cache"]),
    "dynamic scaling without": (scaled(LLAMA, rope_type="dynamic", factor=2.0) | {"use_cache": False}, []),
    "a share that gives an even number": (scaled(NEOX, rope_type="linear", factor=2.0) | {"rotary_pct": 0.21}, []),
    "an odd rotary dimension": (NEOX | {"rotary_pct": 0.2}, ["rotary-dim"]),
    "a share that is not read": (LLAMA | {"partial_rotary_factor": 0.5}, ["share-unread"]),
    "a scaling that is assumed": (without(GPT_OSS, "rope_scaling"), ["scaling-assumed"]),
    "an odd head": (LLAMA | {"head_dim": 33}, ["rotary-dim"]),
    "a share above one": (LLAMA | {"partial_rotary_factor": 1.5}, ["bad-value"]),
    "heads that do not divide": (LLAMA | {"num_attention_heads": 33}, ["heads-do-not-divide"]),
    "sections that add up": (scaled(LLAMA, rope_type="default", mrope_section=[16, 24, 24]), []),
    "sections that do not": (scaled(LLAMA, rope_type="default", mrope_section=[16, 24, 23]), ["sections"]),
    "an unknown key": (LLAMA | {"rope_wurst": 1}, ["unknown-key"]),
    "an unknown key of the scaling": (scaled(LONG, **YARN, wurst=1), ["unknown-rope-key"]),
    "another type's key": (scaled(LLAMA, rope_type="linear", factor=2.0, beta_fast=32), ["other-kind"]),
    "another model's name for it": (LLAMA | {"rotary_pct": 0.5}, ["other-name"]),
    "a base unusual for the family": (LLAMA | {"rope_theta": 12345.0}, ["unusual-base"]),
    "a base of one": (LLAMA | {"rope_theta": 1.0}, ["base-too-small", "unusual-base"]),
    "an unknown rope type": (scaled(LLAMA, rope_type="wurst", factor=2.0), ["unknown-rope-type"]),
    "types that differ": (scaled(LONG, **YARN, type="linear"), ["types-differ"]),
    "no factor": (scaled(LLAMA, rope_type="linear"), ["no-factor"]),
    "a factor below one": (scaled(LLAMA, rope_type="linear", factor=0.25), ["factor-below-one"]),
    "a factor and lengths that differ": (scaled(LONG, **(YARN | {"factor": 8.0})), ["factor-and-lengths"]),
    "bounds the wrong way round": (scaled(LONG, **YARN, beta_fast=1, beta_slow=32), ["bounds", "ramp-backwards"]),
    "a ramp that runs backwards": (
        scaled(LONG | {"rope_theta": 10.0}, **(YARN | {"original_max_position_embeddings": 1000000})),
        ["original-above-maximum", "ramp-backwards", "unusual-base"],
    ),
    "one mscale": (scaled(LONG, **YARN, mscale=1.0), ["one-mscale"]),
    "low above high": (
        scaled(LLAMA31, **(LLAMA31["rope_scaling"] | {"low_freq_factor": 5.0})), ["frequency-bounds"],
    ),
    "no low": (scaled(LLAMA31, rope_type="llama3", factor=8.0, original_max_position_embeddings=8192), ["no-bounds"]),
    "llama3 with nothing gained": (
        scaled(LLAMA31, **(LLAMA31["rope_scaling"] | {"original_max_position_embeddings": 131072})),
        ["original-equals-maximum"],
    ),
    "longrope without lists": (scaled(PHI3, type="longrope"), ["longrope-with-cache", "no-lists"]),
    "longrope with a short list": (
        scaled(PHI3, **(PHI3["rope_scaling"] | {"short_factor": [1.0]})), ["longrope-with-cache", "short-list"],
    ),
    "Mixtral, which asks for the width": (scaled(LONG | {"model_type": "mixtral"}, **YARN), ["head-dim-asked"]),
    "longrope with a long list": (
        scaled(PHI3, **(PHI3["rope_scaling"] | {"long_factor": [1.0] * 7})), ["longrope-with-cache", "long-list"],
    ),
    "Phi-3 without the original length": (
        without(PHI3, "original_max_position_embeddings"), ["original-assumed", "longrope-with-cache"],
    ),
    "a list of rotating layers that is too short": (
        SMOLLM3 | {"no_rope_layers": [1, 0]}, ["rope-list"],
    ),
    "longrope with a zero": (
        scaled(PHI3, **(PHI3["rope_scaling"] | {"long_factor": [0.0] * 6})), ["longrope-with-cache", "list-values"],
    ),
    "a type that the family does not take": (
        scaled(PHI3, rope_type="linear", factor=2.0),
        ["type-not-taken", "original-not-read", "already-scaled"],
    ),
    "nested without layers": (
        LLAMA | {"rope_parameters": {"full_attention": {"rope_type": "default"}}}, ["nested-without-layers"],
    ),
    "a window that is off": (QWEN | {"sliding_window": 4096, "use_sliding_window": False}, ["window-off"]),
    "a window that is on": (QWEN | {"sliding_window": 4096, "use_sliding_window": True, "max_window_layers": 14}, []),
    "a window that is too wide": (
        without(QWEN, "model_type") | {"model_type": "mistral", "sliding_window": 65536}, ["window-too-wide"],
    ),
    "a list of layers that is too short": (GEMMA3 | {"layer_types": ["full_attention"]}, ["layer-list"]),
    "a text for a number": (LLAMA | {"max_position_embeddings": "4096"}, ["bad-value", "no-maximum"]),
    "a negative length": (LLAMA | {"max_position_embeddings": -1}, ["bad-value", "no-maximum"]),
    "a truth for a number": (LLAMA | {"rope_theta": True}, ["bad-value"]),
    "a list for the scaling": (LLAMA | {"rope_scaling": [1, 2]}, ["bad-value"]),
    "markup": (
        LLAMA | {"<script>alert(1)</script>": 1, "model_type": "<img src=x onerror=alert(1)>"},
        ["unknown-key", "unknown-model-type"],
    ),
    "a head of a planet": (LLAMA | {"hidden_size": 10**11, "num_attention_heads": 1}, ["head-too-wide"]),
    "proportional": (
        LLAMA | {"rope_parameters": {"rope_type": "proportional", "rope_theta": 1e4, "partial_rotary_factor": 0.25}},
        [],
    ),
}  # fmt: skip


# ---- Hostile files ----

ODD = [
    None, True, False, 0, -1, 1, 2, 3, 7, 0.5, 1e-9, 1e300, 10**30, 4096.5, "", "4096", "yarn", "<b>", [], [1], ["x"],
    [[[]]], {}, {"a": 1}, {"rope_type": "yarn"}, "longrope", "default", "linear", "dynamic", "llama3", "proportional",
]  # fmt: skip
SEEDS = [
    LLAMA31, GEMMA3, PHI3, DEEPSEEK, NEOX, QWEN, scaled(LONG, **YARN), scaled(LLAMA, rope_type="dynamic", factor=2.0),
    scaled(LLAMA, type="linear", factor=4.0), CASES["Llama 3.1 in the newer form"][0], CASES["Gemma 3 by layer"][0],
    CASES["proportional"][0], scaled(NEOX, rope_type="linear", factor=2.0),
]  # fmt: skip


def mutated(random: Random) -> str:
    """Return a published configuration with one to three random changes, as JSON text. Sometimes the JSON itself is
    corrupted as well."""
    config = copy.deepcopy(random.choice(SEEDS))
    for _ in range(random.choice([1, 1, 2, 3])):
        _change(config, random)
    text = json.dumps(config)
    chance = random.random()
    if chance < 0.05:
        text = text[: random.randrange(len(text))]
    elif chance < 0.1:
        at = random.randrange(len(text))
        text = text[:at] + random.choice('{}[]",:<>\\é\0 9e') + text[at + 1 :]
    elif chance < 0.11:
        text = '{"a":' * 10_000 + text
    elif chance < 0.12:
        text = f"<html><script>{text}</script></html>"
    elif chance < 0.13:
        text = text.replace(" ", " " * random.choice([1, 9_999]))
    return text


def _change(config: dict[str, Any], random: Random) -> None:
    inside = [one for one in config.values() if isinstance(one, dict) and one]
    target = random.choice([config, *inside, *inside])
    key = random.choice(list(target)) if target else "rope_theta"
    chance = random.random()
    if chance < 0.15:
        target.pop(key, None)
    elif chance < 0.5:
        target[key] = copy.deepcopy(random.choice(ODD))
    elif chance < 0.8 and isinstance(target.get(key), (int, float)):
        value = target[key] * random.choice([2, 4, 0.5, 10, -1, 1.5, 3])
        target[key] = int(value) if value == int(value) else value
    elif chance < 0.9:
        other = random.choice([*KEYS, key.upper(), "__proto__", "constructor", "<i>", "0", key + "é"])
        target[other] = copy.deepcopy(random.choice(ODD))
    else:
        target[key] = {key: target.get(key)}
