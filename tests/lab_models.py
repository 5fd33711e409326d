"""Small models, sample texts and slow reference computations for testing language models."""

import hashlib
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from ropebook.extrapolation import ExtendedAttention
from ropebook.lab.model import LanguageModel
from ropebook.lab.training import Run
from ropebook.rotary_attention import KVCache

TINY = {"dim": 16, "hidden_dim": 16, "n_layers": 2, "n_heads": 2}
L = 16


def tiny(scheme="rope-10000", length=L, **sizes):
    """Build an untrained model. Its attention is made so sharp that positions still make a difference."""
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
    """Compute the logits one token at a time, with a key/value cache for each layer. They have shape (seq, 256)."""
    caches = [KVCache(len(tokens)) for _ in model.layers]
    return torch.cat([model(tokens[None, t : t + 1], caches=caches)[0] for t in range(len(tokens))])


def bits_from(logits, window):
    return -logits.log_softmax(-1).gather(1, window[1:, None])[:, 0] / math.log(2)


def slow_method(model, method, options, keep=None):
    """Build a copy of the model, explicitly replacing the attention of each layer by `ExtendedAttention`."""
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


class Text(NamedTuple):
    """A training text."""

    train: np.ndarray
    sha256: str

    @classmethod
    def of(cls, content):
        return cls(np.frombuffer(content, np.uint8), hashlib.sha256(content).hexdigest())


@dataclass(frozen=True)
class Windows(Run):
    """A training run whose windows are cut from the text at random positions."""

    def batch(self, corpus, step):
        draws = np.random.default_rng([self.seed, step])
        starts = draws.integers(0, len(corpus.train) - self.length, self.rows)
        rows = [corpus.train[start : start + self.length + 1] for start in starts]
        return torch.from_numpy(np.stack(rows).astype(np.int64))
