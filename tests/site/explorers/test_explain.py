"""Browser tests specific to the Explain explorer."""

from __future__ import annotations

import json

import pytest

from ropebook.explain import explain
from ropebook.explorers.explain import Explain
from tests.explain_cases import LLAMA


@pytest.mark.parametrize("width", [1280, 390, 340])
def test_an_option_stays_in_one_line_and_is_copied_as_it_is(opened, width):
    config = json.dumps(LLAMA)
    page = opened([Explain(config=config)], viewport={"width": width, "height": 900})
    page.locator(".rb-below summary").click()
    # as on paper, where lines of code are wrapped
    page.add_style_tag(content="pre, code { white-space: pre-wrap !important; }")
    code, notes = (page.locator(f".rb-below details {tag}").all_text_contents() for tag in ("code", "p:not([class])"))
    snippets = explain(config).snippets
    assert code == [one["code"] for one in snippets if one["code"]]
    assert notes == [one["note"] for one in snippets]
    options = page.locator(".rb-below span")
    assert {"--rope-freq-base", "--yarn-orig-ctx", "--override-kv", "--rope-freq-scale"} <= set(
        options.all_inner_texts()
    )
    assert set(options.evaluate_all("all => all.map((one) => one.getClientRects().length)")) == {1}
