"""Mistakes that were written when the diagnosis was finished, from bug reports that nobody had looked at before.

They are tried once, by benchmarks/diagnose.py. Nothing was changed in the diagnosis after that.
"""

import torch

from tests.diagnose_world import Mistake, long, power, scaled

MISTAKES = {}


def mistake(stage, called, source, when=lambda world: True):
    def add(function):
        name = function.__name__
        MISTAKES[name] = Mistake(name, stage, function, tuple(called.split()), source, when)
        return function

    return add


@mistake("angles", "clamped other_far", "microsoft/onnxruntime/issues/28205", long)
def nothing_beyond_the_table(self, places, theta, role):
    return (places * (places < self.world.length // 2))[..., None] * theta


@mistake("lengths", "other_far", "tenstorrent/tt-metal/pull/43790", long)
def zeros_beyond_the_table(self, x, role):
    return x * self.world.lengthened * (self.memory["places"] < self.world.length // 2)[..., None]


@mistake("where", "other_heads", "sgl-project/sglang/pull/20598")
def heads_of_k_not_reached(self, one, x, role):
    return torch.cat((one(x, role)[:, :1], x[:, 1:]), 1) if role == "k" else one(x, role)


@mistake("places", "other_heads", "radixark/Megatron-LM/pull/5")
def index_of_the_head_added(self, positions, role, seq):
    at = positions.double()
    return (at if at.ndim == 2 else at[None])[:, None] + torch.arange(3)[:, None]


@mistake("theta", "other_base wider_exponent", "eole-nlp/eole/pull/140", scaled("plain"))
def width_of_the_model_in_the_exponent(self):
    return power(self.world.rotary_dim, self.world.base, width=3 * self.world.dim)


@mistake("places", "wrapped uneven_angles", "dylanyunlon/Neuron_SP/issues/235")
def positions_of_each_rank(self, positions, role, seq):
    return (positions % 16).double()
