"""Small models, texts and slow computations, for the tests of what models make of texts."""

import math

import numpy as np
import torch
from torch import nn

from ropebook.extrapolation import ExtendedAttention
from ropebook.lab import data, first_text
from ropebook.lab.model import LanguageModel
from ropebook.rotary_attention import KVCache

TINY = {"dim": 16, "hidden_dim": 16, "n_layers": 2, "n_heads": 2}
L = 16


def text_of(size, seed=0):
    return np.random.default_rng(seed).integers(32, 127, size).astype(np.uint8)


def small_corpus():
    sizes = {"a.py": 400, "b/c.py": 97, "b/d.py": 96, "e.py": 150, "f.py": 5000, "g.py": 300}
    held_out = {name: text_of(size, seed) for seed, (name, size) in enumerate(sizes.items())}
    return first_text.Corpus(text_of(1000, 99), held_out, "a hash", "3")


def tiny(scheme="rope-10000", length=L, **sizes):
    """A model whose positions matter although it is not trained: sharp attention."""
    model = LanguageModel(scheme, length, **{**TINY, **sizes}, dtype=torch.float64).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "q_proj" in name or "k_proj" in name or "out_proj" in name:
                weight.mul_(3)
    return model


def random_windows(files, length, seed=0):
    return torch.randint(32, 127, (files, length + 1), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def decoded(model, tokens):
    """Logits of one token at a time, with a cache for each layer: (seq, 256)."""
    caches = [KVCache(len(tokens)) for _ in model.layers]
    return torch.cat([model(tokens[None, t : t + 1], caches=caches)[0] for t in range(len(tokens))])


def bits_from(logits, window):
    return -logits.log_softmax(-1).gather(1, window[1:, None])[:, 0] / math.log(2)


def slow_method(model, method, options, keep=None):
    """The model with `ExtendedAttention` put in by hand, layer by layer."""
    copied = tiny(model.scheme, n_layers=len(model.layers))
    copied.load_state_dict(model.state_dict())
    for layer in copied.layers:
        layer.attention = ExtendedAttention.of(layer.attention, method=method, options=options, keep=keep)
    return copied


METHOD_OPTIONS = {
    "linear": {"factor": 4.0},
    "ntk": {"factor": 4.0},
    "dynamic_ntk": {"trained_length": L},
    "ntk_by_parts": {"factor": 4.0, "trained_length": L, "alpha": 0.1, "beta": 2.0},
    "yarn": {"factor": 4.0, "trained_length": L, "alpha": 0.1, "beta": 2.0},
    "log_n": {"trained_length": L},
    "partial": {"fraction": 0.5},
    "rerope": {"window": 5},
    "leaky_rerope": {"window": 5, "step": 3.0},
    "self_extend": {"window": 6, "group": 4},
}


class Forgetful(nn.Module):
    """Gives back what it is asked for if that lies at most ``reach`` bytes back, else a wrong value of its key."""

    def __init__(self, reach):
        super().__init__()
        self.reach, self.embedding = reach, nn.Embedding(1, 1)
        self.scheme, self.has_bias = "none", False

    def forward(self, tokens):
        likeliest = torch.full_like(tokens, ord(" "))
        for row, text in enumerate(tokens.tolist()):
            for at, query in enumerate(text):
                if data.QUERY <= query < data.QUERY + data.KEYS:
                    first = data.RECORD + data.VALUES * (query - data.QUERY)
                    (found,) = [n for n, byte in enumerate(text[:at]) if first <= byte < first + data.VALUES][:1]
                    wrong = first + (text[found] - first + 1) % data.VALUES
                    likeliest[row, at] = text[found] if at - found <= self.reach else wrong
        return nn.functional.one_hot(likeliest, data.VOCABULARY).double()
