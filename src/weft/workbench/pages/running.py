"""The page of programs that run: start, change and stop them, and what they do, now and in the last hour."""

from __future__ import annotations

import re
import time
from typing import Any

from nicegui import ui

from weft.workbench.pages.frame import asked, button, card, fill, frame, table, texts
from weft.workbench.pages.readings import RunReadings
from weft.workbench.pages.run_texts import change_text, match_row, run_row
from weft.workbench.run_info import RunInfo
from weft.workbench.service import Workbench
from weft.workbench.trying import Sample

NO_EVENTS = "none: wait for events that are pushed"
BEAT = 1.0  # seconds between two looks
COUNTS = ("events", "rate", "matches", "late", "unreadable", "lag", "waiting", "state")
COLUMNS = ("name", "where", "state_of", "uptime", *COUNTS)
TAIL = ("found_at", "query", "start", "end", "event")
COLOURS = {"running": "positive", "finished": "primary", "failed": "negative", "died": "negative"}  # by state
HERE, SPARK = "here", "on Spark"


def add(bench: Workbench) -> None:
    """Add the page."""

    @ui.page("/running")
    async def page(path: str = "") -> None:
        with frame("/running", bench.project.folder.name):
            await _Running(bench).show(path)


class _Running:
    def __init__(self, bench: Workbench) -> None:
        self._bench = bench
        self._name = ""
        self._runs: list[RunInfo] = []
        self._readings: RunReadings | None = None

    async def show(self, path: str) -> None:
        programs = [file.path for file in await asked(self._bench.programs) or []]
        files = await asked(self._bench.event_files) or []
        first = path if path in programs else next(iter(programs), None)
        beside = await asked(self._bench.events_for, first) if first else ""
        with card("Start a program"), ui.row().classes("w-full items-center gap-3"):
            self.program = ui.select(programs, value=first, on_change=self._preselect).classes("grow")
            self.program.props('dense outlined label="program" data-testid="run-program"')
            self.where = ui.toggle([HERE, SPARK], value=HERE, on_change=self._switch)
            self.where.props('dense no-caps unelevated data-testid="where"')
            self.file = ui.select({"": NO_EVENTS, **dict(zip(files, files, strict=True))}, value=beside or "")
            self.file.classes("grow")
            self.file.props('dense outlined label="events to replay" data-testid="run-events"')
            self.rate = ui.number("events a second", value=10, min=0.1).classes("w-32")
            self.rate.props('dense outlined data-testid="rate"')
            self.source = ui.input("sources: NAME=FOLDER of the project, …", placeholder="warehouse=incoming")
            self.source.props('dense outlined data-testid="source"').classes("grow min-w-72")
            self.steps = ui.checkbox("count steps", value=True).props('dense data-testid="steps"')
            self.name = ui.input("name of the run", value=_name_for(first)).classes("w-40")
            self.name.props('dense outlined data-testid="run-name"')
            button("Start", self._start, "start")
        self._switch()
        with card("Programs that run"):
            self.table = table(COLUMNS, [], "name", "runs")
            for column in self.table.columns:
                column["label"] = {"state_of": "state", "state": "state size"}.get(column["name"], column["label"])
            self.table.props('no-data-label="nothing runs yet: choose a program above and start it"')
            self.table.props(""":table-row-class-fn="row => row.here ? 'weft-here' : ''" """).classes("weft-choose")
            self.table.on("rowClick", self._choose)
        self.detail = ui.column().classes("w-full gap-4")
        await self._look()
        if self._runs and not self._name:  # what runs is shown without being asked for
            self._name = min(self._runs, key=lambda run: run.state != "running").name
            self._build()
            await self._look()
        ui.timer(BEAT, self._look)

    async def _preselect(self) -> None:
        """Choose the events that belong to the program, and a name for the run."""
        path = str(self.program.value or "")
        self.name.value = _name_for(path)
        self.file.value = (await asked(self._bench.events_for, path) if path else "") or ""

    def _switch(self) -> None:
        is_here = self.where.value == HERE
        self.file.visible = self.rate.visible = is_here
        self.source.visible = self.steps.visible = not is_here

    async def _choose(self, event: Any) -> None:
        self._name = event.args[1]["name"]
        self._build()
        await self._look()

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
                    self.problem = ui.label().classes("weft-mono weft-bad")
                    ui.space()
                    button("Change to the chosen program", self._change, "change", "outline")
                    button("Restart", self._restart, "restart", "outline")
                    button("Stop", self._stop, "stop", "color=negative outline")
                self.changed = texts([], "changed").classes("weft-quiet")
                self._readings = RunReadings(self._ask_funnels)
            with card("Newest matches"):
                with ui.row().classes("w-full items-center gap-3"):
                    self.follow = ui.switch("follow", value=True).props('dense data-testid="follow"')
                    self.sink = ui.label().classes("weft-quiet")
                self.tail = table(TAIL, [], "number", "tail")
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
        self._runs = await asked(self._bench.runs) or []
        fill(self.table, [{**run_row(run), "here": run.name == self._name} for run in self._runs])
        found = await asked(self._bench.run, self._name) if self._name else None
        if found is None or self._readings is None:
            return
        self.state.text = found.info.state
        self.state.props(f"color={COLOURS.get(found.info.state, 'grey')}")
        self.problem.text = found.info.problem or ""
        self.changed.text = change_text(found.info.change)
        self._readings.tell(found)
        self.sink.text = f"matches go to {found.sink}: read them there" if found.sink else ""
        self.tail.props(f'no-data-label="{"not shown here" if found.sink else "no match yet"}"')
        if self.follow.value:
            fill(self.tail, [match_row(number, match) for number, match in enumerate(found.matches)])
        self.log.text = "\n".join(reversed(found.log[-100:]))


def _name_for(path: str | None) -> str:
    """A name for a run of a program: that of its file, as far as it may be one."""
    stem = (path or "").rpartition("/")[2].partition(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", stem).strip("-_") or "first"
