"""Tests of the settings of published models, compared with transformers and with the models' papers."""

import math
from pathlib import Path

from ropebook import decay as D
from ropebook.extrapolation import from_transformers


def test_turned_pairs_counts_those_with_a_wavelength_below_the_text():
    for context, dim, base in ((2048, 24, 1e4), (4096, 128, 1e4), (8192, 128, 5e5), (32768, 256, 1e6), (2, 8, 10)):
        expected = sum(2 * math.pi * base ** (2 * i / dim) <= context - 1 for i in range(dim // 2))
        assert D.turned_pairs(context, dim, base) == expected


def test_a_text_of_one_token_turns_nothing():
    assert D.turned_pairs(1, 8) == 0


def test_at_base_one_all_pairs_turn_or_none():
    assert D.turned_pairs(7, 64, 1) == 0  # with seven tokens, the angle at the last position is only 6 radians
    assert D.turned_pairs(8, 64, 1) == 32


def test_models_are_those_of_transformers_where_it_knows_them():
    from transformers import Gemma3TextConfig, GemmaConfig, GPTNeoXConfig, LlamaConfig, MistralConfig

    models = {model.name: model for model in D.MODELS}
    neox, llama, gemma = GPTNeoXConfig(), LlamaConfig(), GemmaConfig()
    head = neox.hidden_size // neox.num_attention_heads
    turning = int(head * neox.rope_parameters["partial_rotary_factor"])
    assert models["GPT-NeoX-20B"][1:5] == (turning, head, neox.rope_parameters["rope_theta"], 2048)
    assert neox.max_position_embeddings == 2048
    assert models["LLaMA 7B"][1:4] == (llama.head_dim, llama.head_dim, llama.rope_parameters["rope_theta"])
    assert models["LLaMA 7B"].context == llama.max_position_embeddings
    mistral = MistralConfig()
    assert models["Mistral 7B"].dim == mistral.head_dim
    # Mistral reads longer texts, but its attention is limited to a window
    assert models["Mistral 7B"].context == mistral.sliding_window == 4096
    assert models["Gemma 7B"][1:3] == (gemma.head_dim, gemma.head_dim)
    assert models["Gemma 7B"].context == gemma.max_position_embeddings
    gemma3 = Gemma3TextConfig()
    assert models["Gemma 3 4B (global layers)"].dim == gemma3.head_dim
    assert models["Gemma 3 4B (global layers)"].base == gemma3.rope_parameters["full_attention"]["rope_theta"]


def test_models_are_those_of_their_papers():
    # Each row gives the number of rotated entries, the entries per head, the base, and the training length in tokens.
    # For Mistral, the length is the window.
    assert [model[1:5] for model in D.MODELS] == [
        (24, 96, 10_000, 2048), (128, 128, 10_000, 2048), (128, 128, 10_000, 4096), (128, 128, 10_000, 4096),
        (256, 256, 10_000, 8192), (128, 128, 500_000, 8192), (128, 128, 10**6, 32_768), (256, 256, 10**6, 32_768),
    ]  # fmt: skip


def test_models_have_what_the_table_needs():
    references = (Path(__file__).parents[1] / "book" / "references.bib").read_text(encoding="utf-8")
    assert all(f"{{{model.source}," in references for model in D.MODELS)
    assert len({model.name for model in D.MODELS}) == len(D.MODELS)
    for model in D.MODELS:
        assert 0 < D.turned_pairs(model.context, model.dim, model.base) < model.dim // 2
        assert model.dim <= model.head_dim
    # Llama 3 reads texts twice as long as Llama 2, yet fewer of its pairs complete a turn.
    llama2, llama3 = (next(m for m in D.MODELS if m.name == name) for name in ("Llama 2 7B", "Llama 3 8B"))
    assert D.turned_pairs(4096, llama2.dim, llama2.base) == 46
    mistral = next(m for m in D.MODELS if m.name == "Mistral 7B")
    assert D.turned_pairs(mistral.context, mistral.dim, mistral.base) == 46  # no query attends farther than 4096 tokens
    assert D.turned_pairs(8192, llama3.dim, llama3.base) == 35


def test_the_models_for_long_texts_are_those_of_transformers_where_it_knows_them():
    # The default settings of a class may differ from those of a checkpoint. For these models, we compared the two, and
    # they agree.
    from transformers import Gemma3TextConfig, GptOssConfig, Ministral3Config, Qwen3Config

    models = {model.name: model for model in D.LONG_MODELS}
    oss = models["gpt-oss-20b"]
    given = GptOssConfig()
    assert (oss.dim, oss.context) == (given.head_dim, given.max_position_embeddings)
    assert oss.scaling | {"rope_theta": oss.base} == given.rope_parameters
    mini, given = models["Ministral 3 8B"], Ministral3Config()
    assert (mini.dim, mini.context) == (given.head_dim, given.max_position_embeddings)
    theirs = given.rope_parameters
    assert mini.base == theirs["rope_theta"]
    assert mini.scaling == {name: theirs[name] for name in mini.scaling}
    gemma, given = models["Gemma 3 4B"], Gemma3TextConfig()
    assert (gemma.dim, gemma.context) == (given.head_dim, given.max_position_embeddings)
    assert gemma.base == given.rope_parameters["full_attention"]["rope_theta"]
    assert models["Qwen3-4B-Instruct-2507"].dim == Qwen3Config().head_dim


def test_each_model_for_long_texts_can_be_read_and_cited():
    references = (Path(__file__).parents[1] / "book" / "references.bib").read_text(encoding="utf-8")
    assert len({model.name for model in D.LONG_MODELS}) == len(D.LONG_MODELS)
    for model in D.LONG_MODELS:
        assert f"{{{model.source}," in references
        assert model.context >= 131_072
        assert model.published == f"{int(model.published[:4])}-{int(model.published[5:]):02d}"
        if model.scaling:
            from_transformers(model.scaling | {"rope_theta": model.base}, model.context)
