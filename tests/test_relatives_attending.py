"""Tests of attention with each scheme, computed in three ways. Tokens attend only to the left, or to both sides."""

from __future__ import annotations

import math
import re

import pytest
import torch

from ropebook import relatives as R
from tests.helpers import largest, random
from tests.test_relatives import DIM, HEADS, SEQ, every, schemes
from tests.together import together

CONTENT = ("fire", "transformer_xl", "cope")


def vectors() -> torch.Tensor:
    return random(3, 2, HEADS, SEQ, DIM)


@together("causal", [False, True])
@every
def test_fused_attention_gives_what_plain_code_gives(name, causal):
    scheme = schemes()[name]
    q, k, v = vectors()
    plain = R.attend(scheme, q, k, v, causal=causal)
    assert largest(R.attend_fused(scheme, q, k, v, causal=causal) - plain) < 1e-12


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", [name for name in schemes() if name not in CONTENT])
@torch.no_grad()
def test_flex_attention_gives_what_plain_code_gives(name, causal):
    scheme = schemes()[name]
    q, k, v = random(3, 2, HEADS, SEQ, DIM, dtype=torch.float32)
    plain = R.attend(scheme, q, k, v, causal=causal)
    assert largest(R.attend_flex(scheme, q, k, v, causal=causal) - plain) < 1e-5


@together("name", CONTENT)
def test_flex_attention_has_no_row_for_what_depends_on_more_than_the_distance(name):
    q, k, v = vectors()
    with pytest.raises(TypeError, match=r"scheme must (be|add nothing, or) a bias of the distance"):
        R.attend_flex(schemes()[name], q, k, v)


@together("attend", [R.attend, R.attend_fused, R.attend_flex])
def test_what_does_not_fit_together_is_refused(attend):
    q, k, v = vectors()
    with pytest.raises(ValueError, match="v must have k's shape except for its width"):
        attend(R.ALiBi(HEADS), q, k, v[..., :1, :])
    with pytest.raises(ValueError, match=r"n must have shape|k must have q's shape"):
        attend(R.ALiBi(HEADS), q, torch.cat((k, k), -2), torch.cat((v, v), -2))
    with pytest.raises(ValueError, match=f"q must have {2 * HEADS} heads, as the scheme has, got"):
        attend(R.ALiBi(2 * HEADS), q, k, v)
    with pytest.raises(ValueError, match=f"q must have {HEADS - 1} heads, as the scheme has, got {HEADS}"):
        attend(R.ALiBi(HEADS - 1), q, k, v)


@together("attend", [R.attend, R.attend_fused, R.attend_flex])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@torch.no_grad()
def test_all_keys_are_seen_unless_it_is_to_be_causal(attend):
    q, k, v = random(3, 2, HEADS, SEQ, DIM, dtype=torch.float32)
    assert torch.equal(attend(R.ALiBi(HEADS), q, k, v), attend(R.ALiBi(HEADS), q, k, v, causal=False))


@together("attend", [R.attend, R.attend_fused, R.attend_flex])
def test_what_is_wrong_is_named(attend):
    q, k, v = vectors()
    for scheme in ("alibi", R.ALiBi, None):
        with pytest.raises(TypeError, match=r"scheme must be a Scheme of ropebook\.relatives, such as Rope\(64\), got"):
            attend(scheme, q, k, v)
    for given, name in (((q, k.float(), v), "k"), ((q, k, v.float()), "v"), ((q, k, v.to("meta")), "v")):
        with pytest.raises(TypeError, match=f"{name} must fit q, .*torch.float64, 'cpu'.*, got"):
            attend(R.ALiBi(HEADS), *given)
    for given, name in ((([1.0], k, v), "q"), ((q, [1.0], v), "k"), ((q, k, [1.0]), "v")):
        with pytest.raises(TypeError, match=f"{name} must be a floating-point tensor, got list"):
            attend(R.ALiBi(HEADS), *given)
    for wrong in (torch.tensor(1.0), torch.ones(5, 8)):
        with pytest.raises(ValueError, match=re.escape(f"q must be (…, heads, seq, dim), got {tuple(wrong.shape)}")):
            attend(R.ALiBi(HEADS), wrong, k, v)


def test_attention_by_hand():
    q = torch.zeros(1, 1, 3, 2, dtype=torch.float64)
    v = torch.tensor([0.0, 1, 10]).double().view(1, 1, 3, 1)
    slope = 2.0**-8
    weights = [math.exp(-2 * slope), math.exp(-slope), 1]
    found = R.attend(R.ALiBi(1), q, q, v, causal=True)[0, 0, :, 0]
    assert found.tolist() == pytest.approx([0, 1 / (1 + math.exp(-slope)), (weights[1] + 10) / sum(weights)])


SYMMETRIC = ("nothing", "alibi", "sandwich", "kerple", "kerple power")


@every
def test_whom_a_mirror_image_deceives(name):
    off = R.reversal(schemes()[name], *vectors())
    assert (off < 1e-12) == (name in SYMMETRIC)
    assert R.reversal(schemes()[name], *vectors(), causal=True) > 0.1


def test_reversal_by_hand():
    """All scores are equal, so a causal mask turns the values 0, 3, 0 into 0, 1½, 1.

    Reversing the text doesn't change it, so reversing the output shouldn't change it either. But two of its entries
    then change by 1, and the largest entry is 1½.
    """
    q = torch.zeros(1, 1, 3, 2, dtype=torch.float64)
    v = torch.tensor([0.0, 3, 0]).double().view(1, 1, 3, 1)
    assert R.reversal(R.Nothing(), q, q, v, causal=True) == pytest.approx(2 / 3)
    assert R.reversal(R.Nothing(), q, q, v) < 1e-12


def test_a_signed_distance_without_a_mask_looks_ahead():
    signed = R.future_share(R.ALiBi(2, signed=True), 2, 4, 65)
    even = R.future_share(R.ALiBi(2), 2, 4, 65)
    slopes = R.alibi_slopes(2)
    for head, slope in enumerate(slopes.tolist()):
        ahead = sum(math.exp(slope * x) for x in range(1, 33))
        behind = sum(math.exp(-slope * x) for x in range(33))
        assert signed[head].item() == pytest.approx(ahead / (ahead + behind))
    assert (even < 0.5).all()
    assert signed[0] > 0.85
    assert R.future_share(R.Nothing(), 1, 4, 65).item() == pytest.approx(32 / 65)
