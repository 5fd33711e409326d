"""How to call a rotation: the role of each argument, and the order of its tensors' axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from ropebook import checks, rope

# The roles that an argument can have. For each role, the argument names by which it is recognised.
NAMES = {
    "q": "q query queries xq query_states query_layer q_embed",
    "k": "k key keys xk key_states key_layer k_embed",
    "v": "v value values xv value_states value_layer",
    "x": "x t tensor inputs input hidden_states u z",
    "positions": "positions position position_ids pos input_pos index indices m",
    "cos": "cos cosine cosines cos_cached cos_cache cos_table",
    "sin": "sin sine sines sin_cached sin_cache sin_table",
    "freqs": "freqs freqs_cis freq_cis freqs_complex cis rotations phases",
    "offset": "offset start start_pos position_offset past_length shift",
}
ROLES = tuple(NAMES)
VECTORS = ("q", "k", "v", "x")

ORDERS = (
    "batch heads seq dim",
    "batch seq heads dim",
    "batch seq dim",
    "seq heads dim",
    "seq dim",
)
SIZES = {"batch": 2, "heads": 3, "seq": 5}


class Returned(ValueError):
    """Raised if a rotation returns anything other than rotated vectors. ``named`` is the name of the mistake."""

    def __init__(self, named: str, message: str):
        super().__init__(message)
        self.named = named


@dataclass(frozen=True)
class Call:
    """A rotation and how to call it.

    ``roles`` contains the roles of its positional arguments, ``named`` a (name, role) pair for each keyword argument.
    """

    function: Callable
    roles: tuple[str, ...]
    named: tuple[tuple[str, str], ...]
    order: str
    dim: int
    base: float
    axes: str = "seq"
    spread: str = ""
    dtype: torch.dtype = torch.float64
    along: str = "seq"
    one_row: bool = (
        False  # rows are rotated differently, so they are measured one at a time
    )
    head: int = 0  # the head that is measured
    exchanged: bool = False  # whether the function returns the rotated k in place of q, and q in place of k
    first: tuple[Tensor, ...] = ()  # what the first call of `probe` returned

    @property
    def vectors(self) -> tuple[str, ...]:
        """The roles of the tensors that may be rotated, in the order in which they are passed."""
        return tuple(role for role in self.given if role in VECTORS)

    @property
    def given(self) -> tuple[str, ...]:
        """The roles of all arguments, including keyword arguments."""
        return (*self.roles, *(role for _, role in self.named))

    @property
    def places(self) -> bool:
        """Whether the caller can choose arbitrary positions."""
        return bool({"positions", "cos", "freqs"} & set(self.given))

    @property
    def tables(self) -> bool:
        """Whether the angles are passed as an argument. If so, the rotation has no frequencies of its own."""
        return bool({"cos", "freqs"} & set(self.given))

    @property
    def words(self) -> str:
        """A description of the call, such as "(q, k, positions), vectors as (batch, heads, seq, dim)"."""
        names = [*self.roles, *(f"{name}=" for name, _ in self.named)]
        spread = (
            f", tables spread as {self.spread}"
            if self.spread in checks.LAYOUTS
            else ""
        )
        return f"({', '.join(names)}), vectors as ({', '.join(self.order.split())}){spread}"

    def arranged(self, x: Tensor) -> Tensor:
        """Arrange x (batch, seq, dim) in the axis order of the call, repeating it for each head."""
        at = {"batch": x.shape[0], "heads": SIZES["heads"], "seq": x.shape[1]}
        names = self.order.split()
        x = x.to(self.dtype)
        if "batch" not in names:
            # treat the rows of a batch like heads
            x = x.transpose(0, 1) if "heads" in names else x[0]
            return x.clone()
        if "heads" in names:
            seq_first = names.index("seq") < names.index("heads")
            x = x[:, :, None] if seq_first else x[:, None]
            sizes = [at.get(name, self.dim) for name in names]
            x = x.expand(sizes)
        # a copy: the rotation may write into it
        return x.clone()

    def read(self, x: Tensor) -> Tensor:
        """Undo `arranged`: return the measured head (batch, seq, dim), in float64."""
        names = self.order.split()
        x = x.detach().double()
        if "batch" not in names:
            return x.transpose(0, 1) if "heads" in names else x[None]
        if "heads" in names:
            return x.select(names.index("heads"), self.head)
        return x

    @property
    def rows_and_heads(self) -> tuple[int, int]:
        """The numbers of rows and heads in a trial. Each is 1 if the axis order doesn't include that axis."""
        names = self.order.split()
        return tuple(
            SIZES[name] if name in names else 1 for name in ("batch", "heads")
        )

    def apart(
        self, given: dict[str, Tensor], positions: Tensor
    ) -> dict[str, Tensor]:
        """Apply the function to tensors (batch, heads, seq, dim) whose rows and heads may differ.

        Returns the results in float64.

        ``positions`` has shape (seq,), or (batch, seq) if the rows have different positions.
        """
        whole = ("batch", "heads", "seq", "dim")
        names = self.order.split()
        axes = [whole.index(name) for name in names]
        absent = [axis for axis in range(4) if axis not in axes]
        back = [[*axes, *absent].index(axis) for axis in range(4)]
        roles = self.vectors

        def there(x: Tensor) -> Tensor:
            x = x.to(self.dtype).permute(*axes, *absent)
            # a copy: the rotation may write into it
            return x.reshape(x.shape[: len(axes)]).clone()

        def again(x: Tensor) -> Tensor:
            return x.detach().double()[(...,) + (None,) * len(absent)].permute(back)

        sent = [given[role] if role != "x" else given["q"] for role in roles]
        found = self.raw(
            dict(zip(roles, map(there, sent), strict=True)),
            positions,
            len(given["q"]),
        )
        return {
            ("q" if role == "x" else role): again(x)
            for role, x in zip(roles, found, strict=False)
        }

    def beside(self, role: str, positions: Tensor, batch: int) -> Tensor | int:
        """Build the argument for a role other than a vector: positions, a table or an offset.

        ``positions`` has shape (seq,) or (batch, seq).
        """
        if role == "offset":
            return int(positions[0])
        if role == "positions" and positions.ndim == 2:
            return positions.clone()
        if role == "positions":
            # a copy, because the function may write into it and later calls must not be affected
            return _placed(positions, self.axes, batch, 0).clone()
        axes = self.axes
        if "positions" in self.given:
            # the function uses positions to index the table
            axes, positions = "seq", torch.arange(int(positions.max()) + 1)
        angles = rope.angles(positions, self.dim, self.base)
        if self.spread in checks.LAYOUTS:
            angles = rope.join_pairs(angles, angles, self.spread)
        if role == "freqs" and self.spread == "complex":
            table = torch.polar(torch.ones_like(angles), angles)
            kind = torch.promote_types(self.dtype, torch.complex32)
        else:
            table = {"cos": torch.cos, "sin": torch.sin}.get(role, torch.clone)(
                angles
            )
            kind = self.dtype
        return _placed(table.to(kind), axes, batch, 1)

    def raw(
        self, vectors: dict[str, Tensor], positions: Tensor, batch: int
    ) -> list:
        """Call the function with vectors in its own axis order.

        Raises `Returned` if the shapes of the results are wrong.
        """

        def argument(role: str) -> object:
            if role in vectors:
                return vectors[role]
            return self.beside(role, positions, batch)

        result = self.function(
            *map(argument, self.roles),
            **{name: argument(role) for name, role in self.named},
        )
        found = outputs(result, [vectors[role] for role in self.vectors])
        if self.exchanged:
            q, k = self.vectors.index("q"), self.vectors.index("k")
            found[q], found[k] = found[k], found[q]
        return found

    def probe(self) -> tuple[Tensor, ...]:
        """Call the function with the same random vector everywhere, and return its results in float64."""
        sizes = [SIZES.get(name, self.dim) for name in self.order.split()]
        generator = torch.Generator().manual_seed(0)
        vector = torch.randn(self.dim, dtype=self.dtype, generator=generator)
        vectors = {role: vector.expand(sizes).clone() for role in self.vectors}
        found = self.raw(vectors, torch.arange(SIZES["seq"]), SIZES["batch"])
        # a copy: the function may write into its result later
        return tuple(x.detach().double().clone() for x in found)

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, positions: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the rotated q′, k′ and v′ (batch, seq, dim) in float64.

        A function that takes a single tensor is called twice, first with q and then with k.
        """
        alone = "batch" not in self.order and "heads" not in self.order
        if (alone or self.one_row) and len(q) > 1:
            rows = [
                self(*(x[i : i + 1] for x in (q, k, v)), positions)
                for i in range(len(q))
            ]
            return tuple(torch.cat(found) for found in zip(*rows, strict=True))
        batch = len(q)
        if self.vectors == ("x",):
            q2, k2 = (
                self.read(self.raw({"x": self.arranged(x)}, positions, batch)[0])
                for x in (q, k)
            )
            return q2, k2, v.double()
        given = {"q": q, "k": k, "v": v}
        arranged = {role: self.arranged(given[role]) for role in self.vectors}
        found = self.raw(arranged, positions, batch)
        turned = {role: x.double() for role, x in given.items()}
        turned |= {
            role: self.read(x) for role, x in zip(self.vectors, found, strict=False)
        }
        return tuple(turned.values())


def _placed(table: Tensor, axes: str, batch: int, width: int) -> Tensor:
    """Expand a table (seq, …) to the named axes. If ``width`` is 1, the table's last axis is kept after them."""
    shape = [
        {"1": 1, "seq": len(table), "batch": batch}[name] for name in axes.split()
    ]
    if "batch" in axes:
        return table.expand(*shape, *table.shape[1:])
    return (
        table.reshape(*shape, *table.shape[1:]) if width else table.reshape(shape)
    )


def _axes(sent: Tensor, came: Tensor) -> str:
    """Describe how the shape of a returned tensor differs from the shape of the input."""
    if sorted(sent.shape) == sorted(came.shape):
        return ": axes have changed places (transposed)"
    if came.ndim == sent.ndim - 1 and [n for n in sent.shape if n != 1] == [
        n for n in came.shape if n != 1
    ]:
        return ": an axis of size 1 is lost (squeezed)"
    if came.ndim != sent.ndim:
        return f": it has {came.ndim} axes, not {sent.ndim}"
    other = [
        axis
        for axis, sizes in enumerate(zip(sent.shape, came.shape, strict=True))
        if sizes[0] != sizes[1]
    ]
    if other == [sent.ndim - 1]:
        return ": its width is another one, so entries of the head are lost, or there twice"
    return ": tables and vectors are broadcast along the wrong axis, or entries are lost"


def outputs(result: object, given: list[Tensor]) -> list[Tensor]:
    """Return the tensors in a result. The one for v may be missing.

    Raises `Returned` unless each tensor has the shape of its input and contains real numbers.
    """
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(given) == 1 and len(found) > 1:
        said = (
            "which is what a function of tables returns" if len(found) == 2 else ""
        )
        raise Returned(
            "other_shape",
            f"it must return 1 tensor, got {len(found)} {said}".strip(),
        )
    least = min(len(given), 2)
    if len(found) < least or not all(isinstance(x, Tensor) for x in found):
        kinds = ", ".join(type(x).__name__ for x in found)
        raise Returned(
            "other_shape", f"it must return {len(given)} tensors, got {kinds}"
        )
    for x, y in zip(given, found, strict=False):
        if x.shape != y.shape:
            raise Returned(
                "other_shape",
                f"it must return the shape that it is given, {tuple(x.shape)}, got {tuple(y.shape)}{_axes(x, y)}",
            )
        if not y.is_floating_point():
            raise Returned(
                "other_type", f"it must return real numbers, got dtype {y.dtype}"
            )
    return found[: len(given)]
