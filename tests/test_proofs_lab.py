"""Test that the checks of the *Measured* chapter describe what the module computes.

test_proofs.py tests that the wrong twin of each of these checks is refused.
"""

import math

import pytest
import sympy
import torch

from ropebook import proofs
from ropebook.lab.intervals import crossed
from ropebook.lab.means import paired

CHAPTER = {label: proof for label, proof in proofs.registry().items() if label.startswith("eq-lab-")}
ONE, OTHER = [1.2, 1.8, 2.4, 3.0], [1.3, 1.9, 2.6, 3.2]


def sides(wrong=False):
    """Return both equalities in the identity about variances, evaluated for the numbers of four files."""
    values = {r"\ell": ONE, r"\ell'": OTHER}

    def number(side):
        side = side.subs(sympy.Symbol("N", integer=True, positive=True), len(ONE)).doit()
        for name, numbers in values.items():
            base = sympy.IndexedBase(name)
            side = side.subs({base[j]: number for j, number in enumerate(numbers, 1)})
            side = side.subs(sympy.Symbol(rf"\bar{name}"), sum(numbers) / len(numbers))
        return float(side)

    found = proofs.pairs(CHAPTER["eq-lab-pairing"], wrong)
    return [(number(left), number(right)) for left, right in found]


def test_the_chapter_has_its_checks():
    assert {label: proof.kind for label, proof in CHAPTER.items()} == {
        "eq-lab-bits": "definition",
        "eq-lab-error": "definition",
        "eq-lab-pairing": "identity",
        "eq-lab-crossed": "identity",
        "eq-lab-context": "definition",
    }


def test_the_variance_of_a_difference_is_that_of_the_module():
    (mean, means), (variance, parts) = sides()
    one, other = (torch.tensor(x, dtype=torch.float64) for x in (ONE, OTHER))
    found = paired(one, other)
    assert mean == pytest.approx(found.mean.item(), rel=1e-12)
    assert means == pytest.approx(found.mean.item(), rel=1e-12)
    assert variance == pytest.approx(len(ONE) * found.error.item() ** 2, rel=1e-12)
    assert parts == pytest.approx(variance, rel=1e-12)
    covariance = torch.cov(torch.stack((one, other)))
    expected = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
    assert variance == pytest.approx(expected.item(), rel=1e-9)


def test_its_wrong_twin_is_false_and_not_merely_unproved():
    for left, right in sides(wrong=True):
        assert left != pytest.approx(right, abs=1e-3)


def test_the_estimate_is_the_modules():
    """The table has no noise, and its parts are known. The mean squares and the resulting error can therefore be
    computed."""
    seeds, files = torch.tensor([1.0, -1.0]).double(), torch.tensor([3.0, 0.0, -3.0]).double()
    found = crossed(seeds[:, None] + files)
    squares = {"a": seeds.var() * 3, "b": files.var() * 2}
    assert found.error**2 == pytest.approx((squares["a"] + squares["b"]).item() / 6, rel=1e-12)
    ((estimate, written),) = proofs.pairs(CHAPTER["eq-lab-crossed"])
    sizes = {"N_s": 2, "N": 3, r"\sigma_a": math.sqrt(2), r"\sigma_b": 3, r"\sigma_e": 0}
    for side in (estimate, written):
        number = side.subs({symbol: sizes[symbol.name] for symbol in side.free_symbols})
        assert float(number) == pytest.approx(found.error**2, rel=1e-12)
