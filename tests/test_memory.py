"""Tests of detecting, from strides alone, whether two tensors share memory. The results are compared with lists of all
addresses."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import memory

BUFFER = torch.zeros(4000)
STRIDES = [0, 1, 1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 32]


@st.composite
def views(draw):
    axes = draw(st.lists(st.tuples(st.integers(1, 4), st.sampled_from(STRIDES)), min_size=1, max_size=4))
    return BUFFER.as_strided(*zip(*axes, strict=True), draw(st.integers(0, 60)))


def addresses(x):
    """Return the address of each entry. Addresses are counted in entries from the start of the memory."""
    numbers = torch.arange(x.untyped_storage().size() // x.element_size())
    return numbers.as_strided(x.shape, x.stride(), x.storage_offset()).flatten().tolist()


@given(views())
def test_repeats_against_all_addresses(x):
    found = addresses(x)
    assert memory.repeats(x) == (len(set(found)) < len(found))


@given(views(), views())
def test_share_against_all_addresses(x, y):
    assert memory.share(x, y) == memory.share(y, x) == bool(set(addresses(x)) & set(addresses(y)))


def test_numbers_of_two_sizes_share_bytes():
    wide = torch.zeros(4, dtype=torch.float64)
    narrow = wide.view(torch.int16)  # four int16 numbers for each float64 number
    assert memory.share(wide[1:2], narrow[4:5])
    assert memory.share(wide[1:2], narrow[7:8])
    assert not memory.share(wide[1:2], narrow[3:4])
    assert not memory.share(wide[1:2], narrow[8:9])
    assert memory.share(narrow[7:8], wide[1:2])
    assert not memory.share(narrow[8:9], wide[1:2])
    single = wide.view(torch.uint8)  # eight bytes for each float64 number, including odd addresses
    for at in range(32):
        assert memory.share(wide[1:2], single[at : at + 1]) == memory.share(single[at : at + 1], wide[1:2])
        assert memory.share(wide[1:2], single[at : at + 1]) == (8 <= at < 16)


def test_nothing_is_shared_with_nothing_or_with_another_device():
    x = torch.zeros(4)
    assert not memory.share(x, x[:0])
    assert not memory.share(x[:0], x)
    assert not memory.repeats(x[:0].expand(3, 0))
    assert not memory.share(x, x.to("meta"))


def test_many_heads_are_told_apart_at_once():
    """Compare the memory of the queries with that of the keys from the same projection. Then compare parts of two views
    that read the same memory in different orders. Both must work without a list of 10 million addresses."""
    both = torch.empty(1, 2048, 48, 128)
    q, k = both[:, :, :32].transpose(1, 2), both[:, :, 32:40].transpose(1, 2)
    assert not memory.repeats(q)
    assert not memory.share(q, k)
    other = both.view(1, 48, 2048, 128)
    assert not memory.share(q[..., :64], other[..., 64:])
    assert memory.share(q[..., :65], other[..., 64:])


def test_what_is_refused():
    memory.check_writable("x", torch.zeros(3, 4).T)
    with pytest.raises(
        ValueError, match=r"keys must hold each number once .* got shape \(2, 3\) with strides \(0, 1\)"
    ):
        memory.check_writable("keys", torch.zeros(3).expand(2, 3))
