"""The page of programs that run: start, change and stop them, and what they do, now and in the last hour."""

from __future__ import annotations

import time
from typing import Any

from nicegui import ui

from weft.workbench.pages.frame import asked, button, card, fill, frame, table, texts
from weft.workbench.pages.readings import RunReadings, change_text, run_row
from weft.workbench.run_info import RunInfo
from weft.workbench.service import Workbench
from weft.workbench.trying import Sample

NO_EVENTS = "none: wait for events that are pushed"
BEAT = 1.0  # seconds between two looks
COUNTS = ("events", "rate", "matches", "late", "unreadable", "lag", "waiting", "state")
COLUMNS = ("name", "where", "state_of", "uptime", *COUNTS)
HERE, SPARK = "here", "on Spark"


def add(bench: Workbench) -> None:
    """Add the page."""

    @ui.page("/running")
    async def page() -> None:
        with frame("/running", bench.project.folder.name):
            await _Running(bench).show()


class _Running:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._name = ""
        self._readings: RunReadings | None = None

    async def show(self) -> None:
        programs = [file.path for file in await asked(self._bench.programs) or []]
        files = await asked(self._bench.event_files) or []
        with card("Start a program"), ui.row().classes("w-full items-center gap-3"):
            self.program = ui.select(programs, value=next(iter(programs), None)).classes("grow")
            self.program.props('dense outlined label="program" data-testid="run-program"')
            self.where = ui.toggle([HERE, SPARK], value=HERE, on_change=self._switch)
            self.where.props('dense no-caps unelevated data-testid="where"')
            self.file = ui.select({"": NO_EVENTS, **dict(zip(files, files, strict=True))}, value=(files or [""])[0])
            self.file.classes("grow")
            self.file.props('dense outlined label="events to replay" data-testid="run-events"')
            self.rate = ui.number("events a second", value=10, min=0.1).props('dense outlined data-testid="rate"')
            self.source = ui.input("source", placeholder="warehouse=incoming").classes("grow")
            self.source.props('dense outlined data-testid="source" hint="NAME=FOLDER of the project, …"')
            self.steps = ui.checkbox("count steps", value=True).props('dense data-testid="steps"')
            self.name = ui.input("name", value="first").props('dense outlined data-testid="run-name"')
            button("Start", self._start, "start")
        self._switch()
        with card("Programs that run"):
            self.table = table(COLUMNS, [], "name", "runs")
            for column in self.table.columns:
                column["label"] = {"state_of": "state", "state": "state size"}.get(column["name"], column["label"])
            self.table.props('no-data-label="nothing runs yet"').on("rowClick", self._choose)
        self.detail = ui.column().classes("w-full gap-4")
        ui.timer(BEAT, self._look)
        await self._look()

    def _switch(self) -> None:
        is_here = self.where.value == HERE
        self.file.visible = self.rate.visible = is_here
        self.source.visible = self.steps.visible = not is_here

    def _choose(self, event: Any) -> None:
        self._name = event.args[1]["name"]
        self._build()

    async def _start(self) -> None:
        source = await asked(self._bench.program, self.program.value or "")
        if source is None:
            return
        started: RunInfo | None
        if self.where.value == SPARK:
            given = (part.strip().partition("=") for part in str(self.source.value or "").split(","))
            sources = {name: folder for name, _, folder in given if folder}
            ui.notify("Spark is starting …", timeout=4000)
            steps = bool(self.steps.value)
            started = await asked(self._bench.submit_to_spark, source, sources, self.name.value, steps)
        else:
            sample = Sample(file=str(self.file.value or ""))
            started = await asked(self._bench.submit, source, sample, self.name.value, float(self.rate.value or 1))
        if started is not None:
            self._name = started.name
            self._build()
            await self._look()

    def _build(self) -> None:
        """Build the parts that show the chosen run."""
        self.detail.clear()
        with self.detail:
            with card(self._name):
                with ui.row().classes("w-full items-center gap-4"):
                    self.state = ui.badge("").props('data-testid="state"')
                    self.problem = ui.label().classes("weft-mono").style("color: #cf222e")
                    ui.space()
                    button("Change to the chosen program", self._change, "change", "outline")
                    button("Restart", self._restart, "restart", "outline")
                    button("Stop", self._stop, "stop", "color=negative outline")
                self.changed = texts([], "changed").classes("opacity-70")
                self._readings = RunReadings(self._ask_funnels)
            with card("Log"):
                self.log = texts([], "log").style("max-height: 220px; overflow: auto")

    async def _change(self) -> None:
        source = await asked(self._bench.program, self.program.value or "")
        started = time.time()
        info = None if source is None else await asked(self._bench.change, self._name, source)
        if source is not None and info is not None:
            done = info.where == HERE or (info.change is not None and info.change.at >= started)
            what = f"runs {source.path} now" if done else f"takes over {source.path} when its trigger is done"
            ui.notify(f"{self._name} {what}", type="positive")

    async def _restart(self) -> None:
        await asked(self._bench.restart, self._name)
        await self._look()

    async def _stop(self) -> None:
        await asked(self._bench.stop, self._name)
        await self._look()

    async def _ask_funnels(self) -> None:
        found = await asked(self._bench.funnels, self._name)
        if found is not None and self._readings is not None:
            self._readings.show_funnels(found)

    async def _look(self) -> None:
        runs = await asked(self._bench.runs) or []
        fill(self.table, [run_row(run) for run in runs])
        found = await asked(self._bench.run, self._name) if self._name else None
        if found is None or self._readings is None:
            return
        self.state.text = found.info.state
        self.state.props(f"color={'positive' if found.info.state == 'running' else 'grey'}")
        self.problem.text = found.info.problem or ""
        self.changed.text = change_text(found.info.change)
        self._readings.tell(found)
        self.log.text = "\n".join(reversed(found.log[-100:]))
