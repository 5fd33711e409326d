"""Test that our Llama with rounded tables matches transformers' Llama, whose tables are replaced by rounded ones."""

from __future__ import annotations

import pytest
import torch

from ropebook.real.changes import slow
from ropebook.real.rounded import with_rounding
from ropebook.rotary_attention import LlamaModel
from tests import tiny_gguf
from tests.rotary_attention_helpers import error

pytestmark = pytest.mark.usefixtures("without_gradients")
TOKENS = torch.randint(300, (1, 600), generator=torch.Generator().manual_seed(0))


def rounded(step, dtype, positions, theta):
    """Compute the rounded cosines and sines independently of the package: (T, d/2) each, float32."""
    m, theta = positions.double(), theta.double()
    if step in ("positions", "angles"):
        m = m.to(dtype).double()
    if step == "angles":
        theta = theta.to(dtype).double()
    angles = torch.outer(m, theta)
    if step == "angles":
        angles = angles.to(dtype).double()
    tables = angles.cos(), angles.sin()
    return [(one.to(dtype) if step == "table" else one).float() for one in tables]


@pytest.mark.parametrize(
    ("step", "dtype", "least"),
    [
        ("table", torch.bfloat16, 1e-5),
        ("angles", torch.bfloat16, 1e-4),
        ("positions", torch.bfloat16, 1e-4),
        ("angles", torch.float16, 1e-5),
        (None, torch.float64, 0),
    ],
)
def test_rounded_steps_are_those_of_transformers(step, dtype, least, monkeypatch):
    theirs = tiny_gguf.llama()
    ours = LlamaModel.from_transformers(theirs.state_dict(), theirs.config).requires_grad_(False)
    before = ours(TOKENS)
    changed = with_rounding(ours, step, dtype)
    half = theirs.config.head_dim // 2 if getattr(theirs.config, "head_dim", None) else None
    theta = theirs.config.rope_parameters["rope_theta"] ** -(torch.arange(half).double() / half)
    tables = [torch.cat((one, one), -1)[None] for one in rounded(step, dtype, torch.arange(600), theta)]
    monkeypatch.setattr(theirs.model.rotary_emb, "forward", lambda x, position_ids: tables)
    assert error(changed(TOKENS), theirs(TOKENS).logits) < 1e-5
    assert (error(changed(TOKENS), before) > least) == bool(step)
    assert torch.equal(ours(TOKENS), before)
    shorter = TOKENS[:, :50]  # the tables are made anew for another length
    assert error(changed(shorter), with_rounding(ours, step, dtype)(shorter)) == 0


def test_what_it_cannot_do_is_refused():
    theirs = tiny_gguf.llama()
    model = LlamaModel.from_transformers(theirs.state_dict(), theirs.config).requires_grad_(False)
    with pytest.raises(ValueError, match="positions must be None"):
        with_rounding(model, "table", torch.bfloat16)(TOKENS, torch.arange(600))
    with pytest.raises(ValueError, match="got one with a method"):
        with_rounding(slow(1).of(model), "table", torch.bfloat16)
