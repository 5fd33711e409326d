"""Tools that build, serve and pack the book. Run one with `python -m`, as in `python -m tools.book`."""

import sys

# nbformat loads jsonschema, which loads a grammar for internationalized addresses. No notebook needs this grammar, and
# loading it takes a second at the start of each process. jsonschema also works when the grammar cannot be imported.
sys.modules.setdefault("rfc3987_syntax", None)
