"""If several cases run as one test, all of them are run, and each case that fails is named. They can use fixtures like
any other test."""

import itertools

import pytest

from tests.together import check, pairwise, together

SEEN = []


@pytest.fixture
def shelf():
    return "shelf"


@together("number", range(4))
@together(("sign", "word"), [(1, "plus"), (-1, "minus")])
def test_every_case_is_run(number, sign, word, shelf):
    SEEN.append((number, sign, word, shelf))


def test_all_were_seen():
    test_every_case_is_run(shelf="hook")
    assert SEEN[-8:] == [(n, *row, "hook") for n in range(4) for row in ((1, "plus"), (-1, "minus"))]


def test_each_case_that_fails_is_named():
    @together("number", [1, 2, 3, 4], ids=["one", "two", "three", "four"])
    def check(number):
        if number == 4:
            pytest.fail("four, of all")
        assert number != 2

    with pytest.raises(BaseExceptionGroup, match="2 of 4 cases fail") as caught:
        check()
    assert [error.__notes__ for error in caught.value.exceptions] == [["with two"], ["with four"]]

    @together("one, other", [(1, "x"), (2, "y")])
    def compare(one, other):
        assert one == 1

    with pytest.raises(BaseExceptionGroup) as caught:
        compare()
    assert caught.value.exceptions[0].__notes__ == ["with one=2, other='y'"]


def test_a_skipped_case_is_no_success():
    @together("number", [1, 2])
    def check(number):
        pytest.skip("not here")

    with pytest.raises(pytest.skip.Exception):
        check()


def test_cases_after_a_skipped_one_are_run():
    seen = []

    @together("number", [1, 2, 3])
    def check(number):
        seen.append(number)
        if number == 1:
            pytest.skip("not here")
        assert number != 3

    with pytest.raises(BaseExceptionGroup, match="1 of 3 cases fail"):
        check()
    assert seen == [1, 2, 3]


def test_without_cases_or_with_another_name_it_is_refused():
    for values in ([], [(1, 2)], [(1, 2, 3), (1,)]):
        with pytest.raises(ValueError, match="at least one case, each with a value for number, other, last"):
            together("number, other, last", values)
    with pytest.raises(TypeError, match="check has no argument numbre"):

        @together("numbre", [1])
        def check(number):
            """Do nothing."""


def test_each_check_that_fails_is_named():
    seen = []

    def one(number):
        seen.append(number)
        assert number == 1

    def two(number):
        seen.append(number)
        pytest.fail("always")

    def three(number):
        seen.append(number)

    check([one, three], 1)
    with pytest.raises(BaseExceptionGroup, match="2 of 3 checks fail") as found:
        check([one, two, three], 2)
    assert [error.__notes__ for error in found.value.exceptions] == [["in one"], ["in two"]]
    assert seen == [1, 1, 2, 2, 2]


def test_any_two_values_meet_in_few_rows():
    columns = [range(3), "abcde", [True, False], [None, 1.5]]
    rows = pairwise(*columns)
    assert len(rows) == len(set(rows)) == 15
    for (i, first), (j, second) in itertools.combinations(enumerate(columns), 2):
        assert {(row[i], row[j]) for row in rows} == set(itertools.product(first, second))
