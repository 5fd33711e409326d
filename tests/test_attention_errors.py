"""Test that every function of the package refuses invalid input with an error that names the argument."""

import math
import re

import pytest
import torch
from torch import nn

from ropebook import attention as A
from tests.helpers import public
from tests.together import together

X = torch.zeros(2, 4, 5, 8)
LAYER = A.MultiHeadAttention(8, 2)
MHA = nn.MultiheadAttention
BAD = [
    # each case consists of a call, the error's type, and its message
    (lambda: A.attention_weights([1.0], X), TypeError, "q must be a floating-point tensor, got list"),
    (lambda: A.attention_weights(X.int(), X), TypeError, "q must be a floating-point tensor, got dtype torch.int32"),
    (lambda: A.attention_weights(X, None), TypeError, "k must be a floating-point tensor, got NoneType"),
    (lambda: A.attention_weights(X, X.double()), TypeError, "k must have q's dtype, torch.float32, got torch.float64"),
    (lambda: A.attention_weights(X, X.to("meta")), ValueError, "k must be on q's device, cpu, got meta"),
    (
        lambda: A.attention_weights(X[0, 0, 0], X),
        ValueError,
        "q must be (…, heads, seq, head_dim) or (seq, head_dim), got (8,)",
    ),
    (
        lambda: A.attention_weights(X[..., :0], X[..., :0]),
        ValueError,
        "q must be (…, heads, seq, head_dim) or (seq, head_dim), got (2, 4, 5, 0)",
    ),
    (
        lambda: A.attention_weights(X, X[0]),
        ValueError,
        "k must have q's shape except for heads and length; q's is (2, 4, 5, 8), got (4, 5, 8)",
    ),
    (
        lambda: A.attention_weights(X, X[..., :7]),
        ValueError,
        "k must have q's shape except for heads and length; q's is (2, 4, 5, 8), got (2, 4, 5, 7)",
    ),
    (
        lambda: A.attention_weights(X, X[:1]),
        ValueError,
        "k must have q's shape except for heads and length; q's is (2, 4, 5, 8), got (1, 4, 5, 8)",
    ),
    (
        lambda: A.attention_weights(X, X[:, :3]),
        ValueError,
        "k must have a number of heads that divides q's, 4, got 3",
    ),
    (
        lambda: A.attention_weights(X, X[:, :0]),
        ValueError,
        "k must have a number of heads that divides q's, 4, got 0",
    ),
    (lambda: A.attention_weights(X, X, scale=math.nan), ValueError, "scale must be a finite number, got nan"),
    (
        lambda: A.attention_weights(X, X, X.int()),
        TypeError,
        "mask must be a tensor, boolean (True = may attend) or floating point (added), got dtype torch.int32",
    ),
    (
        lambda: A.attention_weights(X, X, [[True]]),
        TypeError,
        "mask must be a tensor, boolean (True = may attend) or floating point (added), got list",
    ),
    (
        lambda: A.attention_weights(X, X, X.bool()),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 4, 5, 5), got (2, 4, 5, 8)",
    ),
    (
        lambda: A.attention_weights(X, X, X.new_ones(1, 2, 4, 5, 5)),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 4, 5, 5), got (1, 2, 4, 5, 5)",
    ),
    (
        lambda: A.attention_weights(X, X, X.bool().to("meta")),
        ValueError,
        "mask must be on the scores' device, cpu, got meta",
    ),
    (
        lambda: A.attention_weights(X, X[..., :3, :], is_causal=True),
        ValueError,
        "k_len must be an integer >= 5, got 3",
    ),
    (
        lambda: A.scaled_dot_product_attention(X, X, "v"),
        TypeError,
        "v must be a floating-point tensor, got str",
    ),
    (
        lambda: A.scaled_dot_product_attention(X, X, X.half()),
        TypeError,
        "v must have q's dtype, torch.float32, got torch.float16",
    ),
    (
        lambda: A.scaled_dot_product_attention(X, X, X[..., :4, :]),
        ValueError,
        "v must have k's shape except for the last axis, (2, 4, 5, 8), got (2, 4, 4, 8)",
    ),
    (lambda: A.scaled_dot_product_attention(X, X.half(), X), TypeError, "k must have q's dtype"),
    (lambda: A.causal_mask(0), ValueError, "q_len must be an integer >= 1, got 0"),
    (lambda: A.causal_mask(2.0), TypeError, "q_len must be an integer >= 1, got 2.0"),
    (lambda: A.causal_mask(3, 2), ValueError, "k_len must be an integer >= 3, got 2"),
    (lambda: A.padding_mask([1], 0), ValueError, "max_len must be an integer >= 1, got 0"),
    (lambda: A.padding_mask([1, 4], 3), ValueError, "lengths[1] must be an integer >= 0 and <= 3, got 4"),
    (lambda: A.padding_mask([-1], 3), ValueError, "lengths[0] must be an integer >= 0 and <= 3, got -1"),
    (lambda: A.padding_mask([1.5], 3), TypeError, "lengths[0] must be an integer >= 0 and <= 3, got 1.5"),
    (lambda: A.padding_mask(2, 3), TypeError, "lengths must be a sequence of integers, got 2"),
    (lambda: A.padding_mask("12", 3), TypeError, "lengths must be a sequence of integers, got '12'"),
    (lambda: A.padding_mask(torch.tensor(2), 3), TypeError, "lengths must be a sequence of integers, got tensor(2)"),
    (lambda: A.masked_scores(1.0, X, -1.0), TypeError, "scores must be a floating-point tensor, got float"),
    (
        lambda: A.whole_mask(torch.ones(3, 3), True, (2, 4, 5, 5), X.device),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 4, 5, 5), got (3, 3)",
    ),
    (lambda: A.masked_scores(X, X, -1.0), TypeError, "mask must be a boolean tensor, got dtype torch.float32"),
    (
        lambda: A.masked_scores(X, X[..., :3].bool(), -1.0),
        ValueError,
        "mask must broadcast to the scores' shape, (2, 4, 5, 8), got (2, 4, 5, 3)",
    ),
    (lambda: A.masked_scores(X, X.bool(), math.inf), ValueError, "fill must be a finite number >= "),
    (lambda: A.masked_scores(X, X.bool(), "low"), TypeError, "fill must be a finite number >= "),
    (
        lambda: A.masked_scores(X, X.bool(), 0.0, form="write"),
        ValueError,
        "form must be one of 'replace', 'add', got 'write'",
    ),
    (lambda: A.score_variance(0), ValueError, "dim must be an integer >= 1, got 0"),
    (lambda: A.score_variance(2, 1), ValueError, "samples must be an integer >= 2, got 1"),
    (
        lambda: A.score_variance(2, 9, 7),
        TypeError,
        "generator must be a torch.Generator on the CPU or None, got 7",
    ),
    (lambda: A.score_rows(0, 1), ValueError, "dim must be an integer >= 1, got 0"),
    (lambda: A.score_rows(1, 0), ValueError, "n_keys must be an integer >= 1, got 0"),
    (lambda: A.score_rows(1, 1, 0), ValueError, "rows must be an integer >= 1, got 0"),
    (
        lambda: A.score_rows(1, 1, 1, 7),
        TypeError,
        "generator must be a torch.Generator on the CPU or None, got 7",
    ),
    (lambda: A.softmax_jacobian(None), TypeError, "p must be a floating-point tensor, got NoneType"),
    (lambda: A.softmax_jacobian(X.half()), TypeError, "p must be float32 or float64, got torch.float16"),
    (lambda: A.softmax_jacobian(X), ValueError, "p must be probabilities, >= 0 and summing to 1 along the last axis"),
    (
        lambda: A.softmax_gradient_norm(torch.tensor([1.5, -0.5])),
        ValueError,
        "p must be probabilities, >= 0 and summing to 1 along the last axis, got tensor([ 1.5000, -0.5000])",
    ),
    (lambda: A.softmax_jacobian(torch.ones(1), 0), ValueError, "divisor must be a finite number > 0, got 0"),
    (lambda: A.softmax_gradient_norm(torch.ones(1), "8"), TypeError, "divisor must be a finite number > 0, got '8'"),
    (lambda: A.softmax_jacobian(torch.tensor(1.0)), ValueError, "p must be (…, n) with n >= 1, got ()"),
    (lambda: A.softmax_jacobian(torch.zeros(2, 0)), ValueError, "p must be (…, n) with n >= 1, got (2, 0)"),
    (lambda: A.attention_cost(0, 1, 1), ValueError, "seq_len must be an integer >= 1, got 0"),
    (lambda: A.attention_cost(1, 0, 1), ValueError, "head_dim must be an integer >= 1, got 0"),
    (lambda: A.attention_cost(1, 1, 0), ValueError, "n_heads must be an integer >= 1, got 0"),
    (lambda: A.attention_cost(1, 1, 1, 0), ValueError, "n_kv_heads must be an integer >= 1, got 0"),
    (lambda: A.attention_cost(1, 1, 4, 3), ValueError, "n_kv_heads must divide n_heads = 4, got 3"),
    (lambda: A.attention_cost(1, 1, 1, 1, 0), ValueError, "bytes_per_element must be an integer >= 1, got 0"),
    (lambda: A.split_heads(None, 1), TypeError, "x must be a floating-point tensor, got NoneType"),
    (lambda: A.split_heads(X, 0), ValueError, "n_heads must be an integer >= 1, got 0"),
    (
        lambda: A.split_heads(X, 3),
        ValueError,
        "x must be (…, seq, n_heads · head_dim) with n_heads = 3, got (2, 4, 5, 8)",
    ),
    (
        lambda: A.split_heads(X[0, 0, 0], 2),
        ValueError,
        "x must be (…, seq, n_heads · head_dim) with n_heads = 2, got (8,)",
    ),
    (lambda: A.merge_heads(None), TypeError, "x must be a floating-point tensor, got NoneType"),
    (lambda: A.merge_heads(X[0, 0]), ValueError, "x must be (…, n_heads, seq, head_dim), got (5, 8)"),
    (lambda: A.repeat_heads(None, 1), TypeError, "x must be a floating-point tensor, got NoneType"),
    (lambda: A.repeat_heads(X, 0), ValueError, "n_heads must be an integer >= 1, got 0"),
    (lambda: A.repeat_heads(X, 6), ValueError, "n_heads must be a multiple of x's number of heads, 4, got 6"),
    (lambda: A.repeat_heads(X[:, :0], 6), ValueError, "n_heads must be a multiple of x's number of heads, 0, got 6"),
    (lambda: A.repeat_heads(X[0, 0], 6), ValueError, "x must be (…, heads, seq, head_dim), got (5, 8)"),
    (lambda: A.MultiHeadAttention(0, 1), ValueError, "dim must be an integer >= 1, got 0"),
    (lambda: A.MultiHeadAttention(8, 3), ValueError, "dim must be a multiple of n_heads = 3, got 8"),
    (lambda: A.MultiHeadAttention(8, 3, head_dim=0), ValueError, "head_dim must be an integer >= 1, got 0"),
    (lambda: A.MultiHeadAttention(8, 4, 3), ValueError, "n_kv_heads must divide n_heads = 4, got 3"),
    (lambda: LAYER(None), TypeError, "x must be a floating-point tensor, got NoneType"),
    (lambda: LAYER(X), ValueError, "x must be (batch, seq, 8), got (2, 4, 5, 8)"),
    (lambda: LAYER(X[0, :, :, :7]), ValueError, "x must be (batch, seq, 8), got (4, 5, 7)"),
    (
        lambda: A.MultiHeadAttention(8, 2, fused=True)(X[0], return_weights=True),
        ValueError,
        "return_weights must be False with fused=True, which never computes the weights, got True",
    ),
    (
        lambda: A.MultiHeadAttention(8, 2, fused=True)(X[0], X.bool()),
        ValueError,
        "mask must broadcast to the scores' shape, (4, 2, 5, 5), got (2, 4, 5, 8)",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(LAYER),
        TypeError,
        "other must be a torch.nn.MultiheadAttention, got MultiHeadAttention",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(MHA(8, 2, kdim=6, vdim=7)),
        ValueError,
        "other must have kdim, vdim and embed_dim equal, got 6, 7 and 8",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(MHA(8, 2, dropout=0.5)),
        ValueError,
        "other must have dropout=0, add_bias_kv=False and add_zero_attn=False, got 0.5, False and False",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(MHA(8, 2, add_bias_kv=True)),
        ValueError,
        "other must have dropout=0, add_bias_kv=False and add_zero_attn=False, got 0.0, True and False",
    ),
    (
        lambda: A.MultiHeadAttention.from_torch(MHA(8, 2, add_zero_attn=True)),
        ValueError,
        "other must have dropout=0, add_bias_kv=False and add_zero_attn=False, got 0.0, False and True",
    ),
    (lambda: A.rows_of(0, 2, 1), ValueError, "dim must be an integer >= 1, got 0"),
    (lambda: A.rows_of(1, 1, 1), ValueError, "n_keys must be an integer >= 2, got 1"),
    (lambda: A.rows_of(1, 2, 0), ValueError, "divisor must be a finite number > 0, got 0"),
    (lambda: A.rows_of(1, 2, 1, rows=0), ValueError, "rows must be an integer >= 1, got 0"),
    (lambda: A.rows_of(1, 2, 1, seed=-1), ValueError, "seed must be an integer >= 0, got -1"),
    (
        lambda: A.hidden_row(-1.0, torch.float32, form="mul"),
        ValueError,
        "form must be one of 'replace', 'add', got 'mul'",
    ),
    (lambda: A.spacing(1e9, torch.float16), ValueError, "x must be a finite number >= -65504.0 and <= 65504.0, got"),
    (lambda: A.milliseconds(abs, X, runs=0), ValueError, "runs must be an integer >= 1, got 0"),
]


@together("call, error, message", BAD, ids=[message[:60] for _, _, message in BAD])
def test_bad_input(call, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        call()


def test_a_generator_on_another_device_is_refused(device):
    if device.type == "cpu":
        pytest.skip("needs a device beside the CPU")
    message = "generator must be a torch.Generator on the CPU or None, got"
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        A.score_variance(2, 9, torch.Generator(device))


def test_every_public_function_has_bad_input_above():
    tested = {name for call, _, _ in BAD for name in call.__code__.co_names}
    # the first two are records returned by attention_cost and rows_of; the third is a memory counter for any function
    assert public(A) - tested == {"AttentionCost", "Rows", "kept_bytes"}
