"""Find out which Llama a GGUF file describes, by reading its sizes, base and trained
length from the metadata."""

from __future__ import annotations

from dataclasses import dataclass

from ropebook import checks
from ropebook.real.container import Container

ARCHITECTURE = "llama"
"""The only architecture that can be loaded, under its name in
``general.architecture``."""

SCALINGS = ("none",)
"""The allowed values of ``llama.rope.scaling.type``. The frequencies must be plain
base^(−2i/d)."""

_BASE = 10000.0  # llama.cpp's default if the file specifies no base
_FREQUENCY_FACTORS = "rope_freqs.weight"


@dataclass(frozen=True)
class Configuration:
    """The sizes of a Llama, its base, and its trained length. The fields are named as
    in `LlamaModel`.

    ``name`` and ``license`` come from the file, and are "" if the file does not specify
    them.
    """

    name: str
    license: str
    vocab_size: int
    dim: int
    hidden_dim: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    norm_eps: float
    base: float
    trained_length: int
    tied: bool

    def model_options(self) -> dict[str, object]:
        """Return all arguments of `LlamaModel` except for the layout."""
        names = (
            "vocab_size",
            "dim",
            "hidden_dim",
            "n_layers",
            "n_heads",
            "n_kv_heads",
            "head_dim",
        )
        others = ("norm_eps", "base", "tied")
        return {name: getattr(self, name) for name in names + others}


def configuration(file: Container) -> Configuration:
    """Return the configuration of the Llama in a GGUF file.

    Raises:
        ValueError: the architecture is not supported; a key is missing or has no
            sensible value; the rotation is scaled or does not cover the whole head;
            keys and values have different widths; or the model has experts.
    """
    known = _Keys(file)
    checks.choice(
        f"{file.path}: general.architecture",
        file.metadata.get("general.architecture"),
        [ARCHITECTURE],
    )
    dim = known.integer("embedding_length")
    n_heads = known.integer("attention.head_count")
    n_kv_heads = known.integer("attention.head_count_kv", n_heads)
    head_dim = known.integer("attention.key_length", dim // n_heads)
    known.must_be("attention.value_length", head_dim, "the width of the keys")
    known.must_be("rope.dimension_count", head_dim, "the width of a head")
    known.must_be(
        "expert_count", 0, "none, as in a Llama with one SwiGLU in each layer"
    )
    _plain_rotation(file, known)
    if n_heads % n_kv_heads:
        raise ValueError(
            f"{known.name('attention.head_count_kv')} must be a divisor of {n_heads} heads, got {n_kv_heads}"
        )
    embedding = "token_embd.weight"
    if embedding not in file.tensors:
        raise ValueError(
            f"{file.path} must have the tensor {embedding!r}, which is missing"
        )
    return Configuration(
        name=str(file.metadata.get("general.name", "")),
        license=str(file.metadata.get("general.license", "")),
        vocab_size=file.shape(embedding)[0],
        dim=dim,
        hidden_dim=known.integer("feed_forward_length"),
        n_layers=known.integer("block_count"),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=checks.even(known.name("attention.key_length"), head_dim),
        norm_eps=known.number("attention.layer_norm_rms_epsilon"),
        base=known.number("rope.freq_base", _BASE),
        trained_length=known.integer("context_length"),
        tied="output.weight" not in file.tensors,
    )


def _plain_rotation(file: Container, known: _Keys) -> None:
    key = "rope.scaling.type"
    checks.choice(known.name(key), known.get(key, SCALINGS[0]), SCALINGS)
    # Files written before October 2023 specify only the factor.
    for key in ("rope.scaling.factor", "rope.scale_linear"):
        known.must_be(key, 1.0, "1, for frequencies that are not scaled")
    if _FREQUENCY_FACTORS in file.tensors:
        raise ValueError(
            f"{file.path} must have no tensor {_FREQUENCY_FACTORS!r}: it scales the frequencies, as in Llama 3.1"
        )


class _Keys:
    """The metadata of one architecture. Every error message names the file and the full
    key."""

    def __init__(self, file: Container):
        self.file = file

    def name(self, key: str) -> str:
        return f"{self.file.path}: {ARCHITECTURE}.{key}"

    def get(self, key: str, default: object = None) -> object:
        return self.file.metadata.get(f"{ARCHITECTURE}.{key}", default)

    def integer(self, key: str, default: int | None = None) -> int:
        return checks.integer(self.name(key), self._there(key, default), minimum=1)

    def number(self, key: str, default: float | None = None) -> float:
        return checks.number(self.name(key), self._there(key, default), above=0)

    def must_be(self, key: str, wanted: float, meaning: str) -> None:
        found = self.get(key, wanted)
        if found != wanted:
            raise ValueError(
                f"{self.name(key)} must be {wanted} ({meaning}), got {found!r}"
            )

    def _there(self, key: str, default: object) -> object:
        found = self.get(key, default)
        if found is None:
            raise ValueError(f"{self.name(key)} must be there, and it is missing")
        return found
