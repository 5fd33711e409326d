"""A trained model with a method from `ropebook.extrapolation` in every layer, not trained any further."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.attention import merge_heads
from ropebook.efficient import RotaryEmbedding, apply_rotary, apply_rotary_qk
from ropebook.extrapolation import METHODS, Distances, ExtendedAttention, SelfExtend
from ropebook.lab.model import LanguageModel

# queries at a time, where the scores of a whole text would not fit
_PIECE = 256


def with_method(
    model: LanguageModel,
    method: str,
    options: Mapping[str, object] | None = None,
    *,
    arrival: bool = False,
) -> LanguageModel:
    """The model with a method in every layer, by name and options as `ropebook.extrapolation.make` takes them.

    A new model with the same weights, not copies of them; ``model`` stays as it is. "none" is the model itself.
    ``arrival`` is for methods that follow the length: every key and query is rotated with the frequencies of the length
    at which it came, p + 1 at position p, as in decoding with a cache of rotated keys; else a text has those of its whole
    length. ``ValueError`` for a model that does not rotate.

    >>> model = LanguageModel("rope-10000", length=8, dim=16, n_layers=1, n_heads=1)
    >>> longer = with_method(model, "linear", {"factor": 2.0})
    >>> longer.layers[0].attention.q_proj.weight is model.layers[0].attention.q_proj.weight
    True
    """
    checks.choice("method", method, ("none", *METHODS))
    form = METHODS[method].form if method in METHODS else None
    if arrival and not getattr(form, "follows_length", False):
        raise ValueError(
            f"arrival must be False for a method that does not follow the length, got True for {method!r}"
        )
    if method == "none":
        return model
    if not isinstance(model.layers[0].attention.rotary, RotaryEmbedding):
        raise ValueError(
            f"model must rotate its queries and keys, got scheme {model.scheme!r}"
        )
    weights = {id(weight): weight for weight in model.parameters()}
    longer = copy.deepcopy(model, weights)
    # also where a cache makes it wrong: that is measured
    kind, keep = ExtendedAttention, "rotated"
    if issubclass(form, Distances):
        kind, keep = _InPieces, "unrotated"
    how = {"method": method, "options": options or {}, "keep": keep}
    for layer in longer.layers:
        layer.attention = kind.of(layer.attention, **how)
    rotary = longer.layers[0].attention.rotary
    if arrival:
        rotary = _OnArrival(rotary)
    for layer in longer.layers:
        layer.attention.rotary = rotary
    return longer


class _OnArrival(nn.Module):
    """A RotaryEmbedding whose scaling is told p + 1 at every position p, whatever the length of the text."""

    def __init__(self, rotary: RotaryEmbedding):
        super().__init__()
        self.rotary = rotary
        self._rows: list[tuple[Tensor, Tensor]] = []

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        positions: Tensor | None = None,
        *,
        offset: int = 0,
    ) -> tuple[Tensor, Tensor]:
        if positions is not None:
            raise ValueError(
                "positions must be None where the length follows from them"
            )
        end = offset + q.shape[-2]
        for place in range(len(self._rows), end):
            at = torch.tensor([place])
            self._rows.append(
                self.rotary.cos_sin(at, torch.float64, length=place + 1)
            )
        wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        cos, sin = (
            torch.cat(column).to(q.device, wide)
            for column in zip(*self._rows[offset:end], strict=True)
        )
        return apply_rotary_qk(q, k, cos, sin, layout=self.rotary.layout)


class _InPieces(ExtendedAttention):
    """`ExtendedAttention` of a method that changes distances, without the (heads, T, T) tables where the text comes whole.

    A query has two sets of keys, far ones and near ones, of which it sees those that are so. They stand one behind the
    other in one call of torch's own attention: the far query and the near one side by side, and a key with zeros where
    the other kind would be. (Values get zeros too: only vectors of one width have the fast path.)
    """

    def forward(
        self,
        x: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = True,
        cache=None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        if (
            (positions, mask, cache) == (None, None, None)
            and is_causal
            and not return_weights
        ):
            return self._whole(x)
        return super().forward(
            x,
            positions,
            mask,
            is_causal=is_causal,
            cache=cache,
            return_weights=return_weights,
        )

    def _whole(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x)
        dim, window = self.head_dim, self.method.window
        places = torch.arange(q.shape[-2], device=x.device)
        at = places.double()
        far_q, far_k = (
            self._turned(y, to)
            for y, to in zip((q, k), self.method.far_positions(at, at), strict=True)
        )
        near_q, near_k = self._turned(q, at), self._turned(k, at)
        q = torch.cat((far_q, near_q), -1)
        far_k = nn.functional.pad(far_k, (0, dim))
        near_k = nn.functional.pad(near_k, (dim, 0))
        v = nn.functional.pad(v, (0, dim))
        heads = []
        for here in places.split(_PIECE):
            start, stop = int(here[0]), int(here[-1]) + 1
            far = slice(0, max(0, stop - window))
            near = slice(max(0, start - window + 1), stop)
            distance = here[:, None] - torch.cat((places[far], places[near]))
            is_far = torch.arange(distance.shape[1], device=x.device) < far.stop
            is_near = (distance >= 0) & (distance < window)
            seen = torch.where(is_far, distance >= window, is_near)
            heads.append(
                nn.functional.scaled_dot_product_attention(
                    q[..., start:stop, :],
                    torch.cat((far_k[..., far, :], near_k[..., near, :]), -2),
                    torch.cat((v[..., far, :], v[..., near, :]), -2),
                    attn_mask=seen,
                    scale=1 / math.sqrt(dim),
                    enable_gqa=self.n_kv_heads != self.n_heads,
                )
            )
        return self.out_proj(merge_heads(torch.cat(heads, -2)[..., :dim]))

    def _turned(self, x: Tensor, positions: Tensor) -> Tensor:
        wide = torch.float64 if x.dtype == torch.float64 else torch.float32
        cos, sin = self.rotary.cos_sin(positions, wide)
        return apply_rotary(x, cos, sin, layout=self.rotary.layout)


def method_options(
    method: str, factor: int | None, length: int = 256
) -> dict[str, object]:
    """Options that a method may be given: trained length L, wanted length ``factor``·L.

    >>> method_options("self_extend", 4)
    {'window': 64, 'group': 6}
    """
    if method == "none":
        return {}
    checks.choice("method", method, METHODS)
    if method == "rerope":
        return {"window": length // 2}
    if method == "self_extend":
        window = length // 4
        group = 1
        while SelfExtend(window, group).reach(length) < factor * length:
            group += 1
        return {"window": window, "group": group}
    known = {"factor": factor, "trained_length": length}
    wanted = {option.name for option in dataclasses.fields(METHODS[method].form)}
    return {
        key: value
        for key, value in known.items()
        if key in wanted and value is not None
    }
