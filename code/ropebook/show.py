"""Show the tested source in a chapter, and print the evidence for a claim."""

import ast
import inspect
import math
import textwrap

from IPython.display import display

__all__ = ["check", "difference", "glue", "show"]


def show(*objects, docstrings: bool = True) -> None:
    """Display the source of functions or classes as highlighted code: the source that runs and that the tests test.

    It is displayed as Markdown, which notebooks and the site highlight in their own colours.

    Args:
        objects: functions or classes whose source file can be read.
        docstrings: False leaves the docstrings out, where the chapter's text already says what they say.

    Raises:
        TypeError: for something that has no Python source.
    """
    if not objects:
        raise TypeError(
            "objects must hold at least one function or class, got none"
        )
    for item in objects:
        item = inspect.unwrap(item) if callable(item) else item
        try:
            lines, first = inspect.getsourcelines(item)
        except (TypeError, OSError) as error:
            raise TypeError(
                f"objects must be functions or classes written in Python, got {item!r}"
            ) from error
        source = textwrap.dedent("".join(lines)).rstrip()
        if not docstrings:
            source = _without_docstrings(source)
        fence = "```"
        while fence in source:  # a docstring may hold a fence of its own
            fence += "`"
        where = f"{item.__module__.replace('.', '/')}.py, line {first}"
        markdown = (
            f"`{item.__qualname__}` · {where}\n\n{fence}python\n{source}\n{fence}"
        )
        display(
            {"text/markdown": markdown, "text/plain": f"# {where}\n{source}"},
            raw=True,
        )


def _without_docstrings(source: str) -> str:
    """The source without the docstrings of its functions and classes; every other line stays as it is written."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if (
            not isinstance(node, ast.FunctionDef | ast.ClassDef)
            or ast.get_docstring(node) is None
        ):
            continue
        text = node.body[0]
        if len(node.body) > 1:  # a body that is a docstring alone has to stay
            for number in range(text.lineno, text.end_lineno + 1):
                lines[number - 1] = None
            if lines[text.end_lineno] == "":
                lines[text.end_lineno] = None
    return "\n".join(line for line in lines if line is not None)


def check(
    claim: str,
    measured: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> None:
    """Print a claim with the number that was measured and the one that is allowed; raise if it does not hold.

    >>> check("the rows sum to one", 1.2e-7, at_most=1e-6)
    ✓ the rows sum to one: 1.2e-07 (at most 1e-06)
    >>> check("the outputs differ", 0.31, at_least=0.1)
    ✓ the outputs differ: 0.31 (at least 0.1)

    Args:
        claim: what is claimed, as a clause.
        measured: the number; a tensor or array of one element will do.
        at_most, at_least: the bounds, inclusive; at least one of them.

    Raises:
        AssertionError: the number is outside the bounds, or NaN.
        ValueError: no bound was given.
    """
    if at_most is None and at_least is None:
        raise ValueError("check needs at_most or at_least, got neither")
    measured = float(_values(measured))
    given = {"at least": at_least, "at most": at_most}
    bounds = [
        f"{word} {bound:.3g}" for word, bound in given.items() if bound is not None
    ]
    holds = (at_least is None or measured >= at_least) and (
        at_most is None or measured <= at_most
    )
    line = f"{claim}: {measured:.3g} ({', '.join(bounds)})"
    if math.isnan(measured) or not holds:
        raise AssertionError(f"✗ {line}")
    print(f"✓ {line}")


def difference(a, b) -> float:
    """The largest absolute difference between the entries of two tensors or arrays of one shape; NaN if any is NaN.

    >>> import torch
    >>> difference(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
    0.5

    Raises:
        ValueError: the shapes differ, or there is nothing to compare.
    """
    if tuple(a.shape) != tuple(b.shape):
        raise ValueError(
            f"a and b must have one shape, got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    if 0 in a.shape:
        raise ValueError(
            f"a and b must have entries to compare, got the shape {tuple(a.shape)}"
        )
    return float(abs(_values(a) - _values(b)).max())


def glue(**numbers) -> None:
    """Keep numbers for the page's prose, which shows them by their names: ``{glue:text}`name:.2f```. Nothing is printed.

    In a notebook this needs nothing but IPython; it writes what MyST-NB's own ``glue`` writes.

    >>> glue(largest=0.25)

    Args:
        numbers: by name; a tensor or array of one element will do, and so will a text.

    Raises:
        ValueError: a tensor or array of more than one element.
    """
    for name, value in numbers.items():
        if hasattr(value, "item"):
            if math.prod(value.shape) != 1:
                raise ValueError(
                    f"{name} must be one number, got the shape {tuple(value.shape)}"
                )
            value = value.item()
        prefix = "application/papermill.record/"
        text = value if isinstance(value, str) else repr(value)
        display(
            {f"{prefix}text/plain": text},
            metadata={"scrapbook": {"name": name, "mime_prefix": prefix}},
            raw=True,
        )


def _values(x):
    """A tensor without its gradient, anything else as it is."""
    return x.detach() if hasattr(x, "detach") else x
