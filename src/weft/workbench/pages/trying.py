"""The page to try a program: sample events, matches as a table and on a timeline, why not, and keeping a test."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from weft.reasons import Reasons
from weft.workbench.pages.frame import asked, button, card, frame, picture, table, texts
from weft.workbench.service import Source, Workbench
from weft.workbench.trying import Sample, Tried

PASTED = "pasted rows"
MATCH_COLUMNS = ("query", "start", "end", "positions", "bindings", "event")


def add(bench: Workbench) -> None:
    """Add the page."""

    @ui.page("/try")
    async def page(path: str = "") -> None:
        with frame("/try", bench.project.folder.name):
            await _Trying(bench).show(path)


class _Trying:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench

    async def show(self, path: str) -> None:
        programs = [file.path for file in await asked(self._bench.programs) or []]
        files = await asked(self._bench.event_files) or []
        beside = [name for name in files if path and name.rpartition("/")[0] == path.rpartition("/")[0]]
        with card("Try a program on events"):
            with ui.row().classes("w-full items-center gap-3"):
                self.program = ui.select(programs, value=path if path in programs else next(iter(programs), None))
                self.program.props('dense outlined label="program" data-testid="program"').classes("grow")
                chosen = (beside or [PASTED])[0]
                self.file = ui.select([PASTED, *files], value=chosen, on_change=self._switch)
                self.file.props('dense outlined label="events" data-testid="events-file"').classes("grow")
                self.time = ui.input("time", value="ts").props("dense outlined").classes("w-24")
                self.type = ui.input("type", value="type").props("dense outlined").classes("w-24")
                button("Run", self._run, "run")
            self.rows = ui.textarea(placeholder='{"type": "A", "ts": 1, "x": 3}').classes("w-full weft-mono")
            self.rows.props('outlined rows=7 data-testid="rows"')
            self._switch()
        self.result = ui.column().classes("w-full gap-4")

    def _switch(self) -> None:
        self.rows.visible = self.file.value == PASTED

    def _sample(self) -> Sample:
        if self.file.value == PASTED:
            return Sample(rows=self.rows.value or "", time=self.time.value, type=self.type.value)
        return Sample(file=str(self.file.value), time=self.time.value, type=self.type.value)

    async def _source(self) -> Source | None:
        if not self.program.value:
            ui.notify("there is no program: write one first", type="warning")
            return None
        return await asked(self._bench.program, self.program.value)

    async def _run(self) -> None:
        source = await self._source()
        tried = None if source is None else await asked(self._bench.try_program, source, self._sample())
        if tried is not None:
            self._show(tried)

    # ------------------------------------------------------------ results

    def _show(self, tried: Tried) -> None:
        self.result.clear()
        with self.result:
            counts = ", ".join(f"{name} {count:,}" for name, count in tried.counts.items())
            with card("Timeline"):
                picture(tried.timeline, "timeline")
            with card("Matches"):
                text = f"{tried.total:,} matches in {tried.event_total:,} events ({counts}), {tried.seconds:.2f} s"
                ui.label(text).props('data-testid="total"')
                for note in tried.notes:
                    ui.label(note).classes("text-warning weft-mono")
                self._matches(tried)
                _funnels(tried)
                with ui.row().classes("items-center gap-2"):
                    self.test_name = ui.input("name of the test", value="as it is now").props("dense outlined")
                    button("Keep this as a test", self._keep, "keep", "outline")
            with card("Events: choose some, and ask why they are a match or not"):
                self.events = self._events(tried)
                with ui.row().classes("items-center gap-3"):
                    button("Why?", self._why, "why")
                    self.chosen = ui.label("").classes("weft-mono")
                self.reasons = ui.column().classes("w-full gap-1").props('data-testid="reasons"')

    def _matches(self, tried: Tried) -> None:
        rows = [{name: _text(match.get(name)) for name in ("id", *MATCH_COLUMNS)} for match in tried.matches]
        found = table(MATCH_COLUMNS, rows, "id", "matches")
        found.on("rowClick", lambda event: self._choose(event.args[1]["positions"]))

    def _events(self, tried: Tried) -> ui.table:
        names = list(dict.fromkeys(name for row in tried.events for name in row))
        rows = [{name: _text(value) for name, value in row.items()} for row in tried.events]
        return table(names, rows, "position", "events", 12, selection="multiple", on_select=self._selected)

    def _positions(self) -> list[int]:
        return sorted(int(row["position"]) for row in self.events.selected)

    def _selected(self) -> None:
        self.chosen.text = ", ".join(map(str, self._positions()))

    def _choose(self, positions: str) -> None:
        """Choose the events of a match."""
        wanted = {int(word) for word in positions.strip("[]").split(",") if word.strip()}
        self.events.selected = [row for row in self.events.rows if row["position"] in wanted]
        self._selected()

    # ------------------------------------------------------------ why, and tests

    async def _why(self) -> None:
        positions = self._positions()
        source = await self._source() if positions else None
        if not positions:
            ui.notify("choose some events in the table first", type="warning")
        reasons = None if source is None else await asked(self._bench.why, source, self._sample(), positions)
        if reasons is not None:
            self._explain(reasons)

    def _explain(self, reasons: Reasons) -> None:
        self.reasons.clear()
        with self.reasons:
            for one in reasons:
                colour = "positive" if one.matched else "negative"
                with ui.row().classes("items-center gap-2"):
                    ui.badge("a match" if one.matched else "not a match", color=colour)
                    ui.label(one.query).classes("text-weight-medium")
                    bound = "; ".join(f"{name} is {', '.join(map(str, at))}" for name, at in one.bindings.items())
                    ui.label(bound).classes("weft-mono opacity-70")
                lines = [f"{failure.kind:<10} {failure}" for failure in one.failures]
                for close in one.closest:
                    rest = "; ".join(map(str, close.failures)) or "with it there is a match"
                    lines.append(f"{'closest':<10} {close.position}: {rest}")
                texts(lines or ["everything holds" if one.matched else "too many ways to read them"], "why-lines")

    async def _keep(self) -> None:
        source = await self._source()
        if source is not None:
            file = await asked(self._bench.keep_as_test, source, self._sample(), self.test_name.value)
            if file is not None:
                ui.notify(f"kept in {file}", type="positive")


def _funnels(tried: Tried) -> None:
    """How many partial matches reached each step, for queries of several steps."""
    for query, steps in tried.funnels.items():
        if len(steps) > 1:
            shown = "  →  ".join(f"{step} {count:,}" for step, count in steps)
            ui.label(f"{query}:  {shown}").classes("weft-mono opacity-70").props('data-testid="funnel"')


def _text(value: Any) -> Any:
    return value if isinstance(value, int | float | str | None) else str(value).replace("'", "")
