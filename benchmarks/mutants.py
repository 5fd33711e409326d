"""Do the tests notice mistakes? Make random single mutations of a module, and run its tests against each mutant.

    python benchmarks/mutants.py attention lab/model --count 100 --seed 0

A mutation swaps an operator or a comparison, replaces a sine by a cosine, changes a constant by one, flips a truth
value, or removes a minus or a `not`. Annotations are left alone, because they are never executed. Mutations are made in
a copy, never in the sources. The results in results/mutants.json say how many mutations of each module were caught, and
list every one that was not.

For each mutation, only the tests that execute the changed line are run, quickest first. If the line is executed on
import, all tests are run. Each mutant is tested in a fork of a process that has already loaded the libraries, so most
mutants take only a second or two.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # set before torch is loaded, as in tests/conftest.py

# These libraries are loaded before forking. ropebook itself is not: if it were, every fork would test the original
# instead of the mutant.
import coverage
import hypothesis.extra.numpy  # noqa: F401
import matplotlib.pyplot  # noqa: F401
import pytest
import sympy  # noqa: F401
import torch
import torch._dynamo
import transformers.models.llama.modeling_llama  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
MODULES = [
    "rope", "attention/dot_product", "attention/masks", "attention/scale", "attention/heads", "attention/layer",
    "attention/cost", "sinusoidal/vectors", "sinusoidal/codes", "sinusoidal/distances", "sinusoidal/uniqueness",
    "sinusoidal/adding", "sinusoidal/heads", "sinusoidal/modules", "derivation/matrices", "derivation/algebra",
    "derivation/families", "complex_plane", "efficient/forms", "efficient/rotary",
    "efficient/layouts", "efficient/cost", "rotary_attention/layer", "rotary_attention/cache",
    "rotary_attention/packing", "rotary_attention/llama", "precision", "mistakes",
    "decay/bound", "decay/curves", "decay/scores", "decay/sweeps", "decay/models", "decay/bases",
    "extrapolation/parts", "extrapolation/frequencies", "extrapolation/dynamic", "extrapolation/trained",
    "extrapolation/distances", "extrapolation/queries", "extrapolation/measures", "extrapolation/search",
    "extrapolation/registry", "extrapolation/interop", "extrapolation/layer", "checks",
]  # fmt: skip
# Further modules that can be given as arguments. Each is listed with the few test files that cover it, because running
# the tests of a whole package would take minutes.
FEW = {
    "beyond/axes": ["beyond_axes"], "beyond/mrope": ["beyond_axes"],
    "beyond/departures": ["beyond_departures"], "beyond/latent": ["beyond_values"],
    "diagnose/calling": ["diagnose", "diagnose_causes"], "diagnose/frequencies": ["diagnose", "diagnose_causes"],
    "diagnose/measures": ["diagnose", "diagnose_causes"], "diagnose/naming": ["diagnose", "diagnose_causes"],
    "efficient/checkpoints": ["efficient_checkpoints"], "exercises/marking": ["exercises"],
    "extrapolation/choice": ["choose"], "extrapolation/hugging_face": ["extrapolation_hugging_face"],
    "extrapolation/loaded": ["extrapolation_hugging_face"], "lab/intervals": ["lab_intervals"],
    "relatives/attending": ["relatives_attending", "relatives_content"], "relatives/buckets": ["relatives_biases"],
    "relatives/transformer_xl": ["relatives", "relatives_content"], "memory": ["memory"], "results": ["results"],
}  # fmt: skip
SWAPS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Add,
    ast.Pow: ast.Mult, ast.MatMult: ast.Mult, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
NAMES = {"sin": "cos", "cos": "sin", "tril": "triu", "triu": "tril", "amax": "amin", "max": "min", "min": "max"}


def mutations(tree: ast.Module) -> Iterator[tuple[int, str, range]]:
    """Yield every place that `mutate` can change, as (number, description, lines of the statement)."""
    unread, lines = _annotations(tree), _lines(tree)
    for number, node in enumerate(ast.walk(tree)):
        if id(node) not in unread:
            for variant, text in _variants(node):
                yield number * 10 + variant, f"line {node.lineno}: {text}", lines[id(node)]


def _lines(tree: ast.Module) -> dict[int, range]:
    """Map each node to the lines of the innermost statement around it. For a compound statement, these are only the
    lines of its head."""
    found = {}
    for statement in ast.walk(tree):  # from the outside in, so the innermost statement is written last
        if isinstance(statement, ast.stmt):
            body = getattr(statement, "body", None)
            end = body[0].lineno if body else statement.end_lineno + 1
            lines = range(statement.lineno, max(end, statement.lineno + 1))
            found |= {id(inner): lines for inner in ast.walk(statement)}
    return found


def _annotations(tree: ast.Module) -> set[int]:
    """Return the ids of all nodes inside annotations."""
    roots = [getattr(node, name, None) for node in ast.walk(tree) for name in ("annotation", "returns")]
    return {id(inner) for root in roots if root is not None for inner in ast.walk(root)}


def _variants(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        yield 0, f"{type(node.op).__name__} becomes {SWAPS[type(node.op)].__name__}"
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
        yield 0, f"{type(node.ops[0]).__name__} becomes {SWAPS[type(node.ops[0])].__name__}"
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield 0, f"{node.attr} becomes {NAMES[node.attr]}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield 0, f"{node.value} becomes {not node.value}"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield 0, f"{node.value} becomes {node.value + 1}"
        yield 1, f"{node.value} becomes {node.value - 1}"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield 0, f"{type(node.op).__name__} is dropped"


def mutate(source: str, place: int) -> str:
    """Return the source with the single mutation at `place`."""
    tree = ast.parse(source)
    number, variant = divmod(place, 10)
    target = next(node for index, node in enumerate(ast.walk(tree)) if index == number)
    if isinstance(target, ast.Compare):
        target.ops[0] = SWAPS[type(target.ops[0])]()
    elif isinstance(target, ast.BinOp | ast.BoolOp | ast.AugAssign):
        target.op = SWAPS[type(target.op)]()
    elif isinstance(target, ast.Attribute):
        target.attr = NAMES[target.attr]
    elif isinstance(target, ast.Constant):
        target.value = (not target.value) if isinstance(target.value, bool) else target.value + (-1 if variant else 1)
    else:
        # A minus becomes a plus. `not x` becomes `not not x`, which removes the effect of `not` without moving a node.
        if isinstance(target.op, ast.Not):
            target.operand = ast.UnaryOp(ast.Not(), target.operand)
        else:
            target.op = ast.UAdd()
    return ast.unparse(ast.fix_missing_locations(tree))


def caught(folder: Path, tests: list[str], limit: float) -> bool:
    """Return whether `tests` fail on the mutant in `folder`, or don't finish within `limit` seconds."""
    child = os.fork()
    if child == 0:
        _test(folder, tests)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status != 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


class Durations:
    """A pytest plugin that writes the names of the tests to a file, quickest first."""

    def __init__(self, path: Path):
        self.path, self.seconds = path, {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        self.path.write_text(json.dumps(sorted(self.seconds, key=self.seconds.get)))


def _test(folder: Path, arguments: list[str]) -> None:
    """Run pytest in the current process, which is a fork, and exit with pytest's status."""
    os.setpgid(0, 0)
    os.chdir(folder)
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    os.environ.update(PYTHONPATH=str(folder / "code"), CI="true", COVERAGE_FILE=str(folder / ".coverage"))
    sys.dont_write_bytecode = True  # otherwise mutants made within the same second would share bytecode
    sys.path[:0] = [str(folder), str(folder / "code")]
    status = 1
    try:
        plugins = [Durations(folder / "durations.json")] if "--cov" in arguments else []
        status = int(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *arguments], plugins))
    finally:
        os._exit(status)


def who_executes(folder: Path, file: Path) -> dict[int, set[str]]:
    """Return the names of the tests that execute each line of `file`, from the coverage data in `folder`. The name ""
    means that the line is executed on import."""
    data = coverage.CoverageData(str(folder / ".coverage"))
    data.read()
    return {
        line: {context.partition("|")[0] for context in contexts}
        for line, contexts in data.contexts_by_lineno(str(file.resolve())).items()
    }


def tests_of(module: str) -> list[str]:
    """Return the test files for a module: the ones listed in `FEW`, or otherwise those of its package. For a module of
    the lab, only its own test file is returned, because the lab's tests are slow. For the module `rope`, the tests of
    `sinusoidal` and `efficient` are included, because both packages use it."""
    if module in FEW:
        return [f"tests/test_{name}.py" for name in FEW[module]]
    own = ROOT / "tests" / f"test_{module.replace('/', '_')}.py"
    if module.startswith("lab/") and own.exists():
        return [f"tests/{own.name}"]
    names = ["rope", "sinusoidal", "efficient"] if module == "rope" else [module.partition("/")[0]]
    return sorted(f"tests/{path.name}" for name in names for path in (ROOT / "tests").glob(f"test_{name}*.py"))


def examine(module: str, count: int, seed: int) -> dict:
    """Make `count` random mutants of a module, and count how many of them its tests catch."""
    source = (ROOT / "code" / "ropebook" / f"{module}.py").read_text()
    places = list(mutations(ast.parse(source)))
    chosen = random.Random(seed).sample(places, min(count, len(places)))
    everything = [*tests_of(module), f"code/ropebook/{module}.py"]
    survivors = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        for part in ("code", "tests", "tools", "book", "results"):
            shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", folder)
        file = folder / "code" / "ropebook" / f"{module}.py"
        begun = time.monotonic()
        if caught(folder, [*everything, "--cov", "--cov-context=test", "--cov-report="], limit=600):
            sys.exit(f"the tests of {module} fail without any mutation: nothing can be said")
        needed = time.monotonic() - begun
        print(f"{module}: {len(places)} mutations possible; unmutated, its tests pass in {needed:.0f} s", flush=True)
        limit = 30 + 5 * needed
        executed, quickest = who_executes(folder, file), json.loads((folder / "durations.json").read_text())
        for number, (place, text, lines) in enumerate(chosen, start=1):
            file.write_text(mutate(source, place))
            tests = set().union(*(executed.get(line, set()) for line in lines))
            chosen_tests = [test for test in quickest if test in tests or "" in tests or not tests]
            found = caught(folder, chosen_tests, limit)
            if not found:
                survivors.append(text)
            print(f"{module} {number}/{len(chosen)} {'caught' if found else 'SURVIVED'}: {text}", flush=True)
    return {
        "possible": len(places),
        "tried": len(chosen),
        "caught": len(chosen) - len(survivors),
        "survivors": survivors,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=MODULES)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    command = " ".join(["python", "benchmarks/mutants.py", *sys.argv[1:]])
    found = {}
    for module in arguments.modules:
        found[module] = examine(module, arguments.count, arguments.seed)
        _save(found, arguments.seed, command)  # save after each module, because the next may take another hour


def _save(found: dict, seed: int, command: str) -> None:
    """Write results/mutants.json from a fork. The main process must not load ropebook, because every later fork would
    then test the loaded copy instead of the mutant."""
    child = os.fork()
    if child == 0:
        sys.path.insert(0, str(ROOT / "code"))
        from ropebook import device, results

        results.save("mutants", found, device.provenance(seed=seed, command=command, on=torch.device("cpu")))
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("results/mutants.json could not be written")


if __name__ == "__main__":
    main()
