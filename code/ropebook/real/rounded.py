"""Build a model whose rotation is computed with one step in a low-precision type.

Everything else stays in the model's own type, so any difference in its losses comes
from that step. Nothing is trained.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ropebook.efficient import RotaryEmbedding, apply_rotary_qk
from ropebook.lab.frequencies import rotary_of
from ropebook.precision import rounded_cos_sin
from ropebook.real.reading import sharing_weights
from ropebook.rotary_attention import LlamaModel


def with_rounding(
    model: LlamaModel, rounded: str | None, dtype: torch.dtype
) -> LlamaModel:
    """Return a new model with the same weights that rounds the positions, the
    frequencies, the angles, or the table of cosines and sines to ``dtype``.

    ``rounded`` is as in `ropebook.precision.rounded_cos_sin`; with None, every step is
    done in float64. The result has the type of the queries. The model reads only whole
    texts. ``ValueError`` if its rotation already uses a method.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=1, n_heads=2, layout="half")
    >>> tokens = torch.tensor([[1, 2, 3, 4]])
    >>> with_rounding(model, None, torch.float64)(tokens).allclose(model(tokens), atol=1e-6)
    True
    """
    rotary = _Rounded(rotary_of(model), rounded, dtype)
    other = sharing_weights(model)
    for layer in other.layers:
        layer.attention.rotary = rotary
    return other


class _Rounded(nn.Module):
    """A rotation from rounded tables, which are computed once for each length."""

    def __init__(
        self, rotary: RotaryEmbedding, rounded: str | None, dtype: torch.dtype
    ):
        super().__init__()
        self.rotary, self.rounded, self.dtype = rotary, rounded, dtype
        self._tables: tuple[Tensor, Tensor] | None = None

    def forward(
        self, q: Tensor, k: Tensor, positions=None, *, offset: int = 0
    ) -> tuple[Tensor, Tensor]:
        if positions is not None or offset:
            raise ValueError(
                "positions must be None and offset 0 where the rotation is rounded"
            )
        length = q.shape[-2]
        if self._tables is None or len(self._tables[0]) != length:
            cos, sin = rounded_cos_sin(
                torch.arange(length, device=q.device),
                self.rotary.dim,
                self.rotary.base,
                dtype=self.dtype,
                rounded=self.rounded,
            )
            self._tables = cos.to(q.dtype), sin.to(q.dtype)
        return apply_rotary_qk(q, k, *self._tables, layout=self.rotary.layout)
