"""Command line: ``python -m ropebook.diagnose module:function`` prints the report on a function.

The exit status is 0 if the function is sound, 1 if it is wrong, and 2 if that can't be determined.
"""

from __future__ import annotations

import argparse
import importlib
import sys

from ropebook import checks
from ropebook.diagnose.calling import ORDERS
from ropebook.diagnose.naming import diagnose


def main(arguments: list[str] | None = None) -> int:
    """Import a function, diagnose it, and print the report."""
    parser = argparse.ArgumentParser(
        prog="python -m ropebook.diagnose", description=main.__doc__
    )
    parser.add_argument(
        "function", help="module:function, as in my_model.rope:apply_rotary"
    )
    parser.add_argument(
        "--layout", choices=checks.LAYOUTS, help="that of the weights"
    )
    parser.add_argument("--base", type=float, help="that of the weights")
    parser.add_argument("--length", type=int, help="of the longest text")
    parser.add_argument(
        "--rotary-dim", type=int, help="how many entries of a head turn"
    )
    parser.add_argument(
        "--in-place", action="store_true", help="it is meant to write into q and k"
    )
    parser.add_argument("--dim", type=int, help="width of a head")
    parser.add_argument(
        "--call", help='roles of the arguments, as "q, k, positions"'
    )
    parser.add_argument("--order", choices=ORDERS, help="axes of the vectors")
    given = parser.parse_args(arguments)
    options = {
        name: value for name, value in vars(given).items() if name != "function"
    }
    try:
        report = diagnose(imported(given.function), **options)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(report)
    return {"sound": 0, "wrong": 1, "undetermined": 2}[report.verdict]


def imported(name: str) -> object:
    """Import the object named "module:function". The part after the colon may contain dots.

    >>> imported("math:sqrt")(9)
    3.0
    """
    module, _, path = name.partition(":")
    if not path:
        raise ValueError(f"function must be written module:function, got {name!r}")
    found = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


if __name__ == "__main__":
    sys.exit(main())
