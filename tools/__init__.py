"""What builds, serves and packs the book. Run as `python -m tools.book`."""

import sys

# nbformat loads jsonschema, and that a grammar of internationalized addresses, which no notebook holds: a second at the
# start of each process. jsonschema does without what cannot be imported.
sys.modules.setdefault("rfc3987_syntax", None)
