"""The checks of the *Relatives* chapter and its pages.

The definitions are compared with the page's formulas, written out in plain Python. The identities hold for every
vector, position and frequency.
"""

from __future__ import annotations

import math

import sympy
import torch

from ropebook import relatives
from ropebook.proofs import Claim, Pairs, definition, identity, statement
from ropebook.proofs.measuring import off, random

m, n = sympy.symbols("m n", real=True)
theta_i = sympy.Symbol("theta_i", real=True)
zeta_i = sympy.Symbol("zeta_i", positive=True)
d = sympy.Symbol("d", integer=True, positive=True)

APART = (0, 1, 7, 40)


def _dot(a: torch.Tensor, b: torch.Tensor) -> float:
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


@definition(
    "eq-relatives-score",
    implements="ropebook.relatives.Bias",
    twin="the bias is divided by √d too",
)
def score(wrong: bool = False) -> list[Claim]:
    """A bias is added to q·k/√d, after the division."""
    scheme = relatives.ALiBi(2)
    q, k = random(2, 2, 3, 4)
    found = scheme.score(q, k, [0, 1, 2], [0, 1, 2])
    claims = []
    for head, at, of in ((0, 2, 0), (1, 2, 1), (1, 0, 2)):
        product = _dot(q[head, at], k[head, of]) / 2
        bias = -(2.0 ** (-4 * (head + 1))) * abs(at - of)
        written = product + (bias / 2 if wrong else bias)
        off = abs(found[head, at, of].item() - written)
        claims.append(Claim(f"head {head + 1}, m = {at}, n = {of}", off, 1e-12))
    return claims


@definition(
    "eq-relatives-visible",
    implements="ropebook.relatives.first_share",
    twin="1/m: the query itself is not counted",
)
def visible(wrong: bool = False) -> list[Claim]:
    """Under a causal mask, if all scores are equal, the first key gets the weight 1/(m + 1)."""
    written = [1 / (at if wrong else at + 1) for at in range(1, 50)]
    found = relatives.first_share(50)[1:]
    return [Claim("m = 1 … 49", off(found, written), 1e-15)]


@definition(
    "eq-relatives-alibi",
    implements="ropebook.relatives.ALiBi",
    twin="the heads are counted from 0",
)
def alibi(wrong: bool = False) -> list[Claim]:
    """The bias in head h = 1 … H is −2^(−8h/H)|m − n|, where H is a power of two."""
    claims = []
    for heads in (4, 8, 16):
        found = relatives.ALiBi(heads).bias([40], [40 - x for x in APART])[:, 0]
        first = 0 if wrong else 1
        written = [
            [-(2.0 ** (-8 * (h + first) / heads)) * x for x in APART]
            for h in range(heads)
        ]
        claims.append(Claim(f"{heads} heads", off(found, written), 1e-12))
    return claims


@definition(
    "eq-relatives-t5",
    implements="ropebook.relatives.t5_bucket",
    twin="the logarithm is that of Δ, not of 2Δ/B",
)
def t5(wrong: bool = False) -> list[Claim]:
    """Each distance below B/2 has its own range. For larger distances, the index of the range grows with the logarithm
    of the distance up to F, and is at most B − 1."""

    def bucket(x: int, ranges: int, farthest: int) -> int:
        half = ranges // 2
        if x < half:
            return x
        share = math.log(x if wrong else x / half) / math.log(farthest / half)
        return min(ranges - 1, half + math.floor(share * half))

    claims = []
    for ranges, farthest in ((32, 128), (8, 100)):
        # These distances avoid the boundaries between ranges, where a logarithm may be rounded to either side.
        apart = [3, ranges // 2 + 1, 23, 31, 45, 70, 99, 500]
        found = relatives.t5_bucket(torch.tensor(apart), ranges, farthest)
        written = [bucket(x, ranges, farthest) for x in apart]
        claims.append(
            Claim(f"B = {ranges}, F = {farthest}", off(found, written), 0)
        )
    return claims


@definition(
    "eq-relatives-sandwich",
    implements="ropebook.relatives.Sandwich",
    twin="d instead of d/2",
)
def sandwich(wrong: bool = False) -> list[Claim]:
    """The bias in head h is (Σ cos Δθ_i − d/2)/(8h/H)."""
    heads, dim, base = 3, 8, 100
    scheme = relatives.Sandwich(heads, dim, base)
    found = scheme.bias([40], [40 - x for x in APART])[:, 0]
    top = dim if wrong else dim / 2
    written = [
        [
            (
                sum(math.cos(x * base ** (-2 * i / dim)) for i in range(dim // 2))
                - top
            )
            / (8 * h / heads)
            for x in APART
        ]
        for h in range(1, heads + 1)
    ]
    return [Claim("three heads", off(found, written), 1e-12)]


def _column(name: str) -> sympy.MatrixSymbol:
    return sympy.MatrixSymbol(name, d, 1)


@identity("eq-relatives-terms", "q", "k", "r", "u", "v", twin="v·k instead of u·k")
def terms(wrong: bool = False) -> Pairs:
    """(q + u)·k + (q + v)·r has four terms."""
    q, k, r, u, v = map(_column, "qkruv")
    left = (q + u).T * k + (q + v).T * r
    right = q.T * k + q.T * r + (v if wrong else u).T * k + v.T * r
    return [(sympy.expand(left), sympy.expand(right))]


@definition(
    "eq-relatives-xl",
    implements="ropebook.relatives.TransformerXL",
    twin="u and v are swapped",
)
def transformer_xl(wrong: bool = False) -> list[Claim]:
    """The score is [(q + u)·k + (q + v)·W_R R_Δ]/√d, where R_Δ contains all sines of Δθ_i, followed by all cosines."""
    heads, dim, width = 2, 4, 6
    scheme = relatives.TransformerXL(heads, dim, width).double()
    for seed, weight in enumerate(scheme.parameters()):
        weight.data = random(*weight.shape, seed=seed)
    q, k = random(2, heads, 7, dim, seed=9)
    found = scheme.score(q, k, range(7), range(7))
    u, v = (scheme.v, scheme.u) if wrong else (scheme.u, scheme.v)
    claims = []
    for at, of in ((5, 2), (1, 6)):
        angles = [(at - of) * 10000 ** (-2 * i / width) for i in range(width // 2)]
        waves = [f(x) for f in (math.sin, math.cos) for x in angles]
        for h in range(heads):
            of_distance = torch.tensor(
                [_dot(row, torch.tensor(waves)) for row in scheme.w_r[h].detach()]
            )
            by_content = _dot(q[h, at] + u[h].detach(), k[h, of])
            by_distance = _dot(q[h, at] + v[h].detach(), of_distance)
            written = (by_content + by_distance) / math.sqrt(dim)
            off = abs(found[h, at, of].item() - written)
            claims.append(Claim(f"head {h + 1}, m = {at}, n = {of}", off, 1e-6))
    return claims


@identity(
    "eq-relatives-xpos",
    "m",
    "n",
    "q",
    "k",
    r"\theta_{i}",
    r"\zeta_{i}",
    twin="the key's factor grows like the query's",
)
def xpos(wrong: bool = False) -> Pairs:
    """The product of two pairs, one of q and one of k, depends on the positions only through a factor ζ^((m−n)/512) and
    a rotation by (m − n)θ. Here q and k are complex numbers."""
    q, k = sympy.symbols("q k")
    power = n if wrong else -n
    query = zeta_i ** (m / 512) * sympy.exp(sympy.I * m * theta_i) * q
    key = zeta_i ** (power / 512) * sympy.exp(sympy.I * n * theta_i) * k
    apart = m - n
    turned = q * sympy.conjugate(k) * sympy.exp(sympy.I * apart * theta_i)
    return [(query * sympy.conjugate(key), zeta_i ** (apart / 512) * turned)]


# --- Left from right ------------------------------------------------------------------------------------------------


@statement("eq-relatives-mirror", twin="the distance keeps its sign")
def mirror(wrong: bool = False) -> list[Claim]:
    """The direction ⇒: with b(−Δ) = b(Δ) and no mask, reading a text backwards gives the same outputs in reverse
    order."""
    q, k, v = random(3, 1, 2, 9, 4)
    if wrong:
        schemes = [relatives.ALiBi(2, signed=True)]
    else:
        schemes = [relatives.ALiBi(2), relatives.Sandwich(2, 4)]
    return [
        Claim(
            type(scheme).__name__,
            relatives.reversal(scheme, q, k, v),
            1e-12,
        )
        for scheme in schemes
    ]


@definition(
    "eq-relatives-ahead",
    implements="ropebook.relatives.future_share",
    twin="the query itself counts as future",
)
def ahead(wrong: bool = False) -> list[Claim]:
    """Without a mask, the bias −sΔ gives the r keys after the query the following share of the weight: Σ_{x=1…r} e^{sx}
    / Σ_{x=−r…r} e^{sx}."""
    found = relatives.future_share(relatives.ALiBi(2, signed=True), 2, 4, 65)
    written = [
        sum(math.exp(s * x) for x in range(0 if wrong else 1, 33))
        / sum(math.exp(s * x) for x in range(-32, 33))
        for s in (2.0**-4, 2.0**-8)
    ]
    return [
        Claim(f"head {h + 1}", off(found[h], written[h]), 1e-12) for h in range(2)
    ]


# --- Schemes that the chapter only lists ------------------------------------------------------------------------------


@definition(
    "eq-relatives-kerple",
    implements="ropebook.relatives.Kerple",
    twin="the factor a is outside the logarithm: −pa ln(1 + |Δ|)",
)
def kerple(wrong: bool = False) -> list[Claim]:
    """The bias is −p ln(1 + a|Δ|), or −a|Δ|^p."""
    p, a, apart = 1.5, 0.5, APART[1:]
    claims = []
    for kind in ("log", "power"):
        scheme = relatives.Kerple(1, kind, p, a)
        found = scheme.bias([40], [40 - x for x in apart])[0, 0]
        if kind == "log":
            written = [
                -p * a * math.log(1 + x) if wrong else -p * math.log(1 + a * x)
                for x in apart
            ]
        else:
            written = [-((a * x) ** p) if wrong else -a * x**p for x in apart]
        claims.append(Claim(kind, off(found, written), 1e-6))
    return claims


@definition(
    "eq-relatives-fire",
    implements="ropebook.relatives.Fire",
    twin="m instead of max(m, L)",
)
def fire(wrong: bool = False) -> list[Claim]:
    """The input of f is ln(c|Δ| + 1)/ln(c max(m, L) + 1)."""
    scheme = relatives.Fire(1, length=10.0, c=0.5)
    found = scheme.share([4], [0, 3])[0]
    top = 4 if wrong else 10
    written = [math.log(0.5 * x + 1) / math.log(0.5 * top + 1) for x in (4, 1)]
    return [Claim("m = 4, L = 10", off(found, written), 1e-6)]


@definition(
    "eq-relatives-cope",
    implements="ropebook.relatives.CoPE",
    twin="the gate of the key itself is left out",
)
def cope(wrong: bool = False) -> list[Claim]:
    """p is the sum of σ(q·k/√d) over the keys from n to m. Between two whole positions, e is the weighted mean of the
    vectors at those positions."""
    dim, places = 3, 5
    scheme = relatives.CoPE(dim, places).double()
    scheme.table.data = random(places, dim, seed=1)
    q, k = random(2, 1, 6, dim)
    found = scheme.score(q, k, range(6), range(6))[0]
    root = math.sqrt(dim)
    claims = []
    for at, of in ((5, 1), (4, 4), (3, 0)):
        first = of + 1 if wrong else of
        gates = (
            1 / (1 + math.exp(-_dot(q[0, at], k[0, x]) / root))
            for x in range(first, at + 1)
        )
        place = min(sum(gates), places - 1)
        below = min(int(place), places - 2)
        share = place - below
        e = scheme.table.detach()
        e = (1 - share) * e[below] + share * e[below + 1]
        written = _dot(q[0, at], k[0, of] + e) / root
        off = abs(found[at, of].item() - written)
        claims.append(Claim(f"m = {at}, n = {of}", off, 1e-12))
    return claims
