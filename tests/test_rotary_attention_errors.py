"""Test that bad input is refused with an error that names the argument."""

import math
import re

import pytest
import torch

from ropebook import attention as A
from ropebook import rotary_attention as R
from ropebook.extrapolation import ExtendedAttention
from tests.rotary_attention_helpers import (
    DEFAULT,
    llama,
)
from tests.together import together

pytestmark = pytest.mark.usefixtures("without_gradients")


X = torch.zeros(2, 5, 8)


LAYER = R.RotaryAttention(8, 2, layout="interleaved")


UNROTATED = ExtendedAttention(8, 2, method="rerope", options={"window": 4}, layout="interleaved")


MODEL = R.LlamaModel(7, 8, 12, 2, 2, layout="interleaved")


TOKENS = torch.zeros(2, 3, dtype=torch.long)


K = torch.zeros(2, 1, 3, 4)


def filled(max_len=4):
    cache = R.KVCache(max_len)
    cache.append(K, K)
    return cache


def with_grad():
    return K.clone().requires_grad_()


def config_with(**changes):
    config = llama()
    for name, value in changes.items():
        setattr(config, name, value)
    return config


BAD = [
    # each case consists of a call, the error's type, and its message
    (lambda: R.RotaryAttention(8, 3, layout="interleaved"), ValueError, "dim must be a multiple of n_heads = 3, got 8"),
    (lambda: R.RotaryAttention(8.0, 2, layout="interleaved"), TypeError, "dim must be an integer >= 1, got 8.0"),
    (lambda: R.RotaryAttention(8, 0, layout="interleaved"), ValueError, "n_heads must be an integer >= 1, got 0"),
    (lambda: R.RotaryAttention(8, 4, 3, layout="interleaved"), ValueError, "n_kv_heads must divide n_heads = 4, got 3"),
    (lambda: R.RotaryAttention(6, 2, layout="interleaved"), ValueError, "head_dim must be an even integer >= 2, got 3"),
    (
        lambda: R.RotaryAttention(6, 2, head_dim=5, layout="interleaved"),
        ValueError,
        "head_dim must be an even integer >= 2, got 5",
    ),
    (lambda: R.RotaryAttention(8, 2, layout="halves"), ValueError, "layout must be one of"),
    (lambda: R.RotaryAttention(8, 2, base=-1.0, layout="interleaved"), ValueError, "base must be"),
    (lambda: R.RotaryAttention(8, 2, theta=1.0, layout="interleaved"), TypeError, "theta"),
    (lambda: LAYER([1.0]), TypeError, "x must be a floating-point tensor, got list"),
    (lambda: LAYER(X[0]), ValueError, "x must be (batch, seq, 8), got (5, 8)"),
    (lambda: LAYER(X[..., :6]), ValueError, "x must be (batch, seq, 8), got (2, 5, 6)"),
    (lambda: LAYER(X, torch.arange(4)), ValueError, "positions"),
    (lambda: LAYER(X, torch.zeros(3, 5).long()), ValueError, "positions"),
    (lambda: LAYER(X, A.causal_mask(5)), TypeError, "positions"),
    (
        lambda: LAYER(X, mask=A.causal_mask(4)),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 2, 5, 5), got (4, 4)",
    ),
    (lambda: LAYER(X, cache={}), TypeError, "cache must be a KVCache or None, got dict"),
    (lambda: UNROTATED(X, cache=[]), TypeError, "cache must be a KVCache or None, got list"),
    (lambda: R.KVCache(0), ValueError, "max_len must be an integer >= 1, got 0"),
    (lambda: filled().append(K, K), ValueError, "the cache must have room for 3 more tokens, got 3 of max_len = 4"),
    (lambda: R.KVCache(2).append(K, K), ValueError, "the cache must have room for 3 more tokens, got 0 of max_len = 2"),
    (
        lambda: filled(9).append(K[:1], K[:1]),
        ValueError,
        "k must fit the cache, ((2, 1, 3, 4), torch.float32, 'cpu'), got ((1, 1, 3, 4), torch.float32, 'cpu')",
    ),
    (lambda: filled(9).append(K[..., :2], K[..., :2]), ValueError, "got ((2, 1, 3, 2), torch.float32, 'cpu')"),
    (lambda: filled(9).append(K.double(), K.double()), ValueError, "got ((2, 1, 3, 4), torch.float64, 'cpu')"),
    (lambda: filled(9).append(K.to("meta"), K.to("meta")), ValueError, "got ((2, 1, 3, 4), torch.float32, 'meta')"),
    (
        lambda: R.KVCache(9).append(K, K[:, :, :2]),
        ValueError,
        "v must fit k, ((2, 1, 3, 4), torch.float32, 'cpu'), got ((2, 1, 2, 4), torch.float32, 'cpu')",
    ),
    (lambda: R.KVCache(9).append(K[0], K[0]), ValueError, "k must be (batch, heads, seq, head_dim), got (1, 3, 4)"),
    (lambda: R.KVCache(9).append(K.int(), K), TypeError, "k must be a floating-point tensor, got dtype torch.int32"),
    (lambda: R.KVCache(9).append(with_grad(), K), ValueError, "k and v must not require gradients"),
    (lambda: R.KVCache(9).append(K, with_grad()), ValueError, "k and v must not require gradients"),
    (lambda: R.packed_positions([0, 1]), TypeError, "segment_ids must be a tensor of integers, got list"),
    (lambda: R.packed_positions(X), TypeError, "segment_ids must be a tensor of integers, got torch.float32"),
    (lambda: R.packed_mask(X > 0), TypeError, "segment_ids must be a tensor of integers, got torch.bool"),
    (lambda: R.packed_mask(TOKENS[:, :0]), ValueError, "segment_ids must be (…, seq) with seq >= 1, got (2, 0)"),
    (lambda: R.packed_mask(TOKENS[0, 0]), ValueError, "segment_ids must be (…, seq) with seq >= 1, got ()"),
    (lambda: R.packed_mask(TOKENS, 4), ValueError, "q_len must be an integer >= 1 and <= 3, got 4"),
    (lambda: R.left_padded([4], 3), ValueError, "lengths[0] must be an integer >= 0 and <= 3, got 4"),
    (lambda: R.SwiGLU(8, 0), ValueError, "hidden_dim must be an integer >= 1, got 0"),
    (lambda: R.SwiGLU(0, 8), ValueError, "dim must be an integer >= 1, got 0"),
    (
        lambda: R.LlamaModel(0, 8, 12, 2, 2, layout="interleaved"),
        ValueError,
        "vocab_size must be an integer >= 1, got 0",
    ),
    (lambda: R.LlamaModel(7, 8, 12, 0, 2, layout="interleaved"), ValueError, "n_layers must be an integer >= 1, got 0"),
    (
        lambda: R.LlamaModel(7, 8, 12, 2, 2, norm_eps=-1, layout="interleaved"),
        ValueError,
        "norm_eps must be a finite number >= 0, got -1",
    ),
    (lambda: MODEL([[1]]), TypeError, "tokens must be a tensor of int64 or int32, got list"),
    (lambda: MODEL(X[0]), TypeError, "tokens must be a tensor of int64 or int32, got torch.float32"),
    (lambda: MODEL(TOKENS[0]), ValueError, "tokens must be (batch, seq), neither of them 0, got (3,)"),
    (lambda: MODEL(TOKENS[:, :0]), ValueError, "tokens must be (batch, seq), neither of them 0, got (2, 0)"),
    (lambda: MODEL(TOKENS + 7), ValueError, "tokens must lie between 0 and 6, got 7"),
    (lambda: MODEL(TOKENS - 1), ValueError, "tokens must lie between 0 and 6, got -1"),
    (lambda: MODEL(TOKENS, caches=[filled()]), ValueError, "caches must be one for each of 2 layers, got 1"),
    (lambda: MODEL.generate(TOKENS, 0), ValueError, "new_tokens must be an integer >= 1, got 0"),
    (
        lambda: MODEL.generate(TOKENS, 1, [3, 0]),
        ValueError,
        "lengths[1] must be an integer >= 1 and <= 3, got 0",
    ),
    (
        lambda: MODEL.generate(TOKENS, 1, torch.tensor([0, 0])),
        ValueError,
        "lengths[0] must be an integer >= 1 and <= 3, got 0",
    ),
    (lambda: LAYER(X, torch.tensor([0, 1, 2**31 + 1, 3, 4])), ValueError, "positions must lie between -2147483648 and"),
    (lambda: MODEL(TOKENS, torch.tensor([0, math.nan, 2])), ValueError, "2147483648, got nan"),
    (lambda: R.shift_change(LAYER, X, 2**31), ValueError, "positions must lie between"),
    (lambda: MODEL.generate(TOKENS, 1, [3]), ValueError, "lengths must be one for each of 2 rows, got 1"),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(model_type="mistral")),
        ValueError,
        "config.model_type must be one of 'llama', got 'mistral'",
    ),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(hidden_act="gelu")),
        ValueError,
        "config.hidden_act must be one of 'silu', got 'gelu'",
    ),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(rope_parameters={"rope_type": "yarn"})),
        ValueError,
        "config.rope_parameters['rope_type'] must be one of 'default', got 'yarn'",
    ),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(rope_parameters={"rope_type": "yarn"}), scaling=None),
        ValueError,
        "config.rope_parameters['rope_type'] must be one of 'default', got 'yarn'",
    ),
    (
        lambda: R.LlamaModel.from_transformers({}, config_with(rope_parameters=DEFAULT | {"mrope_section": [1, 1, 1]})),
        ValueError,
        "partial_rotary_factor'), got ['mrope_section']",
    ),
    (
        lambda: R.LlamaModel.from_transformers(
            {}, config_with(rope_parameters=DEFAULT | {"partial_rotary_factor": 0.5})
        ),
        ValueError,
        "config.rope_parameters['partial_rotary_factor'] must be 1 where no rotary_dim is given, got 0.5",
    ),
    (lambda: R.shift_change(LAYER, X, 1.5), TypeError, "shift must be an integer, got 1.5"),
]


@together("call, kind, message", BAD, ids=range(len(BAD)))
def test_bad_input_is_refused(call, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        call()
