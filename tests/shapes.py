"""Check at every call during the tests that shapes match the signatures. `install` adds these checks to later imports
of `ropebook`.

A function's result must match its signature. If an argument doesn't match, the function must raise an error of its own.
If it accepts the argument anyway, the call fails here.
"""

from __future__ import annotations

import ast
import functools
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import sys
import types
import typing
from collections.abc import Callable

WORDS = "ropebook.shapes"


class ShapeError(AssertionError):
    """Raised if a call received or returned a value that its signature does not allow."""


def checked(function: Callable) -> Callable:
    """Return a version of the function that checks every call, except inside ``torch.compile``."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        hints = _hints(function)
        if not hints:
            return function(*args, **kwargs)
        try:
            given = _signature(function).bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)
        with jaxtyping.jaxtyped("context"):
            wrong = [name for name, value in given.items() if name in hints and not fits(value, hints[name])]
            result = function(*args, **kwargs)
            if wrong:
                raise ShapeError(
                    f"{function.__qualname__} took {told(given[wrong[0]])} for {wrong[0]}: {hints[wrong[0]]}"
                )
            if "return" in hints and not fits(result, hints["return"]):
                raise ShapeError(f"{function.__qualname__} gave back {told(result)}, not {hints['return']}")
        return result

    import jaxtyping
    import torch

    return call


@functools.cache
def _signature(function: Callable) -> inspect.Signature:
    return inspect.signature(function)


@functools.cache
def _hints(function: Callable) -> dict[str, object]:
    """Return a function's annotations that declare a shape."""
    found = {}
    for name, text in function.__annotations__.items():
        try:
            hint = eval(text, function.__globals__) if isinstance(text, str) else text
        except NameError:
            # this name exists only for type checkers
            continue
        if says_a_shape(hint):
            found[name] = hint
    return found


def says_a_shape(hint: object) -> bool:
    return hasattr(hint, "dim_str") or any(map(says_a_shape, typing.get_args(hint)))


def fits(value: object, hint: object) -> bool:
    """Return whether a value has the shape that an annotation declares."""
    parts = typing.get_args(hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return any(fits(value, part) for part in parts)
    if typing.get_origin(hint) is tuple and ... not in parts:
        return isinstance(value, tuple) and len(value) == len(parts) and all(map(fits, value, parts))
    if hasattr(hint, "dim_str"):
        return isinstance(value, hint)
    return not isinstance(hint, type) or isinstance(value, hint)


def told(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(told, value))})"
    return f"{value.dtype} {tuple(value.shape)}" if hasattr(value, "shape") else repr(value)


class _Loader(importlib.machinery.SourceFileLoader):
    """Loader that decorates every function of a file with `checked`."""

    def get_code(self, fullname: str) -> types.CodeType:
        # This bypasses the bytecode cache, because other imports use the same file without checks.
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                decorator = ast.parse(f"__import__({__name__!r}, fromlist=['checked']).checked", mode="eval").body
                for part in ast.walk(decorator):
                    part.lineno = part.end_lineno = node.lineno
                    part.col_offset = part.end_col_offset = 0
                node.decorator_list.append(decorator)
        return compile(tree, path, "exec", dont_inherit=True)


class _Finder(importlib.abc.MetaPathFinder):
    """Finder for those modules of ropebook whose signatures declare shapes."""

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if not name.startswith("ropebook."):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None
        if f"from {WORDS} import" not in spec.loader.get_source(name):
            return None
        spec.loader = _Loader(name, spec.origin)
        return spec


def install() -> None:
    """Add checks to everything that is imported from ropebook from now on. Without jaxtyping (on a GPU machine, for
    example), nothing is checked."""
    if importlib.util.find_spec("jaxtyping"):
        sys.meta_path.insert(0, _Finder())
