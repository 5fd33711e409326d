"""Tests of the package as a whole: the input that it refuses, and the packages that it depends on."""

import inspect
import re

import pytest
import torch

from ropebook import efficient as E
from ropebook import sinusoidal
from tests.helpers import public, random
from tests.rotations import tables
from tests.together import together

# --- Bad input ---


X, COS, SIN = random(2, 3, 5, 8), *tables(range(5), 8)
P, V = torch.arange(5), random(5, 8)
ROPE = E.RotaryEmbedding(8, layout="interleaved")
TABLES = "cos and sin must have shape"
BAD = [
    ("transformers_to_meta({}, {})", TypeError, r"params\['dim'\] must be an integer >= 2, got None"),
    ("meta_to_transformers({}, {})", TypeError, r"params\['dim'\] must be an integer >= 2, got None"),
    ("cos_sin([1, 2], INV)", TypeError, "positions must be a tensor, got list"),
    (
        "cos_sin(P.bfloat16(), INV)",
        TypeError,
        "positions must be integers, float32 or float64, got dtype torch.bfloat16",
    ),
    ("cos_sin(P > 1, INV)", TypeError, "positions must be integers.* got dtype torch.bool"),
    ("cos_sin(P, INV * torch.nan)", ValueError, "inv_freq must be finite numbers, got nan"),
    ("cos_sin(P, INV.half())", TypeError, "inv_freq must be float32 or float64, got torch.float16"),
    ("cos_sin(P, INV[None])", ValueError, r"inv_freq must have shape \(d/2,\), got \(1, 4\)"),
    ("cos_sin(P, INV, torch.bfloat16)", ValueError, "dtype must be one of .* got torch.bfloat16"),
    ("split_pairs([1, 2])", TypeError, "x must be a tensor, got list"),
    ("split_pairs(torch.ones(3))", ValueError, r"x must have an even last axis >= 2, got shape \(3,\)"),
    ("split_pairs(torch.ones(2, 0))", ValueError, "x must have an even last axis"),
    ("split_pairs(torch.tensor(1))", ValueError, "x must have an even last axis"),
    ("split_pairs(X, 'halves')", ValueError, "layout must be one of 'interleaved', 'half', got 'halves'"),
    ("join_pairs(X, X, 'paired')", ValueError, "layout must be one of"),
    ("rotate_dense(X.long(), COS, SIN)", TypeError, "x must be a floating-point tensor, got dtype torch.int64"),
    ("rotate_dense(X, COS[:4], SIN[:4])", ValueError, TABLES + r".* got \(4, 4\) for \(2, 3, 5, 8\)"),
    ("rotate_blocks(X, COS[:, :3], SIN[:, :3])", ValueError, TABLES),
    ("rotate_every_two(torch.ones(5))", ValueError, "x must have an even last axis"),
    ("rotate_half(torch.ones(5))", ValueError, "x must have an even last axis"),
    ("rotate_interleaved(X, COS.half(), SIN)", TypeError, "cos must be float32 or float64, got torch.float16"),
    ("rotate_halves(X, COS, SIN.bfloat16())", TypeError, "sin must be float32 or float64, got torch.bfloat16"),
    ("rotate_halves(X, COS, 1.0)", TypeError, "sin must be a floating-point tensor, got float"),
    ("rotate_sparse(X, COS, SIN, 'both')", ValueError, "layout must be one of"),
    ("rotate_by_pairs(X, COS, SIN.float())", ValueError, "cos and sin must match, got torch.float64"),
    ("rotate_by_pairs(X, COS, SIN[:1])", ValueError, "cos and sin must match"),
    ("rotate_complex(X, COS.expand(3, 5, 4), SIN.expand(3, 5, 4))", ValueError, TABLES),
    ("rotate_eager(X[0, 0, 0], COS[0], SIN[0])", ValueError, TABLES),
    ("rotate_eager(X, COS[0, 0], SIN[0, 0])", ValueError, TABLES),
    ("rotate_eager(X[None], COS[None], SIN[None])", ValueError, TABLES),
    ("rotate_in_place(X.expand(9, 2, 3, 5, 8), COS, SIN)", ValueError, "x must hold each number once"),
    ("rotate_compiled(X, COS, SIN, 'odd')", ValueError, "layout must be one of"),
    (
        "apply_rotary(X, COS, SIN, backend='cuda', layout='half')",
        ValueError,
        "backend must be one of 'eager', 'compiled', 'triton'",
    ),
    ("apply_rotary(X[..., :6], COS, SIN, layout='half')", ValueError, TABLES),
    ("apply_rotary(X, COS[:, :0], SIN[:, :0], layout='half')", ValueError, TABLES),
    ("apply_rotary_qk(X, X[:, :, :4], COS, SIN, layout='half')", ValueError, TABLES),
    ("rotation_cost('matrix', 8)", ValueError, "form must be one of 'dense'"),
    ("rotation_cost('dense', 7)", ValueError, "head_dim must be an even integer"),
    ("rotation_cost('dense', 8, 0)", ValueError, "n_heads must be an integer >= 1"),
    ("rotation_cost('dense', 8, layout='odd')", ValueError, "layout must be one of"),
    ("rotation_cost('dense', 8, bytes_per_element=0)", ValueError, "bytes_per_element must be"),
    ("RotaryEmbedding(7)", ValueError, "dim must be an even integer >= 2, got 7"),
    ("RotaryEmbedding(8, 0.5, layout='half')", ValueError, "base must be a finite number >= 1, got 0.5"),
    ("RotaryEmbedding(8, float('nan'), layout='half')", ValueError, "base must be a finite number"),
    ("RotaryEmbedding(8, layout='neox')", ValueError, "layout must be one of"),
    ("RotaryEmbedding(8, rotary_dim=10, layout='half')", ValueError, "rotary_dim must be at most dim = 8, got 10"),
    ("RotaryEmbedding(8, rotary_dim=3, layout='half')", ValueError, "rotary_dim must be an even integer"),
    ("RotaryEmbedding(8, scaling=2.0, layout='half')", TypeError, "scaling must be a function or None, got 2.0"),
    ("RotaryEmbedding(8, table_length=0, layout='half')", ValueError, "table_length must be an integer >= 1"),
    ("RotaryEmbedding(8, backend='fast', layout='half')", ValueError, "backend must be one of"),
    ("ROPE(X[0], X)", ValueError, r"q must have shape \(batch, heads, seq, 8\), got \(3, 5, 8\)"),
    ("ROPE(X, X[..., :4])", ValueError, "k must have shape"),
    ("ROPE(X, X.long())", TypeError, "k must be a floating-point tensor"),
    ("ROPE(X, X[:, :, :4])", ValueError, "q and k must agree in batch and seq"),
    ("ROPE(X, X[:1])", ValueError, "q and k must agree in batch and seq"),
    ("ROPE(X, X, P[:4])", ValueError, r"positions must have shape \(5,\) or \(2, 5\), got \(4,\)"),
    ("ROPE(X, X, P.expand(3, 5))", ValueError, "positions must have shape"),
    ("ROPE(X, X, [0, 1, 2, 3, 4])", TypeError, "positions must be a tensor"),
    ("ROPE(X, X, P, offset=1)", ValueError, "offset must be 0 where positions are given, got 1"),
    ("ROPE(X, X, offset=-1)", ValueError, "offset must be an integer >= 0, got -1"),
    ("ROPE(X, X, offset=1.0)", TypeError, "offset must be an integer"),
    ("ROPE(X, X, offset=2**31 - 4)", ValueError, "offset must leave positions below 2147483648"),
    ("RotaryEmbedding(8, scaling=lambda f, n: f, layout='half')(X, X)", TypeError, "scaling must return .* got Tensor"),
    ("RotaryEmbedding(8, scaling=lambda f, n: (f, 1, 2), layout='half')(X, X)", TypeError, "scaling must return"),
    (
        "RotaryEmbedding(8, scaling=lambda f, n: (f[1:], 1), layout='half')(X, X)",
        ValueError,
        r"scaling's inv_freq must have shape \(4,\)",
    ),
    (
        "RotaryEmbedding(8, scaling=lambda f, n: (f / 0, 1), layout='half')(X, X)",
        ValueError,
        "finite numbers, got inf",
    ),
    (
        "RotaryEmbedding(8, scaling=lambda f, n: (f.long(), 1), layout='half')(X, X)",
        TypeError,
        "scaling's inv_freq must be",
    ),
    (
        "RotaryEmbedding(8, scaling=lambda f, n: (f, 0), layout='half')(X, X)",
        ValueError,
        "scaling's attention_factor must be",
    ),
    ("interleaved_to_half(7)", ValueError, "dim must be an even integer"),
    ("half_to_interleaved(8, 10)", ValueError, "rotary_dim must be at most dim = 8"),
    (
        "convert_weight(X[0, 0], 2, 4, 'half')",
        ValueError,
        r"weight must have n_heads·head_dim = 8 rows, got shape \(5, 8\)",
    ),
    ("convert_weight(X, 1, 2, 'half')", ValueError, "weight must have n_heads·head_dim"),
    ("convert_weight(V.T, 2, 4, 'neox')", ValueError, "to must be one of"),
    ("convert_weight(V.T.long(), 2, 4, 'half')", TypeError, "weight must be a floating-point tensor"),
]


@together(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    names = {
        "X": X,
        "COS": COS,
        "SIN": SIN,
        "P": P,
        "V": V,
        "ROPE": ROPE,
        "INV": sinusoidal.inv_freq(8),
        "torch": torch,
    }
    with pytest.raises(error, match=message):
        eval(call, {**vars(E), **names})


def test_every_public_function_has_bad_input_and_a_description():
    called = {re.match(r"\w+", call)[0] for call, *_ in BAD}
    assert public(E) - {"RotationCost", "InPlace", "overwrite", "check_positions"} == called - {"ROPE"}
    assert all(inspect.getdoc(getattr(E, name)) for name in public(E))
