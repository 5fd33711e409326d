"""How a rotation is called: which of its arguments is what, and in which order its tensors have their axes.

An argument is known by its name, or by trying. The sizes of a trial are all different, so a wrong order seldom fits; and
where one vector is put in every place, the output changes along the axis of the sequence alone.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ropebook import checks, rope

# The roles that an argument can have, and the names by which it is known to have them.
NAMES = {
    "q": "q query queries xq query_states query_layer q_embed",
    "k": "k key keys xk key_states key_layer k_embed",
    "v": "v value values xv value_states value_layer",
    "x": "x t tensor inputs input hidden_states u z",
    "positions": "positions position position_ids pos input_pos index indices m",
    "cos": "cos cosine cosines cos_cached cos_cache cos_table",
    "sin": "sin sine sines sin_cached sin_cache sin_table",
    "freqs": "freqs freqs_cis freq_cis freqs_complex cis rotations phases",
    "offset": "offset start start_pos position_offset past_length shift",
}
ROLES = tuple(NAMES)
VECTORS = ("q", "k", "v", "x")

# What is tried where names do not tell.
_GUESSES = {
    1: ("x",),
    2: ("x positions", "q k", "x freqs"),
    3: ("q k positions", "x cos sin", "q k freqs", "q k v"),
    4: ("q k cos sin", "q k v positions"),
}

ORDERS = (
    "batch heads seq dim",
    "batch seq heads dim",
    "batch seq dim",
    "seq heads dim",
    "seq dim",
)
_SIZES = {"batch": 2, "heads": 3, "seq": 5}
_DIMS = (64, 128, 32, 16, 8, 4, 256, 80, 96)

# The axes of positions or tables beside their width, and how a table of d/2 angles is spread over d entries.
_POSITIONS = ("seq", "1 seq", "batch seq")
_TABLES = ("seq", "1 seq", "1 1 seq", "1 seq 1", "seq 1", "batch seq")
_SPREADS = ("pairs", "half", "interleaved")


@dataclass(frozen=True)
class Call:
    """A rotation and how to call it. ``roles`` are those of its arguments; ``named`` are passed by their name."""

    function: Callable
    roles: tuple[str, ...]
    named: tuple[tuple[str, str], ...]
    order: str
    dim: int
    base: float
    axes: str = "seq"
    spread: str = ""
    dtype: torch.dtype = torch.float64
    along: str = "seq"

    @property
    def vectors(self) -> tuple[str, ...]:
        """The roles of the tensors that it may turn, in the order of its arguments."""
        return tuple(role for role in self.given if role in VECTORS)

    @property
    def given(self) -> tuple[str, ...]:
        """All roles, those passed by name too."""
        return (*self.roles, *(role for _, role in self.named))

    @property
    def places(self) -> bool:
        """Whether any positions can be asked for."""
        return bool({"positions", "cos", "freqs"} & set(self.given))

    @property
    def tables(self) -> bool:
        """Whether angles come from outside, so that the rotation has no frequencies of its own."""
        return bool({"cos", "freqs"} & set(self.given))

    @property
    def words(self) -> str:
        """The call in words, as in "(q, k, positions), each batch heads seq dim"."""
        names = [*self.roles, *(f"{name}=" for name, _ in self.named)]
        spread = (
            f", tables spread as {self.spread}"
            if self.spread in checks.LAYOUTS
            else ""
        )
        return f"({', '.join(names)}), vectors as ({', '.join(self.order.split())}){spread}"

    def arranged(self, x: Tensor) -> Tensor:
        """x (batch, seq, dim) in the order of the call, with equal heads where it has heads."""
        at = {"batch": x.shape[0], "heads": _SIZES["heads"], "seq": x.shape[1]}
        names = self.order.split()
        x = x.to(self.dtype)
        if "batch" not in names:
            # the rows of a batch lie beside each other, as heads do
            x = x.transpose(0, 1) if "heads" in names else x[0]
            return x.clone()
        if "heads" in names:
            seq_first = names.index("seq") < names.index("heads")
            x = x[:, :, None] if seq_first else x[:, None]
            sizes = [at.get(name, self.dim) for name in names]
            x = x.expand(sizes)
        # a copy: the rotation may write into it
        return x.clone()

    def read(self, x: Tensor) -> Tensor:
        """The inverse of `arranged`: (batch, seq, dim) in float64, of the first head."""
        names = self.order.split()
        x = x.detach().double()
        if "batch" not in names:
            return x.transpose(0, 1) if "heads" in names else x[None]
        if "heads" in names:
            return x.select(names.index("heads"), 0)
        return x

    def beside(self, role: str, positions: Tensor, batch: int) -> Tensor | int:
        """The argument of this role that is no vector, for positions (seq,)."""
        if role == "offset":
            return int(positions[0])
        if role == "positions":
            return _placed(positions, self.axes, batch, 0)
        axes = self.axes
        if "positions" in self.given:
            # the table is looked up by positions
            axes, positions = "seq", torch.arange(int(positions.max()) + 1)
        angles = rope.angles(positions, self.dim, self.base)
        if self.spread in checks.LAYOUTS:
            angles = rope.join_pairs(angles, angles, self.spread)
        if role == "freqs" and self.spread == "complex":
            table = torch.polar(torch.ones_like(angles), angles)
            kind = torch.promote_types(self.dtype, torch.complex32)
        else:
            table = {"cos": torch.cos, "sin": torch.sin}.get(role, torch.clone)(
                angles
            )
            kind = self.dtype
        return _placed(table.to(kind), axes, batch, 1)

    def raw(
        self, vectors: dict[str, Tensor], positions: Tensor, batch: int
    ) -> list:
        """The tensors that it returns for vectors as they lie in its order, or an error that says what it returned."""

        def argument(role: str) -> object:
            if role in vectors:
                return vectors[role]
            return self.beside(role, positions, batch)

        result = self.function(
            *map(argument, self.roles),
            **{name: argument(role) for name, role in self.named},
        )
        return outputs(result, [vectors[role] for role in self.vectors])

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """q′, k′, v′ (batch, seq, dim) in float64. A rotation of one tensor turns q and k, one after the other."""
        if "batch" not in self.order and "heads" not in self.order and len(q) > 1:
            rows = [
                self(*(x[i : i + 1] for x in (q, k, v)), positions)
                for i in range(len(q))
            ]
            return tuple(torch.cat(found) for found in zip(*rows, strict=True))
        batch = len(q)
        if self.vectors == ("x",):
            q2, k2 = (
                self.read(self.raw({"x": self.arranged(x)}, positions, batch)[0])
                for x in (q, k)
            )
            return q2, k2, v.double()
        given = {"q": q, "k": k, "v": v}
        arranged = {role: self.arranged(given[role]) for role in self.vectors}
        found = self.raw(arranged, positions, batch)
        turned = {role: x.double() for role, x in given.items()}
        turned |= {
            role: self.read(x) for role, x in zip(self.vectors, found, strict=False)
        }
        return tuple(turned.values())


def _placed(table: Tensor, axes: str, batch: int, width: int) -> Tensor:
    """A table (seq, …) with the axes around it, of which ``width`` come last and stay."""
    shape = [
        {"1": 1, "seq": len(table), "batch": batch}[name] for name in axes.split()
    ]
    if "batch" in axes:
        return table.expand(*shape, *table.shape[1:])
    return (
        table.reshape(*shape, *table.shape[1:]) if width else table.reshape(shape)
    )


def outputs(result: object, given: list[Tensor]) -> list[Tensor]:
    """The tensors of a result, each of the shape of what went in, or ``ValueError``. (v may be kept back.)"""
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(given) == 1 and len(found) > 1:
        said = (
            "which is what a function of tables returns" if len(found) == 2 else ""
        )
        raise ValueError(
            f"it must return 1 tensor, got {len(found)} {said}".strip()
        )
    least = min(len(given), 2)
    if len(found) < least or not all(isinstance(x, Tensor) for x in found):
        kinds = ", ".join(type(x).__name__ for x in found)
        raise ValueError(f"it must return {len(given)} tensors, got {kinds}")
    for x, y in zip(given, found, strict=False):
        if x.shape != y.shape:
            raise ValueError(
                f"it must return the shape that it is given, {tuple(x.shape)}, got {tuple(y.shape)}"
            )
        if not y.is_floating_point():
            raise ValueError(f"it must return real numbers, got dtype {y.dtype}")
    return found[: len(given)]


def recognised(
    function: Callable,
    *,
    call: str | None = None,
    order: str | None = None,
    dim: int | None = None,
    base: float = 10000.0,
) -> Call:
    """The first way to call ``function`` that works. ``call``, ``order`` and ``dim`` are tried alone if they are given."""
    called = getattr(function, "__qualname__", type(function).__name__)
    if not callable(function) or isinstance(function, type):
        what = (
            f"the class {called}" if isinstance(function, type) else repr(function)
        )
        raise TypeError(f"function must be a function of q and k, got {what}")
    if call is not None:
        ways = [(_told(call), ())]
    else:
        ways = list(_ways(function, called))
    if order is not None:
        checks.choice("order", order, ORDERS)
    if dim is not None and checks.even("dim", dim) < 4:
        raise ValueError(f"dim must be at least 4, got {dim}")
    failed = {}
    dims = (64,) if dim is None else (dim,)
    rest = _DIMS[1:] if dim is None else ()
    for widths in (dims, rest):
        kinds = (torch.float64, torch.float32)
        for (roles, named), width, kind in itertools.product(ways, widths, kinds):
            one = Call(function, roles, named, ORDERS[0], width, base, dtype=kind)
            found = _fitting(one, (order,) if order else ORDERS, failed)
            if found:
                return found
    raise _refused(called, failed) from next(iter(failed.values()))


def _refused(called: str, failed: dict[str, Exception]) -> ValueError:
    """What is said where no way of calling worked: the first way of each kind of error."""
    said, seen = [], set()
    for words, error in failed.items():
        message = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        if message not in seen and len(seen) < 3:
            seen.add(message)
            said.append(f"{words}: {message}")
    return ValueError(
        f"{called} could not be called in any way that is known. "
        "Say how with call='q, k, positions' and order='batch heads seq dim'. Tried:\n  "
        + "\n  ".join(said)
    )


def _told(call: str) -> tuple[str, ...]:
    """The roles of a call as the reader tells them: "q, k, positions"."""
    if not isinstance(call, str):
        raise TypeError(f"call must be a string of roles, got {call!r}")
    roles = tuple(call.replace(",", " ").split())
    for role in roles:
        checks.choice("each part of call", role, ROLES)
    if not set(roles) & set(VECTORS):
        raise ValueError(f"call must have q, k or x in it, got {call!r}")
    return roles


def _role(name: str) -> str | None:
    return next(
        (role for role, names in NAMES.items() if name.lower() in names.split()),
        None,
    )


def _ways(function: Callable, called: str) -> Iterator[tuple[tuple, tuple]]:
    """The roles that the arguments may have: those by place, and pairs (name, role) of those passed by name."""
    of = function.forward if isinstance(function, torch.nn.Module) else function
    try:
        parameters = inspect.signature(of).parameters.values()
    except (TypeError, ValueError):
        for guesses in _GUESSES.values():
            yield from ((tuple(guess.split()), ()) for guess in guesses)
        return
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [p for p in parameters if p.kind not in several]
    required = [p for p in parameters if p.default is p.empty]
    by_name = [
        (p.name, _role(p.name)) for p in required if p.kind == p.KEYWORD_ONLY
    ]
    required = [p for p in required if p.kind != p.KEYWORD_ONLY]
    known = [_role(p.name) for p in required]
    extra = {
        _role(p.name): (p.name, _role(p.name))
        for p in parameters
        if p.default is not p.empty
    }
    tables = {"cos", "freqs"} & {*known, *(role for _, role in by_name)}
    where = (
        []
        if tables
        else [extra[r] for r in ("positions", "offset") if r in extra][:1]
    )
    named = (*by_name, *where)
    if any(role is None for _, role in named):
        known = []
    elif known and None not in known and len(set(known)) == len(known):
        more = [
            extra[role] for role in ("k", "v") if role in extra and "q" in known
        ]
        if more:
            yield tuple(known), (*more, *named)
        if len({"q", "k", "v"} & set(known)) == 1:
            # one tensor alone, whatever it is called
            known = ["x" if role in VECTORS else role for role in known]
        yield tuple(known), named
        return
    for guess in _GUESSES.get(len(required), ()):
        roles = tuple(guess.split())
        if all(
            role in (None, other) for role, other in zip(known, roles, strict=False)
        ):
            yield roles, named
    if len(required) not in _GUESSES or (named and not known):
        names = ", ".join(
            [*(p.name for p in required), *(name for name, _ in by_name)]
        )
        raise ValueError(
            f"{called} takes ({names}), and what these are is not known. Give a function of q and k alone, "
            "of positions or tables of cos and sin beside them, or say what they are with call='q, k, positions'"
        )


def _fitting(
    one: Call, orders: tuple[str, ...], failed: dict[str, Exception]
) -> Call | None:
    """The first order and shape of tables in which the call works, turned along the sequence and keeping lengths."""
    fallback = None
    for order, (axes, spread) in itertools.product(orders, _beside(one)):
        tried = replace(one, order=order, axes=axes, spread=spread)
        try:
            along, kept = _probe(tried)
        except Exception as error:
            failed.setdefault(f"{tried.words}, {_shapes(tried)}", error)
            continue
        if along not in ("seq", None) and len(orders) > 1:
            words = f"it turns along the {along}"
            failed.setdefault(f"{tried.words}, {_shapes(tried)}", ValueError(words))
            continue
        if kept:
            return tried
        fallback = fallback or replace(tried, along=along or "seq")
    return fallback


def _beside(one: Call) -> list[tuple[str, str]]:
    """The shapes that what stands beside the vectors may have."""
    if "cos" in one.given or "freqs" in one.given:
        spreads = _SPREADS if "cos" in one.given else ("complex", *_SPREADS)
        places = _POSITIONS if "positions" in one.given else _TABLES
        return [(axes, spread) for spread in spreads for axes in places]
    places = _POSITIONS if "positions" in one.given else ("seq",)
    return [(axes, "") for axes in places]


def _shapes(tried: Call) -> str:
    sizes = [str(_SIZES.get(name, tried.dim)) for name in tried.order.split()]
    return f"of shape ({', '.join(sizes)})"


def _probe(tried: Call) -> tuple[str | None, bool]:
    """One vector in every place: along which axis does the output change, and are lengths kept (up to a factor)?"""
    names = tried.order.split()
    sizes = [_SIZES.get(name, tried.dim) for name in names]
    generator = torch.Generator().manual_seed(0)
    vector = torch.randn(tried.dim, dtype=tried.dtype, generator=generator)
    vectors = {role: vector.expand(sizes).clone() for role in tried.vectors}
    found = tried.raw(vectors, torch.arange(_SIZES["seq"]), _SIZES["batch"])
    turned = torch.stack([x.detach().double() for x in found])
    changes = {
        name: (turned - turned.select(axis, 0).unsqueeze(axis)).abs().max().item()
        for axis, name in enumerate(names[:-1], start=1)
    }
    lengths = turned.norm(dim=-1)
    kept = bool(lengths.std() < 1e-3 * lengths.mean())
    moving = [name for name, change in changes.items() if change > 1e-6]
    if not moving:
        return None, kept
    return ("seq" if "seq" in moving else moving[0]), kept and moving == ["seq"]
