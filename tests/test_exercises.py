"""Tests of the answers to the exercises. Correct answers of several kinds must be accepted, and every mistake must be
named."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import torch

from ropebook import efficient, exercises, mistakes, rope
from ropebook.exercises import EXERCISES, Chosen, Rotation, Written, check
from ropebook.exercises.by_hand import BY_HAND
from tests.together import together
from tools import execute

BOOK = Path(__file__).resolve().parent.parent / "book"
CHAPTERS = ("attention", "sinusoidal", "derivation", "complex_plane", "efficient", "decay", "extrapolation")
WRITTEN = {name: one for name, one in EXERCISES.items() if isinstance(one, Written)}
CHOSEN = {name: one for name, one in EXERCISES.items() if isinstance(one, Chosen)}
ROTATIONS = {name: one for name, one in EXERCISES.items() if isinstance(one, Rotation)}


# --- Each mistake gets its name ---------------------------------------------------------------------------------------


@together("name", WRITTEN)
def test_right_answers_are_right_and_each_mistake_has_its_name(name):
    exercise = WRITTEN[name]
    assert check(name, exercise.right).right
    assert str(check(name, exercise.right)).startswith("Right: ")
    assert len(exercise.mistakes) >= 4
    for mistake, (wrong, said) in exercise.mistakes.items():
        found = check(name, wrong)
        assert found.mistake == mistake
        assert str(found) == f"Not yet: {said}"


@together("name", WRITTEN)
def test_what_is_no_known_mistake_is_called_by_none(name):
    exercise = WRITTEN[name]

    def moved(add, times=1.0):
        def answer(*case):
            result = exercise.right(*case)
            several = [torch.as_tensor(x).double() for x in (result if isinstance(result, tuple) else [result])]
            one = [times * x + add * (1 + x.abs()) for x in several]
            return tuple(one) if isinstance(result, tuple) else one[0]

        return answer

    assert check(name, moved(0.3)).mistake == "other"
    assert "off by up to" in check(name, moved(0.3)).said
    assert check(name, moved(0.1, 0.77)).mistake == "other"
    assert check(name, moved(math.nan)).mistake == "nan"
    assert check(name, lambda *case: torch.zeros(1, 1, 1)).mistake == "shape"
    assert check(name, lambda *case: None).mistake == "nothing"
    assert check(name, lambda *case: ...).mistake == "nothing"
    assert check(name, lambda *case: "text").mistake == "no_numbers"
    assert check(name, lambda: 3).mistake == "raises"
    assert "TypeError" in check(name, lambda: 3).said
    assert check(name, 3).mistake == "no_function"


@together("name", WRITTEN)
def test_answers_may_come_as_float32_or_arrays_or_lists(name):
    exercise = WRITTEN[name]

    def turned_into(kind):
        def answer(*case):
            result = exercise.right(*case)
            several = isinstance(result, tuple)
            made = [kind(torch.as_tensor(x).double()) for x in (result if several else [result])]
            return tuple(made) if several else made[0]

        return answer

    for kind in (torch.Tensor.float, torch.Tensor.numpy, torch.Tensor.tolist, lambda x: numpy.float32(x.numpy())):
        assert check(name, turned_into(kind)).right


def test_an_answer_may_write_into_what_it_is_given():
    def weights(q, k):
        q /= math.sqrt(q.shape[-1])
        scores = q @ k.T
        for m in range(len(q)):
            scores[m, m + 1 :] = -math.inf
        return scores.softmax(-1)

    assert check("attention: weights", weights).right
    assert check("attention: weights", weights).right


def half(q, k, positions, base=500_000.0, layout="half"):
    return mistakes.correct(q, k, q, positions, base=base, layout=layout)[:2]


def by_rows(q, k, positions):
    """Rotate one position and one pair at a time."""
    turned = []
    for x in (q, k):
        y, d = x.clone(), x.shape[-1]
        for row, m in enumerate(positions.tolist()):
            for i in range(d // 2):
                angle = m * 500_000.0 ** (-2 * i / d)
                a, b = x[..., row, i], x[..., row, i + d // 2]
                y[..., row, i] = a * math.cos(angle) - b * math.sin(angle)
                y[..., row, i + d // 2] = a * math.sin(angle) + b * math.cos(angle)
        turned.append(y)
    return turned


def in_float32(q, k, positions):
    rotary = efficient.RotaryEmbedding(q.shape[-1], 500_000.0, layout="half")
    return rotary(q.float(), k.float(), positions)


def with_torchs_operator(q, k, positions):
    cos, sin = rope.cos_sin(positions[None], rope.inv_freq(q.shape[-1], 500_000.0), torch.float64)
    rotate = torch.onnx.ops.rotary_embedding
    return tuple(rotate(x, cos.expand(len(x), -1, -1), sin.expand(len(x), -1, -1)) for x in (q, k))


@pytest.mark.parametrize("answer", [half, by_rows, in_float32, with_torchs_operator], ids=lambda a: a.__name__)
def test_right_rotations_of_several_kinds_are_right(answer):
    assert check("efficient: rotation", answer).right


@pytest.mark.parametrize("name", ROTATIONS)
def test_every_mistake_of_the_gallery_is_named(name):
    exercise = ROTATIONS[name]
    options = {"base": exercise.base, "layout": exercise.layout}
    for mistake, wrong in mistakes.MISTAKES.items():
        found = check(name, lambda q, k, m, wrong=wrong: wrong(q, k, q, m, **options)[:2])
        # without values, rotated_values is no mistake, and key_value is the same mistake as key_only
        expected = {"rotated_values": None, "key_value": "key_only"}.get(mistake, mistake)
        assert found.mistake == expected
    assert check(name, lambda q, k, m: half(q, k, m, **options)).right


def test_the_wrong_layout_for_given_weights_is_called_so():
    found = check("efficient: rotation", lambda q, k, m: half(q, k, m, layout="interleaved"))
    assert found.mistake == "other_layout"
    assert "most common" in found.said
    assert check("efficient: rotation", lambda q, k, m: half(q, k, m, base=10000.0)).mistake == "other_base"
    assert check("efficient: rotation", lambda q, k, m: half(q, k, m / 4)).mistake == "scaled"

    def a_part(q, k, m):
        return efficient.RotaryEmbedding(q.shape[-1], 500_000.0, layout="half", rotary_dim=8)(q, k, m)

    assert check("efficient: rotation", a_part).mistake == "partial"
    for answer, mistake in [(3, "no_function"), (lambda q: q, "raises"), (lambda q, k, m: None, "nothing")]:
        assert check("efficient: rotation", answer).mistake == mistake
    assert check("efficient: rotation", lambda q, k, m: (q / 0 * 0, k)).mistake == "not_finite"


@together("name", CHOSEN)
def test_every_choice_is_answered(name):
    exercise = CHOSEN[name]
    assert check(name, exercise.right).right
    for option in exercise.options:
        found = check(name, option)
        assert found.right == (option == exercise.right)
        assert found.said == exercise.options[option]
    assert check(name, ...).mistake == "nothing"
    assert check(name, "none").mistake == "no_option"
    assert check(name, 3).mistake == "no_option"


def test_an_exercise_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"name must be one of 'attention: weights', .*got 'attention'"):
        check("attention", 3)


# --- The planted bugs are where the exercises say ---------------------------------------------------------------------


def last_token_moves(function):
    """Return how much the earlier outputs change when the last token changes."""
    x, *matrices = (exercises.marking.random(*shape, seed=seed) for seed, shape in enumerate([(6, 4)] + 3 * [(4, 4)]))
    other = x.clone()
    other[-1] += 1
    return (function(x, *matrices) - function(other, *matrices))[:-1].abs().max()


def test_the_layer_leaks_through_its_values():
    import inspect

    from ropebook.exercises import attention

    assert last_token_moves(attention.leaky) > 1e-3
    source = inspect.getsource(attention.leaky)
    mended = {**vars(attention)}
    exec(source.replace("v = v / v.std(0)", "pass"), mended)
    assert last_token_moves(mended["leaky"]) < 1e-12


def test_the_encoding_is_coarse_in_its_angles():
    from ropebook.exercises import sinusoidal

    assert torch.equal(*sinusoidal.planted(torch.tensor([256, 257]), 8))
    near = sinusoidal.planted(torch.arange(2), 8)
    assert (near - sinusoidal.encode(torch.arange(2), 8, 10000.0)).abs().max() < 0.01


def test_the_planted_score_knows_the_sum():
    from ropebook.exercises import complex_plane, derivation

    q, k = (exercises.marking.random(1, 8, seed=seed).expand(6, 8) for seed in (1, 2))
    scores = derivation.planted(q, k, torch.arange(6))
    assert scores[1, 4] == pytest.approx(scores[2, 3].item(), abs=1e-4)
    assert abs(scores[1, 4] - scores[2, 5]) > 0.1
    m, theta = torch.tensor(1.0), rope.inv_freq(8)
    one = complex_plane.planted(q[0], k[0], m, 4 * m, theta)
    assert one == pytest.approx(complex_plane.planted(q[0], k[0], 2 * m, 3 * m, theta).item())
    assert abs(one - complex_plane.planted(q[0], k[0], 2 * m, 5 * m, theta)) > 0.1


def test_the_cache_begins_anew():
    from ropebook.exercises import efficient as tasks

    q, k = (exercises.marking.random(4, 8, seed=seed) for seed in (1, 2))
    cache = []
    tasks.planted(q[:3], k[:3], cache)
    stepwise = tasks.planted(q[3:], k[3:], cache)
    whole = tasks.planted(q, k, [])[3:]
    assert (stepwise - whole).abs().max() > 0.1


def test_the_claim_needs_equal_vectors():
    import inspect

    from ropebook.exercises import decay as tasks

    torch.manual_seed(0)
    assert tasks.claim(tokens=200)[0] > 5
    apart = {**vars(tasks)}
    exec(inspect.getsource(tasks.claim).replace("k = q.clone()", "k = torch.randn_like(q)"), apart)
    assert apart["claim"](tokens=200).abs().max() < 0.5


def test_dynamic_frequencies_spoil_the_cache():
    from ropebook.exercises import extrapolation as tasks

    q, new = (exercises.marking.random(1, 8, seed=seed) for seed in (1, 2))
    keys = []
    for _ in range(20):
        scores = tasks.planted(q, keys, new, length=4)
    assert scores.shape == (1, 20)
    within = []
    for _ in range(20):
        right = tasks.planted(q, within, new, length=100)
    # If all keys are equal, a score within L depends only on the distance. Beyond L, it differs from the score with the
    # newest frequencies.
    assert (scores - right).abs().max() > 0.1


# --- The pages --------------------------------------------------------------------------------------------------------

MARKS = "By hand|Proof|Code|Find the bug|Find the leak|Open"


def marked(chapter):
    """Return the marks of a chapter's exercises, on its main page and on its depth pages."""
    found = []
    for page in [BOOK / f"{chapter}.md", *sorted(BOOK.glob(f"{chapter}_*.md"))]:
        text = page.read_text(encoding="utf-8")
        found += re.findall(rf"\*({MARKS})\.\*", text)
    return found


@together("chapter", CHAPTERS)
def test_a_chapter_has_enough_exercises_of_every_kind(chapter):
    kinds = marked(chapter)
    assert len(kinds) >= 5
    assert kinds.count("Code") >= 2
    assert kinds.count("Open") == 1
    assert "By hand" in kinds
    assert {"Find the bug", "Find the leak"} & set(kinds)


@together("chapter", CHAPTERS)
def test_solutions_on_the_page_are_right(chapter):
    """Every cell must run, open questions must be marked as open, and the solutions must be correct."""
    answers = {}
    space = {"__name__": "page"}
    page = BOOK / f"{chapter}_exercises.md"
    code = [cell.source for cell in execute.read_chapter(page).cells if cell.cell_type == "code"]
    for source in code:
        for name in re.findall(r'exercises\.check\("([^"]*)"', source):
            answers.setdefault(name, [])
        *lines, last = source.rstrip().rsplit("\n", 1) if "\n" in source.rstrip() else ["", source]
        exec("\n".join(lines), space)
        if last.startswith("exercises.check("):
            name = re.match(r'exercises\.check\("([^"]*)"', last).group(1)
            answers[name].append(eval(last, space).mistake)
        else:
            exec(last, space)
    coded = [name for name in EXERCISES if name not in BY_HAND]
    own = [name for name in coded if name.split(":")[0].replace(" ", "_") == chapter]
    assert {name: found for name, found in answers.items()} == {name: ["nothing", None] for name in own}


def test_an_exercise_loads_no_other_chapter():
    """If an exercise loaded another chapter's module, any change to that module would make every page of exercises run
    again."""
    code = (
        "import sys; from ropebook.exercises import EXERCISES, attention; EXERCISES['attention: heads'];"
        "print([name for name in sys.modules if name.startswith(('ropebook.decay', 'ropebook.extrapolation'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@together("name", ["attention", "attention: bug", "lab: heads", ""])
def test_an_unknown_exercise_is_named(name):
    assert name not in EXERCISES
    with pytest.raises(ValueError, match="name must be one of 'attention: weights'"):
        check(name, None)


def test_an_answer_that_is_off_is_shown_by_its_first_number():
    exercise = Written(lambda x: x, {}, [(torch.tensor([[1.5, 2.5], [3.5, 4.5]]),)], "fine")
    said = exercise.check(lambda x: x + torch.tensor([[0.25, 0.5], [0.75, 1.0]])).said
    assert "off by up to 1 for" in said
    assert said.endswith("The first entry that differs, [0, 0], should be 1.5, and is 1.75.")
    said = exercise.check(lambda x: x + torch.tensor([[0, 0], [0.75, 0]])).said
    assert said.endswith("The first entry that differs, [1, 0], should be 3.5, and is 4.25.")
    two = Written(lambda x: (x, 2 * x), {}, [(torch.tensor([1.5, 2.5]),)], "fine")
    said = two.check(lambda x: (x, 2 * x + torch.tensor([0, 1]))).said
    assert said.endswith("The first entry that differs, [1] of the second result, should be 5, and is 6.")
    number = Written(lambda x: x, {}, [(1.5,)], "fine")
    assert number.check(lambda x: x + 1).said.endswith("The number should be 1.5, and is 2.5.")


def test_eight_numbers_are_shown_and_of_more_the_shape():
    for count, shown in ((8, str([1.0] * 8)), (9, "a tensor of shape (9,)")):
        exercise = Written(lambda x: x, {}, [(torch.ones(count),)], "fine")
        assert f" for {shown}. " in exercise.check(lambda x: x + 0.5).said


def test_a_shape_and_a_number_are_told_apart():
    exercise = Written(lambda x: (x, x.sum()), {}, [(torch.ones(2, 3),)], "fine")
    said = exercise.check(lambda x: (x.sum(), x)).said
    assert "should return shape (2, 3) and a number, and returned a number and shape (2, 3)" in said


def test_a_rotation_is_called_with_its_own_width_first():
    seen = []

    def answer(q, k, positions):
        seen.append((q.shape, k.shape, q.dtype, positions.tolist()))
        raise KeyError("enough")

    found = Rotation("half", 500.0, "fine", dim=24).check(answer)
    assert seen == [((1, 1, 3, 24), (1, 1, 3, 24), torch.float64, [0, 1, 2])]
    assert found.mistake == "raises"


def test_a_rotation_that_has_to_be_declared_is_not_right():
    def still(q, k, positions):
        angles = positions[:, None] * rope.inv_freq(16, 500.0) * (torch.arange(8) < 4)
        return tuple(efficient.rotate_by_pairs(x, angles.cos(), angles.sin(), "half") for x in (q, k))

    assert Rotation("half", 500.0, "fine").check(still).mistake in ("undetermined", "partial")


def half_exponents(dim, base):
    return base ** (-torch.arange(dim // 2, dtype=torch.float64) / dim)


def blocks(angles):
    return torch.block_diag(
        *(torch.tensor([[math.cos(a), -math.sin(a)], [math.sin(a), math.cos(a)]]).double() for a in angles)
    )


@together(
    ("name", "answer"),
    [
        ("derivation: matrix", lambda m, d, b: blocks(m * half_exponents(d, b))),
        ("derivation: score", lambda q, k, m, n: q @ blocks((n - m) * half_exponents(len(q), 1e4)) @ k),
        ("sinusoidal: step", lambda k, d, b: blocks(k * half_exponents(d, b)).T),
        ("decay: share", lambda m, d, b: (m[:, None] * half_exponents(d, b)).cos().mean(-1)),
        ("decay: turned", lambda length, d, b: sum((length - 1) * half_exponents(d, b) >= 2 * math.pi)),
    ],
)
def test_the_exponent_without_its_two_is_called_so(name, answer):
    found = check(name, answer)
    assert found.mistake == "half_exponent"
    assert "−i/d" in found.said
