"""Other families of matrices, in any dimension, that meet our requirement for a score; and why pairs are enough."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.derivation.matrices import rotation
from ropebook.rope import Positions


def reflection(angle: Positions) -> Tensor:
    """Return the matrix F that reflects the plane in the line at angle/2 radians: F = Fᵀ, F² = I, det F = −1.

    The result has shape angle.shape + (2, 2).

    >>> reflection(0.0)
    tensor([[ 1.,  0.],
            [ 0., -1.]], dtype=torch.float64)
    """
    turn = rotation(angle)
    mirror = torch.tensor([1.0, -1.0], dtype=torch.float64, device=turn.device)
    return turn * mirror


def breach(step: Tensor, reach: int) -> float:
    """Return how far O_n = stepⁿ is from meeting the requirement.

    This is the largest absolute entry of O_mᵀ O_n − O_{n−m} for m and n from −reach to reach.

    The result is zero up to rounding for every orthogonal ``step``. ``step``: (dim, dim), invertible.

    >>> breach(reflection(0.0), reach=5), breach(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), reach=1)
    (0.0, 1.0)
    """
    _square("step", step)
    reach = checks.integer("reach", reach, minimum=1)
    step = rope.in_float64(step)
    exponents = range(-2 * reach, 2 * reach + 1)
    try:
        family = torch.stack(
            [torch.linalg.matrix_power(step, n) for n in exponents]
        )
    except torch.linalg.LinAlgError:
        raise ValueError("step must be invertible, got a singular matrix") from None
    n = torch.arange(-reach, reach + 1)
    at = 2 * reach  # the index of O_0
    products = family[at + n[:, None]].mT @ family[at + n]
    return (products - family[at + n - n[:, None]]).abs().max().item()


class NormalForm(NamedTuple):
    """Ω = basis · diag(θ_0 J, θ_1 J, …) · basisᵀ, with an orthogonal basis and θ_0 ≥ θ_1 ≥ … ≥ 0."""

    basis: Tensor
    frequencies: Tensor


def normal_form(skew: Tensor) -> NormalForm:
    """Find the planes in which a skew-symmetric matrix Ω generates rotations, and their frequencies.

    Returns a basis (dim, dim) and frequencies (dim/2,), float64.

    Columns 2i and 2i + 1 of the basis span the plane of pair i. Ω maps the first of these columns to θ_i times the
    second, and the second to −θ_i times the first. Therefore exp(mΩ) = basis · R_m · basisᵀ with these frequencies.
    Basis and frequencies are computed from the eigenvectors of the Hermitian matrix iΩ (Horn and Johnson, "Matrix
    Analysis", 2nd edition, section 2.5).

    ``skew``: Ω, (dim, dim), dim even, Ωᵀ = −Ω up to rounding.

    >>> normal_form(torch.tensor([[0.0, 3.0], [-3.0, 0.0]])).frequencies
    tensor([3.], dtype=torch.float64)
    """
    dim = checks.even("the size of skew", _square("skew", skew).shape[0])
    skew = rope.in_float64(skew)
    size = skew.abs().max().item()
    skewness = (skew + skew.T).abs().max().item()
    if skewness > 1e-6 * size:
        raise ValueError(
            f"skew must be skew-symmetric, but its sum with its transpose has an entry of size {skewness:.3g}"
        )
    values, vectors = torch.linalg.eigh(1j * (skew - skew.T) / 2)
    turning = values.flip(0) > dim * torch.finfo(skew.dtype).eps * size
    planes = torch.view_as_real(vectors.flip(1)[:, turning]).flatten(-2)
    basis, _ = torch.linalg.qr(
        planes, mode="complete"
    )  # the remaining columns are directions that are not rotated
    first, second = basis[:, ::2], basis[:, 1::2]
    frequencies = (second * (skew @ first)).sum(0)
    # In some planes the basis has the opposite orientation, so we flip its second vector there.
    sign = torch.where(frequencies < 0, -1.0, 1.0).double()
    basis = torch.stack((first, second * sign), dim=-1).flatten(-2)
    return NormalForm(basis, frequencies.abs())


def _square(name: str, matrix: Tensor) -> Tensor:
    checks.floating(name, matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name} must have shape (dim, dim), got {tuple(matrix.shape)}"
        )
    if not matrix.isfinite().all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return matrix
