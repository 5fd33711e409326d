"""Build a page of explorers, read data from it, and interact with it. The page contains the same widget state that
MyST-NB would write, so the tests need no built book."""

from __future__ import annotations

import http.server
import json
import re

import numpy as np
from ipywidgets.embed import dependency_state
from playwright.sync_api import Page

from ropebook import colours as palette
from ropebook.explorers.kit.joining import split
from tools.paths import ROOT

STATIC = ROOT / "book" / "_static"
VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
DARK = palette.variables(palette.DARK)
# Give pictures the largest height that they may have, as in a tall window.
ROOM = ".rb .rb-height.rb-height{height:600px}@container(max-width:34rem){.rb .rb-height.rb-height{height:400px}}"
# Give the text the same margins as on the site.
MARGINS = "body{margin:0}main{padding-inline:1rem}@media(min-width:600px){main{padding-inline:2rem}}"


def script(kind: str, value: object) -> str:
    return f'<script type="{kind}">{json.dumps(value).replace("<", chr(92) + "u003c")}</script>'


def page_of(widgets: list, shared: bool = True, spoil=lambda state: None, room: str = ROOM) -> str:
    """Return a page with the widgets' static pictures, views and state.

    If ``shared`` is true, each part of a script occurs only once, as on the site.
    """
    models = dependency_state(widgets, drop_defaults=False)
    state = {"version_major": 2, "version_minor": 0, "state": models}
    if shared:
        state["parts"] = {}
        for model in (model["state"] for model in models.values() if "_esm" in model["state"]):
            parts = split(model["_esm"])
            state["parts"] |= parts
            model["_esm"] = {"parts": list(parts)}
    spoil(state)
    views = [
        f'<h2 id="part-{i}">Part</h2><div class="explorer full-width" data-explorer="{type(widget).__name__.lower()}">'
        f'<div class="explorer-still">{widget.still()}</div>{script(VIEW, {"model_id": widget.model_id})}</div>'
        for i, widget in enumerate(widgets)
    ]
    return (
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8"><title>Explorers</title>'
        '<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">'
        f'<link rel="stylesheet" href="explorers.css"><style>html[data-theme="dark"]{{{DARK}}}{MARGINS}{room}</style>'
        f"</head><body><main><h1>Explorers</h1>{''.join(views)}</main>{script(STATE, state)}"
        '<script defer src="_static/explorer-host.js"></script></body></html>'
    )


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass

    def end_headers(self) -> None:
        # If two pages with the same name were written within a second, a browser might show the first one twice.
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


def dials(page: Page, which: int = 0) -> dict:
    return page.evaluate("n => document.querySelectorAll('.explorer-live')[n].ropebook.values()", which)


def words(page: Page) -> list[str]:
    """Return the button labels without their small numbers."""
    return page.locator(".rb-word > span:first-child").all_inner_texts()


def rest(page: Page, milliseconds: int = 300) -> None:
    """Wait until all of the page's timers that are due within this time have run.

    Timers run in the order in which they are due, so this works even on a slow machine.
    """
    settle(page)
    page.evaluate("(wait) => new Promise((done) => setTimeout(done, wait))", milliseconds)


def hash_of(page: Page) -> str:
    """Wait until the address contains the dial settings, and return its fragment."""
    rest(page)
    return page.evaluate("location.hash")


def data(page: Page, which: int = 0) -> dict:
    """Return the data that the figure shows, as computed by its script."""
    script = "n => JSON.parse(JSON.stringify(document.querySelectorAll('.explorer-live')[n].ropebook.data(),"
    return page.evaluate(script + " (_, value) => ArrayBuffer.isView(value) ? [...value] : value))", which)


def stats(page: Page, which: int = 0) -> dict[str, str]:
    box = page.locator(".rb-stats").nth(which)
    return dict(zip(box.locator("dt").all_inner_texts(), box.locator("dd").all_inner_texts(), strict=True))


def number(text: str) -> float:
    """Parse the number at the beginning of a string, in the format that readers see."""
    return float(text.split()[0].replace("−", "-"))


def enter(page: Page, name: str, value: object) -> None:
    field = page.get_by_role("textbox", name=name)
    field.fill(str(value))
    field.press("Enter")


def settle(page: Page) -> None:
    """Wait for two frames. In the first one the figure notices its new width, and in the second one it is redrawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def stage_width(page: Page, which: int = 0) -> int:
    return page.locator(".rb-stage").nth(which).evaluate("e => Math.floor(e.clientWidth)")


def show_panel(page: Page, name: str) -> None:
    """Select the panel with this name if the stage is narrow. A wide stage shows all panels anyway."""
    button = page.locator(".rb-panels").get_by_role("button", name=name, exact=True)
    if button.is_visible():
        button.click()


# ---- What is drawn ----


def pixels(page: Page, points: list[tuple[float, float]]) -> np.ndarray:
    """Return the colours, (points, 3), of the first canvas at these points, on white paper. The points are given in CSS
    pixels."""
    return np.array(
        page.evaluate(
            """(points) => points.map(([x, y]) => {
              const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
              copy.fillStyle = "white";
              copy.fillRect(0, 0, 1, 1);
              copy.drawImage(document.querySelector("canvas"), -Math.floor(x), -Math.floor(y));
              return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3);
            })""",
            points,
        )
    )


def channels(name: str, theme: int = palette.LIGHT) -> tuple[int, ...]:
    """Return a colour of the palette as RGB values from 0 to 255."""
    return tuple(bytes.fromhex(palette.PALETTE[name][theme][1:]))


WHITE, BLUE, ORANGE, INK, GREY = np.array([channels(name) for name in ("paper", "1", "2", "ink", "grid")])


def column(page: Page, x: float, top: float, bottom: float) -> np.ndarray:
    """Return the colours, (rows, 3), in one column of the canvas, from top to bottom and on white paper. The column is
    given in CSS pixels."""
    return np.array(
        page.evaluate(
            """([x, top, bottom]) => {
              const canvas = document.querySelector('.rb-stage canvas');
              const density = canvas.width / canvas.clientWidth;
              const height = Math.round((bottom - top) * density);
              const copy = new OffscreenCanvas(1, height).getContext('2d', { willReadFrequently: true });
              copy.fillStyle = 'white';
              copy.fillRect(0, 0, 1, height);
              copy.drawImage(canvas, -Math.round(x * density), -Math.round(top * density));
              const { data } = copy.getImageData(0, 0, 1, height);
              return Array.from({ length: height }, (_, k) => [...data.slice(4 * k, 4 * k + 3)]);
            }""",
            [x, top, bottom],
        )
    )


def rows_of(colours: np.ndarray, wanted: np.ndarray, near: float = 40) -> np.ndarray:
    return np.flatnonzero(np.abs(colours - wanted).max(-1) < near)


CSS_INK, CSS_MUTED, CSS_BLUE, CSS_ORANGE, CSS_GREEN, CSS_VIOLET = (
    f"rgb{channels(name)}" for name in ("ink", "muted", "1", "2", "3", "4")
)


def paths(page: Page) -> list[tuple[str, float, str, str]]:
    """Return the colour, width, dash pattern and path of every line in the picture."""
    found = page.locator(".rb-stage svg path").evaluate_all(
        """all => all.filter((p) => p.getAttribute('d') && getComputedStyle(p).stroke !== 'none').map((p) => {
          const { stroke, strokeWidth, strokeDasharray } = getComputedStyle(p);
          return [stroke, parseFloat(strokeWidth), strokeDasharray, p.getAttribute('d')];
        })"""
    )
    return [(colour, width, dashes.replace("px", "").replace(",", ""), d) for colour, width, dashes, d in found]


def lines(page: Page) -> list[tuple[str, float, str, np.ndarray]]:
    """Return the colour, width, dash pattern and points of every line in the picture."""
    points = [re.findall(r"-?[\d.]+,-?[\d.]+", d) for *_, d in paths(page)]
    return [
        (*one[:3], np.array([[float(n) for n in point.split(",")] for point in places]))
        for one, places in zip(paths(page), points, strict=True)
    ]


def of(page: Page, colour: str, width: float, dashes: str = "none") -> list[np.ndarray]:
    return [points for one in lines(page) if one[:3] == (colour, width, dashes) for points in [one[3]]]


def texts(page: Page) -> list[str]:
    return page.locator(".rb-stage svg text").all_text_contents()


def marks(page: Page, part: str = "") -> dict[str, tuple[float, float]]:
    """Return the position of each label in the picture, or in one part of the picture."""
    return {
        text: (x, y)
        for text, x, y in page.locator(f".rb-stage svg {part} text").evaluate_all(
            "all => all.map((t) => [t.textContent, +t.getAttribute('x'), +t.getAttribute('y')])"
        )
    }
