"""Mistakes written after the diagnosis was finished, based on bug reports that `diagnose_world` doesn't use.

They were written by the author of the diagnosis, right after reading excerpts of these reports. benchmarks/diagnose.py
then tried them, and the diagnosis was not improved afterwards. Because their results are known by now, the next
held-back mistakes have to be new ones.
"""

import torch

from tests.diagnose_world import collecting, long, power, scaled

WHO = "the author of the diagnosis, when it was finished"
MISTAKES = {}
mistake = collecting(MISTAKES)


@mistake("angles", "clamped other_far", "microsoft/onnxruntime/issues/28205", long)
def nothing_beyond_the_table(self, places, theta, role):
    return (places * (places < self.world.length // 2))[..., None] * theta


@mistake("lengths", "other_far zeros", "tenstorrent/tt-metal/pull/43790", long)
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
