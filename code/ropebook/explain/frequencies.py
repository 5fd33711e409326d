"""Compute frequencies from the facts of a table, and describe what they mean for each
pair."""

from __future__ import annotations

import math

from ropebook import extrapolation as X
from ropebook import rope

_OPTIONS = {
    "factor": "factor",
    "original_max_position_embeddings": "original",
    "attention_factor": "attention_factor",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "truncate": "truncate",
    "low_freq_factor": "low",
    "high_freq_factor": "high",
    "short_factor": "short_factors",
    "long_factor": "long_factors",
}
# The options that each rope type has. If one is missing, `from_transformers` fills in
# the default of transformers.
_OF_KIND = {
    "linear": ["factor"],
    "dynamic": ["factor"],
    "yarn": ["factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow", "truncate"],
    "llama3": ["factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"],
    "longrope": ["factor", "original_max_position_embeddings", "attention_factor", "short_factor", "long_factor"],
    "proportional": ["factor"],
}  # fmt: skip

NEARLY = 1e-9
"""Angles that should be equal may differ by this fraction of their size."""


def frequencies(table: dict[str, object]) -> dict[str, object]:
    """Return the frequency θ of each pair, and the factor on cosines and sines
    (``on_cos``).

    ``plain`` contains the frequencies before any scaling, ``short`` those for inputs within the trained length, and
    ``long`` those for an input of the target length. Each is a list with one float per pair.

    >>> table = {"kind": "linear", "factor": 4.0, "rotary_dim": 4, "base": 10000.0, "fraction": 1, "target": None}
    >>> frequencies(table)["long"]
    [0.25, 0.0025]
    """
    dim, kind = int(table["rotary_dim"]), table["kind"]
    plain = rope.inv_freq(dim, float(table["base"]))
    if kind == "default":
        return {
            "plain": plain.tolist(),
            "short": plain.tolist(),
            "long": plain.tolist(),
            "on_cos": 1.0,
        }
    method = X.from_transformers(
        _parameters(table), _whole(table.get("maximum"))
    ).method
    target = table["target"]
    trained = _whole(table.get("original")) or 2
    if not method.follows_length:
        short, on_cos = long, _ = method(plain)
    else:
        short, on_cos = method(plain, trained)
        long, _ = method(plain, trained if target is None else max(int(target), 1))
    if kind == "proportional":
        turning = int(table["rotating_pairs"])
        plain[turning:] = 0.0
    return {
        "plain": plain.tolist(),
        "short": short.tolist(),
        "long": long.tolist(),
        "on_cos": float(on_cos),
    }


def _whole(found: float | None) -> int | None:
    return None if found is None else int(found)


def _parameters(table: dict[str, object]) -> dict[str, object]:
    """Return the dictionary that `from_transformers` reads, without the keys that
    transformers ignores."""
    kind = table["kind"]
    given = {key: table.get(_OPTIONS[key]) for key in _OF_KIND[kind]}
    if kind == "yarn" and None not in (table["mscale"], table["mscale_all_dim"]):
        given |= {
            "mscale": table["mscale"],
            "mscale_all_dim": table["mscale_all_dim"],
        }
    if kind == "proportional":
        given["partial_rotary_factor"] = table["fraction"]
    if "original_max_position_embeddings" in given:
        given["original_max_position_embeddings"] = _whole(
            given["original_max_position_embeddings"]
        )
    return {
        "rope_type": kind,
        **{key: one for key, one in given.items() if one is not None},
    }


def pairs(table: dict[str, object], found: dict[str, object]) -> dict[str, object]:
    """Describe what the frequencies mean for each pair, and count the pairs for the
    report's sentences.

    ``turned`` says for each pair whether it completes a turn within the trained length. ``beyond`` contains the number
    of radians by which each pair exceeds its training angles. A pair counts as meeting new angles only if it exceeds
    its training angles by more than the rotation for one position. If one of the lengths is unknown, these results are
    empty or None.
    """
    stretches = [
        p / q for p, q in zip(found["plain"], found["long"], strict=True) if q > 0
    ]
    known = {
        "shortest": 2 * math.pi / found["long"][0],
        "longest": 2 * math.pi / min(one for one in found["long"] if one > 0),
        "largest_stretch": max(stretches),
        "stretched_pairs": sum(one > 1 + 1e-6 for one in stretches),
        "still_pairs": found["plain"].count(0.0),
    }
    trained, target, window = (
        table["trained"],
        table["target"],
        table["reach_window"],
    )
    if trained is None or target is None:
        return known | {
            "turned": [],
            "beyond": [],
            "turned_pairs": None,
            "new_pairs": None,
            "kept_pairs": None,
        }
    near, far = (min(length, window or math.inf) for length in (trained, target))
    turned = [one * (near - 1) >= 2 * math.pi for one in found["plain"]]
    beyond = []
    for plain, scaled, done in zip(
        found["plain"], found["long"], turned, strict=True
    ):
        before = (near - 1) * plain
        more = (far - 1) * scaled - before
        beyond.append(0.0 if done or more <= NEARLY * before else more)
    new = sum(
        more > plain for more, plain in zip(beyond, found["plain"], strict=True)
    )
    most = max(beyond)
    return known | {
        "turned": turned,
        "beyond": beyond,
        "turned_pairs": sum(turned),
        "new_pairs": new,
        "kept_pairs": len(turned) - sum(turned) - new - known["still_pairs"],
        "most_beyond": most,
        "most_pair": beyond.index(most) if most else None,
        "near": near,
        "far": far,
    }
