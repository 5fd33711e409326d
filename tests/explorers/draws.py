"""Pseudorandom numbers that are identical in Python and in JavaScript.

The interactive figures run in the reader's browser and the tests in Python, so both must start from the same vectors. A
label (any string) is hashed by FNV-1a, the hash seeds mulberry32, and the Box–Muller transform converts the resulting
uniform numbers to normal ones. The JavaScript versions are in ``rope.js`` under the same names. The numbers are good
enough for figures; for statistics, use ``torch.Generator``.

Sources: Fowler, Noll and Vo, *The FNV Non-Cryptographic Hash Algorithm*; mulberry32, T. Ettinger 2017, public domain;
Box and Muller 1958, *A Note on the Generation of Random Normal Deviates*.
"""

from __future__ import annotations

import numpy as np

from ropebook import checks


def fnv1a(text: str) -> int:
    """Return the 32-bit FNV-1a hash of ``text`` in UTF-8.

    >>> hex(fnv1a("a"))
    '0xe40c292c'
    """
    hash_ = 0x811C9DC5
    for byte in text.encode():
        hash_ = (hash_ ^ byte) * 0x01000193 % 2**32
    return hash_


def uniforms(seed: int, count: int) -> np.ndarray:
    """Return the first ``count`` outputs of mulberry32 for ``seed`` (0 … 2³² − 1): multiples of 2⁻³² in [0, 1), in
    float64.

    >>> uniforms(1, 3).round(6).tolist()
    [0.627074, 0.002736, 0.527447]
    """
    checks.integer("seed", seed, minimum=0, maximum=2**32 - 1)
    checks.integer("count", count, minimum=0)
    turns = np.arange(1, count + 1, dtype=np.uint64)
    # From here on everything is modulo 2³², like products of uint32.
    state = (turns * np.uint64(0x6D2B79F5) + np.uint64(seed)).astype(np.uint32)
    mixed = (state ^ (state >> 15)) * (state | 1)
    mixed ^= mixed + (mixed ^ (mixed >> 7)) * (mixed | 61)
    return (mixed ^ (mixed >> 14)) / 2.0**32


def normals(label: str, count: int) -> np.ndarray:
    """Return ``count`` standard normal numbers (float64) that depend only on ``label``. With the same label, a longer
    list begins with the numbers of a shorter one.

    >>> bool((normals("a", 5) == normals("a", 8)[:5]).all())
    True
    """
    checks.integer("count", count, minimum=0)
    flat = uniforms(fnv1a(label), count + count % 2)
    radius = np.sqrt(-2 * np.log(1 - flat[0::2]))  # 1 − u is never 0
    angle = 2 * np.pi * flat[1::2]
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return pairs.ravel()[:count]


def word_vector(word: str, dim: int) -> np.ndarray:
    """Return the vector that represents ``word``: (dim,) standard normal numbers.

    >>> word_vector("dog", 16).shape
    (16,)
    """
    return normals(f"word {word}", dim)


def weight_matrix(name: str, dim: int) -> np.ndarray:
    """Return a (dim, dim) matrix whose entries have variance 1/dim, so that x @ W is about as long as x.

    >>> weight_matrix("q", 16).shape
    (16, 16)
    """
    return normals(f"weights {name}", dim * dim).reshape(dim, dim) / np.sqrt(dim)
