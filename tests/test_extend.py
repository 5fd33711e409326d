"""Tests of the page on extending a model from 8k to 32k. The check must detect that a scaling didn't take effect, both
in the book's Llama and in transformers."""

from __future__ import annotations

import json
import re

import pytest
import torch

from ropebook import extrapolation as X
from ropebook.rope import inv_freq
from ropebook.rotary_attention import LlamaModel
from tests.cells import cell_with, fences
from tests.links import lost, text

PAGE = "extend.md"
SIZES = {
    "vocab_size": 100,
    "hidden_size": 256,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
}
THETA = inv_freq(128, 500_000.0)
EXPECTED = X.YaRN(4.0, 8192)(THETA)


@pytest.fixture(scope="module")
def shown():
    """Return the functions shown on the page, in its cells and in its code block for transformers."""
    names: dict = {}
    for function in ("read_frequencies", "check_scaling", "loss_by_position"):
        exec(cell_with(PAGE, f"def {function}").split("\n\n\nevery =")[0], names)
    [snippet] = fences(PAGE, "python")
    exec(snippet, names)
    return names


def configurations() -> list[dict]:
    return [json.loads(block) for block in fences(PAGE, "json")]


def llama(config: dict):
    transformers = pytest.importorskip("transformers")
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **config))


def test_every_link_lands_and_every_number_is_glued():
    assert lost(PAGE) == []


def test_both_spellings_make_the_same_model_in_transformers(shown):
    assert [sorted(one) for one in configurations()] == [
        ["max_position_embeddings", "rope_scaling", "rope_theta"],
        ["max_position_embeddings", "rope_parameters"],
    ]
    for config in configurations():
        shown["check_scaling"](shown["frequencies_of"](llama(config)), EXPECTED, THETA)


def test_what_the_servers_are_told_is_the_same(shown):
    vllm, llama_cpp = fences(PAGE, "bash")
    [override] = re.findall(r"--hf-overrides \\\n\s*'(.*?)'$", vllm, re.MULTILINE | re.DOTALL)
    _, newer = configurations()
    assert json.loads(override) == {"rope_parameters": newer["rope_parameters"]}
    assert re.findall(r"--max-model-len (\d+)|-c (\d+)", vllm + llama_cpp) == [("32768", ""), ("", "32768")]
    assert re.findall(r"--(?:rope-scale|yarn-orig-ctx) (\d+)", llama_cpp) == ["4", "8192"]


def test_the_page_names_the_version_that_runs_here():
    transformers = pytest.importorskip("transformers")
    assert transformers.__version__.startswith("5.23.")
    assert "transformers 5.23" in text(PAGE)


def parameters(without: str = "", **changed) -> dict:
    _, newer = configurations()
    given = newer["rope_parameters"] | changed
    return {key: one for key, one in given.items() if key != without}


WRONG = {
    "a key that nobody reads": ({"rope_params": parameters()}, "divided by"),
    "the type misspelt": (
        {"rope_parameters": {"rope_typ": "yarn"} | parameters(without="rope_type")},
        "divided by 1.00",
    ),
    "no base": ({"rope_parameters": parameters(without="rope_theta")}, "divided by"),
    "no original length": (
        {"rope_parameters": parameters(without="original_max_position_embeddings")},
        "off by a factor of",
    ),
    "twice": ({"rope_parameters": parameters(factor=16.0)}, "divided by 16.00, not by 4.00"),
    "another method": (
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 5e5, "factor": 4.0}},
        "off by a factor of",
    ),
    "no factor on the scores": ({"rope_parameters": parameters(attention_factor=1.0)}, "scores lack the factor"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_scaling_that_did_not_take_effect_is_found_in_transformers(shown, name):
    config, said = WRONG[name]
    model = llama({"max_position_embeddings": 32_768} | config)
    with pytest.raises(AssertionError, match=re.escape(said)):
        shown["check_scaling"](shown["frequencies_of"](model), EXPECTED, THETA)


def test_the_original_length_that_is_left_out_is_the_new_maximum_and_nobody_warns(caplog):
    with caplog.at_level("WARNING"):
        model = llama(
            {
                "max_position_embeddings": 32_768,
                "rope_parameters": parameters(without="original_max_position_embeddings"),
            }
        )
    assert model.config.rope_parameters["original_max_position_embeddings"] == 32_768
    assert [record for record in caplog.records if "rope" in record.getMessage().lower()] == []


@pytest.mark.parametrize("layer", ["rotated", "forgotten"])
def test_frequencies_are_read_off_what_the_rotation_does(shown, layer):
    """If an attribute disagrees with the actual rotation, the rotation is what counts."""
    plain = LlamaModel(10, 128, 16, n_layers=1, n_heads=1, layout="half", base=5e5).layers[0].attention.rotary
    scaled = LlamaModel(10, 128, 16, n_layers=1, n_heads=1, layout="half", base=5e5, scaling=X.YaRN(4.0, 8192))
    rotary = {"rotated": scaled.layers[0].attention.rotary, "forgotten": plain}[layer]
    found = shown["read_frequencies"](lambda x: rotary(x, positions=torch.tensor([1])), 128)
    if layer == "rotated":
        shown["check_scaling"](found, EXPECTED, THETA)
    else:
        with pytest.raises(AssertionError, match=r"divided by 1\.00, not by 4\.00"):
            shown["check_scaling"](found, EXPECTED, THETA)


def test_the_loss_with_a_window_knows_at_most_so_many_tokens(shown):
    torch.manual_seed(0)
    model = LlamaModel(50, 64, 64, n_layers=1, n_heads=2, layout="half")
    losses = shown["loss_by_position"]
    tokens = torch.randint(50, (1, 90))
    other = tokens.clone()
    other[0, :20] = (other[0, :20] + 1) % 50
    whole = losses(model, tokens)
    assert len(whole) == 89
    with torch.no_grad():
        logits = model(tokens[:, :-1])[0]
    assert torch.allclose(whole, torch.nn.functional.cross_entropy(logits, tokens[0, 1:], reduction="none"), atol=1e-5)
    for last, step in ((32, 16), (32, 5), (24, 24), (200, 16)):
        assert len(losses(model, tokens, last, step)) == 89
    cut, changed = losses(model, tokens, 32), losses(model, other, 32)
    assert torch.equal(cut[20 + 32 :], changed[20 + 32 :])
    assert not torch.equal(whole[20 + 32 :], losses(model, other)[20 + 32 :])


def test_a_source_stands_under_the_budgets_for_each_row():
    cell = cell_with(PAGE, "budgets = [")
    keys = set(re.findall(r'"(\w+\d{4}\w*)"\),$', cell, re.MULTILINE))
    [cited] = [set(group.split(",")) for group in re.findall(r"\{cite\}`([^`]+)`", text(PAGE)) if "zhu2024" in group]
    assert len(keys) == 12
    assert keys == cited
