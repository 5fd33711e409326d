"""Join a module and its imports into one script. A page loads each script from a blob, and a module loaded from a blob
cannot import others.

The modules are plain, so joining only has to drop the words ``import`` and ``export``. Each import is a line of the
form ``import { name, … } from "./file.js";``, and nothing is renamed. Everything that other modules may import has
``export`` in front. A module may import the constants and ``dials`` of a Python file. All modules may import the book's
``PALETTE``.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

from ropebook.colours import PALETTE

_PART = re.compile(r"^//# part: (\S+)\n", re.MULTILINE)
_IMPORT = re.compile(r"^import \{([^}]*)\} from \"(\.[^\"]+)\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default )", re.MULTILINE)


def source(name: str) -> str:
    """Read a file from the explorers' folder."""
    folder = resources.files("ropebook.explorers")
    return (folder / name).read_text(encoding="utf-8")


def join(
    name: str, declared: Mapping[str, Any] | None = None, text: str | None = None
) -> str:
    """Join the module ``name`` and everything it imports into one script. If ``text`` is given, it is the source of the
    module, which then needs no file.

    Imported modules come before the modules that import them. Each is included once, under a line ``//# part: name``.
    ``declared`` has the constants that modules may import from Python files. ``ValueError`` is raised if a module
    imports anything else from a Python file, or if an import has a different form.

    >>> parts = split(join("kit/colours.js"))
    >>> list(parts)
    ['../colours.py', 'kit/elements.js', 'kit/rope.js', 'kit/colours.js']
    >>> print(join("a.js", {"BITS": 13}, 'import { BITS } from "./a.py";\\nexport const two = 2 * BITS;\\n'))
    //# part: a.py
    const BITS = 13;
    //# part: a.js
    const two = 2 * BITS;
    <BLANKLINE>
    """
    parts: dict[str, str] = {}
    # names that the parts import from each Python file
    imported: dict[str, list[str]] = {}
    declared = {"PALETTE": PALETTE, **(declared or {})}

    def add(name: str, text: str) -> None:
        for names, path in _IMPORT.findall(text):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            if path.endswith(".py"):
                wanted = imported.setdefault(path, [])
                wanted += [
                    one for one in re.findall(r"\w+", names) if one not in wanted
                ]
                parts[path] = constants(name, wanted)
            elif path not in parts:
                add(path, source(path))
        text = _IMPORT.sub("", text)
        odd = re.search(r"^(import\b|export [{*]).*", text, re.MULTILINE)
        if odd:
            raise ValueError(
                f'{name}: an import must look like import {{ name }} from "./file.js"; got {odd[0]!r}'
            )
        parts[name] = _EXPORT.sub("", text)

    def constants(name: str, wanted: list[str]) -> str:
        unknown = [one for one in wanted if one not in declared]
        if unknown:
            raise ValueError(
                f"{name} imports {unknown[0]}, which its Python file does not declare"
            )
        return "".join(
            f"const {one} = {json.dumps(declared[one], ensure_ascii=False)};\n"
            for one in wanted
        )

    add(name, source(name) if text is None else text)
    return "".join(f"//# part: {name}\n{text}" for name, text in parts.items())


def split(script: str) -> dict[str, str]:
    """Split a joined script into its parts, and return a dictionary from name to source, in order. A script without
    part lines raises ``ValueError``.

    >>> split("//# part: a.js\\nlet a;\\n//# part: b.js\\nlet b;\\n")
    {'a.js': 'let a;\\n', 'b.js': 'let b;\\n'}
    """
    start, *rest = _PART.split(script)
    if start or not rest:
        raise ValueError(
            f"script must begin with a line '//# part: name', got {script[:40]!r}"
        )
    return dict(zip(rest[::2], rest[1::2], strict=True))
