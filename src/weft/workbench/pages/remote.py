"""The page of a server: connect to a running `weft serve`, deploy and remove queries, publish a file, watch matches."""

from __future__ import annotations

import json
from typing import Any

from nicegui import ui

from weft.errors import plural
from weft.workbench.pages.frame import asked, button, card, fill, frame, table
from weft.workbench.project import EVENT_ENDINGS
from weft.workbench.servers import ServerConnection
from weft.workbench.service import Workbench

BEAT = 1.0  # seconds between two looks
SHOWN = 100  # of the latest matches
EVERYTHING = "*"
COLUMNS = ("name", "language", "matches")
FIGURES = ("events", "late", "unreadable", "subscribers", "delivered", "missed", "queued_bytes")


def add(bench: Workbench) -> None:
    """Add the page."""

    @ui.page("/server")
    async def page() -> None:
        with frame("/server", bench.project.folder.name):
            await _Server(bench).show()


class _Server:
    """One browser's view of one server; the connection ends with the page."""

    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._server: ServerConnection | None = None

    async def show(self) -> None:
        with card("Server"), ui.row().classes("w-full items-center gap-3"):
            self.url = ui.input("address", value="http://127.0.0.1:8787").classes("grow")
            self.url.props('dense outlined data-testid="server-url"')
            self.token = ui.input("token", password=True).props('dense outlined data-testid="server-token"')
            button("Connect", self._connect, "connect")
            self.state = ui.badge("not connected").props('color=grey data-testid="server-state"')
        self.parts = ui.column().classes("w-full gap-4")
        ui.timer(BEAT, self._look)
        ui.context.client.on_disconnect(self._close)

    def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _connect(self) -> None:
        self._close()
        self._server = await asked(ServerConnection, str(self.url.value or ""), str(self.token.value or ""))
        self.parts.clear()
        self.state.text = "not connected" if self._server is None else f"connected to {self._server.url}"
        self.state.props(f"color={'grey' if self._server is None else 'positive'}")
        if self._server is not None:
            with self.parts:
                await self._build()
            await self._look()

    async def _build(self) -> None:
        """Build the parts that show a server."""
        programs = [file.path for file in await asked(self._bench.programs) or []]
        files = await asked(self._bench.event_files) or []
        with card("Queries"):
            self.queries = table(COLUMNS, [], "name", "server-queries", selection="single")
            with ui.row().classes("w-full items-center gap-3"):
                self.program = ui.select(programs, value=next(iter(programs), None)).classes("grow")
                self.program.props('dense outlined label="program" data-testid="server-program"')
                button("Deploy", self._deploy, "server-deploy")
                button("Remove the selected", self._remove, "server-remove", "color=negative outline")
        with card("Publish"), ui.row().classes("w-full items-center gap-3"):
            self.file = ui.select(files, value=next(iter(files), None)).classes("grow")
            self.file.props('dense outlined label="events" data-testid="server-events"')
            button("Publish", self._publish, "server-publish")
            self.published = ui.label().classes("weft-mono").props('data-testid="server-published"')
            self.figures = ui.label().classes("weft-mono weft-quiet w-full").props('data-testid="server-figures"')
        with card("Matches"):
            with ui.row().classes("w-full items-center gap-3"):
                self.query = ui.select([EVERYTHING], value=EVERYTHING, with_input=True, new_value_mode="add-unique")
                self.query.props('dense outlined label="query or type" data-testid="server-query"')
                self.where = ui.input("condition", placeholder="area = 'hall' and temp > 50").classes("grow")
                self.where.props('dense outlined data-testid="server-where"')
                button("Watch", self._watch, "server-watch")
                self.count = ui.label().classes("weft-mono").props('data-testid="server-count"')
            self.matches = table(("query", "start", "end", "event", "id"), [], "id", "server-matches", 20)

    async def _deploy(self) -> None:
        source = await asked(self._bench.program, self.program.value or "")
        if self._server is None or source is None:
            return
        names = await asked(self._server.deploy, source.text, source.language, source.stem)
        if names is not None:
            ui.notify(f"deployed {', '.join(names)}", type="positive")
            await self._look()

    async def _remove(self) -> None:
        if self._server is None:
            return
        for row in self.queries.selected:
            await asked(self._server.remove, str(row["name"]))
        self.queries.selected = []
        await self._look()

    async def _publish(self) -> None:
        if self._server is None or not self.file.value:
            return
        path = self._bench.project.path(str(self.file.value), *EVENT_ENDINGS)
        said = await asked(self._server.publish, path)
        self.published.text = said or ""

    async def _watch(self) -> None:
        if self._server is not None:
            await asked(self._server.watch, str(self.query.value or EVERYTHING), str(self.where.value or ""))
            await self._look()

    async def _look(self) -> None:
        """Show what the server tells now; a server that is gone is said once."""
        if self._server is None:
            return
        queries = await asked(self._server.queries)
        stats = await asked(self._server.stats) if queries is not None else None
        if queries is None or stats is None:
            self._close()
            self.state.text = "the server is gone"
            self.state.props("color=negative")
            return
        fill(self.queries, [{name: query.get(name, "") for name in COLUMNS} for query in queries])
        self.figures.text = " · ".join(f"{name.replace('_', ' ')} {stats[name]:,}" for name in FIGURES)
        known = [EVERYTHING, *(str(query["name"]) for query in queries)]
        if set(known) - set(self.query.options):
            self.query.set_options([*dict.fromkeys([*known, *self.query.options])])
        tail = self._server.tail
        if tail is not None:
            missed = f", {tail.missed:,} missed" if tail.missed else ""
            self.count.text = f"{plural(tail.total, 'match', 'matches')}{missed}" + (
                f"; {tail.problem}" if tail.problem else ""
            )
            fill(self.matches, [_row(match) for match in tail.latest(SHOWN)], 20)


def _row(match: dict[str, Any]) -> dict[str, Any]:
    """A match as a row of the table, whose values are shown as text."""
    return {**{name: match[name] for name in ("query", "start", "end", "id")}, "event": json.dumps(match["event"])}
