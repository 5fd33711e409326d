"""Tests of the measurements on a trained model. They are compared with the model itself and with values computed by
hand, and are applied to models whose answers are known."""

import itertools

import numpy as np
import pytest
import torch

from ropebook.lab import language, scores, tasks
from ropebook.lab.bits import SAMPLED, position_bits, sampled_lengths, windowed_bits
from ropebook.lab.longer import with_method
from ropebook.lab.model import LanguageModel
from ropebook.lab.parts import Parts

DRAWS = np.random.default_rng(0)
FILES = {name: DRAWS.integers(32, 127, 900, np.uint8) for name in ("a/1.py", "a/2.py", "a/3.py", "b.py", "c.py")}
FILES["short.py"] = FILES["b.py"][:99]
PARTS = Parts(FILES["b.py"], dict(FILES), dict(FILES), (), "sha", "3")
BANDS = ((0, 256), (256, 512), (512, 1024))


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(scores, "LANGUAGES", 3)


@pytest.fixture(scope="module")
def model():
    return LanguageModel("rope-10000", 256, dim=16, hidden_dim=16, n_layers=1, n_heads=2).eval()


def given(part="development"):
    return scores.materials(PARTS, part, text=512, contexts=4)


def test_a_share_is_sure_enough():
    assert np.sqrt(0.25 / (3 * scores.CONTEXTS)) <= 0.03


def test_windows_of_so_many_files_of_a_folder():
    names, rows = scores.windows(FILES, 512, most=2)
    assert len(names) == 4
    assert {"b.py", "c.py"} < set(names)
    assert names == sorted(names)
    for name, row in zip(names, rows, strict=True):
        assert row.numpy().astype(np.uint8).tobytes() in FILES[name].tobytes()
        assert len(row) == 513
    assert len(scores.windows(FILES, 512, most=9)[0]) == 5
    with pytest.raises(ValueError, match="files must have one of more than length = 900"):
        scores.windows(FILES, 900)


def test_each_part_has_its_own_questions():
    one, same, other = given(), given(), given("held_out")
    assert torch.equal(one.language, same.language)
    assert not torch.equal(one.language, other.language)
    for key, asked in one.questions.items():
        assert torch.equal(asked.tokens, same.questions[key].tokens)
        assert not torch.equal(asked.tokens, other.questions[key].tokens)
    assert one.questions.keys() == {(task, length) for task in tasks.TASKS for length in (256, 512)}
    assert one.questions["order", 256].distances.unique().tolist() == [32, 64, 128, 192]
    assert one.questions["order", 512].distances.unique().tolist() == [32, 64, 128, 192, 384]


def test_the_numbers_are_the_models(model):
    materials = given()
    found = scores.measure(model, materials, BANDS)
    bits = position_bits(model, materials.python)
    for row, at in zip(found["python"], bits, strict=True):
        assert row[:2] == pytest.approx([at[:256].mean().item(), at[256:512].mean().item()], abs=1e-4)
        assert row[2] is None
    assert np.shape(found["language"]) == (3, 3)
    edges = scores.edges(512)
    assert edges[-1] == 512
    windows = list(itertools.pairwise(edges))
    assert all(start % 2 == 0 for start in edges)
    by_hand = [bits[:, start:stop].mean().item() for start, stop in windows]
    assert found["curves"]["python"] == pytest.approx(by_hand, abs=1e-4)
    whole = np.average(found["curves"]["language"], weights=np.diff(edges))
    assert whole == pytest.approx(position_bits(model, materials.language).mean().item(), abs=1e-3)
    assert found["retrieval"].keys() == {"256", "512"}
    assert {len(letters) for letters in found["order"]["512"].values()} == {4}
    last = scores.measure_windowed(model, materials, 256, BANDS)
    expected = windowed_bits(model, materials.language, 256, scores.STEP)[:, 256:512].mean(1)
    assert [row[1] for row in last["language"]] == pytest.approx(expected.tolist(), abs=1e-4)
    upto = scores.edges(256)
    assert last["curves"]["python"][: len(upto) - 1] == found["curves"]["python"][: len(upto) - 1]
    assert last["curves"]["python"] != found["curves"]["python"]


def test_a_method_that_follows_the_length_is_asked_where_the_text_ends(model):
    materials = given()
    options = {"trained_length": 256, "factor": 1.0}
    dynamic = with_method(model, "dynamic_ntk", options)
    ended = scores.measure_ended(dynamic, materials, BANDS[:2])
    short = position_bits(model, materials.python[:, :257]).mean(1)  # up to L, the method must not change anything
    assert [row[0] for row in ended["python"]] == pytest.approx(short.tolist(), abs=1e-4)
    whole = scores.measure(dynamic, materials, BANDS)
    assert [row[1] for row in ended["language"]] == pytest.approx([row[1] for row in whole["language"]], abs=1e-4)
    assert [row[0] for row in ended["language"]] != [row[0] for row in whole["language"]]


def test_no_training_draws_what_a_part_is_asked():
    assert scores.STREAMS.keys() == {"development", "held_out"}
    assert scores.STREAMS["held_out"] > 1000


def test_a_learned_scheme_goes_as_far_as_it_has_learned():
    learned = LanguageModel("learned", 256, dim=16, hidden_dim=16, n_layers=1, n_heads=2)
    found = scores.measure(learned, given(), BANDS)
    assert all(row[0] is not None and row[1] is None for row in found["python"] + found["language"])
    assert len(found["curves"]["language"]) == len(scores.edges(256)) - 1
    assert found["order"]["512"] is None
    assert found["order"]["256"] is not None


class Told:
    """A model that gives predetermined answers, one context after another."""

    def __init__(self, right, other):
        self.pairs = (torch.tensor(right), torch.tensor(other))


def test_answers_are_kept_by_distance_and_context(monkeypatch):
    distances = torch.tensor([[32, 64], [64, 32], [32, 64]])
    asked = tasks.Questions(torch.zeros(3, 256, dtype=torch.long), None, distances, None)
    told = Told([[1, 0], [0, 0], [1, 1]], [[0, 1], [1, 0], [0, 0]])
    monkeypatch.setattr(tasks, "answered", lambda model, asked, batch: tuple(x.bool() for x in model.pairs))
    assert scores.answers(told, asked) == {"32": "101", "64": "oo1"}


def test_headroom_within_the_length(model):
    materials = given()
    found = scores.headroom(model, materials)
    full = position_bits(model, materials.python[:, :257])[:, 128:].mean(1)
    assert [row[0] for row in found["python"]] == pytest.approx(full.tolist(), abs=1e-4)
    # this byte is predicted from the earlier bytes in the scored half of its window, and the 64 bytes before that half
    at = 200
    row = materials.python[:1, : at + 2]
    alone = position_bits(model, row[:, -(64 + 1 + at % 64) - 1 :])[0, -1]
    windowed = windowed_bits(model, materials.python[:1, :257], 128)[0, at]
    assert alone.item() == pytest.approx(windowed.item(), abs=1e-4)
    floors = np.array(found["language_floor"])
    assert (floors[:, 0] <= floors[:, 1]).all()
    written = materials.language[0, :257].numpy().astype(np.uint8)
    by_hand = [language.bits(written, 65 + at % 64)[at + 1] for at in range(128, 256)]
    assert floors[0] == pytest.approx([language.bits(written)[129:].mean(), np.mean(by_hand)], abs=1e-4)


def test_keys_as_they_came_and_all_anew(model):
    materials = given()
    options = {"trained_length": 256, "factor": 1.0}
    found = scores.measure_cached(model, materials, options, 300)
    (length,) = sampled_lengths(256, 300)
    rows = materials.python
    anew = with_method(model, "dynamic_ntk", options)
    whole = position_bits(anew, rows[:, : length + 1])[:, -SAMPLED:].mean(1)
    assert found["anew"] == pytest.approx(whole.tolist(), abs=1e-4)
    caching = with_method(model, "dynamic_ntk", options, arrival=True)
    bits = position_bits(caching, rows[:, :301])[:, length - SAMPLED : length].mean(1)
    assert found["cached"] == pytest.approx(bits.tolist(), abs=1e-4)
    assert found["cached"] != found["anew"]
