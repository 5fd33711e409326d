"""Which architectures of transformers does `install` support? Build a tiny random model of each one and try it.

    python benchmarks/architectures.py                     all of them, some minutes on one core
    python benchmarks/architectures.py Llama SmolLM3       prints these, and writes nothing

An architecture is any configuration class with ``rope_parameters``. Two groups of methods are tried separately: those
that replace the table of cosines and sines (another base, linear scaling, YaRN), and those that act inside attention
(dynamic NTK, ReRoPE, log-n). The verdict on each group is "supported", or "refused" with the error message.

"Supported" means that the results agree with reference results for the same weights. For another base, linear scaling,
YaRN and dynamic NTK, the reference is the implementation in transformers. ReRoPE and log-n have no effect on texts as
short as the ones used here, so their reference is the unchanged model. "not_tried" says why no small model could be
built, or why the model does not accept tokens. The script writes results/architectures.json.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import inspect
import os
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # set before torch is loaded

import torch
import transformers
from transformers.models.auto import modeling_auto

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "code")]

from ropebook import device, results  # noqa: E402
from ropebook.extrapolation import BaseChange, from_transformers, install, make  # noqa: E402

TRAINED, LENGTH = 32, 48
MOST_WEIGHTS, MOST_SECONDS = 60_000_000, 60
# The tolerance allows for transformers rounding its angles to float32.
NEAR = 1e-4
# These options are set in every configuration that has them.
SMALL = {
    "hidden_size": 64,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 64,
    "max_position_embeddings": TRAINED,
    "original_max_position_embeddings": TRAINED,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
    # for mixtures of experts
    "moe_intermediate_size": 16,
    "shared_expert_intermediate_size": 16,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "moe_num_experts": 4,
    "moe_k": 2,
    "moe_topk": 2,
    "moe_top_k": 2,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    # for latent attention
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "qk_head_dim": 16,
    "v_head_dim": 8,
    "ffn_hidden_size": 48,
    "expert_ffn_hidden_size": 16,
    "zero_expert_num": 2,
    # for layers without softmax
    "attn_layer_indices": [1],
    "linear_num_key_heads": 4,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "mamba_n_heads": 4,
    "mamba_d_head": 32,
    "mamba_d_state": 8,
    "mamba_n_groups": 1,
    # for Gemma
    "num_kv_shared_layers": 0,
    "vocab_size_per_layer_input": 64,
    "hidden_size_per_layer_input": 8,
    "query_pre_attn_scalar": 8,
}
# These options are set even if their default is None.
ALWAYS = (
    "head_dim",
    "num_experts_per_tok",
    "num_attention_heads",
    "num_key_value_heads",
    "moe_intermediate_size",
    "n_routed_experts",
    "attn_layer_indices",
)
THEIRS = {
    # This changes only the base, which every architecture allows.
    "base": {"rope_theta": 777.0},
    "linear": {"rope_type": "linear", "factor": 4.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": TRAINED},
    "dynamic": {"rope_type": "dynamic", "factor": 1.0},
}
# Methods that may occur in a default configuration.
OWN = ("linear", "dynamic", "yarn", "llama3", "longrope")
# These methods change nothing in a text of LENGTH tokens.
IDLE = {"rerope": {"window": 4 * LENGTH}, "log_n": {"trained_length": 4 * LENGTH}}
GROUPS = {"table": ("base", "linear", "yarn"), "attention": ("dynamic", *IDLE)}


# Short reasons, each found by a phrase in the error message.
WHY = {
    "share one rotary_emb": "no table shared by all layers",
    "gives cosines and sines": "another kind of table",
    "must be 'default' for a method": "rotates by its own rule",
    "must have 'full_attention'": "no positions in layers that see the whole text",
    "attention sinks": "attention sinks",
    "softcap": "capped scores",
    "indices": "attends only to selected keys",
    "could not be run": "does not run on tokens alone",
    "whose layers call none": "its own kind of attention",
    "go elsewhere too": "cosines and sines are also used outside attention",
    "does not": "normalised or scaled after the rotation",
}


# --- The architectures -----------------------------------------------------------------------------------------------


def told(error: Exception) -> str:
    """Return an error message on one line, without the names of this machine's folders."""
    line = re.sub(r"(?<=from ')[^']*site-packages/", "", f"{type(error).__name__}: {error}")
    return " ".join(line.split())[:300]


def configurations() -> Iterator[type]:
    """Yield every configuration class of the installed transformers that has ``rope_parameters``."""
    folder = Path(transformers.__file__).parent / "models"
    for path in sorted(folder.glob("*/configuration_*.py")):
        if "rope_parameters" not in path.read_text(encoding="utf-8"):
            continue
        module = importlib.import_module(f"transformers.models.{path.parent.name}.{path.stem}")
        for _, found in sorted(inspect.getmembers(module, inspect.isclass)):
            if (
                found.__module__ == module.__name__
                and issubclass(found, transformers.PreTrainedConfig)
                and "rope_parameters" in getattr(found, "__dataclass_fields__", {})
            ):
                yield found


def model_class(config: type) -> type:
    """Return the class of the language model for a configuration or, if there is none, the class of its plain model."""
    for mapping in (modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING, modeling_auto.MODEL_MAPPING):
        if config in mapping:
            found = mapping[config]
            return found[0] if isinstance(found, tuple) else found
    name = config.__module__.replace(".configuration_", ".modeling_")
    module = importlib.import_module(name)
    candidates = [
        found
        for _, found in inspect.getmembers(module, inspect.isclass)
        if issubclass(found, transformers.PreTrainedModel)
        and found.__module__ == name
        and found.config_class is config
        and not found.__name__.endswith("PreTrainedModel")
    ]
    if not candidates:
        raise LookupError("no model can be built from this configuration alone")
    return min(candidates, key=lambda found: ("CausalLM" not in found.__name__, len(found.__name__)))


def has(config: transformers.PreTrainedConfig, name: str) -> bool:
    """Return whether an option should be set, because it has a default or is one of `ALWAYS`. Reading a default can
    fail, because it may differ from layer to layer."""
    try:
        return name in ALWAYS or getattr(config, name, None) is not None
    except AttributeError:
        return False


# Additional options that some architectures need. These sets are tried in this order until one works.
MORE = (
    {},
    {"layer_types": ["full_attention", "full_attention"]},
    {"num_key_value_heads": 4},
    {"moe_intermediate_size": [16, 16]},
)


def tiny(config: type, more: dict) -> transformers.PreTrainedConfig:
    """Return a small configuration with at least one layer of each type."""
    plain = config()
    # A name may be an alias (num_experts for num_local_experts), so use only names that the class itself declares.
    known = config.__dataclass_fields__
    options = {name: value for name, value in SMALL.items() if name in known and has(plain, name)}
    if "kv_lora_rank" in options:
        # In latent attention, every head has its own keys, which are computed from a shared vector.
        options["num_key_value_heads"] = options["num_attention_heads"]
        options.pop("head_dim", None)
    kinds = list(dict.fromkeys(getattr(plain, "layer_types", None) or ()))
    if kinds and "layer_types" in known:
        options["layer_types"] = (kinds * 2)[: max(2, len(kinds))]
    options["num_hidden_layers"] = len(options.get("layer_types", (0, 0)))
    if getattr(plain, "no_rope_layers", None):
        options["no_rope_layers"] = [1, 0]
    if getattr(plain, "mlp_layer_types", None):
        kinds = list(dict.fromkeys(plain.mlp_layer_types))
        options["mlp_layer_types"] = (kinds * 9)[: options["num_hidden_layers"]]
    if getattr(plain, "sliding_window", None) is not None:
        options["sliding_window"] = 16
    options |= {name: value for name, value in more.items() if name in known}
    made = config(**options)
    # A method in the configuration, as in Llama 3.1, belongs to the checkpoint rather than the architecture, so remove
    # it.
    every = made.rope_parameters or {}
    for parameters in (every, *every.values()):
        if isinstance(parameters, dict) and "mrope_section" in parameters:
            turning = getattr(made, "head_dim", 16) or 16
            pairs = int(turning * parameters.get("partial_rotary_factor", 1.0)) // 2
            parameters["mrope_section"] = [pairs - 2 * (pairs // 3), pairs // 3, pairs // 3]
        if isinstance(parameters, dict) and parameters.get("rope_type") in OWN:
            kept = {name: parameters[name] for name in ("rope_theta", "partial_rotary_factor") if name in parameters}
            parameters.clear()
            parameters.update(kept, rope_type="default")
    return made


def made(form: type, config: transformers.PreTrainedConfig) -> torch.nn.Module:
    # Other implementations of the experts don't support float64.
    return form._from_config(config, experts_implementation="eager").eval().double()


def weights(form: type, config: transformers.PreTrainedConfig) -> int:
    """Return the number of parameters that a model would have, without allocating them."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in form._from_config(config).parameters())


def built(config: transformers.PreTrainedConfig, form: type) -> torch.nn.Module:
    """Return a model with random weights, which also has random gains in its norms and non-uniform attention."""
    torch.manual_seed(0)
    model = made(form, config)
    with torch.no_grad():
        for name, weight in sorted(model.named_parameters()):
            if weight.ndim > 1:
                weight.normal_(0, 0.3)
            elif "norm" in name and name.endswith("weight"):
                weight.add_(0.3 * torch.randn_like(weight))
    return model


# --- Results ---------------------------------------------------------------------------------------------------------


@torch.no_grad()
def output(model: torch.nn.Module, length: int = LENGTH) -> torch.Tensor:
    text = torch.randint(3, 60, (2, length), generator=torch.Generator().manual_seed(1))
    try:
        found = model(input_ids=text, use_cache=False)
    except (TypeError, ValueError, AttributeError):
        width = model.config.hidden_size
        found = model(inputs_embeds=torch.randn(2, length, width, generator=torch.Generator().manual_seed(1)).double())
    return (found.logits if getattr(found, "logits", None) is not None else found[0]).double()


def asked(config: transformers.PreTrainedConfig) -> dict:
    """Return the rope_parameters in which transformers itself would look for a method."""
    parameters = config.rope_parameters or {}
    return parameters.get("full_attention", parameters) or {}


def with_method(config: transformers.PreTrainedConfig, parameters: dict) -> transformers.PreTrainedConfig:
    other = copy.deepcopy(config)
    asked(other).update(parameters)
    return other


def compared(model: torch.nn.Module, form: type, name: str, plain: torch.Tensor) -> dict[str, object]:
    """Compare the model's output after `install` with the expected output, for one method."""
    if name in IDLE:
        method = make(name, **IDLE[name])
    else:
        base = asked(model.config).get("rope_theta")
        if name == "base":
            method = BaseChange(THEIRS[name]["rope_theta"])
        else:
            method = from_transformers(THEIRS[name] | {"rope_theta": base}, TRAINED).method
    install(model, method)
    found = output(model)
    install(model, None)
    expected = plain
    if name not in IDLE:
        try:
            theirs = made(form, with_method(model.config, THEIRS[name]))
            theirs.load_state_dict(model.state_dict())
            expected = output(theirs)
        except Exception as error:
            raise LookupError(f"transformers' own {name} fails: {type(error).__name__}: {error}") from error
    scale = plain.abs().max().item()
    return {
        "off": (found - expected).abs().max().item() / scale,
        "changes": (found - plain).abs().max().item() / scale,
    }


def tried(config: type) -> dict[str, object]:
    """Return a row of the results. For each group of methods, it has the verdict "supported", "refused" with the
    reason, or "wrong". If nothing could be tried, the row says only why."""
    row: dict[str, object] = {"config": config.__name__}
    model, said = None, ""
    try:
        form = model_class(config)
        row["model"] = form.__name__
        if not reads_tokens(form):
            with torch.device("meta"):
                return row | {"not_tried": "it does not read tokens"} | refusals(form._from_config(config()))
    except Exception as error:
        return row | {"not_tried": told(error)}
    for more in MORE:
        try:
            small = tiny(config, more)
            if (size := weights(form, small)) > MOST_WEIGHTS:
                raise ValueError(f"the tiny model would have {size / 1e6:.0f} million weights")
            model = built(small, form)
            plain = output(model)
            if not plain.isfinite().all():
                raise ArithmeticError("the tiny model gives no finite numbers")
            break
        except Exception as error:
            said = said or told(error)
    else:
        return row | {"not_tried": said} | refusals(model)
    for group, names in GROUPS.items():
        row[group] = judged(model, form, names, plain)
    return row


def reads_tokens(form: type) -> bool:
    """Return whether a model can be called with tokens or with their embeddings."""
    known = inspect.signature(form.forward).parameters
    return bool({"input_ids", "inputs_embeds"} & set(known))


def refusals(model: torch.nn.Module | None) -> dict[str, object]:
    """Return verdicts on a model that can't be run on tokens: one for each group of methods that `install` refuses."""
    found = {}
    if model is not None:
        for group, names in GROUPS.items():
            method = make("rerope", window=9) if group == "attention" else make("linear", factor=4.0)
            try:
                install(model, method)
                install(model, None)
            except ValueError as error:
                found[group] = {"verdict": "refused", "method": names[0], "said": str(error).splitlines()[0]}
            except Exception:
                # There is no verdict, for example because the model has no weight values.
                continue
    return found


def judged(model: torch.nn.Module, form: type, names: tuple[str, ...], plain: torch.Tensor) -> dict[str, object]:
    off, uncompared = {}, {}
    for name in names:
        try:
            found = compared(model, form, name, plain)
        except LookupError as error:
            # There is no reference to compare with.
            uncompared[name] = " ".join(str(error).split())[:200]
            continue
        except Exception as error:
            if isinstance(error, ValueError) and "model" in str(error) and "must" in str(error):
                return {"verdict": "refused", "method": name, "said": str(error).splitlines()[0]}
            return {
                "verdict": "wrong",
                "method": name,
                "said": f"{type(error).__name__}: {error}".splitlines()[0][:300],
            }
        off[name] = float(f"{found['off']:.3g}")
        idle = name in IDLE
        if found["off"] > NEAR or (not idle and found["changes"] < 10 * NEAR):
            return {"verdict": "wrong", "method": name, "off": off, "changes": found["changes"]}
    if not off:
        return {"verdict": "wrong", "said": "; ".join(uncompared.values())}
    return {"verdict": "supported", "off": off} | ({"uncompared": uncompared} if uncompared else {})


def in_short(row: dict[str, object]) -> dict[str, object]:
    """Return the row with a short reason added to each refusal."""
    for group in GROUPS:
        said = row.get(group, {}).get("said")
        if said is not None:
            row[group]["why"] = next((short for words, short in WHY.items() if words in said), said)
    return row


def _too_long(*_) -> None:
    raise TimeoutError(f"it took longer than {MOST_SECONDS} seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="of configurations, without Config; default: all")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    signal.signal(signal.SIGALRM, _too_long)
    rows = []
    for config in configurations():
        if arguments.names and config.__name__.removesuffix("Config") not in arguments.names:
            continue
        signal.alarm(MOST_SECONDS)
        try:
            rows.append(in_short(tried(config)))
        except TimeoutError as error:
            rows.append({"config": config.__name__, "not_tried": str(error)})
        signal.alarm(0)
        print(rows[-1], flush=True)
    if not arguments.names:
        rows.sort(key=lambda row: row["config"].lower())
        where = device.provenance(seed=0, command="python benchmarks/architectures.py", on=torch.device("cpu"))
        where["transformers"] = transformers.__version__
        results.save("architectures", {"rows": rows}, where)


if __name__ == "__main__":
    main()
