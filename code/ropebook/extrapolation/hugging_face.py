"""Install a method in a loaded Hugging Face model, or remove it again.

In such a model, a module called ``rotary_emb`` computes a table of cosines and sines in every call, and all layers
rotate with this table. If a method only changes frequencies, it is enough to replace that module. A method that changes
distances or depends on the current length must rotate inside the attention function. The table then has angle 0
everywhere, so that the cache keeps unrotated keys, and the attention function rotates queries and keys by their current
positions.

Models such as Gemma 3 have one table for layers that see the whole sequence and another for layers with a sliding
window. A method is installed only for the former. The latter never see a distance longer than their window, so they are
left unchanged.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ropebook import rope
from ropebook.attention import repeat_heads
from ropebook.extrapolation.frequencies import Frequencies
from ropebook.extrapolation.interop import to_transformers
from ropebook.extrapolation.loaded import (
    SEES_ALL,
    Turn,
    check_attention,
    of_several,
    owner_of,
    read_table,
    turned_from,
    turns_of,
)
from ropebook.extrapolation.methods import Extension

# The name under which transformers registers our attention function.
ATTENTION = "ropebook"


def install(model: nn.Module, method: Extension | None) -> None:
    """Make a loaded model use ``method``, as created by `ropebook.extrapolation.make`. ``None`` removes the installed
    method.

    ``model``: a transformers model whose layers share one ``rotary_emb``, as in Llama, Mistral, Qwen2, Qwen3, Gemma and
    GPT-NeoX. Its config must not specify a method of its own, because two methods cannot be combined. We read the base,
    the layout and the number of rotated entries from the model, and leave its weights unchanged.
    ``results/architectures.json`` lists the models we have tried. If layers with a sliding window have their own table,
    as in Gemma 3, they keep it.

    If transformers also has the method, both implementations give the same logits for the same input. They differ only
    when decoding with a method that depends on the current length: here, cached keys are rotated with the current
    frequencies, while transformers never rotates keys again after caching them. In a batch, the length is that of the
    longest row.

    If transformers has the method, ``model.save_pretrained`` writes it into the saved config, so that the model has it
    again when you load it. For any other method it raises ``ValueError``, because the loaded model would silently lack
    the method.

    A method that acts in the attention function (because it changes distances, depends on the current length, or
    lengthens queries) requires more of the model. Each layer must rotate its queries and keys, or leave them unrotated,
    right before it calls transformers' attention function. To check this, the model runs once on five tokens, so its
    forward hooks are called. Layers without positions, such as every fourth layer of SmolLM3, remain without them.

    Raises ``TypeError`` if ``method`` is neither a method of this package nor None. Raises ``ValueError`` for a model
    with a different structure, for a model whose config specifies a method, and for `Partial`, which would leave
    entries unrotated that were rotated in training. After an error the model is unchanged.

    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> from ropebook.extrapolation import make
    >>> sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1}
    >>> model = LlamaForCausalLM(LlamaConfig(vocab_size=5, **sizes))
    >>> install(model, make("rerope", window=64))
    >>> model.model.rotary_emb
    InstalledRotary(method=ReRoPE(window=64), base=10000, layout='half', rotary_dim=8)
    >>> install(model, None)
    """
    if method is not None and not isinstance(method, Extension):
        raise TypeError(
            f"method must be one of ropebook.extrapolation or None, got {method!r}"
        )
    owner = owner_of(model)
    config = owner.config
    theirs, attention = owner.rotary_emb, config._attn_implementation
    if isinstance(theirs, InstalledRotary):
        theirs, attention = theirs.theirs, theirs.attention
    rotary, turns = theirs, {}
    if method is not None:
        rotary = InstalledRotary(theirs, config, method, attention)
        if rotary.acts_in_attention:
            turns = turns_of(owner, rotary.base, rotary.layout, rotary.rotary_dim)
            _register()
            attention = ATTENTION
    # All checks have passed, so nothing below raises an error.
    owner.rotary_emb = rotary
    owner.set_attn_implementation(attention)
    for part in owner.modules():
        part.__dict__.pop("ropebook", None)
    for i, layer in enumerate(owner.layers):
        for part in layer.modules():
            if part in turns and rotary.serves(i):
                part.ropebook = Installed(rotary, layer, turns[part])
    for part in model.modules():
        if hasattr(type(part), "save_pretrained"):
            part.__dict__.pop("save_pretrained", None)
            if method is not None:
                part.save_pretrained = functools.partial(_save, part, owner)


class Installed(NamedTuple):
    """The facts about a layer that the attention function needs.

    This is a tuple rather than a module, because setting a module as an attribute of a layer would make it part of the
    model.
    """

    rotary: InstalledRotary
    layer: nn.Module
    # None for a layer without positions, where a method can change only the length of the queries
    turn: Turn | None


def _save(part: nn.Module, owner: nn.Module, *args, **options) -> None:
    """Call ``part.save_pretrained(*args, **options)`` with the method in the config."""
    rotary, config = owner.rotary_emb, owner.config
    kept = config.rope_parameters
    config.rope_parameters = rotary.saved(config)
    try:
        type(part).save_pretrained(part, *args, **options)
    finally:
        config.rope_parameters = kept


class InstalledRotary(nn.Module):
    """Replaces a model's ``rotary_emb``: maps (x, position_ids) to cosines and sines."""

    def __init__(
        self, theirs: nn.Module, config: object, method: Extension, attention: str
    ):
        super().__init__()
        self.method, self.attention = method, attention
        types = getattr(config, "layer_types", None) or ()
        self.several = of_several(config)
        # the type of each layer, if there is a table for each type
        self.layer_types = types if self.several else ()
        table = read_table(theirs, config, self.several)
        self.base, self.layout, self.narrow = table.base, table.layout, table.narrow
        frequencies = isinstance(method, Frequencies)
        self.rotary_dim = 2 * table.pairs
        if "rotary_dim" in method.rotary(self.rotary_dim):
            raise ValueError(
                f"method must rotate the entries that the weights were trained with, got {method!r}"
            )
        latent = hasattr(config, "kv_lora_rank")
        if latent and getattr(method, "mscale_all_dim", None):
            # In a model with latent attention, mscale_all_dim multiplies the whole of q·k, like
            # ropebook.extrapolation.softmax_scale. The factor is fixed when the model is built.
            raise ValueError(
                f"method must have no mscale_all_dim for a model with latent attention, whose config has to ask for it, got {method!r}"
            )
        self.rotates_late = method.distances is not None or (
            frequencies and method.follows_length
        )
        self.acts_in_attention = self.rotates_late or method.query_scale is not None
        self.positions: Tensor | None = None
        # The model's own table is kept in a tuple. As an attribute, it would become a submodule of this table.
        self._kept = (theirs,)

    @property
    def theirs(self) -> nn.Module:
        return self._kept[0]

    def serves(self, layer: int) -> bool:
        """Return whether the method applies to this layer."""
        return not self.several or self.layer_types[layer] == SEES_ALL

    def saved(self, config: object) -> dict[str, object]:
        """Return the ``rope_parameters`` that make transformers use the method.

        Raises ``ValueError`` if transformers doesn't have the method.
        """
        way_out = "install(model, None) takes it out before saving, and install puts it in again after loading"
        try:
            found = to_transformers(self.method, self.rotary_dim, self.base)
        except ValueError:
            raise ValueError(
                f"method must be one that transformers has for a model to be saved with it, got {self.method!r}: {way_out}"
            ) from None
        trained, most = (
            getattr(self.method, "trained_length", None),
            config.max_position_embeddings,
        )
        if found["rope_type"] == "dynamic" and trained != most:
            raise ValueError(
                "trained_length must be config.max_position_embeddings for a model to be saved with dynamic NTK, "
                f"got {trained} and {most}: {way_out}"
            )
        asked = config.rope_parameters
        if self.several:
            return asked | {SEES_ALL: asked[SEES_ALL] | found}
        return asked | found

    @torch.no_grad()
    def forward(
        self, x: Tensor, position_ids: Tensor, layer_type: str | None = None
    ) -> tuple[Tensor, Tensor]:
        if layer_type != (SEES_ALL if self.several else None):
            return self.theirs(x, position_ids, layer_type)
        self.positions = position_ids
        if self.rotates_late:
            shape = (*position_ids.shape, self.rotary_dim)
            return x.new_ones(shape), x.new_zeros(shape)
        inv_freq, factor = self.frequencies(None)
        tables = rope.cos_sin(
            position_ids.to(x.device), inv_freq, rope.wide(x.dtype)
        )
        cos, sin = (rope.join(t, t, self.layout) * factor for t in tables)
        dtype = x.dtype if self.narrow else rope.wide(x.dtype)
        return cos.to(dtype), sin.to(dtype)

    def frequencies(self, length: int | None) -> tuple[Tensor, float]:
        """Return θ (rotary_dim/2,) and the factor on cosines and sines, for a sequence of ``length`` tokens."""
        inv_freq = rope.inv_freq(self.rotary_dim, self.base)
        if isinstance(self.method, Frequencies):
            return self.method(inv_freq, length)
        return inv_freq, 1.0

    def extra_repr(self) -> str:
        return f"method={self.method!r}, base={self.base:g}, layout={self.layout!r}, rotary_dim={self.rotary_dim}"


# --- The attention ---------------------------------------------------------------------------------------------------


def _register() -> None:
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(ATTENTION, _attend)
    # This makes transformers always pass an additive mask to the attention function.
    AttentionMaskInterface.register(ATTENTION, eager_mask)


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **options: object,
) -> tuple[Tensor, Tensor | None]:
    """Compute attention with the signature that transformers expects.

    Maps (batch, heads, seq, head_dim) to (batch, seq, heads, head_dim).
    """
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    check_attention(module, options)
    installed: Installed | None = getattr(module, "ropebook", None)
    if installed is None:
        given = module, query, key, value, attention_mask
        return sdpa_attention_forward(*given, scaling=scaling, **options)
    rotary, _, turn = installed
    method, here = rotary.method, _positions(installed, options).to(query.device)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if method.query_scale is not None:
        factor = method.query_scale(here.clamp(min=0))
        query = query * factor[:, None, :, None].to(query.dtype)
    if rotary.rotates_late and turn is not None:
        there = _key_positions(here, key.shape[-2], attention_mask)
        length = int(here.max()) + 1
        inv_freq, attention_factor = rotary.frequencies(length)
        if method.distances is not None:
            entries = slice(turn.start, turn.start + rotary.rotary_dim)
            keys = repeat_heads(key, query.shape[1])
            given = query[..., entries], keys[..., entries], here, there, inv_freq
            bias = method.distances.correction(*given, layout=turn.layout)
            bias = (bias * scaling).to(query.dtype)
            attention_mask = (
                bias if attention_mask is None else attention_mask + bias
            )
        query, key = (
            turned_from(turn, x, at, inv_freq, attention_factor)
            for x, at in ((query, here), (key, there))
        )
    return sdpa_attention_forward(
        module, query, key, value, attention_mask, scaling=scaling, **options
    )


def _positions(installed: Installed, options: Mapping[str, object]) -> Tensor:
    """Return the positions of this call's queries.

    Most layers pass positions to their attention function. Such positions belong to the call. If gradient checkpointing
    runs a layer again in the backward pass, they are still right, even if the model has read other sequences since. For
    other layers we use the model's latest positions, which would be wrong in that case.
    """
    given = options.get("position_ids")
    if given is not None:
        return given
    layer = installed.layer
    if layer.training and getattr(layer, "gradient_checkpointing", False):
        raise ValueError(
            "gradient checkpointing must be off for a model whose layers do not hand position_ids to their "
            f"attention, got {type(layer).__name__} with a method installed"
        )
    return installed.rotary.positions


def _key_positions(here: Tensor, keys: int, mask: Tensor | None) -> Tensor:
    """Return the positions of the keys, including the cached ones: (batch, keys).

    In the first pass, these are the positions of the queries. In later passes we count backwards from the last query.
    Its own key is the last one that it may attend to; beyond that key, the cache may contain unused space.
    """
    if here.shape[-1] == keys:
        return here
    places = torch.arange(keys, device=here.device)
    if mask is None:
        last = torch.full_like(here[:, -1:], keys - 1)
    else:
        seen = (mask[:, 0, -1] == 0) * places
        last = seen.max(-1, keepdim=True).values
    return places + (here[:, -1:] - last)
