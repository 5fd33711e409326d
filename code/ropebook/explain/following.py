"""Deduce further facts from a file's own facts and its family: the width of a head, the
types of the layers, and their windows."""

from __future__ import annotations

from ropebook.explain.values import first


def derived(found: dict, family: dict) -> dict[str, object]:
    """Deduce more facts about the whole file from the facts found in it."""
    width, heads = found["width"], found["heads"]
    quotient = width // heads if width and heads else None
    if family.get("split"):
        head_dim = found["rope_part"]
    elif "head_dim" in family:
        head_dim = first(found["given_head_dim"], family["head_dim"])
    else:
        head_dim = first(found["given_head_dim"], quotient)
    window = first(found["given_window"], family.get("window"))
    switched = family.get("switched", False)
    if switched and found["use_window"] is not True:
        window = None
    if family.get("chunked"):
        window = first(found["chunk"], None)
    types = _layer_types(found, family, window)
    rotating = _rotating(found, family, types)
    count, windowed = found["layers"], None
    if types is not None:
        windowed = sum(
            one in ("sliding_attention", "chunked_attention") for one in types
        )
    elif window is None:
        windowed = 0
    elif family.get("windowed"):
        windowed = count
    layout = family.get("layout")
    if family.get("split") and found["interleave"] is False:
        layout = "half"
    return {
        "known_family": bool(family),
        "family": family.get("name") or found["model_type"],
        "layout": layout,
        "head_dim": head_dim,
        "whole_head": first(
            _sum(found["rope_part"], found["still_part"]), head_dim
        ),
        "window": window,
        "assumed_original": family.get("original"),
        "window_off": switched and found["use_window"] is not True,
        "types": types,
        "windowed_layers": windowed,
        "rotating_layers": rotating,
        "still_layers": None
        if rotating is None or count is None
        else count - rotating,
        "every_layer": rotating is not None and rotating == count,
        "cache_off": found["cache"] is False,
    }


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _layer_types(
    found: dict, family: dict, window: float | None
) -> list[str] | None:
    """Return the type of each layer, or None if neither the file nor its family determines the types."""
    if found["layer_types"] is not None:
        return found["layer_types"]
    count = found["layers"]
    if count is None:
        return None
    count = int(count)
    every = family.get("full_every")
    if every is not None:
        every = first(found["full_every"], every)
        return [
            "full_attention" if (i + 1) % every == 0 else "sliding_attention"
            for i in range(count)
        ]
    still = _still_every(found, family)
    if family.get("chunked") and still:
        return [
            "full_attention" if (i + 1) % still == 0 else "chunked_attention"
            for i in range(count)
        ]
    if (
        family.get("switched")
        and window is not None
        and found["window_from"] is not None
    ):
        return [
            "sliding_attention" if i >= found["window_from"] else "full_attention"
            for i in range(count)
        ]
    return None


def _still_every(found: dict, family: dict) -> float | None:
    if "still_every" not in family:
        return None
    return first(found["no_rope_every"], family["still_every"])


def _rotating(found: dict, family: dict, types: list[str] | None) -> float | None:
    """Return the number of layers that rotate, or None if neither the file nor its family determines it."""
    count = found["layers"]
    if count is None or not family:
        return None
    if "still_every" in family:
        if found["no_rope_layers"]:
            return sum(one > 0 for one in found["no_rope_layers"][: int(count)])
        return count - count // _still_every(found, family)
    if "rotating" in family:
        return (
            None
            if types is None
            else sum(one == family["rotating"] for one in types)
        )
    return count
