"""The facts that a configuration can state about positions, as data: the key of each
fact, and the values that are allowed."""

from __future__ import annotations

LARGEST = 1e12
"""No model has a length, base or width greater than this."""

WIDEST = 16384
"""No model has a head wider than this."""

LIMITS = {"characters": 1_000_000, "depth": 40}
"""A file that is longer or more deeply nested than this is not a configuration."""

PARTS = ["text_config", "llm_config", "language_config"]
"""Keys under which models that combine images and text store the configuration of their
language model."""

ROPE_KEYS = ["rope_scaling", "rope_parameters"]
"""Keys that may contain the scaling dictionary. If both are present and the first is
not empty, transformers reads the first."""


def _whole(
    key: str, least: int = 1, most: float = LARGEST, null: bool = True
) -> dict[str, object]:
    return {"key": key, "is": "whole", "least": least, "most": most, "null": null}


def _number(
    key: str, most: float = LARGEST, null: bool = True
) -> dict[str, object]:
    return {"key": key, "is": "number", "least": 0, "most": most, "null": null}


def _other(kind: str, key: str, null: bool = True) -> dict[str, object]:
    return {"key": key, "is": kind, "null": null}


FACTS = {
    "model_type": _other("text", "model_type"),
    "heads": _whole("num_attention_heads", most=1e6, null=False),
    "kv_heads": _whole("num_key_value_heads", most=1e6),
    "width": _whole("hidden_size", null=False),
    "layers": _whole("num_hidden_layers", most=1e4, null=False),
    "given_head_dim": _whole("head_dim", most=WIDEST),
    "rope_part": _whole("qk_rope_head_dim", most=WIDEST),
    "still_part": _whole("qk_nope_head_dim", most=WIDEST),
    "given_fraction": _number("partial_rotary_factor", most=1),
    "given_rotary_dim": _whole("rotary_dim", most=WIDEST),
    "given_base": _number("rope_theta", null=False),
    "local_base": _number("rope_local_base_freq"),
    "maximum": _whole("max_position_embeddings", least=2, null=False),
    "file_original": _whole("original_max_position_embeddings", least=2),
    "given_window": _whole("sliding_window"),
    "use_window": _other("switch", "use_sliding_window"),
    "window_from": _whole("max_window_layers", least=0),
    "full_every": _whole("sliding_window_pattern"),
    "chunk": _whole("attention_chunk_size"),
    "layer_types": _other("texts", "layer_types"),
    "no_rope_layers": _other("wholes", "no_rope_layers"),
    "no_rope_every": _whole("no_rope_layer_interval"),
    "interleave": _other("switch", "rope_interleave"),
    "alibi": _other("switch", "alibi"),
    "scheme": _other("text", "position_embedding_type"),
    "cache": _other("switch", "use_cache"),
}
"""Facts about the whole file. Some families use other names for the keys. For each
fact, ``null`` says whether transformers accepts null."""

TABLE_FACTS = {
    "rope_type": _other("text", "rope_type", null=False),
    "old_type": _other("text", "type", null=False),
    "factor": _number("factor", null=False),
    "rope_base": _number("rope_theta", null=False),
    "rope_fraction": _number("partial_rotary_factor", most=1, null=False),
    "rope_original": _whole(
        "original_max_position_embeddings", least=2, null=False
    ),
    "attention_factor": _number("attention_factor"),
    "beta_fast": _number("beta_fast"),
    "beta_slow": _number("beta_slow"),
    "mscale": _number("mscale"),
    "mscale_all_dim": _number("mscale_all_dim"),
    "truncate": _other("switch", "truncate", null=False),
    "low": _number("low_freq_factor", null=False),
    "high": _number("high_freq_factor", null=False),
    "short_factors": _other("numbers", "short_factor", null=False),
    "long_factors": _other("numbers", "long_factor", null=False),
    "sections": _other("wholes", "mrope_section"),
    "sections_interleaved": _other("switch", "mrope_interleaved"),
    "finetuned": _other("switch", "finetuned"),
    "query_scaling": _number("llama_4_scaling_beta"),
}
"""Facts from a scaling dictionary."""

_GENERAL = ["rope_type", "type", "rope_theta", "partial_rotary_factor"]
_PICTURES = ["mrope_section", "mrope_interleaved"]

KINDS = {
    "default": {"title": "no scaling", "keys": [*_GENERAL, *_PICTURES]},
    "linear": {"title": "position interpolation", "keys": [*_GENERAL, "factor"]},
    "dynamic": {"title": "dynamic NTK", "keys": [*_GENERAL, "factor"]},
    "yarn": {
        "title": "YaRN",
        "keys": [
            *_GENERAL, *_PICTURES, "factor", "original_max_position_embeddings", "attention_factor",
            "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate", "finetuned",
        ],
    },
    "llama3": {
        "title": "the rule of Llama 3.1",
        "keys": [
            *_GENERAL, "factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor",
        ],
    },
    "longrope": {
        "title": "LongRoPE",
        "keys": [
            *_GENERAL, "factor", "original_max_position_embeddings", "attention_factor",
            "short_factor", "long_factor",
        ],
    },
    "proportional": {"title": "proportional rotation", "keys": [*_GENERAL, "factor"]},
}  # fmt: skip
"""The rope types that transformers supports, and the keys that its code reads for each
of them."""

ELSEWHERE = ["_attn_implementation_autoset", "_from_model_config", "_name_or_path", "activation_function", "add_cross_attention", "add_faster_video", "architectures", "attention_bias", "attention_dropout", "attn_implementation", "attn_logit_softcapping", "attn_pdrop", "attn_softmax_bf16", "auto_map", "aux_loss_alpha", "bad_words_ids", "begin_suppress_tokens", "boi_token_index", "bos_token_id", "chunk_size_feed_forward", "classifier_dropout", "cross_attention_hidden_size", "decoder_sparse_step", "decoder_start_token_id", "diversity_penalty", "do_sample", "dtype", "early_stopping", "embd_pdrop", "embedding_dropout", "encoder_no_repeat_ngram_size", "eoi_token_index", "eos_token_id", "ep_size", "exponential_decay_length_penalty", "ff_factor", "final_logit_softcapping", "finetuning_task", "first_k_dense_replace", "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing", "hidden_act", "hidden_activation", "hidden_dropout", "hidden_dropout_prob", "id2label", "image_token_id", "image_token_index", "initializer_range", "intermediate_size", "is_decoder", "is_encoder_decoder", "kv_lora_rank", "label2id", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "length_penalty", "logit_scale", "logits_scaling", "lm_head_bias", "max_length", "min_length", "mlp_bias", "mlp_layer_types", "mlp_only_layers", "mm_tokens_per_image", "model_name", "moe_intermediate_size", "moe_layer_freq", "n_group", "n_routed_experts", "n_shared_experts", "no_repeat_ngram_size", "norm_eps", "norm_topk_prob", "norm_type", "num_beam_groups", "num_beams", "num_experts", "num_experts_per_tok", "num_local_experts", "num_nextn_predict_layers", "num_return_sequences", "output_attentions", "output_hidden_states", "output_router_logits", "output_scores", "pad_token_id", "parallel_attn", "prefix", "pretraining_tp", "problem_type", "pruned_heads", "q_lora_rank", "qk_layernorm", "qkv_bias", "quantization_config", "query_pre_attn_scalar", "remove_invalid_values", "repetition_penalty", "resid_pdrop", "residual_multiplier", "return_dict", "return_dict_in_generate", "rms_norm_eps", "rotary_percentage", "routed_scaling_factor", "router_aux_loss_coef", "router_jitter_noise", "scoring_func", "sep_token_id", "seq_aux", "shared_expert_intermediate_size", "suppress_tokens", "swiglu_limit", "task_specific_params", "temperature", "tf_legacy_loss", "tie_encoder_decoder", "tie_word_embeddings", "tokenizer_class", "top_k", "top_p", "topk_group", "topk_method", "torch_dtype", "torchscript", "transformers_version", "typical_p", "use_bfloat16", "use_parallel_residual", "use_qk_norm", "v_head_dim", "video_token_id", "vision_config", "vision_end_token_id", "vision_start_token_id", "vision_token_id", "vocab_size", "audio_config", "embedding_multiplier", "attention_multiplier", "experts_per_token", "initial_context_length", "attention_out_bias", "use_bidirectional_attention", "attention_probs_dropout_prob", "add_qkv_bias", "max_batch_size"]  # fmt: skip
"""Keys that are known to be unrelated to positions."""
