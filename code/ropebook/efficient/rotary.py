"""The rotation for use in models: one function for all backends, and a module that keeps a table of cosines and
sines."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from ropebook import checks, memory, rope
from ropebook.efficient.forms import (
    SMALL,
    Form,
    Partial,
    Vectors,
    cast,
    check_rows,
    compiled,
    eager,
    fit,
    ordinary,
    over_heads,
    rotate_few,
    rotate_in_place,
    whole_rows,
)
from ropebook.shapes import Float, Real

BACKENDS = ("eager", "compiled", "triton")

# A function (inv_freq, length) -> (inv_freq, attention_factor); see RotaryEmbedding.
Scaling = Callable[[Tensor, int | None], tuple[Tensor, float]]


# --- One function for all backends
# ------------------------------------------------------------------------------------------------------


def apply_rotary(
    x: Vectors,
    cos: Partial,
    sin: Partial,
    *,
    layout: str | None = None,
    backend: str | None = None,
    in_place: bool = False,
) -> Vectors:
    """Rotate x, and return a result of the same shape and type. Use this function in your own code.

    ``x``: (B, H, T, d), or (…, T, d) where cos and sin are (T, rotary_dim/2). If rotary_dim < d, the first rotary_dim
    entries are rotated and the rest are left unchanged.

    ``layout``: "half" for Llama, Qwen, Gemma, Mistral and GPT-NeoX in transformers, "interleaved" for Meta's own Llama
    and GPT-J. If you leave it out, it is "interleaved", and a ``FutureWarning`` says that a later release will require
    it.

    ``backend``: "eager", "compiled" (`rotate_compiled`), "triton" (the kernel in ``ropebook.triton_kernel``), or
    ``None``. ``None`` means triton on CUDA where it can run, and otherwise eager. With ``in_place``, x is overwritten
    and returned under the rules of `rotate_in_place`, and you can't choose a backend.
    """
    layout = checks.layout_said(layout)
    fit(x, cos, sin, layout, partial=True)
    if in_place:
        return _overwritten((x,), cos, sin, layout)[0]
    return _rotated((x,), cos, sin, layout, backend)[0]


def apply_rotary_qk(
    q: Float[Tensor, "*q_batch seq dim"],
    k: Float[Tensor, "*k_batch seq dim"],
    cos: Partial,
    sin: Partial,
    *,
    layout: str | None = None,
    backend: str | None = None,
    in_place: bool = False,
) -> tuple[Float[Tensor, "*q_batch seq dim"], Float[Tensor, "*k_batch seq dim"]]:
    """Rotate q and k by the same positions, as `apply_rotary` would rotate each of them, but in a single launch if the
    backend supports that.

    ``in_place``: two tensors that share memory are refused (``ValueError``), because the shared part would be rotated
    twice.
    """
    layout = checks.layout_said(layout)
    fit(q, cos, sin, layout, partial=True)
    check_rows(k, cos, partial=True, name="k")
    if in_place:
        return _overwritten((q, k), cos, sin, layout)
    return _rotated((q, k), cos, sin, layout, backend)


def _overwritten(
    tensors: tuple[Tensor, ...], cos: Tensor, sin: Tensor, layout: str
) -> tuple[Tensor, ...]:
    """Rotate the first entries of each tensor with `rotate_in_place`, and return the tensors. Raises ``ValueError`` if
    the tensors share memory."""
    if len(tensors) == 2:
        memory.check_apart(*tensors)
    for x in tensors:
        rotate_in_place(x[..., : 2 * cos.shape[-1]], cos, sin, layout)
    return tensors


def _rotated(
    tensors: tuple[Tensor, ...],
    cos: Tensor,
    sin: Tensor,
    layout: str,
    backend: str | None,
    rows: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """Do the work of `apply_rotary` for one or two tensors, checking only ``backend``. ``rows`` is the result of
    `whole_rows`, used to rotate half-split entries, or None."""
    if rows is not None and _better_as_one(tensors):
        q, k = tensors
        turned = rotate_few(torch.cat(tensors, 1), *rows)
        return turned.split_with_sizes((q.shape[1], k.shape[1]), 1)
    backend = choose_backend(backend, tensors)
    if backend == "triton":
        from ropebook import triton_kernel

        q, k = tensors if len(tensors) == 2 else (tensors[0], None)
        return triton_kernel.rotary(q, k, cos, sin, layout=layout)
    form = compiled if backend == "compiled" else eager
    if _better_as_one(tensors):
        q, k = tensors
        # widen the data once instead of in each step
        wide = cast(torch.cat(tensors, 1), torch.promote_types(q.dtype, cos.dtype))
        turned = cast(_first_entries(form, wide, cos, sin, layout), q.dtype)
        return turned.split_with_sizes((q.shape[1], k.shape[1]), 1)
    return tuple(_first_entries(form, x, cos, sin, layout) for x in tensors)


def _better_as_one(tensors: tuple[Tensor, ...]) -> bool:
    """Return whether q and k are so small (a single token, say) that launching an operation takes longer than carrying
    it out."""
    if len(tensors) < 2 or torch.compiler.is_compiling():
        return False
    q, k = tensors
    return q.numel() <= SMALL and q.ndim == k.ndim == 4 and q.dtype == k.dtype


def _first_entries(
    form: Form, x: Tensor, cos: Tensor, sin: Tensor, layout: str
) -> Tensor:
    """Rotate as many of the first entries of x as cos and sin cover, and leave the others unchanged."""
    cos, sin = over_heads(x, cos, sin)
    rotary_dim = 2 * cos.shape[-1]
    if x.shape[-1] == rotary_dim:
        return form(x, cos, sin, layout)
    turned = form(x[..., :rotary_dim], cos, sin, layout)
    return torch.cat((turned, x[..., rotary_dim:]), -1)


def choose_backend(backend: str | None, tensors: tuple[Tensor, ...]) -> str:
    """Return the backend for `apply_rotary`: the named one, or if ``backend`` is None, the one that suits these
    tensors.

    >>> choose_backend(None, (torch.zeros(1, 1, 1, 2),))
    'eager'
    """
    if backend is not None:
        return checks.choice("backend", backend, BACKENDS)
    device = tensors[0].device
    if device.type != "cuda" or torch.compiler.is_compiling():
        return "eager"
    if any(x.ndim != 4 for x in tensors):
        return "eager"
    from ropebook import triton_kernel

    return "triton" if triton_kernel.available(device) else "eager"


# --- The module -----------------------------------------------------------------------------------------------------


# These attributes cannot be changed once the module is built.
_FIXED = ("dim", "rotary_dim", "base", "inv_freq")


class RotaryEmbedding(nn.Module):
    """Rotates queries and keys by their positions: q (B, H_q, T, dim), k (B, H_kv, T, dim) to (q′, k′).

    ``rotary_dim`` (default ``dim``): only the first rotary_dim entries of each head are rotated, with θ_i =
    base^(−2i/rotary_dim), as in GPT-NeoX. ``layout`` and ``backend``: as in `apply_rotary`. ``table_length``: the
    initial number of rows in the table of cosines and sines (default ``4096``). The table starts at position 0 and doubles
    when a sequence grows past its end. Rows much further away are computed but not kept. Such rows are needed, for
    example, when the ``offset`` belongs to a cache that was filled elsewhere.

    ``scaling``: a method of context extension, as a function (inv_freq, length) -> (inv_freq, attention_factor).
    inv_freq is (rotary_dim/2,), float64. length is the highest position + 1 if that follows from shapes and the offset.
    It is ``None`` for a tensor of positions, which would have to be read back from the device. cos and sin are
    multiplied by attention_factor, so the rotated entries' part of a score is multiplied by its square; the other
    entries (from rotary_dim on) are unaffected. With scaling there is no table, because the frequencies may depend on
    the length. A method read from a config (:func:`ropebook.extrapolation.from_transformers`) requires the config's
    base and rotary_dim, and an explicit layout, because configs do not specify one. Otherwise ``ValueError`` is raised.

    ``torch.compile`` and ``torch.export`` work; ``torch.jit.script`` does not, because it does not support keyword-only
    arguments.

    There is nothing to train and nothing in the state_dict. ``inv_freq`` is float64 and stays float64 even if
    ``.half()``, ``.to(dtype)`` or autocast changes the model's type. Angles are float64, cos and sin float32 (float64
    for float64 data). ``dim``, ``rotary_dim``, ``base`` and ``inv_freq`` (rotary_dim/2,) depend on one another and
    cannot be set (``AttributeError``); for other frequencies, create another module with another base or ``scaling``.
    Reading ``inv_freq`` returns a copy.

    >>> rope = RotaryEmbedding(dim=4, layout="half")
    >>> q, k = torch.ones(1, 2, 3, 4), torch.ones(1, 1, 3, 4)
    >>> whole, last = rope(q, k)[0], rope(q[:, :, 2:], k[:, :, 2:], offset=2)[0]
    >>> torch.equal(whole[:, :, 2:], last)
    True
    """

    def __init__(
        self,
        dim: int,
        base: float = 10000.0,
        *,
        layout: str | None = None,
        rotary_dim: int | None = None,
        scaling: Scaling | None = None,
        table_length: int | None = None,
        backend: str | None = None,
    ) -> None:
        super().__init__()
        self.dim = checks.even("dim", dim)
        self.base = checks.number("base", base, minimum=1)
        self.rotary_dim = checks.rotary_dim(self.dim, rotary_dim)
        _check_scaling(scaling, self, layout)
        self.layout = checks.layout_said(layout)
        self.scaling = scaling
        table_length = 4096 if table_length is None else table_length
        self.table_length = checks.integer("table_length", table_length, minimum=1)
        if backend is not None:
            checks.choice("backend", backend, BACKENDS)
        self.backend = backend
        # so that this works under torch.device("meta") too
        with torch.device("cpu"):
            self._inv_freq = rope.inv_freq(self.rotary_dim, self.base)
        self._kept: dict[tuple, tuple] | None = None
        # the latest key (position, dtype and device) and result that `_last_place` kept
        self._last: tuple | None = None
        self._table: tuple[Tensor, Tensor] | None = None

    @property
    def inv_freq(self) -> Float[Tensor, " pairs"]:
        """The frequencies θ_i, shape (rotary_dim/2,), float64. This is a copy; changing it does not change the
        module."""
        return self._inv_freq.clone()

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FIXED and "_table" in self.__dict__:  # __init__ sets this last
            raise AttributeError(
                f"{name} cannot be set once the module is made, got {textwrap.shorten(repr(value), 60)}; "
                "make another RotaryEmbedding, with its base, or with scaling=lambda inv_freq, length: (other_inv_freq, 1.0)"
            )
        if name == "layout":
            checks.layout(value)
        super().__setattr__(name, value)

    def forward(
        self,
        q: Float[Tensor, "batch _ _ dim"],
        k: Float[Tensor, "batch _ _ dim"] | None = None,
        positions: Real[Tensor, "*rows seq"] | None = None,
        *,
        offset: int = 0,
        tokens_first: bool = False,
        in_place: bool = False,
    ) -> (
        tuple[Float[Tensor, "batch _ _ dim"], Float[Tensor, "batch _ _ dim"]]
        | Float[Tensor, "batch _ _ dim"]
    ):
        """Rotate q and k by their positions and return (q′, k′), or only q′ if ``k`` is None.

        ``positions``: a tensor (T,) or (B, T), integers, float32 or float64; by default offset … offset + T − 1. With a
        cache of keys, ``offset`` is the number of tokens already in it. Packed sequences and left padding need
        ``positions``. ``tokens_first``: q and k are (B, T, heads, dim), and so are the results. ``in_place``: q and k
        are overwritten under the rules of `rotate_in_place`; two tensors that share memory are refused.
        """
        given = (q,) if k is None else (q, k)
        shapes = []
        for name, x in zip("qk", given, strict=False):
            shape = checks.rotatable(name, x).shape
            if len(shape) != 4 or shape[-1] != self.dim:
                axes = "batch, seq, heads" if tokens_first else "batch, heads, seq"
                raise ValueError(
                    f"{name} must have shape ({axes}, {self.dim}), got {tuple(shape)}"
                )
            shapes.append(shape)
        if k is not None:
            one, other, seq = *shapes, 1 if tokens_first else 2
            if one[0] != other[0] or one[seq] != other[seq]:
                raise ValueError(
                    f"q and k must agree in batch and seq, got {tuple(one)} and {tuple(other)}"
                )
            if k.device != q.device:
                raise ValueError(
                    f"k must be on the device of q, {q.device}, got {k.device}"
                )
        if tokens_first:
            given = tuple(x.transpose(1, 2) for x in given)
        cos, sin, rows = self._places(given[0], positions, offset)
        if in_place:
            turned = _overwritten(given, cos, sin, self.layout)
        else:
            turned = _rotated(given, cos, sin, self.layout, self.backend, rows)
        if tokens_first:
            turned = tuple(x.transpose(1, 2) for x in turned)
        return turned[0] if k is None else turned

    def _places(
        self, q: Tensor, positions: Tensor | None, offset: int
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor] | None]:
        """Return cos and sin for q (B, H, T, dim), either computed or read from the table. For a single token in
        the layout "half", the third item may be the result of `whole_rows`. Otherwise it is None."""
        dtype = rope.wide(q.dtype)
        if positions is None and q.shape[2] == 1 and self.layout == "half":
            plain = q.is_cpu if self.backend is None else self.backend == "eager"
            if plain and not torch.compiler.is_compiling():
                return self._last_place(q, offset, dtype)
        return *self._places_kept(q, positions, offset, dtype), None

    def _last_place(
        self, q: Tensor, offset: int, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor] | None]:
        """Return cos and sin for one token, and keep them, because a model's layers ask for the same token one after
        another."""
        place = offset, dtype, q.device
        if (
            type(offset) is int
            and self._last is not None
            and self._last[0] == place
        ):
            return self._last[1]
        cos, sin = self._places_kept(q, None, offset, dtype)
        if self.scaling is not None or self.rotary_dim != self.dim:
            return cos, sin, None
        # If these rows were made in inference mode, a later training step would reject them.
        with torch.inference_mode(False):
            found = cos, sin, whole_rows(cos, sin)
        if ordinary(found[2][0]):
            self._last = place, found
        return found

    def _places_kept(
        self, q: Tensor, positions: Tensor | None, offset: int, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        if self._kept is None:
            return self._places_of(q, positions, offset, dtype)
        place = (id(positions), offset, q.shape[::2], dtype, q.device)
        if place not in self._kept:
            tables = self._places_of(q, positions, offset, dtype)
            # Keep the positions alive too, so that no other tensor can get their id.
            self._kept[place] = tables, positions
        return self._kept[place][0]

    def _places_of(
        self, q: Tensor, positions: Tensor | None, offset: int, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        batch, _, seq_len, _ = q.shape
        if positions is None:
            return self._contiguous(offset, seq_len, dtype, q.device)
        if offset != 0:
            raise ValueError(
                f"offset must be 0 where positions are given, got {offset}"
            )
        rope.check_positions(positions)
        if not checks.rows_fit(positions.shape, batch, seq_len):
            raise ValueError(
                f"positions must have shape ({seq_len},) or ({batch}, {seq_len}), "
                f"got {tuple(positions.shape)}"
            )
        return self._tables(positions.to(q.device), dtype)

    @contextlib.contextmanager
    def keeping_tables(self) -> Iterator[None]:
        """Return a context manager in which cos and sin of the same positions are computed only once for all layers of
        a model.

        The position tensors must not change while the context manager is active.

        >>> rope, q = RotaryEmbedding(4, layout="half"), torch.ones(1, 2, 3, 4)
        >>> with rope.keeping_tables():
        ...     first, second = rope(q), rope(q)
        """
        before, self._kept = self._kept, {}
        try:
            yield
        finally:
            self._kept = before

    def cos_sin(
        self,
        positions: Real[Tensor, " *shape"],
        dtype: torch.dtype = torch.float32,
        *,
        length: int | None = None,
    ) -> tuple[Float[Tensor, "*shape pairs"], Float[Tensor, "*shape pairs"]]:
        """Compute cosines and sines with the module's frequencies: two tensors of shape positions.shape +
        (rotary_dim/2,).

        ``length`` is passed on to ``scaling``. The table is not used."""
        rope.check_positions(positions)
        checks.choice("dtype", dtype, (torch.float32, torch.float64))
        return self._tables(positions, dtype, length)

    def _tables(
        self, positions: Tensor, dtype: torch.dtype, length: int | None = None
    ) -> tuple[Tensor, Tensor]:
        if self.scaling is None:
            return rope.tables(positions, self._inv_freq, dtype)
        inv_freq, factor = self._scaled(length)
        cos, sin = rope.tables(positions, inv_freq, dtype)
        return cos * factor, sin * factor

    def _contiguous(
        self, offset: int, seq_len: int, dtype: torch.dtype, device: torch.device
    ) -> tuple[Tensor, Tensor]:
        offset = checks.integer("offset", offset, minimum=0)
        end = offset + seq_len
        # A symbolic end means that a graph for all lengths is being made. Such a graph must not depend on seq_len.
        any_length = isinstance(end, torch.SymInt)
        if not any_length and end > rope.LARGEST_POSITION:
            raise ValueError(
                f"offset must leave positions below {rope.LARGEST_POSITION}, got {offset}"
            )
        if any_length or self.scaling is not None:
            positions = torch.arange(offset, end, device=device)
            return self._tables(positions, dtype, length=end)
        table = self._table
        wanted = dtype, device
        if table is not None and (table[0].dtype, table[0].device) != wanted:
            table = None
        rows = self.table_length if table is None else len(table[0])
        fits = table is not None and rows >= end
        # Far beyond the table, the rows in between are skipped: an offset of a million needs one row, not a million.
        # Only eager code lets the table grow, because a graph may own the memory of the tensors that it made.
        far = end > 2 * rows and offset > seq_len
        if not fits and (far or torch.compiler.is_compiling()):
            return self._tables(torch.arange(offset, end, device=device), dtype)
        if not fits:
            while rows < end:
                rows *= 2
            # If the table were made in inference mode, a later training step would reject it.
            with torch.inference_mode(False):
                table = self._tables(torch.arange(rows, device=device), dtype)
            if ordinary(table[0]):
                self._table = table
        return table[0][offset:end], table[1][offset:end]

    def _scaled(self, length: int | None) -> tuple[Tensor, float]:
        result = self.scaling(self.inv_freq, length)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(
                f"scaling must return (inv_freq, attention_factor), got {type(result).__name__}"
            )
        inv_freq, factor = result
        checks.floating("scaling's inv_freq", inv_freq)
        rope.check_frequencies(inv_freq)
        if inv_freq.shape != self._inv_freq.shape:
            raise ValueError(
                f"scaling's inv_freq must have shape {tuple(self._inv_freq.shape)}, got {tuple(inv_freq.shape)}"
            )
        name = "scaling's attention_factor"
        return inv_freq, checks.number(name, factor, above=0)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True):
        # .to(), .half() and similar methods call this. The frequencies move to the new device but are never cast.
        super()._apply(fn, recurse)
        device = fn(torch.empty(0)).device
        # "meta" has no values, and "mps" has no float64
        if device.type not in ("meta", "mps"):
            self._inv_freq = self._inv_freq.to(device)
        self._table = None
        return self

    def extra_repr(self) -> str:
        return f"dim={self.dim}, base={self.base:g}, layout={self.layout!r}, rotary_dim={self.rotary_dim}"


def _check_scaling(
    scaling: Scaling | None, embedding: RotaryEmbedding, layout: str | None
) -> None:
    """Check that scaling is a function. If it was read from a config, also check that the module matches that
    config."""
    if scaling is not None and not callable(scaling):
        raise TypeError(f"scaling must be a function or None, got {scaling!r}")
    if hasattr(scaling, "asked_of_rotary"):
        for name, asked in scaling.asked_of_rotary(embedding.dim).items():
            if getattr(embedding, name) != asked:
                raise ValueError(
                    f"{name} must be {asked}, as in the config of scaling, got {getattr(embedding, name)}"
                )
        if layout is None:
            raise ValueError(
                f"layout must be one of {', '.join(map(repr, checks.LAYOUTS))}, because the config of scaling does not say it, got None"
            )
