"""Test that the page's scripts survive any text in an address or in the search field. Both are tested with 10,000
random strings."""

import json
import random
import re
from types import SimpleNamespace

import pytest

from ropebook.explorers.lock import Lock
from tests.explorers import js
from tests.test_finding import SMALL, with_search
from tests.together import together
from tools.paths import BOOK

MANY = 10_000
TABLE = {"a-heading": "new.html#another", "distance": "new.html#distance", "lock": "other.html#compass"}
PIECES = [
    *("%", "%%", "%2", "%zz", "%C3", "%E2%80%A8", "#", "&", "=", ".", "+", "?", "/", "\\", "<b>", '"', "'", " ", "\n"),
    *("constructor", "__proto__", "toString", "hasOwnProperty", "valueOf", "undefined", "null", "NaN", "-1", "1e999"),
    *("a-heading", "distance", "distance.query=5", "lock.", "lock.m=3", "lock.base=", "lock.theta=1", "m", "θ", "−"),
    *("\ud83d", "\ude00", "😀", "\u0000", "\u202e", "ﬁ", "İ", "rotate_half", "a_b.c", "cache", "padding", "𝔸"),
]


def drawn(seed: int) -> list[str]:
    """Draw random strings, which are put together from a few pieces. Now and then, one of them is very long."""
    draws = random.Random(seed)
    texts = []
    for at in range(MANY):
        pieces = draws.choices(PIECES, k=draws.randint(1, 8))
        texts.append("".join(pieces) * (draws.choice((500, 2000)) if at % 500 == 0 else 1))
    return texts


@pytest.fixture
def page():
    return (BOOK / "_static" / "page.js").read_text(encoding="utf-8")


def test_an_address_that_nobody_made_leads_on_or_nowhere(page):
    answers = js.evaluate(
        page,
        """const { decoded, targetOf } = globalThis.page;
        return input.texts.map((text) => targetOf(decoded(text), input.table) ?? null);""",
        {"texts": drawn(1), "table": TABLE},
    )
    assert len(answers) == MANY
    known = {address.split("#")[0] for address in TABLE.values()} | {""}  # "": an explorer on this page has a new name
    led = [answer for answer in answers if answer is not None]
    assert len(led) > 100
    assert {answer.split("#")[0] for answer in led} == known


@pytest.mark.parametrize("fragment", ["%", "constructor", "__proto__", "toString.x=1", "hasOwnProperty&a=b"])
def test_what_every_object_has_is_no_entry_of_the_table(page, fragment):
    body = "const { decoded, targetOf } = globalThis.page; return targetOf(decoded(input), {}) ?? null;"
    assert js.evaluate(page, body, fragment) is None


def test_a_page_that_is_gone_leads_on_whatever_stands_behind_its_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BOOK / "_ext"))
    import moved

    monkeypatch.setattr(moved, "read", lambda: {"old.html": "new.html", "old.html#part": "other.html#its-part"})
    (tmp_path / "book").mkdir()
    (tmp_path / "404.html").write_text("<head></head>", encoding="utf-8")  # which the build has written by then
    config = SimpleNamespace(html_title="A book", root_doc="book/intro")
    moved.write_gone(SimpleNamespace(builder=SimpleNamespace(format="html"), config=config, outdir=tmp_path), None)
    script = re.search(r"<script>(.*?)</script>", (tmp_path / "book/old.html").read_text(encoding="utf-8"), re.S)[1]
    # after a JSON round trip, the texts are the same as those that Node reads
    texts = ["part", "constructor", "__proto__", "%", *json.loads(json.dumps(drawn(4)))]
    led = js.evaluate(
        "",
        """const run = new Function("location", input.script);
        return input.texts.map((text) => {
          let to;
          run({ hash: "#" + text, replace: (address) => { to = address; } });
          return to;
        });""",
        {"script": script, "texts": texts},
    )
    assert led == ["other.html#its-part", *(f"new.html#{text}" for text in texts[1:])]


def test_dials_of_any_address_are_read_or_refused_in_words():
    answers = js.inside(
        Lock,
        """return input.map((text) => {
          const { values, refusals } = readDials(dials, initial, readAddress("#" + text, "lock"));
          return [Object.keys(values), refusals.every((one) => typeof one === "string" && one.length > 0)];
        });""".replace("initial", "Object.fromEntries(dials.map((dial) => [dial.trait, dial.value]))"),
        drawn(2),
    )
    traits = answers[0][0]
    assert traits
    assert all(names == traits and told for names, told in answers)


def test_any_question_is_answered():
    told = with_search(
        SMALL,
        """return input.map((text) => {
          const asked = question(text);
          const { list, terms, weak } = ranked(asked, data, index);
          const shown = list.map(({ place }) => snippet(data.sections[place][3], terms));
          new URLSearchParams({ q: asked }).toString();
          return [asked.length, shown.every((one) => typeof one === "string"), list.length, summary({ list, weak })];
        });""",
        drawn(3),
    )
    assert len(told) == MANY
    assert max(length for length, *_ in told) <= 400
    assert all(shown for _, shown, *_ in told)
    assert sum(found > 0 for _, _, found, _ in told) > 100
    assert len({summary for *_, summary in told}) >= 3


@together("letters", ["x" * 6000, "paddingg" * 750, "ab_" * 2000])
def test_a_word_of_thousands_of_letters_is_looked_up(letters):
    """The length limit of the search field isn't the only safeguard. The search itself uses only the beginning of a
    long word."""
    assert with_search(SMALL, "return ranked(input, data, index).list.length;", letters) >= 0
