"""What builds, serves and packs the book. Run as `python -m tools.book`."""

import sys

# nbformat loads jsonschema, which loads a grammar of internationalized addresses that no notebook needs; that costs a
# second at the start of each process. jsonschema works without it if it cannot be imported.
sys.modules.setdefault("rfc3987_syntax", None)
