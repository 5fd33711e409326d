"""Tests of the space given to a picture, and of the switch between panels when there isn't room for all of them."""

from __future__ import annotations

import traitlets
from playwright.sync_api import expect

from ropebook.explorers import Explorer, Switch
from ropebook.explorers.kit.dials import declare
from ropebook.explorers.kit.joining import join
from tests.site.figures import hash_of


class Rooms(Explorer):
    """A figure that reports how much space it was given and which of its panels it draws."""

    SCRIPT = """import { dials } from "./rooms.py";
import { html, setText } from "./kit/elements.js";
import { panels } from "./kit/panels.js";
import { explorer } from "./kit/mount.js";
      export default explorer({
        title: "Rooms", note: "A note.", compute: (values) => values, dials,
        build: (stage, app) => {
          const shown = panels(app, ["Left", "Right"], { least: 400 });
          const said = stage.appendChild(html("p"));
          return ({ width, most }) => setText(said, `${width} ${most} ${shown(width, most)}`);
        },
        stats: () => [],
        describe: ({ lit }) => `It is ${lit}.`,
      });
    """
    lit = Switch(True, label="Lit", note="On or off.")
    _esm = join("rooms.js", {"dials": declare({"lit": lit})}, SCRIPT)
    alt = traitlets.Unicode("A figure that shows three words.").tag(sync=True)


def test_a_narrow_or_low_stage_gives_one_panel_at_a_time(opened):
    page = opened([Rooms()])
    said, tabs = page.locator(".rb-stage"), page.locator(".rb-panels")
    for width, told in {900: "900 600 null", 520: "520 600 null", 519: "519 600 0", 320: "320 600 0"}.items():
        page.evaluate("w => { document.querySelector('.rb-stage').style.width = `${w}px`; }", width)
        expect(said).to_have_text(told)
        expect(tabs).to_be_visible(visible=width < 520)
    for height, told in {399: "900 399 0", 400: "900 400 null"}.items():
        page.add_style_tag(
            content=f".rb-stage {{ width: 900px !important; }} .rb-height {{ height: {height}px !important; }}"
        )
        expect(said).to_have_text(told)
    page.add_style_tag(content=".rb-stage { width: 320px !important; } .rb-height { height: 600px !important; }")
    left, right = (page.get_by_role("button", name=name, exact=True) for name in ("Left", "Right"))
    expect(left).to_have_attribute("aria-pressed", "true")
    right.click()
    expect(said).to_have_text("320 600 1")
    expect(right).to_have_attribute("aria-pressed", "true")
    expect(left).to_have_attribute("aria-pressed", "false")
    page.get_by_role("switch", name="Lit").uncheck()
    expect(said).to_have_text("320 600 1")
    assert hash_of(page) == "#rooms.lit=off"
