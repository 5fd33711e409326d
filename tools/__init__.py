"""The tools that build, serve and pack the book. Run them as `python -m tools.book`."""

import sys

# nbformat loads jsonschema, which loads a grammar for internationalized addresses. No notebook needs it, and it costs a
# second at the start of each process. If it cannot be imported, jsonschema works without it.
sys.modules.setdefault("rfc3987_syntax", None)
