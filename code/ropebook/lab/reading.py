"""Follow the trained model as it reads byte by byte.

The measurements are what each byte cost, which byte the model expected, and where a head was looking.
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, results
from ropebook.efficient import RotaryEmbedding
from ropebook.lab.int8 import rounded
from ropebook.lab.longer import method_options, with_method
from ropebook.lab.model import LanguageModel, pretrained
from ropebook.shapes import Float, Int

WITH_FACTOR = ("linear", "ntk", "ntk_by_parts", "yarn", "self_extend")
"""The methods that need a scaling factor s."""
READ_WITH = ("none", *WITH_FACTOR, "dynamic_ntk", "rerope", "log_n")
"""All the methods that the model can read with."""


class Reading(NamedTuple):
    """The model's predictions for n bytes of input, except for the first byte.

    ``bits`` (n − 1,): −log₂ of the probability that the model gave to the actual byte. ``top`` (n − 1,): the byte that
    the model considered most likely. ``share`` (n − 1,): the probability of that most likely byte.
    """

    bits: Float[Tensor, " bytes"]
    top: Int[Tensor, " bytes"]
    share: Float[Tensor, " bytes"]


def reader(
    *, base: float = 10_000.0, method: str = "none", factor: float = 4.0
) -> LanguageModel:
    """Return the trained model, with which texts can be read.

    Its weights are stored as one byte each, as on the book's page.

    ``base``: the base of the model's frequencies, which was 10⁴ in training.
    ``method``: one of `READ_WITH`. For the methods in `WITH_FACTOR`, ``factor`` is
    s, at least 1. All other options come from `method_options`.

    >>> reader(method="linear", factor=2.0).layers[0].attention.rotary.scaling.factor
    2.0
    """
    base = checks.number("base", base, minimum=1)
    factor = checks.number("factor", factor, minimum=1)
    checks.choice("method", method, READ_WITH)
    model = pretrained(int8=True)
    rotary = RotaryEmbedding(
        model.layers[0].attention.head_dim,
        base,
        layout="half",
    )
    for layer in model.layers:
        layer.attention.rotary = rotary
    told = factor if method in WITH_FACTOR else None
    return with_method(model, method, method_options(method, told, model.length))


@torch.no_grad()
def read(text: bytes, model: LanguageModel | None = None) -> Reading:
    """Measure what each byte of ``text`` costs the ``model`` (by default `reader()`).

    Raises ``ValueError`` if there are fewer than two bytes.

    >>> found = read(b"for i in range(10):")
    >>> found.bits.shape, chr(found.top[11]), round(found.share[11].item(), 1)
    (torch.Size([18]), 'g', 1.0)
    """
    tokens = _tokens(text)
    logits = (reader() if model is None else model)(tokens[:, :-1])[0].float()
    chances = logits.log_softmax(-1)
    top = chances.argmax(-1)
    own = chances.gather(1, tokens[0, 1:, None])[:, 0]
    share = chances.gather(1, top[:, None])[:, 0].exp()
    return Reading(-own / math.log(2), top, share)


@torch.no_grad()
def attention(
    text: bytes, model: LanguageModel, layer: int, head: int, place: int
) -> Float[Tensor, " keys"]:
    """Return what a head attends to when the model predicts byte number ``place``: shape (place,).

    The result contains the weights of all earlier bytes. Layers, heads and bytes are counted from 0. Raises
    ``ValueError`` if the layer, head or byte does not exist.
    """
    tokens = _tokens(text)
    checks.integer("layer", layer, minimum=0, maximum=len(model.layers) - 1)
    checks.integer("head", head, minimum=0, maximum=model.n_heads - 1)
    checks.integer("place", place, minimum=1, maximum=tokens.shape[1] - 1)
    within = model.layers[layer].attention
    given: list[Tensor] = []
    hook = within.register_forward_pre_hook(
        lambda _, inputs: given.append(inputs[0])
    )
    try:
        model(tokens[:, :-1])
    finally:
        hook.remove()
    _, weights = within(given[0], return_weights=True)
    return weights[0, head, place - 1, :place].float()


def _tokens(text: bytes) -> Int[Tensor, "one bytes"]:
    if not isinstance(text, bytes):
        raise TypeError(f"text must be bytes, got {type(text).__name__}")
    if len(text) < 2:
        raise ValueError(f"text must be two bytes or more, got {len(text)}")
    return torch.tensor(list(text))[None]


def packed() -> bytes:
    """Return the model's weights in the form in which pages and notebooks send them to the browser.

    The form is a zlib-compressed safetensors file. Weights are `rounded`, or float32 if they were not rounded.
    """
    from safetensors.torch import load, save

    weights = load(results.find("rope-10000-0-3200", "safetensors").read_bytes())
    weights = {name: of_pages(weight) for name, weight in rounded(weights).items()}
    heads = results.load("rope-10000-0-3200")["run"]["n_heads"]
    return zlib.compress(save(weights, metadata={"n_heads": str(heads)}), 9)


def of_pages(weight: Tensor) -> Tensor:
    """Convert half-precision weights to float32, because pages cannot read half precision."""
    return weight.float() if weight.is_floating_point() else weight
