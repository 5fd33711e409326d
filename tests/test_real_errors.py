"""Test that damaged, foreign or incomplete GGUF files are refused. The error must say what is wrong and what is
allowed."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

pytest.importorskip("gguf", reason="gguf is not installed: models from GGUF files are NOT tested here")

from ropebook import real
from tests import tiny_gguf

pytestmark = pytest.mark.usefixtures("without_gradients")


@pytest.fixture(scope="module")
def written():
    return tiny_gguf.llama()


@pytest.fixture(scope="module")
def words():
    return tiny_gguf.vocabulary()


@pytest.fixture(scope="module")
def whole(written, words, tmp_path_factory):
    return tiny_gguf.write(tmp_path_factory.mktemp("gguf") / "tiny.gguf", written, words=words)


def test_without_the_package_the_message_says_how_to_install_it(whole, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ModuleNotFoundError, match=re.escape("pip install 'ropebook[real]'")):
        real.load(whole)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path must name a GGUF file, got .*nowhere\.gguf"):
        real.load(tmp_path / "nowhere.gguf")
    with pytest.raises(FileNotFoundError, match="path must name a GGUF file"):
        real.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 a wheel", b"<!doctype html>"], ids=repr)
def test_a_file_of_another_kind(tmp_path, content):
    path = tmp_path / "other.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"first bytes are b'GGUF'; .*other\.gguf begins with ") as caught:
        real.load(path)
    assert str(caught.value).endswith(repr(content[:4]))


def test_a_file_whose_download_ended_early(whole, tmp_path):
    content = whole.read_bytes()
    path = tmp_path / "part.gguf"
    for length in [4, 5, 8, 23, 24, *range(25, len(content), len(content) // 37), len(content) - 40]:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"part\.gguf must be a whole GGUF file"):
            real.load(path)
    path.write_bytes(content)
    assert real.load(path).configuration.dim == 64


def test_another_version(whole, tmp_path):
    content = bytearray(whole.read_bytes())
    content[4] = 9
    path = tmp_path / "later.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"of version 2 or 3.* version 9"):
        real.load(path)


def test_another_architecture(written, words, tmp_path):
    path = tiny_gguf.write(tmp_path / "qwen.gguf", written, architecture="qwen2", words=words)
    with pytest.raises(ValueError, match=r"qwen\.gguf: general\.architecture must be one of 'llama', got 'qwen2'"):
        real.load(path)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"llama__rope__scaling__type": "yarn"}, "llama.rope.scaling.type must be one of 'none', got 'yarn'"),
        ({"llama__rope__scaling__factor": 4.0}, "llama.rope.scaling.factor must be 1.0 (1, for frequencies"),
        ({"llama__rope__scale_linear": 2.0}, "llama.rope.scale_linear must be 1.0 (1, for frequencies"),
        ({"llama__rope__dimension_count": 8}, "llama.rope.dimension_count must be 16 (the width of a head), got 8"),
        (
            {"llama__attention__value_length": 8},
            "llama.attention.value_length must be 16 (the width of the keys)",
        ),
        ({"llama__expert_count": 8}, "llama.expert_count must be 0 (none, as in a Llama with one SwiGLU"),
        ({"llama__block_count": None}, "llama.block_count must be there, and it is missing"),
        ({"llama__context_length": None}, "llama.context_length must be there, and it is missing"),
        ({"llama__embedding_length": None}, "llama.embedding_length must be there, and it is missing"),
        ({"llama__feed_forward_length": None}, "llama.feed_forward_length must be there, and it is missing"),
        ({"llama__attention__head_count": None}, "llama.attention.head_count must be there, and it is missing"),
        ({"llama__attention__layer_norm_rms_epsilon": None}, "layer_norm_rms_epsilon must be there, and it is missing"),
        ({"llama__block_count": 0}, "llama.block_count must be an integer >= 1, got 0"),
        ({"llama__block_count": "two"}, "llama.block_count must be an integer >= 1, got 'two'"),
        ({"llama__rope__freq_base": 0.0}, "llama.rope.freq_base must be a finite number > 0, got 0.0"),
        ({"llama__attention__head_count_kv": 3}, "llama.attention.head_count_kv must be a divisor of 4 heads, got 3"),
        ({"llama__attention__head_count": 64}, "must be an even integer >= 2, got 1"),
        ({"llama__block_count": 3}, "must have 29 tensors of a Llama, 9 are missing: blk.2.attn_k.weight, "),
        ({"llama__block_count": 1}, "and no others, got blk.1.attn_k.weight, "),
        ({"llama__feed_forward_length": 95}, "blk.0.ffn_gate.weight must have shape (95, 64), got (96, 64)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-",
)
def test_metadata_of_another_model(written, words, tmp_path, changed, sentence):
    if changed.get("llama__attention__head_count"):
        changed = {**changed, "llama__attention__head_count_kv": 64, "llama__rope__dimension_count": 1}
    path = tiny_gguf.write(tmp_path / "tiny.gguf", written, words=words, **changed)
    with pytest.raises((ValueError, TypeError), match=re.escape(sentence)) as caught:
        real.load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("gone", "more", "sentence"),
    [
        (["token_embd.weight"], {}, "must have the tensor 'token_embd.weight', which is missing"),
        (["output_norm.weight"], {}, "must have 20 tensors of a Llama, 1 are missing: output_norm.weight"),
        ([], {"rope_freqs.weight": (8,)}, "must have no tensor 'rope_freqs.weight': it scales the frequencies"),
        ([], {"blk.0.attn_q.bias": (64,)}, "without biases and no others, got blk.0.attn_q.bias"),
        (["blk.1.attn_k.weight"], {"blk.1.attn_k.weight": (64, 64)}, "must have shape (32, 64), got (64, 64)"),
    ],
)  # fmt: skip
def test_tensors_of_another_model(written, words, tmp_path, gone, more, sentence):
    tensors = {name: weight for name, weight in tiny_gguf.stored(written).items() if name not in gone}
    tensors |= {name: np.ones(shape, np.float32) for name, shape in more.items()}
    path = tiny_gguf.write(tmp_path / "tiny.gguf", written, tensors=tensors, words=words)
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        real.load(path)
    assert str(path) in str(caught.value)


def test_a_type_that_cannot_be_dequantised(written, words, tmp_path):
    tensors = tiny_gguf.stored(written)
    tensors["output_norm.weight"] = np.ones(64, np.int8)
    path = tiny_gguf.write(tmp_path / "tiny.gguf", written, tensors=tensors, words=words)
    with pytest.raises(ValueError, match=r"output_norm\.weight must be stored as one of F32, F16, Q4_0.*, got I8"):
        real.load(path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kind": "llama"}, "tokenizer.ggml.model must be one of 'gpt2', got 'llama'"),
        ({"cut": "llama-bpe"}, "tokenizer.ggml.pre must be one of 'gpt-2', 'smollm', got 'llama-bpe'"),
        ({"words": {}}, "tokenizer.ggml.model must be one of 'gpt2', got None"),
    ],
)
def test_another_tokenizer(written, words, tmp_path, options, sentence):
    path = tiny_gguf.write(tmp_path / "tiny.gguf", written, **{"words": words, **options})
    with pytest.raises(ValueError, match=re.escape(sentence)):
        real.load(path)


def test_another_layout(whole):
    with pytest.raises(ValueError, match="layout must be one of 'interleaved', 'half', got 'neox'"):
        real.load(whole, "neox")
