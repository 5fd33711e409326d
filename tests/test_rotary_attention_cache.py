"""Test that rows that are cached, chunked, packed or padded give the same results as each text by itself."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import attention as A
from ropebook import rotary_attention as R
from tests.helpers import largest, seeds
from tests.rotary_attention_helpers import CHUNKS, CLOSE, DIM, HEADS, LAYOUTS, draw, error, in_chunks, make
from tests.together import together

pytestmark = pytest.mark.usefixtures("without_gradients")


@together("chunks", CHUNKS, ids=str)
@together("kv_heads", [4, 2, 1])
@together("dtype", CLOSE, ids=str)
def test_chunks_with_a_cache_give_what_all_at_once_gives(chunks, kv_heads, dtype):
    x = draw(2, 9, DIM, dtype=dtype)
    for layout in LAYOUTS:
        layer = make(kv_heads, dtype=dtype, layout=layout)
        assert error(in_chunks(layer, x, chunks), layer(x)) < CLOSE[dtype]
    positions = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12, 13], [0, 3, 1, 7, 2, 2, 90, 4, 8]])
    assert error(in_chunks(layer, x, chunks, positions), layer(x, positions)) < CLOSE[dtype]


def test_weights_and_masks_reach_over_the_cache():
    layer, x = make(), draw(2, 6, DIM)
    mask = A.padding_mask([4, 6], 6)
    out, weights = layer(x, mask=mask, return_weights=True)
    for new in (1, 3):
        for allowed in (mask, torch.where(mask, 0.0, -math.inf)):
            cache = R.KVCache(6)
            layer(x[:, :-new], mask=allowed[..., :-new], cache=cache)
            late, late_weights = layer(x[:, -new:], mask=allowed, cache=cache, return_weights=True)
            assert error(late, out[:, -new:]) < 1e-13
            assert error(late_weights, weights[:, :, -new:]) < 1e-13
        cache = R.KVCache(6)
        layer(x[:, :-new], cache=cache)
        ahead = layer(x[:, -new:], cache=cache, is_causal=False)  # the new tokens must attend to one another as well
        assert (error(ahead, layer(x)[:, -new:]) < 1e-13) == (new == 1)
        assert error(ahead, layer(x, is_causal=False)[:, -new:]) < 1e-13


def test_the_cache_keeps_rotated_keys_and_plain_values():
    layer, x, cache = make(), draw(2, 5, DIM), R.KVCache(8)
    positions = torch.tensor([4, 9, 2, 0, 1])
    layer(x[:, :3], positions[:3], cache=cache)
    layer(x[:, 3:], positions[3:], cache=cache)
    _, k, v = layer.project(x, positions)
    assert cache.keys.shape == cache.values.shape == (2, 2, 8, 6)
    assert error(cache.keys[:, :, :5], k) < 1e-14
    assert error(cache.values[:, :, :5], v) < 1e-14
    cost = A.attention_cost(8, 6, HEADS, 2, bytes_per_element=8)
    assert cache.keys.nbytes + cache.values.nbytes == 2 * cost.kv_cache_bytes  # the cache has two rows


def test_a_cache_takes_no_memory_after_the_first_keys():
    cache = R.KVCache(4)
    k = draw(1, 2, 2, 6)
    first, _ = cache.append(k, k)
    second, values = cache.append(k + 1, k + 2)
    assert first.data_ptr() == second.data_ptr() == cache.keys.data_ptr()
    assert torch.equal(second, torch.cat((k, k + 1), 2))
    assert torch.equal(values, torch.cat((k, k + 2), 2))


@pytest.mark.parametrize("length", [0, 3])
def test_a_mask_is_refused_before_the_cache_takes_keys(length):
    layer, x, cache = make(), draw(1, 5, DIM), R.KVCache(5)
    if length:
        layer(x[:, :length], cache=cache)
    with pytest.raises(ValueError, match="mask must"):
        layer(x[:, length:], mask=torch.ones(7, 7, dtype=torch.bool), cache=cache)
    assert cache.length == length


def test_one_token_is_decoded_without_a_mask(monkeypatch):
    """A single token may attend to everything. torch is fastest without a mask that says so."""
    layer, x, cache, asked = make(), draw(1, 4, DIM), R.KVCache(4), []
    torchs = torch.nn.functional.scaled_dot_product_attention

    def watched(*tensors, attn_mask, is_causal, **options):
        asked.append((attn_mask, is_causal))
        return torchs(*tensors, attn_mask=attn_mask, is_causal=is_causal, **options)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", watched)
    layer(x[:, :3], cache=cache)
    layer(x[:, 3:], cache=cache)
    assert asked == [(None, True), (None, False)]


def test_a_refused_call_leaves_the_cache_as_it_was():
    layer, x, cache = make(), draw(1, 6, DIM), R.KVCache(6)
    layer(x[:, :4], cache=cache)
    bad = [
        {"mask": torch.ones(1, 1, 2, 4, dtype=torch.bool)},  # this mask is too short to cover the new keys
        {"positions": torch.arange(3)},
        {"x": x},
        {"x": x[:, 4:].float()},
    ]
    for options in bad:
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            layer(**{"x": x[:, 4:], **options}, cache=cache)
    assert cache.length == 4
    assert error(layer(x[:, 4:], cache=cache), layer(x)[:, 4:]) < 1e-13


def test_decoding_is_one_graph_that_recompiles_at_most_twice():
    compiled = []

    def count(graph, inputs):
        compiled.append(graph)
        return graph.forward

    torch.compiler.reset()
    layer, x, cache = make(), draw(1, 65, DIM), R.KVCache(65)
    step = torch.compile(layer, fullgraph=True, backend=count)
    out = torch.cat([layer(x[:, :1], cache=cache), *(step(x[:, t : t + 1], cache=cache) for t in range(1, 65))], 1)
    assert 1 <= len(compiled) <= 3
    assert error(out, layer(x)) < 2e-14
    torch.compiler.reset()


@given(seeds, st.lists(st.integers(1, 5), min_size=1, max_size=4), st.sampled_from(LAYOUTS))
def test_texts_packed_in_one_row_are_as_if_alone(seed, lengths, layout):
    layer, x = make(layout=layout), draw(1, sum(lengths), DIM, seed=seed)
    segments = torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths))
    positions, mask = R.packed_positions(segments), R.packed_mask(segments)
    out = layer(x, positions, mask)
    assert error(out, torch.cat([layer(text) for text in x.split(lengths, 1)], 1)) < 1e-12
    # positions that continue instead of restarting also work, because they only shift each text as a whole …
    assert error(layer(x, mask=mask), out) < 1e-12
    # … but the mask is still required
    if len(lengths) > 1:
        assert error(layer(x, positions), out) > 1e-6


def test_positions_and_mask_of_packed_rows():
    segments = torch.tensor([[3, 3, 3, 1, 1, 3], [0, 1, 2, 2, 2, 2]])
    assert R.packed_positions(segments).tolist() == [[0, 1, 2, 0, 1, 0], [0, 0, 0, 1, 2, 3]]
    mask = R.packed_mask(segments)
    assert mask.shape == (2, 1, 6, 6)
    texts = [[0, 0, 0, 1, 1, 2], [0, 1, 2, 2, 2, 2]]  # when the number 3 appears for the second time, it is a new text
    assert mask[:, 0].tolist() == [[[a == b for b in row] for a in row] for row in texts]
    assert torch.equal(R.packed_mask(segments, 2), mask[:, :, -2:])
    assert torch.equal(R.packed_mask(segments[0]), mask[0])
    assert torch.equal(R.packed_positions(segments[0].int()), R.packed_positions(segments)[0])
    assert R.packed_positions(torch.tensor([9])).tolist() == [0]


@together("chunks", [[7], [5, 2], [5, 1, 1]], ids=str)
@together("dtype", CLOSE, ids=str)
def test_padding_on_the_left_changes_nothing(chunks, dtype):
    layer, x, lengths = make(dtype=dtype), draw(3, 7, DIM, dtype=dtype), [7, 4, 3]
    segments = R.left_padded(lengths, 7)
    positions, mask = R.packed_positions(segments), R.packed_mask(segments)
    cache, start, outs = R.KVCache(7), 0, []
    for n in chunks:
        at = slice(start, start + n)
        start += n
        outs.append(layer(x[:, at], positions[:, at], mask[:, :, at, :start], cache=cache))
    out = torch.cat(outs, 1)
    for row, length in enumerate(lengths):
        assert error(out[row, 7 - length :], layer(x[row : row + 1, 7 - length :])[0]) < CLOSE[dtype]
    assert not out.isnan().any()


def test_segments_of_left_padded_rows():
    assert R.left_padded([0, 2, 3], 3).tolist() == [[0, 0, 0], [0, 1, 1], [1, 1, 1]]
    assert torch.equal(R.left_padded(torch.tensor([2]), 3), R.left_padded([2], 3))


# --- Reset, crop, reorder --------------------------------------------------------------------------------------------


@torch.no_grad()
def test_a_cropped_cache_goes_on_as_if_the_rest_had_not_been():
    layer, x, wrong, cache = make(), draw(2, 6, DIM), draw(2, 3, DIM), R.KVCache(6)
    whole = layer(x)
    layer(x[:, :3], cache=cache)
    layer(wrong, cache=cache)
    cache.crop(3)
    assert largest(layer(x[:, 3:], cache=cache) - whole[:, 3:]) < 1e-12
    cache.crop(0)
    assert cache.length == 0
    assert largest(layer(x, cache=cache) - whole) < 1e-12
    for length in (-1, 7):
        with pytest.raises(ValueError, match="length must be an integer >= 0 and <= 6"):
            cache.crop(length)


@torch.no_grad()
def test_reordered_rows_go_on_as_those_that_they_were():
    layer, x, rows, cache = make(), draw(3, 6, DIM), torch.tensor([2, 0, 2]), R.KVCache(8)
    layer(x[:, :4], cache=cache)
    cache.reorder(rows)
    assert cache.length == 4
    assert largest(layer(x[rows][:, 4:], cache=cache) - layer(x[rows])[:, 4:]) < 1e-12
    for wrong, kind, message in (
        ([2, 0, 1], TypeError, "rows must be a tensor of int64, got list"),
        (rows.int(), TypeError, "rows must be a tensor of int64, got torch.int32"),
        (rows[:2], ValueError, r"rows must be one for each of 3 rows, got shape \(2,\)"),
        (rows + 1, ValueError, "rows must lie between 0 and 2, got 3"),
    ):
        with pytest.raises(kind, match=message):
            cache.reorder(wrong)
    with pytest.raises(ValueError, match="rows must be of a cache that holds tokens, got an empty one"):
        R.KVCache(8).reorder(rows)


@torch.no_grad()
def test_a_cache_that_is_reset_takes_another_batch():
    layer, cache = make(), R.KVCache(5)
    layer(draw(2, 5, DIM), cache=cache)
    cache.reset()
    assert cache.length == 0
    assert not hasattr(cache, "keys")
    x = draw(3, 5, DIM)
    assert largest(layer(x, cache=cache) - layer(x)) < 1e-12
