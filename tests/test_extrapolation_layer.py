"""Tests of how the methods work inside an attention layer."""

import math

import pytest
import torch

from ropebook import extrapolation as X
from ropebook.rotary_attention import KVCache, RotaryAttention, packed_positions
from ropebook.sinusoidal import inv_freq as plain
from tests.helpers import largest, random
from tests.methods import DISTANCES, EXAMPLES, FREQUENCIES, decode, example, extended
from tests.together import together


@together("name", [name for name in FREQUENCIES if "scaling" in example(name).rotary(8)])
@torch.no_grad()
def test_a_frequency_method_by_name_is_the_scaling_of_the_layer(name):
    x = random(2, 48, 32)
    torch.manual_seed(0)
    other = RotaryAttention(32, 4, 2, base=100.0, dtype=torch.float64, scaling=example(name), layout="interleaved")
    layer = extended(name)
    assert torch.equal(layer(x), other(x))
    late = extended(name, keep="unrotated")
    assert torch.allclose(late(x), other(x))
    assert torch.allclose(late(x, is_causal=False), other(x, is_causal=False))
    assert torch.allclose(
        late(x, is_causal=False, return_weights=True)[1], other(x, is_causal=False, return_weights=True)[1]
    )


@torch.no_grad()
def test_partial_rotary_by_name_is_the_rotary_dim_of_the_layer():
    x = random(2, 10, 32)
    torch.manual_seed(0)
    other = RotaryAttention(32, 4, 2, base=100.0, dtype=torch.float64, rotary_dim=4, layout="interleaved")
    assert torch.equal(extended("partial")(x), other(x))
    torch.manual_seed(0)
    other = RotaryAttention(32, 4, 2, head_dim=16, base=100.0, dtype=torch.float64, rotary_dim=8, layout="interleaved")
    assert torch.equal(extended("partial", head_dim=16)(x), other(x))
    frequencies = X.Partial(0.5)(plain(8, 100.0))[0]
    assert torch.allclose(extended("partial").rotary.inv_freq, frequencies, atol=1e-15)
    with pytest.raises(TypeError, match="method must be one that changes frequencies"):
        X.rotary_options(X.ReRoPE(8), 8)


def reference(layer, x, relative, is_causal=True, mask=None, layout="interleaved"):
    """Compute attention explicitly. ``relative`` contains the distance at which each query sees each key."""
    q, k, v = (
        linear(x).unflatten(-1, (-1, 8)).transpose(1, 2) for linear in (layer.q_proj, layer.k_proj, layer.v_proj)
    )
    if layout == "half":
        q, k = (h.unflatten(-1, (2, 4)).transpose(-1, -2).flatten(-2) for h in (q, k))
    k, v = (h.repeat_interleave(q.shape[1] // h.shape[1], 1) for h in (k, v))
    angles = relative[..., None] * plain(8, 100.0)
    angles = angles if angles.ndim == 3 else angles[:, None]
    z = torch.view_as_complex(q.unflatten(-1, (4, 2)).contiguous())[..., :, None, :] * torch.exp(1j * angles)
    scores = (z * torch.view_as_complex(k.unflatten(-1, (4, 2)).contiguous()).conj()[..., None, :, :]).real.sum(-1)
    scores = scores / math.sqrt(8)
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    weights = scores.softmax(-1)
    return layer.out_proj((weights @ v).transpose(1, 2).flatten(-2)), weights


@together("layout", ["interleaved", "half"])
@together("name", DISTANCES)
@torch.no_grad()
def test_a_distance_method_in_the_layer(name, layout):
    layer, x, place = extended(name, layout=layout), random(2, 30, 32), torch.arange(30)
    assert layer.keep == "unrotated"
    relative = layer.method.relative(place, place)
    out, weights = layer(x, return_weights=True)
    expected = reference(layer, x, relative, layout=layout)
    assert torch.allclose(out, expected[0])
    assert torch.allclose(weights, expected[1])
    assert torch.allclose(layer(x, is_causal=False), reference(layer, x, relative, False, layout=layout)[0])
    window = (place[:, None] - place) < 20
    assert torch.allclose(layer(x, mask=window), reference(layer, x, relative, mask=window, layout=layout)[0])
    bias = random(30, 30)
    found = layer(x, mask=bias, is_causal=False)
    assert torch.allclose(found, reference(layer, x, relative, False, bias, layout)[0])
    assert largest(out - RotaryAttention.forward(extended("linear", {"factor": 1.0}, layout=layout), x)) > 1e-3
    assert largest(decode(layer, x, 12) - out[:, -1]) < 1e-12
    packed = packed_positions(torch.tensor([[0] * 13 + [1] * 17, [0] * 30]))
    relative = layer.method.relative(packed, packed)
    assert torch.allclose(layer(x, packed), reference(layer, x, relative, layout=layout)[0])


@together("name", DISTANCES)
def test_gradients_flow_through_a_distance_method(name):
    layer, x = extended(name), random(1, 12, 32).requires_grad_()
    layer(x).sum().backward()
    assert x.grad.isfinite().all()
    step = 1e-6 * random(1, 12, 32, seed=5)
    with torch.no_grad():
        change = (layer(x + step) - layer(x - step)).sum() / 2
    assert change.item() == pytest.approx((x.grad * step).sum().item(), rel=1e-4)


@torch.no_grad()
def test_log_n_in_the_layer():
    layer, x = extended("log_n"), random(2, 48, 32)
    # The layer's frequencies don't depend on the length, so a model may cache its keys.
    assert not layer.follows_length
    other = extended("linear", {"factor": 1.0})
    assert torch.allclose(layer(x[:, :32]), other(x[:, :32]), atol=1e-14)
    out, weights = layer(x, return_weights=True)
    place = torch.arange(48)
    q, k, _ = RotaryAttention.project(other, x)
    scores = q @ k.repeat_interleave(2, 1).mT / math.sqrt(8) * X.LogN(32).query_scale(place)[:, None]
    scores = scores.masked_fill(torch.ones(48, 48, dtype=torch.bool).triu(1), -math.inf)
    assert torch.allclose(weights, scores.softmax(-1))
    assert largest(decode(layer, x, 20) - out[:, -1]) < 1e-12
    assert torch.allclose(layer(x, place.expand(2, -1)), out)
    assert torch.allclose(extended("log_n", keep="unrotated")(x), out)


@together("name", X.METHODS)
@together("layout", ["interleaved", "half"])
@torch.no_grad()
def test_a_layer_that_is_there_already_takes_a_method(name, layout):
    x, like = random(2, 40, 24), {"base": 100.0, "layout": layout, "bias": True, "dtype": torch.float64}
    layer = RotaryAttention(24, 4, 2, head_dim=8, **like).eval()
    other = X.ExtendedAttention(24, 4, 2, head_dim=8, method=name, options=EXAMPLES[name], **like)
    other.load_state_dict(layer.state_dict())
    longer = X.ExtendedAttention.of(layer, method=name, options=EXAMPLES[name])
    assert torch.equal(longer(x), other(x))
    assert [id(p) for p in longer.parameters()] == [id(p) for p in layer.parameters()]
    assert not longer.training
    assert X.ExtendedAttention.of(layer.train(), method=name, options=EXAMPLES[name], keep="unrotated").training


@torch.no_grad()
def test_a_layer_that_turns_in_part_takes_a_method():
    x = random(2, 40, 32)
    layer = RotaryAttention(32, 4, base=100.0, rotary_dim=4, dtype=torch.float64, layout="interleaved")
    longer = X.ExtendedAttention.of(layer, method="ntk", options={"factor": 2.0})
    assert longer.rotary.rotary_dim == 4
    layer.rotary.scaling = X.NTKAware(2.0)
    assert torch.equal(longer(x), layer(x))


@together("name", ["dynamic_yarn", "self_extend", "log_n"])
@torch.no_grad()
def test_half_types_in_the_layer(name, device):
    x = random(2, 40, 32, dtype=torch.float32)
    exact = extended(name, dtype=torch.float32, keep="unrotated")
    half = extended(name, dtype=torch.float32, keep="unrotated").to(device, torch.bfloat16)
    out = half(x.to(device, torch.bfloat16))
    assert (out.dtype, out.device.type) == (torch.bfloat16, device.type)
    assert largest(out.cpu().float() - exact(x)) < 0.05 * largest(exact(x))


def test_layers_that_are_refused():
    with pytest.raises(ValueError, match=r"name must be one of .*got 'alibi'"):
        extended("alibi", {})
    with pytest.raises(ValueError, match="keep must be one of 'rotated', 'unrotated', got 'both'"):
        extended("linear", keep="both")
    with pytest.raises(ValueError, match="keep must be one of 'unrotated', got 'rotated'"):
        extended("rerope", keep="rotated")
    layer = extended("rerope")
    with pytest.raises(ValueError, match=r"x must be \(batch, seq, 32\), got \(2, 5, 31\)"):
        layer(random(2, 5, 31))
    with pytest.raises(ValueError, match="positions must be None with a cache of unrotated keys"), torch.no_grad():
        layer(random(2, 5, 32), torch.arange(5), cache=KVCache(8))
    # the length of the text can't be determined from a tensor of positions
    for keep in ("rotated", "unrotated"):
        with pytest.raises(ValueError, match="length must be known where the frequencies follow it, got None"):
            extended("dynamic_ntk", keep=keep)(random(2, 5, 32), torch.arange(5))
