"""Tests of loading a GGUF file into the book's own Llama. The logits must be the same as in transformers, for both
layouts and every stored type."""

from __future__ import annotations

import pytest
import torch

pytest.importorskip("gguf", reason="gguf is not installed: models from GGUF files are NOT tested here")

from ropebook import real
from tests import tiny_gguf

pytestmark = pytest.mark.usefixtures("without_gradients")

TYPES = ("F32", "F16", "BF16", "Q8_0", "Q4_1", "Q4_0")
CLOSE = 1e-5  # relative to the largest logit, when the same numbers are computed in two ways in float32
TOKENS = torch.randint(300, (2, 40), generator=torch.Generator().manual_seed(0))


def error(ours, theirs):
    """Return the largest difference as a fraction of the largest magnitude in ``theirs``."""
    assert ours.shape == theirs.shape
    assert ours.isfinite().all()
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def as_transformers_reads(path):
    """Return transformers' model with the weights that transformers itself reads from the file."""
    from transformers import LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    theirs = tiny_gguf.llama(tied="output.weight" not in real.read(path).tensors, seed=1)
    with torch.device("meta"):
        dummy = LlamaForCausalLM(theirs.config)
    found = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=dummy)
    missing, unknown = theirs.load_state_dict(found["tensors"], strict=False)
    assert set(missing) <= {"lm_head.weight"}
    assert unknown == []
    return theirs


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_the_same_logits_as_the_model_that_was_written(tmp_path, layout, tied):
    theirs = tiny_gguf.llama(tied=tied)
    path = tiny_gguf.write(tmp_path / "tiny.gguf", theirs)
    ours, _, config = real.load(path, layout)
    expected = theirs(TOKENS).logits
    assert error(ours(TOKENS), expected) < CLOSE
    assert (ours.lm_head.weight is ours.embedding.weight) == tied == config.tied
    assert ours.layers[0].attention.rotary.layout == layout
    assert not ours.training
    assert not any(p.requires_grad for p in ours.parameters())
    far = torch.arange(1000, 1080, 2)
    assert error(ours(TOKENS, far), theirs(TOKENS, position_ids=far[None]).logits) < 2 * CLOSE


@pytest.mark.parametrize("quantised", TYPES)
def test_the_same_logits_as_transformers_reading_the_same_file(tmp_path, quantised):
    written = tiny_gguf.llama()
    path = tiny_gguf.write(tmp_path / "tiny.gguf", written, quantised=quantised)
    assert real.read(path).stored_as("blk.1.attn_q.weight") == quantised
    ours = real.load(path).model
    theirs = as_transformers_reads(path)
    assert error(ours(TOKENS), theirs(TOKENS).logits) < CLOSE
    lost = error(ours(TOKENS), written(TOKENS).logits)
    assert lost < CLOSE if quantised == "F32" else lost > 1e-4


def test_rows_left_in_the_files_order_are_another_model(tmp_path):
    written = tiny_gguf.llama()
    path = tiny_gguf.write(tmp_path / "tiny.gguf", written)
    file = real.read(path)
    config = real.configuration(file)
    expected = written(TOKENS).logits
    wrong = real.model(file, config, "half", convert=False)
    assert error(wrong(TOKENS), expected) > 0.05
    # a single token can attend only to itself, whatever its score is
    assert error(wrong(TOKENS[:, :1]), expected[:, :1]) < CLOSE
    right = real.model(file, config, "interleaved", convert=False)
    assert error(right(TOKENS), expected) < CLOSE


def test_the_configuration_is_what_the_file_says(tmp_path):
    written = tiny_gguf.llama(heads=4, kv_heads=1, layers=3)
    path = tiny_gguf.write(tmp_path / "tiny.gguf", written, general__license="apache-2.0")
    config = real.configuration(real.read(path))
    sizes = {"vocab_size": 300, "dim": 64, "hidden_dim": 96, "n_layers": 3, "n_heads": 4, "n_kv_heads": 1}
    assert config.model_options() == pytest.approx(
        {**sizes, "head_dim": 16, "norm_eps": 1e-5, "base": 5e5, "tied": True}
    )
    assert (config.name, config.license, config.trained_length) == ("tiny", "apache-2.0", 128)


def test_what_a_file_leaves_out_has_the_value_that_llama_cpp_gives_it(tmp_path):
    written = tiny_gguf.llama(kv_heads=4, base=10000.0)
    keys = [f"llama__{key}" for key in ("attention__head_count_kv", "rope__freq_base", "rope__dimension_count")]
    path = tiny_gguf.write(tmp_path / "tiny.gguf", written, **dict.fromkeys([*keys, "general__name"]))
    ours, _, config = real.load(path)
    assert (config.n_kv_heads, config.base, config.head_dim, config.name) == (4, 10000.0, 16, "")
    assert error(ours(TOKENS), written(TOKENS).logits) < CLOSE


def test_heads_may_be_wider_than_their_share(tmp_path):
    written = tiny_gguf.llama()
    weights = tiny_gguf.stored(written)
    wide = {"attn_q": (128, 64), "attn_k": (64, 64), "attn_v": (64, 64), "attn_output": (64, 128)}
    draws = torch.Generator().manual_seed(0)
    for name in weights:
        shape = wide.get(name.split(".")[-2])
        if shape:
            weights[name] = torch.randn(shape, generator=draws).numpy() / 8
    sizes = dict.fromkeys(("attention__key_length", "attention__value_length", "rope__dimension_count"), 32)
    path = tiny_gguf.write(
        tmp_path / "tiny.gguf", written, tensors=weights, **{f"llama__{key}": value for key, value in sizes.items()}
    )
    ours = [real.load(path, layout) for layout in ("half", "interleaved")]
    assert ours[0].configuration.head_dim == 32
    assert error(ours[0].model(TOKENS), ours[1].model(TOKENS)) < CLOSE


def test_weights_are_copies_of_what_the_file_holds(tmp_path):
    path = tiny_gguf.write(tmp_path / "tiny.gguf", tiny_gguf.llama())
    file = real.read(path)
    weight = file.tensor("blk.0.attn_q.weight")
    weight.zero_()
    assert file.tensor("blk.0.attn_q.weight").abs().max() > 0
    assert weight.dtype == torch.float32
    assert file.shape("token_embd.weight") == (300, 64)
    with pytest.raises(KeyError, match=r"tiny\.gguf has no tensor 'blk\.9\.attn_q\.weight'"):
        file.tensor("blk.9.attn_q.weight")
