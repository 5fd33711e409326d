"""Open a GGUF file and read its metadata and its tensors, which are dequantised to
float32 one at a time.

Source: the specification in ggml's repository, docs/gguf.md. The parsing is done by
the package gguf, which llama.cpp publishes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from gguf.gguf_reader import ReaderTensor

_MAGIC = b"GGUF"


@dataclass(frozen=True)
class Container:
    """An open GGUF file, as `read` returns it.

    ``metadata`` maps each key to its value, as plain Python numbers, strings, booleans
    and lists. ``tensors`` maps names to the stored tensors, which are still quantised;
    use `shape`, `stored_as` and `tensor` to look at one of them.
    """

    path: Path
    metadata: Mapping[str, object]
    tensors: Mapping[str, ReaderTensor]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the tensor's shape as torch writes it. GGUF lists the axes in the
        opposite order."""
        return tuple(int(size) for size in reversed(self._stored(name).shape))

    def stored_as(self, name: str) -> str:
        """Return the type in which the file stores the tensor, such as "F32" or
        "Q4_1"."""
        return self._stored(name).tensor_type.name

    def tensor(self, name: str) -> Tensor:
        """Return a copy of the tensor as float32, with the shape that `shape` returns.
        The copy does not depend on the file.

        Raises:
            KeyError: the file has no tensor of this name.
            ValueError: the tensor is stored in a type that gguf cannot dequantise. The
                message lists the types that it can.
        """
        from gguf import quants

        stored = self._stored(name)
        try:
            values = quants.dequantize(stored.data, stored.tensor_type)
        except NotImplementedError as error:
            raise ValueError(
                f"{self.path}: {name} must be stored as one of {', '.join(_readable_types())}, "
                f"got {stored.tensor_type.name}"
            ) from error
        # The memory-mapped file is read-only, and its bytes may be big-endian.
        values = values.astype("float32", copy=True).reshape(self.shape(name))
        return torch.from_numpy(values)

    def _stored(self, name: str) -> ReaderTensor:
        if name not in self.tensors:
            raise KeyError(f"{self.path} has no tensor {name!r}")
        return self.tensors[name]


def read(path: str | os.PathLike[str]) -> Container:
    """Open the GGUF file at ``path``. The file is memory-mapped, so a tensor is read
    only when you ask for it. Opening takes a few seconds if the vocabulary is large.

    Raises:
        ModuleNotFoundError: the package gguf is not installed. The message says how to
            install it.
        FileNotFoundError: the file does not exist.
        ValueError: the file is not a GGUF file, part of it is missing, or gguf does
            not support its version.
    """
    gguf = _gguf()
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path must name a GGUF file, got {path}")
    with path.open("rb") as file:
        begins = file.read(len(_MAGIC))
    if begins != _MAGIC:
        raise ValueError(
            f"path must name a GGUF file, whose first bytes are {_MAGIC}; {path} begins with {begins}"
        )
    try:
        reader = gguf.GGUFReader(path)
        metadata = {key: field.contents() for key, field in reader.fields.items()}
    # In a truncated file the reader may take arbitrary bytes for a number, so it can
    # fail in any of these ways.
    except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
        raise ValueError(
            f"{path} must be a whole GGUF file, of version 2 or 3, but it cannot be read to its end: {error}"
        ) from error
    return Container(path, metadata, {one.name: one for one in reader.tensors})


def _readable_types() -> list[str]:
    import numpy
    from gguf import GGMLQuantizationType, quants

    found = []
    for kind in GGMLQuantizationType:
        try:
            quants.dequantize(numpy.zeros(0, numpy.uint8), kind)
        except NotImplementedError:
            continue
        except Exception:  # only the empty array fails, not the type
            pass
        found.append(kind.name)
    return found


def _gguf():
    try:
        import gguf
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "to read a GGUF file, the package gguf must be installed: pip install 'ropebook[real]'",
            name="gguf",
        ) from error
    return gguf
