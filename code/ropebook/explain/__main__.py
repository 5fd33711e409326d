"""Command line: ``python -m ropebook.explain config.json`` prints what the file says about positions.

The exit status is 2 if the file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ropebook.explain.report import explain


def main(arguments: list[str] | None = None) -> int:
    """Explain what a config.json says about positions."""
    parser = argparse.ArgumentParser(
        prog="python -m ropebook.explain", description=main.__doc__
    )
    parser.add_argument("file", help="a config.json, or - for standard input")
    parser.add_argument(
        "--length",
        type=int,
        help="how long the texts are that should be read, in tokens",
    )
    given = parser.parse_args(arguments)
    try:
        text = (
            sys.stdin.read()
            if given.file == "-"
            else Path(given.file).read_text(encoding="utf-8")
        )
        report = explain(text, given.length)
    except (OSError, UnicodeDecodeError) as error:
        print(f"unreadable: {error}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"bad-argument: {error}", file=sys.stderr)
        return 2
    if report.error:
        print(report.error, file=sys.stderr)
        return 2
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
