"""Biases given by a formula: Sandwich, KERPLE and FIRE.

Sources: Chi et al. 2023 (Sandwich), equation (4) and section 5; Chi et al. 2022 (KERPLE), equation (4); Li et al. 2024
(FIRE), equations (6) and (8).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.relatives.scheme import Bias, distances
from ropebook.rope import Positions, as_positions, dim_and_base, in_float64
from ropebook.shapes import Float
from ropebook.sinusoidal import distance_kernel


class Sandwich(Bias):
    """Sandwich's bias is (K(Δ) − d/2)/(8h/H). This is the product of two sinusoids, shifted so that its largest value
    is 0, and divided by a number that increases from head to head.

    ``dim`` is the length d of the sinusoids. Nothing is learned.

    >>> Sandwich(2, dim=2).bias([3], [3, 2])[:, 0]  # cos 1 − 1, over 4 and over 8
    tensor([[ 0.0000, -0.1149],
            [ 0.0000, -0.0575]], dtype=torch.float64)
    """

    def __init__(self, n_heads: int, dim: int, base: float = 10000.0):
        super().__init__()
        self.n_heads = checks.integer("n_heads", n_heads, minimum=1)
        self.dim, self.base = dim_and_base(dim, base)

    def bias(
        self, m: Positions, n: Positions
    ) -> Float[Tensor, "heads queries keys"]:
        below = distance_kernel(distances(m, n), self.dim, self.base)
        below = below - self.dim / 2
        heads = torch.arange(1, self.n_heads + 1).to(below)
        return below / (8 * heads / self.n_heads)[:, None, None]


class Kerple(Bias):
    """KERPLE's bias is −p ln(1 + a|Δ|) if ``kind`` is "log", and −a|Δ|^p if it is "power". Both p > 0 and a > 0 are
    learned for each head; for "power", p ≤ 2.

    ``p`` and ``a`` are the initial values in each head. Values out of range are clamped.

    >>> Kerple(1).bias([3], [2, 1]).detach()
    tensor([[[-0.6931, -1.0986]]], dtype=torch.float64)
    """

    LEAST = 0.01

    def __init__(
        self, n_heads: int, kind: str = "log", p: float = 1.0, a: float = 1.0
    ):
        super().__init__()
        self.kind = checks.choice("kind", kind, ("log", "power"))
        checks.integer("n_heads", n_heads, minimum=1)
        most = 2 if kind == "power" else None
        p = checks.number("p", p, minimum=self.LEAST, maximum=most)
        a = checks.number("a", a, minimum=self.LEAST)
        self.p = nn.Parameter(torch.full((n_heads,), p))
        self.a = nn.Parameter(torch.full((n_heads,), a))

    def bias(
        self, m: Positions, n: Positions
    ) -> Float[Tensor, "heads queries keys"]:
        apart = distances(m, n).abs()
        most = 2 if self.kind == "power" else None
        p = self.p.to(apart)[:, None, None].clamp(self.LEAST, most)
        a = self.a.to(apart)[:, None, None].clamp(self.LEAST)
        if self.kind == "log":
            return -p * (1 + a * apart).log()
        # At distance 0, the power has no gradient with respect to p.
        power = apart.clamp(min=1e-9) ** p
        return torch.where(apart > 0, -a * power, 0.0)


class Fire(Bias):
    """FIRE's bias is f(ψ(Δ)/ψ(max(m, L))), where ψ(x) = ln(cx + 1) and f is a small network (1, width, heads). f, c and
    L are learned.

    For texts of any length, the input of f lies between 0 and 1. The bias depends on the distance and on the query's
    position. The scheme is meant for causal models. For keys after the query, it uses the absolute value of Δ.
    """

    def __init__(
        self, n_heads: int, length: float = 512.0, c: float = 0.1, width: int = 32
    ):
        super().__init__()
        checks.integer("n_heads", n_heads, minimum=1)
        self.length = nn.Parameter(
            torch.tensor(checks.number("length", length, above=0))
        )
        self.c = nn.Parameter(torch.tensor(checks.number("c", c, above=0)))
        self.network = nn.Sequential(
            nn.Linear(1, checks.integer("width", width, minimum=1)),
            nn.ReLU(),
            nn.Linear(width, n_heads),
        )

    def bias(
        self, m: Positions, n: Positions
    ) -> Float[Tensor, "heads queries keys"]:
        share = self.share(m, n).to(self.c.dtype)
        return self.network(share[..., None]).movedim(-1, 0)

    def share(self, m: Positions, n: Positions) -> Float[Tensor, "queries keys"]:
        """Return the input of f. For keys up to the query, it lies between 0 and 1."""
        apart = distances(m, n).abs()
        c, length = self.c.to(apart).abs(), self.length.to(apart).abs()
        farthest = torch.maximum(in_float64(as_positions("m", m)), length)
        return (c * apart + 1).log() / (c * farthest + 1).log()[:, None]
