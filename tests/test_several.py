"""All checks are made, and each one that fails is named."""

import pytest

from tests.several import check


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
