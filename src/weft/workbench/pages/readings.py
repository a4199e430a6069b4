"""What a run does: counts, queries with their funnels, operators and lanes, and the last hour as charts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from nicegui import ui

from weft.workbench.pages.frame import button, fill, table
from weft.workbench.pages.run_texts import (
    BEHIND,
    checkpoint_text,
    lane_row,
    operator_row,
    pressure_text,
    query_text,
    run_row,
)
from weft.workbench.run_info import Point, QueryInfo, RunDetail

TILES = ("uptime", "events", "rate", "matches", "late", "unreadable", "lag", "waiting", "oldest", "state", "busy")
NAMES = {
    "rate": "events a second",
    "lag": "lag (ticks)",
    "waiting": "partial matches waiting",
    "oldest": "oldest waits since (events)",
    "state": "state size",
    "busy": "busy, of the last minute",
}
GREY, GRID, CURVE = "#8b949e", "#8b949e40", "#2488a0"  # of charts, readable on light and on dark
CHARTS: Mapping[str, Callable[[Point], float]] = {
    "events a second": lambda point: point.rate,
    "matches a second": lambda point: point.matches,
    "partial matches waiting": lambda point: point.waiting,
    "oldest waits since (events)": lambda point: point.behind,
    "lag (ticks)": lambda point: point.lag or 0,
    "state size (kB)": lambda point: point.state_bytes / 1000,
}
# A place on the axis of time: now, or so many seconds, minutes or hours before.
BEFORE_NOW = """value => {
  const ago = Math.round(-value);
  if (ago < 1) return "now";
  if (ago < 120) return "-" + ago + " s";
  return ago < 7200 ? "-" + Math.round(ago / 60) + " min" : "-" + (ago / 3600).toFixed(1) + " h";
}"""
POINT = """points => {
  const [at, value] = points[0].value;
  return value.toLocaleString() + (at > -0.5 ? " now" : ", " + Math.round(-at) + " s ago");
}"""
Funnels = Mapping[str, Sequence[tuple[str, int]]]


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
        self._pressure = ui.label().classes("weft-quiet").props('data-testid="pressure"')
        self._checkpoint = ui.label().classes("weft-quiet").props('data-testid="checkpoint"')
        self._queries = ui.column().classes("w-full gap-1").props('data-testid="queries"')
        self._funnels = ui.column().classes("w-full gap-2").props('data-testid="funnels"')
        self._ask = button("Funnels of the newest events", ask_funnels, "ask-funnels", "outline dense padding='xs sm'")
        with ui.element("div").classes("w-full grid gap-2 grid-cols-2 lg:grid-cols-3"):
            self._charts = {title: _chart(title) for title in CHARTS}
        with ui.element("div").classes("w-full grid gap-4 grid-cols-1 lg:grid-cols-2"):
            with ui.column().classes("min-w-0"):
                self._operators = table(("name", "received", "emitted", "waiting"), [], "name", "operators")
            with ui.column().classes("min-w-0"):
                columns = ("lane", "events", "load", "held", "waiting", "state")
                self._lanes = table(columns, [], "lane", "lanes", 8)
        self._told: list[Any] = []  # what is shown, to draw only what has changed

    def tell(self, found: RunDetail) -> None:
        """Show how the run stands."""
        row = run_row(found.info)
        row["busy"] = f"{found.busy:.0%}"
        for name, reading in self._tiles.items():
            reading.text = row[name]
        self._pressure.text = pressure_text(found)
        self._pressure.classes(replace="weft-doubt" if found.busy > BEHIND else "weft-quiet")
        self._checkpoint.text = checkpoint_text(found.checkpoint)
        summary = found.info.summary
        counts = bool(found.funnels)
        self._ask.visible = not counts and found.info.where == "spark"
        told = [summary.queries, found.funnels]
        if told != self._told or any(query.silent_for for query in summary.queries):
            self._told = told
            self._show_queries(summary.queries, found.info.state == "running")
            if counts or found.info.where != "spark":
                self.show_funnels(found.funnels)
        fill(self._operators, [operator_row(one) for one in summary.operators])
        fill(self._lanes, [lane_row(lane) for lane in summary.lanes])
        self._draw(found.history)

    def _draw(self, history: Sequence[Point]) -> None:
        span = max((point.ago for point in history), default=0.0)
        for title, value in CHARTS.items():
            chart = self._charts[title]
            chart.options["xAxis"]["min"] = -max(span, 1.0)
            points = [[round(-point.ago, 2), round(value(point), 2)] for point in history]
            chart.options["series"][0]["data"] = points
            chart.update()

    def _show_queries(self, queries: Sequence[QueryInfo], is_running: bool) -> None:
        self._queries.clear()
        with self._queries:
            for query in queries:
                with ui.row().classes("items-center gap-3"):
                    ui.label(query.name).classes("text-weight-medium")
                    ui.label(query_text(query)).classes("weft-mono")
                    if query.silent_for and is_running:
                        text = f"silent for {timedelta(seconds=int(query.silent_for))}, longer than ever before"
                        ui.badge(text, color="warning", text_color="dark").props('data-testid="silent"')

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
            ui.label(f"{query}: partial matches that reached each step").classes("text-caption weft-quiet")
            for step, count in steps:
                with ui.row().classes("w-full items-center no-wrap gap-2"):
                    ui.label(step).classes("weft-mono ellipsis").style("width: 150px")
                    ui.element("div").classes("weft-bar").style(f"width: {60 * count / most:.2f}%")
                    ui.label(f"{count:,}").classes("weft-mono")


def _chart(title: str) -> ui.echart:
    axis = {"axisLine": {"lineStyle": {"color": GREY}}}
    label = {"hideOverlap": True, "color": GREY, "fontSize": 11}
    options = {
        "title": {"text": title, "textStyle": {"fontSize": 12, "fontWeight": "normal", "color": GREY}, "left": 4},
        "animation": False,
        "grid": {"left": 8, "right": 14, "top": 40, "bottom": 4, "containLabel": True},
        "tooltip": {"trigger": "axis", ":formatter": POINT},
        "xAxis": {
            **axis,
            "type": "value",
            "max": 0,
            "splitNumber": 4,
            "minInterval": 1,
            "splitLine": {"show": False},
            "axisLabel": {**label, ":formatter": BEFORE_NOW, "showMinLabel": False},
        },
        "yAxis": {
            "axisLine": {"show": False},
            "axisTick": {"show": False},
            "type": "value",
            "min": 0,
            "splitNumber": 3,
            "splitLine": {"lineStyle": {"color": GRID}},
            "axisLabel": label,
        },
        "series": [{"type": "line", "data": [], "showSymbol": False, "areaStyle": {"opacity": 0.15}, "color": CURVE}],
    }
    return ui.echart(options).style("height: 170px; min-width: 0; width: 100%")
