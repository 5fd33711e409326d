"""Test that every registered check holds, that every wrong twin is refused, and that the proofs describe what the
modules compute."""

import math
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import sympy
import torch

from ropebook import proofs, sinusoidal
from ropebook.proofs import sinusoidal as P
from tests.together import together

REGISTRY = proofs.registry()
IDENTITIES = [label for label, proof in REGISTRY.items() if proof.kind == "identity"]
x, y = sympy.symbols("x y", real=True)
u, v = sympy.symbols("u v", negative=True)
A, B = sympy.MatrixSymbol("A", 2, 2), sympy.MatrixSymbol("B", 2, 2)
ROW = sympy.ImmutableMatrix([[x, y]])


def proof_of(*right, wrong=((x, y),), symbols=("x", "y"), kind="identity"):
    def function(wrong_twin):
        return list(wrong if wrong_twin else right)

    return proofs.Proof("eq-test", kind, lambda wrong=False: function(wrong), symbols, "a slip", "here:1")


@pytest.fixture
def empty_registry(monkeypatch):
    monkeypatch.setattr(proofs, "_REGISTRY", {})


# --- What is registered ---


def test_the_sinusoidal_identities_are_registered():
    assert set(IDENTITIES) >= {
        "eq-sinusoidal-shift",
        "eq-sinusoidal-rotation",
        "eq-sinusoidal-kernel",
        "eq-sinusoidal-norm",
        "eq-sinusoidal-four-terms",
    }
    assert all(proof.label == label for label, proof in REGISTRY.items())
    assert {proof.kind for proof in REGISTRY.values()} <= {"identity", "definition", "statement"}


@pytest.mark.parametrize("module", sorted({proof.source.partition(":")[0] for proof in REGISTRY.values()}))
def test_each_check_holds_and_its_wrong_twin_is_refused(module):
    of_module = {label: proof for label, proof in REGISTRY.items() if proof.source.partition(":")[0] == module}
    assert [label for label, proof in of_module.items() if not proofs.holds(proof)] == []
    assert [label for label, proof in of_module.items() if not proofs.refused(proof)] == []


@together("label", REGISTRY)
def test_source_points_at_the_function(label):
    proof = REGISTRY[label]
    file, line = proof.source.rsplit(":", 1)
    text = (Path(proofs.__file__).parents[2] / file).read_text(encoding="utf-8").splitlines()
    assert text[int(line) - 1].startswith(f"@{proof.kind}(")
    assert label in "".join(text[int(line) - 1 : int(line) + 1])


@together("label", REGISTRY)
def test_each_check_says_what_it_checks(label):
    says = REGISTRY[label].says
    assert len(says) >= 8
    assert says.endswith(".")
    assert "\n" not in says


# --- The proofs describe the module: numerically, it computes both sides of each identity ---

M, N, K, J, SHIFT, DIM, BASE = 7, 3, 5, 2, 11, 6, 50.0
THETA = sinusoidal.inv_freq(DIM, BASE).tolist()
VALUES = {
    "x": [1, -2, 3, 0, 2, 1],
    "y": [2, 0, -1, 1, 4, -3],
    r"\mathrm{PE}_{m}": [0, 1, 2, -1, 1, 5],
    r"\mathrm{PE}_{n}": [1, 1, -2, 3, 0, 2],
    "B": [[1, -2], [3, 5]],
}


def value(side, pair=0):
    """Evaluate one side of an identity for the numbers above. For identities about a single block, ``pair`` selects
    θ_i."""
    side = side.subs({P.d: DIM, P.m: M, P.n: N, P.k: K, P.j: J, P.t: SHIFT}).doit()
    side = side.subs({P.theta[i]: theta for i, theta in enumerate(THETA)})
    side = side.subs({P.theta_i: THETA[pair], P.theta_j: THETA[pair - 1]})
    side = side.subs({sympy.Symbol("a_i", real=True): 0.7, sympy.Symbol("b_i", real=True): -1.3})
    matrices = [symbol for symbol in side.free_symbols if isinstance(symbol, sympy.MatrixSymbol)]
    side = side.subs({symbol: sympy.Matrix(VALUES[symbol.name]) for symbol in matrices}).doit()
    if side.is_Matrix:
        return torch.tensor(sympy.Matrix(side).tolist(), dtype=torch.float64)
    return torch.tensor([[float(side)]], dtype=torch.float64)


def sides(label, pair=0, wrong=False):
    return [(value(left, pair), value(right, pair)) for left, right in proofs.pairs(REGISTRY[label], wrong)]


def near(one, other):
    return one.shape == other.shape and torch.allclose(one, other, rtol=1e-12, atol=1e-12)


@together("pair", range(DIM // 2))
def test_shift_and_rotation_are_those_of_the_module(pair):
    block = slice(2 * pair, 2 * pair + 2)
    encoding = sinusoidal.encoding([M + K], DIM, BASE, torch.float64)[0, block, None]
    [(left, right)] = sides("eq-sinusoidal-shift", pair)
    assert near(left, encoding)
    assert near(right, encoding)
    [(product, unit), (composed, summed)] = sides("eq-sinusoidal-rotation", pair)
    one = sinusoidal.shift_matrix(K, DIM, BASE)[block, block]
    both = sinusoidal.shift_matrix(J + K, DIM, BASE)[block, block]
    assert near(product, one.T @ one)
    assert near(unit, torch.eye(2, dtype=torch.float64))
    assert near(composed, both)
    assert near(summed, both)
    assert near(value(P.shift_block(P.k), pair), one)


def test_kernel_norm_and_four_terms_are_those_of_the_module():
    one, other = sinusoidal.encoding([M, N], DIM, BASE, torch.float64)
    [(left, right)] = sides("eq-sinusoidal-kernel")
    assert near(left, (one @ other).reshape(1, 1))
    assert near(right, sinusoidal.distance_kernel(M - N, DIM, BASE).reshape(1, 1))
    [(left, right)] = sides("eq-sinusoidal-norm")
    assert near(left, (one @ one).reshape(1, 1))
    assert right.item() == DIM / 2
    vectors = (
        torch.tensor(VALUES[name], dtype=torch.float64) for name in ("x", "y", r"\mathrm{PE}_{m}", r"\mathrm{PE}_{n}")
    )
    terms = sinusoidal.four_terms(*vectors)
    [(left, right)] = sides("eq-sinusoidal-four-terms")
    assert near(left, terms.total.reshape(1, 1))
    assert near(right, terms.total.reshape(1, 1))


@together("label", [label for label in IDENTITIES if label.startswith("eq-sinusoidal-")])
def test_a_wrong_twin_is_false_and_not_merely_unproved(label):
    for left, right in sides(label, wrong=True):
        assert left.shape == right.shape
        assert not torch.allclose(left, right, atol=1e-3)


# --- The comparison itself ---


@together(
    ("left", "right"),
    [
        (sympy.sin(x) ** 2 + sympy.cos(x) ** 2, sympy.Integer(1)),
        (sympy.cos(x - y), sympy.cos(y - x)),
        (ROW, sympy.Matrix([[x, y]])),
        (sympy.MatMul(ROW, ROW.T, evaluate=False), sympy.ImmutableMatrix([[x**2 + y**2]])),
        ((A + B) * A, A * A + B * A),
        (A + B, B + A),
        # the symbols u and v are negative
        (sympy.Abs(u * sympy.sin(x) + v * sympy.sin(x)), -(u + v) * sympy.Abs(sympy.sin(x))),
    ],
)
def test_what_is_equal_is_proved(left, right):
    symbols = sorted({sympy.latex(s) for s in left.free_symbols})
    proof = proof_of((left, right), wrong=[(left, right)], symbols=symbols)
    assert proofs.holds(proof)
    assert not proofs.refused(proof)


@together(
    ("left", "right"),
    [
        (sympy.sin(x), sympy.cos(x)),
        (sympy.sin(x + y), sympy.sin(x - y)),
        (sympy.sqrt(x**2), x),  # these are equal only for positive x
        (x, x + sympy.Rational(1, 10**30)),  # comparing only a few digits wouldn't reveal the difference
        (ROW, ROW.T),
        (ROW, sympy.ImmutableMatrix([[x, -y]])),
        (sympy.ImmutableMatrix([[x]]), x),
        (x, sympy.ImmutableMatrix([[x]])),
        (A * B, B * A),
        (A, A + B),
    ],
)
def test_what_differs_is_refused(left, right):
    symbols = sorted({sympy.latex(s) for side in (left, right) for s in side.free_symbols})
    proof = proof_of((left, right), wrong=[(left, right)], symbols=symbols)
    assert not proofs.holds(proof)
    assert proofs.refused(proof)


def test_every_pair_counts():
    good, bad = (x + y, y + x), (x, y)
    assert not proofs.holds(proof_of(good, bad))
    assert not proofs.holds(proof_of(bad, good))
    assert proofs.holds(proof_of(good, good))
    assert not proofs.refused(proof_of(good, wrong=[bad, good]))
    assert not proofs.refused(proof_of(good, wrong=[good, bad]))
    assert proofs.refused(proof_of(good, wrong=[bad, bad]))


def test_a_proof_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="eq-test: nothing to prove"):
        proofs.holds(proof_of())
    with pytest.raises(ValueError, match="eq-test: nothing to prove"):
        proofs.refused(proof_of((x, y), wrong=[]))


def test_a_proof_about_other_letters_is_an_error():
    with pytest.raises(ValueError, match=r"eq-test: declared for \['x', 'z'\], but its symbols are \['x', 'y'\]"):
        proofs.holds(proof_of((x + y, y + x), symbols=("x", "z")))
    with pytest.raises(ValueError, match="declared for"):
        proofs.holds(proof_of((x, x)))
    assert proofs.refused(proof_of((x + y, y + x), wrong=[(x, sympy.Integer(0))]))  # a twin may lack one of the symbols


@together("side", [1.0, "x", True, [x]])
def test_only_expressions_can_be_proved(side):
    for pair in ((x, side), (side, x)):
        with pytest.raises(TypeError, match="eq-test: a side must be a sympy expression or matrix, got"):
            proofs.holds(proof_of(pair))


@pytest.mark.usefixtures("empty_registry")
def test_registering():
    @proofs.identity("eq-test-2", "x", twin="a slip")
    def lonely(wrong=False):
        """The answer."""
        return [(x, y if wrong else x)]

    proof = proofs._REGISTRY["eq-test-2"]
    assert proof.function is lonely
    assert (proof.label, proof.kind, proof.symbols, proof.twin) == ("eq-test-2", "identity", ("x",), "a slip")
    assert proof.implements == ""
    assert re.fullmatch(r"test_proofs\.py:\d+", proof.source)
    assert proofs.holds(proof)
    with pytest.raises(ValueError, match=r"label 'eq-test-2' is taken by test_proofs.py:\d+"):
        proofs.identity("eq-test-2", "x", twin="another")(lonely)


@pytest.mark.usefixtures("empty_registry")
def test_verify_prints_the_check_and_refuses_what_fails(capsys):
    @proofs.identity("eq-good", "x", "y", twin="a letter too many")
    def good(wrong=False):
        """x + y, twice."""
        return [(x + y, x if wrong else y + x)] * 2

    proofs.statement("eq-number", twin="one")(lambda wrong=False: [proofs.Claim("zero", float(wrong), 0.5)])
    proofs.identity("eq-false", "x", "y", twin="none")(lambda wrong=False: [(x, y)])
    proofs.identity("eq-idle", "x", twin="no slip")(lambda wrong=False: [(x, x)])
    proofs.verify("eq-good", "eq-number")
    assert capsys.readouterr().out == (
        "eq-good: proved by sympy\n  x + y, twice.\n  left − right is 0, 2 times\n"
        "  wrong twin, refused: a letter too many\n"
        "eq-number: tested\n  \n  zero: 0 (at most 0.5)\n  wrong twin, refused: one\n"
    )
    assert proofs.outcome(proofs.find("eq-number")) == {
        "label": "eq-number",
        "kind": "statement",
        "seal": "tested",
        "says": "",
        "held": ["zero: 0 (at most 0.5)"],
        "twin": "one",
        "refused": ["zero: 1 (at most 0.5)"],
    }
    for label, message in {"eq-false": "does not hold", "eq-idle": "the twin was accepted"}.items():
        with pytest.raises(AssertionError, match=f"{label}:? {message}"):
            proofs.verify(label)
    with pytest.raises(KeyError, match="eq-none"):
        proofs.verify("eq-none")


@pytest.mark.usefixtures("empty_registry")
def test_registering_definitions_and_statements():
    def check(wrong=False):
        return [proofs.Claim("the distance to 0", 1.0 if wrong else 0.0, 0.5)]

    assert proofs.definition("eq-a", implements="ropebook.sinusoidal.encoding", twin="a slip")(check) is check
    assert proofs.statement("eq-b", twin="another")(check) is check
    one, other = (proofs._REGISTRY[label] for label in ("eq-a", "eq-b"))
    assert (one.kind, one.implements, one.twin) == ("definition", "ropebook.sinusoidal.encoding", "a slip")
    assert (other.kind, other.implements, other.twin) == ("statement", "", "another")
    assert one.function is other.function is check
    for proof in (one, other):
        assert proof.symbols == ()
        assert proofs.holds(proof)
        assert proofs.refused(proof)


@together(
    "name",
    [
        "ropebook.sinusoidal.nothing",
        "ropebook.nowhere.encoding",
        "encoding",
        "",
        "ropebook.sinusoidal.LARGEST_POSITION",
    ],
)
def test_a_definition_names_what_implements_it(name):
    with pytest.raises(ValueError, match=f"implements must name a function or class.*, got '{name}'"):
        proofs.definition("eq-a", implements=name, twin="a slip")


REGISTER = {
    "identity": lambda label, twin: proofs.identity(label, "x", twin=twin),
    "definition": lambda label, twin: proofs.definition(label, implements="ropebook.sinusoidal.encoding", twin=twin),
    "statement": lambda label, twin: proofs.statement(label, twin=twin),
}


@together("kind", REGISTER)
@together("label", ["sinusoidal", "eq-", "eq-Big", "eq-a b", "xeq-a", "eq-a\n", "", None, 3])
def test_labels_have_a_form(kind, label):
    with pytest.raises(ValueError, match="label must look like 'eq-sinusoidal-shift', got "):
        REGISTER[kind](label, "a slip")


@together("kind", REGISTER)
@together("twin", ["", "  ", None, True])
def test_a_twin_is_described(kind, twin):
    with pytest.raises(ValueError, match="twin must say what is wrong"):
        REGISTER[kind]("eq-fine", twin)


@together(
    ("error", "allowed", "expected"),
    [(0, 0, True), (1, 1, True), (0.9, 1, True), (1.1, 1, False), (math.nan, 1, False)],
)
def test_a_claim_holds_within_what_it_allows(error, allowed, expected):
    assert proofs.Claim("this", error, allowed).holds is expected


@pytest.mark.parametrize("kind", ["definition", "statement"])
def test_every_claim_counts(kind):
    good, bad = proofs.Claim("this", 0, 1), proofs.Claim("that", 2, 1)
    for claims, twin, holds, refused in [
        ([good, good], [bad, bad], True, True),
        ([good, bad], [bad, good], False, False),
        ([bad, good], [good, bad], False, False),
    ]:
        proof = proof_of(*claims, wrong=twin, symbols=(), kind=kind)
        assert proofs.claims(proof) == claims
        assert proofs.claims(proof, wrong=True) == twin
        assert proofs.holds(proof) is holds
        assert proofs.refused(proof) is refused
    for judge in (proofs.holds, proofs.refused):
        with pytest.raises(ValueError, match="eq-test: nothing to check"):
            judge(proof_of(wrong=(), kind=kind))


def test_the_registry_cannot_be_written():
    with pytest.raises(TypeError):
        REGISTRY["eq-new"] = None


@pytest.mark.usefixtures("empty_registry")
def test_the_examples_of_the_documentation_run():
    examples = textwrap.dedent(proofs.__doc__[proofs.__doc__.index("    @identity") :])
    exec(examples, {**vars(proofs), "torch": torch})
    assert list(proofs._REGISTRY) == ["eq-double-angle", "eq-unit-norm"]
    for proof in proofs._REGISTRY.values():
        assert proofs.holds(proof)
        assert proofs.refused(proof)


# --- One chapter's proofs ---


@together("label", REGISTRY)
def test_a_label_names_its_module(label):
    module = Path(REGISTRY[label].source.partition(":")[0]).stem
    assert f"{label}-".startswith(f"eq-{module.replace('_', '-')}-")
    assert proofs.find(label) is REGISTRY[label]


def test_a_proof_is_found_without_the_other_chapters():
    code = (
        "import sys; from ropebook import proofs; proofs.find('eq-complex-plane-dot'); "
        "print(*sorted(name for name in sys.modules if name.startswith('ropebook.proofs.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["ropebook.proofs.complex_plane", "ropebook.proofs.measuring"]


@together("label", ["eq-complex-plane-nothing", "eq-complex", "eq-nothing-of-this", ""])
def test_a_label_that_nothing_checks_is_not_found(label):
    with pytest.raises(KeyError, match=re.escape(repr(label))):
        proofs.find(label)
