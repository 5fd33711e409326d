"""Tests of the two layers that add positions: the sinusoidal encoding and learned positions."""

import pytest
import torch

from ropebook import sinusoidal as S
from tests.helpers import random
from tests.sinusoidal_helpers import HALVES
from tests.together import together


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, *HALVES])
def test_sinusoidal_module_adds_the_encoding_and_rounds_once(dtype, device):
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("mps has no float64")
    x = random(2, 300, 16, dtype=dtype).to(device)
    ours = S.SinusoidalEncoding(16)(x)
    assert ours.shape == x.shape
    assert ours.dtype == dtype
    assert ours.device.type == device.type
    # computed on the same device, because in float64 the last bit of a sine differs between devices
    places = torch.arange(300, device=device)
    exact = x.cpu().double() + S.encoding(places, 16, dtype=torch.float64).cpu()
    spacing = torch.finfo(dtype).eps * exact.abs().clamp(min=1)
    assert ((ours.cpu().double() - exact).abs() <= 0.5001 * spacing + 2**-24 * (dtype != torch.float64)).all()


@together("positions", [[4, 0, 9], torch.tensor([[4, 0, 9], [1, 2, 3]]), torch.tensor([[7], [8]])])
def test_modules_take_positions(positions):
    x = random(2, 3, 8, dtype=torch.float32)
    wanted = torch.as_tensor(positions)
    encoded = S.SinusoidalEncoding(8, base=50.0)(x, positions)
    assert torch.equal(encoded, x + S.encoding(wanted, 8, 50.0))
    learned = S.LearnedPositions(8, 10)
    assert torch.equal(learned(x, positions), x + torch.nn.functional.embedding(wanted, learned.weight))


def test_modules_take_one_sequence_and_many_axes():
    for module in (S.SinusoidalEncoding(8), S.LearnedPositions(8, 10)):
        x = random(2, 3, 5, 8, dtype=torch.float32)
        whole = module(x)
        assert whole.shape == x.shape
        assert torch.equal(module(x[1, 2]), whole[1, 2])
        assert torch.equal(module(x, torch.arange(5)), whole)


def test_sinusoidal_module_has_nothing_to_round_or_train():
    module = S.SinusoidalEncoding(8, base=100)
    before = module(torch.zeros(200, 8))
    assert not module.state_dict()
    assert not list(module.buffers())
    assert torch.equal(module.half()(torch.zeros(200, 8)), before)
    assert module.extra_repr() == "dim=8, base=100"
    x = torch.zeros(3, 8, requires_grad=True)
    module(x).sum().backward()
    assert torch.equal(x.grad, torch.ones(3, 8))


def test_learned_positions_learn_the_rows_they_see(device):
    module = S.LearnedPositions(4, 6).to(device)
    x = torch.zeros(2, 3, 4, device=device, requires_grad=True)
    out = module(x)
    assert torch.equal(out[1], module.weight[:3])
    out.sum().backward()
    assert module.weight.grad.cpu().tolist() == [[2.0] * 4] * 3 + [[0.0] * 4] * 3
    assert torch.equal(x.grad.cpu(), torch.ones(2, 3, 4))
    assert [name for name, _ in module.named_parameters()] == ["weight"]
    assert module.extra_repr() == "dim=4, max_length=6"


def test_learned_positions_take_any_dim_and_the_type_of_the_words():
    module = S.LearnedPositions(3, 2)
    out = module(torch.zeros(2, 3, dtype=torch.bfloat16))
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, module.weight.bfloat16())
    assert S.LearnedPositions(1, 1)(torch.zeros(1, 1)).shape == (1, 1)


def test_learned_positions_start_small():
    torch.manual_seed(0)
    assert S.LearnedPositions(64, 512).weight.std().item() == pytest.approx(0.02, rel=0.03)
    module = S.LearnedPositions(64, 512, std=3)
    assert module.weight.std().item() == pytest.approx(3, rel=0.03)
    assert abs(module.weight.mean().item()) < 0.1
    assert not S.LearnedPositions(2, 2, std=0).weight.any()


def test_learned_positions_end_where_learning_ended():
    module = S.LearnedPositions(4, 512)
    assert module(torch.zeros(512, 4)).shape == (512, 4)
    with pytest.raises(ValueError, match=r"positions must lie between 0 and 511 \(max_length=512 .*, got 512"):
        module(torch.zeros(513, 4))
    # an index of −1 would count from the end, but a position of −1 must be rejected
    with pytest.raises(ValueError, match=r"positions must lie between 0 and 511.*got -1"):
        module(torch.zeros(1, 4), [-1])
