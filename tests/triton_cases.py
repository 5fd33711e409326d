"""Tests of the Triton kernel, which is compared with torch's ONNX operator in float64. test_triton_kernel.py runs them
in a separate process.

Triton decides on import whether to interpret kernels or compile them, so the cases need a process of their own. On a
machine with CUDA, where the kernel is compiled, the same cases are run.
"""

import ctypes
import doctest
import mmap

import pytest
import torch
from torch.onnx.ops import rotary_embedding
from torch.utils.checkpoint import checkpoint

from ropebook import checks
from ropebook import triton_kernel as K
from tests.scripts import benchmark

WHERE = "cpu" if K.INTERPRETED else "cuda"

# each as (batch, q heads, k heads, tokens, head_dim, rotary_dim)
SHAPES = {
    "a pair, a head, a token": (1, 1, 1, 1, 2, 2),
    "one KV head": (2, 6, 1, 5, 16, 16),
    "heads and tokens that no block divides": (1, 5, 3, 37, 64, 64),
    "a last block of heads half empty": (1, 5, 3, 8, 128, 128),
    "96 of 128 rotate": (1, 3, 2, 19, 128, 96),
    "an odd number passes": (2, 2, 1, 3, 13, 6),
    "more heads of k than of q": (1, 1, 7, 2, 128, 128),
    "decoding": (3, 8, 2, 1, 64, 64),
    "a wide head": (1, 1, 1, 2, 4096, 4096),
}


def random(*shape, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(WHERE, dtype)


def angles(*shape, seed=1, dtype=torch.float32):
    radians = 10 * random(*shape, seed=seed, dtype=torch.float64)
    return radians.cos().to(dtype), radians.sin().to(dtype)


def case(batch=2, q_heads=4, k_heads=2, tokens=5, dim=16, rotary_dim=16, dtype=torch.float32):
    q, k = (random(batch, heads, tokens, dim, dtype=dtype, seed=heads) for heads in (q_heads, k_heads))
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return q, k, *angles(tokens, rotary_dim // 2, dtype=wide)


def exact(x, cos, sin, layout):
    """Return the rotation computed by torch's own operator in float64."""
    batch, _, tokens, dim = x.shape
    cos, sin = (table.double().expand(batch, tokens, -1).cpu() for table in (cos, sin))
    turns = 2 * cos.shape[-1]
    turned = rotary_embedding(
        x.double().cpu(),
        cos,
        sin,
        interleaved=layout == "interleaved",
        rotary_embedding_dim=turns if turns < dim else 0,
    )
    return turned.to(x.device)


def assert_rotated(got, x, cos, sin, layout):
    """Check that the error is at most one unit in the last place, plus the float32 rounding error of two products and a
    sum."""
    assert got.shape == x.shape
    assert got.dtype == x.dtype
    right = exact(x, cos, sin, layout)
    limits = torch.finfo(x.dtype)
    wide = 2.0**-52 if x.dtype == torch.float64 else 2.0**-23
    allowed = limits.eps * right.abs() + 2 * wide * x.double().abs().max() + limits.smallest_normal * limits.eps
    error = (got.double() - right).abs()
    assert (error <= allowed).all(), f"largest error {error.max()}"  # a NaN fails too
    passed = 2 * cos.shape[-1]
    assert torch.equal(got[..., passed:], x[..., passed:])


@pytest.fixture
def poison(monkeypatch):
    """Fill new tensors with NaN, so that every number the kernel fails to write stays NaN."""
    monkeypatch.setattr(torch, "empty_like", lambda x: torch.full_like(x, float("nan")))


@pytest.fixture
def launches(monkeypatch):
    """Record the kernel's launches."""
    counted, kernel = [], K.rotary_kernel

    class Counting:
        def __getitem__(self, grid):
            counted.append(grid)
            return kernel[grid]

    monkeypatch.setattr(K, "rotary_kernel", Counting())
    return counted


# --- Values ---


# Each shape is tried with all four types, two of them in each layout.
@pytest.mark.parametrize(
    ("name", "dtype", "layout"),
    [
        (name, dtype, checks.LAYOUTS[(row + column) % 2])
        for row, name in enumerate(SHAPES)
        for column, dtype in enumerate(K.DATA_TYPES)
    ],
)
def test_rotates_as_torch_does_in_float64_in_one_launch(name, dtype, layout, poison, launches):
    q, k, cos, sin = case(*SHAPES[name], dtype=dtype)
    kept = q.clone(), k.clone()
    for got, x in zip(K.rotary(q, k, cos, sin, layout=layout), kept, strict=True):
        assert_rotated(got, x, cos, sin, layout)
    assert len(launches) == 1
    assert torch.equal(q, kept[0])
    assert torch.equal(k, kept[1])


@pytest.mark.parametrize("layout", checks.LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_in_place_is_the_same_to_the_bit_and_allocates_nothing(shape, layout, launches, monkeypatch):
    q, k, cos, sin = case(*shape, dtype=torch.bfloat16)
    fresh = K.rotary(q, k, cos, sin, layout=layout)
    monkeypatch.setattr(torch, "empty_like", None)
    turned = K.rotary(q, k, cos, sin, layout=layout, in_place=True)
    assert turned[0] is q
    assert turned[1] is k
    assert all(map(torch.equal, turned, fresh))
    assert len(launches) == 2


def test_the_two_layouts_are_the_same_up_to_a_permutation():
    q, k, cos, sin = case(dim=8, rotary_dim=8)
    order = torch.tensor([0, 2, 4, 6, 1, 3, 5, 7], device=WHERE)
    halves = K.rotary(q[..., order], k[..., order], cos, sin, layout="half")
    for half, pairs in zip(halves, K.rotary(q, k, cos, sin), strict=True):
        assert torch.equal(half, pairs[..., order])


@pytest.mark.parametrize("layout", checks.LAYOUTS)
def test_positions_of_their_own_for_each_sequence(layout):
    q, k, *_ = case(batch=3)
    cos, sin = angles(3, 5, 8)
    for got, x in zip(K.rotary(q, k, cos, sin, layout=layout), (q, k), strict=True):
        assert_rotated(got, x, cos, sin, layout)
    shared = K.rotary(q, k, cos[:1], sin[:1], layout=layout)
    assert all(map(torch.equal, shared, K.rotary(q, k, cos[0], sin[0], layout=layout)))


@pytest.mark.parametrize(
    ("heads", "programs", "layout"),
    [
        (heads, programs, checks.LAYOUTS[(row + column) % 2])
        for row, heads in enumerate([(5, 3), (3, 11), (16, 1)])
        for column, programs in enumerate([1, 2, 2048])
    ],
)
def test_heads_in_any_number_of_shares(heads, programs, layout, launches, monkeypatch):
    """Test every way to share out the heads, from one program for all heads of a token to one program per head."""
    monkeypatch.setattr(K, "PROGRAMS", programs)
    monkeypatch.setattr(K, "TILE", 32)
    q, k, cos, sin = case(1, *heads, tokens=2)
    for got, x in zip(K.rotary(q, k, cos, sin, layout=layout), (q, k), strict=True):
        assert_rotated(got, x, cos, sin, layout)
    (blocks, shares), most = launches[0], max(heads)
    assert blocks == 1
    assert shares == min(programs, K.triton.next_power_of_2(most))


# (batch, q heads, k heads, tokens, head_dim), and whether one program handles all heads of a token and reads its table
# only once, because there are enough tokens for a large GPU
@pytest.mark.parametrize("first", ["heads first", "tokens first"])
@pytest.mark.parametrize(
    "shape, once",
    [((1, 32, 8, 2048, 128), False), ((1, 32, 8, 512, 64), False), ((4, 32, 8, 8192, 128), True),
     ((1, 32, 8, 131072, 64), True)],
    ids=str,
)  # fmt: skip
def test_the_grid_fills_a_large_gpu_and_splits_heads_no_further(shape, once, first, monkeypatch):
    batch, q_heads, k_heads, tokens, dim = shape
    q, k = (torch.empty(batch, heads, tokens, dim, device="meta") for heads in (q_heads, k_heads))
    if first == "tokens first":
        q, k = (x.new_empty(batch, tokens, x.shape[1], dim).transpose(1, 2) for x in (q, k))
    table, grids = torch.empty(tokens, dim // 2, device="meta"), []

    class Kernel:
        def __getitem__(self, grid):
            grids.append(grid)
            return lambda *arguments, **options: None

    monkeypatch.setattr(K, "rotary_kernel", Kernel())
    monkeypatch.setattr(K, "_why_not", lambda device: None)
    K.rotary(q, k, table, table)
    ((blocks, shares),) = grids
    assert blocks * shares >= min(2048, tokens * q_heads * dim // K.TILE)
    if once:
        assert shares == 1


@pytest.mark.skipif(WHERE != "cpu", reason="of the interpreter")
def test_no_loop_runs_to_a_tensor(monkeypatch):
    """Triton 3.6 can't interpret a loop whose bound is a tensor if NumPy is 2.4 or newer, because the bound is then an
    array with one element."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def without_index(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: (_ for _ in ()).throw(TypeError("an array is no integer")))

    monkeypatch.setattr(interpreter, "_patch_lang_tensor", without_index)
    q, k, cos, sin = case()
    assert_rotated(K.rotary(q, k, cos, sin)[1], k, cos, sin, "interleaved")


# Each function takes x, of shape (batch, heads, tokens, dim), and returns the same numbers in a different memory
# layout.
STRIDES = {
    "tokens first": lambda x: x.transpose(1, 2).contiguous().transpose(1, 2),
    "a slice of wider rows": lambda x: torch.cat((x, x), -1)[..., : x.shape[-1]],
    "every other number": lambda x: x.repeat_interleave(2, -1)[..., ::2],
    "columns": lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    "every third token": lambda x: x.repeat_interleave(3, 2)[:, :, ::3],
    "batch last": lambda x: x.movedim(0, -1).contiguous().movedim(-1, 0),
}


@pytest.mark.parametrize("layout", checks.LAYOUTS)
@pytest.mark.parametrize("lie", STRIDES.values(), ids=STRIDES)
def test_any_strides_of_q_k_cos_and_sin(lie, layout):
    q, k, cos, sin = case(tokens=6, dim=20, rotary_dim=12)
    expected = K.rotary(q, k, cos, sin, layout=layout)
    there = (lie(q), k, cos, sin), (q, lie(k), cos, sin), (q, k, lie(cos[None, None])[0, 0], sin)
    for arguments in (*there, (q, k, cos, sin.t().contiguous().t())):
        assert all(map(torch.equal, K.rotary(*arguments, layout=layout), expected))
    q, k = lie(q), lie(k)
    K.rotary(q, k, cos, sin, layout=layout, in_place=True)
    assert all(map(torch.equal, (q, k), expected))


def test_one_row_stands_for_all_heads():
    row = random(2, 1, 5, 16)
    q, k = row.expand(2, 4, 5, 16), row
    turned, once = K.rotary(q, k, *angles(5, 8))
    assert torch.equal(turned, once.expand(2, 4, 5, 16))


def test_in_place_leaves_the_neighbours_alone():
    """q and k are slices of one projection, (batch, tokens, heads, dim), which also contains values that aren't
    rotated."""
    projected = random(2, 5, 9, 16)
    kept = projected.clone()
    q, k = projected.transpose(1, 2)[:, 1:5], projected.transpose(1, 2)[:, 5:7]
    expected = K.rotary(q.clone(), k.clone(), *angles(5, 8))
    K.rotary(q, k, *angles(5, 8), in_place=True)
    assert torch.equal(q, expected[0])
    assert torch.equal(k, expected[1])
    rest = [0, 7, 8]
    assert torch.equal(projected[:, :, rest], kept[:, :, rest])


def test_fresh_results_lie_as_the_arguments_do():
    q, k = random(2, 5, 4, 16).transpose(1, 2), random(2, 2, 5, 16)
    turned = K.rotary(q, k, *angles(5, 8))
    assert turned[0].stride() == q.stride()
    assert turned[1].stride() == k.stride()


@pytest.mark.parametrize("layout", checks.LAYOUTS)
@pytest.mark.parametrize("in_place", [False, True])
def test_q_alone(layout, in_place):
    q, k, cos, sin = case()
    expected = K.rotary(q, k, cos, sin, layout=layout)[0]
    turned, nothing = K.rotary(q, None, cos, sin, layout=layout, in_place=in_place)
    assert nothing is None
    assert torch.equal(turned, expected)


@pytest.mark.parametrize("shape", [(0, 2, 1, 3), (2, 2, 1, 0), (2, 0, 0, 3), (2, 0, 3, 4), (2, 3, 0, 4)])
@pytest.mark.parametrize("in_place", [False, True])
def test_nothing_to_rotate(shape, in_place):
    q, k, cos, sin = case(*shape)
    expected = [x if x.numel() == 0 else exact(x, cos, sin, "half").float() for x in (q, k)]
    for got, x in zip(K.rotary(q, k, cos, sin, layout="half", in_place=in_place), expected, strict=True):
        torch.testing.assert_close(got, x)


@pytest.mark.parametrize("shape, strides", [((1, 3, 1, 4), (0, 2**30, 4, 1)), ((1, 1, 3, 4), (0, 4, 2**30, 1))])
def test_addresses_beyond_what_32_bits_count(shape, strides):
    """The rows are 2^30 numbers apart, so the third row begins at 2^31. The memory in between is never touched, and
    therefore never allocated by the system."""
    q = torch.as_strided(torch.empty(2**31 + 4, dtype=torch.bfloat16, device=WHERE), shape, strides)
    q.copy_(random(*shape, dtype=torch.bfloat16))
    cos, sin = angles(shape[2], 2)
    expected = K.rotary(q.contiguous(), None, cos, sin)[0]
    assert torch.equal(K.rotary(q, None, cos, sin, in_place=True)[0], expected)


def before_forbidden_memory(x):
    """Return a copy of x that ends right before an inaccessible memory page, so that reading past the end crashes."""
    size = x.numel() * x.element_size()
    pages = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, pages + mmap.PAGESIZE)
    end = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + pages
    assert ctypes.CDLL(None, use_errno=True).mprotect(ctypes.c_void_p(end), mmap.PAGESIZE, 0) == 0
    return torch.frombuffer(memory, dtype=x.dtype, count=x.numel(), offset=pages - size).view(x.shape).copy_(x)


@pytest.mark.skipif(WHERE != "cpu", reason="pages are forbidden on the CPU; the kernel is the same")
@pytest.mark.parametrize("layout", checks.LAYOUTS)
def test_nothing_is_read_or_written_beyond_the_end(layout):
    given = case(batch=1, q_heads=3, k_heads=1, tokens=33, dim=48, rotary_dim=38)
    q, k, cos, sin = map(before_forbidden_memory, given)
    expected = K.rotary(*given, layout=layout)
    assert all(map(torch.equal, K.rotary(q, k, cos, sin, layout=layout, in_place=True), expected))


# --- Gradients ---


@pytest.mark.parametrize("layout", checks.LAYOUTS)
def test_gradients_to_the_second_order(layout):
    q, k, cos, sin = case(batch=1, q_heads=1, k_heads=1, tokens=2, dim=3, rotary_dim=2, dtype=torch.float64)
    q.requires_grad_()
    k.requires_grad_()

    def rotate(q, k):
        return K.rotary(q, k, cos, sin, layout=layout)

    assert torch.autograd.gradcheck(rotate, (q, k))
    assert torch.autograd.gradgradcheck(rotate, (q, k))


@pytest.mark.parametrize("layout", checks.LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_the_gradient_is_turned_back_in_one_launch(layout, dtype, launches, poison):
    q, k, cos, sin = case(dim=20, rotary_dim=12, dtype=dtype)
    q.requires_grad_()
    k.requires_grad_()
    upstream = random(*q.shape, dtype=dtype, seed=8), random(*k.shape, dtype=dtype, seed=9)
    kept = [x.clone() for x in upstream]
    torch.autograd.backward(K.rotary(q, k, cos, sin, layout=layout), upstream)
    for x, gradient in zip((q, k), upstream, strict=True):
        assert_rotated(x.grad, gradient, cos, -sin, layout)
    assert all(map(torch.equal, upstream, kept))
    assert len(launches) == 2


@pytest.mark.parametrize("in_place", [False, True])
def test_gradients_where_only_one_is_wanted(in_place):
    q, k, cos, sin = case()
    k.requires_grad_()
    K.rotary(q.clone(), 1 * k, cos, sin, in_place=in_place)[1].sum().backward()  # its gradient has strides of 0
    assert_rotated(k.grad, torch.ones_like(k), cos, -sin, "interleaved")
    q.requires_grad_()
    K.rotary(1 * q, 1 * k, cos, sin, in_place=in_place)[0].sum().backward()
    assert_rotated(q.grad, torch.ones_like(q), cos, -sin, "interleaved")


def attend(weights, x, cos, sin, in_place):
    """Run a small attention layer in which q and k are views of projections that are rotated and then used."""
    q, k = ((x @ w).view(2, 5, -1, 8).transpose(1, 2) for w in weights)
    q, k = K.rotary(q, k, cos, sin, layout="half", in_place=in_place)
    return (q @ k.mT).softmax(-1).sin().sum()


@pytest.mark.parametrize("through", ["plain", "checkpoint", "reentrant checkpoint"])
def test_in_place_gradients_and_activation_checkpointing(through):
    x = random(2, 5, 12, seed=5)
    cos, sin = angles(5, 4)

    def gradients(in_place, through):
        weights = [random(12, 16, seed=6).requires_grad_(), random(12, 8, seed=7).requires_grad_()]
        inner = x.clone().requires_grad_()
        if through == "plain":
            result = attend(weights, inner, cos, sin, in_place)
        else:
            reentrant = through.startswith("reentrant")
            result = checkpoint(attend, weights, inner, cos, sin, in_place, use_reentrant=reentrant)
        result.backward()
        return [inner.grad, *(w.grad for w in weights)]

    for got, expected in zip(gradients(True, through), gradients(False, "plain"), strict=True):
        torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("in_place", [False, True])
def test_only_cos_and_sin_are_kept_for_the_way_back(in_place):
    q, k, cos, sin = case()
    q, k = 1 * q.requires_grad_(), 1 * k.requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x) or x, lambda x: x):
        K.rotary(q, k, cos, sin, in_place=in_place)
    assert {x.data_ptr() for x in kept} == {cos.data_ptr(), sin.data_ptr()}


def test_in_place_a_square_before_it_is_no_longer_differentiable():
    """The square saves its argument for the backward pass, and the rotation then overwrites that argument. torch
    notices this, because the rotation declares which tensors it changes."""
    q, k, cos, sin = case()
    q = 1 * q.requires_grad_()
    squares = q.square()
    K.rotary(q, k, cos, sin, in_place=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        squares.sum().backward()


def test_in_place_on_views_takes_one_launch_without_gradients(launches):
    q, k = random(2, 5, 4, 16).transpose(1, 2), random(2, 5, 2, 16).transpose(1, 2)
    K.rotary(q, k, *angles(5, 8), in_place=True)
    assert len(launches) == 1


# --- What is refused ---


@pytest.mark.parametrize(
    "change, error, message",
    [
        (dict(layout="halves"), ValueError, "layout must be one of 'interleaved', 'half', got 'halves'"),
        (dict(in_place=1), TypeError, "in_place must be True or False, got 1"),
        (dict(q=[1.0]), TypeError, "q must be a floating-point tensor, got list"),
        (dict(k=torch.ones(2, 2, 5, 16).long()), TypeError, "k must be a floating-point tensor, got dtype torch.int64"),
        (dict(q=torch.ones(2, 4, 5, 16, dtype=torch.float8_e5m2)), TypeError, "q must be bfloat16, float16, float32"),
        (dict(q=torch.ones(4, 5, 16)), ValueError, r"q must have shape .* got \(4, 5, 16\)"),
        (dict(k=torch.ones(2, 2, 6, 16)), ValueError, "q and k may differ only in their number of heads"),
        (dict(k=torch.ones(1, 2, 5, 16)), ValueError, "q and k may differ only in their number of heads"),
        (dict(k=torch.ones(2, 2, 5, 8)), ValueError, "q and k may differ only in their number of heads"),
        (dict(k=torch.ones(2, 2, 5, 16).half()), ValueError, "q and k must share dtype and device"),
        (dict(k=torch.ones(2, 2, 5, 16, device="meta")), ValueError, "q and k must share dtype and device"),
        (dict(cos=1.0), TypeError, "cos must be a floating-point tensor, got float"),
        (dict(sin=torch.ones(5, 8).bfloat16()), TypeError, "sin must be float32 or float64, got dtype torch.bfloat16"),
        (dict(sin=torch.ones(5, 8, requires_grad=True)), ValueError, "sin must not require a gradient"),
        (dict(cos=torch.ones(5, 8, device="meta")), ValueError, "cos must be on q's device"),
        (dict(cos=torch.ones(4, 8)), ValueError, r"cos and sin must both have shape .* got \(4, 8\)"),
        (dict(cos=torch.ones(6, 8)), ValueError, r"tokens = 5; got \(6, 8\)"),
        (dict(sin=torch.ones(5, 7)), ValueError, r"got \(5, 8\) and \(5, 7\)"),
        (dict(cos=torch.ones(3, 5, 8), sin=torch.ones(3, 5, 8)), ValueError, "batch = 2"),
        (dict(cos=torch.ones(5, 9), sin=torch.ones(5, 9)), ValueError, "2 <= rotary_dim <= 16"),
        (dict(cos=torch.ones(5, 0), sin=torch.ones(5, 0)), ValueError, "2 <= rotary_dim <= 16"),
        (dict(cos=torch.ones(8), sin=torch.ones(8)), ValueError, "cos and sin must both have shape"),
    ],
)
def test_what_is_refused(change, error, message):
    q, k, cos, sin = case()
    change = {name: x.to(WHERE) if hasattr(x, "is_cpu") and x.is_cpu else x for name, x in change.items()}
    with pytest.raises(error, match=message):
        K.rotary(**{"q": q, "k": k, "cos": cos, "sin": sin, **change})


def test_what_is_refused_in_place_stays_as_it_was():
    q, k, cos, sin = case()
    kept = q.clone()
    leaf = q.clone().requires_grad_()
    for bad in (leaf, leaf[:, :2], leaf.view(2, 2, 2, 5, 16)[:, 0]):
        with pytest.raises(ValueError, match="must not be a leaf"):
            K.rotary(bad, k, cos, sin, in_place=True)
    assert torch.equal(leaf, kept)
    with torch.no_grad():
        K.rotary(leaf, k, cos, sin, in_place=True)
    assert not torch.equal(leaf, kept)
    with pytest.raises(ValueError, match="k must hold each number once"):
        K.rotary(q, q[:, :1].expand(2, 4, 5, 16), cos, sin, in_place=True)
    windows = q.as_strided((2, 4, 5, 16), (320, 40, 8, 1))
    with pytest.raises(ValueError, match=r"q must hold each number once .* with strides"):
        K.rotary(windows, None, cos, sin, in_place=True)
    heads = random(2, 6, 5, 16)
    whole = heads.clone()
    for one, other in (
        (q, q),
        (q, q[:, :2]),
        (q[:, 1:], q[:, :2]),  # these have one head in common
        (heads[:, :4], heads[:, 3:]),
        (heads.flatten()[:640].view(2, 4, 5, 16), heads.flatten()[600:920].view(2, 2, 5, 16)),
    ):
        with pytest.raises(ValueError, match="q and k must not share memory"):
            K.rotary(one, other, cos, sin, in_place=True)
    assert torch.equal(q, kept)
    assert torch.equal(heads, whole)


@pytest.mark.parametrize("layout", checks.LAYOUTS)
def test_in_place_on_slices_of_one_projection(layout):
    """The rows of q and k alternate in memory, but the two tensors share no entries."""
    both = random(2, 5, 6, 16)
    q, k = both[:, :, :4].transpose(1, 2), both[:, :, 4:].transpose(1, 2)
    expected, cos, sin = both.clone(), *angles(5, 8)
    K.rotary(q, k, cos, sin, layout=layout, in_place=True)
    assert_rotated(both.transpose(1, 2), expected.transpose(1, 2), cos, sin, layout)


def test_where_it_runs():
    assert K.available()
    assert K.available(WHERE)
    assert K.available(torch.device(WHERE, 0))
    assert not K.available("meta")
    q, k, cos, sin = (x.to("meta") for x in case())
    with pytest.raises(RuntimeError, match="got tensors on meta"):
        K.rotary(q, k, cos, sin)


def test_the_benchmarks_part_for_cuda_runs(monkeypatch):
    """Run the benchmark on tiny tensors, either interpreted or on CUDA. It compares each form with float64 before
    timing it."""
    script = benchmark("rotary")
    monkeypatch.setattr(script, "transformers_forms", lambda *_: [])  # they take seconds to import
    shape = {"batch": 2, "q_heads": 3, "k_heads": 1, "tokens": 5, "head_dim": 16}
    with torch.no_grad():
        (part,) = script.gpu(torch.device(WHERE), (shape,), rounds=2, compiled=False)
    assert part["bytes"] == 2 * (3 + 1) * 2 * 5 * 16 * 2
    ours = [entry for entry in part["entries"] if entry["name"] == "triton"]
    assert len({(e["layout"], e["writes"], e["direction"], e["order"]) for e in ours}) == 12
    assert all(entry["ms"] > 0 for entry in ours)
    assert all(0 < entry["largest_error"] < 0.05 for entry in ours)
    assert all(entry["allocated"] >= part["outputs_bytes"] for entry in ours if entry["writes"] == "fresh")
    if WHERE == "cuda":  # on the CPU, the interpreter allocates memory for itself
        assert not any(entry["allocated"] for entry in ours if entry["writes"] == "in place")
    claims = script.cuda_targets(part)
    assert [claim["at_least"] for claim in claims if "limit" in claim["claim"]] == [0.9] * 4


def test_doctests():
    with torch.device(WHERE):
        found = doctest.testmod(K)
    assert found.attempted > 3
    assert found.failed == 0
