"""A complete language model in the style of Llama.

Source: Touvron et al. 2023, *LLaMA*, section 2.2. Every layer has an RMSNorm before each of its parts, a SwiGLU, and
RoPE.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.efficient import RotaryEmbedding, convert_weight
from ropebook.rotary_attention.cache import KVCache
from ropebook.rotary_attention.layer import RotaryAttention
from ropebook.rotary_attention.packing import (
    left_padded,
    packed_mask,
    packed_positions,
)


class SwiGLU(nn.Module):
    """Computes W_down (silu(W_gate x) * W_up x): (…, dim) to (…, dim). Source: Shazeer 2020, *GLU Variants Improve
    Transformer*.

    >>> SwiGLU(dim=4, hidden_dim=6)(torch.zeros(1, 3, 4)).shape
    torch.Size([1, 3, 4])
    """

    def __init__(
        self,
        dim: int,
        hidden_dim: int,
        *,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        like = {"bias": bias, "device": device, "dtype": dtype}
        dim = checks.integer("dim", dim, minimum=1)
        hidden_dim = checks.integer("hidden_dim", hidden_dim, minimum=1)
        self.gate_proj = nn.Linear(dim, hidden_dim, **like)
        self.up_proj = nn.Linear(dim, hidden_dim, **like)
        self.down_proj = nn.Linear(hidden_dim, dim, **like)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(
            nn.functional.silu(self.gate_proj(x)) * self.up_proj(x)
        )


class LlamaLayer(nn.Module):
    """Computes x + attention(norm(x)), and then x + mlp(norm(x)): (batch, seq, dim) to (batch, seq, dim).

    Word vectors are never rotated. Each layer rotates the queries and keys that it computes from them.

    >>> layer = LlamaLayer(RotaryAttention(8, 2, layout="half"), SwiGLU(8, 16), norm_eps=1e-6)
    >>> layer(torch.zeros(1, 3, 8)).shape
    torch.Size([1, 3, 8])
    """

    def __init__(
        self,
        attention: RotaryAttention,
        mlp: SwiGLU,
        norm_eps: float,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        like = {"eps": norm_eps, "device": device, "dtype": dtype}
        self.attention_norm = nn.RMSNorm(attention.dim, **like)
        self.attention = attention
        self.mlp_norm = nn.RMSNorm(attention.dim, **like)
        self.mlp = mlp

    def forward(
        self,
        x: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        cache: KVCache | None = None,
    ) -> Tensor:
        x = x + self.attention(self.attention_norm(x), positions, mask, cache=cache)
        return x + self.mlp(self.mlp_norm(x))


class LlamaModel(nn.Module):
    """A Llama-style language model, which maps tokens (batch, seq) to logits (batch, seq, vocab_size).

    ``dim``: the width. ``hidden_dim``: the width inside the SwiGLU. ``tied``: whether the last projection shares the
    embedding's weights. ``attention_bias`` and ``mlp_bias`` switch on biases, as in Llama's config; both are off in the
    published models. ``head_dim`` and ``rotary`` mean the same as in :class:`RotaryAttention`. There is no dropout.

    >>> model = LlamaModel(10, dim=8, hidden_dim=16, n_layers=2, n_heads=2, layout="half")
    >>> model(torch.tensor([[1, 2, 3]])).shape
    torch.Size([1, 3, 10])
    """

    def __init__(
        self,
        vocab_size: int,
        dim: int,
        hidden_dim: int,
        n_layers: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        *,
        head_dim: int | None = None,
        norm_eps: float = 1e-6,
        attention_bias: bool = False,
        mlp_bias: bool = False,
        tied: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **rotary,
    ):
        super().__init__()
        like = {"device": device, "dtype": dtype}
        norm_eps = checks.number("norm_eps", norm_eps, minimum=0)
        self.vocab_size = checks.integer("vocab_size", vocab_size, minimum=1)
        heads = {"n_heads": n_heads, "n_kv_heads": n_kv_heads, "head_dim": head_dim}

        def layer() -> LlamaLayer:
            attention = RotaryAttention(
                dim, **heads, bias=attention_bias, **like, **rotary
            )
            mlp = SwiGLU(dim, hidden_dim, bias=mlp_bias, **like)
            return LlamaLayer(attention, mlp, norm_eps, **like)

        n_layers = checks.integer("n_layers", n_layers, minimum=1)
        self.layers = nn.ModuleList(layer() for _ in range(n_layers))
        for other in self.layers[1:]:  # all layers share one cos/sin table
            other.attention.rotary = self.layers[0].attention.rotary
        self.embedding = nn.Embedding(self.vocab_size, dim, **like)
        self.norm = nn.RMSNorm(dim, eps=norm_eps, **like)
        self.lm_head = nn.Linear(dim, self.vocab_size, bias=False, **like)
        if tied:
            self.lm_head.weight = self.embedding.weight

    def forward(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        caches: Sequence[KVCache] | None = None,
    ) -> Tensor:
        """Return the logits. ``positions`` and ``mask`` are passed to every layer (see :class:`RotaryAttention`).
        ``caches``: one for each layer, all of the same length (`new_caches`)."""
        self._check_tokens(tokens)
        if caches is None:
            caches = [None] * len(self.layers)
        else:
            self._check_caches(caches)
        offset = 0 if caches[0] is None else caches[0].length
        x = self.embed(tokens, positions, offset)
        with self._same_places():
            for layer, cache in zip(self.layers, caches, strict=True):
                x = layer(x, positions, mask, cache)
        return self.lm_head(self.norm(x))

    @contextlib.contextmanager
    def _same_places(self) -> Iterator[None]:
        """Return a context manager in which cosines and sines are computed only once for all layers. A compiler does
        that without our help."""
        with contextlib.ExitStack() as stack:
            if not torch.compiler.is_compiling():
                for rotary in {layer.attention.rotary for layer in self.layers}:
                    if isinstance(rotary, RotaryEmbedding):
                        stack.enter_context(rotary.keeping_tables())
            yield

    def _check_caches(self, caches: Sequence[KVCache]) -> None:
        if len(caches) != len(self.layers):
            raise ValueError(
                f"caches must be one for each of {len(self.layers)} layers, got {len(caches)}"
            )
        for i, cache in enumerate(caches):
            if not isinstance(cache, KVCache):
                raise TypeError(
                    f"caches[{i}] must be a KVCache, got {type(cache).__name__}"
                )
        places = [id(cache) for cache in caches]
        for i, place in enumerate(places):
            first = places.index(place)
            if first != i:
                raise ValueError(
                    f"caches must be different ones, as new_caches makes them, got caches[{first}] as caches[{i}] again"
                )
        lengths = [cache.length for cache in caches]
        if min(lengths) != max(lengths):
            raise ValueError(f"caches must hold equally many tokens, got {lengths}")

    def embed(
        self, tokens: Tensor, positions: Tensor | None, offset: int
    ) -> Tensor:
        """Map tokens (batch, seq) to vectors (batch, seq, dim). A word's vector doesn't contain its position; positions
        enter only in the layers. A subclass that adds positions to words overrides this method. ``offset`` is the
        number of cached tokens.
        """
        return self.embedding(tokens)

    def new_caches(self, max_len: int) -> list[KVCache]:
        """Make an empty cache with room for ``max_len`` tokens for every layer."""
        return [KVCache(max_len) for _ in self.layers]

    @torch.no_grad()
    def generate(
        self,
        tokens: Tensor,
        new_tokens: int,
        lengths: Sequence[int] | Tensor | None = None,
    ) -> Tensor:
        """Extend ``tokens`` (batch, seq) by ``new_tokens`` tokens, always choosing the most likely one: (batch, seq +
        new_tokens).

        ``lengths``: the prompts' lengths, at least 1; the prompts must then be padded on the left
        (:func:`left_padded`). The prompt goes through the model in a single pass. After that, only the newest token
        does, because the caches contain the keys and values of all earlier ones. If the frequencies depend on the
        length, no cache is valid, so the whole text goes through the model for each token, and all prompts must have
        the same length.
        """
        self._check_tokens(tokens)
        new_tokens = checks.integer("new_tokens", new_tokens, minimum=1)
        batch, seq_len = tokens.shape
        lengths = [seq_len] * batch if lengths is None else lengths
        segments = left_padded(lengths, seq_len, tokens.device)
        if len(segments) != batch:
            raise ValueError(
                f"lengths must be one for each of {batch} rows, got {len(segments)}"
            )
        empty = (segments[:, -1] == 0).nonzero()
        if len(empty):  # such a row contains only padding
            raise ValueError(
                f"lengths[{empty[0].item()}] must be an integer >= 1 and <= {seq_len}, got 0"
            )
        padded = bool((segments == 0).any())
        caches = None
        if not any(layer.attention.follows_length for layer in self.layers):
            caches = self.new_caches(seq_len + new_tokens - 1)
        step = tokens
        for _ in range(new_tokens):
            if caches is None:
                step = tokens
            new = step.shape[1]
            positions = packed_positions(segments)[:, -new:] if padded else None
            mask = packed_mask(segments, new) if padded else None
            step = self(step, positions, mask, caches)[:, -1:].argmax(-1)
            tokens = torch.cat((tokens, step), dim=1)
            segments = torch.cat((segments, segments[:, -1:]), dim=1)
        return tokens

    def _check_tokens(self, tokens: Tensor) -> None:
        if not isinstance(tokens, Tensor) or tokens.dtype not in (
            torch.int32,
            torch.int64,
        ):
            found = (
                tokens.dtype
                if isinstance(tokens, Tensor)
                else type(tokens).__name__
            )
            raise TypeError(
                f"tokens must be a tensor of int64 or int32, got {found}"
            )
        if tokens.dim() != 2 or tokens.numel() == 0:
            raise ValueError(
                f"tokens must be (batch, seq), neither of them 0, got {tuple(tokens.shape)}"
            )
        if checks.readable(tokens):
            checks.entries("tokens", tokens, 0, self.vocab_size - 1)

    @classmethod
    def from_transformers(
        cls,
        state_dict: Mapping[str, Tensor],
        config: object,
        layout: str = "half",
        **rotary,
    ) -> LlamaModel:
        """Make a model from the ``state_dict()`` and the ``config`` of transformers' ``LlamaForCausalLM``. The weights
        are copied.

        The layout of transformers is "half". For ``layout="interleaved"`` the rows of the query and key projections are
        reordered head by head, so that the scores, and therefore the logits, stay the same. ``rotary``: further options
        of ``RotaryEmbedding``.

        A config is refused if it asks for something this model can't do: another ``model_type`` or ``hidden_act``; a
        ``rope_type`` other than "default", or keys in ``rope_parameters`` that belong to another type, unless you pass
        ``scaling``; or a ``partial_rotary_factor`` below 1, unless you pass ``rotary_dim``.
        """
        checks.choice("config.model_type", config.model_type, ["llama"])
        checks.choice("config.hidden_act", config.hidden_act, ["silu"])
        rope = config.rope_parameters
        if rotary.get("scaling") is None:
            checks.choice(
                "config.rope_parameters['rope_type']",
                rope["rope_type"],
                ["default"],
            )
            known = ("rope_type", "type", "rope_theta", "partial_rotary_factor")
            unknown = [
                key for key in rope if key not in known and rope[key] is not None
            ]
            if unknown:
                raise ValueError(
                    f"the keys of config.rope_parameters must be among {known}, got {unknown}"
                )
        fraction = rope.get("partial_rotary_factor")
        if fraction not in (None, 1) and "rotary_dim" not in rotary:
            raise ValueError(
                "config.rope_parameters['partial_rotary_factor'] must be 1 where no rotary_dim is given, "
                f"got {fraction}"
            )
        state = {_our_name(name): weight for name, weight in state_dict.items()}
        if config.tie_word_embeddings:
            state["lm_head.weight"] = state["embedding.weight"]
        like = state["embedding.weight"]
        model = cls(
            config.vocab_size,
            config.hidden_size,
            config.intermediate_size,
            config.num_hidden_layers,
            config.num_attention_heads,
            config.num_key_value_heads,
            head_dim=config.head_dim,
            norm_eps=config.rms_norm_eps,
            attention_bias=config.attention_bias,
            mlp_bias=config.mlp_bias,
            tied=config.tie_word_embeddings,
            base=rope["rope_theta"],
            layout=layout,
            device=like.device,
            dtype=like.dtype,
            **rotary,
        )
        model.load_state_dict(state)
        if layout == "interleaved":
            model._reorder_rows(layout)
        return model

    @torch.no_grad()
    def _reorder_rows(self, layout: str) -> None:
        for layer in self.layers:
            attention = layer.attention
            sizes = attention.head_dim, layout, attention.rotary.rotary_dim
            for p in attention.q_proj.parameters():
                p.copy_(convert_weight(p, attention.n_heads, *sizes))
            for p in attention.k_proj.parameters():
                p.copy_(convert_weight(p, attention.n_kv_heads, *sizes))


_OUR_NAMES = {
    "model.": "",
    "embed_tokens": "embedding",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "mlp_norm",
    "self_attn": "attention",
    "o_proj": "out_proj",
}


def _our_name(name: str) -> str:
    """Return this model's name for a weight of transformers' Llama.

    >>> _our_name("model.layers.0.self_attn.o_proj.weight")
    'layers.0.attention.out_proj.weight'
    """
    for theirs, ours in _OUR_NAMES.items():
        name = name.replace(theirs, ours)
    return name
