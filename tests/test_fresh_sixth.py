"""Test the sixth set of mistakes without the diagnosis, in the same way and against the same reference as the fifth."""

import re

from tests import fresh_mistakes_fifth as fifth
from tests import fresh_mistakes_sixth as sixth
from tests.test_fresh_fifth import KINDS, assert_mistake, assert_sound
from tests.together import together


@together("name", sixth.FRESH)
def test_is_a_mistake_wherever_it_says(name):
    assert_mistake(sixth.FRESH[name])


@together("name", sixth.SOUND)
def test_is_sound(name):
    assert_sound(sixth.SOUND[name])


def test_texts_and_patterns():
    assert len(sixth.FRESH) >= 45
    assert len(sixth.SOUND) >= 10
    sources = [mistake.source for mistake in sixth.FRESH.values()]
    assert len(set(sources)) == len(sources)
    assert not set(sources) & {mistake.source for mistake in fifth.FRESH.values()}
    for name, mistake in sixth.FRESH.items():
        assert len(mistake.truth) > 60, name
        assert re.fullmatch(r"[\w.-]+/[\w.-]+ #\d+, 20\d\d", mistake.source), name
        assert set(mistake.seen) <= KINDS, name
        assert any(re.search(pattern, mistake.truth, re.IGNORECASE) for pattern in mistake.accept), name
