"""python -m tools.stills: how every explorer opens, drawn into the package."""

from tools.stills import OPENING, write_opening

print(f"{OPENING}: {'drawn' if write_opening() else 'up to date'}")
