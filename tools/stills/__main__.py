"""python -m tools.stills draws every explorer's opening picture into the package."""

from tools.stills import OPENING, write_opening

print(f"{OPENING}: {'drawn' if write_opening() else 'up to date'}")
