"""Collect the facts about each table of frequencies. A table covers either all layers or
one type of layer."""

from __future__ import annotations

import math

from ropebook.explain import doubts, facts
from ropebook.explain.language import short, value
from ropebook.explain.values import Config, Reading, first, got, take


def tables(reading: Reading, part: Config, family: dict) -> list[dict[str, object]]:
    """Return the facts about each table of frequencies. There is one table for all
    layers, or one for each type of layer."""
    scaling, parameters = (
        _dictionary(reading, part, key) for key in facts.ROPE_KEYS
    )
    found = reading.facts
    found["two_dictionaries"] = bool(scaling and parameters)
    found["mixed_by_layer"] = False
    given, name = (
        (scaling, "rope_scaling") if scaling else (parameters, "rope_parameters")
    )
    nested = [key for key in sorted(given) if isinstance(given[key], dict)]
    by_layer = "local_base" in family
    if by_layer:
        proper = [
            key for key in nested if key in ("full_attention", "sliding_attention")
        ]
        found["mixed_by_layer"] = bool(
            (scaling and (parameters or nested))
            or (not scaling and len(proper) != len(parameters))
        )
        by_type = {} if scaling else {key: parameters[key] for key in proper}
        full = scaling or by_type.get("full_attention", {})
        window = by_type.get("sliding_attention", {})
        given_to = {"full_attention": full, "sliding_attention": window}
        types = found["types"] or list(given_to)
        return [
            _table(reading, one, name, family, key)
            for key, one in given_to.items()
            if key in types
        ]
    if nested:
        types = [] if family else found["types"] or []
        stray = next(
            (key for key in sorted(given) if key not in nested or key not in types),
            None,
        )
        return [
            _table(reading, given[key], name, family, key, stray=stray)
            for key in nested
        ]
    return [_table(reading, given, name, family, None)]


def _dictionary(reading: Reading, part: Config, key: str) -> dict:
    found = part.get(key)
    if found is None or isinstance(found, dict):
        return found or {}
    reading.say(
        "bad-value",
        key=key,
        allowed=doubts.KINDS_OF_VALUES["dictionary"],
        got=got(found),
    )
    reading.stopped = True
    return {}


def _table(
    reading: Reading,
    given: Config,
    dictionary: str,
    family: dict,
    layers: str | None,
    stray: str | None = None,
) -> dict[str, object]:
    table = dict(reading.facts)
    take(reading, given, facts.TABLE_FACTS, {}, table)
    asked = first(table["rope_type"], table["old_type"], "default")
    kind = family.get("renamed", {}).get(asked, asked)
    known = facts.KINDS.get(kind)
    table |= {
        "layer_type": layers,
        "part": short(stray) if stray else layers,
        "stray_layers": stray is not None,
        "kind": kind,
        "title": known and known["title"],
        "types_differ": None not in (table["rope_type"], table["old_type"])
        and table["rope_type"] != table["old_type"],
        "type_not_taken": "only" in family and kind not in family["only"],
        "dictionary": dictionary,
        "asks_head_dim": family.get("asks_head_dim", False),
        "scaling_assumed": not given and family.get("scaling", False),
    }
    _rope_keys(reading, given, dictionary, kind, family)
    table |= _base_and_share(table, family, layers)
    table |= _lengths(table)
    table |= _of_kind(table)
    table["unusual_base"], table["usual"] = _unusual(table["base"], family, layers)
    return table


def _rope_keys(
    reading: Reading, given: Config, dictionary: str, kind: str, family: dict
) -> None:
    known = facts.KINDS.get(kind)
    everywhere = {key for one in facts.KINDS.values() for key in one["keys"]}
    for key in sorted(given):
        if known and (key in known["keys"] or key in family.get("also", [])):
            continue
        if key in everywhere:
            if known and given[key] is not None:
                reading.say("other-kind", key=short(key), kind=short(kind))
        elif not isinstance(given[key], dict):
            reading.say(
                "unknown-rope-key",
                key=short(key),
                dictionary=dictionary,
                kind=short(kind),
            )


def _base_and_share(
    table: dict, family: dict, layers: str | None
) -> dict[str, object]:
    local = layers == "sliding_attention" and "local_base" in family
    if local:
        base = first(table["rope_base"], table["local_base"], family["local_base"])
    else:
        base = first(table["rope_base"], table["given_base"], family.get("base"))
    given = [
        table["rope_base"],
        table["local_base"] if local else table["given_base"],
    ]
    told = first(table["rope_fraction"], table["given_fraction"])
    unread = (
        bool(family) and not family.get("shares") and table["kind"] == "default"
    )
    fraction = 1 if unread else first(told, family.get("fraction"), 1)
    head_dim = table["head_dim"]
    rotary = None if head_dim is None else math.floor(head_dim * fraction)
    if table["kind"] == "proportional":
        rotating = (
            None
            if head_dim is None
            else math.floor(math.floor(head_dim * fraction) / 2)
        )
        rotary = head_dim
    else:
        rotating = None if rotary is None else rotary / 2
    return {
        "base": base,
        "base_given": any(one is not None for one in given),
        "fraction": fraction,
        "share_unread": unread and told is not None and told != 1,
        "told_fraction": told,
        "rotary_dim": rotary,
        "rotating_pairs": rotating,
        "pairs": None if rotary is None else rotary / 2,
    }


def _lengths(table: dict) -> dict[str, object]:
    """Return the trained and the target length, as far as the file specifies them, with related lengths and factors."""
    kind, maximum, factor = table["kind"], table["maximum"], table["factor"]
    takes = kind in doubts.WITH_ORIGINAL
    given = first(
        table["file_original"], table["rope_original"], table["assumed_original"]
    )
    if takes:
        original = first(given, maximum)
    else:
        original = maximum if kind == "dynamic" else given
    trained = maximum if kind in ("default", "proportional") else original
    if kind == "linear":
        trained = given
    target = maximum
    if kind == "dynamic" or (
        kind in ("yarn", "linear")
        and trained
        and maximum is not None
        and not maximum > trained
    ):
        target = value(
            ["*", "factor", "trained"], {"factor": factor, "trained": trained}
        )
    elif kind == "linear" and trained is None:
        target = None
    return {
        "original": original,
        "original_given": given,
        "trained": trained,
        "target": None if target is None else math.floor(target),
        "implied": value(
            ["/", "maximum", "original"], {"maximum": maximum, "original": given}
        ),
        "inverse": value(["/", 1, "factor"], table),
        "shorter": value(["/", "maximum", "factor"], table),
        "longer": value(["*", "maximum", "factor"], table),
    }


def _of_kind(table: dict) -> dict[str, object]:
    """Return the facts that only some rope types need."""
    short_list, long_list = table["short_factors"], table["long_factors"]
    both = [*(short_list or []), *(long_list or [])]
    begin, end = _ramp(table)
    return {
        "fast": first(table["beta_fast"], 32),
        "slow": first(table["beta_slow"], 1),
        "one_mscale": (table["mscale"] is None)
        != (table["mscale_all_dim"] is None),
        "short_count": None if short_list is None else len(short_list),
        "long_count": None if long_list is None else len(long_list),
        "least_in_lists": min(both) if both else None,
        "section_sum": value(["sum", "sections"], table),
        "ramp_begin": begin,
        "ramp_end": end,
    }


def _ramp(table: dict) -> tuple[float | None, float | None]:
    """Return the start and end of YaRN's ramp as pair indices, computed as in YaRN's code.

    If the indices are not rounded, they may be fractional. Both are None if the ramp is undefined.
    """
    length, base, dim = table["original"], table["base"], table["rotary_dim"]
    if None in (length, base, dim) or base <= 1 or table["kind"] != "yarn":
        return None, None
    fast, slow = first(table["beta_fast"], 32), first(table["beta_slow"], 1)
    begin, end = (
        dim * math.log(length / (2 * math.pi * turns)) / (2 * math.log(base))
        for turns in (fast, slow)
    )
    if table["truncate"] is not False:
        begin, end = math.floor(begin), math.ceil(end)
    return max(begin, 0), min(end, dim - 1)


def _unusual(
    base: float | None, family: dict, layers: str | None
) -> tuple[bool, list[str] | None]:
    usual = family.get("usual")
    if not usual or base is None or layers == "sliding_attention":
        return False, None
    named = [f"{float(one):,.0f} ({who})" for one, who in usual.items()]
    return all(float(one) != base for one in usual), named
