"""Reference values for `ropebook.explain`, computed by transformers itself from the same configuration."""

from __future__ import annotations

import copy
import importlib
from functools import cache
from typing import Any

from transformers import CONFIG_MAPPING
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ropebook.explain import RULES, Table
from ropebook.explain.language import finite


@cache
def rotary_class(model_type: str) -> type:
    """Return the transformers class that computes the frequencies of a model family."""
    config = CONFIG_MAPPING[model_type]
    module = importlib.import_module(config.__module__.replace(".configuration_", ".modeling_"))
    name = config.__name__.removesuffix("Config")
    names = [f"{name}RotaryEmbedding", f"{name.removesuffix('Text')}RotaryEmbedding"]
    return next(getattr(module, one) for one in names if hasattr(module, one))


def whole(given: Any) -> Any:
    """Convert floats that are whole numbers to integers. In JSON, 4096 and 4096.0 are the same number, but transformers
    treats them differently."""
    if isinstance(given, dict):
        return {key: whole(one) for key, one in given.items()}
    if isinstance(given, list):
        return [whole(one) for one in given]
    return int(given) if isinstance(given, float) and finite(given) and given == int(given) else given


def config_of(given: dict[str, Any]) -> Any:
    """Return the model type and the configuration object of transformers. A model type that the rules don't list is
    treated as Llama."""
    part = next((given[name] for name in RULES["parts"] if isinstance(given.get(name), dict) and given[name]), given)
    kind = part.get("model_type") or given.get("model_type")
    kind = kind if kind in RULES["families"] else "llama"
    # keys that aren't about positions are left out, because transformers checks their types too
    out = {"model_type", *RULES["elsewhere"]}
    options = {key: one for key, one in copy.deepcopy(whole(part)).items() if key not in out}
    return kind, CONFIG_MAPPING[kind](**options)


def theirs_of(given: dict[str, Any], table: Table) -> list[tuple[list[float], list[float]]]:
    """Return pairs of our values and those of transformers: the frequencies for a short text, and the factor on the
    cosines. If the frequencies depend on the length, those for a text of the target length are included too."""
    kind, config = config_of(given)
    if not table.facts["known_family"] and table.facts["kind"] == "default":
        # transformers has no code for this model, so we call its general function with a scaling that changes nothing
        config.rope_parameters |= {"rope_type": "linear", "factor": 1.0}
        inv_freq, factor = ROPE_INIT_FUNCTIONS["linear"](config)
        return [(table.short, inv_freq.tolist()), ([table.on_cos], [factor])]
    layer = table.facts["layer_type"]
    rotary = rotary_class(kind)(config)
    prefix = "" if layer is None else f"{layer}_"
    inv_freq = getattr(rotary, f"{prefix}inv_freq").tolist()
    factor = getattr(rotary, f"{prefix}attention_scaling")
    found = [(table.short, inv_freq), ([table.on_cos], [factor])]
    if table.facts["kind"] in ("dynamic", "longrope") and table.facts["target"] is not None:
        long, _ = ROPE_INIT_FUNCTIONS[table.facts["kind"]](
            config, None, seq_len=table.facts["target"], layer_type=layer
        )
        found.append((table.long, long.tolist()))
    return found
