"""Explorer for the *Measured* chapter. It runs the small model in the browser, and shows how many bits each byte of a
text costs the model, both within L and beyond."""

from __future__ import annotations

import functools
from typing import Any

import traitlets

from ropebook import extrapolation
from ropebook.colours import meaning
from ropebook.explorers import Choice, Explorer, Text, Whole, Within
from ropebook.explorers.kit import dials
from ropebook.lab import reading

TRAINED = 256
"""The trained length L."""
HEAD_DIM = 32
LAYERS = 3
HEADS = 4
LONGEST_TEXT = 1024
"""The largest number of bytes that the model can predict in a text. (It can't predict the first byte, because nothing
comes before it.)"""
LEAST_BASE = 500
"""The smallest base that can be chosen. With a smaller one, the ramp of YaRN's code could run backwards."""
METHODS = {
    "none": "as trained",
    **{
        name: method.title
        for name, method in extrapolation.METHODS.items()
        if "alive" in method.explorers
    },
}
"""The methods that can be applied to the trained model, each with its name on the page."""
WITH_FACTOR = list(reading.WITH_FACTOR)
STACK = '''class Stack:
    """Values of which the last one put in is the first to come out."""

    def __init__(self, values=()):
        self.values = list(values)

    def __len__(self):
        return len(self.values)

    def __repr__(self):
        return f"Stack({self.values!r})"

    def push(self, value):
        self.values.append(value)

    def pop(self):
        if not self.values:
            raise IndexError("pop from an empty stack")
        return self.values.pop()

    def peek(self):
        if not self.values:
            raise IndexError("peek into an empty stack")
        return self.values[-1]


'''
QUEUE = STACK.replace("last one", "first one").replace("Stack", "Queue")
QUEUE = QUEUE.replace("stack", "queue").replace("pop()", "pop(0)")
AREA = '''def area(width, height):
    """The area of a rectangle, in the square of the unit."""
    return width * height


'''
PROSE = """A vector that stands for a word knows nothing of its place. The rotation gives it one: the query is turned by an angle
that grows with its position, the key by an angle that grows with its own, and their product knows the difference alone. So
far away is as good as near, as long as the difference was seen in training. Beyond that the slow pairs come to angles that
no text has shown them. """
TEXTS = {
    "classes": ("two classes", STACK + QUEUE),
    "again": ("one function, again and again", AREA * 10),
    "prose": ("English, which the model hardly saw", PROSE * 3),
}
"""The texts that readers can choose, each with its name on the page."""
TITLES = {name: title for name, (title, _) in TEXTS.items()}
READ = {name: text[: LONGEST_TEXT + 1] for name, (_, text) in TEXTS.items()}


class Alive(Explorer):
    """The trained model, reading a text in the browser. The figure shows how many bits each byte costs, and which bytes
    a chosen head attends to.

    The opening state was computed with PyTorch. All other states are computed by the model in the browser. Its weights
    are loaded when a dial is first used; in a notebook they come from the kernel. Invalid values raise ``TraitError``.

    Args:
        text: "classes", "again" or "prose".
        own: your own text, at most 1,025 bytes of UTF-8. If it has two bytes or more, it is read instead of ``text``.
        method: one of `METHODS`.
        factor: s, 1 to 16, for methods that have a factor.
        base: 500 to 10⁷. The model was trained with 10⁴.
        length: how many bytes to predict, 64 to 1,024.
        byte: the byte whose details the figure shows, counted from 1.
        layer, head: the head whose attention is shown. Layers are numbered 1 to 3, and heads 1 to 4.
    """

    script = "alive.js"
    colours = meaning(
        blue="the method that reads, and what a head attends to",
        orange="new: the bytes beyond the trained length begin here",
        crimson="bytes that the model finds hard",
    )

    method = Choice(
        METHODS,
        "yarn",
        label="Method",
        note="What is done to the trained model, without further training.",
    )
    factor = dials.factor(
        4.0,
        max=16,
        above="texts here are at most four times as long as L",
        note="For texts of up to s·L bytes, where L = 256.",
    )
    base = dials.base(
        min=LEAST_BASE,
        below="YaRN’s ramp can run backwards there",
        above="nearly all pairs would hardly turn at all",
        note="The model was trained with b = 10⁴.",
    )
    text = Choice(
        TITLES,
        label="Text",
        note="What the model reads. The model was trained on Python.",
        more=True,
    )
    own = Text(
        "",
        label="Your own text",
        note="At most 1,025 bytes. If it is empty, the model reads the text above.",
        more=True,
        lines=True,
    )
    length = Whole(
        768,
        min=64,
        max=LONGEST_TEXT,
        log=True,
        label="Bytes",
        below="the model was trained on 256 bytes",
        above="that is four times the trained length",
        note="How far the model reads.",
        unit="bytes",
        more=True,
    )
    byte = Whole(
        600,
        min=1,
        max=LONGEST_TEXT,
        within=Within("length"),
        label="Chosen byte",
        below="the first byte has none before it",
        above="no text is longer",
        note="The figure shows what the model predicted there, and what a head attended to.",
        more=True,
    )
    layer = Whole(
        2,
        min=1,
        max=LAYERS,
        label="Layer",
        below="layers are counted from 1",
        above="the model has three layers",
        note="The text shows what a head of this layer attends to.",
        more=True,
    )
    head = Whole(
        1,
        min=1,
        max=HEADS,
        label="Head",
        below="heads are counted from 1",
        above="a layer has four heads",
        note="The text shows what this head attends to.",
        more=True,
    )
    start = traitlets.Dict(
        help="what PyTorch's model found at the dials as they open"
    ).tag(sync=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        own = {name: getattr(self, name) for name in self.dial_traits()}
        self.start = opening(**own)
        self.on_msg(self._send_weights)

    @traitlets.default("alt")
    def _default_alt(self) -> str:
        return (
            "A curve of the bits that each byte of a text costs a small language model, against the position of the "
            "byte. Beyond the trained length, which a line marks, the model as trained needs more and more bits, "
            "while with a method it keeps working. In the text below, letters are redder where bytes cost more, and "
            "the bytes that a head attends to when it predicts the chosen byte have a darker background."
        )

    @traitlets.validate("own")
    def _valid_own(self, proposal: dict) -> str:
        found = len(proposal["value"].encode())
        if found > LONGEST_TEXT + 1:
            raise traitlets.TraitError(
                f"own must be at most {LONGEST_TEXT + 1} bytes of UTF-8, got {found}"
            )
        return proposal["value"]

    def dials(self) -> dict[str, Any]:
        """Return the current values of the dials. The entry ``result`` is the model's output for the opening state."""
        return {**super().dials(), "result": self.start}

    def _send_weights(self, _: object, content: object, buffers: object) -> None:
        """Send the model's weights to the page of a notebook when the page asks for them."""
        if content == "weights":
            self.send("weights", [reading.packed()])


def text_of(text: str, own: str, length: int) -> bytes:
    """Return the bytes to read, at most ``length`` + 1 of them.

    >>> text_of("again", "", 64)[:8], text_of("again", "héllo", 64)
    (b'def area', b'h\\xc3\\xa9llo')
    """
    whole = own.encode()
    if len(whole) < 2:
        whole = READ[text].encode()
    return whole[: length + 1]


@functools.lru_cache(maxsize=8)
def opening(
    *,
    text: str,
    own: str,
    length: int,
    method: str,
    factor: float,
    base: float,
    byte: int,
    layer: int,
    head: int,
) -> dict[str, Any]:
    """Compute the model's output for these dials, in the format that the figure's script reads.

    ``bits``, ``top`` and ``share`` have an entry for every byte except the first, as in `ropebook.lab.reading.Reading`.
    ``plain`` has the bits of the model as it was trained. ``row`` has the attention weights of the head when the chosen
    byte is predicted. ``at`` has the values of the dials.
    """
    at = dict(locals())
    given = text_of(text, own, length)
    model = reading.reader(base=base, method=method, factor=factor)
    found = reading.read(given, model)
    place = min(byte, len(given) - 1)
    row = reading.attention(given, model, layer - 1, head - 1, place)
    plain = reading.read(given, reading.reader())

    def rounded(values: Any) -> list[float]:
        return [round(value, 4) for value in values.tolist()]

    return {
        "at": at,
        "bits": rounded(found.bits),
        "top": found.top.tolist(),
        "share": rounded(found.share),
        "plain": rounded(plain.bits),
        "row": rounded(row),
    }
