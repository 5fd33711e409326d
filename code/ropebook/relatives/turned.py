"""Schemes that multiply instead of adding. RoPE rotates queries and keys; xPos also makes their product smaller as the
distance grows.

Source of xPos: Sun et al. 2023, *A Length-Extrapolatable Transformer*, section 3, and its published code.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ropebook import checks
from ropebook.efficient import apply_rotary
from ropebook.relatives.scheme import Parts, Scheme
from ropebook.rope import cos_sin, dim_and_base, in_float64, inv_freq, wide
from ropebook.shapes import Float


class Rope(Scheme):
    """RoPE: rotates each pair by mθ_i, in the interleaved layout (Su et al. 2021)."""

    def __init__(self, dim: int, base: float = 10000.0):
        super().__init__()
        self.dim, self.base = dim_and_base(dim, base)

    def turned(self, x: Tensor, places: Tensor) -> Tensor:
        """Rotate each vector of x (…, seq, dim) by its position (seq,)."""
        tables = cos_sin(places, inv_freq(self.dim, self.base), wide(x.dtype))
        return apply_rotary(x, *tables, layout="interleaved")

    def parts(self, q: Tensor, k: Tensor, m: Tensor, n: Tensor) -> Parts:
        if q.shape[-1] != self.dim:
            raise ValueError(
                f"q must have dim {self.dim}, as the scheme has, got {q.shape[-1]}"
            )
        return Parts(self.turned(q, m), self.turned(k, n), None)


class XPos(Rope):
    """xPos: RoPE that also multiplies pair i of the query by ζ_i^(m/512) and pair i of the key by ζ_i^(−n/512), where
    ζ_i = (2i/d + 0.4)/1.4.

    The two factors multiply to ζ_i^(Δ/512), which is less than 1 for keys before the query and more than 1 for keys
    after it. The scheme is therefore meant for decoders. The key's factor alone grows with the position, so numbers
    overflow beyond a limit (`reach`).
    """

    SCALE, GAMMA = 512, 0.4

    def zeta(self) -> Float[Tensor, " pairs"]:
        """Return the factors ζ_i, (d/2,), float64, in increasing order from 0.4/1.4."""
        share = torch.arange(0, self.dim, 2, dtype=torch.float64) / self.dim
        return (share + self.GAMMA) / (1 + self.GAMMA)

    def scaled(self, x: Tensor, powers: Tensor) -> Tensor:
        """Multiply pair i of each vector of x (…, seq, dim) by ζ_i^power. ``powers`` (seq,) has one power for each
        vector."""
        factors = self.zeta().to(powers.device) ** powers[:, None]
        return x * factors.repeat_interleave(2, -1).to(x)

    def parts(self, q: Tensor, k: Tensor, m: Tensor, n: Tensor) -> Parts:
        q, k, _ = super().parts(q, k, m, n)
        m, n = (in_float64(places) / self.SCALE for places in (m, n))
        return Parts(self.scaled(q, m), self.scaled(k, -n), None)

    def reach(self, dtype: torch.dtype) -> int:
        """Return the last position at which the largest factor, the first pair's ζ_0^(−n/512), does not overflow in
        this type.

        >>> XPos(64).reach(torch.float16), XPos(64).reach(torch.float32)
        (4532, 36260)
        """
        most = torch.tensor(torch.finfo(dtype).max, dtype=torch.float64).log()
        return int(-self.SCALE * most / self.zeta()[0].log())


def in_turn(schemes: Sequence[Scheme], n_layers: int) -> list[Scheme]:
    """Return the scheme of each layer, by repeating the given schemes in order until every layer has one.

    With ``[Rope(64), Nothing()]``, every other layer has no positions, so it finds content equally well at any
    distance.

    >>> [type(one).__name__ for one in in_turn([Rope(64), Rope(64), XPos(64)], 4)]
    ['Rope', 'Rope', 'XPos', 'Rope']
    """
    checks.integer("n_layers", n_layers, minimum=1)
    if not schemes:
        raise ValueError("schemes must hold at least one scheme, got none")
    return [schemes[layer % len(schemes)] for layer in range(n_layers)]
