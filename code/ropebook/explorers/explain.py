"""Explorer for the page on configurations. Readers paste a configuration, and see each pair's wavelength next to the
lengths that the configuration names."""

from __future__ import annotations

import json

import traitlets

from ropebook import explain
from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Switch, Text, Whole

RULES = explain.RULES
LONGEST_CONFIG = RULES["limits"]["characters"]
"""The maximum number of characters in a file. (Anything longer is not a configuration.)"""
MOST_LENGTH = 2**24
_CONFIGS = {
    "llama": (
        "Llama 3.1 8B",
        {
            "model_type": "llama",
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "num_hidden_layers": 32,
            "num_key_value_heads": 8,
            "max_position_embeddings": 131072,
            "rope_theta": 500000.0,
            "rope_scaling": {
                "factor": 8.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192,
                "rope_type": "llama3",
            },
        },
    ),
    "gpt_oss": (
        "gpt-oss-20b",
        {
            "model_type": "gpt_oss",
            "hidden_size": 2880,
            "head_dim": 64,
            "num_attention_heads": 64,
            "num_hidden_layers": 24,
            "num_key_value_heads": 8,
            "sliding_window": 128,
            "initial_context_length": 4096,
            "max_position_embeddings": 131072,
            "rope_theta": 150000,
            "rope_scaling": {
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "factor": 32.0,
                "original_max_position_embeddings": 4096,
                "rope_type": "yarn",
                "truncate": False,
            },
        },
    ),
    "deepseek": (
        "DeepSeek-V3",
        {
            "model_type": "deepseek_v3",
            "hidden_size": 7168,
            "num_attention_heads": 128,
            "num_hidden_layers": 61,
            "qk_nope_head_dim": 128,
            "qk_rope_head_dim": 64,
            "max_position_embeddings": 163840,
            "rope_theta": 10000,
            "rope_scaling": {
                "beta_fast": 32,
                "beta_slow": 1,
                "factor": 40,
                "mscale": 1.0,
                "mscale_all_dim": 1.0,
                "original_max_position_embeddings": 4096,
                "type": "yarn",
            },
        },
    ),
    "mistake": (
        "one with mistakes",
        {
            "model_type": "llama",
            "hidden_size": 4096,
            "num_attention_heads": 32,
            "num_hidden_layers": 32,
            "max_position_embeddings": 16384,
            "rope_theta": 12345.0,
            "rope_scaling": {"type": "yarn", "factor": 4.0, "finetune": True},
        },
    ),
}
EXAMPLES = {name: json.dumps(config) for name, (_, config) in _CONFIGS.items()}
"""Examples that can be explained without pasting anything: published configurations, reduced to their keys about sizes
and positions, and one configuration with mistakes."""
_TITLES = {name: title for name, (title, _) in _CONFIGS.items()}


class Explain(Explorer):
    """What a config.json says about positions, as determined by :func:`ropebook.explain.explain`. The figure describes
    it in words, and plots the wavelength of each pair.

    Invalid values raise ``TraitError``.

    Args:
        example: "llama", "gpt_oss", "deepseek" or "mistake".
        config: the contents of another file, at most 1,000,000 characters. If not empty, it is explained instead of
            ``example``.
        length: the number of tokens in a text, up to 2²⁴. With 0 or 1, the length in the file is used.
        second: whether to show the second kind of layer, if the file has two.
    """

    script = "explain.js"
    colours = meaning(
        blue="pairs that complete a turn in training",
        orange="new: the pair meets angles that it never had in training",
    )

    config = Text(
        "",
        label="Your config.json",
        note="Paste the file here. If empty, the example below is used.",
        lines=True,
    )
    example = Choice(
        _TITLES,
        "llama",
        label="Example",
        note="Explained while no file is pasted.",
    )
    length = Whole(
        0,
        min=0,
        max=MOST_LENGTH,
        log=True,
        label="Length to read (0: the file’s)",
        below="0 stands for the length in the file",
        above="no model reads texts that long",
        note="Tokens that the model should read. 0: the length in the file.",
        unit="tokens",
    )
    second = Switch(
        False,
        label="Second kind of layer",
        note="Some models have two sets of frequencies.",
        more=True,
    )

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "The wavelength of each pair of a head as a dot, from fast pairs on the left to slow ones on the right, "
            "on a logarithmic axis with lines at the trained length and the length to be read. Pairs that complete "
            "a turn within the trained length are blue, pairs that meet new angles are orange, and the others are "
            "grey. A thin line leads to each dot from where it was before scaling, and sentences below explain what "
            "the file says and what is wrong or suspicious in it."
        )

    @traitlets.validate("config")
    def _valid_config(self, proposal: dict) -> str:
        found = len(proposal["value"])
        if found > LONGEST_CONFIG:
            raise traitlets.TraitError(
                f"config must be at most {LONGEST_CONFIG:,} characters, got {found:,}"
            )
        return proposal["value"]
