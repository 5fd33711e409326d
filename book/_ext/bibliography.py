"""Sort the references by family name, since this is how people look them up.

Organisations are sorted among the people. In BibTeX, their names are in braces, which pybtex would sort after Z.
"""

from __future__ import annotations

from pybtex.database import Person
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style
from pybtex.style.sorting.author_year_title import SortingStyle
from sphinx.application import Sphinx

NAME = "by_family_name"


class ByFamilyName(SortingStyle):
    def person_key(self, person: Person) -> str:
        """Return the key by which an author is sorted.

        >>> from pybtex.database import Person
        >>> order = ByFamilyName()
        >>> sorted(["Su, Jianlin", "{Qwen Team}", "{MiniMax}"], key=lambda name: order.person_key(Person(name)))
        ['{MiniMax}', '{Qwen Team}', 'Su, Jianlin']
        """
        return super().person_key(person).replace("{", "").replace("}", "")


class FamilyNameFirst(Style):
    default_sorting_style = NAME
    default_name_style = "lastfirst"


def setup(app: Sphinx) -> dict:
    register_plugin("pybtex.style.sorting", NAME, ByFamilyName)
    register_plugin("pybtex.style.formatting", NAME, FamilyNameFirst)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
