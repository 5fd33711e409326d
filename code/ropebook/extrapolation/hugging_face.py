"""A method put into a loaded model of Hugging Face's transformers, and taken out again.

Such a model computes one table of cosines and sines per call, in a module that is called ``rotary_emb``, and all its layers
rotate with it. Another module in its place is all that a method of frequencies needs. A method that changes distances, or
follows the length, rotates inside the attention instead: the table then holds angle 0, so that the cache keeps keys that
are not rotated, and the attention function turns queries and keys by the positions of now.

Models such as Gemma 3 have one table for layers that see everything and another one for those with a sliding window. There
a method belongs to the former; the latter never see a distance that is longer than their window, and stay as they are.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ropebook import checks, rope
from ropebook.attention import repeat_heads
from ropebook.extrapolation.frequencies import Frequencies
from ropebook.extrapolation.interop import to_transformers
from ropebook.extrapolation.methods import Extension
from ropebook.extrapolation.parts import about_equal, rotated

# Under this name the attention function is known to transformers.
ATTENTION = "ropebook"

# Where a model has tables for several types of layers, the one for layers that see the whole text.
SEES_ALL = "full_attention"


def install(model: nn.Module, method: Extension | None) -> None:
    """Let a loaded model use ``method``, from `ropebook.extrapolation.make`; ``None`` takes out the one that is in.

    ``model``: one of transformers whose layers share one ``rotary_emb``, as those of Llama, Mistral, Qwen2, Qwen3, Gemma,
    GPT-NeoX do, and whose config asks for no method of its own, for two do not add up. Base, layout and how many entries
    turn are read off the model. Its weights stay as they are. Where transformers has the method too, the logits of a
    text are equal. A method that follows the length differs from there on: keys of a cache are turned by the frequencies of
    now, where transformers leaves them as they came. Its length is that of the longest row. In a model with another table
    for layers with a sliding window, as Gemma 3 has it, these layers keep theirs.

    ``model.save_pretrained`` writes the method into the saved config where transformers has it, so that a model loaded from
    there has it, too. For any other method it raises ``ValueError``, because the loaded model would lack it without a word.

    ``TypeError`` for another kind of method; ``ValueError`` for a model that is made otherwise, for one whose config asks
    for a method, and for `Partial`, which would leave out entries that the weights were trained to turn.

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
    owner = _owner(model)
    config = owner.config
    theirs, attention = owner.rotary_emb, config._attn_implementation
    if isinstance(theirs, InstalledRotary):
        theirs, attention = theirs.theirs, theirs.attention
    if method is None:
        owner.rotary_emb = theirs
    else:
        owner.rotary_emb = InstalledRotary(theirs, config, method, attention)
    ours = method is not None and owner.rotary_emb.rotates_late
    if ours or (method is not None and method.query_scale is not None):
        _register()
        attention = ATTENTION
    owner.set_attn_implementation(attention)
    for i, layer in enumerate(owner.layers):
        # in a tuple, for a module set as an attribute would become a part of the layer
        has_method = method is not None and owner.rotary_emb.serves(i)
        _attention_of(layer).ropebook = (
            (owner.rotary_emb, layer) if has_method else None
        )
    for part in model.modules():
        if hasattr(type(part), "save_pretrained"):
            part.__dict__.pop("save_pretrained", None)
            if method is not None:
                part.save_pretrained = functools.partial(_save, part, owner)


def _save(part: nn.Module, owner: nn.Module, *args, **options) -> None:
    """``part.save_pretrained(*args, **options)``, with the method in the config."""
    rotary, config = owner.rotary_emb, owner.config
    kept = config.rope_parameters
    config.rope_parameters = rotary.saved(config)
    try:
        type(part).save_pretrained(part, *args, **options)
    finally:
        config.rope_parameters = kept


class InstalledRotary(nn.Module):
    """What stands in the place of a model's ``rotary_emb``: (x, position_ids) to its cosines and sines."""

    def __init__(
        self, theirs: nn.Module, config: object, method: Extension, attention: str
    ):
        super().__init__()
        self.method, self.attention = method, attention
        types = getattr(config, "layer_types", None) or ()
        self.several = _of_several(config)
        # the type of each layer, where these differ in their tables
        self.layer_types = types if self.several else ()
        self.base, self.layout, pairs = _read(theirs, config, self.several)
        frequencies = isinstance(method, Frequencies)
        self.rotary_dim = 2 * pairs
        if "rotary_dim" in method.rotary(self.rotary_dim):
            raise ValueError(
                f"method must turn the entries that the weights were trained with, got {method!r}"
            )
        self.rotates_late = method.distances is not None or (
            frequencies and method.follows_length
        )
        self.positions: Tensor | None = None
        # in a tuple: the model's own is kept, and is no part of the model as long as this one is in
        self._kept = (theirs,)

    @property
    def theirs(self) -> nn.Module:
        return self._kept[0]

    def serves(self, layer: int) -> bool:
        """Whether the method is for this layer."""
        return not self.several or self.layer_types[layer] == SEES_ALL

    def saved(self, config: object) -> dict[str, object]:
        """The ``rope_parameters`` with which transformers does the method; ``ValueError`` if it can't."""
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
        return cos.to(x.dtype), sin.to(x.dtype)

    def frequencies(self, length: int | None) -> tuple[Tensor, float]:
        """θ (rotary_dim/2,) and the factor on cosines and sines, for a text of ``length`` tokens."""
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
    # one that adds, and is always there
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
    """Attention as transformers calls it: (batch, heads, seq, head_dim) to (batch, seq, heads, head_dim)."""
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    if options.get("s_aux") is not None:
        raise ValueError(
            "the model must have no attention sinks for a method that acts in the attention, "
            f"got {type(module).__name__} with s_aux"
        )
    if module.ropebook is None:
        given = module, query, key, value, attention_mask
        return sdpa_attention_forward(*given, scaling=scaling, **options)
    rotary: InstalledRotary = module.ropebook[0]
    method, here = rotary.method, _positions(module, options).to(query.device)
    scaling = query.shape[-1] ** -0.5 if scaling is None else scaling
    if method.query_scale is not None:
        factor = method.query_scale(here.clamp(min=0))
        query = query * factor[:, None, :, None].to(query.dtype)
    if rotary.rotates_late:
        there = _key_positions(here, key.shape[-2], attention_mask)
        length = int(here.max()) + 1
        inv_freq, attention_factor = rotary.frequencies(length)
        if method.distances is not None:
            keys = repeat_heads(key, query.shape[1])
            given = query, keys, here, there, inv_freq
            bias = method.distances.correction(*given, layout=rotary.layout)
            bias = (bias * scaling).to(query.dtype)
            attention_mask = (
                bias if attention_mask is None else attention_mask + bias
            )
        query, key = (
            rotated(x, at, inv_freq, attention_factor, rotary.layout)
            for x, at in ((query, here), (key, there))
        )
    return sdpa_attention_forward(
        module, query, key, value, attention_mask, scaling=scaling, **options
    )


def _positions(module: nn.Module, options: Mapping[str, object]) -> Tensor:
    """Where this call's queries are.

    Most layers hand positions to their attention. These belong to the call, so a layer that gradient checkpointing runs
    once more in the backward pass sees them again, whatever the model has read since. Else the model's last ones serve,
    which are not the right ones then.
    """
    given = options.get("position_ids")
    if given is not None:
        return given
    rotary, layer = module.ropebook
    if layer.training and getattr(layer, "gradient_checkpointing", False):
        raise ValueError(
            "gradient checkpointing must be off for a model whose layers do not hand position_ids to their "
            f"attention, got {type(layer).__name__} with a method installed"
        )
    return rotary.positions


def _key_positions(here: Tensor, keys: int, mask: Tensor | None) -> Tensor:
    """(batch, keys): where the keys stand, those of a cache too.

    In a first pass they are the queries' own. Later they count backwards from the last query, whose own key is the last
    that it may see: behind it there may be room in a cache that is not filled yet.
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


# --- What is read off the model --------------------------------------------------------------------------------------


def _owner(model: nn.Module) -> nn.Module:
    """The part of the model that has layers and, once for all of them, a ``rotary_emb``."""
    owners = [part for part in model.modules() if hasattr(part, "rotary_emb")]
    if len(owners) != 1 or not hasattr(owners[0], "layers"):
        raise ValueError(
            "model must be one of transformers whose layers share one rotary_emb, "
            f"got {type(model).__name__} with {len(owners)}"
        )
    return owners[0]


def _attention_of(layer: nn.Module) -> nn.Module:
    for name in ("self_attn", "attention"):
        if hasattr(layer, name):
            return getattr(layer, name)
    raise ValueError(
        f"model must have layers with self_attn or attention, got {type(layer).__name__}"
    )


def _of_several(config: object) -> bool:
    """Whether the config has rope_parameters for each type of layer."""
    asked = getattr(config, "rope_parameters", None) or {}
    return any(isinstance(value, Mapping) for value in asked.values())


def _read(
    theirs: nn.Module, config: object, several: bool
) -> tuple[float, str, int]:
    """Base, layout and how many pairs turn, once the model's own table is what they give."""
    asked = getattr(config, "rope_parameters", None) or {}
    name, prefix, which = "rope_parameters", "", ()
    if several:
        name, prefix, which = f"{name}[{SEES_ALL!r}]", f"{SEES_ALL}_", (SEES_ALL,)
        if asked.get(SEES_ALL) is None:
            raise ValueError(
                f"model.config.rope_parameters must have {SEES_ALL!r} for a method to be put in, got {list(asked)}"
            )
        asked = asked[SEES_ALL]
    kind = asked.get("rope_type")
    if kind != "default":
        raise ValueError(
            f"model.config.{name}['rope_type'] must be 'default' for a method to be put in, got {kind!r}"
        )
    base = checks.number("rope_theta", asked.get("rope_theta"), minimum=1)
    table = getattr(theirs, f"{prefix}inv_freq")
    dim = 2 * len(table)
    inv_freq = rope.inv_freq(dim, base).to(table)
    positions = torch.arange(4, device=inv_freq.device)[None]
    found = theirs(inv_freq.new_zeros(1, 1), positions, *which)
    expected = rope.tables(positions, inv_freq, inv_freq.dtype)
    for layout in checks.LAYOUTS:
        ours = [rope.join(x, x, layout) for x in expected]
        alike = all(
            a.shape == b.shape and torch.allclose(a, b, atol=1e-3)
            for a, b in zip(found, ours, strict=True)
        )
        if alike and about_equal(table, inv_freq):
            return base, layout, dim // 2
    raise ValueError(
        f"model must have a rotary_emb that gives cosines and sines of base {base} for {dim} entries, "
        f"got {type(theirs).__name__}"
    )
