"""Explorer for the chapter on RoPE's relatives. It compares what two schemes add to a score, depending on the key's
position."""

from __future__ import annotations

import traitlets

from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Whole, Within
from ropebook.explorers.kit import dials
from ropebook.relatives import BUCKETS, FARTHEST, XPos

__all__ = ["BUCKETS", "FARTHEST", "Rivals"]
SPAN = 256
"""The number of tokens before and after the query for which the figure shows keys."""
MOST_HEADS = 16
ZETA = {"scale": XPos.SCALE, "gamma": XPos.GAMMA}
"""The constants of xPos."""

SCHEMES = {
    "alibi": "ALiBi",
    "signed": "ALiBi, with sign",
    "t5": "T5 buckets",
    "sandwich": "Sandwich",
    "kerple": "KERPLE, log",
    "xl": "Transformer-XL",
    "rope": "RoPE",
    "xpos": "xPos",
    "none": "none",
}
BY_HEAD = ["alibi", "signed", "t5", "sandwich"]
"""The schemes whose bias differs from head to head."""
TURNING = ["sandwich", "xl", "rope", "xpos"]
"""The schemes that have a base and a dimension."""


class Rivals(Explorer):
    """What two schemes add to a score, for keys up to 256 tokens before and after the query. The contribution at
    distance 0 is subtracted from each curve.

    Learned schemes are shown with values that illustrate what they can do: T5 as an imitation of ALiBi, KERPLE with p =
    a = 1, Transformer-XL with v = (1, …, 1), u = 0 and W_R = 1. RoPE and xPos are shown with q = k = (1, …, 1). Invalid
    values raise ``TraitError``.

    Args:
        first, second: the two schemes, from `SCHEMES`.
        head: h, from 1 to H.
        heads: H, the number of heads, 1 to 16.
        offset: n − m, the key's position relative to the query. The figure shows the values there.
        base: 1 to 10⁷, for schemes that have a base.
        dim: an even number from 2 to 512, for schemes that have a dimension.
    """

    script = "rivals.js"
    colours = meaning(
        blue="schemes that rotate",
    )

    first = Choice(
        SCHEMES,
        "alibi",
        label="First scheme",
        note="T5 imitates ALiBi here; other learned numbers are 1 or 0.",
    )
    second = Choice(
        SCHEMES,
        "rope",
        label="Second scheme",
        note="RoPE and xPos are drawn for q = k = (1, …, 1).",
    )
    head = Whole(
        4,
        min=1,
        max=MOST_HEADS,
        within=Within("heads"),
        label="Head h",
        below="heads are counted from 1",
        above="no more heads are drawn",
        note="The line of this head is strong; the lines of other heads are pale.",
    )
    heads = Whole(
        8,
        min=1,
        max=MOST_HEADS,
        label="Number of heads H",
        below="there must be at least one head",
        above="more lines would cover each other",
        note="The slopes are spread over the heads.",
        more=True,
    )
    offset = Whole(
        -100,
        min=-SPAN,
        max=SPAN,
        label="Key's place n − m",
        below="the picture ends there",
        above="the picture ends there",
        note="A negative place is before the query.",
        unit="tokens",
        more=True,
    )
    base = dials.base(more=True)
    dim = dials.dimension(64, more=True)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "Curves of what two schemes add to a score at each position of the key, from 256 tokens before the "
            "query to 256 after it. ALiBi has two straight lines for each head, which fall to the left and to the "
            "right like a roof, and RoPE has one peak with swings on both sides, the same for all heads. The half "
            "after the query, which is the future, is shaded."
        )
