"""The page to try a program: sample events, matches as a table and on a timeline, why not, and keeping a test."""

from __future__ import annotations

from random import randrange
from typing import Any

from nicegui import ui
from nicegui.events import KeyEventArguments

from weft.reasons import Reasons
from weft.workbench.pages.found import FoundParts
from weft.workbench.pages.frame import asked, button, card, frame, texts
from weft.workbench.service import ProgramSource, Workbench
from weft.workbench.trying import Sample, Tried

PASTED = "pasted rows"
ROOM = """return document.querySelector("[data-testid=result]").clientWidth"""
BORDER, LEAST_WIDE, MOST_WIDE = 36, 480, 4000  # pixels: of a card, and of a timeline
DRAWN = 1000  # rows that are drawn of a large file


def add(bench: Workbench) -> None:
    """Add the page."""

    @ui.page("/try")
    async def page(path: str = "") -> None:
        with frame("/try", bench.project.folder.name):
            await _Trying(bench).show(path)


class _Trying:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._shown: FoundParts | None = None

    async def show(self, path: str) -> None:
        programs = [file.path for file in await asked(self._bench.programs) or []]
        files = await asked(self._bench.event_files) or []
        path = path if path in programs else next(iter(programs), "")
        beside = await asked(self._bench.events_for, path) if path else ""
        ui.keyboard(self._key, ignore=[])
        with card("Try a program on events"):
            with ui.row().classes("w-full items-center gap-3"):
                self.program = ui.select(programs, value=path or None, on_change=self._preselect)
                self.program.props('dense outlined label="program" data-testid="program"').classes("grow")
                self.file = ui.select([PASTED, *files], value=beside or PASTED, on_change=self._switch)
                self.file.props('dense outlined label="events" data-testid="events-file"').classes("grow")
                self.time = ui.input("time column", value="ts").props("dense outlined").classes("w-28")
                self.type = ui.input("type column", value="type").props("dense outlined").classes("w-28")
                button("Run", self._run, "run").tooltip("Ctrl+Enter")
            with ui.row().classes("items-center gap-3") as self.drawing:
                self.take = ui.number("rows (all if empty)", min=1, precision=0).props(
                    'dense outlined data-testid="take"'
                )
                self.skip = ui.number("after row", value=0, min=0, precision=0).props(
                    'dense outlined data-testid="skip"'
                )
                button("Draw others", self._draw, "draw", "outline dense padding='xs sm'")
            self.rows = ui.textarea(placeholder='{"type": "A", "ts": 1, "x": 3}').classes("w-full weft-mono")
            self.rows.props('outlined rows=7 data-testid="rows"')
            self._switch()
        self.result = ui.column().classes("w-full gap-4").props('data-testid="result"')

    async def _preselect(self) -> None:
        """Choose the events that belong to the program."""
        path = str(self.program.value or "")
        self.file.value = (await asked(self._bench.events_for, path) if path else "") or PASTED

    async def _key(self, event: KeyEventArguments) -> None:
        """Ctrl+Enter runs."""
        if event.action.keydown and event.key.enter and (event.modifiers.ctrl or event.modifiers.meta):
            await self._run()

    def _switch(self) -> None:
        self.rows.visible = self.file.value == PASTED
        self.drawing.visible = not self.rows.visible

    def _sample(self) -> Sample:
        time, type_ = str(self.time.value), str(self.type.value)
        if self.file.value == PASTED:
            return Sample(rows=self.rows.value or "", time=time, type=type_)
        skip, take = int(self.skip.value or 0), int(self.take.value or 0)
        return Sample(file=str(self.file.value), time=time, type=type_, skip=skip, take=take)

    async def _source(self) -> ProgramSource | None:
        if not self.program.value:
            ui.notify("there is no program: write one first", type="warning")
            return None
        return await asked(self._bench.program, self.program.value)

    async def _draw(self) -> None:
        """Other rows of the file, from a place that is drawn by lot."""
        count = await asked(self._bench.event_count, str(self.file.value))
        if count is not None:
            self.take.value = int(self.take.value or DRAWN)
            self.skip.value = randrange(max(1, count - self.take.value + 1))
            await self._run()

    async def _run(self) -> None:
        source = await self._source()
        width = min(MOST_WIDE, max(LEAST_WIDE, int(await ui.run_javascript(ROOM)) - BORDER))
        tried = None if source is None else await asked(self._bench.try_program, source, self._sample(), None, width)
        if tried is not None:
            self._show(tried)

    def _show(self, tried: Tried) -> None:
        self.result.clear()
        with self.result:
            self._shown = FoundParts(tried)
            with self._shown.below_matches, ui.row().classes("items-center gap-2"):
                self.test_name = ui.input("name of the test", value="as it is now").props("dense outlined")
                button("Keep this as a test", self._keep, "keep", "outline")
            with self._shown.below_events:
                if tried.is_table:
                    return
                with ui.row().classes("items-center gap-3"):
                    button("Why?", self._why, "why")
                    self._shown.add_positions()
                self.reasons = ui.column().classes("w-full gap-1").props('data-testid="reasons"')

    async def _why(self) -> None:
        positions = [] if self._shown is None else self._shown.chosen
        source = await self._source() if positions else None
        if not positions:
            ui.notify("choose some events first: in the table, on the timeline, or by their positions", type="warning")
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
                    ui.label(bound).classes("weft-mono weft-quiet")
                lines = [f"{failure.kind:<10} {failure}" for failure in one.failures]
                for close in one.closest:
                    rest = "; ".join(map(str, close.failures)) or "with it there is a match"
                    lines.append(f"{'closest':<10} {close.position}: {rest}")
                texts(lines or ["everything holds" if one.matched else "too many ways to read them"], "why-lines")

    async def _keep(self) -> None:
        source = await self._source()
        if source is not None:
            file: Any = await asked(self._bench.keep_as_test, source, self._sample(), self.test_name.value)
            if file is not None:
                ui.notify(f"kept in {file}", type="positive")
