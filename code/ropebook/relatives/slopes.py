"""ALiBi, which subtracts an amount proportional to the distance from every score, with a different slope in each head.

Source: Press et al. 2022, *Train Short, Test Long*, section 3. For numbers of heads that are not powers of two, we
follow the paper's published code.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import checks
from ropebook.relatives.scheme import Bias
from ropebook.rope import Positions
from ropebook.shapes import Float
from ropebook.sinusoidal import relative_positions


def alibi_slopes(n_heads: int) -> Float[Tensor, " heads"]:
    """Return the slopes of H heads, float64. If H is a power of two, they are 2^(−8h/H), h = 1 … H. Otherwise, let P be
    the largest power of two below H. The slopes for P heads come first. They are followed by every other slope for 2P
    heads, starting with the first one, until there are H slopes.

    >>> alibi_slopes(4).tolist()
    [0.25, 0.0625, 0.015625, 0.00390625]
    >>> alibi_slopes(3).tolist()
    [0.0625, 0.00390625, 0.25]
    """
    power = 1 << (checks.integer("n_heads", n_heads, minimum=1).bit_length() - 1)
    more = _slopes(2 * power)[::2][: n_heads - power]
    return torch.cat((_slopes(power), more))


def _slopes(power: int) -> Tensor:
    heads = torch.arange(1, power + 1, dtype=torch.float64)
    return 2.0 ** (-8 * heads / power)


class ALiBi(Bias):
    """ALiBi's bias is ``−slope_h |m − n|``. With ``signed``, it is −slope_h (m − n), the form used for decoders, which
    raises scores where n > m. The bias is float64 unless the module is cast to another type.

    >>> ALiBi(2).bias([1], [0, 1, 2])[0]
    tensor([[-0.0625,  0.0000, -0.0625]], dtype=torch.float64)
    >>> ALiBi(2, signed=True).bias([1], [0, 1, 2])[0]
    tensor([[-0.0625,  0.0000,  0.0625]], dtype=torch.float64)
    """

    def __init__(self, n_heads: int, *, signed: bool = False):
        super().__init__()
        self.register_buffer("slopes", alibi_slopes(n_heads), persistent=False)
        self.signed = signed

    def bias(
        self, m: Positions, n: Positions
    ) -> Float[Tensor, "heads queries keys"]:
        apart = relative_positions(m, n)
        # We write 0 − x because −x would turn 0 into −0.
        apart = 0 - (apart if self.signed else apart.abs())
        slopes = self.slopes.to(apart.device)[:, None, None]
        return slopes * apart.to(slopes)
