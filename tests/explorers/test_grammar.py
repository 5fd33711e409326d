"""Test that every explorer explains its colours next to its dials, and draws in no other colours.

The colours are read from the drawings of each explorer at the settings in the registry. A colour may be a variable of
the page, a mixture of such variables, or the colour of pixels.
"""

from __future__ import annotations

import base64
import io
import re

import matplotlib.image
import numpy as np

from ropebook.colours import HUES, LIGHT, PALETTE
from tests.explorers.registry import every
from tools import stills

SHARE = 0.25  # relative to a full colour; a reader couldn't name the hue of anything paler or greyer


def channels(colour: str) -> np.ndarray:
    return np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255


def direction(rgb: np.ndarray) -> np.ndarray:
    """Subtract the mean of its three channels from each colour, (…, 3). Mixing white or black into a colour changes the
    length of the result, but not its direction."""
    return rgb - rgb.mean(-1, keepdims=True)


NAMED = {name: direction(channels(PALETTE[number][LIGHT])) for name, number in HUES.items()}


def hues_of(rgb: np.ndarray) -> set[str]:
    """Return the names of the hues that occur in an array of colours, (colours, 3)."""
    own = direction(rgb)
    size = np.linalg.norm(own, axis=-1)
    full = np.array([np.linalg.norm(one) for one in NAMED.values()])
    towards = own @ np.stack([one / np.linalg.norm(one) for one in NAMED.values()], -1)
    nearest = towards.argmax(-1)
    return {list(NAMED)[k] for k in nearest[size > SHARE * full[nearest]]}


def drawn(picture: str) -> set[str]:
    """Return the hues in a still: those of its variables, of colours mixed for light pages, and of its pixels."""
    numbers = set(re.findall(r"var\(--fig-(\d)", picture))
    mixed = re.findall(r"light-dark\((#[0-9a-f]{6})", picture)
    names = {name for name, number in HUES.items() if number in numbers}
    if mixed:
        names |= hues_of(np.stack([channels(one) for one in mixed]))
    for png in re.findall(r'class="on-light"[^>]*base64,([^"]+)"', picture):
        pixels = matplotlib.image.imread(io.BytesIO(base64.b64decode(png)), format="png")
        names |= hues_of(pixels[..., :3].reshape(-1, 3)[:: max(1, pixels.size // 40_000)])
    return names


@every
def test_an_explorer_says_what_its_colours_mean(entry):
    pictures = stills.draw([figure.get_state() for figure in entry.figures(0)])
    found = set().union(*map(drawn, pictures))
    assert found == set(entry.kind.colours), entry.name


def test_hues_are_told_from_greys():
    for name, number in HUES.items():
        colour = channels(PALETTE[number][LIGHT])
        for share in (1, 0.6, 0.4):
            assert hues_of((1 - share * (1 - colour))[None]) == {name}
    for grey in ("ink", "muted", "grid", "paper"):
        assert hues_of(channels(PALETTE[grey][LIGHT])[None]) == set()
