"""All rules in one dictionary, in the format that the page's script reads."""

from __future__ import annotations

from ropebook.explain import doubts, facts, families, language, snippets, words

RULES = {
    "longest": language.LONGEST,
    "mostItems": language.MOST_ITEMS,
    "limits": facts.LIMITS,
    "largest": facts.LARGEST,
    "widest": facts.WIDEST,
    "parts": facts.PARTS,
    "ropeKeys": facts.ROPE_KEYS,
    "facts": facts.FACTS,
    "tableFacts": facts.TABLE_FACTS,
    "kinds": facts.KINDS,
    "elsewhere": facts.ELSEWHERE,
    "families": families.FAMILIES,
    "strangers": families.STRANGERS,
    "doubts": doubts.DOUBTS,
    "always": doubts.ALWAYS,
    "values": doubts.KINDS_OF_VALUES,
    "withOriginal": doubts.WITH_ORIGINAL,
    "ofFile": words.OF_FILE,
    "ofTable": words.OF_TABLE,
    "snippets": snippets.SNIPPETS,
}
