"""Draw every explorer's opening picture into the package: python -m tools.stills."""

from tools.stills import OPENING, write_opening

print(f"{OPENING}: {'drawn' if write_opening() else 'up to date'}")
