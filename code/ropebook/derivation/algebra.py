"""The derivation in the plane, with each step carried out by sympy, and the worked example without rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ropebook import checks

if TYPE_CHECKING:
    import sympy


class Polar(NamedTuple):
    """The requirement f(q, m)·conj f(k, n) = g(q, k, m − n) in polar form: equations for lengths and for angles."""

    lengths: sympy.Eq
    angles: sympy.Eq


class Phase(NamedTuple):
    """The derivation of the angle φ(m) by which position m rotates.

    ``step`` is an equation with every m on its left side and everything else on its right. ``recurrence`` follows from
    it, and ``solution`` solves the recurrence.
    """

    step: sympy.Eq
    recurrence: sympy.Eq
    solution: sympy.Eq


def polar_form() -> Polar:
    """Write f(q, m) as r(q, m)·e^{iΦ(q, m)}, and g likewise. Taking the logarithm separates lengths from angles.

    The equation for angles holds up to whole turns. Su et al. (2021), section 3.4.1.

    >>> polar_form().angles
    Eq(-Phi(k, n) + Phi(q, m), Phi_g(q, k, m - n))
    """
    import sympy

    k, m, n, q = _symbols("k m n q")
    demanded = _polar("r", "Phi", q, m) * sympy.conjugate(_polar("r", "Phi", k, n))
    found = _polar("r_g", "Phi_g", q, k, m - n)
    left, right = (
        sympy.expand_log(sympy.log(side), force=True) for side in (demanded, found)
    )
    return Polar(
        sympy.Eq(sympy.exp(sympy.re(left)), sympy.exp(sympy.re(right))),
        sympy.Eq(sympy.im(left), sympy.im(right)),
    )


def length_at(equation: sympy.Eq) -> sympy.Eq:
    """Set k = q and n = m in the equation for lengths. It follows that r(q, m) = r(q, 0), the length of q.

    >>> length_at(polar_form().lengths)
    Eq(r(q, m), r(q, 0))
    """
    import sympy

    k, m, n, q = _symbols("k m n q")
    here = equation.subs({k: q, n: m})
    start = here.subs(m, 0)
    unknown = _length(q, m)
    roots = sympy.solve(here.subs(start.rhs, start.lhs), unknown)
    [found] = [root for root in roots if root.is_positive]  # a length is positive
    return sympy.Eq(unknown, found)


def angle_at(equation: sympy.Eq) -> sympy.Eq:
    """Set n = m in the equation for angles. It follows that Φ(q, m) is Φ(q, 0) plus an amount that doesn't depend on q.

    Raises ``ValueError`` if the amount does depend on q.

    >>> angle_at(polar_form().angles)
    Eq(Phi(q, m), -Phi(k, 0) + Phi(k, m) + Phi(q, 0))
    """
    import sympy

    m, n, q = _symbols("m n q")
    here = equation.subs(n, m)
    start = here.subs(m, 0)
    unknown = _angle(q, m)
    [found] = sympy.solve(here.subs(start.rhs, start.lhs), unknown)
    amount = found - _angle(q, 0)
    if amount.has(q):
        raise ValueError(
            f"equation must rotate every q by the same amount, got {amount}"
        )
    return sympy.Eq(unknown, found)


def phase(equation: sympy.Eq) -> Phase:
    """Set n = m − 1 in the equation for angles, with Φ(q, m) from `angle_at`, and solve the recurrence for φ.

    The amount Φ(q, m) − Φ(q, 0) does not contain k, and it equals an expression that does not contain q. It is
    therefore a function φ of m alone, and φ(0) = 0. In the equation for n = m − 1, move every term with an m to the
    left and the rest to the right. Now the left side does not depend on q and k, and the right side does not depend on
    m, so both equal a constant, θ.

    Raises ``ValueError`` if the amount depends on q, or if the left side is anything other than φ(m) − φ(m − 1).

    >>> phase(polar_form().angles).step
    Eq(phi(m) - phi(m - 1), Phi(k, 0) - Phi(q, 0) + Phi_g(q, k, 1))
    >>> phase(polar_form().angles).solution
    Eq(phi(m), m*theta)
    """
    import sympy

    m, n, q = _symbols("m n q")
    theta = sympy.Symbol("theta", real=True)
    turned = sympy.Function("phi", real=True)
    found = angle_at(equation).rhs
    named = found.subs(found - _angle(q, 0), turned(m))  # Φ(q, 0) + φ(m)
    neighbours = equation.replace(
        sympy.Function("Phi", real=True),
        lambda vector, position: named.subs(
            {q: vector, m: position}, simultaneous=True
        ),
    ).subs(n, m - 1)
    fixed, moving = sympy.expand(neighbours.lhs - neighbours.rhs).as_independent(
        m, as_Add=True
    )
    if moving != turned(m) - turned(m - 1):
        raise ValueError(
            f"equation must have no m in a step but φ(m) − φ(m − 1), got {moving}"
        )
    recurrence = sympy.Eq(turned(m), turned(m - 1) + theta)
    solution = sympy.rsolve(recurrence, turned(m), {turned(0): 0})
    return Phase(
        sympy.Eq(moving, -fixed), recurrence, sympy.Eq(turned(m), solution)
    )


def turned_vector(solution: sympy.Eq) -> sympy.Matrix:
    """Return the matrix at the end of the derivation.

    It maps the column (x, y) to the real and imaginary parts of (x + iy)·e^{iφ(m)}.

    >>> turned_vector(phase(polar_form().angles).solution)
    Matrix([
    [cos(m*theta), -sin(m*theta)],
    [sin(m*theta),  cos(m*theta)]])
    """
    import sympy

    x, y = sympy.symbols("x y", real=True)
    turned = sympy.expand((x + sympy.I * y) * sympy.exp(sympy.I * solution.rhs))
    return sympy.Matrix([sympy.re(turned), sympy.im(turned)]).jacobian([x, y])


def rotate_exactly(q: list, position: int, base: int = 10000) -> sympy.Matrix:
    """Compute R_m q without rounding, for the worked example.

    The result is an exact column in terms of sines and cosines, in the interleaved layout.

    ``q``: a list of whole numbers or sympy numbers, of even length. ``position`` and ``base``: whole numbers.

    >>> rotate_exactly([1, 2], position=2).T
    Matrix([[-2*sin(2) + cos(2), 2*cos(2) + sin(2)]])
    """
    import sympy

    dim = checks.even("the length of q", len(q))
    position = checks.integer("position", position)
    base = checks.integer("base", base, minimum=1)
    blocks = []
    for i in range(dim // 2):
        angle = position * sympy.Integer(base) ** sympy.Rational(-2 * i, dim)
        cos, sin = sympy.cos(angle), sympy.sin(angle)
        blocks.append(sympy.Matrix([[cos, -sin], [sin, cos]]))
    return sympy.diag(*blocks) * sympy.Matrix(q)


def _polar(length: str, angle: str, *arguments: sympy.Expr) -> sympy.Expr:
    import sympy

    return _length(*arguments, name=length) * sympy.exp(
        sympy.I * _angle(*arguments, name=angle)
    )


def _length(*arguments: sympy.Expr, name: str = "r") -> sympy.Expr:
    import sympy

    return sympy.Function(name, positive=True)(*arguments)


def _angle(*arguments: sympy.Expr, name: str = "Phi") -> sympy.Expr:
    import sympy

    return sympy.Function(name, real=True)(*arguments)


def _symbols(names: str) -> tuple[sympy.Symbol, ...]:
    """Return symbols for the vectors q and k, and for the whole numbers m and n."""
    import sympy

    return tuple(
        sympy.Symbol(name, integer=True) if name in "mn" else sympy.Symbol(name)
        for name in names.split()
    )
