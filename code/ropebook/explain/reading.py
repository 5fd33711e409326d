"""Turn a configuration into facts: read its keys, reject invalid values, and add the
facts that can be deduced."""

from __future__ import annotations

from ropebook.explain import facts, families
from ropebook.explain.following import derived
from ropebook.explain.language import short
from ropebook.explain.tables import tables
from ropebook.explain.values import Config, Reading, take


def read(config: Config) -> Reading:
    """Return facts about a configuration, and findings about its keys and values."""
    name, part = _language_part(config)
    reading = Reading({"part_name": name}, [])
    found = reading.facts
    family = _family(part, config)
    take(reading, part, facts.FACTS, family.get("keys", {}), found, _strict(family))
    if found["model_type"] is None and isinstance(config.get("model_type"), str):
        found["model_type"] = config["model_type"]
    found["stranger"] = families.STRANGERS.get(found["model_type"])
    if found["scheme"] in ("alibi", "absolute") or found["alibi"]:
        found["stranger"] = (
            "ALiBi"
            if found["alibi"] or found["scheme"] == "alibi"
            else "absolute positions"
        )
    found |= derived(found, family)
    _unknown_keys(reading, part, family)
    if found["stranger"] is None:
        reading.tables = tables(reading, part, family)
    return reading


def _language_part(config: Config) -> tuple[str | None, Config]:
    for name in facts.PARTS:
        if isinstance(config.get(name), dict) and config[name]:
            return name, config[name]
    return None, config


def _family(part: Config, config: Config) -> dict[str, object]:
    kind = part.get("model_type")
    kind = config.get("model_type") if kind is None else kind
    return families.FAMILIES.get(kind, {}) if isinstance(kind, str) else {}


def _strict(family: dict) -> list[str]:
    """Return the facts that must not be null in this family.

    They may be null in other families, but the configuration of this one needs a number.
    """
    if family.get("split"):
        return ["rope_part", "still_part"]
    return ["given_head_dim"] if "head_dim" in family else []


def _unknown_keys(reading: Reading, part: Config, family: dict) -> None:
    names = {
        **{fact: how["key"] for fact, how in facts.FACTS.items()},
        **family.get("keys", {}),
    }
    known = {*names.values(), *facts.ROPE_KEYS, *facts.ELSEWHERE, *facts.PARTS}
    others = {
        other: fact
        for one in families.FAMILIES.values()
        for fact, other in one.get("keys", {}).items()
    }
    unknown = []
    for key in sorted(part):
        if key in known:
            continue
        fact = others.get(key) or next(
            (f for f, how in facts.FACTS.items() if how["key"] == key), None
        )
        if fact and family:
            reading.say("other-name", key=short(key), proper=names[fact])
        else:
            unknown.append(short(key))
    if unknown:
        reading.say("unknown-key", keys=unknown, count=len(unknown))
