"""Test that a checkpoint in Meta's format gives the same logits in transformers' Llama and in this package's Llama."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from ropebook.efficient import meta_to_transformers, transformers_to_meta
from ropebook.rotary_attention import LlamaModel
from tests.helpers import largest, random
from tests.together import together

PARAMS = {
    "dim": 32,
    "n_layers": 2,
    "n_heads": 4,
    "n_kv_heads": 2,
    "vocab_size": 50,
    "norm_eps": 1e-5,
    "rope_theta": 5e5,
}
HIDDEN = 48
SHAPES = {
    "attention.wq": (32, 32),
    "attention.wk": (16, 32),
    "attention.wv": (16, 32),
    "attention.wo": (32, 32),
    "feed_forward.w1": (HIDDEN, 32),
    "feed_forward.w2": (32, HIDDEN),
    "feed_forward.w3": (HIDDEN, 32),
    "attention_norm": (32,),
    "ffn_norm": (32,),
}


def of_meta() -> dict[str, torch.Tensor]:
    shapes = {"tok_embeddings.weight": (50, 32), "norm.weight": (32,), "output.weight": (50, 32)}
    shapes |= {f"layers.{at}.{name}.weight": shape for at in range(2) for name, shape in SHAPES.items()}
    weights = {name: random(*shape, seed=seed) / shape[-1] ** 0.5 for seed, (name, shape) in enumerate(shapes.items())}
    return weights | {"rope.freqs": torch.ones(4)}


def ours(state: dict[str, torch.Tensor]) -> LlamaModel:
    """Load the weights by name and without changes, because this package also rotates neighbouring entries."""
    names = {
        "tok_embeddings": "embedding",
        "output": "lm_head",
        "wq": "q_proj",
        "wk": "k_proj",
        "wv": "v_proj",
        "wo": "out_proj",
        "ffn_norm": "mlp_norm",
        "feed_forward": "mlp",
        "w1": "gate_proj",
        "w2": "down_proj",
        "w3": "up_proj",
    }
    model = LlamaModel(50, 32, HIDDEN, 2, 4, 2, norm_eps=1e-5, base=5e5, layout="interleaved", dtype=torch.float64)
    renamed = {
        ".".join(names.get(part, part) for part in name.split(".")): weight
        for name, weight in state.items()
        if name != "rope.freqs"
    }
    model.load_state_dict(renamed)
    return model


@pytest.fixture(scope="module")
def theirs() -> LlamaForCausalLM:
    config = LlamaConfig(
        hidden_size=32, intermediate_size=HIDDEN, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=50, rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 5e5},
    )  # fmt: skip
    model = LlamaForCausalLM(config).double().eval()
    model.load_state_dict(meta_to_transformers(of_meta(), PARAMS))
    return model


def test_equal_logits_in_both(theirs):
    tokens = torch.randint(50, (2, 20), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        here, there = ours(of_meta())(tokens), theirs(tokens).logits
    assert largest(there) > 0.5
    assert largest(here - there) < 1e-5  # transformers computes angles and norms in float32
    # converting transformers' weights back to this package, in either layout, must give the same logits as before
    for layout in ("half", "interleaved"):
        again = LlamaModel.from_transformers(theirs.state_dict(), theirs.config, layout)
        with torch.no_grad():
            assert largest(again(tokens) - here) < 1e-12


def test_rows_are_those_of_the_published_permutation():
    """The expected rows are computed as in transformers' own conversion script: the rows are viewed as (heads, pairs,
    2), and the last two axes are swapped."""
    state = of_meta()
    found = meta_to_transformers(state, PARAMS)
    for name, heads in (("q", 4), ("k", 2)):
        weight = state[f"layers.1.attention.w{name}.weight"]
        expected = weight.view(heads, 4, 2, 32).transpose(1, 2).reshape(-1, 32)
        assert torch.equal(found[f"model.layers.1.self_attn.{name}_proj.weight"], expected)
    assert found["model.layers.1.self_attn.v_proj.weight"] is state["layers.1.attention.wv.weight"]


def test_as_many_keys_as_queries_where_nothing_else_is_said():
    rows = random(8, 8)
    found = meta_to_transformers({"layers.0.attention.wk.weight": rows}, {"dim": 8, "n_heads": 2})
    assert torch.equal(found["model.layers.0.self_attn.k_proj.weight"], rows[[0, 2, 1, 3, 4, 6, 5, 7]])


def test_the_narrowest_model_has_one_pair():
    rows = random(2, 2)
    found = meta_to_transformers({"layers.0.attention.wq.weight": rows}, {"dim": 2, "n_heads": 1})
    assert torch.equal(found["model.layers.0.self_attn.q_proj.weight"], rows)
    with pytest.raises(ValueError, match=r"params\['dim'\] must be an integer >= 2, got 1"):
        meta_to_transformers({}, {"dim": 1, "n_heads": 1})


@together(
    ("changes", "message"),
    [
        ({"n_heads": 3}, r"params\['n_heads'\] must be a divisor of dim = 32, got 3"),
        ({"n_heads": None}, r"params\['n_heads'\] must be an integer >= 1, got None"),
        ({"n_kv_heads": 4}, r"params must give the heads of layers.0.attention.wk.weight, 16 rows; got 4 heads of 8"),
        ({"n_heads": 8}, r"params must give the heads of layers.0.attention.wk.weight, 16 rows; got 2 heads of 4"),
        ({"dim": 64}, r"params must give the heads of layers.0.attention.wq.weight, 32 rows; got 4 heads of 16"),
    ],
)
def test_heads_that_do_not_fit_are_refused(changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        meta_to_transformers(of_meta(), PARAMS | changes)


@together("name", ["model.embed_tokens.weight", "layers.0.attention.wz.weight", "layers.0.attention.wq"])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=f"state_dict must have the names of Meta's Llama, got '{name}'"):
        meta_to_transformers({name: random(4, 4)}, PARAMS)


@pytest.mark.parametrize("turn", [meta_to_transformers, transformers_to_meta])
def test_one_head_of_keys_is_enough_and_none_is_not(turn):
    assert turn({}, {"dim": 8, "n_heads": 2, "n_kv_heads": 1}) == {}
    with pytest.raises(ValueError, match=r"params\['n_kv_heads'\] must be an integer >= 1, got 0"):
        turn({}, {"dim": 8, "n_heads": 2, "n_kv_heads": 0})


def test_there_and_back():
    meta = of_meta()
    theirs = meta_to_transformers(meta, PARAMS)
    found = transformers_to_meta(theirs, PARAMS)
    del meta["rope.freqs"]  # the frequencies are computed, not stored
    assert found.keys() == meta.keys()
    for name, weight in found.items():
        assert torch.equal(weight, meta[name]), name
    bias = {"model.layers.11.self_attn.k_proj.bias": torch.arange(16.0)}
    back = transformers_to_meta(bias, PARAMS)
    assert list(back) == ["layers.11.attention.wk.bias"]
    assert torch.equal(meta_to_transformers(back, PARAMS)["model.layers.11.self_attn.k_proj.bias"], torch.arange(16.0))


@together(
    "name",
    ["model.layers.0.self_attn.wq.weight", "layers.0.attention.wq.weight", "lm_head", "model.rotary_emb.inv_freq"],
)
def test_a_name_that_transformers_llama_has_not_is_refused(name):
    with pytest.raises(ValueError, match=f"state_dict must have the names of transformers' Llama, got '{name}'"):
        transformers_to_meta({name: torch.ones(32, 32)}, PARAMS)
    with pytest.raises(
        ValueError, match=r"params must give the heads of model\.layers\.0\.self_attn\.k_proj\.weight, 32 rows"
    ):
        transformers_to_meta({"model.layers.0.self_attn.k_proj.weight": torch.ones(32, 32)}, PARAMS)
