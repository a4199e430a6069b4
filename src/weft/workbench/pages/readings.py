"""What a run does: counts, queries with their funnels, operators and lanes, and the last hour as charts."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from nicegui import ui

from weft.running.changing import ProgramChange
from weft.workbench.pages.frame import ACCENT, button, fill, table
from weft.workbench.run_info import LaneInfo, OperatorInfo, Point, QueryInfo, RunDetail, RunInfo

TILES = ("uptime", "events", "rate", "matches", "late", "unreadable", "lag", "waiting", "oldest", "state")
NAMES = {
    "rate": "events a second",
    "lag": "lag (ticks)",
    "waiting": "partial matches waiting",
    "oldest": "oldest waits since (events)",
    "state": "state size",
}
CHARTS: Mapping[str, Callable[[Point], float]] = {
    "events a second": lambda point: point.rate,
    "matches a second": lambda point: point.matches,
    "partial matches waiting": lambda point: point.waiting,
    "oldest waits since (events)": lambda point: point.behind,
    "lag (ticks)": lambda point: point.lag or 0,
    "state size (kB)": lambda point: point.state_bytes / 1000,
}
Funnels = Mapping[str, Sequence[tuple[str, int]]]


def run_row(run: RunInfo) -> dict[str, Any]:
    """A run as texts, by name of the reading."""
    summary = run.summary
    counts = {name: f"{getattr(summary, name):,}" for name in ("events", "matches", "late", "unreadable", "waiting")}
    return {
        "name": run.name,
        "where": run.where,
        "state_of": run.state,
        "uptime": str(timedelta(seconds=int(summary.uptime))),
        "rate": f"{summary.rate:,.1f}",
        "lag": "–" if summary.lag is None else f"{summary.lag:,}",
        "oldest": f"{summary.behind:,}",
        "state": size_text(summary.state_bytes),
        **counts,
    }


def query_text(query: QueryInfo) -> str:
    """Return the number of matches of a query, and of omitted ones."""
    last = "" if query.last is None else f", the last {_ago(query.last)} ago"
    return "; ".join([f"{query.matches:,} matches{last}", *query.left_out])


def change_text(change: ProgramChange | None) -> str:
    """What became of the last change of a run's program."""
    if change is None:
        return ""
    what = "refused, and the previous program keeps running" if change.refused else "changed"
    return f"{what}, {_ago(change.at)} ago:\n{change.told}"


def size_text(count: int) -> str:
    """Bytes, readably."""
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"


def _operator_row(one: OperatorInfo) -> dict[str, Any]:
    return {"name": one.name, **{key: f"{getattr(one, key):,}" for key in ("received", "emitted", "waiting")}}


def _lane_row(lane: LaneInfo) -> dict[str, Any]:
    return {
        "lane": lane.lane,
        "events": f"{lane.taken:,}",
        "load": f"{lane.load:.0%}",
        "held": f"{lane.held:,}",
        "waiting": f"{lane.waiting:,}",
        "state": size_text(lane.state_bytes),
    }


class RunReadings:
    """The readings of one run; `tell` shows what it did since."""

    def __init__(self, ask_funnels: Callable[[], Awaitable[None]]) -> None:
        self._tiles: dict[str, ui.label] = {}
        with ui.row().classes("w-full gap-2").props('data-testid="counts"'):
            for name in TILES:
                with ui.column().classes("gap-0 q-pa-sm weft-tile"):
                    ui.label(NAMES.get(name, name)).classes("text-caption opacity-70")
                    reading = ui.label().classes("text-weight-bold").props(f'data-testid="reading-{name}"')
                    self._tiles[name] = reading
        self._queries = ui.column().classes("w-full gap-1").props('data-testid="queries"')
        self._funnels = ui.column().classes("w-full gap-2").props('data-testid="funnels"')
        self._ask = button("Funnels of the newest events", ask_funnels, "ask-funnels", "outline dense")
        with ui.grid(columns=3).classes("w-full gap-2"):
            self._charts = {title: _chart(title) for title in CHARTS}
        with ui.row().classes("w-full no-wrap items-start gap-4"):
            with ui.column().classes("grow min-w-0"):
                self._operators = table(("name", "received", "emitted", "waiting"), [], "name", "operators")
            with ui.column().classes("grow min-w-0"):
                columns = ("lane", "events", "load", "held", "waiting", "state")
                self._lanes = table(columns, [], "lane", "lanes", 8)
        self._told: list[Any] = []  # what is shown, to draw only what has changed

    def tell(self, found: RunDetail) -> None:
        """Show how the run stands."""
        row = run_row(found.info)
        for name, reading in self._tiles.items():
            reading.text = row[name]
        summary = found.info.summary
        counts = bool(found.funnels)
        self._ask.visible = not counts and found.info.where == "spark"
        told = [summary.queries, found.funnels]
        if told != self._told or any(query.silent_for for query in summary.queries):
            self._told = told
            self._show_queries(summary.queries)
            if counts or found.info.where != "spark":
                self.show_funnels(found.funnels)
        fill(self._operators, [_operator_row(one) for one in summary.operators])
        fill(self._lanes, [_lane_row(lane) for lane in summary.lanes])
        self._draw(found.history)

    def _draw(self, history: Sequence[Point]) -> None:
        labels = [_before_now(one.ago) for one in history]
        for title, value in CHARTS.items():
            chart = self._charts[title]
            chart.options["xAxis"]["data"] = labels
            chart.options["series"][0]["data"] = [round(value(point), 2) for point in history]
            chart.update()

    def _show_queries(self, queries: Sequence[QueryInfo]) -> None:
        self._queries.clear()
        with self._queries:
            for query in queries:
                with ui.row().classes("items-center gap-3"):
                    ui.label(query.name).classes("text-weight-medium")
                    ui.label(query_text(query)).classes("weft-mono")
                    if query.silent_for:
                        text = f"silent for {timedelta(seconds=int(query.silent_for))}, longer than ever before"
                        ui.badge(text, color="warning").props('data-testid="silent"')

    def show_funnels(self, funnels: Funnels) -> None:
        """For each query of several steps how many partial matches reached each, as bars."""
        self._funnels.clear()
        with self._funnels:
            draw_funnels(funnels)


def draw_funnels(funnels: Funnels) -> None:
    """Bars, one for each step of each query of several steps."""
    for query, steps in funnels.items():
        if len(steps) < 2:
            continue
        most = max(count for _, count in steps) or 1
        with ui.column().classes("w-full gap-0").props('data-testid="funnel"'):
            ui.label(f"{query}: partial matches that reached each step").classes("text-caption opacity-70")
            for step, count in steps:
                with ui.row().classes("w-full items-center no-wrap gap-2"):
                    ui.label(step).classes("weft-mono").style("width: 110px; overflow: hidden; text-overflow: ellipsis")
                    bar = ui.element("div").style(f"height: 12px; border-radius: 3px; background: {ACCENT}")
                    bar.style(f"width: {55 * count / most:.2f}%; min-width: 2px; opacity: 0.75")
                    ui.label(f"{count:,}").classes("weft-mono")


def _before_now(seconds: float) -> str:
    """A place on the axis of time: seconds, or hours and minutes, before now."""
    if seconds >= 60:
        return f"-{timedelta(seconds=round(seconds))}"
    return f"-{seconds:.0f} s" if seconds >= 0.5 else "now"


def _ago(at: float) -> str:
    return str(timedelta(seconds=max(0, int(time.time() - at))))


def _chart(title: str) -> ui.echart:
    options = {
        "title": {"text": title, "textStyle": {"fontSize": 12, "fontWeight": "normal"}, "left": 8},
        "animation": False,
        "grid": {"left": 55, "right": 10, "top": 34, "bottom": 25},
        "tooltip": {"trigger": "axis"},
        "xAxis": {"type": "category", "data": [], "axisLabel": {"hideOverlap": True}},
        "yAxis": {"type": "value"},
        "series": [{"type": "line", "data": [], "showSymbol": False, "areaStyle": {"opacity": 0.15}, "color": ACCENT}],
    }
    return ui.echart(options).style("height: 170px; min-width: 0; width: 100%")
