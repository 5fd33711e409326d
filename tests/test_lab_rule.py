"""Tests of the rule on synthetic numbers that are built to give a known outcome. When there is nothing but noise, the
rule must rarely find a difference."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ropebook.lab import claims as C
from ropebook.lab import extensions, scores, trials
from ropebook.lab import rule as R
from ropebook.lab.longer import with_method
from ropebook.lab.model import LanguageModel
from ropebook.lab.rule import Bits, Cached, Comparison, Share
from tests.lab_worlds import ABLE, CHOSEN, FILES, change, world
from tests.together import together


@pytest.fixture(scope="module")
def alike():
    return world()


def words(numbers, *ids):
    return {
        verdict.claim.id: verdict.word
        for verdict in R.judge(C.CLAIMS.values(), numbers, ABLE)
        if verdict.claim.id in ids
    }


# --- the claims ---


def test_claims_ask_for_cells_that_there_are(alike):
    for claim in C.CLAIMS.values():
        assert claim.comparisons
        for comparison in claim.comparisons:
            assert comparison.table(alike).shape[0] == 3
    assert len(C.CLAIMS) == len(set(C.CLAIMS))
    assert len({comparison for claim in C.CLAIMS.values() for comparison in claim.comparisons}) > 300


def test_a_method_is_asked_in_the_band_that_its_factor_reaches():
    bands = [(c.a.extension, c.a.band) for c in C.CLAIMS["S2.9a linear"].comparisons]
    assert bands == [(f"linear/{s}", band) for s, band in zip((2, 4, 8), C.BEYOND, strict=True) for _ in R.TEXTS]
    assert all(band[1] == s * scores.LENGTH for s, band in zip(extensions.FACTORS, C.BEYOND, strict=True))


def test_where_all_are_alike_there_is_no_difference(alike):
    found = {verdict.claim.id: verdict.word for verdict in R.judge(C.CLAIMS.values(), alike, ABLE)}
    assert {word for name, word in found.items() if name.startswith("S2.9a")} == {"no difference here"}
    assert found["S2.8"] == "holds here"
    assert found["S3.6a"] == "does not hold here"  # the synthetic cached keys cost 0.1 bits more
    assert found["S3.6b"] == "holds here"  # the synthetic model finds 0.9 of the records
    assert found["S3.6c none"] == "does not hold here"  # 5 bits are compared with 2 bits
    assert found["S0.12c"] == "holds here"
    assert found["control order"] == "does not hold here"
    assert found["ALiBi d"] == "does not hold here"


def test_a_method_that_helps(alike):
    better = change(alike, tuple(f"rope-10000-{seed}-3200/linear" for seed in trials.SEEDS), within=2.3, beyond=1.9)
    found = words(better, "S2.9a linear", "S2.9a", "S2.9a ntk", "S2.9b linear", "S2.9b", "S3.6c linear")
    assert found == {
        "S2.9a linear": "holds here",
        "S2.9a ntk": "no difference here",
        "S2.9a": "mixed here",  # 6 of 18 hold, and the others show no difference
        "S2.9b linear": "holds here",
        "S2.9b": "mixed here",  # 6 of 12 hold
        "S3.6c linear": "holds here",
    }


def test_seeds_that_disagree_leave_it_undecided():
    names = tuple(f"rope-10000-{seed}-3200/linear" for seed in trials.SEEDS)
    swaying = change(world(), names, beyond=4.7, seed_spread=0.7)
    assert words(swaying, "S2.9a linear") == {"S2.9a linear": "undecided here"}


def test_the_control(alike):
    guessing = change(alike, tuple(f"none-{seed}" for seed in trials.SEEDS), share=0.5)
    (verdict,) = R.judge([C.CLAIMS["S0.12a"]], guessing, ABLE)
    assert verdict.word == "does not hold here"  # RoPE answers 0.9 of the questions correctly
    assert words(guessing, "control order") == {"control order": "holds here"}


# --- the rule ---


@together(
    ("expected", "mean", "different", "null", "word"),
    [
        ("lower", -1, True, False, "holds"),
        ("lower", 1, True, False, "fails"),
        ("higher", 1, True, False, "holds"),
        ("higher", -1, True, False, "fails"),
        ("lower", -1, False, False, "undecided"),
        ("lower", -1, True, True, "no difference"),
        ("higher", 1, False, True, "no difference"),
        ("same", 1, True, False, "fails"),
        ("same", 1, True, True, "holds"),
        ("same", 1, False, False, "undecided"),
        ("not higher", -1, True, False, "holds"),
        ("not higher", 1, True, False, "fails"),
        ("not higher", 1, False, True, "holds"),
        ("not higher", 1, False, False, "undecided"),
    ],
)
def test_from_what_passed_to_the_outcome(expected, mean, different, null, word):
    assert R.outcome(expected, mean, different, null) == word


def test_noise_alone_is_seldom_called():
    """Only the seeds vary. There may be only a few worlds in which any of the many comparisons finds a difference."""
    claims = [C.CLAIMS[name] for name in ("S2.9a", "S2.9b", "T5", "alternate")]
    worlds_with_a_call = 0
    for at in range(12):
        numbers = world(at, seed_spread=0.3, beyond=2.0)
        counts = [verdict.counts for verdict in R.judge(claims, numbers, ABLE)]
        worlds_with_a_call += any(count["holds"] + count["fails"] for count in counts)
    assert worlds_with_a_call <= 3


def test_the_correction_is_over_all_comparisons_and_counts_each_once(alike, monkeypatch):
    asked = []
    discoveries = R.intervals.discoveries
    monkeypatch.setattr(R.intervals, "discoveries", lambda p, share: asked.append(len(p)) or discoveries(p, share))
    claim = C.CLAIMS["S2.9a linear"]
    R.judge([claim, replace(claim, id="again"), C.CLAIMS["S2.9a"]], alike, ABLE)
    assert asked == [18, 18]


def test_differences_are_a_less_b_by_seed_and_file(alike):
    look = Comparison(Bits("alibi", "", "python", (256, 512)), Bits("t5", "", "python", (256, 512), last=True), "lower")
    table = look.table(alike)
    assert table.shape == (3, FILES)
    expected = alike["alibi-1"]["numbers"]["python"][4][1] - alike["t5-1"]["last"]["python"][4][1]
    assert table[1, 4].item() == pytest.approx(expected)
    share = Comparison(Share("none", "", "order", 2048, 768), 0.5, "higher").table(alike)
    letters = alike["none-2"]["numbers"]["order"]["2048"]["768"]
    assert share[2].tolist() == [0.5 if letter == "1" else -0.5 for letter in letters]
    cached = Comparison(Cached(C.LONGER, False), Cached(C.LONGER, True), "same").table(alike)
    assert cached.mean().item() == pytest.approx(0.1, abs=0.02)
    assert (look.margin, Comparison(Share("none", "", "order", 256, 32), 0.5, "same").margin) == (0.02, 0.10)


def test_a_text_that_a_model_does_not_reach_is_nan(alike):
    short = change(alike, ("learned",))
    for row in short["learned-0"]["numbers"]["python"]:
        row[1] = None
    assert np.isnan(Bits("learned", "", "python", (256, 512)).of(short, 0)).all()


def test_what_is_missing_or_makes_no_sense_is_named(alike):
    few = {name: numbers for name, numbers in alike.items() if name != "rope-10000-1-3200/linear/4"}
    with pytest.raises(ValueError, match="must have the cell 'rope-10000-1-3200/linear/4'"):
        R.judge([C.CLAIMS["S2.9a linear"]], few, ABLE)
    bits, share = Bits("none", "", "python", (0, 256)), Share("none", "", "order", 256, 32)
    for a, b in ((bits, share), (bits, 0.5), (share, bits), (share, None)):
        with pytest.raises(TypeError, match="b must be of a's kind"):
            Comparison(a, b, "lower")
    with pytest.raises(ValueError, match="expected must be one of"):
        Comparison(bits, bits, "better")
    with pytest.raises(ValueError, match="band must be one of"):
        Bits("none", "", "python", (0, 255))
    with pytest.raises(ValueError, match="distance must be one of"):
        Share("none", "", "order", 256, 33)


def test_records_are_asked_of_those_that_find_them(alike):
    claim = C.CLAIMS["ALiBi d"]
    (found,) = R.judge([claim], alike, ABLE - {"alibi"})
    assert (found.word, found.counts["not asked"]) == ("not asked here", 3)
    (some,) = R.judge([C.CLAIMS["S4.7"]], alike, ABLE - {"sinusoidal"})
    assert (some.counts["not asked"], some.counts["no difference"], some.word) == (5, 6, "no difference here")


def test_a_method_that_follows_the_length_is_asked_in_texts_that_end(alike):
    cell = alike["rope-10000-1-3200/dynamic_ntk_2"]
    beyond = Bits(C.LONGER, "dynamic_ntk_2", "language", (512, 1024)).of(alike, 1)
    assert beyond == [row[2] for row in cell["ended"]["language"]] != [row[2] for row in cell["numbers"]["language"]]
    within = Bits(C.LONGER, "dynamic_ntk", "python", (0, 256)).of(alike, 0)
    assert within == [row[0] for row in alike["rope-10000-0-3200/dynamic_ntk"]["numbers"]["python"]]


def test_the_mean_over_distances_is_of_each_context(alike):
    letters = alike["none-2"]["numbers"]["order"]["256"].values()
    first = sum(row[0] == "1" for row in letters) / 4
    assert Share("none", "", "order", 256).of(alike, 2)[0] == first


def test_a_model_that_was_trained_more_is_compared_with_itself():
    for comparison in C.CLAIMS["tuned linear last"].comparisons:
        assert comparison.a.extension == comparison.b.extension
        assert (comparison.a.last, comparison.b.last) == (False, True)


def test_what_was_chosen_is_not_compared_with_itself():
    assert len(C.asked({"yarn": 4})) == len(C.CLAIMS)
    left = {claim.id for claim in C.asked({"yarn": 32})}
    assert set(C.CLAIMS) - left == {"YaRN β"}


@together(
    ("outcomes", "word"),
    [
        ("hhhh", "holds"),
        ("hhhu", "mostly holds"),
        ("hhhf", "mostly holds"),
        ("hhff", "mixed"),
        ("hfuu", "undecided"),
        ("hfnu", "mixed"),
        ("hffu", "mixed"),
        ("hhnn", "mixed"),
        ("hfff", "mostly fails"),
        ("ffff", "does not hold"),
        ("fffu", "does not hold"),
        ("fuuu", "undecided"),
        ("huuu", "undecided"),
        ("nnnu", "no difference"),
        ("nnuu", "undecided"),
        ("nnnf", "mixed"),
        ("--hh", "holds"),
        ("----", "not asked"),
    ],
)
def test_from_outcomes_to_the_word(outcomes, word):
    names = {"h": "holds", "f": "fails", "n": "no difference", "u": "undecided", "-": "not asked"}
    assert R.word([names[letter] for letter in outcomes]) == f"{word} here"


def test_the_digest_is_of_the_rule_and_the_claims(tmp_path, monkeypatch):
    first = R.digest()
    assert len(first) == 64
    for name in R.DECIDING:
        (tmp_path / f"{name}.py").write_bytes((R.FOLDER / f"{name}.py").read_bytes())
    monkeypatch.setattr(R, "FOLDER", tmp_path)
    assert R.digest() == first
    for name in ("claims", "tasks"):
        (tmp_path / f"{name}.py").write_bytes(b"another")
        changed = R.digest()
        assert changed != first
        first = changed


# --- methods ---


def test_every_extension_can_be_put_into_a_model():
    model = LanguageModel("rope-10000", 256, dim=16, hidden_dim=16, n_layers=1, n_heads=2)
    every = extensions.extensions(CHOSEN)
    assert len({extension.id for extension in every}) == len(every) == 32
    tokens = torch.arange(300)[None] % 256
    for extension in every:
        longer = with_method(model, extension.method, extension.options)
        assert longer(tokens).isfinite().all()


def test_published_and_chosen_differ_in_beta_alone():
    every = {extension.id: extension.options for extension in extensions.extensions(CHOSEN)}
    assert every["yarn_chosen/4"] == {**every["yarn/4"], "beta": 4.0}
    assert every["yarn_chosen_unscaled/4"] == {**every["yarn_chosen/4"], "attention_factor": 1.0}
    assert every["dynamic_ntk_4"]["factor"] == 4.0


def test_the_lowest_mean_is_chosen():
    found = {
        method: {at: [abs(at - CHOSEN[method]) + 1.0, 2.0] for at in extensions.CANDIDATES[method]}
        for method in extensions.CANDIDATES
    }
    assert extensions.choose(found) == CHOSEN
    del found["yarn"][8]
    with pytest.raises(ValueError, match="found must have yarn with"):
        extensions.choose(found)
    found["yarn"][8] = [1.0]
    with pytest.raises(ValueError, match="as many seeds of every yarn"):
        extensions.choose(found)
    with pytest.raises(ValueError, match="chosen must have yarn"):
        extensions.extensions({name: 4 for name in CHOSEN if name != "yarn"})
