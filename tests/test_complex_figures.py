"""Test that the drawings in the chapter on the complex plane show the computed values."""

import torch

from ropebook import complex_figures, complex_plane
from ropebook.figures import svg


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_arrows_end_at_the_products():
    products, without = torch.tensor([3 + 4j] * 3), torch.tensor([3 + 4j, -4 + 3j, 2j])
    fig = complex_figures.arrows(products, without)
    left, right = fig.axes
    for ax, expected in ((left, products), (right, without)):
        arrows = [line for line in ax.lines if line.get_marker() == "o"]
        ends = [complex(line.get_xdata()[1], line.get_ydata()[1]) for line in arrows]
        assert ends == expected.tolist()
        assert ax.get_xlim() == ax.get_ylim() == (-6.25, 6.25)
    assert texts(left) == ["0 … 2"]
    assert texts(right) == ["0", "1", "2"]
    assert svg(fig, "Arrows in two planes, three of which agree.")


def test_the_waves_add_up_to_the_score():
    a, b = torch.tensor([4.0, 4.0]), torch.tensor([-3.0, 3.0])
    fig = complex_figures.waves_and_sum(a, b, base=100.0, reach=5)
    first, second, last = fig.axes
    (one,), (other,), (total, points) = first.lines, second.lines, last.lines
    between = torch.as_tensor(one.get_xdata())
    assert between[[0, -1]].tolist() == [-5, 5]
    wave = 4 * (between / 10).cos() + 3 * (between / 10).sin()
    assert torch.allclose(torch.as_tensor(other.get_ydata()), wave)
    summed = torch.as_tensor(one.get_ydata()) + torch.as_tensor(other.get_ydata())
    assert torch.allclose(summed, torch.as_tensor(total.get_ydata()))
    whole = torch.arange(-5, 6)
    assert torch.equal(torch.as_tensor(points.get_xdata()), whole)
    assert torch.equal(torch.as_tensor(points.get_ydata()), complex_plane.score_at(whole, a, b, 100.0))
    assert all(ax.get_ylim() == (-5.5, 5.5) for ax in (first, second))


def test_a_score_and_its_mirror_image():
    sine = torch.tensor([0.0]), torch.tensor([1.0])
    cosine = torch.tensor([1.0]), torch.tensor([0.0])
    fig = complex_figures.mirrored({"even": cosine, "odd": sine}, reach=4)
    whole = torch.arange(-4, 5).double()
    for ax, expected, name in zip(fig.axes, (whole.cos(), whole.sin()), ("even", "odd"), strict=True):
        dashed, curve = ax.lines
        assert ax.get_title(loc="left") == name
        assert torch.allclose(torch.as_tensor(curve.get_ydata()), expected)
        assert torch.allclose(torch.as_tensor(dashed.get_ydata()), expected.flip(0))
        assert dashed.get_linestyle() == "--"
