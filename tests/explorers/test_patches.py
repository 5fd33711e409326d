"""Tests specific to the Patches explorer."""

from __future__ import annotations

import pytest

from ropebook.explorers.patches import FORMS, SIDE, Patches
from tests.explorers import js
from tests.explorers.oracles import computed


@pytest.mark.parametrize("form", FORMS)
def test_a_patch_is_most_like_itself(form):
    found = computed(Patches, form=form, row=3, column=12)
    assert found["scores"][3 * SIDE + 12] == 1
    assert max(found["scores"]) == 1


def test_only_the_mixed_form_knows_a_diagonal():
    slants = {form: computed(Patches, form=form)["slanted"] for form in FORMS}
    apart = {form: abs(right - left) for form, (right, left) in slants.items()}
    assert {form for form, off in apart.items() if off > 1e-9} == {"line", "mixed"}


def test_pairs_take_turns_for_as_long_as_both_axes_have_some():
    axes = computed(Patches, form="interleaved", dim=4, dim_columns=10)["axes"]
    assert axes == [0, 1, 0, 1, 1, 1, 1]
    assert computed(Patches, form="sections", dim=4, dim_columns=6)["axes"] == [0, 0, 1, 1, 1]


def test_the_patches_in_words():
    cases = [{**Patches().dials(), **case} for case in ({}, {"form": "line", "dim": 2}, {"form": "mixed"})]
    axial, line, mixed = (text.replace("\u00a0", " ") for text in js.describe(Patches, cases))
    assert axial == "The score is the sum of a part for the rows and a part for the columns. " + (
        "Both diagonal neighbours below score 93%."
    )
    assert line.startswith(
        "Each pair rotates in proportion to a patch’s number, and the number of the patch below is larger by 16. "
    )
    left, right = (round(100 * score) for score in computed(Patches, form="line", dim=2)["slanted"][::-1])
    assert line.endswith(f"The diagonal neighbours below score {left}% on the left and {right}% on the right.")
    assert mixed.startswith(
        "Each pair follows its own direction across the image. The diagonal neighbours below score "
    )


def test_the_words_name_only_neighbours_within_the_image():
    """The score depends on the shift alone, and is the same for the opposite shift."""
    places = [(15, 7), (15, 15), (0, 0), (3, 0)]
    cases = [{**Patches().dials(), "form": "line", "row": row, "column": column} for row, column in places]
    down_right, down_left = (f"{round(100 * score)}%" for score in computed(Patches, form="line")["slanted"])
    assert down_right != down_left
    said = [text.partition("16. ") for text in js.describe(Patches, cases)]
    steps = ["above is smaller", "above is smaller", "below is larger", "below is larger"]
    assert [why.endswith(f"the patch {step} by ") for (why, *_), step in zip(said, steps, strict=True)] == [True] * 4
    assert [neighbours for *_, neighbours in said] == [
        f"The diagonal neighbours above score {down_right} on the left and {down_left} on the right.",
        f"The diagonal neighbour above scores {down_right}.",
        f"The diagonal neighbour below scores {down_right}.",
        f"The diagonal neighbour below scores {down_right}.",
    ]
    body = "return input.map((values) => neighbours(figure.compute(values), values).map(([name]) => name));"
    names = js.inside(Patches, body, cases)
    assert names == [
        ["One row up", "One column right"],
        ["One row up", "One column left"],
        *[["One row down", "One column right"]] * 2,
    ]
    assert js.inside(Patches, "return [-0.004, 0.004, -0.006].map(shared);") == ["0%", "0%", "−1%"]
