"""Common parts of all pages: the header with navigation, colours, error messages, tables and buttons."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from inspect import isawaitable
from typing import Any, TypeVar

from nicegui import run, ui

from weft.errors import WeftError
from weft.workbench.pages.style import ACCENT, DARK_PICTURES, DARKNESS, KEYS, RIGHT, STYLE, SWITCH, WRONG

Answer = TypeVar("Answer")
PLACES = {
    "/": "Programs",
    "/try": "Try",
    "/tests": "Tests",
    "/running": "Running",
    "/server": "Server",
    "/cluster": "Cluster",
}
NONE = '<div class="q-pa-sm opacity-70" style="font-family: inherit">{{ props.message }}</div>'


@contextmanager
def frame(here: str, project: str) -> Iterator[None]:
    """A page with its head; what is made inside is its body."""
    ui.colors(primary=ACCENT, negative=WRONG, positive=RIGHT)
    ui.add_css(STYLE + DARK_PICTURES)
    ui.add_head_html(f"<script>{KEYS}</script>")
    ui.run_javascript(DARKNESS)
    with ui.header().classes("items-center no-wrap q-py-xs gap-2").style(f"background: {ACCENT}"):
        ui.label("weft").classes("text-h6 text-weight-bold q-mr-sm")
        with ui.row().classes("weft-places no-wrap gap-1 items-center"):
            for number, (place, name) in enumerate(PLACES.items(), 1):
                link = ui.link(name, place).props(f'data-testid="to-{name.lower()}" title="Alt+{number}"')
                link.classes("weft-at" if place == here else "")
        ui.space()
        ui.label(project).classes("weft-mono opacity-70 ellipsis")
        look = 'flat round dense color=white aria-label="dark or light" title="dark or light" data-testid="dark"'
        ui.button(icon="contrast").props(look).on("click", js_handler=SWITCH)
    with ui.column().classes("w-full max-w-screen-2xl mx-auto q-pa-md gap-4"):
        yield


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
    made.add_slot("no-data", NONE)
    made.props(
        f'dense flat data-testid="{name}" no-data-label="none yet" no-results-label="nothing matches the filter"'
    )
    return made.props(" hide-pagination" if len(rows) <= page else "")


def fill(shown: ui.table, rows: list[dict[str, Any]], page: int = 10) -> None:
    """Put other rows into a table."""
    shown.rows = rows
    shown.props(add="hide-pagination") if len(rows) <= page else shown.props(remove="hide-pagination")


def button(text: str, do: Callable[[], Awaitable[None] | None], name: str, look: str = "") -> ui.button:
    """A button that is found by its name; while what it does takes time it shows so, and cannot be pressed again."""

    async def work() -> None:
        made.props(add="loading")
        try:
            done = do()
            if isawaitable(done):
                await done
        finally:
            if not made.is_deleted:
                made.props(remove="loading")

    made = ui.button(text, on_click=work).props(f'data-testid="{name}" no-caps unelevated {look}')
    return made
