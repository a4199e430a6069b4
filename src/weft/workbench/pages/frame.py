"""Common parts of all pages: the header with navigation, colours, error messages, and the choice of a program."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from nicegui import run, ui

from weft.errors import WeftError

Answer = TypeVar("Answer")
PLACES = {"/": "Programs", "/try": "Try", "/tests": "Tests", "/running": "Running", "/cluster": "Cluster"}
INK, ACCENT, WRONG, RIGHT = "#24292f", "#0f5c6e", "#cf222e", "#1a7f37"
STYLE = """
body { background: #f6f8fa; color: #24292f; }
body.body--dark { background: #0d1117; color: #e6edf3; }
.weft-card { background: white; border: 1px solid #d8dee4; border-radius: 8px; padding: 14px; box-shadow: none; }
.body--dark .weft-card { background: #161b22; border-color: #30363d; }
.body--dark .weft-picture { background: #fff; border-radius: 6px; }
.body--dark .q-table th, .body--dark .weft-title { color: #8d96a0; }
.body--dark .weft-tile { background: #0d1117; }
.weft-tile { background: #f6f8fa; border-radius: 6px; }
.weft-here td { background: #0f5c6e1f; font-weight: 600; }
.weft-name td { white-space: nowrap; overflow: hidden; text-overflow: ellipsis; max-width: 15rem; }
.weft-title { font-weight: 600; font-size: 0.8rem; letter-spacing: 0.04em; text-transform: uppercase; color: #57606a; }
a:focus-visible, tr:focus-visible, .q-btn:focus-visible { outline: 2px solid #bf8700; outline-offset: 2px; }
.weft-mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 12.5px; }
.weft-pre { white-space: pre-wrap; font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12.5px; }
.weft-picture { overflow: auto; max-height: 420px; }
.weft-picture svg { max-width: none; }
.cm-editor { font-size: 13.5px; }
.cm-completionIcon { display: none; }
.cm-tooltip-autocomplete .cm-completionDetail { float: right; margin-left: 2em; color: #6e7781; }
.weft-keyword { color: #cf222e; font-weight: 600; }
.weft-string { color: #0a3069; }
.weft-number { color: #0550ae; }
.weft-comment { color: #6e7781; font-style: italic; }
.weft-error { text-decoration: underline wavy #cf222e 1.5px; background: #ffebe9; }
.weft-warning { text-decoration: underline wavy #bf8700 1.5px; background: #fff8c5; }
.weft-picture [class^=weft-at-], .weft-picture [class^=weft-match-] { cursor: pointer; }
.weft-chosen circle { stroke: #bf8700; stroke-width: 4; }
.weft-chosen path { stroke: #bf8700; stroke-width: 3; }
.q-btn-toggle .q-btn { padding: 4px 12px; }
.q-table th { font-weight: 600; color: #57606a; }
"""


SWITCH = """() => {
  Quasar.Dark.toggle();
  localStorage.setItem("weft-dark", Quasar.Dark.isActive ? "1" : "0");
}"""


@contextmanager
def frame(here: str, project: str) -> Iterator[None]:
    """A page with its head; what is made inside is its body."""
    ui.colors(primary=ACCENT, negative=WRONG, positive=RIGHT)
    ui.add_css(STYLE)
    with ui.header().classes("items-center q-py-sm").style(f"background: {ACCENT}"):
        ui.label("weft").classes("text-h6 text-weight-bold q-mr-md")
        for place, name in PLACES.items():
            look = "text-white text-weight-bold" if place == here else "text-white opacity-70"
            ui.link(name, place).classes(f"{look} no-underline q-mr-md").props(f'data-testid="to-{name.lower()}"')
        ui.space()
        _dark_switch()
        ui.label(project).classes("weft-mono opacity-70")
    with ui.column().classes("w-full max-w-screen-2xl mx-auto q-pa-md gap-4"):
        yield


def _dark_switch() -> None:
    """Add a button between light and dark; the browser keeps the choice."""
    ui.run_javascript("Quasar.Dark.set(localStorage.getItem('weft-dark') === '1')")
    look = 'flat round dense color=white aria-label="dark or light" data-testid="dark"'
    ui.button(icon="contrast").props(look).on("click", js_handler=SWITCH)


@contextmanager
def card(title: str, classes: str = "w-full") -> Iterator[ui.column]:
    """A part of a page under a title."""
    with ui.column().classes(f"weft-card gap-2 {classes}") as column:
        ui.label(title).classes("weft-title")
        yield column


async def asked(question: Callable[..., Answer], *arguments: Any) -> Answer | None:
    """Call the service without blocking the page; show a user's mistake and return None."""
    try:
        return await run.io_bound(partial(question, *arguments))
    except WeftError as problem:
        ui.notify(str(problem), type="negative", multi_line=True, classes="weft-pre", timeout=8000, close_button=True)
        return None


def picture(svg: str, name: str) -> ui.html:
    """A picture that `weft.drawing` made; the browser removes whatever could run in it once more."""
    return ui.html(svg, sanitize=True).classes("weft-picture w-full").props(f'data-testid="{name}"')


def texts(rows: list[str], name: str) -> ui.label:
    """Lines of text, as text."""
    return ui.label("\n".join(rows)).classes("weft-pre w-full").props(f'data-testid="{name}"')


def table(
    columns: Sequence[str], rows: list[dict[str, Any]], key: str, name: str, page: int = 10, **more: Any
) -> ui.table:
    """A table that shows a page of its rows at a time; what is in them is shown as text."""
    head = [{"name": n, "label": n.replace("_", " "), "field": n, "align": "left", "sortable": True} for n in columns]
    made = ui.table(columns=head, rows=rows, row_key=key, pagination=page, **more).classes("w-full weft-mono")
    made.add_slot("no-data", '<div class="q-pa-sm opacity-70">none yet</div>')
    return made.props(f'dense flat data-testid="{name}"' + (" hide-pagination" if 0 < len(rows) <= page else ""))


def fill(shown: ui.table, rows: list[dict[str, Any]], page: int = 10) -> None:
    """Put other rows into a table."""
    shown.rows = rows
    shown.props(add="hide-pagination") if len(rows) <= page else shown.props(remove="hide-pagination")


def button(text: str, do: Callable[[], Awaitable[None] | None], name: str, look: str = "") -> ui.button:
    """A button that is found by its name."""
    return ui.button(text, on_click=do).props(f'data-testid="{name}" no-caps unelevated {look}')
