"""Multi-head attention with RoPE, and what lives on it: a key-value cache, packed and padded rows, a whole Llama.

Tensors are (batch, heads, seq, head_dim), masks are boolean with **True where a query may attend to a key**, as in
chapter *Attention*. Positions are integers counted from 0: of shape (seq,) for all rows alike, or (batch, seq).

Sources: Su et al. 2021, *RoFormer*, section 3.2.2 and equation (34): queries and keys are rotated, values are not.
Touvron et al. 2023, *LLaMA*, section 2.2: RMSNorm before each part of a layer, SwiGLU, RoPE in every layer. Grouped
heads: Ainslie et al. 2023, *GQA*.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.attention import (
    MultiHeadAttention,
    merge_heads,
    padding_mask,
    scaled_dot_product_attention,
    whole_mask,
)
from ropebook.efficient import RotaryEmbedding, convert_weight

# --- The layer -------------------------------------------------------------------------------------------------------


class RotaryAttention(MultiHeadAttention):
    """Self-attention in which every head rotates its queries and keys by their positions; values stay as they are.

    ``dim``: width of the model. ``n_heads``, ``n_kv_heads`` (default ``n_heads``, a divisor of it): heads of the
    queries, and of the keys and values. ``head_dim`` (default dim / n_heads): even. ``bias`` is for all four
    projections. ``rotary``: options of :class:`ropebook.efficient.RotaryEmbedding`, such as ``base``, ``layout``,
    ``rotary_dim`` and ``scaling``; all heads share them, and d is ``head_dim``.

    >>> layer = RotaryAttention(dim=16, n_heads=4, n_kv_heads=2, base=500000.0)
    >>> layer(torch.zeros(1, 5, 16)).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        *,
        head_dim: int | None = None,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **rotary,
    ):
        super().__init__(
            dim,
            n_heads,
            n_kv_heads,
            head_dim=head_dim,
            bias=bias,
            fused=True,
            device=device,
            dtype=dtype,
        )
        self.rotary = RotaryEmbedding(
            checks.even("head_dim", self.head_dim), **rotary
        )

    @property
    def follows_length(self) -> bool:
        """Whether the rotation changes as the text grows, so that rotated keys cannot be kept."""
        scaling = getattr(self.rotary, "scaling", None)
        return getattr(scaling, "follows_length", False)

    def project(
        self, x: Tensor, positions: Tensor | None = None, offset: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries and keys, rotated, and values of ``x``: (batch, heads, seq, head_dim) each."""
        q, k, v = super().project(x)
        q, k = self.rotary(q, k, positions, offset=offset)
        return q, k, v

    def forward(
        self,
        x: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = True,
        cache: KVCache | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """(batch, seq, dim) to (batch, seq, dim), or with ``return_weights`` the pair (output, weights).

        ``positions``: (seq,) or (batch, seq); by default the tokens follow those in ``cache``, or start at 0.
        ``mask`` and ``is_causal``: as in :func:`ropebook.attention.attention_weights`; the keys are those in the cache
        and then the new ones, so ``mask`` must broadcast to (batch, n_heads, seq, cached + seq). The order in the row
        is what is causal, whatever the positions are. Weights have that shape, too.

        ``ValueError`` for a ``cache`` where the frequencies follow the length: see :class:`KVCache`.

        Computed by ``torch.nn.functional.scaled_dot_product_attention``, which never has the weights; where they are
        asked for, by the book's own function.
        """
        checks.floating("x", x)
        if x.dim() != 3 or x.shape[-1] != self.dim:
            raise ValueError(
                f"x must be (batch, seq, {self.dim}), got {tuple(x.shape)}"
            )
        batch, seq_len, _ = x.shape
        cached = 0 if cache is None else cache.length
        if seq_len == 1:
            # one new token may see all there is
            is_causal = False
        if mask is not None or cached:
            # torch's own is_causal takes no mask beside it, and puts the first query at the first key
            shape = (batch, self.n_heads, seq_len, cached + seq_len)
            mask = whole_mask(mask, is_causal, shape, x.device)
            is_causal = False
        offset = cached if positions is None else 0
        # ExtendedAttention has the attribute; "rotated" there is safe, or was asked for by name
        if cache is not None and getattr(self, "keep", None) != "rotated":
            scaling = getattr(self.rotary, "scaling", None)
            if self.follows_length:
                raise ValueError(
                    "cache must be None where the frequencies follow the length, for its keys keep those of their time; "
                    f"got a cache with {scaling!r}: fix the frequencies, or keep unrotated keys (ExtendedAttention)"
                )
            if scaling is not None and positions is None:
                # a tensor of positions tells a function that does not say so of itself no length to follow, either
                positions = torch.arange(cached, cached + seq_len, device=x.device)
                offset = 0
        q, k, v = self.project(x, positions, offset)
        if cache is not None:
            k, v = cache.append(k, v)
        if return_weights:
            heads, weights = scaled_dot_product_attention(
                q, k, v, mask, is_causal=is_causal, return_weights=True
            )
            return self.out_proj(merge_heads(heads)), weights
        return self.out_proj(merge_heads(self._fused(q, k, v, mask, is_causal)))


class KVCache:
    """The keys, already rotated, and the values of all tokens so far, for one layer: memory for ``max_len`` tokens.

    A key is rotated once, by its own position, and never again: the score depends on the distance only, and the next
    query brings its own rotation. Frequencies that change while the text grows, as dynamic scaling has them, break
    this: the keys in the cache keep the old ones. Layers refuse them with a cache; only
    :class:`ropebook.extrapolation.ExtendedAttention` takes them, with keys kept unrotated, or where "rotated" ones were
    asked for by name.

    The memory is taken when the first keys come, in their batch size, dtype and device. It is overwritten in place, so
    a cache is for inference: under ``torch.no_grad()``.

    >>> layer, cache = RotaryAttention(dim=8, n_heads=2), KVCache(max_len=6)
    >>> with torch.no_grad():
    ...     prefill = layer(torch.zeros(1, 5, 8), cache=cache)
    ...     token = layer(torch.zeros(1, 1, 8), cache=cache)
    >>> token.shape, cache.length
    (torch.Size([1, 1, 8]), 6)
    """

    def __init__(self, max_len: int):
        self.max_len = checks.integer("max_len", max_len, minimum=1)
        self.length = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Keep ``k`` and ``v``, (batch, n_kv_heads, new, head_dim) each; return those of all tokens so far.

        ``ValueError`` if they do not fit what is there, in shape, dtype or device, or if there is no room for them;
        the cache is then as it was.
        """
        self._check(k, v)
        if self.length == 0:
            batch, heads, _, head_dim = k.shape
            self.keys = k.new_empty(batch, heads, self.max_len, head_dim)
            self.values = torch.empty_like(self.keys)
        start, self.length = self.length, self.length + k.shape[2]
        self.keys[:, :, start : self.length] = k
        self.values[:, :, start : self.length] = v
        return self.keys[:, :, : self.length], self.values[:, :, : self.length]

    def _check(self, k: Tensor, v: Tensor) -> None:
        if checks.floating("k", k).dim() != 4:
            raise ValueError(
                f"k must be (batch, heads, seq, head_dim), got {tuple(k.shape)}"
            )
        if k.requires_grad or v.requires_grad:
            raise ValueError(
                "k and v must not require gradients, for a cache is overwritten in place: use torch.no_grad()"
            )
        _check_same("v", v, "k", k, k.shape)
        if self.length:
            batch, heads, _, head_dim = self.keys.shape
            _check_same(
                "k", k, "the cache", self.keys, (batch, heads, k.shape[2], head_dim)
            )
        if self.length + k.shape[2] > self.max_len:
            raise ValueError(
                f"the cache must have room for {k.shape[2]} more tokens, "
                f"got {self.length} of max_len = {self.max_len} taken"
            )


def _check_same(
    name: str, x: Tensor, other_name: str, other: Tensor, shape: Sequence[int]
) -> None:
    """``x`` has the ``shape`` that ``other`` asks for, and ``other``'s dtype and device."""
    found, wanted = (
        (tuple(s), t.dtype, str(t.device))
        for s, t in ((x.shape, x), (shape, other))
    )
    if found != wanted:
        raise ValueError(f"{name} must fit {other_name}, {wanted}, got {found}")


# --- Several texts in one row ----------------------------------------------------------------------------------------


def packed_positions(segment_ids: Tensor) -> Tensor:
    """Positions that start at 0 in every text of a row; (…, seq) in and out, int64.

    ``segment_ids``: integers; a run of equal ones is a text.

    >>> packed_positions(torch.tensor([7, 7, 7, 8, 8]))
    tensor([0, 1, 2, 0, 1])
    """
    runs = _runs(segment_ids)
    places = torch.arange(runs.shape[-1], device=runs.device).expand_as(runs)
    starts = runs.diff(dim=-1, prepend=runs[..., :1] - 1).bool()
    return places - (places * starts).cummax(-1).values


def packed_mask(segment_ids: Tensor, q_len: int | None = None) -> Tensor:
    """Boolean (…, 1, q_len, seq): True where query and key are of the same text. The axis of size 1 is for the heads.

    ``segment_ids`` (…, seq) as in :func:`packed_positions`. The queries are the last ``q_len`` tokens of the row
    (default: all of it), as they are when the others are cached. ``is_causal`` of the layer does the rest.

    >>> packed_mask(torch.tensor([7, 7, 8])).int().squeeze()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [0, 0, 1]], dtype=torch.int32)
    """
    runs = _runs(segment_ids)
    seq_len = runs.shape[-1]
    q_len = seq_len if q_len is None else checks.integer("q_len", q_len, 1, seq_len)
    queries = runs[..., seq_len - q_len :]
    return (queries[..., :, None] == runs[..., None, :]).unsqueeze(-3)


def left_padded(
    lengths: Sequence[int] | Tensor,
    seq_len: int,
    device: torch.device | str | None = None,
) -> Tensor:
    """Segments (batch, seq_len) of texts that end at the row's end: 0 for the padding before them, 1 for the text.

    Padding is one more text in the row: packed as such it changes nothing for the text, and none of its own queries is
    left with nothing to see.

    >>> segments = left_padded([1, 3], 3)
    >>> segments
    tensor([[0, 0, 1],
            [1, 1, 1]])
    >>> packed_positions(segments)
    tensor([[0, 1, 0],
            [0, 1, 2]])
    """
    return padding_mask(lengths, seq_len, device)[:, 0, 0].flip(-1).long()


def _runs(segment_ids: Tensor) -> Tensor:
    """The number of the run that each entry belongs to: equal ids that do not touch are two texts, not one."""
    if (
        not isinstance(segment_ids, Tensor)
        or segment_ids.is_floating_point()
        or segment_ids.dtype == torch.bool
    ):
        found = (
            segment_ids.dtype
            if isinstance(segment_ids, Tensor)
            else type(segment_ids).__name__
        )
        raise TypeError(f"segment_ids must be a tensor of integers, got {found}")
    if segment_ids.dim() == 0 or segment_ids.shape[-1] == 0:
        raise ValueError(
            f"segment_ids must be (…, seq) with seq >= 1, got {tuple(segment_ids.shape)}"
        )
    changes = segment_ids[..., 1:] != segment_ids[..., :-1]
    return nn.functional.pad(changes.long().cumsum(-1), (1, 0))


# --- A whole Llama ---------------------------------------------------------------------------------------------------


class SwiGLU(nn.Module):
    """W_down (silu(W_gate x) * W_up x): (…, dim) to (…, dim). Source: Shazeer 2020, *GLU Variants Improve Transformer*.

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
    """x + attention(norm(x)), then x + mlp(norm(x)): (batch, seq, dim) to (batch, seq, dim).

    Word vectors are never rotated: each layer rotates the queries and keys that it makes of them.

    >>> layer = LlamaLayer(RotaryAttention(dim=8, n_heads=2), SwiGLU(8, 16), norm_eps=1e-6)
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
    """A language model of the Llama kind: tokens (batch, seq) to logits (batch, seq, vocab_size).

    ``dim``: width; ``hidden_dim``: width inside the SwiGLU; ``tied``: the last projection has the embedding's weights.
    ``attention_bias`` and ``mlp_bias`` are Llama's switches, both off in the published models; ``head_dim`` and
    ``rotary`` are those of :class:`RotaryAttention`. No dropout.

    >>> model = LlamaModel(vocab_size=10, dim=8, hidden_dim=16, n_layers=2, n_heads=2)
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
        for other in self.layers[1:]:  # one table of cosines and sines serves all
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
        """``positions`` and ``mask`` go to every layer, see :class:`RotaryAttention`; ``caches``: one per layer, all of
        one length (`new_caches`)."""
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
        """Cosines and sines once for all layers. A compiler finds by itself what is computed twice."""
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
        """(batch, seq) to (batch, seq, dim). A word is embedded without its position: that enters in the layers alone.

        A subclass that adds positions to words does it here; ``offset`` tokens are cached.
        """
        return self.embedding(tokens)

    def new_caches(self, max_len: int) -> list[KVCache]:
        """An empty cache for every layer, with room for ``max_len`` tokens."""
        return [KVCache(max_len) for _ in self.layers]

    @torch.no_grad()
    def generate(
        self,
        tokens: Tensor,
        new_tokens: int,
        lengths: Sequence[int] | Tensor | None = None,
    ) -> Tensor:
        """``tokens`` (batch, seq) and ``new_tokens`` more, each the likeliest: (batch, seq + new_tokens).

        ``lengths``: of the prompts, 1 at least, which then end at the row's end (:func:`left_padded`). The prompt goes through the
        model once, and after it one token at a time: all else is in the caches. Where the frequencies follow the length, no
        cache can serve: the whole text goes through the model for each token, and all prompts must be of one length.
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
        if len(empty):  # there would be padding to go on from
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
        """The model of transformers' ``LlamaForCausalLM``: its ``state_dict()``, copied, and its ``config``.

        There the layout is "half". For ``layout="interleaved"`` the rows of the query and key projections are put in
        the other order, head by head: the scores, and with them the logits, stay as they are.
        ``rotary``: further options of ``RotaryEmbedding``. A config that asks for what this model does not do is
        refused: another ``model_type`` or ``hidden_act``, or, where no ``scaling`` is given (or None), another ``rope_type``
        than "default" or keys of ``rope_parameters`` that go with another; and a ``partial_rotary_factor`` below 1 where
        no ``rotary_dim`` is given.
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
    """The name that a weight of transformers' Llama has here.

    >>> _our_name("model.layers.0.self_attn.o_proj.weight")
    'layers.0.attention.out_proj.weight'
    """
    for theirs, ours in _OUR_NAMES.items():
        name = name.replace(theirs, ours)
    return name


# --- What it says about RoPE -----------------------------------------------------------------------------------------


def rotations_per_token(
    n_layers: int, n_heads: int, n_kv_heads: int, rotary_dim: int
) -> int:
    """How many pairs of numbers one token has turned: rotary_dim/2 for each head of queries and of keys in each layer.

    >>> rotations_per_token(n_layers=32, n_heads=32, n_kv_heads=8, rotary_dim=128)  # Llama 3, 8B
    81920
    """
    n_layers = checks.integer("n_layers", n_layers, minimum=1)
    n_heads = checks.integer("n_heads", n_heads, minimum=1)
    n_kv_heads = checks.integer("n_kv_heads", n_kv_heads, minimum=1)
    return (
        n_layers
        * (n_heads + n_kv_heads)
        * checks.even("rotary_dim", rotary_dim)
        // 2
    )


@torch.no_grad()
def shift_change(layer: RotaryAttention, x: Tensor, shift: int) -> float:
    """By how much the outputs change when every position moves on by ``shift``, relative to the largest output.

    Zero but for rounding, where scores know positions by their distance alone. ``x``: (batch, seq, dim).

    >>> x = torch.randn(1, 8, 16, dtype=torch.float64)
    >>> shift_change(RotaryAttention(dim=16, n_heads=2, dtype=torch.float64), x, shift=1000) < 1e-10
    True
    """
    positions = torch.arange(x.shape[1], device=x.device)
    shift = checks.integer("shift", shift)
    here, there = layer(x, positions), layer(x, positions + shift)
    return ((there - here).abs().max() / here.abs().max()).item()


class RotatedValueAttention(RotaryAttention):
    """A mistake, kept to be measured: values are rotated too, so the output is R_t times what it was when the text
    moves on by t positions. It knows where in the row it stands.

    >>> x = torch.randn(1, 8, 16, dtype=torch.float64)
    >>> shift_change(RotatedValueAttention(dim=16, n_heads=2, dtype=torch.float64), x, shift=1000) > 0.01
    True
    """

    def project(
        self, x: Tensor, positions: Tensor | None = None, offset: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = super().project(x, positions, offset)
        _, v = self.rotary(q, v, positions, offset=offset)
        return q, k, v
