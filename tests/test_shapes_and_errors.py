"""Tests of the page on shapes and errors. A heading that names an error must quote the program's own message. Each
entry must have a cause, a test and a fix."""

from __future__ import annotations

import logging
import re

import pytest
import torch

from tests.cells import cells
from tests.links import lost, prose, text
from tests.together import together

PAGE = "shapes_and_errors.md"
transformers = pytest.importorskip("transformers")

# Messages of programs that aren't installed here. The page names the program's version, or the thread that quotes the
# message.
ELSEWHERE = {
    "`rope_scaling` must be a dictionary with two fields, `type` and `factor`",
    "User-specified max_model_len is greater than the derived max_model_len",
    "query, key, value, and out_ must have a head_size that is a multiple of 8",
}


def entries() -> dict[str, str]:
    parts = re.split(r"^## (.+)\n", prose(PAGE), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def words(heading: str) -> str:
    """Return the words that the message must contain: the heading's words, without the backticks around code."""
    return re.sub(r"\s+", " ", heading.strip("`"))


def test_every_link_lands_and_every_number_is_glued():
    assert lost(PAGE) == []


def test_every_entry_has_cause_test_and_fix():
    short = {heading: body for heading, body in entries().items() if heading != "Which shapes belong together?"}
    assert len(short) > 15
    for heading, body in short.items():
        found = [body.find(f"**{word}.**") for word in ("Cause", "Test", "Fix")]
        if heading == "Must the key turn the other way?":  # this entry is a question, so it has no cause
            found = found[1:2]
        assert -1 not in found, heading
        assert found == sorted(found), heading


def test_the_page_names_the_version_that_runs_here():
    assert transformers.__version__.startswith("5.23.")
    assert "transformers 5.23" in text(PAGE)


# ---- torch's messages, in the page's own cells ----


@pytest.fixture(scope="module")
def printed() -> str:
    """Return everything that the page's cells print, except for the cell that loads a model."""
    names: dict = {"display": print}
    out: list[str] = []
    names["print"] = lambda *said: out.append(" ".join(map(str, said)))
    for cell in cells(PAGE):
        if "pretrained" not in cell:
            exec(cell, names)
    return re.sub(r"\s+", " ", " ".join(out))


OF_TRANSFORMERS = ("rope_parameters", "head_dim", "KeyError", "Token indices")
FROM_TORCH = [
    heading
    for heading in entries()
    if not heading.endswith("?")
    and not heading.startswith("It is ")
    and heading not in ELSEWHERE
    and not any(word in heading for word in OF_TRANSFORMERS)
]


@together("heading", FROM_TORCH)
def test_a_heading_is_what_torch_says(printed, heading):
    assert words(heading) in printed


def test_there_are_as_many_as_there_should_be():
    assert len(FROM_TORCH) == 9


# ---- transformers' messages ----


@pytest.fixture
def warned(caplog, monkeypatch):
    monkeypatch.setattr(transformers.logging.get_logger("transformers"), "propagate", True)
    with caplog.at_level(logging.WARNING):
        yield lambda said: any(said in record.getMessage() for record in caplog.records)


def config(**given):
    sizes = {
        "hidden_size": 130,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "vocab_size": 8,
    }
    return transformers.LlamaConfig(**sizes | given)


def test_an_odd_head_is_refused_when_the_config_is_read():
    [heading] = [one for one in entries() if "head_dim" in one]
    with pytest.raises(Exception, match=re.escape(words(heading))):
        config()


def test_a_missing_key_is_an_error_and_an_unknown_one_a_warning(warned):
    [heading] = [one for one in entries() if "Missing required keys" in one]
    with pytest.raises(KeyError) as error:
        config(hidden_size=128, rope_parameters={"rope_type": "yarn", "original_max_position_embeddings": 8})
    assert words(heading) in error.value.args[0]
    config(hidden_size=128, rope_parameters={"rope_type": "linear", "factor": 2.0, "factr": 4.0})
    assert warned("Unrecognized keys in `rope_parameters`")


def test_an_unknown_type_is_a_warning_and_then_a_key_error(warned):
    asked = config(hidden_size=128, rope_parameters={"rope_type": "ntk", "factor": 4.0})
    said = "Missing validation function in 'RotaryEmbeddingConfigMixin' for 'rope_type'='ntk'"
    assert said in re.sub(r"\s+", " ", text(PAGE))
    assert warned(said)
    with pytest.raises(KeyError) as error:
        transformers.LlamaForCausalLM(asked)
    assert any(words(heading) == f"{error.type.__name__}: {error.value}" for heading in entries())
    [named] = re.findall(r"The names are ([^.]*)\.", re.sub(r"\s+", " ", text(PAGE)))
    known = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS.keys() | {"default"}
    assert set(re.split(r", | and ", named)) == known


def test_the_tokenizers_warning_is_only_that(warned):
    tokenizers = pytest.importorskip("tokenizers")
    [heading] = [one for one in entries() if "Token indices" in one]
    words_known = tokenizers.models.WordLevel({"a": 0, "?": 1}, unk_token="?")
    plain = tokenizers.Tokenizer(words_known)
    plain.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain, model_max_length=4)
    assert len(tokenizer("a a a a a a")["input_ids"]) == 6, "nothing is cut"
    assert warned(words(heading))


def test_the_advice_to_pad_after_the_rotation_is_right():
    """Check that zeros after the rotated entries change nothing, provided that the scale is that of the true d."""
    q, k, v = torch.randn(3, 1, 2, 5, 12, dtype=torch.float64)
    attend = torch.nn.functional.scaled_dot_product_attention
    wide = [torch.nn.functional.pad(x, (0, 4)) for x in (q, k, v)]
    assert torch.allclose(attend(*wide, scale=12**-0.5)[..., :12], attend(q, k, v))
