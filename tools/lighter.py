"""Write smaller versions of large results that notebooks read, for the wheel: python -m tools.lighter.

The repository contains the trained weights unchanged, while the wheel contains rounded ones;
`ropebook.lab.model.pretrained` reads both. For the models with T5's biases, the wheel contains only the table of
biases, because the pages read nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from safetensors.torch import load, save

from ropebook.lab.int8 import rounded
from tools.paths import ROOT

TRIALS = ROOT / "results" / "trials"
FOLDER = TRIALS / "light"


def in_int8(weights: bytes) -> bytes:
    """Return trained weights with their matrices stored in one byte per entry."""
    return save(rounded(load(weights)))


def buckets_alone(weights: bytes) -> bytes:
    """Return only the table of T5's biases from the weights of a trained model."""
    return save({"buckets": load(weights)["buckets"]})


LIGHTER: dict[str, Callable[[bytes], bytes]] = {
    "rope-10000-0-3200.safetensors": in_int8,
    **{f"t5-{seed}.safetensors": buckets_alone for seed in range(3)},
}


def main(folder: Path = FOLDER) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, lighter in LIGHTER.items():
        (folder / name).write_bytes(lighter((TRIALS / name).read_bytes()))


if __name__ == "__main__":
    main()
