"""The evaluation of the small models against token-by-token decoding, brute force and a model of known answers."""

import dataclasses
import hashlib
import importlib.util
import json
import math
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import nn

from ropebook import results
from ropebook.extrapolation import METHODS, DynamicNTK, ExtendedAttention, SelfExtend, make
from ropebook.lab import data, training
from ropebook.lab import evaluation as E
from ropebook.lab.model import SCHEMES, LanguageModel
from ropebook.rotary_attention import KVCache, RotaryAttention

EXACT = 1e-10  # float64, through two layers
TINY = {"dim": 16, "hidden_dim": 16, "n_layers": 2, "n_heads": 2}
L = 16


def text_of(size, seed=0):
    return np.random.default_rng(seed).integers(32, 127, size).astype(np.uint8)


@pytest.fixture(scope="module")
def corpus():
    sizes = {"a.py": 400, "b/c.py": 97, "b/d.py": 96, "e.py": 150, "f.py": 5000, "g.py": 300}
    held_out = {name: text_of(size, seed) for seed, (name, size) in enumerate(sizes.items())}
    return data.Corpus(text_of(1000, 99), held_out, "a hash", "3")


def tiny(scheme="rope-10000", length=L, **sizes):
    """A model whose positions matter although it is not trained: sharp attention."""
    model = LanguageModel(scheme, length, **{**TINY, **sizes}, dtype=torch.float64).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "q_proj" in name or "k_proj" in name or "out_proj" in name:
                weight.mul_(3)
    return model


@pytest.fixture(scope="module")
def model():
    return tiny()


def random_windows(files, length, seed=0):
    return torch.randint(32, 127, (files, length + 1), generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def plain_bits(model, window, start=0):
    """-log2 p of each next byte, straight from the logits; positions from ``start`` on."""
    p = model(window[None, :-1])[0].double().softmax(-1)
    return torch.tensor([-math.log2(p[t, window[t + 1]]) for t in range(start, len(window) - 1)])


@torch.no_grad()
def decoded(model, tokens):
    """Logits of one token at a time, with a cache for each layer: (seq, 256)."""
    caches = [KVCache(len(tokens)) for _ in model.layers]
    return torch.cat([model(tokens[None, t : t + 1], caches=caches)[0] for t in range(len(tokens))])


def bits_from(logits, window):
    return -logits.log_softmax(-1).gather(1, window[1:, None])[:, 0] / math.log(2)


def slow_method(model, method, options, keep=None):
    """The model with `ExtendedAttention` put in by hand, layer by layer."""
    copied = tiny(model.scheme, n_layers=len(model.layers))
    copied.load_state_dict(model.state_dict())
    for layer in copied.layers:
        layer.attention = ExtendedAttention.of(layer.attention, method=method, options=options, keep=keep)
    return copied


# --- Texts -----------------------------------------------------------------------------------------------------------


def test_windows_are_one_slice_of_every_file_that_is_long_enough(corpus):
    names, windows = E.held_out_windows(corpus, 96)
    assert names == ["a.py", "b/c.py", "e.py", "f.py", "g.py"]  # b/d.py has 96 bytes, one too few
    assert windows.shape == (5, 97)
    assert windows.dtype == torch.int64
    for name, window in zip(names, windows, strict=True):
        start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % (len(corpus.held_out[name]) - 96)
        assert window.tolist() == corpus.held_out[name][start : start + 97].tolist()
    assert torch.equal(E.held_out_windows(corpus, 96)[1], windows)


def test_fewer_files_are_the_same_windows(corpus):
    names, windows = E.held_out_windows(corpus, 96)
    some, fewer = E.held_out_windows(corpus, 96, files=3)
    assert len(some) == 3
    assert set(some) < set(names)
    assert some == sorted(some)
    assert some != names[:3]  # by hash, not by alphabet
    assert torch.equal(fewer, windows[[names.index(name) for name in some]])


def test_windows_say_what_is_missing(corpus):
    with pytest.raises(ValueError, match="files must be an integer >= 1 and <= 5, got 6"):
        E.held_out_windows(corpus, 96, files=6)
    with pytest.raises(ValueError, match="more than length = 5000 bytes"):
        E.held_out_windows(corpus, 5000)
    with pytest.raises(ValueError, match="length"):
        E.held_out_windows(corpus, 0)


@given(
    st.integers(48, 200), st.lists(st.integers(16, 32), min_size=1, max_size=8), st.integers(1, 3), st.integers(0, 99)
)
def test_a_retrieval_text_is_what_it_says(corpus_length, distances, contexts, seed):
    held_out = {"a.py": text_of(210, 1), "b.py": text_of(300, 2)}
    corpus = data.Corpus(text_of(10), held_out, "", "")
    texts = E.retrieval_texts(corpus, corpus_length, distances, contexts, seed)
    n = len(distances)
    assert texts.tokens.shape == (contexts, corpus_length)
    assert texts.tokens.dtype == torch.int64
    assert texts.answers.shape == texts.distances.shape == (contexts, n)
    for tokens, answers, asked in zip(*texts, strict=True):
        assert sorted(asked.tolist()) == sorted(distances)
        assert answers.tolist() == list(range(corpus_length - 2 * n + 1, corpus_length, 2))  # at the very end
        records, keys = tokens[answers], (tokens[answers] - data.RECORD) // data.VALUES
        assert (records >= data.RECORD).all()
        assert len(keys.unique()) == n
        assert torch.equal(tokens[answers - 1], data.QUERY + keys)
        assert torch.equal(tokens[answers - 1 - asked], records)  # exactly the distance before the query
        assert (tokens >= data.RECORD).sum() == 2 * n
        assert (tokens < 32).sum() == n
        rest = bytes(tokens[(tokens >= 32) & (tokens < data.RECORD)].tolist())
        assert len(rest) == corpus_length - 3 * n
        assert any(rest in text.tobytes() for text in held_out.values())


def test_retrieval_texts_differ_and_come_again(corpus):
    distances = [16, 20, 24, 28, 32, 36, 40, 44]
    texts = E.retrieval_texts(corpus, 90, distances, 20, seed=3)
    assert len({row.tobytes() for row in texts.tokens.numpy()}) == 20
    assert len({tuple(row) for row in texts.distances.tolist()}) > 10  # the order of the queries tells nothing
    values = (texts.tokens.gather(1, texts.answers) - data.RECORD) % data.VALUES
    assert len(values.unique()) == data.VALUES
    again, other = (E.retrieval_texts(corpus, 90, distances, 20, seed) for seed in (3, 4))
    assert all(torch.equal(a, b) for a, b in zip(texts, again, strict=True))
    assert not torch.equal(texts.tokens, other.tokens)


@pytest.mark.parametrize(
    "length, distances, contexts, message",
    [
        (90, [], 1, "number of distances must be an integer >= 1 and <= 8, got 0"),
        (90, [20] * 9, 1, "number of distances"),
        (90, [15] + [20] * 7, 1, "distances must be an integer >= 16 and <= 74, got 15"),
        (90, [75] + [20] * 7, 1, "distances must be an integer >= 16 and <= 74, got 75"),
        (90, [20], 0, "contexts"),
        (5000, [20], 1, "length = 5000"),
        (0, [20], 1, "length"),
    ],
)
def test_retrieval_texts_that_cannot_be(corpus, length, distances, contexts, message):
    with pytest.raises(ValueError, match=message):
        E.retrieval_texts(corpus, length, distances, contexts, seed=0)


# --- Methods ---------------------------------------------------------------------------------------------------------

METHOD_OPTIONS = {
    "linear": {"factor": 4.0},
    "ntk": {"factor": 4.0},
    "dynamic_ntk": {"trained_length": L},
    "ntk_by_parts": {"factor": 4.0, "trained_length": L, "alpha": 0.1, "beta": 2.0},
    "yarn": {"factor": 4.0, "trained_length": L, "alpha": 0.1, "beta": 2.0},
    "log_n": {"trained_length": L},
    "partial": {"fraction": 0.5},
    "rerope": {"window": 5},
    "leaky_rerope": {"window": 5, "step": 3.0},
    "self_extend": {"window": 6, "group": 4},
}


@pytest.mark.parametrize("method", METHOD_OPTIONS)
def test_a_method_in_the_model_is_that_of_the_attention_layer(model, method, monkeypatch):
    monkeypatch.setattr(E, "_PIECE", 7)
    tokens = random_windows(2, 40)[:, :-1]
    with torch.no_grad():
        before = model(tokens)
        ours = E.with_method(model, method, METHOD_OPTIONS[method])
        found, wanted = ours(tokens), slow_method(model, method, METHOD_OPTIONS[method])(tokens)
        assert (found - wanted).abs().max() < EXACT
        assert (found - before).abs().max() > 1e-3  # it does something
        assert torch.equal(model(tokens), before)  # and leaves the model alone


def test_a_method_shares_weights_and_one_rotary(model):
    ours = E.with_method(model, "yarn", METHOD_OPTIONS["yarn"])
    shared = dict(model.named_parameters())
    assert all(weight is shared[name] for name, weight in ours.named_parameters())
    assert len(dict(ours.named_parameters())) == len(shared)
    assert len({layer.attention.rotary for layer in ours.layers}) == 1
    assert type(model.layers[0].attention) is RotaryAttention
    assert E.with_method(model, "none") is model


@pytest.mark.parametrize("scheme", ["learned", "sinusoidal", "alibi", "none"])
def test_a_model_that_does_not_rotate_takes_no_method(scheme):
    with pytest.raises(ValueError, match=f"must rotate its queries and keys, got scheme '{scheme}'"):
        E.with_method(tiny(scheme), "linear", {"factor": 2.0})


def test_bad_methods(model):
    with pytest.raises(ValueError, match="method must be one of 'none', 'linear'"):
        E.with_method(model, "nothing")
    for method in ("none", "linear", "rerope"):
        with pytest.raises(ValueError, match=f"does not follow the length, got True for '{method}'"):
            E.with_method(model, method, METHOD_OPTIONS.get(method), arrival=True)
    with pytest.raises(TypeError, match="factor"):
        E.with_method(model, "linear")


@pytest.mark.parametrize("length", [1, 4, 7, 8, 23])
@pytest.mark.parametrize("kv_heads", [1, 4])
@pytest.mark.parametrize("method", ["rerope", "self_extend"])
def test_scores_in_pieces(method, kv_heads, length, monkeypatch):
    monkeypatch.setattr(E, "_PIECE", 7)
    layer = RotaryAttention(16, 4, kv_heads, dtype=torch.float64)
    options = METHOD_OPTIONS[method]
    pieces, whole = (kind.of(layer, method=method, options=options) for kind in (E._InPieces, ExtendedAttention))
    x = torch.randn(2, length, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(length))
    assert (pieces(x) - whole(x)).abs().max() < 1e-13
    mask = torch.rand(length, length) < 0.7
    mask.fill_diagonal_(True)
    assert torch.equal(pieces(x, mask=mask), whole(x, mask=mask))
    assert torch.equal(pieces(x, is_causal=False), whole(x, is_causal=False))
    assert torch.equal(pieces(x, torch.arange(length) + 3), whole(x, torch.arange(length) + 3))
    assert torch.equal(pieces(x, return_weights=True)[1], whole(x, return_weights=True)[1])


def test_pieces_in_float32_are_rounded_no_worse():
    layer = RotaryAttention(16, 2)
    x = torch.randn(1, 50, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        pieces, whole = (
            kind.of(layer, method="rerope", options={"window": 9})(x) for kind in (E._InPieces, ExtendedAttention)
        )
    assert pieces.dtype == torch.float32
    assert (pieces - whole).abs().max() < 1e-6


def test_distances_decode_to_the_same(model):
    window = random_windows(1, 30)[0]
    ours = E.with_method(model, "self_extend", METHOD_OPTIONS["self_extend"])
    assert (E.position_bits(ours, window[None])[0] - bits_from(decoded(ours, window[:-1]), window)).abs().max() < 1e-5


def test_arrival_is_decoding_with_a_cache_of_rotated_keys(model):
    window, options = random_windows(1, 5 * L)[0], METHOD_OPTIONS["dynamic_ntk"]
    literal = decoded(slow_method(model, "dynamic_ntk", options, keep="rotated"), window[:-1])
    ours = E.with_method(model, "dynamic_ntk", options, arrival=True)
    prefill = E.with_method(model, "dynamic_ntk", options)
    with torch.no_grad():
        assert (ours(window[None, :-1])[0] - literal).abs().max() < EXACT
        assert (ours(window[None, :40])[0] - literal[:40]).abs().max() < EXACT  # a shorter text from the same rows
        assert (decoded(ours, window[:-1]) - literal).abs().max() < EXACT  # an offset
        assert (prefill(window[None, :-1])[0] - literal)[
            :L
        ].abs().max() > 1e-3  # a whole text at its length is not that
        assert (ours(window[None, :L]) - model(window[None, :L])).abs().max() < EXACT  # up to L nothing changes
        assert ours.float()(window[None, :-1]).dtype == torch.float32
    model.double()  # the weights are shared
    with pytest.raises(ValueError, match="positions must be None"):
        ours(window[None, :4], torch.arange(4))


# --- Bits per byte ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_bits_are_minus_log2_of_what_came(scheme, monkeypatch):
    monkeypatch.setattr(E, "_PIECE", 5)
    length = L if scheme == "learned" else 2 * L + 1
    model, windows = tiny(scheme), random_windows(3, length)
    bits = E.position_bits(model, windows)
    assert bits.shape == (3, length)
    assert bits.dtype == torch.float32
    for found, window in zip(bits, windows, strict=True):
        assert (found - plain_bits(model, window)).abs().max() < 1e-5
    assert (E.position_bits(model, windows, batch=2) - bits).abs().max() < 1e-5
    assert not bits.requires_grad
    with pytest.raises(ValueError, match="batch"):
        E.position_bits(model, windows, batch=0)


def test_windowed_bits_see_the_last_bytes_only(model):
    windows = random_windows(2, 40)
    bits = E.windowed_bits(model, windows, 8)
    assert bits.shape == (2, 40)
    for found, window in zip(bits, windows, strict=True):
        for t in range(40):
            start = 0 if t < 8 else t // 4 * 4 - 4  # 5 to 8 bytes up to t
            wanted = plain_bits(model, window[start : t + 2])[-1]
            assert found[t].item() == pytest.approx(wanted.item(), abs=1e-5)
    assert torch.allclose(E.windowed_bits(model, windows[:, :9], 8), E.position_bits(model, windows[:, :9]))


@pytest.mark.parametrize("length, window, message", [(6, 8, "T = 6"), (42, 8, "multiple of 4"), (40, 7, "even")])
def test_windows_that_do_not_fit(model, length, window, message):
    with pytest.raises(ValueError, match=message):
        E.windowed_bits(model, random_windows(1, length), window)


def test_sampled_bits_are_the_last_of_each_length(model):
    windows, lengths = random_windows(2, 60), [20, 33, 60]
    ours = E.with_method(model, "dynamic_ntk", METHOD_OPTIONS["dynamic_ntk"])
    bits = E.sampled_bits(ours, windows, lengths, last=4)
    assert bits.shape == (2, 3, 4)
    for found, window in zip(bits, windows, strict=True):
        for row, n in zip(found, lengths, strict=True):
            assert (row - plain_bits(ours, window[: n + 1], n - 4)).abs().max() < 1e-5


def test_sampled_bits_are_decoding_with_unrotated_keys_in_one_layer():
    """In one layer a key depends on its byte alone, so that to rotate it anew is to compute it anew. In two it is not:
    what the second layer's keys are made of saw the frequencies of its own time."""
    window, lengths, options = random_windows(1, 60)[0], [20, 33, 47, 60], METHOD_OPTIONS["dynamic_ntk"]
    apart = {}
    for n_layers in (1, 2):
        model = tiny(n_layers=n_layers)
        literal = bits_from(decoded(slow_method(model, "dynamic_ntk", options, keep="unrotated"), window[:-1]), window)
        sampled = E.sampled_bits(E.with_method(model, "dynamic_ntk", options), window[None], lengths, last=1)
        apart[n_layers] = (sampled[0, :, 0] - literal[[n - 1 for n in lengths]]).abs().max().item()
    assert apart[1] < 1e-5
    assert apart[2] > 1e-3


def test_bad_samples(model):
    with pytest.raises(ValueError, match="last must be an integer >= 1 and <= 5, got 6"):
        E.sampled_bits(model, random_windows(1, 20), [5, 9], 6)
    with pytest.raises(ValueError, match="lengths must be an integer <= 20, got 21"):
        E.sampled_bits(model, random_windows(1, 20), [5, 21], 1)


def test_sampled_lengths():
    lengths = E.sampled_lengths(E.LENGTH, E.TEXT)
    assert len(lengths) == 24
    assert lengths[-1] == E.TEXT
    assert lengths[5::6] == [512, 1024, 2048, 4096]
    assert min(np.diff([E.LENGTH, *lengths])) >= E.SAMPLED  # no byte twice
    assert E.sampled_lengths(100, 110, 2) == []
    for bad, name in [((0, 5, 1), "start"), ((5, 5, 1), "stop"), ((5, 6, 0), "per_octave")]:
        with pytest.raises(ValueError, match=name):
            E.sampled_lengths(*bad)


# --- Retrieval -------------------------------------------------------------------------------------------------------


class Forgetful(nn.Module):
    """Gives back what it is asked for if that lies at most ``reach`` bytes back, else a wrong value of its key."""

    def __init__(self, reach):
        super().__init__()
        self.reach, self.embedding = reach, nn.Embedding(1, 1)
        self.scheme, self.has_bias = "none", False

    def forward(self, tokens):
        likeliest = torch.full_like(tokens, ord(" "))
        for row, text in enumerate(tokens.tolist()):
            for at, query in enumerate(text):
                if data.QUERY <= query < data.QUERY + data.KEYS:
                    first = data.RECORD + data.VALUES * (query - data.QUERY)
                    (found,) = [n for n, byte in enumerate(text[:at]) if first <= byte < first + data.VALUES][:1]
                    wrong = first + (text[found] - first + 1) % data.VALUES
                    likeliest[row, at] = text[found] if at - found <= self.reach else wrong
        return nn.functional.one_hot(likeliest, data.VOCABULARY).double()


@pytest.mark.parametrize("batch", [1, 4])
def test_retrieval_by_distance(corpus, batch):
    texts = E.retrieval_texts(corpus, 90, [16, 20, 20, 44, 60, 74], 5, seed=0)
    assert E.retrieval(Forgetful(44), texts, batch) == {16: 1, 20: 1, 44: 1, 60: 0, 74: 0}
    assert E.retrieval(Forgetful(15), texts, batch) == dict.fromkeys([16, 20, 44, 60, 74], 0)
    with pytest.raises(ValueError, match="batch"):
        E.retrieval(Forgetful(1), texts, 0)


def test_retrieval_is_a_share(corpus):
    texts = E.retrieval_texts(corpus, 90, [20, 40], 4, seed=0)
    right = texts.tokens.gather(1, texts.answers)
    tokens = texts.tokens.clone()
    first = texts.answers[0, texts.distances[0] == 40]
    tokens[0, first] = data.RECORD  # another record stands there than the one that was planted
    assert (right[0] != data.RECORD).all()
    assert E.retrieval(Forgetful(90), texts._replace(tokens=tokens)) == {20: 1, 40: 0.75}


# --- Over files ------------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 8), st.floats(0, 8)), min_size=2, max_size=30))
def test_means_and_their_errors(pairs):
    a, b = torch.tensor(pairs, dtype=torch.float64).T
    for found, values in ((E.over_files(a), a.tolist()), (E.paired(a, b), (a - b).tolist())):
        assert found.mean.item() == pytest.approx(statistics.fmean(values), abs=1e-12)
        assert found.error.item() == pytest.approx(statistics.stdev(values) / math.sqrt(len(values)), abs=1e-7)


def test_pairs_see_what_means_do_not():
    level = torch.tensor([1.0, 3.0, 6.0, 2.0])
    difference = E.paired(level + torch.tensor([0.1, 0.12, 0.1, 0.12]), level)
    assert difference.mean > 10 * difference.error
    assert E.over_files(level).error > 1
    assert E.paired(torch.ones(3, 5), torch.zeros(3, 5)).mean.tolist() == [1] * 5


def test_bad_means():
    with pytest.raises(ValueError, match=r"two files at least, got shape \(1,\)"):
        E.over_files(torch.ones(1))
    with pytest.raises(ValueError, match="two files at least"):
        E.over_files(torch.tensor(1.0))
    with pytest.raises(TypeError, match="values must be a floating-point tensor"):
        E.over_files(torch.ones(3).long())
    with pytest.raises(ValueError, match=r"same files, got \(3,\) and \(2,\)"):
        E.paired(torch.ones(3), torch.ones(2))


def test_band_means():
    bits = torch.arange(12.0).expand(2, 12)
    found = E.band_means(bits, [(0, 4), (4, 12), (8, 13)])
    assert found[:, :2].tolist() == [[1.5, 7.5]] * 2
    assert found[:, 2].isnan().all()


# --- The grid --------------------------------------------------------------------------------------------------------


def test_the_grid():
    runs = [*(f"{scheme}-0" for scheme in SCHEMES), "rope-10000-1", "alibi-1"]
    cells = E.grid(runs, ["rope-10000-0", "rope-10000-1"])
    assert len(cells) == 9 + 2 * (5 * 4 + 3 + 2)
    assert len({cell.id for cell in cells}) == len(cells)
    assert {cell.method for cell in cells if cell.run == "alibi-1"} == {"none"}
    for cell in cells:
        if cell.method != "none":
            make(cell.method, **cell.options)  # each takes its options
    by_id = {cell.id: cell for cell in cells}
    assert by_id["rope-10000-1/yarn/8"].options == {"factor": 8, "trained_length": 256}
    assert by_id["rope-10000-1/ntk/2"].options == {"factor": 2}
    assert by_id["rope-10000-0/dynamic_ntk"].options == {"trained_length": 256}
    assert by_id["rope-10000-0/dynamic_ntk/cached"].cache is True
    assert by_id["rope-10000-0/dynamic_ntk/uncached"].cache is False
    assert by_id["rope-10000-0/rerope"].options == {"window": 128}
    assert E.Cell("a-0", "none", 4, tuned=True).id == "a-0/none/4/tuned"


@pytest.mark.parametrize("factor", E.FACTORS)
def test_self_extend_has_the_least_group_that_reaches(factor):
    options = E.method_options("self_extend", factor)
    assert options["window"] == 64
    assert SelfExtend(**options).reach(256) >= factor * 256
    assert SelfExtend(64, options["group"] - 1).reach(256) < factor * 256


def test_options_of_the_others():
    assert E.method_options("none", 4) == {}
    assert E.method_options("linear", 4) == {"factor": 4}
    with pytest.raises(ValueError, match="method must be one of"):
        E.method_options("nothing", 4)
    assert set(METHODS) >= {cell.method for cell in E.grid(["a"], ["a"])} - {"none"}


@pytest.fixture
def small_grid(corpus, monkeypatch):
    """The contract's grid with L = 16 and texts of 64 bytes."""
    monkeypatch.setattr(E, "DISTANCES", (4, 8, 24))
    monkeypatch.setattr(E, "SAMPLED", 2)
    texts = {
        16: E.retrieval_texts(corpus, 16, [4, 8], 3, seed=0),
        64: E.retrieval_texts(corpus, 64, [8, 24], 2, seed=0),
    }
    _, windows = E.held_out_windows(corpus, 64)
    return {"windows": windows, "texts": texts, "bands": [(0, 16), (16, 32), (32, 64)]}


def as_list(values):
    return [None if math.isnan(v) else round(v, 5) for v in values.tolist()]


def test_a_cell(model, small_grid):
    cell = E.Cell("rope-10000-0", "yarn", 4, METHOD_OPTIONS["yarn"])
    result, curve = E.measure(cell, model, **small_grid)
    json.dumps(result, allow_nan=False)
    bits = E.position_bits(E.with_method(model, "yarn", METHOD_OPTIONS["yarn"]), small_grid["windows"])
    assert torch.equal(curve, bits.mean(0))
    assert curve.shape == (64,)
    files = torch.stack([bits[:, :16].mean(1), bits[:, 16:32].mean(1), bits[:, 32:].mean(1)], 1)
    assert result["files"] == [as_list(row) for row in files]
    assert result["bits"] == as_list(files.double().mean(0))
    assert result["error"] == as_list(files.double().std(0) / math.sqrt(len(files)))
    assert {key: result[key] for key in ("id", "run", "method", "factor", "tuned", "cache", "text")} == {
        "id": "rope-10000-0/yarn/4",
        "run": "rope-10000-0",
        "method": "yarn",
        "factor": 4,
        "tuned": False,
        "cache": None,
        "text": 64,
    }
    assert result["options"] == METHOD_OPTIONS["yarn"]
    assert "sampled" not in result
    assert result["asked"] == {"16": [3, 3, 0], "64": [0, 2, 2]}
    assert [found is None for found in result["retrieval"]["16"]] == [False, False, True]
    assert [found is None for found in result["retrieval"]["64"]] == [True, False, False]


def test_a_cell_gives_retrieval_of_the_model_with_its_method(small_grid, monkeypatch):
    monkeypatch.setattr(E, "with_method", lambda model, *rest, **more: model)
    monkeypatch.setattr(E, "position_bits", lambda model, windows: torch.zeros(len(windows), windows.shape[1] - 1))
    oracle = Forgetful(8)
    oracle.length = 16
    result, _ = E.measure(E.Cell("none-0"), oracle, **small_grid)
    assert result["retrieval"] == {"16": [1, 1, None], "64": [None, 1, 0]}


def test_a_learned_scheme_goes_as_far_as_its_length(small_grid):
    result, curve = E.measure(E.Cell("learned-0"), tiny("learned"), **small_grid)
    assert result["text"] == 16
    assert curve.shape == (16,)
    assert [found is None for found in result["bits"]] == [False, True, True]
    assert result["retrieval"]["64"] == [None] * 3
    assert result["retrieval"]["16"][0] is not None
    assert "sampled" not in result


def test_dynamic_cells_can_be_compared_on_the_same_bytes(model, small_grid):
    options, windows = METHOD_OPTIONS["dynamic_ntk"], small_grid["windows"]
    found = {
        (cell.method, cell.cache): E.measure(cell, model, **small_grid)
        for cell in [E.Cell("r-0")]
        + [E.Cell("r-0", "dynamic_ntk", None, options, cache=c) for c in (None, True, False)]
    }
    (plain, _), (whole, curve), (cached, on_arrival), (uncached, gaps) = found.values()
    lengths = E.sampled_lengths(16, 64)
    for result in (plain, whole, cached, uncached):
        json.dumps(result, allow_nan=False)
        assert result["sampled"]["lengths"] == lengths
        assert result["sampled"]["last"] == 2
        assert [value is None for value in result["sampled"]["files"][0]] == [True, False, False]
    # the first band lies within L, where nothing follows the length yet
    assert uncached["bits"][1:] == uncached["error"][1:] == [None, None]
    assert uncached["bits"][0] == pytest.approx(cached["bits"][0], abs=1e-5)
    assert uncached["retrieval"]["64"] == [None] * 3
    assert uncached["retrieval"]["16"][0] is not None
    assert cached["retrieval"]["64"][2] is not None
    # the last length is the whole text, the others are not
    assert uncached["sampled"]["bits"][-1] == pytest.approx(whole["sampled"]["bits"][-1], abs=1e-5)
    assert uncached["sampled"]["bits"][0] != pytest.approx(whole["sampled"]["bits"][0], abs=1e-3)
    # each field from what it says it is from
    ours = E.with_method(model, "dynamic_ntk", options)
    wanted = E.sampled_bits(ours, windows, lengths, 2)
    assert uncached["sampled"]["bits"] == as_list(wanted.mean(2).double().mean(0))
    middle = [at for at, n in enumerate(lengths) if 16 < n <= 32]
    assert [row[1] for row in uncached["sampled"]["files"]] == as_list(wanted[:, middle].mean((1, 2)))
    assert whole["sampled"]["bits"][3] == pytest.approx(curve[lengths[3] - 2 : lengths[3]].mean().item(), abs=1e-5)
    decoding = E.position_bits(E.with_method(model, "dynamic_ntk", options, arrival=True), windows)
    assert torch.equal(on_arrival, decoding.mean(0))
    known = [*range(16)] + [t for n in lengths for t in (n - 2, n - 1)]
    assert gaps.isfinite().nonzero()[:, 0].tolist() == sorted(set(known))
    assert gaps[lengths[3] - 1].item() == pytest.approx(wanted[:, 3, 1].mean().item(), abs=1e-5)


def test_dynamic_ntk_is_told_the_length(model, small_grid, monkeypatch):
    told = []
    original = DynamicNTK.__call__
    monkeypatch.setattr(DynamicNTK, "__call__", lambda self, f, n=None: told.append(n) or original(self, f, n))
    cell = E.Cell("r-0", "dynamic_ntk", None, METHOD_OPTIONS["dynamic_ntk"], cache=False)
    E.measure(cell, model, **small_grid)
    assert set(E.sampled_lengths(16, 64)) <= set(told) <= {*E.sampled_lengths(16, 64), 15, 16}


def test_the_windowed_reference(model, small_grid):
    found = E.measure_windowed(model, small_grid["windows"], small_grid["bands"])
    bits = E.windowed_bits(model, small_grid["windows"], L)
    assert found["bits"] == as_list(E.band_means(bits, small_grid["bands"]).double().mean(0))
    assert len(found["files"]) == len(bits)
    assert len(found["error"]) == 3


# --- The script ------------------------------------------------------------------------------------------------------


@pytest.fixture
def script(corpus, tmp_path, monkeypatch):
    """benchmarks/evaluate.py with two tiny runs, one of them extended with three cells, in a folder of its own."""
    path = Path(__file__).resolve().parent.parent / "benchmarks" / "evaluate.py"
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("evaluate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    many = {f"{n}.py": text_of(4200 + n, n) for n in range(3)}
    long = data.Corpus(corpus.train, many, "a hash", "3")
    for owner, name, value in (
        (module, "ROOT", tmp_path),
        (module, "RUNS", tmp_path / "runs"),
        (module, "TRAINED", ("rope-10000-0", "learned-0")),
        (module, "EXTENDED", ()),
        (module, "TUNED", ("rope-10000-0",)),
        (module.tuning, "METHODS", ("linear",)),
        (module.tuning, "FACTORS", (4,)),
        (module.data, "load", lambda: long),
        (E, "CONTEXTS", 1),
        (results, "_BESIDE_THE_CODE", tmp_path / "results"),
    ):
        monkeypatch.setattr(owner, name, value)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["evaluate.py", *words])
        module.main()

    def train(name, step=5, sha256="a hash", tuned=None, seed=0):
        settings = training.Run(name.rsplit("-", 1)[0], seed, steps=5, warmup=1, **TINY | {"n_layers": 1})
        built = LanguageModel(settings.scheme, 256, **TINY | {"n_layers": 1}, seed=seed)
        state = {"run": dataclasses.asdict(settings), "sha256": sha256, "step": step, "model": built.state_dict()}
        place = module.RUNS / (f"tuned/{name}-{tuned['method']}-{tuned['factor']}.pt" if tuned else f"{name}.pt")
        place.parent.mkdir(parents=True, exist_ok=True)
        torch.save(state | (tuned or {}), place)

    return module, run, train


def test_the_script_goes_on_where_it_stopped(script, capsys, tmp_path):
    _, run, train = script
    train("rope-10000-0")
    train("rope-10000-0", tuned={"method": "linear", "factor": 4})
    train("learned-0", step=4)
    with pytest.raises(SystemExit, match=r"not trained to the end.*runs/learned-0.pt$"):
        run()
    out = capsys.readouterr().out
    assert "2/5" in out
    assert "rope-10000-0/linear/4/tuned [" in out
    with pytest.raises(SystemExit, match="2 cells are not done, so nothing is written: learned-0/none, learned-0/win"):
        run("--collate")
    assert not (tmp_path / "results").exists()
    train("learned-0")
    run("--part", "2/2")
    assert "cells are left" in capsys.readouterr().out
    run("--only", "*")
    out = capsys.readouterr().out
    assert "rope-10000-0/none done before" in out
    result = results.load("evaluation")
    assert [cell["id"] for cell in result["cells"]] == [
        "rope-10000-0/none",
        "learned-0/none",
        "rope-10000-0/linear/4/tuned",
    ]
    assert set(result["windowed"]) == {"rope-10000-0", "learned-0"}
    assert result["files"] == ["0.py", "1.py", "2.py"]
    assert "key" not in result["cells"][0]
    assert result["cells"][0]["asked"] == {"256": [2] * 4 + [0] * 4, "4096": [1] * 8}
    curves = load_file(tmp_path / "results" / "evaluation.safetensors")
    assert {name: (tuple(curve.shape), curve.dtype) for name, curve in curves.items()} == {
        "rope-10000-0/none": ((4096,), torch.float16),
        "learned-0/none": ((256,), torch.float16),
        "rope-10000-0/linear/4/tuned": ((4096,), torch.float16),
    }
    assert curves["rope-10000-0/none"][:256].mean().item() == pytest.approx(result["cells"][0]["bits"][0], abs=0.01)
    train("learned-0", seed=1)  # another model under the same name
    run()
    out = capsys.readouterr().out
    assert out.count("done before") == 3
    assert "learned-0/none [" in out
    assert results.load("evaluation")["cells"][1]["bits"] != result["cells"][1]["bits"]


def test_the_script_refuses(script):
    _, run, train = script
    with pytest.raises(SystemExit, match="no cell fits --only 'nothing'; there are: rope-10000-0/none"):
        run("--only", "nothing")
    train("rope-10000-0", sha256="another")
    with pytest.raises(SystemExit, match="was trained on another text"):
        run("--only", "rope*")


def test_several_processes_share_the_cells(script, monkeypatch):
    module, run, _ = script
    begun = []

    class Process:
        def __init__(self, words):
            begun.append(words[2:])

        def wait(self):
            return 0

    monkeypatch.setattr(module.subprocess, "Popen", Process)
    run("--jobs", "2", "--files", "3", "--only", "rope*")
    assert begun == [["--only", "rope*", "--files", "3", "--part", f"{i}/2"] for i in (1, 2)]
    monkeypatch.setattr(Process, "wait", lambda self: 1)
    with pytest.raises(SystemExit, match="ended early"):
        run("--jobs", "2")
