"""Tests of the mutations in benchmarks/mutants.py. Each mutation must change only one thing. There must be tests for
every module that the script names."""

import ast

from tests.scripts import benchmark
from tests.together import together

mutants = benchmark("mutants")

SOURCE = """
def f(x: int = 3, on: bool = True) -> int:
    if not on and x < 2:
        return -x
    return math.sin(x) * 2.0
"""
EXPECTED = {
    "line 2: 3 becomes 4": "x: int=4",
    "line 2: 3 becomes 2": "x: int=2",
    "line 2: True becomes False": "on: bool=False",
    "line 3: And becomes Or": "not on or x < 2",
    "line 3: Not is dropped": "not not on and x < 2",
    "line 3: Lt becomes LtE": "x <= 2",
    "line 3: 2 becomes 3": "x < 3",
    "line 3: 2 becomes 1": "x < 1",
    "line 4: USub is dropped": "return +x",
    "line 5: Mult becomes Add": "math.sin(x) + 2.0",
    "line 5: sin becomes cos": "math.cos(x) * 2.0",
    "line 5: 2.0 becomes 3.0": "math.sin(x) * 3.0",
    "line 5: 2.0 becomes 1.0": "math.sin(x) * 1.0",
}


def test_each_mutation_changes_one_thing_and_no_annotation():
    found = {text: place for place, text, _ in mutants.mutations(ast.parse(SOURCE))}
    assert found.keys() == EXPECTED.keys()
    before = ast.unparse(ast.parse(SOURCE)).splitlines()
    for text, place in found.items():
        after = mutants.mutate(SOURCE, place).splitlines()
        changed = [line for line, was in zip(after, before, strict=True) if line != was]
        assert len(changed) == 1, text
        assert EXPECTED[text] in changed[0], text


@together("module", [*mutants.MODULES, *mutants.FEW])
def test_a_module_that_is_named_exists_and_has_tests(module):
    assert (mutants.ROOT / "code" / "ropebook" / f"{module}.py").is_file()
    tests = mutants.tests_of(module)
    assert tests
    assert all((mutants.ROOT / test).is_file() for test in tests)


def test_no_module_is_listed_twice():
    assert not set(mutants.MODULES) & mutants.FEW.keys()
