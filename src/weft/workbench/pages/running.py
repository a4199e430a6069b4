"""The page of programs that run: submit and stop them, their counts, the last hour as charts, their log."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

from nicegui import ui

from weft.workbench.pages.frame import ACCENT, asked, button, card, frame, table, texts
from weft.workbench.service import RunDetail, RunInfo, Workbench
from weft.workbench.trying import Sample

BEAT = 1.0  # seconds between two looks
COUNTS = ("events", "matches", "late", "unreadable")
COLUMNS = ("name", "where", "state", "uptime", "rate", *COUNTS)


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

    async def show(self) -> None:
        programs = [file.path for file in await asked(self._bench.programs) or []]
        files = await asked(self._bench.event_files) or []
        with card("Start a program"):
            with ui.row().classes("w-full items-center gap-3"):
                self.program = ui.select(programs, value=next(iter(programs), None)).classes("grow")
                self.program.props('dense outlined label="program" data-testid="run-program"')
                self.file = ui.select(files, value=next(iter(files), None)).classes("grow")
                self.file.props('dense outlined label="events to replay" data-testid="run-events"')
                self.rate = ui.number("events a second", value=10, min=0.1).props('dense outlined data-testid="rate"')
                self.name = ui.input("name", value="first").props('dense outlined data-testid="run-name"')
                button("Start", self._start, "start")
            text = "Programs on Spark are started by `weft run … --name NAME --detach`, and listed here too."
            ui.label(text).classes("opacity-70")
        with card("Programs that run"):
            self.table = table(COLUMNS, [], "name", "runs")
            self.table.props('no-data-label="nothing runs yet"').on("rowClick", self._choose)
        self.detail = ui.column().classes("w-full gap-4")
        ui.timer(BEAT, self._look)
        await self._look()

    def _choose(self, event: Any) -> None:
        self._name = event.args[1]["name"]
        self._build()

    async def _start(self) -> None:
        source = await asked(self._bench.program, self.program.value or "")
        if source is None:
            return
        sample = Sample(file=str(self.file.value or ""))
        started = await asked(self._bench.submit, source, sample, self.name.value, float(self.rate.value or 1))
        if started is not None:
            self._name = started.name
            self._build()
            await self._look()

    def _build(self) -> None:
        """The parts that tell of the chosen run."""
        self.detail.clear()
        with self.detail:
            with card(f"{self._name}"):
                with ui.row().classes("w-full items-center gap-4"):
                    self.state = ui.badge("").props('data-testid="state"')
                    self.counts = ui.label().classes("weft-mono").props('data-testid="counts"')
                    ui.space()
                    button("Change to the chosen program", self._change, "change", "outline")
                    button("Restart", self._restart, "restart", "outline")
                    button("Stop", self._stop, "stop", "color=negative outline")
                self.queries = texts([], "queries")
                with ui.row().classes("w-full no-wrap gap-4"):
                    self.charts = [
                        _chart("events a second"),
                        _chart("matches a second"),
                        _chart("waits since (events)"),
                    ]
            with card("Log"):
                self.log = texts([], "log").style("max-height: 220px; overflow: auto")

    async def _change(self) -> None:
        source = await asked(self._bench.program, self.program.value or "")
        if source is not None and await asked(self._bench.change, self._name, source) is not None:
            ui.notify(f"{self._name} runs {source.path} now", type="positive")

    async def _restart(self) -> None:
        await asked(self._bench.restart, self._name)
        await self._look()

    async def _stop(self) -> None:
        await asked(self._bench.stop, self._name)
        await self._look()

    async def _look(self) -> None:
        runs = await asked(self._bench.runs) or []
        self.table.rows = [_row(run) for run in runs]
        if self._name:
            found = await asked(self._bench.run, self._name)
            if found is not None:
                self._tell(found)

    def _tell(self, found: RunDetail) -> None:
        info, history = found.info, found.history
        self.state.text = info.state
        self.state.props(f"color={'positive' if info.state == 'running' else 'grey'}")
        row = _row(info)
        self.counts.text = "   ".join(f"{row[name]} {name}" for name in COUNTS) + f"   up {row['uptime']}"
        self.queries.text = "\n".join([*_query_lines(found), *_lane_lines(history)]) + (info.problem or "")
        last = history[-60:]
        labels = [f"{trigger['at'] - last[-1]['at']:.0f} s" for trigger in last]
        spans = [max(b["at"] - a["at"], 0.001) for a, b in pairwise(last)]
        spans = [spans[0] if spans else 1.0, *spans]
        series = (
            [round(t["events"] / span, 1) for t, span in zip(last, spans, strict=False)],
            [round(sum(t["matches"].values()) / span, 2) for t, span in zip(last, spans, strict=False)],
            [t["behind"] for t in last],
        )
        for chart, values in zip(self.charts, series, strict=True):
            chart.options["xAxis"]["data"] = labels
            chart.options["series"][0]["data"] = values
            chart.update()
        self.log.text = "\n".join(reversed(found.log[-100:]))


def _row(run: RunInfo) -> dict[str, Any]:
    summary = run.summary
    return {
        "name": run.name,
        "where": run.where,
        "state": run.state,
        "uptime": str(timedelta(seconds=int(summary.get("uptime") or 0))),
        "rate": f"{summary.get('rate') or 0:.1f}/s",
        **{name: f"{summary.get(name) or 0:,}" for name in COUNTS},
    }


def _query_lines(found: RunDetail) -> list[str]:
    """Each query with its matches, how many partial matches reached each step, and a doubt if it fell silent."""
    lines = []
    for name, own in (found.info.summary.get("queries") or {}).items():
        silence = own.get("silent_for")
        doubt = f"   silent for {timedelta(seconds=int(silence))}, longer than ever before" if silence else ""
        steps = found.funnels.get(name, [])
        reached = "   " + "  →  ".join(f"{step} {count:,}" for step, count in steps) if len(steps) > 1 else ""
        lines.append(f"{name}: {own['matches']:,} matches{reached}{doubt}")
    return lines


def _lane_lines(history: list[dict[str, Any]]) -> list[str]:
    """How the lanes of a run on Spark stood after its last trigger."""
    lanes = history[-1]["lanes"] if history else []
    if len(lanes) < 2:
        return []
    return [
        f"lane {lane['lane']}: {lane['taken']:,} events, {lane['held']:,} held, {lane['state_bytes']:,} bytes of state"
        for lane in lanes
    ]


def _chart(title: str) -> ui.echart:
    options = {
        "title": {"text": title, "textStyle": {"fontSize": 12, "fontWeight": "normal"}},
        "animation": False,
        "grid": {"left": 45, "right": 10, "top": 30, "bottom": 25},
        "xAxis": {"type": "category", "data": []},
        "yAxis": {"type": "value"},
        "series": [{"type": "line", "data": [], "showSymbol": False, "areaStyle": {"opacity": 0.15}, "color": ACCENT}],
    }
    return ui.echart(options).classes("grow").style("height: 190px; min-width: 0")
