"""Test that modules are joined into one script, and that declared constants become data."""

from __future__ import annotations

import pytest

from ropebook.explorers.kit.joining import join, split
from tests.explorers import js


def test_every_part_stands_once_and_after_what_it_imports():
    text = (
        "// A figure.\n"
        'import { tidy } from "./kit/text.js";\n'
        'import {\n  html, svg,\n  put,\n} from "./kit/elements.js";\n'
        'import { titled } from "./kit/drawing.js";\n'
        'import { BITS, dials } from "./a.py";\n\n'
        "export default [tidy(BITS), dials, typeof html, typeof titled];\n"
    )
    script = join("a.js", {"BITS": 13, "dials": [{"label": "Länge", "max": 1e7}], "other": object()}, text)
    parts = split(script)
    names = list(parts)
    assert len(set(names)) == len(names)
    assert names[-2:] == ["a.py", "a.js"]
    assert names.index("kit/elements.js") < names.index("kit/drawing.js")
    assert parts["a.js"].startswith("// A figure.\n\nexport default")
    main = 'import found from "./a.mjs";' + js.HARNESS.format(body="return found;")
    found = js._run({"a.mjs": script, "main.mjs": main}, None)
    assert found == ["13.0", [{"label": "Länge", "max": 1e7}], "function", "function"]


def test_what_is_not_declared_cannot_be_imported():
    with pytest.raises(ValueError, match=r"a\.js imports BITS, which its Python file does not declare"):
        join("a.js", {}, 'import { BITS } from "./a.py";\n')


@pytest.mark.parametrize(
    "line", ['import * as kit from "./kit/text.js";', 'import text from "./kit/text.js";', "export { tidy };"]
)
def test_only_plain_imports_are_understood(line):
    with pytest.raises(ValueError, match=r"an import must look like import \{ name \} from"):
        join("a.js", {}, f"{line}\n")


@pytest.mark.parametrize("script", ["", "let a;", "let a;\n//# part: b.js\n"])
def test_a_script_without_parts_is_refused(script):
    with pytest.raises(ValueError, match="script must begin with a line '//# part: name', got"):
        split(script)


def test_several_parts_share_what_a_python_file_declares():
    text = 'import { L } from "./a.py";\nimport { S, L } from "./b/../a.py";\nexport default [S, L];\n'
    assert split(join("a.js", {"S": 1, "L": 2, "T": 3}, text))["a.py"] == "const L = 2;\nconst S = 1;\n"
