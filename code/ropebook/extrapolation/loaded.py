"""Find out how a loaded transformers model rotates: its table's base and layout, and which entries each layer rotates.

The config doesn't say which entries a layer rotates. Some layers don't use positions, some rotate the last entries of a
head, and some normalise after the rotation. Therefore we run the model once on a few tokens, with an attention function
that only records the queries and keys it receives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ropebook import checks, rope
from ropebook.extrapolation.parts import about_equal, rotated

# If a model has a table for each type of layer, the layers of this type see the whole sequence.
SEES_ALL = "full_attention"

# Arguments that a model may pass to its attention function besides queries, keys, values and a mask. Another attention
# function would ignore them.
_CHANGES_SCORES = (
    "s_aux",
    "sinks",
    "softcap",
    "position_bias",
    "indices",
    "block_indices",
)


# --- The model's parts -----------------------------------------------------------------------------------------------


def owner_of(model: nn.Module) -> nn.Module:
    """Find the part of the model that contains the layers and a single ``rotary_emb`` for all of them."""
    owners = [
        part
        for part in model.modules()
        if getattr(part, "rotary_emb", None) is not None
    ]
    allowed = (
        "model must be one of transformers whose layers share one rotary_emb, "
        f"got {type(model).__name__} with"
    )
    if len(owners) != 1 or not hasattr(owners[0], "layers"):
        raise ValueError(f"{allowed} {len(owners)}")
    owner = owners[0]
    theirs = getattr(owner.rotary_emb, "theirs", owner.rotary_emb)
    others = [
        part
        for part in model.modules()
        if type(part) is type(theirs) and part is not theirs
    ]
    if others:
        # Granite with windows, for example, has one table per base and does not use its rotary_emb.
        raise ValueError(
            f"{allowed} {len(others)} more {type(theirs).__name__} beside it"
        )
    return owner


def of_several(config: object) -> bool:
    """Return whether the config has rope_parameters for each type of layer."""
    asked = getattr(config, "rope_parameters", None) or {}
    return any(isinstance(value, Mapping) for value in asked.values())


# --- The table -------------------------------------------------------------------------------------------------------


class Table(NamedTuple):
    """The settings that determine a model's cosines and sines.

    ``narrow`` says whether cosines and sines are cast to the type of the hidden states.
    """

    base: float
    layout: str
    pairs: int
    narrow: bool


def read_table(theirs: nn.Module, config: object, several: bool) -> Table:
    """Read the settings of the model's table, and check that the table returns the cosines and sines for its base."""
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
    refused = ValueError(
        f"model must have a rotary_emb that gives cosines and sines of base {base} for {dim} entries, "
        f"got {type(theirs).__name__}"
    )
    if "mrope_section" in asked or hasattr(theirs, "mrope_section"):
        # In Qwen3-VL, for example, each token has three positions.
        raise refused
    try:
        cos, sin = theirs(inv_freq.new_zeros(1, 1), positions, *which)
    except (TypeError, ValueError, RuntimeError, IndexError) as error:
        raise refused from error
    expected = rope.tables(positions, inv_freq, inv_freq.dtype)
    for layout in checks.LAYOUTS:
        ours = [rope.join(x, x, layout) for x in expected]
        alike = all(
            a.shape == b.shape and torch.allclose(a.to(b), b, atol=1e-3)
            for a, b in zip((cos, sin), ours, strict=True)
        )
        if alike and about_equal(table, inv_freq):
            half = theirs(table.new_zeros(1, 1).bfloat16(), positions, *which)[0]
            return Table(base, layout, dim // 2, half.dtype == torch.bfloat16)
    raise refused


# --- The rotation in each layer --------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """The entries of each head that a layer rotates: as many as the table covers, starting at index ``start``."""

    start: int
    layout: str


class Call(NamedTuple):
    """The arguments that an attention module passed to its attention function."""

    module: nn.Module
    query: Tensor
    key: Tensor
    options: Mapping[str, object]


# The name under which transformers registers the recording attention function during the trial run.
_REHEARSAL = "ropebook_rehearsal"


def turns_of(
    owner: nn.Module, base: float, layout: str, rotary_dim: int
) -> dict[nn.Module, Turn | None]:
    """Find every attention module that calls an attention function, and the entries that each module rotates.

    An attention module that rotates nothing is mapped to None. The same tokens go through the model in two rows, one
    with angle 0 and one with the table's angles. When the queries and keys reach the attention function, those of the
    two rows must differ by exactly that rotation, or not at all. Raises ``ValueError`` otherwise.
    """
    length = 5
    positions = torch.arange(1, length + 1)
    inv_freq = rope.inv_freq(rotary_dim, base)
    places = torch.stack((0 * positions, positions))
    tables = rope.tables(places, inv_freq, torch.float64)
    given = _Given([rope.join(x, x, layout) for x in tables], owner.rotary_emb)
    calls: list[Call] = []
    try:
        with _rehearsing(owner, given, calls):
            found = owner(
                input_ids=places.new_ones(2, length).to(
                    next(owner.parameters()).device
                ),
                use_cache=False,
            )[0]
    except Exception as error:
        # The model's code may raise any error.
        raise _refusal(
            owner, f"which could not be run on a few tokens: {error}"
        ) from error
    for call in calls:
        check_attention(call.module, call.options)
    if not calls:
        raise _refusal(owner, "whose layers call none")
    if not _alike(found[0], found[1]):
        raise _refusal(owner, "in which cosines and sines go elsewhere too")
    return {call.module: _turn(owner, call, positions, inv_freq) for call in calls}


def check_attention(module: nn.Module, options: Mapping[str, object]) -> None:
    """Raise ``ValueError`` if this module's attention computes anything other than softmax(q·k + mask)·v."""
    for name in _CHANGES_SCORES:
        if options.get(name) is not None:
            what = "attention sinks" if name in ("s_aux", "sinks") else name
            raise ValueError(
                f"the model must have no {what} for a method that acts in the attention, "
                f"got {type(module).__name__} with {name}"
            )


def _refusal(owner: nn.Module, said: str) -> ValueError:
    return ValueError(
        "model must rotate queries and keys right before it calls transformers' attention function "
        f"for a method that acts in the attention, got {type(owner).__name__}, {said}"
    )


def _turn(
    owner: nn.Module, call: Call, positions: Tensor, inv_freq: Tensor
) -> Turn | None:
    if all(_alike(x[0], x[1]) for x in (call.query, call.key)):
        return None
    width = 2 * len(inv_freq)
    for start in dict.fromkeys((0, call.query.shape[-1] - width)):
        for layout in checks.LAYOUTS:
            turn = Turn(start, layout)
            if all(
                _alike(turned_from(turn, x[0], positions, inv_freq), x[1])
                for x in (call.query, call.key)
            ):
                return turn
    raise _refusal(owner, f"whose {type(call.module).__name__} does not")


def turned_from(
    turn: Turn,
    x: Tensor,
    positions: Tensor,
    inv_freq: Tensor,
    factor: float = 1.0,
) -> Tensor:
    """Rotate x (…, T, d) by its positions, but only the entries that the layer rotates."""
    end = turn.start + 2 * len(inv_freq)
    inside = rotated(
        x[..., turn.start : end], positions, inv_freq, factor, turn.layout
    )
    if x.shape[-1] == inside.shape[-1]:
        return inside
    return torch.cat((x[..., : turn.start], inside, x[..., end:]), -1)


def _alike(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors are equal up to rounding in their type.

    They may differ by a few units in the last place of the largest number.
    """
    allowed = 32 * torch.finfo(a.dtype).eps * float(a.abs().max())
    return bool((a - b).abs().max() <= allowed)


class _Given(nn.Module):
    """Replaces a ``rotary_emb``, and returns the same cosines and sines for any input."""

    def __init__(self, tables: list[Tensor], theirs: nn.Module):
        super().__init__()
        self.tables = tables
        # kept in a tuple, so that it does not become part of the model
        self.theirs = (theirs,)

    def forward(
        self, x: Tensor, position_ids: Tensor, layer_type: str | None = None
    ) -> tuple[Tensor, ...]:
        if layer_type not in (None, SEES_ALL):
            return self.theirs[0](x, position_ids, layer_type)
        return tuple(table.to(x) for table in self.tables)


@contextmanager
def _rehearsing(
    owner: nn.Module, given: nn.Module, calls: list[Call]
) -> Iterator[None]:
    """Return a context manager in which the model uses the tables in ``given`` and a recording attention function.

    The attention function appends each call to ``calls`` and returns 0.
    """
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    def attend(module, query, key, value, attention_mask, **options):
        calls.append(Call(module, query, key, options))
        batch, heads, length, _ = query.shape
        return value.new_zeros(batch, length, heads, value.shape[-1]), None

    AttentionInterface.register(_REHEARSAL, attend)
    AttentionMaskInterface.register(_REHEARSAL, eager_mask)
    theirs, attention = owner.rotary_emb, owner.config._attn_implementation
    training = {part: part.training for part in owner.modules()}
    owner.eval()
    owner.rotary_emb = given
    owner.set_attn_implementation(_REHEARSAL)
    try:
        with torch.no_grad():
            yield
    finally:
        owner.rotary_emb = theirs
        owner.set_attn_implementation(attention)
        for part, was in training.items():
            part.training = was
