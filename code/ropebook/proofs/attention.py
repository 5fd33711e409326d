"""The checks of the *Attention* chapter. Definitions are compared with the page's formulas, written out as loops."""

from __future__ import annotations

import math

import sympy
import torch

from ropebook import attention
from ropebook.proofs import Claim, Pairs, definition, identity, statement
from ropebook.proofs.measuring import off, random

# --- Identities ------------------------------------------------------------------------------------------------------

# With three keys, every kind of index pair occurs.
DOTS = [sympy.Symbol(rf"q \cdot k_{{{key}}}", real=True) for key in (1, 2, 3)]
P = sympy.symbols("p_1:4", real=True)
c = sympy.Symbol("c", positive=True)


@identity(
    "eq-attention-jacobian",
    r"q \cdot k_{1}",
    r"q \cdot k_{2}",
    r"q \cdot k_{3}",
    "c",
    twin="the derivative with respect to q·k/c, not q·k: no 1/c in front",
)
def jacobian(wrong: bool = False) -> Pairs:
    """∂p_i/∂(q·k_j) = p_i (δ_ij − p_j) / c."""
    total = sum(sympy.exp(dot / c) for dot in DOTS)
    p = [sympy.exp(dot / c) / total for dot in DOTS]
    return [
        (
            sympy.diff(p[i], DOTS[j]),
            p[i] * (sympy.KroneckerDelta(i, j) - p[j]) / (1 if wrong else c),
        )
        for i in range(3)
        for j in range(3)
    ]


@identity(
    "eq-attention-jacobian-norm",
    "p_{1}",
    "p_{2}",
    "p_{3}",
    "c",
    twin="the middle term once, not twice",
)
def jacobian_norm(wrong: bool = False) -> Pairs:
    """c²‖J‖² = Σp² − 2Σp³ + (Σp²)². This holds for any numbers p, even if they are not weights."""
    entries = [
        P[i] * (sympy.KroneckerDelta(i, j) - P[j]) / c
        for i in range(3)
        for j in range(3)
    ]
    squares, cubes = (sum(p**power for p in P) for power in (2, 3))
    return [
        (
            sympy.expand(sum(entry**2 for entry in entries)),
            sympy.expand(
                (squares - (1 if wrong else 2) * cubes + squares**2) / c**2
            ),
        )
    ]


@identity("eq-attention-permuted-scores", "K", "P", "Q", twin="P instead of Pᵀ")
def permuted_scores(wrong: bool = False) -> Pairs:
    """(PQ)(PK)ᵀ = P(QKᵀ)Pᵀ, for matrices of any size."""
    rows, dim = sympy.symbols("T d", integer=True, positive=True)
    q, k = sympy.MatrixSymbol("Q", rows, dim), sympy.MatrixSymbol("K", rows, dim)
    p = sympy.MatrixSymbol("P", rows, rows)
    left = sympy.MatMul(p * q, sympy.Transpose(p * k), evaluate=False)
    return [(left, sympy.MatMul(p, q * k.T, p if wrong else p.T, evaluate=False))]


# --- Definitions: the module against the formula on the page ---------------------------------------------------------


def _weights_by_hand(
    q: torch.Tensor, k: torch.Tensor, root: float, over_queries: bool = False
) -> torch.Tensor:
    """Divide e^S by its sum over the keys or, wrongly, over the queries (``over_queries``), entry by entry."""
    exps = [[math.exp(float(qm @ kn) / root) for kn in k] for qm in q]
    rows, columns = (
        [sum(row) for row in exps],
        [sum(column) for column in zip(*exps, strict=True)],
    )
    return torch.tensor(
        [
            [
                e / (columns[n] if over_queries else rows[m])
                for n, e in enumerate(row)
            ]
            for m, row in enumerate(exps)
        ],
        dtype=torch.float64,
    )


@definition(
    "eq-attention-weights",
    implements="ropebook.attention.attention_weights",
    twin="summed over queries, not over keys",
)
def weights(wrong: bool = False) -> list[Claim]:
    """A_mn = e^{S_mn} / Σ_j e^{S_mj}, with a mask added to the scores."""
    q, k = random(4, 6), random(4, 6, seed=1)
    by_hand = _weights_by_hand(q, k, math.sqrt(6), over_queries=wrong)
    mask = torch.zeros(4, 4, dtype=torch.float64).masked_fill(
        ~attention.causal_mask(4), -math.inf
    )
    cut = by_hand.tril() / (1 if wrong else by_hand.tril().sum(-1, keepdim=True))
    return [
        Claim(
            "weights of four queries",
            off(attention.attention_weights(q, k), by_hand),
            1e-14,
        ),
        Claim(
            "the same under a mask",
            off(attention.attention_weights(q, k, mask), cut),
            1e-14,
        ),
    ]


@definition(
    "eq-attention",
    implements="ropebook.attention.scaled_dot_product_attention",
    twin="d instead of its square root",
)
def whole(wrong: bool = False) -> list[Claim]:
    """The output is softmax(QKᵀ/√d + M) V."""
    q, k, v = (random(5, 8, seed=seed) for seed in range(3))
    by_hand = _weights_by_hand(q, k, 8 if wrong else math.sqrt(8))
    mask = torch.zeros(5, 5, dtype=torch.float64)
    mask[3, 0] = mask[1, 4] = -math.inf
    cut = by_hand * mask.exp()
    cut /= cut.sum(-1, keepdim=True)
    return [
        Claim(
            "outputs of five queries",
            off(attention.scaled_dot_product_attention(q, k, v), by_hand @ v),
            1e-14,
        ),
        Claim(
            "the same under a mask",
            off(attention.scaled_dot_product_attention(q, k, v, mask), cut @ v),
            1e-14,
        ),
    ]


@definition(
    "eq-attention-causal-mask",
    implements="ropebook.attention.causal_mask",
    twin="n < m instead of n ≤ m",
)
def causal(wrong: bool = False) -> list[Claim]:
    """M_mn is 0 for n ≤ m, and −∞ for n > m."""
    allowed = torch.tensor(
        [[n < m if wrong else n <= m for n in range(6)] for m in range(6)]
    )
    return [
        Claim(
            "entries of a mask of 6 × 6 that differ",
            int((attention.causal_mask(6) != allowed).sum()),
            0,
        )
    ]


def _heads_by_hand(
    layer: attention.MultiHeadAttention, x: torch.Tensor, group: int
) -> torch.Tensor:
    """Compute the outputs O_h side by side, where head h uses key and value head ⌊h / group⌋."""
    d, outputs = layer.head_dim, []
    q, k, v = layer.q_proj(x), layer.k_proj(x), layer.v_proj(x)
    for head in range(layer.n_heads):
        shared = (head // group) % layer.n_kv_heads
        mine, theirs = (
            slice(head * d, (head + 1) * d),
            slice(shared * d, (shared + 1) * d),
        )
        outputs.append(
            _weights_by_hand(q[:, mine], k[:, theirs], math.sqrt(d)) @ v[:, theirs]
        )
    return torch.cat(outputs, dim=-1)


def _layer() -> attention.MultiHeadAttention:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return attention.MultiHeadAttention(
            24, 6, 2, dtype=torch.float64
        ).requires_grad_(False)


@definition(
    "eq-attention-head",
    implements="ropebook.attention.repeat_heads",
    twin="h mod H_kv instead of ⌊h / (H_q/H_kv)⌋: heads dealt out in turn",
)
def one_head(wrong: bool = False) -> list[Claim]:
    """Head h attends with key and value head ⌊h / (H_q/H_kv)⌋."""
    layer, x = _layer(), random(5, 24)
    q, k, v = layer.project(x[None])
    heads = attention.merge_heads(attention.scaled_dot_product_attention(q, k, v))[
        0
    ]
    return [
        Claim(
            "six heads on two",
            off(heads, _heads_by_hand(layer, x, group=1 if wrong else 3)),
            1e-13,
        )
    ]


@definition(
    "eq-attention-multihead",
    implements="ropebook.attention.MultiHeadAttention",
    twin="W_O applied from the other side, as its transpose",
)
def multi_head(wrong: bool = False) -> list[Claim]:
    """The output is [O_0 O_1 …] W_O."""
    layer, x = _layer(), random(5, 24)
    joined = _heads_by_hand(layer, x, group=3)
    # nn.Linear stores W_O transposed.
    weight = layer.out_proj.weight if wrong else layer.out_proj.weight.T
    return [
        Claim(
            "the layer's output",
            off(layer(x[None])[0], joined @ weight + layer.out_proj.bias),
            1e-13,
        )
    ]


COST = {
    "seq_len": 7,
    "head_dim": 5,
    "n_heads": 6,
    "n_kv_heads": 2,
    "bytes_per_element": 4,
}


@definition(
    "eq-attention-flops",
    implements="ropebook.attention.attention_cost",
    twin="only multiplications counted, not the additions",
)
def flops(wrong: bool = False) -> list[Claim]:
    """The two products take 4 H_q T² d operations. We count them by running the loops of both products."""
    t, d = COST["seq_len"], COST["head_dim"]
    per_step = 1 if wrong else 2
    counted = sum(
        per_step
        for _ in range(COST["n_heads"])
        for _ in range(t)
        for _ in range(t)
        for _ in range(d)
    )
    measured = attention.attention_cost(**COST).attention_flops
    return [Claim("operations of both products", abs(measured - 2 * counted), 0)]


@definition(
    "eq-attention-score-bytes",
    implements="ropebook.attention.attention_cost",
    twin="key heads instead of query heads",
)
def score_bytes(wrong: bool = False) -> list[Claim]:
    """The scores take H_q T² β bytes, the size of their tensor."""
    t, heads = COST["seq_len"], COST["n_kv_heads"] if wrong else COST["n_heads"]
    scores = torch.empty(heads, t, t, dtype=torch.float32)
    return [
        Claim(
            "bytes of the scores",
            abs(attention.attention_cost(**COST).score_bytes - scores.nbytes),
            0,
        )
    ]


@definition(
    "eq-attention-kv-cache",
    implements="ropebook.attention.attention_cost",
    twin="keys without the values",
)
def kv_cache(wrong: bool = False) -> list[Claim]:
    """The keys and values take 2 H_kv T d β bytes, the size of their tensors."""
    shape = (COST["n_kv_heads"], COST["seq_len"], COST["head_dim"])
    kept = [
        torch.empty(shape, dtype=torch.float32) for _ in range(1 if wrong else 2)
    ]
    cost = attention.attention_cost(**COST).kv_cache_bytes
    return [
        Claim(
            "bytes of keys and values", abs(cost - sum(x.nbytes for x in kept)), 0
        )
    ]


# --- Statements ------------------------------------------------------------------------------------------------------


@statement(
    "eq-attention-score-variance", twin="divided by d, not by its square root"
)
def score_variance(wrong: bool = False) -> list[Claim]:
    """Var(q·k) = d and Var(q·k/√d) = 1 for independent standard normal entries.

    The sample variance of N products has a relative standard deviation of √((2 + 6/d)/N). Here that is about 0.01, so
    an error of 0.06 would be more than five standard deviations.
    """
    measured = {
        d: attention.score_variance(d, 20_000, torch.Generator().manual_seed(d))
        for d in (16, 64, 256)
    }
    return [
        Claim(
            f"variance after scaling, d = {d}",
            abs(value / (d**2 if wrong else d) - 1),
            0.06,
        )
        for d, value in measured.items()
    ]


@statement("eq-attention-gap", twin="√d, whatever the number of keys")
def gap(wrong: bool = False) -> list[Claim]:
    """On average, the two largest of n scores differ by √d/√(2 ln n). For 16 to 4,096 keys, this is right to within
    a fifth."""
    found = []
    for n in (16, 256, 4096):
        for d in (64, 512):
            generator = torch.Generator().manual_seed(n + d)
            scores = attention.score_rows(d, n, 2000, generator)
            first, second = scores.topk(2).values.T
            law = math.sqrt(d) / (1 if wrong else math.sqrt(2 * math.log(n)))
            mean = (first - second).mean().item()
            found.append(Claim(f"n = {n:,}, d = {d}", abs(mean / law - 1), 0.2))
    return found


@statement(
    "eq-attention-equivariance", twin="the values are left in their old order"
)
def equivariance(wrong: bool = False) -> list[Claim]:
    """Attention(PQ, PK, PV) = P Attention(Q, K, V)."""
    q, k, v = (random(6, 8, seed=seed) for seed in range(3))
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    moved = attention.scaled_dot_product_attention(
        q[order], k[order], v if wrong else v[order]
    )
    return [
        Claim(
            "outputs after reordering",
            off(moved, attention.scaled_dot_product_attention(q, k, v)[order]),
            1e-14,
        )
    ]


@statement("eq-attention-causal-sum", twin="n < m instead of n ≤ m in both sums")
def causal_sum(wrong: bool = False) -> list[Claim]:
    """o_m is the ratio of two sums over n ≤ m."""
    q, k, v = (random(6, 8, seed=seed) for seed in range(3))
    measured = attention.scaled_dot_product_attention(q, k, v, is_causal=True)
    claims = []
    for m in range(2, 6):
        seen = range(m if wrong else m + 1)
        factors = [math.exp(float(q[m] @ k[n]) / math.sqrt(8)) for n in seen]
        quotient = sum(
            factor * v[n] for factor, n in zip(factors, seen, strict=True)
        ) / sum(factors)
        claims.append(
            Claim(f"the output of token {m}", off(measured[m], quotient), 1e-14)
        )
    return claims
