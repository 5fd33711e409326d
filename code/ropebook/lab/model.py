"""A small language model over bytes that tells places apart in one of nine ways.

All are the same decoder-only transformer (`ropebook.rotary_attention.LlamaModel`) and have the same weights to begin with; they
differ in the position scheme alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ropebook import checks, relatives, results
from ropebook.attention import whole_mask
from ropebook.lab.data import VOCABULARY
from ropebook.lab.int8 import restored, rounded
from ropebook.relatives import BUCKETS
from ropebook.rotary_attention import KVCache, LlamaModel
from ropebook.shapes import Float, Int
from ropebook.sinusoidal import LearnedPositions, SinusoidalEncoding

WORD = 0.02
"""Standard deviation of the entries of a byte's vector at the start."""


@dataclass(frozen=True)
class Scheme:
    """``title``: what a page calls it. ``base``: RoPE's, or None where nothing is rotated."""

    title: str
    base: float | None = None


SCHEMES = {
    "learned": Scheme("learned"),
    "sinusoidal": Scheme("sinusoidal"),
    "rope-100": Scheme("RoPE, base 100", 100.0),
    "rope-10000": Scheme("RoPE, base 10⁴", 10_000.0),
    "rope-500000": Scheme("RoPE, base 5·10⁵", 500_000.0),
    "alibi": Scheme("ALiBi"),
    "none": Scheme("none"),
    "t5": Scheme("T5 buckets"),
    "alternate": Scheme("RoPE, none in turn", 10_000.0),
}
"""T5 buckets: with a learned bias for each range of distances (Raffel et al. 2020). In turn: with RoPE in every other layer, from the
first on."""


class LanguageModel(LlamaModel):
    """Bytes (batch, seq) to logits (batch, seq, 256), with a position scheme from `SCHEMES`.

    ``length`` is the trained length L: the learned scheme has no vector beyond it (``ValueError``). Sizes as in `LlamaModel`.
    ``seed`` draws the weights.

    >>> model = LanguageModel("rope-10000", length=256)
    >>> sum(weight.numel() for weight in model.parameters())
    836736
    """

    def __init__(
        self,
        scheme: str,
        length: int,
        *,
        dim: int = 128,
        hidden_dim: int = 352,
        n_layers: int = 4,
        n_heads: int = 4,
        seed: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        self.scheme = checks.choice("scheme", scheme, SCHEMES)
        self.length = checks.integer("length", length, minimum=1)
        base = SCHEMES[scheme].base
        super().__init__(
            VOCABULARY,
            dim,
            hidden_dim,
            n_layers,
            n_heads,
            tied=True,
            device=device,
            dtype=dtype,
            base=base or 1.0,
            layout="half",
            table_length=length,
        )
        self.n_heads = n_heads
        for at, layer in enumerate(self.layers):
            if base is None or (scheme == "alternate" and at % 2):
                layer.attention.rotary = _Unrotated()
        self.places = self.buckets = None
        if scheme == "t5":
            empty = torch.zeros(n_heads, BUCKETS, device=device, dtype=dtype)
            self.buckets = nn.Parameter(empty)
        if scheme == "learned":
            self.places = LearnedPositions(dim, length, std=WORD).to(device, dtype)
        elif scheme == "sinusoidal":
            self.places = SinusoidalEncoding(dim)
        self.reset_parameters(seed)

    @torch.no_grad()
    def reset_parameters(self, seed: int) -> None:
        """Fresh weights, drawn in float32 on the CPU, so that they are the same for every scheme, dtype and device."""
        draws = torch.Generator().manual_seed(checks.integer("seed", seed))
        into_stream = 1 / math.sqrt(2 * len(self.layers))
        for name, weight in self.named_parameters():
            if weight.dim() < 2:
                weight.fill_(1)
                continue
            if name == "buckets":  # so that it begins as a model without positions
                weight.zero_()
                continue
            std = weight.shape[1] ** -0.5
            if name.startswith(("embedding", "places")):
                std = WORD
            elif "out_proj" in name or "down_proj" in name:
                std *= into_stream
            weight.copy_(torch.randn(weight.shape, generator=draws) * std)

    def embed(
        self,
        tokens: Int[Tensor, "batch seq"],
        positions: Tensor | None,
        offset: int,
    ) -> Float[Tensor, "batch seq dim"]:
        """The bytes' vectors, with their place added where the scheme is one that adds."""
        x = super().embed(tokens, positions, offset)
        if self.places is None:
            return x
        if positions is None:
            positions = torch.arange(
                offset, offset + tokens.shape[1], device=x.device
            )
        if self.scheme == "learned":
            return self.places(x, positions)
        # the encoding's entries have mean square ½, the words' WORD²: as large as they are
        size = WORD * math.sqrt(2)
        return self.places(x / size, positions) * size

    @property
    def has_bias(self) -> bool:
        """Whether the scheme adds a bias to the scores."""
        return self.scheme in ("alibi", "t5")

    def forward(
        self,
        tokens: Int[Tensor, "batch seq"],
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        caches: Sequence[KVCache] | None = None,
    ) -> Float[Tensor, "batch seq vocabulary"]:
        """As `LlamaModel.forward`. ALiBi and T5 have a bias on the scores: it goes where a mask does, and into the one that is given.

        Both count distances in the row. So their ``positions`` must count there too, one more from byte to byte; where a
        mask keeps texts apart each may start at 0. ``ValueError`` for others.
        """
        if self.has_bias:
            self._check_tokens(tokens)
            offset = caches[0].length if caches else 0
            if positions is not None:
                _check_counting(positions, tokens.shape[1], offset, mask)
            mask = self._biased(mask, tokens, offset)
        return super().forward(tokens, positions, mask, caches)

    def _biased(self, mask: Tensor | None, tokens: Tensor, offset: int) -> Tensor:
        """The scheme's bias, and the mask, boolean or added, in one."""
        batch, seq_len = tokens.shape
        if self.scheme == "t5":
            bias = t5_bias(self.buckets, seq_len, offset)
        else:
            bias = alibi_bias(self.n_heads, seq_len, offset, tokens.device)
            bias = bias.to(self.embedding.weight.dtype)
        if mask is None:
            return bias
        shape = (batch, self.n_heads, seq_len, offset + seq_len)
        mask = whole_mask(mask, False, shape, tokens.device)
        if mask.dtype == torch.bool:
            return bias.masked_fill(~mask, -math.inf)
        return bias + mask


SHIPPED = "rope-10000-0-3200"
"""The trained model that pages and notebooks carry: RoPE with base 10⁴, seed 0, 3,200 steps."""


def pretrained(name: str = SHIPPED, *, int8: bool = False) -> LanguageModel:
    """A trained model whose weights lie in results/trials, ready to be tried.

    ``int8``: with weights rounded to one byte each, as notebooks carry them, so that a notebook says what its page says; that
    costs `ropebook.lab.int8.COST` bits per byte. A notebook has no others. ``FileNotFoundError`` if there are none of this name.
    """
    weights = results.find(name, "safetensors").read_bytes()
    return of_weights(weights, results.load(name)["run"], int8=int8)


def of_weights(
    weights: bytes, run: Mapping[str, object], *, int8: bool = False
) -> LanguageModel:
    """The model of a safetensors file without the output layer, which is the embedding; float32, whatever is stored.

    ``run``: what was trained, with "scheme", "length" and the sizes. ``int8``: as in `pretrained`.
    """
    from safetensors.torch import load  # here: only this needs it

    stored = load(weights)
    stored = restored(rounded(stored) if int8 else stored)
    stored = {name: weight.float() for name, weight in stored.items()}
    sizes = {key: run[key] for key in ("dim", "hidden_dim", "n_layers", "n_heads")}
    model = LanguageModel(run["scheme"], run["length"], **sizes)
    model.load_state_dict(stored | {"lm_head.weight": stored["embedding.weight"]})
    return model.eval()


class _Unrotated(nn.Module):
    """In the place of a RotaryEmbedding: queries and keys as they are."""

    def forward(
        self,
        q: Tensor,
        k: Tensor,
        positions: Tensor | None = None,
        *,
        offset: int = 0,
    ) -> tuple[Tensor, Tensor]:
        return q, k


def _check_counting(
    positions: Tensor, seq_len: int, offset: int, mask: Tensor | None
) -> None:
    if not isinstance(positions, Tensor) or positions.shape[-1:] != (seq_len,):
        counting = False
    elif mask is None:
        places = torch.arange(offset, offset + seq_len, device=positions.device)
        counting = (positions == places).all()
    else:
        counting = ((positions.diff() == 1) | (positions[..., 1:] == 0)).all()
    if not counting:
        raise ValueError(
            f"positions must count the row's bytes from {offset} on, or with a mask those of each text, got {positions!r}"
        )


def alibi_bias(
    n_heads: int, q_len: int, offset: int = 0, device: torch.device | None = None
) -> Float[Tensor, "heads q_len k_len"]:
    """−slope_h (m − n), as `ropebook.relatives.ALiBi` has it, in a row: (n_heads, q_len, offset + q_len), float32.

    The queries are the last ``q_len`` of the row. ``n_heads`` may be any number.

    >>> alibi_bias(2, 2)[:, 1]
    tensor([[-0.0625,  0.0000],
            [-0.0039,  0.0000]])
    """
    keys = _row(q_len, offset, device)
    slopes = relatives.alibi_slopes(n_heads).float().to(device)
    return slopes[:, None, None] * (keys - keys[offset:, None])


def t5_bias(
    buckets: Float[Tensor, "heads ranges"], q_len: int, offset: int = 0
) -> Float[Tensor, "heads q_len k_len"]:
    """`ropebook.relatives.t5_bias` in a row, from ``buckets`` (n_heads, ranges): (n_heads, q_len, offset + q_len).

    Keys after the query have the bias of distance 0. The queries are the last ``q_len`` of the row.
    """
    keys = _row(q_len, offset, buckets.device)
    return relatives.t5_bias(buckets, keys[offset:, None] - keys)


def _row(q_len: int, offset: int, device: torch.device | None) -> Tensor:
    checks.integer("q_len", q_len, minimum=1)
    checks.integer("offset", offset, minimum=0)
    return torch.arange(offset + q_len, device=device)
