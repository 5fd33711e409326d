"""Write the heavy results that notebooks read in a smaller form, for the wheel: python -m tools.lighter.

The repository has the trained weights as they are. The wheel has them rounded, and `ropebook.lab.model.pretrained`
reads both. Of the models with T5's biases it has only the table, because the pages read nothing else of them.
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
    """Trained weights with their matrices in one byte per entry."""
    return save(rounded(load(weights)))


def buckets_alone(weights: bytes) -> bytes:
    """Of a trained model only T5's table."""
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
