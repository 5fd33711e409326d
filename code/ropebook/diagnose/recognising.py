"""Find out how to call a rotation, from the names of its arguments and by trial.

The axes of the trial tensors all have different sizes, so a wrong order rarely works. In addition, if every vector in
the input is the same, the output of a rotation varies only along the sequence axis.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from ropebook import checks
from ropebook.diagnose.calling import NAMES, ORDERS, ROLES, SIZES, VECTORS, Call

# The roles to try if the argument names don't help, for each number of arguments.
_GUESSES = {
    1: ("x",),
    2: ("x positions", "q k", "x freqs"),
    3: ("q k positions", "x cos sin", "q k freqs", "q k v"),
    4: ("q k cos sin", "q k v positions"),
}

_DIMS = (64, 128, 32, 16, 8, 4, 256, 80, 96)

# The axes that positions may have, the leading axes that tables may have, and the ways to spread a table of d/2
# angles over d entries.
_POSITIONS = ("seq", "1 seq", "batch seq")
_TABLES = ("seq", "1 seq", "1 1 seq", "1 seq 1", "seq 1", "batch seq")
_SPREADS = ("pairs", "half", "interleaved")


def recognised(
    function: Callable,
    *,
    call: str | None = None,
    order: str | None = None,
    dim: int | None = None,
    base: float = 10000.0,
) -> Call:
    """Return the first way of calling ``function`` that works.

    ``call``, ``order`` and ``dim`` fix that part of the call, so that no alternatives are tried.
    """
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


class NotCalled(ValueError):
    """Raised if no way of calling a function works. ``first`` is the error raised by the first attempt."""

    def __init__(self, message: str, first: Exception):
        super().__init__(message)
        self.first = first


def _refused(called: str, failed: dict[str, Exception]) -> NotCalled:
    """Build the error to raise if no call works. It quotes up to three attempts with different errors."""
    said, seen = [], set()
    for words, error in failed.items():
        message = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        if message not in seen and len(seen) < 3:
            seen.add(message)
            said.append(f"{words}: {message}")
    return NotCalled(
        f"{called} could not be called in any way that is known. "
        "Say how with call='q, k, positions', order='batch heads seq dim', and dim=128 if heads must have a certain "
        "width. Tried:\n  " + "\n  ".join(said),
        next(iter(failed.values())),
    )


def _told(call: str) -> tuple[str, ...]:
    """Parse the roles given by the reader, such as "q, k, positions"."""
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
    """Yield possible argument roles: those of positional arguments, and (name, role) pairs of keyword arguments."""
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
    elif not known and {role for _, role in named} & set(VECTORS):
        yield (), _alone(named)
        return
    elif known and None not in known and len(set(known)) == len(known):
        more = [
            extra[role] for role in ("k", "v") if role in extra and "q" in known
        ]
        if more:
            yield tuple(known), (*more, *named)
        if len({"q", "k", "v"} & set(known)) == 1:
            # the only tensor, whatever its name
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


def _alone(named: tuple) -> tuple:
    """Return the names and roles of the keyword arguments. If only one is a vector, change its role to "x"."""
    vectors = [role for _, role in named if role in ("q", "k", "v", "x")]
    if len(vectors) > 1:
        return named
    return tuple((name, "x" if role in vectors else role) for name, role in named)


def _fitting(
    one: Call, orders: tuple[str, ...], failed: dict[str, Exception]
) -> Call | None:
    """Find the first axis order and table shape that work, preferring those with which lengths are preserved."""
    fallback = None
    for order, (axes, spread) in itertools.product(orders, _beside(one)):
        tried = replace(one, order=order, axes=axes, spread=spread)
        try:
            first = tried.probe()
            along, kept = _seen(tried, first)
            tried = replace(tried, first=first)
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
    """List the shapes to try for arguments that aren't vectors, as (axes, spread)."""
    if "cos" in one.given or "freqs" in one.given:
        spreads = _SPREADS if "cos" in one.given else ("complex", *_SPREADS)
        places = _POSITIONS if "positions" in one.given else _TABLES
        return [(axes, spread) for spread in spreads for axes in places]
    places = _POSITIONS if "positions" in one.given else ("seq",)
    return [(axes, "") for axes in places]


def _shapes(tried: Call) -> str:
    sizes = [str(SIZES.get(name, tried.dim)) for name in tried.order.split()]
    return f"of shape ({', '.join(sizes)})"


def _seen(tried: Call, found: tuple[Tensor, ...]) -> tuple[str | None, bool]:
    """Find the axis along which the output varies if all input vectors are equal.

    Also returns whether lengths are preserved, up to a factor.
    """
    names = tried.order.split()
    turned = torch.stack(found)
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
